// walker.h - an interpreter of kernels that stops at every op: scalars and control flow are executed, tiles are not.
// What a tile, a buffer or a wait means is its owner's business: the law (a kernel read as a plain program) or a
// machine of producers and consumers.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"

namespace tile::ir::protocol {

/// What is known about a value.
struct Val {
  Val() = default;
  explicit Val(int64_t n) : number(n) {}
  explicit Val(std::string s) : content(std::move(s)) {}
  std::optional<int64_t> number;  ///< integers, pointers and views (as addresses)
  std::string content;            ///< shared memory of the law: what was loaded
  int buffer = -1, stage = 0;     ///< shared memory of a machine
  bool isTransposed = false;
  int64_t product = -1;  ///< tiles: the asynchronous product they wait for
};
using Env = llvm::DenseMap<mlir::Value, Val>;

/// What a kernel is called with.
struct Inputs {
  std::map<unsigned, int64_t> scalars;            ///< by number of the argument; others are 0
  std::map<unsigned, std::vector<int64_t>> dims;  ///< of views, by argument
  int64_t otherDims = 64;                         ///< of all other views
  std::array<int64_t, 3> grid{1, 1, 1};
  std::function<int64_t(int64_t address, llvm::ArrayRef<int64_t> indices)> memory;  ///< integers in global memory
  int64_t items() const { return grid[0] * grid[1] * grid[2]; }
  std::array<int64_t, 3> position(int64_t item) const {
    return {item % grid[0], item / grid[0] % grid[1], item / grid[0] / grid[1]};
  }
};

/// A fault of the kernel, or of this interpreter's knowledge.
struct Fault {
  std::string what;
};

class Walker {
 public:
  enum class State { ran, blocked, finished };
  /// Executes ops that are not scalar arithmetic or control flow. False: not yet, try again later.
  using Execute = std::function<bool(mlir::Operation*, Walker&)>;
  /// The next position for a work loop; nullopt inside: no more. False: not yet.
  using NextItem = std::function<bool(WorkLoopOp, std::optional<std::array<int64_t, 3>>&)>;

  Walker(mlir::Block& block, Env env, const Inputs& inputs, Execute execute, NextItem nextItem)
      : env(std::move(env)), inputs_(inputs), execute_(std::move(execute)), nextItem_(std::move(nextItem)) {
    stack_.push_back({nullptr, &block, block.begin()});
  }

  State step();
  mlir::Operation* at() const;

  int64_t number(mlir::Value value) const;
  const Val& get(mlir::Value value) const;
  void set(mlir::Value value, Val val) { env[value] = std::move(val); }

  Env env;

 private:
  struct Frame {
    mlir::Operation* owner;  ///< null: the whole program
    mlir::Block* block;
    mlir::Block::iterator next;
    int64_t counter = 0, upper = 0, step = 1;  ///< scf.for
  };
  void enter(mlir::Operation* owner, mlir::Block& block) { stack_.push_back({owner, &block, block.begin()}); }
  void copy(mlir::ValueRange from, mlir::ValueRange to);
  bool control(mlir::Operation* op);
  State terminator(mlir::Operation* op);
  State endOfBlock();
  bool scalar(mlir::Operation* op);

  std::vector<Frame> stack_;
  const Inputs& inputs_;
  Execute execute_;
  NextItem nextItem_;
};

/// Environment of a function's arguments.
Env arguments(mlir::func::FuncOp func, const Inputs& inputs);
/// "argument 1 at [0, 64], 128x64".
std::string boxName(const Walker& walker, mlir::Value view, mlir::ValueRange indices, SmemType type);
/// "argument 1 at addi(broadcast(3), iota)": the offsets' and the mask's computation with the numbers it starts from.
std::string gatherName(const Walker& walker, mlir::Value ptr, mlir::Value offsets, mlir::Value mask);

}  // namespace tile::ir::protocol
