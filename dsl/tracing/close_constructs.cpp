// close_constructs.cpp - the end of branches and loops: which variables they merge or carry, and the scf ops that say
// so. Everything here runs after the body was recorded into detached blocks; nothing is traced twice.
#include <algorithm>

#include "dsl/tracing/emit_rules.h"

namespace tile::detail {

std::vector<Tracer::Merge> Tracer::merges_of(uint32_t condition, BranchSide& then_side, BranchSide& else_side,
                                             SrcLoc loc) {
  std::vector<uint32_t> slots;
  for (auto& [s, v] : then_side.before) slots.push_back(s);
  for (auto& [s, v] : else_side.before) slots.push_back(s);
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());

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
      error("the two sides of this if give a tile variable different types: " + type_of({t}).to_string() + " and " +
                type_of({e}).to_string(),
            loc,
            {{"declared here", slots_[s].declared},
             {"first value comes from here", values_[t].loc},
             {"second value comes from here", values_[e].loc}});
      write(s, 0, loc);
      continue;
    }
    merges.push_back({s, base, t, e});
  }
  return merges;
}

void Tracer::finish_if(uint32_t condition, BranchSide then_side, BranchSide else_side, SrcLoc loc) {
  const std::vector<Merge> merges = merges_of(condition, then_side, else_side, loc);
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
    if (is_read_only(values_[m.then_value].value) || is_read_only(values_[m.else_value].value)) set_read_only(merged);
    slots_[m.slot].current =
        m.base;  // the merge is itself a write, for every frame between the variable's home and here
    write(m.slot, merged.id, loc);
  }
}

bool Tracer::can_carry(const Frame& f, const Carry& c) {
  const SlotInfo& s = slots_[c.slot];
  if (!s.alive) {
    error(kDestroyed, f.loc, {{"declared here", s.declared}, {kDestroyedHint, f.loc}});
    return false;
  }
  if (s.current == kNoValue) {
    error("loop-carried tile variable may have no value at the end of the iteration", f.loc,
          {{"declared here", s.declared}, {describe(s.poison), s.poisoned_by}});
    return false;
  }
  const uint32_t init = resolve(c.init), end = resolve(s.current);
  if (init == 0 || end == 0) return false;  // reported already
  if (values_[init].value.getType() == values_[end].value.getType() && values_[init].dtype == values_[end].dtype)
    return true;
  const TileType before = type_of({init}), after = type_of({end});
  const std::string from = before.to_string(), to = after.to_string();
  const std::string hint =
      before.shape == after.shape
          ? (widens(values_[init].dtype, values_[end].dtype)
                 ? "begin with the wider type, e.g. x = cast(value, " + std::string(name(values_[end].dtype)) +
                       ") in front of the loop"
                 : "convert explicitly, e.g. x = cast(value, " + std::string(name(values_[init].dtype)) + ")")
      : before.shape.rank() == 0 ? "start with a tile of that shape, e.g. x = zeros({...}, dtype)"
                                 : "keep the shape, with reshape, broadcast_to or squeeze, or use another variable";
  error("loop-carried tile variable changes type from " + from + " to " + to + " inside the loop", values_[end].loc,
        {{"variable declared here with type " + from, s.declared},
         {"in this loop", f.loc},
         {"hint: " + hint, values_[end].loc}});
  return false;
}

void Tracer::close_loop() {
  close_rests();
  if (top().each) keep_others();
  Frame f = pop();
  const bool assigns = std::any_of(f.carries.begin(), f.carries.end(), [](const Carry& c) { return c.written; });
  // A condition that reads memory may be all there is to a loop: it waits for others.
  auto touchesMemory = [](mlir::Operation& op) { return !mlir::isMemoryEffectFree(&op); };
  const bool waits = f.before && llvm::any_of(*f.before, touchesMemory);
  if (!waits) remark_if_empty(f.block, assigns || !f.first_values.empty(), f.before ? "while_" : "range", f.loc);

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
    if (!can_carry(f, c)) {
      replace_stand_in(c);
      spoiled.push_back(c.slot);
      continue;
    }
    if (c.slot == f.alive_slot) alive_index = static_cast<int>(real.size());
    real.push_back(c);
    yielded.push_back(slots_[c.slot].current);
  }

  // Arguments of replaced stand-ins go; the order of the others is that of `real`.
  mlir::Block* args = f.before ? f.before : f.block;
  args->eraseArguments([&](mlir::BlockArgument a) {
    if (f.kind == FrameKind::for_loop && a.getArgNumber() == 0) return false;
    return std::none_of(real.begin(), real.end(), [&](const Carry& c) { return values_[c.arg].value == a; });
  });

  llvm::SmallVector<mlir::Value, 8> inits, yields, results;
  llvm::SmallVector<bool, 8> read_only;
  for (auto [c, y] : llvm::zip(real, yielded)) {
    inits.push_back(values_[resolve(c.init)].value);
    yields.push_back(values_[resolve(y)].value);
    read_only.push_back(is_read_only(inits.back()) || is_read_only(yields.back()));
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
  for (auto [c, result, constant] : llvm::zip(real, results, read_only)) {
    const ValueInfo like = values_[resolve(c.init)];
    const Value v = add(result, like.dtype, f.loc, like.kind);
    if (constant) set_read_only(v);
    slots_[c.slot].current = c.init;
    write(c.slot, v.id, f.loc);
  }
}

void Tracer::close_for(Frame& f, mlir::ValueRange inits, mlir::ValueRange yields, int alive_index,
                       llvm::SmallVectorImpl<mlir::Value>& results) {
  mlir::OpBuilder& b = at_end();
  const mlir::Location where = location(f.loc);
  const mlir::Value low = values_[resolve(f.low)].value, high = values_[resolve(f.high)].value,
                    step = values_[resolve(f.step)].value;
  if (alive_index < 0) {
    auto loop = mlir::scf::ForOp::create(b, where, low, high, step, inits);
    // Our block takes the place of the one the builder made: same arguments, counter first.
    loop.getRegion().front().erase();
    loop.getRegion().push_back(f.block);
    if (f.hints.stages > 0) loop->setAttr("tile.stages", b.getI32IntegerAttr(f.hints.stages));
    if (f.hints.unroll > 0) loop->setAttr("tile.unroll", b.getI32IntegerAttr(f.hints.unroll));
    if (f.hints.specialize >= 0) loop->setAttr("tile.specialize", b.getI32IntegerAttr(f.hints.specialize));
    if (f.hints.overlap >= 0) loop->setAttr("tile.overlap", b.getI32IntegerAttr(f.hints.overlap));
    if (f.hints.pingpong >= 0) loop->setAttr("tile.pingpong", b.getI32IntegerAttr(f.hints.pingpong));
    b.setInsertionPointToEnd(f.block);
    mlir::scf::YieldOp::create(b, where, yields);
    results.append(loop.getResults().begin(), loop.getResults().end());
    return;
  }
  // With break_if the loop runs while the counter is below the end and no break happened: scf.while over (counter,
  // values).
  llvm::SmallVector<mlir::Value, 8> all_inits{low};
  all_inits.append(inits.begin(), inits.end());
  llvm::SmallVector<mlir::Type, 8> types;
  for (mlir::Value v : all_inits) types.push_back(v.getType());
  auto loop = mlir::scf::WhileOp::create(b, where, types, all_inits);
  mlir::Block* before =
      b.createBlock(&loop.getBefore(), {}, types, llvm::SmallVector<mlir::Location, 8>(types.size(), where));
  mlir::Value below =
      mlir::arith::CmpIOp::create(b, where, mlir::arith::CmpIPredicate::slt, before->getArgument(0), high);
  mlir::Value go = mlir::arith::AndIOp::create(b, where, below, before->getArgument(1 + alive_index));
  mlir::scf::ConditionOp::create(b, where, go, before->getArguments());
  loop.getAfter().push_back(f.block);
  b.setInsertionPointToEnd(f.block);
  llvm::SmallVector<mlir::Value, 8> all_yields{mlir::arith::AddIOp::create(b, where, f.block->getArgument(0), step)};
  all_yields.append(yields.begin(), yields.end());
  mlir::scf::YieldOp::create(b, where, all_yields);
  results.append(loop.getResults().begin() + 1, loop.getResults().end());
}

/// Whether a condition computed in `before` is the same every time: made of nothing that the loop carries or reads.
static bool never_changes(mlir::Value condition, mlir::Block* before) {
  llvm::SmallVector<mlir::Value, 8> pending{condition};
  llvm::SmallPtrSet<mlir::Operation*, 8> seen;
  while (!pending.empty()) {
    const mlir::Value v = pending.pop_back_val();
    mlir::Operation* op = v.getDefiningOp();
    if (!op) {
      if (mlir::cast<mlir::BlockArgument>(v).getOwner() == before) return false;
      continue;
    }
    if (op->getBlock() != before || !seen.insert(op).second) continue;
    if (op->getNumRegions() > 0 || !mlir::isMemoryEffectFree(op)) return false;
    pending.append(op->operand_begin(), op->operand_end());
  }
  return true;
}

// ---- loops over elements

/// Whether each element of a tile of `shape` is one of `elements`, or in its row.
static bool fits(const Shape& elements, const Shape& shape) {
  if (elements.rank() != shape.rank()) return false;
  for (int d = 0; d < shape.rank(); ++d)
    if (elements[d] != shape[d] && elements[d] != 1) return false;
  return true;
}

Frame* Tracer::each_frame() {
  for (auto f = frames_.rbegin(); f != frames_.rend(); ++f)
    if (f->each) return &*f;
  return nullptr;
}

std::optional<mlir::Value> Tracer::going(const Shape& shape, const std::string& what, SrcLoc loc) {
  Frame* f = each_frame();
  if (!f || shape.rank() == 0) return mlir::Value();
  const Shape elements = type_of({f->each}).shape;
  if (fits(elements, shape)) return stretch(*this, values_[resolve(f->each)].value, shape, loc);
  error(what + " has the shape " + text_of(shape) + " in a while_ over elements of the shape " + text_of(elements) +
            ": which of them go on is not known; give the condition a shape of as many dims (x.col(), x.row()), or do "
            "this in front of the loop",
        loc, {{"the loop is here", f->loc}});
  return std::nullopt;
}

bool Tracer::lacks_mask(const std::string& what, SrcLoc loc) {
  Frame* f = each_frame();
  if (!f) return false;
  error(what + " has no mask, and in a while_ over elements some are done: use pointers, p + offsets", loc,
        {{"the loop is here", f->loc}});
  return true;
}

/// At the end of an iteration: of the tiles that it assigns, elements that are done keep what they had. Scalars are the
/// program's.
void Tracer::keep_others() {
  const SrcLoc loop = top().loc;
  for (const Carry& c : std::vector<Carry>(top().carries)) {
    SlotInfo& s = slots_[c.slot];
    if (!c.written || !s.alive || s.current == kNoValue || resolve(s.current) == 0 || c.arg == 0) continue;
    const ValueInfo made = values_[resolve(s.current)], before = values_[c.arg];
    const Shape shape = shape_of(made.value);
    if (shape.rank() == 0 || made.value == before.value || made.value.getType() != before.value.getType()) continue;
    const auto goes = going(shape, "a tile that is assigned", made.loc);
    if (!goes) {
      s.current = 0;
      continue;
    }
    mlir::Value kept = mlir::arith::SelectOp::create(at_end(), location(loop), *goes, made.value, before.value);
    const Value v = add(kept, made.dtype, made.loc, made.kind);
    if (is_read_only(made.value) || is_read_only(before.value)) set_read_only(v);
    s.current = v.id;
  }
}

void Tracer::close_while(Frame& f, mlir::ValueRange inits, mlir::ValueRange yields, int alive_index,
                         llvm::SmallVectorImpl<mlir::Value>& results) {
  mlir::OpBuilder& b = at_end();
  const mlir::Location where = location(f.loc);
  llvm::SmallVector<mlir::Type, 8> types;
  for (mlir::Value v : inits) types.push_back(v.getType());
  mlir::Value each = f.each ? values_[resolve(f.each)].value : mlir::Value();
  if (each) types.push_back(each.getType());
  auto loop = mlir::scf::WhileOp::create(b, where, types, inits);
  loop.getBefore().push_back(f.before);
  loop.getAfter().push_back(f.block);
  b.setInsertionPointToEnd(f.block);
  mlir::scf::YieldOp::create(b, where, yields);
  // So far the body refers to the condition block's arguments, and to what the condition says; it has its own.
  auto in_body = [&](mlir::OpOperand& use) { return f.block->findAncestorOpInBlock(*use.getOwner()) != nullptr; };
  for (mlir::BlockArgument arg : f.before->getArguments()) {
    mlir::BlockArgument own = f.block->addArgument(arg.getType(), arg.getLoc());
    arg.replaceUsesWithIf(own, in_body);
  }
  if (each) each.replaceUsesWithIf(f.block->addArgument(each.getType(), where), in_body);
  mlir::Value condition = values_[resolve(f.condition)].value;
  // After another mistake what was meant to change may be missing.
  if (alive_index < 0 && diagnostics.empty() && !mlir::matchPattern(condition, mlir::m_Zero()) &&
      never_changes(condition, f.before))
    error(
        "the condition of while_ reads nothing that its body changes: the loop has no iteration or never ends; assign "
        "a tile that the condition reads, load() in it, or leave with break_if",
        f.loc);
  if (alive_index >= 0) {
    // After a break the condition is not evaluated: it may load what does not exist any more.
    mlir::Block* evaluate = new mlir::Block;
    evaluate->getOperations().splice(evaluate->end(), f.before->getOperations());
    b.setInsertionPointToEnd(f.before);
    llvm::SmallVector<mlir::Type, 2> says{b.getI1Type()};
    llvm::SmallVector<mlir::Value, 2> said{condition};
    if (each) says.push_back(each.getType()), said.push_back(each);
    auto guard = mlir::scf::IfOp::create(b, where, says, f.before->getArgument(alive_index), false);
    guard.getThenRegion().getBlocks().clear();
    guard.getThenRegion().push_back(evaluate);
    b.setInsertionPointToEnd(evaluate);
    mlir::scf::YieldOp::create(b, where, said);
    b.createBlock(&guard.getElseRegion());
    for (mlir::Value& v : said) v = mlir::arith::ConstantOp::create(b, where, b.getZeroAttr(v.getType()));
    mlir::scf::YieldOp::create(b, where, said);
    condition = guard.getResult(0);
    if (each) each = guard.getResult(1);
  }
  b.setInsertionPointToEnd(f.before);
  llvm::SmallVector<mlir::Value, 8> handed(f.before->getArguments());
  if (each) handed.push_back(each);
  mlir::scf::ConditionOp::create(b, where, condition, handed);
  results.append(loop.getResults().begin(), loop.getResults().begin() + static_cast<long>(inits.size()));
}

}  // namespace tile::detail
