// emitter.h - translation of one laid-out kernel to LLVM IR for NVPTX: what the lowering of every op builds on.
//
// Values: a scalar is one LLVM value; a tile is one LLVM value per register of its layout (padding registers included,
// their content is arbitrary); a view is a ViewValue; a tile in shared memory is one pointer (address space 3).
// Tiles of i1 are LLVM i1 in registers and bytes in memory; f8 is i8. Every thread of the program runs the same code;
// thread coordinates are values computed once in the entry block.
#pragma once
#include <map>

#include "compiler/analysis/facts.h"
#include "compiler/compiler.h"
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tile::ir {

using Regs = llvm::SmallVector<llvm::Value*, 8>;

class DebugInfo;
class KernelRoles;

struct ViewValue {
  llvm::Value* ptr;                                ///< address space 1
  llvm::SmallVector<llvm::Value*, 4> dims, strides;  ///< i64, in elements
};

class Emitter {
 public:
  Emitter(mlir::func::FuncOp kernel, const Target& target, const CompileOptions& options, llvm::LLVMContext& context,
          KernelBinary& info);
  ~Emitter();
  /// The whole kernel; null after emitting diagnostics.
  std::unique_ptr<llvm::Module> run();

  llvm::IRBuilder<> b;  ///< inserts at the current point
  const Target& target;
  const CompileOptions& options;
  KernelBinary& info;

  // ---- values
  llvm::ArrayRef<llvm::Value*> regs(mlir::Value tile) const;  ///< also scalars (one) and shared tiles (their pointer)
  llvm::Value* scalar(mlir::Value value) const { return regs(value).front(); }
  const ViewValue& view(mlir::Value value) const;
  void define(mlir::Value value, Regs registers);
  void define(mlir::Value value, llvm::Value* scalar) { define(value, Regs{scalar}); }
  void defineView(mlir::Value value, ViewValue view);
  llvm::SmallPtrSet<mlir::Operation*, 8> definedAhead;  ///< ops that another one does as well
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<AtomicRmwOp>> addedTogether;  ///< by the last of them
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<ScatterOp>> scatteredTogether;
  /// Layout of a tile; a scalar has the layout of a rank-0 tile that every thread holds.
  const layout::Layout& layoutOf(mlir::Value tile) const;
  llvm::Type* elementType(mlir::Value value);     ///< LLVM type of one register
  /// One element of an elementwise op that has one result and exists on this target.
  llvm::Value* elementwise(mlir::Operation* op, llvm::ArrayRef<llvm::Value*> args);
  const Facts& facts() const { return *facts_; }

  // ---- threads
  /// Of the threads that hold tiles: all, but in kernels with roles those of the role at the current point.
  int numWarps() const { return numWarps_; }
  int numThreads() const { return numWarps_ * target.lanes; }
  int totalThreads() const;                        ///< the producer's warpgroup included
  llvm::Value* thread() const { return thread_; }  ///< i32, 0..totalThreads; in a whole producer warpgroup 0..127
  llvm::Value* lane() const { return lane_; }
  llvm::Value* warp() const { return warp_; }
  /// i32, warp / 4, as a value the assembler knows to be the same in all lanes.
  llvm::Value* warpgroup();
  /// Here, at the kernel's start, every thread waits for the kernels in front of this one in its stream, which may be
  /// launched early for that (runtime/launch_marks.h); then the next one may. Nothing where the target has no such
  /// launches.
  void waitForStream();
  /// A symbol for the runtime (runtime/launch_marks.h).
  void mark(const char* name);
  void markIfShort();
  /// i32: what this thread's lane and warp add to coordinate `dim` (to which register coordinates are added).
  llvm::Value* threadCoord(const layout::Layout& layout, int dim);
  /// Sum over the digits of `index` along `dim` of value * stride; null when no digit moves along it.
  llvm::Value* digitSum(llvm::ArrayRef<layout::Digit> digits, llvm::Value* index, int dim);
  /// i1, or null for "always": this thread is the first of all that hold the same elements.
  llvm::Value* isFirstReplica(const layout::Layout& layout);
  /// i1, or null for "always": register `reg` of this thread is inside the tile.
  llvm::Value* inTile(const layout::Layout& layout, int reg);
  void barrier();   ///< all threads that run the code at the current point
  /// The same, where every thread learns whether `holds` was true in all of them, or in any.
  llvm::Value* barrierVote(llvm::Value* holds, bool inAll);
  void syncWarp();
  llvm::Value* shuffleXor(llvm::Value* value, int mask);           ///< any scalar type
  llvm::Value* shuffleUp(llvm::Value* value, int delta);
  llvm::Value* shuffleDown(llvm::Value* value, int delta);
  llvm::Value* shuffleIdx(llvm::Value* value, llvm::Value* lane);

  // ---- shared memory
  llvm::Value* shared(int64_t offset);             ///< pointer to a byte of the program's shared memory
  /// Start of the scratch that place_buffers gave an op (see compiler/gpu/forms/scratch.h).
  llvm::Value* scratch(mlir::Operation* op);

  // ---- roles
  enum class Role : uint8_t { all, producer, turner, consumer };
  Role role = Role::all;                           ///< who runs the code at the current point
  KernelRoles& roles() const { return *roles_; }
  /// A variable of each thread, i32 where no type is given, 0 at first.
  llvm::AllocaInst* variable(const char* name, llvm::Type* type = nullptr);
  /// Emits code of the producer's whole warpgroup: threads, warps and layouts count from its first thread.
  llvm::LogicalResult asProducerWarps(llvm::function_ref<llvm::LogicalResult()> body);

  // ---- building blocks
  /// The region's ops on scalars, terminator excluded; returns the terminator's operands. For combiners.
  llvm::FailureOr<Regs> inlineRegion(mlir::Region& region, llvm::ArrayRef<llvm::Value*> arguments);
  llvm::LogicalResult emitBlock(mlir::Block& block);               ///< all ops but a terminator
  /// Inline assembly; convergent and with side effects unless `pure`. Results: none, one, or a struct.
  llvm::Value* inlineAsm(llvm::Type* result, llvm::StringRef text, llvm::StringRef constraints,
                         llvm::ArrayRef<llvm::Value*> args, bool pure = false);
  llvm::Value* i32(int64_t value) { return b.getInt32(static_cast<uint32_t>(value)); }
  llvm::Value* i64(int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); }
  /// Two values of 16 bits as a vector; two narrowed f32 are narrowed together, where they are needed.
  llvm::Value* packPair(llvm::Value* low, llvm::Value* high);
  /// Four values of 8 bits, the first one lowest, as an i32; and back.
  llvm::Value* packQuad(llvm::ArrayRef<llvm::Value*> bytes);
  llvm::SmallVector<llvm::Value*, 4> unpackQuad(llvm::Value* word);
  llvm::Value* andAll(llvm::ArrayRef<llvm::Value*> conditions);    ///< nulls are true; null when all are
  /// Debug ring of this launch: a parameter of kernels that print or assert.
  llvm::Value* debugRing();
  uint32_t debugSite(DebugSite site);              ///< registers the site, returns its index
  const MathHooks& math() const;

 private:
  llvm::LogicalResult emitOp(mlir::Operation* op);
  llvm::LogicalResult emitConstant(mlir::arith::ConstantOp op);
  llvm::LogicalResult emitFor(mlir::scf::ForOp op);
  llvm::LogicalResult emitIf(mlir::scf::IfOp op);
  llvm::LogicalResult emitWhile(mlir::scf::WhileOp op);
  llvm::LogicalResult beginKernel();
  void createFunction(bool usesDebugRing);
  void addDimRanges();
  void bindParameters(bool usesDebugRing);
  llvm::Type* typeOf(mlir::Type type);
  llvm::Value* shuffle(llvm::Value* value, llvm::Intrinsic::ID mode, llvm::Value* operand, int clamp);
  llvm::SmallVector<size_t> crossingOrder(mlir::Value value) const;
  Regs packed(mlir::ValueRange values);            ///< flat, words of narrow elements as one value
  void definePacked(mlir::ValueRange values, mlir::ValueRange shapes, llvm::ArrayRef<llvm::Value*> all);
  Regs flat(mlir::Value value) const;              ///< every LLVM value behind it, views included
  Regs flat(mlir::ValueRange values) const;
  void defineFlat(mlir::Value value, Regs all);
  void defineLike(mlir::ValueRange values, mlir::ValueRange shapes, llvm::ArrayRef<llvm::Value*> all);
  void hintUnroll(llvm::BranchInst* latch, mlir::Operation* loop);

  mlir::func::FuncOp kernel_;
  llvm::LLVMContext& context_;
  std::unique_ptr<llvm::Module> module_;
  std::unique_ptr<Facts> facts_;
  std::unique_ptr<MathHooks> math_;
  llvm::Function* function_ = nullptr;
  llvm::Instruction* entryEnd_ = nullptr;  ///< per-thread constants go before it, in the entry block
  llvm::GlobalVariable* sharedMemory_ = nullptr;
  llvm::Value *thread_ = nullptr, *lane_ = nullptr, *warp_ = nullptr, *warpgroup_ = nullptr;
  int numWarps_ = 0;
  llvm::DenseMap<mlir::Value, Regs> values_;
  llvm::DenseMap<mlir::Value, ViewValue> views_;
  mutable llvm::DenseMap<mlir::Type, std::unique_ptr<layout::Layout>> layouts_;
  std::map<std::string, llvm::Value*> threadCoords_;  ///< by the digits that move along the dim
  llvm::Value* debugRing_ = nullptr;
  std::unique_ptr<DebugInfo> debugInfo_;
  std::unique_ptr<KernelRoles> roles_;
};

}  // namespace tile::ir
