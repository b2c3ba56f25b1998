// memory.cpp - loads and stores of tiles in global memory: boxes of views with bounds, gathers and scatters with masks.
//
// Every access is cut into runs of neighbouring elements, as wide as alignment allows (16 bytes at most). Where the
// whole tile can be in bounds but a run might straddle the edge, the code splits once: all in bounds -> wide accesses
// without predicates; else -> accesses as wide as the predicates are constant. Where memory says which elements are
// wanted that would be both ways for most warps: there a run is one access if any of its elements is wanted.
#include <map>

#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/tile_access.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tile::ir {
using namespace mlir;

namespace {

llvm::Constant* padConstant(Emitter& e, llvm::Type* element, Type mlirElement, std::optional<llvm::APFloat> pad) {
  if (!pad) return llvm::Constant::getNullValue(element);
  auto type = mlirElement;
  if (isa<FloatType>(type)) {
    llvm::APFloat value = *pad;
    bool inexact = false;
    value.convert(cast<FloatType>(type).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &inexact);
    return llvmConstant(e.b.getContext(), FloatAttr::get(type, value));
  }
  return llvm::ConstantInt::getSigned(element, static_cast<int64_t>(pad->convertToDouble()));
}

// Elements at one place under masks of their own: it is read once, if any of them wants it.
Regs loadPlaces(Emitter& e, Access& access, const layout::Layout& layout, llvm::Type* element,
                llvm::ArrayRef<llvm::Value*> fallback, CacheHint cache) {
  Regs result(layout.numRegs(), llvm::PoisonValue::get(element));
  llvm::MapVector<size_t, llvm::SmallVector<int>> places;
  for (const auto& run : access.runs(1, /*unique=*/false)) places[access.firstPlace[run[0]]].push_back(run[0]);
  for (const auto& [first, all] : places) {
    llvm::SetVector<llvm::Value*> masks;
    for (int reg : all) masks.insert(access.ownPredicate(reg));
    llvm::Value* any = nullptr;  // always
    if (!masks.contains(nullptr))
      for (llvm::Value* mask : masks) any = any ? e.b.CreateOr(any, mask) : mask;
    llvm::Value* wanted = e.andAll({access.predicateOfPlace(static_cast<int>(first)), any});
    const bool isOne = fallback.size() == 1;
    llvm::Value* otherwise = isOne ? fallback[0] : llvm::Constant::getNullValue(element);
    llvm::Value* loaded =
        loadVector(e, access.address(static_cast<int>(first)), element, 1, wanted, {otherwise}, cache)[0];
    for (int reg : all) {  // where it was not read it is `otherwise`
      llvm::Value* own = isOne ? access.ownPredicate(reg) : access.predicate(reg);
      const bool isSure = !own || (isOne && own == any);
      result[reg] = isSure ? loaded : e.b.CreateSelect(own, loaded, fallback[isOne ? 0 : reg]);
    }
  }
  return result;
}

// One pass over all runs of `vector` registers. `checked`: with the access' predicates.
Regs loadRuns(Emitter& e, Access& access, const layout::Layout& layout, int vector, bool checked, llvm::Type* element,
              llvm::ArrayRef<llvm::Value*> fallback, CacheHint cache) {
  if (!access.firstPlace.empty() && vector == 1 && checked && cache != CacheHint::volatile_)
    return loadPlaces(e, access, layout, element, fallback, cache);
  Regs result(layout.numRegs(), llvm::PoisonValue::get(element));
  const bool shares = !access.firstAlike.empty() && fallback.size() == 1 && cache != CacheHint::volatile_;
  std::map<size_t, int> first;  // of a group: the run that has the elements
  const auto runs = access.runs(vector, /*unique=*/false);
  for (const auto& run : runs) {
    if (shares && (vector == 1 || !access.alikeInRuns)) {
      const auto [it, added] = first.try_emplace(access.firstAlike[run[0]], static_cast<int>(&run - runs.data()));
      if (!added) {
        for (auto [reg, same] : llvm::zip(run, runs[it->second])) result[reg] = result[same];
        continue;
      }
    }
    Regs other;
    for (int reg : run) other.push_back(fallback[fallback.size() == 1 ? 0 : reg]);
    llvm::Value* predicate = checked ? access.predicate(run[0]) : nullptr;
    Regs loaded = loadVector(e, access.address(run[0]), element, vector, predicate, other, cache);
    for (auto [reg, value] : llvm::zip(run, loaded)) result[reg] = value;
  }
  return result;
}

// Every run as one access, made if any of its elements is wanted: no more memory than that is touched, and nobody
// branches. The others are what they would have been.
Regs loadSpotted(Emitter& e, Access& access, const layout::Layout& layout, llvm::Type* element,
                 llvm::ArrayRef<llvm::Value*> fallback, CacheHint cache) {
  Regs result(layout.numRegs(), llvm::PoisonValue::get(element));
  for (const auto& run : access.runs(access.width.aligned, /*unique=*/false)) {
    Regs wanted, other;
    llvm::Value* any = nullptr;
    for (int reg : run) {
      wanted.push_back(access.predicate(reg));
      other.push_back(fallback[fallback.size() == 1 ? 0 : reg]);
      any = any ? e.b.CreateOr(any, wanted.back()) : wanted.back();
    }
    Regs loaded = loadVector(e, access.address(run[0]), element, access.width.aligned, any, other, cache);
    for (auto [reg, is, value, instead] : llvm::zip(run, wanted, loaded, other))
      result[reg] = e.b.CreateSelect(is, value, instead);
  }
  return result;
}

// A box beside an aligned one: every run is cut from two aligned accesses, each of which is made once for all boxes
// that want it (by the optimiser, which knows where nothing is written between).
Regs loadShifted(Emitter& e, LoadOp op, int vector, const layout::Layout& layout, llvm::Type* element,
                 llvm::Value* fallback) {
  const auto access = boxAccess(e, op, layout, memoryBytes(element));
  const int64_t within = access->besideAligned(vector);
  Regs result(layout.numRegs(), llvm::PoisonValue::get(element));
  for (const auto& run : access->runs(vector, /*unique=*/false)) {
    Regs pieces;
    for (access->ahead = -within; access->ahead < vector; access->ahead += vector) {
      Regs piece = loadVector(e, access->address(run[0]), element, vector, access->predicate(run[0]),
                              Regs(vector, fallback), op.getCache(), /*mayMerge=*/true);
      pieces.append(piece.begin(), piece.end());
    }
    for (auto [i, reg] : llvm::enumerate(run)) result[reg] = pieces[within + static_cast<int64_t>(i)];
  }
  return result;
}

// A box that starts anywhere: two accesses side by side as words, of which a run's are chosen by the bits of the place
// where it starts, and joined from the bytes of neighbours.
Regs loadTurned(Emitter& e, LoadOp op, int vector, const layout::Layout& layout, llvm::Type* element,
                llvm::Value* fallback) {
  llvm::IRBuilder<>& b = e.b;
  const auto access = turnedBoxAccess(e, op, layout, memoryBytes(element), vector);
  const int perWord = 4 / memoryBytes(element), wanted = vector / perWord;
  auto* group = llvm::FixedVectorType::get(element, static_cast<unsigned>(perWord));
  llvm::Value* bits = b.CreateMul(b.CreateAnd(access->shift, e.i32(perWord - 1)), e.i32(32 / perWord));
  llvm::Value* word = b.CreateUDiv(access->shift, e.i32(perWord));
  Regs result(layout.numRegs(), llvm::PoisonValue::get(element));
  for (const auto& run : access->runs(vector, /*unique=*/false)) {
    Regs words;
    for (access->ahead = 0; access->ahead <= vector; access->ahead += vector) {
      Regs piece = loadVector(e, access->address(run[0]), element, vector, access->predicate(run[0]),
                              Regs(vector, fallback), op.getCache(), /*mayMerge=*/true);
      for (int first = 0; first < vector; first += perWord) {
        llvm::Value* packed = llvm::PoisonValue::get(group);
        for (int i = 0; i < perWord; ++i)
          packed = b.CreateInsertElement(packed, piece[first + i], static_cast<uint64_t>(i));
        words.push_back(b.CreateBitCast(packed, b.getInt32Ty()));
      }
    }
    for (int step = wanted / 2; step > 0; step /= 2) {
      llvm::Value* isSet = b.CreateICmpNE(b.CreateAnd(word, e.i32(step)), e.i32(0));
      Regs chosen;
      for (int i = 0; i < wanted + step; ++i) chosen.push_back(b.CreateSelect(isSet, words[i + step], words[i]));
      words = std::move(chosen);
    }
    for (int i = 0; i < wanted; ++i) {
      llvm::Value* joined =
          b.CreateIntrinsic(b.getInt32Ty(), llvm::Intrinsic::fshr, {words[i + 1], words[i], bits});
      llvm::Value* elements = b.CreateBitCast(joined, group);
      for (int j = 0; j < perWord; ++j)
        result[run[i * perWord + j]] = b.CreateExtractElement(elements, static_cast<uint64_t>(j));
    }
  }
  return result;
}

/// What happens to a run of neighbouring elements: (address of the first, values, predicate or null).
using Write = llvm::function_ref<void(llvm::Value*, llvm::ArrayRef<llvm::Value*>, llvm::Value*)>;

void storeRuns(Emitter& e, Access& access, const layout::Layout& layout, int vector, bool checked,
               llvm::ArrayRef<llvm::Value*> values, Write write) {
  llvm::Value* first = e.isFirstReplica(layout);
  for (const auto& run : access.runs(vector, /*unique=*/true)) {
    Regs group;
    for (int reg : run) group.push_back(values[reg]);
    write(access.address(run[0]), group, e.andAll({first, checked ? access.predicate(run[0]) : nullptr}));
  }
}

// Whether splitting into a fast and a checked path pays: wider accesses on the fast one.
bool splits(Access& access, const layout::Layout& layout) {
  return access.width.aligned > access.width.masked && !layout.isPadded();
}

// `make` builds the access anew on each path: addresses it caches must not cross between them.
using MakeAccess = llvm::function_ref<std::unique_ptr<Access>()>;

// Narrow elements are taken out of words behind the join: in front of it whoever goes the fast way would wait for them
// before the next load could begin.
Regs loadWordsOrElements(Emitter& e, MakeAccess make, const layout::Layout& layout, llvm::Type* element,
                         llvm::ArrayRef<llvm::Value*> fallback, CacheHint cache) {
  constexpr int kWord = 4;
  auto access = make();
  const auto runs = access->runs(access->width.aligned, /*unique=*/false);
  const int bytes = memoryBytes(element), perWord = std::min(kWord / bytes, access->width.aligned);
  const int wordsOfRun = access->width.aligned / perWord;
  llvm::Type* word = e.b.getIntNTy(8 * bytes * perWord);
  llvm::Value* fast = access->allInside();
  const Regs both = branch(e, fast, [&](bool isFast) {
    auto own = make();
    Regs words(runs.size() * wordsOfRun, llvm::Constant::getNullValue(word));
    Regs elements;
    if (isFast) {
      // No constant: what widens the elements would move in front of the join.
      llvm::Value* none = e.inlineAsm(e.b.getInt16Ty(), "mov.b16 $0, 0;", "=h", {}, /*pure=*/true);
      none = e.b.CreateBitCast(e.b.CreateTrunc(none, e.b.getIntNTy(8 * bytes)), element);
      elements.assign(layout.numRegs(), none);
      words.clear();
      for (const auto& run : runs)
        words.append(loadVector(e, own->address(run[0]), word, wordsOfRun, nullptr, {}, cache));
    } else {
      elements = loadRuns(e, *own, layout, own->width.masked, true, element, fallback, cache);
    }
    words.append(elements);
    return words;
  });
  Regs result(both.begin() + static_cast<long>(runs.size() * wordsOfRun), both.end());
  for (size_t r = 0; r < runs.size(); ++r)
    for (size_t i = 0; i < runs[r].size(); ++i) {
      // By a shift: vectors of elements would be made of the word where it is loaded.
      llvm::Value* taken = both[r * wordsOfRun + i / perWord];
      if (const size_t at = i % perWord) taken = e.b.CreateLShr(taken, at * 8 * bytes);
      taken = e.b.CreateBitCast(e.b.CreateTrunc(taken, e.b.getIntNTy(8 * bytes)), element);
      llvm::Value*& value = result[runs[r][i]];
      value = e.b.CreateSelect(fast, taken, value);
    }
  return result;
}

Regs emitLoadTile(Emitter& e, MakeAccess make, const layout::Layout& layout, llvm::Type* element,
                  llvm::ArrayRef<llvm::Value*> fallback, CacheHint cache) {
  auto access = make();
  if (!splits(*access, layout))
    return loadRuns(e, *access, layout, access->width.masked, true, element, fallback, cache);
  if (access->isSpotted && cache != CacheHint::volatile_)
    return loadSpotted(e, *access, layout, element, fallback, cache);
  const auto alike = llvm::enumerate(access->firstAlike);
  const bool isOwn = llvm::all_of(alike, [](const auto& reg) { return reg.value() == reg.index(); });
  constexpr int kFew = 8;  // elements that may wait in words and one by one
  const int bits = static_cast<int>(element->getScalarSizeInBits());
  if (bits > 1 && bits < 32 && isOwn && access->width.aligned > 1 && layout.numRegs() <= kFew)
    return loadWordsOrElements(e, make, layout, element, fallback, cache);
  return branch(e, access->allInside(), [&](bool fast) {
    auto own = make();
    return loadRuns(e, *own, layout, fast ? own->width.aligned : own->width.masked, !fast, element, fallback, cache);
  });
}

/// The same where threads have elements that are none of the tile's (sizes that do not divide into threads): each run
/// by itself, as one access where all of it is wanted. False: there are too many, or nothing would be wider.
bool storeWholeRuns(Emitter& e, MakeAccess make, const layout::Layout& layout, llvm::ArrayRef<llvm::Value*> values,
                    Write write) {
  constexpr size_t kMostRuns = 4;
  auto access = make();
  const auto runs = access->runs(access->width.aligned, /*unique=*/true);
  if (access->width.aligned <= access->width.masked || runs.size() > kMostRuns) return false;
  llvm::Value* first = e.isFirstReplica(layout);
  for (const std::vector<int>& run : runs) {
    llvm::SmallVector<llvm::Value*> all;
    for (int reg : run) all.push_back(access->predicate(reg));
    llvm::Value* whole = e.andAll(all);
    branch(e, whole ? whole : e.b.getTrue(), [&](bool isWhole) {
      auto own = make();
      const size_t width = isWhole ? run.size() : std::min<size_t>(own->width.masked, run.size());
      for (size_t i = 0; i < run.size(); i += width) {
        Regs group;
        for (size_t j = i; j < std::min(i + width, run.size()); ++j) group.push_back(values[run[j]]);
        write(own->address(run[i]), group, e.andAll({first, isWhole ? nullptr : own->predicate(run[i])}));
      }
      return Regs();
    });
  }
  return true;
}

void emitStoreTile(Emitter& e, MakeAccess make, const layout::Layout& layout, llvm::ArrayRef<llvm::Value*> values,
                   Write write) {
  auto access = make();
  if (layout.isPadded() && storeWholeRuns(e, make, layout, values, write)) return;
  if (!splits(*access, layout)) return storeRuns(e, *access, layout, access->width.masked, true, values, write);
  branch(e, access->allInside(), [&](bool fast) {
    auto own = make();
    storeRuns(e, *own, layout, fast ? own->width.aligned : own->width.masked, !fast, values, write);
    return Regs();
  });
}

/// The value of a store or an accumulation, run by run, to its box.
template <class Op>
void emitStoreBox(Emitter& e, Op op, Write write) {
  const layout::Layout& layout = e.layoutOf(op.getValue());
  const int bytes = memoryBytes(e.elementType(op.getValue()));
  auto make = [&] { return boxAccess(e, op, layout, bytes); };
  Regs values(e.regs(op.getValue()));
  emitStoreTile(e, make, layout, values, write);
}

}  // namespace

LogicalResult emitLoad(Emitter& e, LoadOp op) {
  const layout::Layout& layout = e.layoutOf(op.getResult());
  llvm::Type* element = e.elementType(op.getResult());
  auto pad = op.getPad();
  llvm::Value* fallback = padConstant(e, element, getElementTypeOrSelf(op.getType()), pad);
  if (auto vector = layout.rank() ? vectorOfShiftedBox(e.facts(), op, layout, memoryBytes(element)) : std::nullopt) {
    e.define(op.getResult(), loadShifted(e, op, *vector, layout, element, fallback));
    return success();
  }
  if (auto vector = layout.rank() ? vectorOfTurnedBox(e.facts(), op, layout, memoryBytes(element)) : std::nullopt) {
    e.define(op.getResult(), loadTurned(e, op, *vector, layout, element, fallback));
    return success();
  }
  auto make = [&] { return boxAccess(e, op, layout, memoryBytes(element)); };
  e.define(op.getResult(), emitLoadTile(e, make, layout, element, {fallback}, op.getCache()));
  return success();
}

LogicalResult emitStore(Emitter& e, StoreOp op) {
  emitStoreBox(e, op, [&](llvm::Value* ptr, llvm::ArrayRef<llvm::Value*> run, llvm::Value* predicate) {
    storeVector(e, ptr, run, predicate, op.getCache());
  });
  return success();
}

LogicalResult emitAccumulate(Emitter& e, AccumulateOp op) {
  emitStoreBox(e, op, [&](llvm::Value* ptr, llvm::ArrayRef<llvm::Value*> run, llvm::Value* predicate) {
    addVector(e, ptr, run, predicate);
  });
  return success();
}

void emitAddedTile(Emitter& e, AtomicRmwOp op) {
  const layout::Layout& layout = e.layoutOf(op.getValue());
  const int bytes = memoryBytes(e.elementType(op.getValue()));
  const int most = widestAdd(getElementTypeOrSelf(op.getValue().getType()), e.target);
  auto make = [&] {
    auto access = offsetAccess(e, layout, op.getPtr(), op.getOffsets(), op.getMask(), bytes);
    access->width.aligned = std::min(access->width.aligned, most);
    access->width.masked = std::min(access->width.masked, most);
    return access;
  };
  emitStoreTile(e, make, layout, Regs(e.regs(op.getValue())),
                [&](llvm::Value* ptr, llvm::ArrayRef<llvm::Value*> run, llvm::Value* predicate) {
                  addVector(e, ptr, run, predicate, op.getScope());
                });
}

/// Several gathers of one memory that follow each other: an element of each in turn, where none is read in vectors.
/// They often want the same lines, which the first-level cache has for a while. (One whose places another one has just
/// read, as lists are followed, comes behind it.)
static bool emitGathersTogether(Emitter& e, GatherOp first) {
  SmallVector<GatherOp> all{first};
  while (auto next = dyn_cast_or_null<GatherOp>(all.back()->getNextNode())) {
    if (!readTogether(first, next) || e.definedAhead.contains(next)) break;
    const bool follows = llvm::any_of(next->getOperands(), [&](Value operand) {
      return llvm::is_contained(all, operand.getDefiningOp<GatherOp>());
    });
    if (follows) break;
    all.push_back(next);
  }
  const layout::Layout& layout = e.layoutOf(first.getResult());
  if (all.size() < 2 || layout.rank() == 0 || isVolatile(first)) return false;
  llvm::Type* element = e.elementType(first.getResult());
  Regs fallback{llvm::Constant::getNullValue(element)};
  if (first.getOther()) fallback = Regs(e.regs(first.getOther()));
  SmallVector<std::unique_ptr<Access>> accesses;
  for (GatherOp op : all) {
    accesses.push_back(offsetAccess(e, layout, op.getPtr(), op.getOffsets(), op.getMask(), memoryBytes(element)));
    const auto alike = llvm::enumerate(accesses.back()->firstAlike);
    const bool isOwn = llvm::all_of(alike, [](const auto& reg) { return reg.value() == reg.index(); });
    if (accesses.back()->width.aligned > 1 || !isOwn || !accesses.back()->firstPlace.empty()) return false;
  }
  SmallVector<Regs> results(all.size(), Regs(layout.numRegs(), llvm::PoisonValue::get(element)));
  for (const auto& run : accesses[0]->runs(1, /*unique=*/false))
    for (auto [access, result] : llvm::zip(accesses, results)) {
      const int reg = run[0];
      result[reg] = loadVector(e, access->address(reg), element, 1, access->predicate(reg),
                               {fallback[fallback.size() == 1 ? 0 : reg]}, first.getCache())[0];
    }
  for (auto [op, result] : llvm::zip(all, results)) {
    e.define(op.getResult(), std::move(result));
    if (op != first) e.definedAhead.insert(op);
  }
  return true;
}

LogicalResult emitGather(Emitter& e, GatherOp op) {
  if (isa<RankedTensorType>(op.getPtr().getType()))
    return op.emitOpError("through a tile of pointers must be raised first");
  if (e.definedAhead.contains(op) || emitWindow(e, op) || emitSiblingGathers(e, op) || emitGathersTogether(e, op))
    return success();
  const layout::Layout& layout = e.layoutOf(op.getResult());
  llvm::Type* element = e.elementType(op.getResult());
  Regs fallback{llvm::Constant::getNullValue(element)};
  if (op.getOther()) fallback = Regs(e.regs(op.getOther()));
  auto make = [&] {
    return offsetAccess(e, layout, op.getPtr(), op.getOffsets(), op.getMask(), memoryBytes(element));
  };
  e.define(op.getResult(), emitLoadTile(e, make, layout, element, fallback, op.getCache()));
  return success();
}

static bool isForNextIteration(Operation* op) {
  return isa<LoadOp, GatherOp>(op) && isa<scf::ForOp>(op->getParentOp()) && !op->use_empty() &&
         llvm::all_of(op->getUsers(), [](Operation* user) { return isa<scf::YieldOp>(user); });
}

/// About how many instructions of a thread elementwise work is that stands behind the load, in front of a place where
/// threads meet.
static int64_t workBehind(Emitter& e, Operation* load) {
  int64_t work = 0;
  for (Operation* next = load->getNextNode(); next; next = next->getNextNode()) {
    const auto walked = next->walk([&](Operation* op) {
      const auto scratch = scratchOf(op);
      if (isa<BarrierOp>(op) || (scratch && !scratch->warpLocal())) return WalkResult::interrupt();
      if (!isElementwise(op)) return WalkResult::advance();
      const Value result = op->getResult(0);
      const int64_t words = getElementTypeOrSelf(result).isIntOrFloat()
                                ? llvm::divideCeil(getElementTypeOrSelf(result).getIntOrFloatBitWidth(), 32)
                                : 1;
      work += words * (isa<RankedTensorType>(result.getType()) ? e.layoutOf(result).numRegs() : 1);
      return WalkResult::advance();
    });
    if (walked.wasInterrupted()) break;
  }
  return work;
}

// The assembler moves what only the next iteration needs behind what this one computes, where registers are free again,
// and the next one would wait for it. It moves no load across a place where lanes meet: that is one instruction. Short
// loops it unrolls, but for those in which lanes meet.
void keepEarly(Emitter& e, Operation* load) {
  constexpr int64_t kLong = 180;
  if (e.role == Emitter::Role::producer || e.role == Emitter::Role::turner || !isForNextIteration(load)) return;
  for (Operation* op = load->getNextNode(); op; op = op->getNextNode())
    if (isForNextIteration(op)) return;
  if (workBehind(e, load) >= kLong) e.syncWarp();
}

LogicalResult emitScatter(Emitter& e, ScatterOp op) {
  if (isa<RankedTensorType>(op.getPtr().getType()))
    return op.emitOpError("through a tile of pointers must be raised first");
  if (e.definedAhead.contains(op) || emitSiblingScatters(e, op)) return success();
  const layout::Layout& layout = e.layoutOf(op.getValue());
  int bytes = memoryBytes(e.elementType(op.getValue()));
  auto make = [&] {
    return offsetAccess(e, layout, op.getPtr(), op.getOffsets(), op.getMask(), bytes);
  };
  Regs values(e.regs(op.getValue()));
  emitStoreTile(e, make, layout, values,
                [&](llvm::Value* ptr, llvm::ArrayRef<llvm::Value*> run, llvm::Value* predicate) {
                  storeVector(e, ptr, run, predicate, op.getCache());
                });
  return success();
}

}  // namespace tile::ir
