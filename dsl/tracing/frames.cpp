// frames.cpp - constructs of a trace (branches, loops, combiners) while they are open.
#include <algorithm>
#include <utility>

#include "dsl/tracing/tracer.h"

namespace tile::detail {

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

}  // namespace tile::detail
