// buffers.h - what a kernel keeps in shared memory, for how long, and where. The policy (what may rest, which gaps are
// worth their bytes) is place_buffers.cpp's.
#pragma once
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/gpu/rings/lifetimes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tile::ir {

struct Buffer {
  mlir::Operation* op;
  int64_t bytes, alignment;
  int64_t begin, end;  ///< positions in program order, inclusive
  int64_t offset = -1;
  int64_t firstUse = 0, lastUse = 0;  ///< `begin` and `end` as used, see Rests
};

/// Bytes "rest" if they stay allocated after their last use, until the next buffer or scratch beside them is done with.
/// Reusing them at once would need a barrier for the last readers; later there has been one anyway. This says what
/// rests.
struct Rests {
  bool scratch = false;   ///< of ops with a barrier of all threads
  bool ofWarps = false;   ///< of exchanges inside a warp
  bool ofLast = false;    ///< what the last op of an iteration uses: it stays allocated for the whole loop
  bool operands = false;  ///< without roles: operands that loops compute into shared memory
};

/// All users of a buffer, also through its slots and transposes.
llvm::SmallVector<mlir::Operation*> usersOfBuffer(mlir::Operation* alloc);
/// The role that runs the op; null: there are none.
mlir::Region* roleOf(mlir::Operation* op);

/// All buffers of a kernel, and all scratch of its ops.
class Buffers {
 public:
  explicit Buffers(mlir::func::FuncOp func) : func_(func), order_(func) { collect(); }

  /// Lists them anew, as ops and their attributes are now.
  void collect();
  /// Gives every one the lowest place beside those that live at the same time; returns the bytes needed.
  int64_t arrange();
  /// Writes the places to the ops.
  void write();
  /// Adds notes that say which buffers need how much, and what would fit.
  void explain(mlir::InFlightDiagnostic& error, int64_t total, int64_t limit);

  /// Nothing rests any more.
  void restore();
  /// Lets buffers rest until the next one in their block is done with. False: nothing changed.
  bool rest(const Rests& rests);
  /// Lets scratch rest until the next op of its block with a barrier of all threads is done; scratch of single warps
  /// only if that is the next op with scratch. With `rests.operands` operands, too. False: nothing changed, or operands
  /// were asked for and there are none.
  bool restScratch(const Rests& rests);

  /// From ops that only get to the op of their group (meet_together.cpp) that puts for them.
  const llvm::DenseMap<mlir::Operation*, mlir::Operation*>& meetings() const { return meetings_; }

 private:
  struct Listing;
  void add(mlir::Operation* op, Listing& list);
  void addScratch(mlir::Operation* op, Listing& list);
  int64_t metAt(mlir::Operation* op) const;
  int64_t lastUse(mlir::Operation* alloc);
  bool setAside(Buffer& buffer);
  Buffer* largestAtFault(llvm::ArrayRef<Buffer*> bySize, int64_t over, int64_t limit);
  std::vector<Buffer*> bySize();

  mlir::func::FuncOp func_;
  ProgramOrder order_;
  std::vector<Buffer> buffers_;
  llvm::DenseMap<mlir::Operation*, mlir::Operation*> meetings_;
  /// From the first user of scratch to the others.
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<mlir::Operation*>> sharers_;
};

}  // namespace tile::ir
