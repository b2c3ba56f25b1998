// emitter.h - state of one translation from tile IR to LLVM IR for the host, and what the op families share.
//
// Scalars are LLVM values ("words": one per number or pointer, 1 + 2*rank per view). Tiles are what the Plan says:
// fused ones have no code of their own, placed ones are written to the arena where their op stands. Control flow
// becomes plain basic blocks. Nothing is unrolled beyond a vector and a register tile: code size does not depend on
// tile sizes.
#pragma once
#include <functional>

#include "compiler/compiler.h"
#include "compiler/dialect/dialect.h"
#include "compiler/host/numbers.h"
#include "compiler/host/plan.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tile::ir::host {

class Nest;

struct View {
  llvm::Value* pointer;
  llvm::SmallVector<llvm::Value*, 4> dims, strides;
};

class Emitter {
 public:
  Emitter(mlir::func::FuncOp kernel, const Target& target, const CompileOptions& options, llvm::LLVMContext& context,
          KernelBinary& info);

  /// Null after emitting diagnostics.
  std::unique_ptr<llvm::Module> run();

  using Words = llvm::SmallVector<llvm::Value*, 1>;
  llvm::Value* scalar(mlir::Value v) const { return words.lookup(v)[0]; }
  void setScalar(mlir::Value v, llvm::Value* word) { words[v] = {word}; }
  View view(mlir::Value v) const;
  llvm::Constant* i64(int64_t n) { return b.getInt64(n); }
  /// A scalar index of any integer type as i64, signed.
  llvm::Value* asI64(mlir::Value v) { return b.CreateSExt(scalar(v), b.getInt64Ty()); }

  /// for (i = lo; i + step <= hi; i += step) body(i). Returns the first i not run.
  llvm::Value* loop(llvm::Value* lo, llvm::Value* hi, int64_t step, llvm::function_ref<void(llvm::Value*)> body);
  /// The same over [lo, hi) in vectors of `width`, then in quarters of one, then in single elements: body(i, lanes).
  void inVectors(llvm::Value* lo, llvm::Value* hi, unsigned width,
                 llvm::function_ref<void(llvm::Value*, unsigned)> body);
  /// A loop with values carried from one iteration to the next; static bounds with at least one iteration.
  llvm::SmallVector<llvm::Value*> loopCarrying(
      int64_t lo, int64_t hi, int64_t step, llvm::ArrayRef<llvm::Value*> init,
      llvm::function_ref<llvm::SmallVector<llvm::Value*>(llvm::Value*, llvm::ArrayRef<llvm::Value*>)> body);
  void ifThen(llvm::Value* condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise = nullptr);

  llvm::Value* arenaBase(const Ref& ref);
  /// The buffer's tile is read at `address` from here on: in the arena, or where the same elements lie in the same
  /// order.
  void readAt(const Ref& ref, llvm::Value* address) { elsewhere_[plan.root(ref.buffer)] = address; }
  /// The same while `body` runs only; `pitch` as in readRowsAt, or null.
  void whileReadAt(const Ref& ref, llvm::Value* address, llvm::Value* pitch, llvm::function_ref<void()> body) {
    const auto before = elsewhere_;
    const auto apart = pitches_;
    readAt(ref, address);
    pitches_.erase(plan.root(ref.buffer));
    if (pitch) readRowsAt(ref, address, pitch);
    body();
    elsewhere_ = before, pitches_ = apart;
  }
  /// The same of a tile whose rows lie apart, for readers that ask for it: `pitches` are the elements from one index of
  /// a dim to the next, for all dims but the last.
  void readRowsAt(const Ref& ref, llvm::Value* address, llvm::ArrayRef<llvm::Value*> pitches) {
    readAt(ref, address);
    pitches_[plan.root(ref.buffer)].assign(pitches.begin(), pitches.end());
  }
  /// Loops of `reader` over the buffer's tile ask for the same tile of the next program, `distance` bytes further,
  /// while they work on what is in the caches: it is there when that program begins.
  void fetchAhead(const Ref& ref, mlir::Operation* reader, llvm::Value* distance) {
    ahead_[plan.root(ref.buffer)] = {reader, distance};
  }
  /// Prefetches for `bytes` bytes that are read at `address` of the buffer.
  void prefetchBeside(const Ref& ref, llvm::Value* address, int64_t bytes);
  /// What an integer would be in the program after this one (along the grid's first dim); null: not known. `made`: what
  /// was asked for before, each computed once.
  llvm::Value* inNextProgram(mlir::Value scalar, llvm::DenseMap<mlir::Value, llvm::Value*>& made);
  /// The pitches of a tile whose rows lie apart; none: as the tile's own strides say.
  llvm::ArrayRef<llvm::Value*> pitchesOf(const Ref& ref) const {
    auto it = ref.buffer < 0 ? pitches_.end() : pitches_.find(plan.root(ref.buffer));
    return it == pitches_.end() ? llvm::ArrayRef<llvm::Value*>() : it->second;
  }
  /// Elements from one row of a matrix to the next; null as above.
  llvm::Value* pitchOf(const Ref& ref) const {
    const auto pitches = pitchesOf(ref);
    return pitches.empty() ? nullptr : pitches[0];
  }
  /// A function of its own for code that depends on nothing but `key` and its parameters, made once: equal loads, dots
  /// and transposes of a kernel share their loops, which is most of compile time. Never inlined.
  /// `body` returns what the function does, where `result` is a type.
  llvm::Function* shared(const std::string& key, llvm::ArrayRef<llvm::Type*> parameters,
                         llvm::function_ref<void(llvm::ArrayRef<llvm::Value*>)> body, llvm::Type* result = nullptr);
  llvm::Value* callShared(const std::string& key, llvm::ArrayRef<llvm::Value*> arguments,
                          llvm::function_ref<void(llvm::ArrayRef<llvm::Value*>)> body, llvm::Type* result = nullptr);
  /// Whether the kernel has so many loads and stores that each is better a call: thousands of branches and loops in one
  /// function take code generation minutes.
  bool isLongBody() const { return isLongBody_; }
  /// A constant tile with different elements, in memory.
  llvm::Value* constantData(mlir::arith::ConstantOp op);
  /// A constant in its register form, in memory.
  llvm::Value* inMemory(mlir::Type element, llvm::Constant* value);
  /// Address of element number `index` (i64) of a buffer of `element`.
  llvm::Value* address(const Ref& ref, mlir::Type element, llvm::Value* index);
  llvm::Value* offsetBy(llvm::Value* pointer, mlir::Type element, llvm::Value* index);

  /// Evaluates a tile into memory laid out as `to`, of elements `as` (the tile's own type, or the wide form of it).
  mlir::LogicalResult evaluateInto(mlir::Value tile, const Ref& to, mlir::Type as);
  void copy(const Ref& from, const Ref& to, mlir::Type element, llvm::ArrayRef<int64_t> shape);
  /// Lanes worth computing at once for values of `bytes` bytes, at most `limit` (a power of two).
  unsigned vectorWidth(int64_t bytes, int64_t limit, int vectors = 2) const;

  mlir::LogicalResult emitBlock(mlir::Block& block);
  mlir::LogicalResult emitOp(mlir::Operation* op);
  /// The scalar code of a combiner region on registers of any width.
  mlir::FailureOr<llvm::SmallVector<llvm::Value*>> combine(mlir::Region& combiner, llvm::ArrayRef<llvm::Value*> args);

  mlir::func::FuncOp kernel;
  const Target& target;
  const CompileOptions& options;
  KernelBinary& info;
  Plan plan;
  std::unique_ptr<llvm::Module> module;
  llvm::IRBuilder<> b;
  Numbers numbers;
  llvm::DenseMap<mlir::Value, Words> words;
  llvm::Function* function = nullptr;
  llvm::Value *program = nullptr, *arena = nullptr, *debugRing = nullptr;
  llvm::BasicBlock* exit = nullptr;

 private:
  void readParameters();
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  void openPhis(mlir::ValueRange initial, mlir::ValueRange args, llvm::BasicBlock* from);
  void closePhis(mlir::ValueRange next, mlir::ValueRange args);
  static size_t wordsOf(mlir::Type type);
  mlir::LogicalResult carryAll(mlir::Operation* terminator, mlir::ValueRange from, mlir::ValueRange to);
  mlir::LogicalResult emitScalar(mlir::Operation* op);
  mlir::LogicalResult emitPlaced(mlir::Operation* op);
  mlir::LogicalResult emitTransposed(TransOp op, const Ref& to);
  mlir::LogicalResult reportArena();
  llvm::DenseMap<mlir::Attribute, llvm::Value*> constants_;
  llvm::DenseMap<std::pair<llvm::Type*, llvm::Constant*>, llvm::Value*> values_;
  llvm::DenseMap<int, llvm::Value*> elsewhere_;  ///< by buffer
  llvm::DenseMap<int, llvm::SmallVector<llvm::Value*, 3>> pitches_;
  llvm::DenseMap<int, std::pair<mlir::Operation*, llvm::Value*>> ahead_;
  mlir::Operation* emitting_ = nullptr;
  bool isLongBody_ = false;
};

// The op families; each reports its own errors.
mlir::LogicalResult emitLoad(Emitter& e, LoadOp op);
mlir::LogicalResult emitStore(Emitter& e, StoreOp op);
mlir::LogicalResult emitAccumulate(Emitter& e, AccumulateOp op);
mlir::LogicalResult emitGather(Emitter& e, GatherOp op);
mlir::LogicalResult emitScatter(Emitter& e, ScatterOp op);
mlir::LogicalResult emitAtomicRmw(Emitter& e, AtomicRmwOp op);
mlir::LogicalResult emitAtomicCas(Emitter& e, AtomicCasOp op);
mlir::LogicalResult emitReduce(Emitter& e, ReduceOp op);
mlir::LogicalResult emitScan(Emitter& e, ScanOp op);
mlir::LogicalResult emitDot(Emitter& e, DotOp op);
mlir::LogicalResult emitCat(Emitter& e, CatOp op);
mlir::LogicalResult emitTake(Emitter& e, TakeOp op);
mlir::LogicalResult emitPut(Emitter& e, PutOp op);
mlir::LogicalResult emitHistogram(Emitter& e, HistogramOp op);
mlir::LogicalResult emitPrint(Emitter& e, PrintOp op);
mlir::LogicalResult emitAssert(Emitter& e, AssertOp op);

/// One atomic update of an element of integers or floats (in register form); returns the value before it.
llvm::Value* atomicUpdate(Emitter& e, RmwKind kind, MemOrder order, mlir::Type element, llvm::Value* address,
                          llvm::Value* value);

/// Lines of contiguous elements, `distance` elements apart.
struct Lines {
  llvm::Value* base;
  llvm::Value* distance;
};
/// to[i][j] = from[j][i] for i < rows, j < columns: reads along i, writes along j, whole blocks in registers. Elements
/// become `as` on the way (the same type, or the wide form of it).
void emitTransposeBlocks(Emitter& e, Lines from, mlir::Type element, Lines to, mlir::Type as, int64_t rows,
                         int64_t columns);

}  // namespace tile::ir::host
