// tracer.h - one trace in progress: the C++ objects of a kernel's body become SSA values. Internal to the dsl library.
//
// Every live Tile owns a slot {current value, frame it was declared in}. Frames are the open constructs: the kernel,
// loops, branches, the rest of a body after continue_if, combiners. A body is recorded once into a detached block:
//   read   of an outer slot inside loops: in each loop between, outermost first, a block argument stands in for the
//          value from then on (a carry); which of them are real is known when the loop closes.
//   write  marks the carries as written; each branch between remembers the value from before its first write.
//   close  of a loop: stand-ins never written are replaced by the value from outside, the others become iter_args and
//          results. Close of a branch: slots written on either side are merged through the results of scf.if.
// A result is written back like any other assignment, so that enclosing frames see it.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "dsl/detail/emit.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "runtime/error.h"

namespace tile::detail {

inline constexpr uint32_t kNoValue = ~0u;  ///< a slot that has no value; id 0 is the bad value
inline constexpr uint32_t kNoSlot = ~0u;

enum class ValueKind : uint8_t { number, pointer, view };

/// What the tracer knows about a value id. Signedness lives in dtype: the IR's integers have none.
struct ValueInfo {
  mlir::Value value;
  DType dtype = DType::f32;
  ValueKind kind = ValueKind::number;
  uint32_t depth = 0, frame = 0;  ///< where it was computed: index on the frame stack and that frame's serial number
  uint32_t forward = 0;           ///< another id that has replaced this one
  int64_t below = 0;              ///< not 0: integers from 0 on that are less (places in a tile)
  SrcLoc loc;
};

enum class Poison : uint8_t { none, escapes_loop, escapes_branch, one_sided, may_not_run };

inline constexpr const char* kDestroyed = "tile variable declared outside this loop is destroyed inside it";
inline constexpr const char* kDestroyedHint =
    "hint: a body is recorded once, so containers drop elements once, not every time; assign the tiles instead, e.g. "
    "a = b, b = c, c = next";

/// The reason as an error message.
const char* describe(Poison p);
Diagnostic diagnostic(Severity severity, std::string text, SrcLoc loc);

struct SlotInfo {
  uint32_t current = kNoValue;
  uint32_t depth = 0;
  bool alive = true;
  Poison poison = Poison::none;
  SrcLoc declared, poisoned_by;
  uint32_t moved_in = 0;  ///< the frame where a container made a copy last: it grows there, and destroys this one
};

struct Carry {
  uint32_t slot, init, arg;
  bool written = false;
};

enum class FrameKind : uint8_t { function, for_loop, while_loop, branch, rest, combiner };

/// The value listed for a slot, or null.
uint32_t* find(std::vector<std::pair<uint32_t, uint32_t>>& list, uint32_t slot);

/// A finished side of a branch: what each written slot was before and is at the end.
struct BranchSide {
  mlir::Block* block = nullptr;
  std::vector<std::pair<uint32_t, uint32_t>> before, after;  ///< (slot, value id), same order
  SrcLoc loc;
};

struct Frame {
  FrameKind kind;
  uint32_t serial;  ///< of this stretch of code: an else has another one than its then
  uint32_t handle;  ///< of the construct, as its guard in control.h knows it
  mlir::Block* block;
  SrcLoc loc;
  bool broken = false;             ///< an error made the construct itself meaningless: drop it when it closes
  std::vector<uint32_t> declared;  ///< slots born here
  std::vector<Carry> carries;      ///< loops
  llvm::SmallDenseMap<uint32_t, uint32_t, 8> carry_of;
  std::vector<uint32_t> first_values;                ///< loops: slots that got their first value inside
  std::vector<std::pair<uint32_t, uint32_t>> saved;  ///< branches: slot and its value before the first write
  uint32_t condition = 0;                            ///< branches
  std::unique_ptr<BranchSide> then_side;             ///< set in an else frame
  uint32_t alive_slot = kNoSlot;                     ///< loops with break_if: true while no break happened
  uint32_t low = 0, high = 0, step = 0;              ///< for loops
  LoopHints hints;
  mlir::Block* before = nullptr;  ///< while loops: the condition's block, whose arguments are the stand-ins
  bool in_condition = false;
  uint32_t each = 0;  ///< while loops over elements: a tile that says which go on
  // combiners
  llvm::SmallVector<uint32_t, 2> sources;
  int axis = 0;
  bool is_scan = false, reverse = false;

  bool gave_first_value(uint32_t slot) const {
    return std::find(first_values.begin(), first_values.end(), slot) != first_values.end();
  }
  bool is_loop() const { return kind == FrameKind::for_loop || kind == FrameKind::while_loop; }
  bool is_branch() const { return kind == FrameKind::branch || kind == FrameKind::rest; }
};

/// Thrown out of a body that would never end: a function that calls itself, a C++ loop without an end. The trace has
/// an error by then.
struct TraceGivenUp {};

class Tracer {
 public:
  /// Records into `function`'s entry block.
  Tracer(mlir::func::FuncOp function, SrcLoc kernel);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  /// The trace in progress on this thread, or null.
  static Tracer* current();
  /// An error of the trace in progress with this number, made in a thread that does not trace it; false if there is none.
  static bool error_elsewhere(uint32_t trace, const SrcLoc& loc);

  // ---- diagnostics
  struct Note {
    std::string text;
    SrcLoc loc;
  };
  void error(std::string message, SrcLoc loc, std::vector<Note> notes = {});
  std::vector<Diagnostic> diagnostics;
  /// Whether an enumerator is one of `count`; reports others, which casts make.
  bool known(int enumerator, int count, const char* type, SrcLoc loc);
  /// What is right and hardly meant.
  void remark(std::string message, SrcLoc loc);
  std::vector<Diagnostic> remarks;
  /// Of an if_, when, range or while_ at `loc`, whose body is over: one that recorded nothing may be so by configuration,
  /// and may be left with a C++ return or continue, which cannot be told apart.
  void remark_if_empty(mlir::Block* body, bool assigns, const char* what, SrcLoc loc);

  // ---- values
  mlir::OpBuilder& at_end();  ///< positioned at the end of the innermost open block
  mlir::Location location(SrcLoc loc);
  Value add(mlir::Value v, DType dtype, SrcLoc loc, ValueKind kind = ValueKind::number);
  /// Writes through a pointer or view that came from `v` are errors: false, after one, for such a pointer.
  void set_read_only(Value v);
  bool writable(Value v, const char* verb, SrcLoc loc);
  bool is_read_only(mlir::Value v) const;
  void mark_read_only(mlir::Value v);
  uint32_t resolve(uint32_t id) const;
  const ValueInfo& info(Value v) const { return values_[resolve(v.id)]; }
  void set_below(Value v, int64_t below) { values_[resolve(v.id)].below = below; }
  bool is_bad(Value v) const { return resolve(v.id) == 0; }
  /// False, with an error, if the value was computed in a construct that is closed by now.
  bool reachable(Value v, SrcLoc use);
  TileType type_of(Value v) const;

  // ---- variables
  Slot new_slot(uint32_t value, SrcLoc declared);
  Slot copy_slot(Slot from, SrcLoc declared);
  SrcLoc origin(Slot s) const;
  void kill_slot(Slot s) noexcept;
  Value read_slot(Slot s, SrcLoc use);
  void write_slot(Slot s, Value v, SrcLoc loc);

  // ---- constructs
  Frame& push(FrameKind kind, mlir::Block* block, SrcLoc loc);
  Frame& top() { return frames_.back(); }
  /// An exception leaves the construct: it and what is open in it are dropped, what they assign has no meaning.
  void unwind(uint32_t handle, SrcLoc loc);
  /// Closes the rests of the innermost body and drops frames left open above `handle`; false if it is not open.
  bool settle(uint32_t handle);
  void close_rests();
  BranchSide pop_branch();
  void finish_if(uint32_t condition, BranchSide then_side, BranchSide else_side, SrcLoc loc);
  void close_loop();
  void open_rest(uint32_t negated_condition, SrcLoc loc);
  /// Innermost frame that is not a rest.
  Frame& body_frame();
  bool in_combiner() const { return combiners_ > 0; }
  Frame pop();
  /// Reports tiles of outside that a loop destroys, which it does once and not every time.
  void check_destroyed(uint32_t slot);
  /// Keeps a block of a broken construct until the end: its values may still be referred to.
  void discard(mlir::Block* block);
  void drop(Frame f);
  uint32_t new_alive_slot(Frame& loop, SrcLoc loc);
  void write(uint32_t slot, uint32_t value, SrcLoc loc);
  /// In a while_ over elements: which of those of a tile of `shape` go on; null elsewhere, and for scalars. Nullopt, after
  /// an error, where the tile cannot be said to be of these elements.
  std::optional<mlir::Value> going(const Shape& shape, const std::string& what, SrcLoc loc);
  /// An error in a while_ over elements, for what has no mask; false outside.
  bool lacks_mask(const std::string& what, SrcLoc loc);
  /// The kernel's body is complete.
  void finish();

  mlir::func::FuncOp function() { return function_; }
  mlir::MLIRContext* context() { return builder_.getContext(); }

 private:
  Carry& touch(Frame& frame, uint32_t slot);
  uint32_t read(uint32_t slot);
  uint32_t seen_from(uint32_t slot, uint32_t depth) const;
  uint32_t depth() const { return static_cast<uint32_t>(frames_.size()) - 1; }
  void retire(const Frame& frame, Poison poison);
  bool valid(Slot s, SrcLoc use);
  /// A variable that an if gives different values on its two sides.
  struct Merge {
    uint32_t slot, base, then_value, else_value;  ///< base: what it had in front of the if
  };
  /// The variables to merge. Those that have one value on both sides get it; of those that cannot be merged it is
  /// reported, or noted, why.
  std::vector<Merge> merges_of(uint32_t condition, BranchSide& then_side, BranchSide& else_side, SrcLoc loc);
  /// Whether a variable that the loop assigns can be carried: it is alive, has a value, and its type is the same at the end
  /// of the iteration as at the beginning. If not, the error is reported.
  bool can_carry(const Frame& frame, const Carry& carry);
  void keep_others();
  void close_for(Frame& frame, mlir::ValueRange inits, mlir::ValueRange yields, int alive_index,
                 llvm::SmallVectorImpl<mlir::Value>& results);
  void close_while(Frame& frame, mlir::ValueRange inits, mlir::ValueRange yields, int alive_index,
                   llvm::SmallVectorImpl<mlir::Value>& results);

  Frame* each_frame();
  void check_progress(SrcLoc loc);
  /// An error of a construct that is open where it cannot be.
  void report_open(const Frame& frame);

  mlir::func::FuncOp function_;
  mlir::OpBuilder builder_;
  uintptr_t stack_;  ///< about where the stack was when the trace began
  uint32_t serial_;  ///< of this trace: tells its slots from those of others
  uint32_t next_frame_ = 1;
  int combiners_ = 0;
  bool given_up_ = false;  ///< TraceGivenUp is on its way
  size_t unwound_at_ = 0;  ///< how many values there were when an exception left a construct last
  Tracer* enclosing_;  ///< a trace may start another one (a kernel traced inside a kernel's host code)
  std::vector<ValueInfo> values_;
  std::vector<SlotInfo> slots_;
  std::vector<Frame> frames_;
  llvm::SmallDenseSet<mlir::Value, 8> read_only_;  ///< arguments and results of constructs that point to const elements
  std::vector<mlir::Block*> discarded_;
  const char* last_file_ = nullptr;
  mlir::StringAttr last_file_attr_;
};

}  // namespace tile::detail
