// tracer.cpp - values, slots and frames of a trace, and the boundary functions about variables (see detail/tracer.h).
// What happens when a construct closes is in close_constructs.cpp.
#include "dsl/tracing/tracer.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace tile::detail {
namespace {

thread_local Tracer* current_tracer = nullptr;
std::atomic<uint32_t> next_trace{1};

/// Traces in progress, by number, and what other threads did wrong with their tiles.
struct InProgress {
  std::mutex mutex;
  std::vector<std::pair<uint32_t, std::vector<Diagnostic>>> traces;
  std::vector<Diagnostic>* find(uint32_t trace) {
    for (auto& [serial, found] : traces)
      if (serial == trace) return &found;
    return nullptr;
  }
};
InProgress& in_progress() {
  static InProgress* p = new InProgress;  // outlives kernels with static storage
  return *p;
}

}  // namespace

const char* describe(Poison p) {
  switch (p) {
    case Poison::escapes_loop:
      return "tile value escapes the loop it was computed in";
    case Poison::escapes_branch:
      return "tile value escapes the branch it was computed in";
    case Poison::one_sided:
      return "tile variable has a value on only one side of this if";
    case Poison::may_not_run:
      return "tile variable gets its first value inside a loop that may run zero times";
    case Poison::none:
      break;
  }
  return "";
}

uint32_t* find(std::vector<std::pair<uint32_t, uint32_t>>& list, uint32_t slot) {
  for (auto& [s, v] : list)
    if (s == slot) return &v;
  return nullptr;
}

Tracer* Tracer::current() { return current_tracer; }

Tracer::Tracer(mlir::func::FuncOp function, SrcLoc kernel)
    : function_(function),
      builder_(function.getContext()),
      stack_(reinterpret_cast<uintptr_t>(__builtin_frame_address(0))),
      serial_(next_trace++),
      enclosing_(current_tracer) {
  values_.reserve(256);
  slots_.reserve(256);
  values_.emplace_back();  // id 0: the bad value
  push(FrameKind::function, &function.getBody().front(), kernel);
  current_tracer = this;
  std::lock_guard lock(in_progress().mutex);
  in_progress().traces.emplace_back(serial_, std::vector<Diagnostic>());
}

Tracer::~Tracer() {
  current_tracer = enclosing_;
  {
    std::lock_guard lock(in_progress().mutex);
    std::erase_if(in_progress().traces, [&](const auto& t) { return t.first == serial_; });
  }
  // Blocks of broken constructs, and (after an exception of the user's) of open ones. They may use each other's values
  // in any order, so all references go first.
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

/// A C++ loop records the same mistake once an iteration.
static void add_once(std::vector<Diagnostic>& list, Diagnostic d) {
  auto isSame = [&](const Diagnostic& other) {
    return other.message == d.message && other.line == d.line && other.column == d.column && other.file == d.file;
  };
  if (std::none_of(list.begin(), list.end(), isSame)) list.push_back(std::move(d));
}

void Tracer::error(std::string message, SrcLoc loc, std::vector<Note> notes) {
  Diagnostic d = diagnostic(Severity::error, std::move(message), loc);
  for (Note& n : notes) d.notes.push_back(diagnostic(Severity::note, std::move(n.text), n.loc));
  add_once(diagnostics, std::move(d));
}

void Tracer::remark(std::string message, SrcLoc loc) {
  add_once(remarks, diagnostic(Severity::remark, std::move(message), loc));
}

void Tracer::remark_if_empty(mlir::Block* body, bool assigns, const char* what, SrcLoc loc) {
  if (assigns || (body && !body->empty())) return;
  remark(std::string("a body of this ") + what +
             " records nothing, so nothing happens in it: if it is left with a C++ return or continue, that ends its "
             "recording only; write return_if(c), continue_if(c) or break_if(c) outside of it",
         loc);
}

bool Tracer::error_elsewhere(uint32_t trace, const SrcLoc& loc) {
  std::lock_guard lock(in_progress().mutex);
  std::vector<Diagnostic>* found = in_progress().find(trace);
  if (!found) return false;
  add_once(*found, diagnostic(Severity::error,
                              "tile variable used in another thread than the one that traces its kernel: the body of a "
                              "kernel runs in one thread",
                              loc));
  return true;
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

/// No body has this many operations, and none that ends this many calls: the stack, 8 MiB as a rule, would overflow.
void Tracer::check_progress(SrcLoc loc) {
  constexpr size_t kMostValues = size_t{1} << 22;
  constexpr uintptr_t kMostStack = uintptr_t{3} << 20;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const bool deep = stack_ > here && stack_ - here > kMostStack;
  if (!deep && values_.size() < kMostValues) return;
  error(deep ? "the trace is too deep: a C++ function that calls itself must end on values known while tracing"
             : "the trace is too long: a C++ loop must end on values known while tracing; use range() or while_() for "
               "loops of the kernel",
        loc);
  throw TraceGivenUp{};
}

Value Tracer::add(mlir::Value v, DType dtype, SrcLoc loc, ValueKind kind) {
  check_progress(loc);
  if (kind != ValueKind::number && !isa<mlir::BlockArgument>(v)) {
    read_only_.erase(v);  // what lay at its address before
    if (is_read_only(v)) mark_read_only(v);
  }
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

/// On ops of pointers and views of const elements while the kernel is traced. (A set of values would remember the
/// addresses of ops that are gone, where others may lie by now.)
static constexpr llvm::StringLiteral kReadOnly = "tile.read_only";

// What is computed from a read-only pointer or view is read-only, through ops of ours in between (splats), too. Of
// constructs each result is so for itself: whoever closes them says.
bool Tracer::is_read_only(mlir::Value v) const {
  llvm::SmallVector<mlir::Value> todo{v};
  llvm::SmallPtrSet<mlir::Operation*, 8> seen;  // pointers chosen between share what they come from
  while (!todo.empty()) {
    mlir::Value at = todo.pop_back_val();
    if (!isa<ir::PtrType, ir::ViewType>(mlir::getElementTypeOrSelf(at.getType()))) continue;
    mlir::Operation* op = at.getDefiningOp();
    if (!op || op->getNumRegions() ? read_only_.contains(at) : op->hasAttr(kReadOnly)) return true;
    if (op && !op->getNumRegions() && seen.insert(op).second) llvm::append_range(todo, op->getOperands());
  }
  return false;
}

void Tracer::mark_read_only(mlir::Value v) {
  mlir::Operation* op = v.getDefiningOp();
  if (op && !op->getNumRegions())
    op->setAttr(kReadOnly, mlir::UnitAttr::get(op->getContext()));
  else
    read_only_.insert(v);
}

void Tracer::set_read_only(Value v) {
  if (!is_bad(v) && info(v).value) mark_read_only(info(v).value);
}

bool Tracer::writable(Value v, const char* verb, SrcLoc loc) {
  if (is_bad(v) || !is_read_only(info(v).value)) return true;
  error(std::string(verb) + " through a pointer to const elements: declare the kernel parameter without const", loc);
  return false;
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
      const bool read_only = is_read_only(stand_in.value);
      stand_in.value = block->addArgument(stand_in.value.getType(), location(slots_[slot].declared));
      read_only_.erase(stand_in.value);  // it may lie where an argument was that a closed loop did not need
      if (read_only) mark_read_only(stand_in.value);
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

void Tracer::finish() {
  close_rests();
  {
    std::lock_guard lock(in_progress().mutex);
    for (Diagnostic& d : *in_progress().find(serial_)) diagnostics.push_back(std::move(d));
  }
  while (frames_.size() > 1) drop(pop());  // only after errors: constructs left in ways their guards could not see
  mlir::func::ReturnOp::create(at_end(), location(frames_[0].loc));
  function()->walk([](mlir::Operation* op) { op->removeAttr(kReadOnly); });
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
