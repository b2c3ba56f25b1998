// machine.cpp - roles as interpreters that take turns.
#include "tests/protocol/machine.h"

#include "llvm/ADT/TypeSwitch.h"
#include "tests/protocol/barrier.h"

namespace tile::ir::protocol {
using namespace mlir;

namespace {

constexpr int64_t kNoItem = -1;  ///< payload of a queue: nothing left

struct Stage {
  Barrier full, empty;
  int64_t payload = 0;
  std::array<int64_t, 2> fills{};  ///< reserves of this stage so far: the producer's, the turner's
  std::vector<int64_t> acquires;   ///< by reader: a consumer, or behind them the turner
  std::vector<bool> held;          ///< by reader
  std::vector<Val> handed;         ///< scalars
};
struct Ring {
  std::vector<Stage> stages;
  bool perWarp, inBulk, byThreads, turned;
  std::vector<int> readers;
  std::array<Cursor, 2> reserve;
  std::vector<Cursor> acquire, release;
  int64_t reserved() const { return std::max(reserve[0].total, reserve[1].total); }
};

/// One stage of a buffer.
struct Slot {
  std::string content = "nothing";
  bool hasLanded = false;
  int ring = -1, stage = 0;  ///< whose barriers guard it
};
struct Copy {
  int buffer, slot, ring, stage;
  int64_t bytes;
};
/// What the producer's threads copy into one stage.
struct Filling {
  int ring, stage;
  std::vector<Val> targets;
};
struct Product {
  int64_t id;
  std::vector<std::pair<int, int>> slots;  ///< buffer, stage
};

int64_t bytesOf(SmemType type) { return type.getShape()[0] * type.getShape()[1] * type.elementBytes(); }

class Program {
 public:
  Program(func::FuncOp func, const Inputs& inputs, const MachineOptions& options, int index, int64_t& ticket, Run& run)
      : inputs_(inputs), options_(options), ticket_(ticket), run_(run) {
    auto warps = func->getAttrOfType<IntegerAttr>("tile.num_warps");
    consumers_ = static_cast<int>(warps.getInt()) / 4;
    SpecializeOp roles;
    func.walk([&](SpecializeOp found) { roles = found; });
    if (!roles) throw Fault{"the kernel has no roles"};
    roles_ = roles;
    parties_ = consumers_ + (roles.hasTurner() ? 1 : 0);
    auto setup = [&](Operation* op, Walker& walker) { return outside(op, walker); };
    Walker walker(func.getBody().front(), arguments(func, inputs), inputs, setup, nullptr);
    while (walker.step() != Walker::State::finished) {
    }
    auto has = [&]<class Op>(Op) {
      return roles.getProducer().walk([](Op) { return WalkResult::interrupt(); }).wasInterrupted();
    };
    // Warps of the producer read positions, too, where it is more than a thread.
    ownWarps_ = has(RingCommitOp()) ? 4 : has(BallotOp()) ? 1 : 0;
    for (int agent = 0; agent <= parties_; ++agent) {
      Region& role = agent == 0             ? roles.getProducer()
                     : agent <= consumers_ ? roles.getConsumer()
                                            : roles.getTurner();
      Block& body = role.front();
      agents_.push_back(std::make_unique<Agent>());
      Agent& made = *agents_.back();
      made.nextItem = index;
      made.walker = std::make_unique<Walker>(
          body, walker.env, inputs, [this, agent](Operation* op, Walker& w) { return execute(op, w, agent - 1); },
          [this, agent](WorkLoopOp loop, auto& item) { return nextItem(loop, item, agent - 1); });
    }
  }

  /// Lets one of the roles, or one of the copies, go on; false when nobody can.
  bool step(std::mt19937_64& random) {
    std::vector<size_t> order(agents_.size() + 1);
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (size_t who : order) {
      if (who == agents_.size()) {
        if (random() % 4 && !isStuck_) continue;  // copies are slow, unless everybody waits
        if (!fillings_.empty() && (copies_.empty() || random() % 2)) return landFilling(), true;
        if (copies_.empty()) continue;
        land(random() % copies_.size());
        return true;
      }
      Agent& agent = *agents_[who];
      bool ran = false;
      for (uint64_t burst = random() % 16; !agent.isFinished; --burst) {
        Walker::State state = agent.walker->step();
        agent.isFinished = state == Walker::State::finished;
        if (state != Walker::State::ran) break;
        ran = true;
        if (burst == 0) break;
      }
      if (ran) return isStuck_ = false, true;
    }
    if (!(copies_.empty() && fillings_.empty()) && !isStuck_) return isStuck_ = true;
    return false;
  }

  bool isFinished() const {
    return llvm::all_of(agents_, [](auto& agent) { return agent->isFinished; });
  }
  std::string whereEveryoneIs() const {
    std::string text;
    for (size_t i = 0; i < agents_.size(); ++i) {
      text += (i == 0 ? "" : "; ") + nameOf(static_cast<int>(i) - 1) + ": ";
      Operation* at = agents_[i]->isFinished ? nullptr : agents_[i]->walker->at();
      text += at ? at->getName().getStringRef().str() : "finished";
      if (at && at->getNumOperands() && isa<RingType>(at->getOperand(0).getType()))
        text += " of ring " + std::to_string(ringOf(*agents_[i]->walker, at->getOperand(0)));
    }
    return text;
  }
  void checkEnd() {
    for (size_t index = 0; index < rings_.size(); ++index) {
      const Ring& ring = rings_[index];
      const int64_t reserved = ring.reserved();
      const std::array<bool, 2> fills{ring.inBulk || ring.byThreads, ring.turned};
      for (size_t filler = 0; filler < fills.size(); ++filler)
        if (fills[filler] && ring.reserve[filler].total != reserved)
          throw Fault{"ring " + std::to_string(index) + " was reserved " + std::to_string(reserved) + " times by one, " +
                      std::to_string(ring.reserve[filler].total) + " times by another who fills it"};
      for (int reader : ring.readers) {
        auto c = static_cast<size_t>(reader);
        if (ring.acquire[c].total != reserved || ring.release[c].total != reserved)
          throw Fault{"ring " + std::to_string(index) + " was reserved " + std::to_string(reserved) + " times, " +
                      nameOf(reader) + " acquired " + std::to_string(ring.acquire[c].total) + " and released " +
                      std::to_string(ring.release[c].total)};
      }
    }
  }

 private:
  struct Agent {
    std::unique_ptr<Walker> walker;
    bool isFinished = false;
    std::deque<Product> products;  ///< unfinished
    int64_t nextItem = 0;          ///< work loops without a queue
    Reads* reads = nullptr;        ///< of the position it works on
  };

  bool outside(Operation* op, Walker& walker) {
    if (auto alloc = dyn_cast<SmemAllocOp>(op)) {
      Val val;
      val.buffer = static_cast<int>(buffers_.size());
      walker.set(alloc.getResult(), val);
      buffers_.emplace_back(static_cast<size_t>(alloc.getResult().getType().getStages()));
    } else if (auto ring = dyn_cast<RingAllocOp>(op)) {
      walker.set(ring.getResult(), Val{static_cast<int64_t>(rings_.size())});
      auto n = static_cast<size_t>(parties_);
      std::vector<Stage> stages(static_cast<size_t>(ring.getResult().getType().getStages()),
                                Stage{Barrier(ring.getFills()), Barrier(ring.getArrivals()), 0, {},
                                      std::vector<int64_t>(n), std::vector<bool>(n), {}});
      rings_.push_back({std::move(stages),
                        ring.getPerWarp(),
                        ring.isFilledInBulk(),
                        ring.isFilledByThreads(),
                        ring.getTurned(),
                        readersOf(ring),
                        {},
                        std::vector<Cursor>(n),
                        std::vector<Cursor>(n)});
    }
    return true;
  }

  int ringOf(const Walker& walker, Value ring) const { return static_cast<int>(walker.number(ring)); }
  Slot& slotOf(const Val& val) {
    return buffers_.at(static_cast<size_t>(val.buffer)).at(static_cast<size_t>(val.stage));
  }
  std::string nameOf(int agent) const {
    return agent < 0 ? "the producer" : isTurner(agent) ? "the turner" : "consumer " + std::to_string(agent);
  }
  bool isTurner(int agent) const { return agent == consumers_; }

  /// Those whose program acquires the ring's stages.
  std::vector<int> readersOf(RingAllocOp ring) {
    std::vector<int> readers;
    auto reads = [&](Region& role) {
      return llvm::any_of(ring->getUsers(), [&](Operation* user) {
        return isa<RingAcquireOp, RingReleaseOp, WorkLoopOp, TakeOverOp>(user) && role.isAncestor(user->getParentRegion());
      });
    };
    for (int consumer = 0; consumer < consumers_ && reads(roles_.getConsumer()); ++consumer) readers.push_back(consumer);
    if (reads(roles_.getTurner())) readers.push_back(consumers_);
    return readers;
  }

  // ---- rings

  bool reserve(int index, int64_t bytes, int agent, int64_t* stage) {
    Ring& ring = rings_.at(static_cast<size_t>(index));
    const size_t filler = isTurner(agent) ? 1 : 0;
    Cursor& cursor = ring.reserve[filler];
    Stage& next = ring.stages.at(static_cast<size_t>(cursor.stage));
    if (!next.empty.passes(cursor.parity ^ 1)) return false;
    if (bytes && (!ring.inBulk || filler))
      throw Fault{nameOf(agent) + " announces bytes of ring " + std::to_string(index) + ", which it fills itself"};
    if (ring.inBulk && !filler) {
      next.full.expect(bytes);
      next.full.arrive();
    }
    ++next.fills[filler];
    *stage = cursor.stage;
    cursor.advance(static_cast<int64_t>(ring.stages.size()));
    return true;
  }
  bool acquire(int index, int consumer, int64_t* stage) {
    Ring& ring = rings_.at(static_cast<size_t>(index));
    Cursor& cursor = ring.acquire[static_cast<size_t>(consumer)];
    Stage& next = ring.stages.at(static_cast<size_t>(cursor.stage));
    if (!next.full.passes(cursor.parity)) return false;
    next.held[static_cast<size_t>(consumer)] = true;
    ++next.acquires[static_cast<size_t>(consumer)];
    *stage = cursor.stage;
    cursor.advance(static_cast<int64_t>(ring.stages.size()));
    return true;
  }
  void release(int index, int consumer) {
    Ring& ring = rings_.at(static_cast<size_t>(index));
    Cursor& cursor = ring.release[static_cast<size_t>(consumer)];
    Stage& stage = ring.stages.at(static_cast<size_t>(cursor.stage));
    if (!stage.held[static_cast<size_t>(consumer)])
      throw Fault{nameOf(consumer) + " releases a stage of ring " + std::to_string(index) + " that it does not hold"};
    for (const Product& product : agents_[static_cast<size_t>(consumer) + 1]->products)
      for (auto [buffer, at] : product.slots) {
        const Slot& slot = buffers_[static_cast<size_t>(buffer)][static_cast<size_t>(at)];
        if (slot.ring == index && slot.stage == cursor.stage)
          throw Fault{nameOf(consumer) + " releases " + slot.content + " while a product reads it"};
      }
    stage.held[static_cast<size_t>(consumer)] = false;
    stage.empty.arrive(isTurner(consumer) ? SpecializeOp::kTurnerWarps : ring.perWarp ? 4 : 1);
    if (stage.empty.isOverrun())
      throw Fault{"more releases of a stage of ring " + std::to_string(index) + " than it counts"};
    cursor.advance(static_cast<int64_t>(ring.stages.size()));
  }

  // ---- copies

  void startCopy(TmaLoadOp op, Walker& walker) {
    const Val& target = walker.get(op.getTarget());
    int index = ringOf(walker, op.getRing());
    int64_t at = walker.number(op.getSlot());
    overwrite(target, index, at, boxName(walker, op.getView(), op.getIndices(), op.getTarget().getType()), 0);
    copies_.push_back({target.buffer, target.stage, index, static_cast<int>(at), bytesOf(op.getTarget().getType())});
  }
  /// By the producer's threads: what follows the latest reserve is for its stage.
  void startFilling(Value targetValue, std::string content, Walker& walker) {
    const Val& target = walker.get(targetValue);
    if (lastReserved_.first < 0) throw Fault{"a copy into " + content + " before any stage was reserved"};
    overwrite(target, lastReserved_.first, lastReserved_.second, std::move(content), 0);
    open_.push_back(target);
  }
  /// By the turner: into the stage it reserved last.
  void turn(SmemTurnOp op, Walker& walker, int agent) {
    const Val& target = walker.get(op.getTarget());
    if (lastTurned_.first < 0) throw Fault{"a tile turned before any stage was reserved"};
    overwrite(target, lastTurned_.first, lastTurned_.second, read(op.getSource(), walker, agent, nullptr), 1);
    turned_.push_back(target);
  }
  void commitTurned(RingCommitOp op, Walker& walker) {
    for (const Val& target : std::exchange(turned_, {})) slotOf(target).hasLanded = true;
    const int ring = ringOf(walker, op.getRing());
    Barrier& full = rings_[static_cast<size_t>(ring)].stages[static_cast<size_t>(walker.number(op.getSlot()))].full;
    full.arrive(SpecializeOp::kTurnerWarps);
    if (full.isOverrun()) throw Fault{"more fills of a stage of ring " + std::to_string(ring) + " than it counts"};
  }
  void commit(RingCommitOp op, Walker& walker) {
    const int ring = ringOf(walker, op.getRing()), stage = static_cast<int>(walker.number(op.getSlot()));
    fillings_.push_back({ring, stage, std::exchange(open_, {})});
  }
  void landFilling() {
    const Filling filling = fillings_.front();
    fillings_.pop_front();
    for (const Val& target : filling.targets) slotOf(target).hasLanded = true;
    Barrier& full = rings_[static_cast<size_t>(filling.ring)].stages[static_cast<size_t>(filling.stage)].full;
    full.arrive(4);
    if (full.isOverrun())
      throw Fault{"more fills of a stage of ring " + std::to_string(filling.ring) + " than it counts"};
  }
  void overwrite(const Val& target, int index, int64_t at, std::string content, size_t filler) {
    Slot& slot = slotOf(target);
    Ring& ring = rings_.at(static_cast<size_t>(index));
    Stage& stage = ring.stages.at(static_cast<size_t>(at));
    for (int consumer : ring.readers) {
      auto c = static_cast<size_t>(consumer);
      if (stage.held[c]) throw Fault{"a copy overwrites " + slot.content + ", which " + nameOf(consumer) + " holds"};
      if (stage.acquires[c] != stage.fills[filler] - 1)
        throw Fault{"a copy overwrites " + slot.content + ", which " + nameOf(consumer) + " has not read"};
      for (const Product& product : agents_[c + 1]->products)
        if (llvm::is_contained(product.slots, std::pair(target.buffer, target.stage)))
          throw Fault{"a copy overwrites " + slot.content + ", which a product reads"};
    }
    slot = {std::move(content), false, index, static_cast<int>(at)};
  }
  void land(size_t which) {
    Copy copy = copies_[which];
    copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(which));
    buffers_[static_cast<size_t>(copy.buffer)][static_cast<size_t>(copy.slot)].hasLanded = true;
    rings_[static_cast<size_t>(copy.ring)].stages[static_cast<size_t>(copy.stage)].full.complete(copy.bytes);
  }

  // ---- work items

  bool nextItem(WorkLoopOp loop, std::optional<std::array<int64_t, 3>>& item, int agent) {
    int64_t number;
    auto who = static_cast<size_t>(agent + 1);
    if (!loop.getQueue()) {
      number = agents_[who]->nextItem;
      agents_[who]->nextItem += options_.programs;
      if (number >= inputs_.items()) number = kNoItem;
    } else {
      int ring = ringOf(*agents_[who]->walker, loop.getQueue());
      int64_t stage;
      if (agent < 0) {
        if (!reserve(ring, 0, agent, &stage)) return false;
        number = ticket_++;
        if (number >= inputs_.items()) number = kNoItem;
        // The payload is written before the arrival that reserve() made: nothing runs in between here. The warps of a
        // producer whose threads copy read and release it like consumers.
        if (ownWarps_) rings_[static_cast<size_t>(ring)].stages[static_cast<size_t>(stage)].empty.arrive(ownWarps_);
        rings_[static_cast<size_t>(ring)].stages[static_cast<size_t>(stage)].payload = number;
      } else {
        if (!acquire(ring, agent, &stage)) return false;
        number = rings_[static_cast<size_t>(ring)].stages[static_cast<size_t>(stage)].payload;
        release(ring, agent);
      }
    }
    if (number == kNoItem) return item.reset(), true;
    item = inputs_.position(number);
    if (agent >= 0 && !isTurner(agent)) {
      auto& reads = run_.reads[number];
      reads.reserve(64);  // agents keep pointers
      reads.emplace_back();
      agents_[who]->reads = &reads.back();
    }
    return true;
  }

  // ---- ops of the roles

  std::string read(Value smem, Walker& walker, int agent, Product* product) {
    const Val& val = walker.get(smem);
    if (val.buffer < 0) return val.content + (val.isTransposed ? " transposed" : "");
    Slot& slot = slotOf(val);
    if (slot.ring >= 0) {
      const Stage& stage = rings_[static_cast<size_t>(slot.ring)].stages[static_cast<size_t>(slot.stage)];
      if (!slot.hasLanded) throw Fault{nameOf(agent) + " reads " + slot.content + " before it has landed"};
      if (!stage.held[static_cast<size_t>(agent)])
        throw Fault{nameOf(agent) + " reads " + slot.content + " without holding its stage"};
      if (product) product->slots.emplace_back(val.buffer, val.stage);
    }
    return slot.content + (val.isTransposed ? " transposed" : "");
  }

  void mustBeFinished(Operation* op, Walker& walker, int agent) {
    for (Value operand : op->getOperands()) {
      if (auto mma = dyn_cast<MmaOp>(op); mma && operand == mma.getAcc()) continue;
      int64_t id = walker.get(operand).product;
      for (const Product& product : agents_[static_cast<size_t>(agent) + 1]->products)
        if (product.id == id)
          throw Fault{op->getName().getStringRef().str() + " uses the result of an unfinished product"};
    }
  }

  bool execute(Operation* op, Walker& walker, int agent) {
    Agent& self = *agents_[static_cast<size_t>(agent) + 1];
    int64_t stage;
    if (isa<MmaWaitOp>(op)) {
      while (self.products.size() > cast<MmaWaitOp>(op).getPending()) self.products.pop_front();
      for (auto [result, acc] : llvm::zip(op->getResults(), op->getOperands())) walker.set(result, walker.get(acc));
      return true;
    }
    if (agent >= 0) mustBeFinished(op, walker, agent);
    return llvm::TypeSwitch<Operation*, bool>(op)
        .Case([&](RingReserveOp o) {
          if (!reserve(ringOf(walker, o.getRing()), o.getBytes(), agent, &stage)) return false;
          walker.set(o.getSlot(), Val(stage));
          std::pair<int, int64_t>& last = isTurner(agent) ? lastTurned_ : lastReserved_;
          last = {ringOf(walker, o.getRing()), stage};
          return true;
        })
        .Case([&](RingCommitOp o) { return isTurner(agent) ? commitTurned(o, walker) : commit(o, walker), true; })
        .Case([&](SmemTurnOp o) { return turn(o, walker, agent), true; })
        .Case([&](AsyncGatherOp o) {
          return startFilling(o.getTarget(), gatherName(walker, o.getPtr(), o.getOffsets(), o.getMask()), walker), true;
        })
        .Case([&](AsyncCopyOp o) {
          return startFilling(o.getTarget(), boxName(walker, o.getView(), o.getIndices(), o.getTarget().getType()),
                              walker),
                 true;
        })
        .Case([&](RingAcquireOp o) {
          if (!acquire(ringOf(walker, o.getRing()), agent, &stage)) return false;
          walker.set(o.getSlot(), Val(stage));
          return true;
        })
        .Case([&](RingReleaseOp o) {
          if (!o.getEnable() || walker.number(o.getEnable())) release(ringOf(walker, o.getRing()), agent);
          return true;
        })
        .Case([&](HandOverOp o) {
          const int ring = ringOf(walker, o.getRing());
          if (!reserve(ring, 0, agent, &stage)) return false;
          std::vector<Val>& handed = rings_[static_cast<size_t>(ring)].stages[static_cast<size_t>(stage)].handed;
          handed.clear();
          for (Value value : o.getValues()) handed.push_back(walker.get(value));
          return true;
        })
        .Case([&](TakeOverOp o) {
          const int ring = ringOf(walker, o.getRing());
          if (!acquire(ring, agent, &stage)) return false;
          const std::vector<Val>& handed = rings_[static_cast<size_t>(ring)].stages[static_cast<size_t>(stage)].handed;
          if (handed.size() != o.getValues().size()) throw Fault{nameOf(agent) + " takes over other scalars"};
          for (auto [value, result, got] : llvm::zip(o.getValues(), o.getResults(), handed)) {
            if (walker.get(value).number != got.number)
              throw Fault{nameOf(agent) + " takes over a scalar that it would have computed otherwise"};
            walker.set(result, got);
          }
          release(ring, agent);
          return true;
        })
        .Case([&](TmaLoadOp o) { return startCopy(o, walker), true; })
        .Case([&](SmemAllocOp o) {
          walker.set(o.getResult(), Val(std::string("a share")));  // consumers share registers through it
          return true;
        })
        .Case([&](SmemSlotOp o) {
          Val val = walker.get(o.getRing());
          val.stage = static_cast<int>(walker.number(o.getIndex()));
          walker.set(o.getResult(), val);
          return true;
        })
        .Case([&](SmemTransOp o) {
          Val val = walker.get(o.getSource());
          val.isTransposed = !val.isTransposed;
          walker.set(o.getResult(), val);
          return true;
        })
        .Case([&](SmemStoreOp o) {
          Val target = walker.get(o.getTarget());
          std::string content = shareName(walker.get(o.getValue()));
          if (target.buffer >= 0) return slotOf(target).content = std::move(content), true;
          target.content = std::move(content);
          walker.set(o.getTarget(), std::move(target));
          return true;
        })
        .Case([&](ConvertOp o) { return walker.set(o.getResult(), walker.get(o.getSource())), true; })
        .Case([&](MmaOp o) {
          Product product{++products_, {}};
          self.reads->push_back(productName(o, [&](Value v) { return read(v, walker, agent, &product); }));
          Val result;
          result.product = product.id;
          walker.set(o.getResult(), result);
          bool isAsync = options_.isAsync && o.getEngine() >= Engine::wgmma_f16;
          if (isAsync) self.products.push_back(std::move(product));
          return true;
        })
        .Case([&](SmemLoadOp o) {
          Val val(read(o.getSource(), walker, agent, nullptr));
          if (!onlyMoves(o)) self.reads->push_back("read " + val.content);
          walker.set(o.getResult(), std::move(val));
          return true;
        })
        .Default([](Operation*) { return true; });
  }

  const Inputs& inputs_;
  const MachineOptions& options_;
  int64_t& ticket_;
  Run& run_;
  SpecializeOp roles_;
  int consumers_ = 0, parties_ = 0;  ///< parties: consumers, and the turner behind them
  std::vector<std::vector<Slot>> buffers_;
  std::vector<Ring> rings_;
  std::vector<Copy> copies_;
  std::vector<Val> open_;         ///< started by threads, not committed
  std::deque<Filling> fillings_;  ///< committed
  std::pair<int, int64_t> lastReserved_{-1, 0}, lastTurned_{-1, 0};
  std::vector<Val> turned_;  ///< not committed
  int ownWarps_ = 0;  ///< of the producer, that read positions
  std::vector<std::unique_ptr<Agent>> agents_;
  int64_t products_ = 0;
  bool isStuck_ = false;
};

}  // namespace

Run runMachine(func::FuncOp func, const Inputs& inputs, const MachineOptions& options) {
  Run run;
  std::mt19937_64 random(options.seed);
  int64_t ticket = 0;
  try {
    std::vector<std::unique_ptr<Program>> programs;
    for (int i = 0; i < options.programs; ++i)
      programs.push_back(std::make_unique<Program>(func, inputs, options, i, ticket, run));
    for (;;) {
      bool moved = false, finished = true;
      std::shuffle(programs.begin(), programs.end(), random);
      for (auto& program : programs) {
        moved |= program->step(random);
        finished &= program->isFinished();
      }
      if (finished) break;
      if (moved) continue;
      for (auto& program : programs)
        if (!program->isFinished()) throw Fault{"deadlock: " + program->whereEveryoneIs()};
    }
    for (auto& program : programs) program->checkEnd();
  } catch (const Fault& fault) {
    run.fault = fault.what;
  }
  return run;
}

}  // namespace tile::ir::protocol
