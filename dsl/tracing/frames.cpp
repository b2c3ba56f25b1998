// frames.cpp - constructs of a trace (branches, loops, combiners) while they are open.
#include <algorithm>
#include <string>
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
  if (f.block != f.before) discard(f.block);  // one block while a condition is recorded
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
    report_open(frames_.back());
    Frame f = pop();
    retire(f, Poison::escapes_branch);
    drop(std::move(f));
    close_rests();
  }
  return true;
}

void Tracer::report_open(const Frame& f) {
  error("the code around this construct went on while the construct was open; it is left at its end only, or with "
        "break_if(cond), continue_if(cond) or return_if(cond)",
        f.loc);
}

void Tracer::unwind(uint32_t handle, SrcLoc loc) {
  auto isIt = [&](const Frame& f) { return f.handle == handle; };
  const auto left = std::find_if(frames_.begin() + 1, frames_.end(), isIt);
  if (left == frames_.end()) return;
  // Nobody sees this of an exception that leaves the kernel: there is no trace then. Of constructs in each other that
  // one leaves, the innermost is named.
  const bool named = unwound_at_ == values_.size();
  unwound_at_ = values_.size();
  if (!given_up_ && !named)
    error(std::string("an exception left this ") +
              (left->is_loop()       ? "loop"
               : left->is_branch() ? "branch"
                                   : "combiner") +
              " while it was traced, and there is no code for what was recorded of it: catch exceptions inside of it, "
              "or let them leave the kernel",
          loc);
  for (bool last = false; !last;) {
    last = frames_.back().handle == handle;
    Frame f = pop();
    retire(f, Poison::escapes_loop);
    auto spoil = [&](uint32_t slot) {
      slots_[slot].current = 0;
      slots_[slot].poison = Poison::none;
    };
    for (const Carry& c : f.carries) {
      if (c.written)
        spoil(c.slot);
      else
        slots_[c.slot].current = c.init;
    }
    for (uint32_t s : f.first_values) spoil(s);
    for (auto& [s, before] : f.saved) spoil(s);
    if (f.then_side)
      for (auto& [s, before] : f.then_side->before) spoil(s);
    drop(std::move(f));
  }
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
