// tracer.cpp - a trace: its beginning and end, its values, what it reports (see tracer.h). Variables are in slots.cpp,
// constructs in frames.cpp; what happens when one closes is in close_constructs.cpp.
#include "dsl/tracing/tracer.h"

#include <algorithm>
#include <atomic>
#include <mutex>
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

Diagnostic diagnostic(Severity severity, std::string text, SrcLoc loc) {
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

bool Tracer::known(int enumerator, int count, const char* type, SrcLoc loc) {
  if (enumerator >= 0 && enumerator < count) return true;
  error(std::string("this number is no enumerator of ") + type, loc);
  return false;
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
  given_up_ = true;
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

void Tracer::finish() {
  close_rests();
  {
    std::lock_guard lock(in_progress().mutex);
    for (Diagnostic& d : *in_progress().find(serial_)) diagnostics.push_back(std::move(d));
  }
  while (frames_.size() > 1) {  // constructs left in ways their guards could not see
    report_open(frames_.back());
    drop(pop());
  }
  mlir::func::ReturnOp::create(at_end(), location(frames_[0].loc));
  function()->walk([](mlir::Operation* op) { op->removeAttr(kReadOnly); });
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
