// tracer.cpp - slots, frames and the discovery of what loops carry and branches merge (see detail/tracer.h).
#include "dsl/detail/tracer.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

namespace tile::detail {
namespace {

thread_local Tracer* current_tracer = nullptr;
std::atomic<uint32_t> next_trace{1};

const char* describe(Poison p) {
  switch (p) {
    case Poison::escapes_loop: return "tile value escapes the loop it was computed in";
    case Poison::escapes_branch: return "tile value escapes the branch it was computed in";
    case Poison::one_sided: return "tile variable has a value on only one side of this if";
    case Poison::may_not_run: return "tile variable gets its first value inside a loop that may run zero times";
    case Poison::none: break;
  }
  return "";
}

uint32_t* find(std::vector<std::pair<uint32_t, uint32_t>>& list, uint32_t slot) {
  for (auto& [s, v] : list)
    if (s == slot) return &v;
  return nullptr;
}

}  // namespace

Tracer* Tracer::current() { return current_tracer; }

Tracer::Tracer(mlir::func::FuncOp function, SrcLoc kernel)
    : function_(function), builder_(function.getContext()), serial_(next_trace++), enclosing_(current_tracer) {
  values_.reserve(256);
  slots_.reserve(256);
  values_.emplace_back();  // id 0: the bad value
  push(FrameKind::function, &function.getBody().front(), kernel);
  current_tracer = this;
}

Tracer::~Tracer() {
  current_tracer = enclosing_;
  // Blocks of broken constructs, and (after an exception of the user's) of open ones. They may use each other's values in any
  // order, so all references go first.
  const bool broken = !discarded_.empty() || frames_.size() > 1;
  while (frames_.size() > 1) drop(pop());
  for (mlir::Block* block : discarded_) block->dropAllReferences();
  if (broken) function_.getBody().dropAllReferences();
  for (mlir::Block* block : discarded_) {
    block->dropAllDefinedValueUses();
    delete block;
  }
}

// ---- diagnostics

static Diagnostic diagnostic(Severity severity, std::string text, SrcLoc loc) {
  Diagnostic d;
  d.severity = severity;
  d.message = std::move(text);
  d.file = loc.file_name();
  d.line = loc.line();
  d.column = loc.column();
  return d;
}

void Tracer::error(std::string message, SrcLoc loc, std::vector<Note> notes) {
  Diagnostic d = diagnostic(Severity::error, std::move(message), loc);
  for (Note& n : notes) d.notes.push_back(diagnostic(Severity::note, std::move(n.text), n.loc));
  diagnostics.push_back(std::move(d));
}

// ---- values

mlir::OpBuilder& Tracer::at_end() {
  builder_.setInsertionPointToEnd(frames_.back().block);
  return builder_;
}

mlir::Location Tracer::location(SrcLoc loc) {
  if (loc.line() == 0) return builder_.getUnknownLoc();
  if (loc.file_name() != last_file_) {
    last_file_ = loc.file_name();
    last_file_attr_ = builder_.getStringAttr(last_file_);
  }
  return mlir::FileLineColLoc::get(last_file_attr_, loc.line(), loc.column());
}

Value Tracer::add(mlir::Value v, DType dtype, SrcLoc loc, ValueKind kind) {
  ValueInfo info;
  info.value = v;
  info.dtype = dtype;
  info.kind = kind;
  info.loc = loc;
  info.depth = depth();
  info.frame = frames_.back().serial;
  values_.push_back(info);
  return {static_cast<uint32_t>(values_.size() - 1)};
}

uint32_t Tracer::resolve(uint32_t id) const {
  while (id != kNoValue && values_[id].forward) id = values_[id].forward;
  return id;
}

bool Tracer::reachable(Value v, SrcLoc use) {
  const ValueInfo& i = info(v);
  if (!i.value || (i.depth < frames_.size() && frames_[i.depth].serial == i.frame)) return true;
  error("tile value escapes the loop or branch it was computed in", use, {{"computed here", i.loc}});
  return false;
}

TileType Tracer::type_of(Value v) const {
  const ValueInfo& i = info(v);
  TileType t;
  t.dtype = i.dtype;
  t.pointer = i.kind == ValueKind::pointer;
  if (i.value)
    if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(i.value.getType()))
      for (int64_t d : tensor.getShape()) t.shape.push_back(d);
  return t;
}

// ---- variables

Slot Tracer::new_slot(uint32_t value, SrcLoc declared) {
  SlotInfo s;
  s.current = value;
  s.depth = depth();
  s.declared = declared;
  slots_.push_back(s);
  const auto index = static_cast<uint32_t>(slots_.size() - 1);
  frames_.back().declared.push_back(index);
  return {index, serial_};
}

bool Tracer::valid(Slot s, SrcLoc use) {
  if (s.trace == serial_ && s.index < slots_.size()) return true;
  error("tile variable belongs to another trace: tiles cannot be kept in globals or passed between kernels", use);
  return false;
}

Slot Tracer::copy_slot(Slot from, SrcLoc declared) {
  if (!valid(from, declared)) return new_slot(0, declared);
  const SlotInfo& s = slots_[from.index];
  if (s.current == kNoValue && s.poison == Poison::none) return new_slot(kNoValue, declared);  // copying "no value yet" is fine
  const Value v = read_slot(from, declared);
  return new_slot(v.id, declared);
}

SrcLoc Tracer::origin(Slot s) const {
  if (s.trace != serial_ || s.index >= slots_.size()) return {};
  const SlotInfo& slot = slots_[s.index];
  return slot.current == kNoValue || resolve(slot.current) == 0 ? slot.declared : values_[resolve(slot.current)].loc;
}

void Tracer::kill_slot(Slot s) noexcept {
  if (s.trace == serial_ && s.index < slots_.size()) slots_[s.index].alive = false;
}

Carry& Tracer::touch(Frame& frame, uint32_t slot) {
  auto [it, is_new] = frame.carry_of.try_emplace(slot, static_cast<uint32_t>(frame.carries.size()));
  if (is_new) {
    Carry c{slot, slots_[slot].current, 0, false};
    if (resolve(c.init) != 0) {
      ValueInfo stand_in = values_[resolve(c.init)];
      mlir::Block* block = frame.before ? frame.before : frame.block;
      stand_in.value = block->addArgument(stand_in.value.getType(), location(slots_[slot].declared));
      stand_in.depth = static_cast<uint32_t>(&frame - frames_.data());
      stand_in.frame = frame.serial;
      values_.push_back(stand_in);
      c.arg = static_cast<uint32_t>(values_.size() - 1);
    }
    slots_[slot].current = c.arg;
    frame.carries.push_back(c);
  }
  return frame.carries[it->second];
}

uint32_t Tracer::read(uint32_t slot) {
  for (uint32_t d = slots_[slot].depth + 1; d <= depth(); ++d)
    if (frames_[d].is_loop()) touch(frames_[d], slot);
  return slots_[slot].current;
}

Value Tracer::read_slot(Slot s, SrcLoc use) {
  if (!valid(s, use)) return {0};
  SlotInfo& slot = slots_[s.index];
  if (use.line() == 0) use = slot.declared;  // a plain assignment has no place of its own
  if (slot.poison != Poison::none) {
    error(describe(slot.poison), use, {{"tile variable declared here", slot.declared}, {"by this construct", slot.poisoned_by}});
    return {0};
  }
  if (slot.current == kNoValue) {
    error("tile variable is read before it has a value", use, {{"declared here", slot.declared}});
    return {0};
  }
  if (combiners_)
    for (uint32_t d = slot.depth + 1; d <= depth(); ++d)
      if (frames_[d].kind == FrameKind::combiner) {
        error("a combiner may use only its arguments and constants, not a tile from outside", use, {{"declared here", slot.declared}});
        return {0};
      }
  return {read(s.index)};
}

/// The value a slot has in the frame at `depth`: a read in a deeper loop has replaced the current value by that loop's
/// stand-in, whose init is what the outer frames still see.
uint32_t Tracer::seen_from(uint32_t slot, uint32_t depth) const {
  for (uint32_t d = depth + 1; d < frames_.size(); ++d)
    if (auto it = frames_[d].carry_of.find(slot); it != frames_[d].carry_of.end()) return frames_[d].carries[it->second].init;
  return slots_[slot].current;
}

void Tracer::write(uint32_t slot, uint32_t value, SrcLoc loc) {
  for (uint32_t d = slots_[slot].depth + 1; d <= depth(); ++d) {
    Frame& f = frames_[d];
    if (f.is_loop()) {
      if (slots_[slot].current != kNoValue) touch(f, slot).written = true;
      else if (std::find(f.first_values.begin(), f.first_values.end(), slot) == f.first_values.end()) f.first_values.push_back(slot);
    } else if (f.is_branch()) {
      if (!find(f.saved, slot)) f.saved.emplace_back(slot, seen_from(slot, d));
    }
  }
  slots_[slot].current = value;
  slots_[slot].poison = Poison::none;
}

void Tracer::write_slot(Slot s, Value v, SrcLoc loc) {
  if (!valid(s, loc)) return;
  for (uint32_t d = slots_[s.index].depth + 1; d <= depth(); ++d) {
    if (frames_[d].kind == FrameKind::combiner) return error("a combiner may not assign a tile declared outside of it", loc, {{"declared here", slots_[s.index].declared}});
    if (frames_[d].in_condition)
      return error("the condition of while_ must not assign tile variables; assign in the body", loc, {{"declared here", slots_[s.index].declared}});
  }
  write(s.index, v.id, loc);
}

// ---- constructs

Frame& Tracer::push(FrameKind kind, mlir::Block* block, SrcLoc loc) {
  Frame f;
  f.kind = kind;
  f.serial = f.handle = next_frame_++;
  f.block = block;
  f.loc = loc;
  if (kind == FrameKind::combiner) ++combiners_;
  frames_.push_back(std::move(f));
  return frames_.back();
}

Frame Tracer::pop() {
  Frame f = std::move(frames_.back());
  frames_.pop_back();
  if (f.kind == FrameKind::combiner) --combiners_;
  return f;
}

void Tracer::discard(mlir::Block* block) {
  if (block && !block->getParent()) discarded_.push_back(block);
}

void Tracer::drop(Frame f) {
  if (f.then_side) discard(f.then_side->block);
  discard(f.before);
  discard(f.block);
}

Frame& Tracer::body_frame() {
  size_t d = frames_.size() - 1;
  while (frames_[d].kind == FrameKind::rest) --d;
  return frames_[d];
}

bool Tracer::settle(uint32_t handle) {
  const bool open = std::any_of(frames_.begin() + 1, frames_.end(), [&](const Frame& f) { return f.handle == handle; });
  if (!open) return false;
  close_rests();
  while (frames_.back().handle != handle) {
    Frame f = pop();
    retire(f, Poison::escapes_branch);
    drop(std::move(f));
    close_rests();
  }
  return true;
}

/// Objects born in a closed construct that are still alive cannot be used any more.
void Tracer::retire(const Frame& frame, Poison poison) {
  for (uint32_t s : frame.declared)
    if (slots_[s].alive) {
      slots_[s].poison = poison;
      slots_[s].poisoned_by = frame.loc;
      slots_[s].current = kNoValue;
    }
}

void Tracer::open_rest(uint32_t negated_condition, SrcLoc loc) {
  push(FrameKind::rest, new mlir::Block, loc).condition = negated_condition;
}

void Tracer::close_rests() {
  while (frames_.back().kind == FrameKind::rest) {
    const SrcLoc loc = frames_.back().loc;
    const uint32_t condition = frames_.back().condition;
    BranchSide side = pop_branch();
    finish_if(condition, std::move(side), {}, loc);
  }
}

BranchSide Tracer::pop_branch() {
  Frame f = pop();
  BranchSide side;
  side.block = f.block;
  side.loc = f.loc;
  side.before = std::move(f.saved);
  for (auto& [slot, before] : side.before) {
    SlotInfo& s = slots_[slot];
    side.after.emplace_back(slot, s.poison == Poison::none ? s.current : kNoValue);
    s.current = before;
    s.poison = Poison::none;
  }
  retire(f, Poison::escapes_branch);
  return side;
}

void Tracer::finish_if(uint32_t condition, BranchSide then_side, BranchSide else_side, SrcLoc loc) {
  std::vector<uint32_t> slots;
  for (auto& [s, v] : then_side.before) slots.push_back(s);
  for (auto& [s, v] : else_side.before) slots.push_back(s);
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());

  struct Merge {
    uint32_t slot, base, then_value, else_value;
  };
  std::vector<Merge> merges;
  for (uint32_t s : slots) {
    if (!slots_[s].alive) continue;
    const uint32_t* in_then = find(then_side.before, s);
    const uint32_t base = in_then ? *in_then : *find(else_side.before, s);
    auto end_of = [&](BranchSide& side) {
      const uint32_t* v = find(side.after, s);
      const uint32_t id = v ? *v : base;
      return id == kNoValue ? id : resolve(id);
    };
    const uint32_t t = end_of(then_side), e = end_of(else_side);
    if (t == kNoValue || e == kNoValue) {
      slots_[s].current = kNoValue;
      slots_[s].poison = Poison::one_sided;
      slots_[s].poisoned_by = loc;
      continue;
    }
    if (t == e) {  // both sides give it the same value: still an assignment if that is a new one
      if (base == kNoValue || t != resolve(base)) write(s, t, loc);
      continue;
    }
    if (t == 0 || e == 0 || resolve(condition) == 0) {
      write(s, 0, loc);
      continue;
    }
    if (values_[t].value.getType() != values_[e].value.getType() || values_[t].dtype != values_[e].dtype) {
      error("the two sides of this if give a tile variable different types: " + type_of({t}).to_string() + " and " + type_of({e}).to_string(),
            loc, {{"declared here", slots_[s].declared}, {"first value comes from here", values_[t].loc}, {"second value comes from here", values_[e].loc}});
      write(s, 0, loc);
      continue;
    }
    merges.push_back({s, base, t, e});
  }
  if (resolve(condition) == 0) {
    discard(then_side.block);
    discard(else_side.block);
    return;
  }

  llvm::SmallVector<mlir::Type, 8> types;
  llvm::SmallVector<mlir::Value, 8> then_yields, else_yields;
  for (const Merge& m : merges) {
    types.push_back(values_[m.then_value].value.getType());
    then_yields.push_back(values_[m.then_value].value);
    else_yields.push_back(values_[m.else_value].value);
  }
  const bool has_else = !merges.empty() || (else_side.block && !else_side.block->empty());
  const mlir::Location where = location(loc);
  if (!then_side.block) then_side.block = new mlir::Block;
  if (has_else && !else_side.block) else_side.block = new mlir::Block;
  if (!has_else) delete else_side.block;  // empty
  mlir::OpBuilder& b = at_end();
  mlir::OperationState state(where, mlir::scf::IfOp::getOperationName());
  state.addOperands(values_[resolve(condition)].value);
  state.addTypes(types);
  mlir::Region* then_region = state.addRegion();
  mlir::Region* else_region = state.addRegion();
  then_region->push_back(then_side.block);
  if (has_else) else_region->push_back(else_side.block);
  mlir::Operation* op = b.create(state);
  b.setInsertionPointToEnd(then_side.block);
  mlir::scf::YieldOp::create(b, where, then_yields);
  if (has_else) {
    b.setInsertionPointToEnd(else_side.block);
    mlir::scf::YieldOp::create(b, where, else_yields);
  }
  for (auto [m, result] : llvm::zip(merges, op->getResults())) {
    const ValueInfo like = values_[m.then_value];
    const Value merged = add(result, like.dtype, loc, like.kind);
    slots_[m.slot].current = m.base;  // the merge is itself a write, for every frame between the variable's home and here
    write(m.slot, merged.id, loc);
  }
}

uint32_t Tracer::new_alive_slot(Frame& loop, SrcLoc loc) {
  // The flag lives in the frame around the loop: "no break so far", true at the start.
  const auto outer = static_cast<uint32_t>(&loop - frames_.data()) - 1;
  builder_.setInsertionPointToEnd(frames_[outer].block);
  mlir::Value yes = mlir::arith::ConstantOp::create(builder_, location(loc), builder_.getBoolAttr(true));
  const Value v = add(yes, DType::i1, loc);
  values_[v.id].depth = outer;
  values_[v.id].frame = frames_[outer].serial;
  SlotInfo s;
  s.current = v.id;
  s.depth = outer;
  s.declared = loc;
  slots_.push_back(s);
  loop.alive_slot = static_cast<uint32_t>(slots_.size() - 1);
  return loop.alive_slot;
}

void Tracer::close_loop() {
  close_rests();
  Frame f = pop();

  auto replace_stand_in = [&](const Carry& c) {
    if (c.arg == 0) return;
    values_[c.arg].value.replaceAllUsesWith(values_[resolve(c.init)].value);
    values_[c.arg].forward = c.init;
  };
  // Stand-ins nobody wrote are the value from outside. Before any yield is looked at: it may be such a stand-in.
  for (const Carry& c : f.carries)
    if (!c.written) replace_stand_in(c);

  std::vector<Carry> real;
  llvm::SmallVector<uint32_t, 8> yielded;
  std::vector<uint32_t> spoiled;
  int alive_index = -1;
  for (const Carry& c : f.carries) {
    if (!c.written) continue;
    const SlotInfo& s = slots_[c.slot];
    auto reject = [&] {
      replace_stand_in(c);
      spoiled.push_back(c.slot);
    };
    if (!s.alive) {
      error("tile variable declared outside this loop is destroyed inside it", f.loc, {{"declared here", s.declared}});
      reject();
      continue;
    }
    if (s.current == kNoValue) {
      error("loop-carried tile variable may have no value at the end of the iteration", f.loc, {{"declared here", s.declared}, {describe(s.poison), s.poisoned_by}});
      reject();
      continue;
    }
    const uint32_t init = resolve(c.init), end = resolve(s.current);
    if (init == 0 || end == 0) {
      reject();
      continue;
    }
    if (values_[init].value.getType() != values_[end].value.getType() || values_[init].dtype != values_[end].dtype) {
      const std::string from = type_of({init}).to_string(), to = type_of({end}).to_string();
      error("loop-carried tile variable changes type from " + from + " to " + to + " inside the loop", values_[end].loc,
            {{"variable declared here with type " + from, s.declared},
             {"in this loop", f.loc},
             {"hint: convert explicitly, e.g. x = cast(value, " + std::string(name(values_[init].dtype)) + ")", values_[end].loc}});
      reject();
      continue;
    }
    if (c.slot == f.alive_slot) alive_index = static_cast<int>(real.size());
    real.push_back(c);
    yielded.push_back(s.current);
  }

  // Arguments of replaced stand-ins go; the order of the others is that of `real`.
  mlir::Block* args = f.before ? f.before : f.block;
  args->eraseArguments([&](mlir::BlockArgument a) {
    if (f.kind == FrameKind::for_loop && a.getArgNumber() == 0) return false;
    return std::none_of(real.begin(), real.end(), [&](const Carry& c) { return values_[c.arg].value == a; });
  });

  llvm::SmallVector<mlir::Value, 8> inits, yields, results;
  for (auto [c, y] : llvm::zip(real, yielded)) {
    inits.push_back(values_[resolve(c.init)].value);
    yields.push_back(values_[resolve(y)].value);
  }
  if (f.broken) {
    discard(f.before);
    discard(f.block);
    for (const Carry& c : real) spoiled.push_back(c.slot);
    real.clear();
  } else if (f.kind == FrameKind::for_loop) {
    close_for(f, inits, yields, alive_index, results);
  } else {
    close_while(f, inits, yields, alive_index, results);
  }

  for (uint32_t s : f.first_values)
    if (slots_[s].alive) {
      slots_[s].current = kNoValue;
      slots_[s].poison = Poison::may_not_run;
      slots_[s].poisoned_by = f.loc;
    }
  retire(f, Poison::escapes_loop);
  for (uint32_t s : spoiled) {
    slots_[s].poison = Poison::none;
    slots_[s].current = 0;
    if (slots_[s].alive) write(s, 0, f.loc);
  }
  for (auto [c, result] : llvm::zip(real, results)) {
    const ValueInfo like = values_[resolve(c.init)];
    const Value v = add(result, like.dtype, f.loc, like.kind);
    slots_[c.slot].current = c.init;
    write(c.slot, v.id, f.loc);
  }
}

void Tracer::close_for(Frame& f, mlir::ValueRange inits, mlir::ValueRange yields, int alive_index, llvm::SmallVectorImpl<mlir::Value>& results) {
  mlir::OpBuilder& b = at_end();
  const mlir::Location where = location(f.loc);
  const mlir::Value low = values_[resolve(f.low)].value, high = values_[resolve(f.high)].value, step = values_[resolve(f.step)].value;
  if (alive_index < 0) {
    auto loop = mlir::scf::ForOp::create(b, where, low, high, step, inits);
    // Our block takes the place of the one the builder made: same arguments, counter first.
    loop.getRegion().front().erase();
    loop.getRegion().push_back(f.block);
    if (f.hints.stages > 0) loop->setAttr("tile.stages", b.getI32IntegerAttr(f.hints.stages));
    if (f.hints.unroll > 0) loop->setAttr("tile.unroll", b.getI32IntegerAttr(f.hints.unroll));
    b.setInsertionPointToEnd(f.block);
    mlir::scf::YieldOp::create(b, where, yields);
    results.append(loop.getResults().begin(), loop.getResults().end());
    return;
  }
  // With break_if the loop runs while the counter is below the end and no break happened: scf.while over (counter, values).
  llvm::SmallVector<mlir::Value, 8> all_inits{low};
  all_inits.append(inits.begin(), inits.end());
  llvm::SmallVector<mlir::Type, 8> types;
  for (mlir::Value v : all_inits) types.push_back(v.getType());
  auto loop = mlir::scf::WhileOp::create(b, where, types, all_inits);
  mlir::Block* before = b.createBlock(&loop.getBefore(), {}, types, llvm::SmallVector<mlir::Location, 8>(types.size(), where));
  mlir::Value below = mlir::arith::CmpIOp::create(b, where, mlir::arith::CmpIPredicate::slt, before->getArgument(0), high);
  mlir::Value go = mlir::arith::AndIOp::create(b, where, below, before->getArgument(1 + alive_index));
  mlir::scf::ConditionOp::create(b, where, go, before->getArguments());
  loop.getAfter().push_back(f.block);
  b.setInsertionPointToEnd(f.block);
  llvm::SmallVector<mlir::Value, 8> all_yields{mlir::arith::AddIOp::create(b, where, f.block->getArgument(0), step)};
  all_yields.append(yields.begin(), yields.end());
  mlir::scf::YieldOp::create(b, where, all_yields);
  results.append(loop.getResults().begin() + 1, loop.getResults().end());
}

void Tracer::close_while(Frame& f, mlir::ValueRange inits, mlir::ValueRange yields, int alive_index, llvm::SmallVectorImpl<mlir::Value>& results) {
  mlir::OpBuilder& b = at_end();
  const mlir::Location where = location(f.loc);
  llvm::SmallVector<mlir::Type, 8> types;
  for (mlir::Value v : inits) types.push_back(v.getType());
  auto loop = mlir::scf::WhileOp::create(b, where, types, inits);
  loop.getBefore().push_back(f.before);
  loop.getAfter().push_back(f.block);
  b.setInsertionPointToEnd(f.block);
  mlir::scf::YieldOp::create(b, where, yields);
  // So far the body refers to the condition block's arguments; it has its own.
  for (mlir::BlockArgument arg : f.before->getArguments()) {
    mlir::BlockArgument own = f.block->addArgument(arg.getType(), arg.getLoc());
    arg.replaceUsesWithIf(own, [&](mlir::OpOperand& use) { return f.block->findAncestorOpInBlock(*use.getOwner()) != nullptr; });
  }
  mlir::Value condition = values_[resolve(f.condition)].value;
  if (alive_index >= 0) {
    // After a break the condition is not evaluated: it may load what does not exist any more.
    mlir::Block* evaluate = new mlir::Block;
    evaluate->getOperations().splice(evaluate->end(), f.before->getOperations());
    b.setInsertionPointToEnd(f.before);
    auto guard = mlir::scf::IfOp::create(b, where, mlir::TypeRange{b.getI1Type()}, f.before->getArgument(alive_index), false);
    guard.getThenRegion().getBlocks().clear();
    guard.getThenRegion().push_back(evaluate);
    b.setInsertionPointToEnd(evaluate);
    mlir::scf::YieldOp::create(b, where, condition);
    b.createBlock(&guard.getElseRegion());
    mlir::Value no = mlir::arith::ConstantOp::create(b, where, b.getBoolAttr(false));
    mlir::scf::YieldOp::create(b, where, no);
    condition = guard.getResult(0);
  }
  b.setInsertionPointToEnd(f.before);
  mlir::scf::ConditionOp::create(b, where, condition, f.before->getArguments());
  results.append(loop.getResults().begin(), loop.getResults().end());
}

void Tracer::finish() {
  close_rests();
  while (frames_.size() > 1) drop(pop());  // only after errors: constructs left in ways their guards could not see
  mlir::func::ReturnOp::create(at_end(), location(frames_[0].loc));
}

// ---- the boundary (detail/emit.h)

/// Tile operations outside of a kernel are a mistake without a trace to report it to: say so once per place, go on.
static void report_outside(SrcLoc loc) {
  std::fputs(diagnostic(Severity::error, "tile operation outside of a kernel being traced", loc).to_string().c_str(), stderr);
}

Slot new_slot(Value initial, SrcLoc declared) {
  if (Tracer* t = Tracer::current()) return t->new_slot(initial.id, declared);
  report_outside(declared);
  return {};
}
Slot new_empty_slot(SrcLoc declared) {
  if (Tracer* t = Tracer::current()) return t->new_slot(kNoValue, declared);
  report_outside(declared);
  return {};
}
Slot copy_slot(Slot from, SrcLoc declared) {
  if (Tracer* t = Tracer::current()) return t->copy_slot(from, declared);
  report_outside(declared);
  return {};
}
void kill_slot(Slot s) noexcept {
  if (Tracer* t = Tracer::current()) t->kill_slot(s);
}
Value read_slot(Slot s, SrcLoc use) {
  if (Tracer* t = Tracer::current()) return t->read_slot(s, use);
  report_outside(use);
  return {0};
}
void write_slot(Slot s, Value v, SrcLoc loc) {
  if (Tracer* t = Tracer::current()) t->write_slot(s, v, loc);
  else report_outside(loc);
}
void assign_slot(Slot to, Slot from) {
  Tracer* t = Tracer::current();
  if (!t) return report_outside(SrcLoc{});
  const Value v = t->read_slot(from, SrcLoc{});
  t->write_slot(to, v, t->info(v).loc);
}
TileType type_of(Value v) {
  Tracer* t = Tracer::current();
  return t ? t->type_of(v) : TileType{};
}
SrcLoc origin(Slot s) {
  Tracer* t = Tracer::current();
  return t ? t->origin(s) : SrcLoc{};
}
void report(const std::string& message, SrcLoc loc) {
  if (Tracer* t = Tracer::current()) t->error(message, loc);
  else report_outside(loc);
}

}  // namespace tile::detail

namespace tile {

std::string TileType::to_string() const {
  std::string element(name(dtype));
  if (pointer) element = "ptr<" + element + ">";
  if (shape.rank() == 0) return element;
  std::string out = "tile<";
  for (int64_t d : shape) out += std::to_string(d) + "x";
  return out + element + ">";
}

}  // namespace tile
