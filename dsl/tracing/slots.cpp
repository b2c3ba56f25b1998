// slots.cpp - variables of a trace: which value each has where, and the functions of detail/emit.h about them.
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "dsl/tracing/tracer.h"

namespace tile::detail {

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
  // The use may stand in a header of the library (a container that grows): lines of the user's beside it.
  error("tile variable belongs to another trace: tiles cannot be kept in globals or passed between kernels", use,
        {{"the last operation before it was recorded here", values_.back().loc},
         {"while the kernel that is defined here was traced", frames_[0].loc}});
  return false;
}

Slot Tracer::copy_slot(Slot from, SrcLoc declared) {
  if (!valid(from, declared)) return new_slot(0, declared);
  const SlotInfo& s = slots_[from.index];
  if (s.current == kNoValue && s.poison == Poison::none)
    return new_slot(kNoValue, declared);  // copying "no value yet" is fine
  const Value v = read_slot(from, declared);
  // Lines of the standard library's: a container that makes room copies its elements, then destroys them.
  if (std::string_view(declared.file_name()).find("/c++/") != std::string_view::npos)
    slots_[from.index].moved_in = frames_.back().serial;
  return new_slot(v.id, declared);
}

SrcLoc Tracer::origin(Slot s) const {
  if (s.trace != serial_ || s.index >= slots_.size()) return {};
  const SlotInfo& slot = slots_[s.index];
  return slot.current == kNoValue || resolve(slot.current) == 0 ? slot.declared : values_[resolve(slot.current)].loc;
}

void Tracer::kill_slot(Slot s) noexcept {
  if (s.trace != serial_ || s.index >= slots_.size()) return;
  check_destroyed(s.index);
  slots_[s.index].alive = false;
}

void Tracer::check_destroyed(uint32_t slot) {
  const SlotInfo& s = slots_[slot];
  for (uint32_t d = depth(); d > s.depth; --d) {
    if (!frames_[d].is_loop()) continue;
    if (s.moved_in != frames_.back().serial)
      error(kDestroyed, frames_[d].loc, {{"declared here", s.declared}, {kDestroyedHint, frames_[d].loc}});
    return;
  }
}

Carry& Tracer::touch(Frame& frame, uint32_t slot) {
  auto [it, is_new] = frame.carry_of.try_emplace(slot, static_cast<uint32_t>(frame.carries.size()));
  if (is_new) {
    Carry c{slot, slots_[slot].current, 0, false};
    if (resolve(c.init) != 0) {
      ValueInfo stand_in = values_[resolve(c.init)];
      mlir::Block* block = frame.before ? frame.before : frame.block;
      const bool read_only = is_read_only(stand_in.value);
      stand_in.value = block->addArgument(stand_in.value.getType(), location(slots_[slot].declared));
      read_only_.erase(stand_in.value);  // it may lie where an argument was that a closed loop did not need
      if (read_only) mark_read_only(stand_in.value);
      stand_in.below = 0;  // an iteration may give it other numbers
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
    if (frames_[d].is_loop() && !frames_[d].gave_first_value(slot)) touch(frames_[d], slot);
  return slots_[slot].current;
}

Value Tracer::read_slot(Slot s, SrcLoc use) {
  if (!valid(s, use)) return {0};
  SlotInfo& slot = slots_[s.index];
  if (use.line() == 0) use = slot.declared;  // a plain assignment has no place of its own
  if (slot.poison != Poison::none) {
    error(describe(slot.poison), use,
          {{"tile variable declared here", slot.declared}, {"by this construct", slot.poisoned_by}});
    return {0};
  }
  if (slot.current == kNoValue) {
    error("tile variable is read before it has a value", use, {{"declared here", slot.declared}});
    return {0};
  }
  if (combiners_)
    for (uint32_t d = slot.depth + 1; d <= depth(); ++d)
      if (frames_[d].kind == FrameKind::combiner) {
        error("a combiner may use only its arguments and constants, not a tile from outside", use,
              {{"declared here", slot.declared}});
        return {0};
      }
  return {read(s.index)};
}

/// The value a slot has in the frame at `depth`: a read in a deeper loop has replaced the current value by that loop's
/// stand-in, whose init is what the outer frames still see.
uint32_t Tracer::seen_from(uint32_t slot, uint32_t depth) const {
  for (uint32_t d = depth + 1; d < frames_.size(); ++d)
    if (auto it = frames_[d].carry_of.find(slot); it != frames_[d].carry_of.end())
      return frames_[d].carries[it->second].init;
  return slots_[slot].current;
}

void Tracer::write(uint32_t slot, uint32_t value, SrcLoc loc) {
  for (uint32_t d = slots_[slot].depth + 1; d <= depth(); ++d) {
    Frame& f = frames_[d];
    if (f.is_loop()) {
      // A variable without a value before the loop is not carried, however often the body gives it one.
      if (f.gave_first_value(slot)) continue;
      if (slots_[slot].current != kNoValue)
        touch(f, slot).written = true;
      else
        f.first_values.push_back(slot);
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
    if (frames_[d].kind == FrameKind::combiner)
      return error("a combiner may not assign a tile declared outside of it", loc,
                   {{"declared here", slots_[s.index].declared}});
    if (frames_[d].in_condition)
      return error("the condition of while_ must not assign tile variables; assign in the body", loc,
                   {{"declared here", slots_[s.index].declared}});
  }
  write(s.index, v.id, loc);
}

// ---- the boundary (detail/emit.h)

/// Tile operations outside of a kernel are a mistake without a trace to report it to, unless a variable of a trace in
/// another thread is used: say so once per line, go on.
static void report_outside(SrcLoc loc, uint32_t trace = 0) {
  if (Tracer::error_elsewhere(trace, loc)) return;
  static std::mutex mutex;
  static auto* told = new std::set<std::pair<std::string, uint32_t>>();  // threads may come here while the process ends
  {
    std::lock_guard lock(mutex);
    if (!told->emplace(loc.file_name(), loc.line()).second) return;
  }
  const char* message =
      "tile operation outside of a kernel being traced; tiles exist only while the body of a kernel() runs";
  std::fputs(diagnostic(Severity::error, message, loc).to_string().c_str(), stderr);
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
  report_outside(declared, from.trace);
  return {};
}
void kill_slot(Slot s) noexcept {
  if (Tracer* t = Tracer::current()) t->kill_slot(s);
}
Value read_slot(Slot s, SrcLoc use) {
  if (Tracer* t = Tracer::current()) return t->read_slot(s, use);
  report_outside(use, s.trace);
  return {0};
}
void write_slot(Slot s, Value v, SrcLoc loc) {
  if (Tracer* t = Tracer::current())
    t->write_slot(s, v, loc);
  else
    report_outside(loc, s.trace);
}
void assign_slot(Slot to, Slot from) {
  Tracer* t = Tracer::current();
  if (!t) return report_outside(SrcLoc{}, to.trace ? to.trace : from.trace);
  const Value v = t->read_slot(from, SrcLoc{});
  t->write_slot(to, v, t->is_bad(v) ? t->origin(from) : t->info(v).loc);
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
  if (Tracer* t = Tracer::current())
    t->error(message, loc);
  else
    report_outside(loc);
}

// Out of line: g++ 12 takes text put together in a user's file for overlapping memory (-Wrestrict).
void report_undefined(const char* verb, const TileType& found, bool floats, SrcLoc loc) {
  report(std::string("'") + verb + "' is not defined on " + found.to_string() +
             (floats ? "; it takes floats, convert with cast(x, f32)" : "; it takes integers"),
         loc);
}

}  // namespace tile::detail
