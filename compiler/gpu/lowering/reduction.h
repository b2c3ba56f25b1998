// reduction.h - one reduction along an axis: the steps inside of threads (reduce.cpp), between lanes (reduce_lanes.cpp)
// and between warps (reduce_table.cpp).
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/lowering/combine.h"
#include "compiler/gpu/lowering/emitter.h"
#include "compiler/gpu/lowering/select_one.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir {

class Reduction {
 public:
  Reduction(Emitter& emitter, ReduceOp op)
      : e(emitter),
        op_(op),
        axis_(static_cast<int>(op.getAxis())),
        source_(e.layoutOf(op.getSources()[0])),
        result_(e.layoutOf(op.getResults()[0])),
        slice_(source_.sliced(axis_)),
        combine_(e, op.getCombiner()),
        inChains_(sumsProducts(op) || sumsChosen(op)),
        eitherWay_(combinesEitherWay(op)) {}

  llvm::LogicalResult run();
  /// What this warp has of a reduction across warps, into the table.
  llvm::LogicalResult put();

 private:
  int64_t extent() const { return source_.shape()[axis_]; }
  llvm::LogicalResult select(const SelectedOne& one);
  llvm::Value* valid(int64_t c);
  Tuple tupleOf(int reg);
  std::vector<std::pair<int64_t, int>> elementsOf(const layout::Coord& want);
  Tuple tree(llvm::ArrayRef<std::pair<int64_t, int>> along);
  Tuple inThread(const layout::Coord& want) { return tree(elementsOf(want)); }

  // ---- between lanes
  /// The instruction that combines one value of every lane of the warp by itself.
  std::optional<llvm::Intrinsic::ID> warpInstruction();
  std::optional<llvm::Intrinsic::ID> warpInstruction(bool once);
  bool isOrdered(llvm::Value* value);
  bool isOneOrdered(const std::vector<Tuple>& partial);
  llvm::Value* asOrderedIntegers(llvm::Value* value);
  llvm::Value* byInstruction(llvm::Intrinsic::ID instruction, llvm::Value* value);
  void acrossLanes(std::vector<Tuple>& partial);
  bool voteByGroups(std::vector<Tuple>& partial);
  bool halveByLanes(std::vector<Tuple>& partial);
  void butterfly(std::vector<Tuple>& partial, int step, const layout::Digit& digit, int distance);
  Tuple together(const Tuple& own, const Tuple& other, int partner);
  llvm::Value* remainingCoord(int step);
  /// Registers of `slice_` that are left in a lane, in the order of the list, and how far from them, in values of the
  /// table, those are that the lane has instead: the sum of `offset` over the bits of its number.
  struct Shared {
    std::vector<int> regs;
    std::vector<std::pair<int, int64_t>> offset;  ///< (bit of the lane number, values)
  };
  Shared shareAcrossLanes(std::vector<Tuple>& partial, const PartsTable& table);

  // ---- between warps
  int sideBySide(const PartsTable& table, llvm::ArrayRef<int> regs, const layout::Layout& layout, size_t i,
                 int64_t bytes);
  llvm::Value* entryOf(const PartsTable& table, const layout::Layout& layout);
  int64_t entryConstant(const PartsTable& table, const layout::Coord& coord);
  llvm::Value* place(const PartsTable& table, size_t operand, const layout::Coord& coord, llvm::Value* at,
                     int64_t constantPart);
  void intoTable(std::vector<Tuple> partial);
  std::vector<Tuple> fromTable();
  bool lanesTakeParts(const PartsTable& table);
  std::vector<Tuple> fromTableByLanes(const PartsTable& table);
  int64_t partsOfAnAccess(const PartsTable& table);
  void readParts(const PartsTable& table, size_t operand, llvm::Value* entry, int64_t from, llvm::ArrayRef<int> regs,
                 std::vector<std::vector<Tuple>>& found);

  Emitter& e;
  ReduceOp op_;
  int axis_;
  const layout::Layout& source_;
  const layout::Layout& result_;
  const layout::Layout slice_;  ///< what the threads of the source hold of the result
  Combiner combine_;
  bool inChains_, eitherWay_;
};

}  // namespace tile::ir
