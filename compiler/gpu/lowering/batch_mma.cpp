// batch_mma.cpp - tile.batch_mma: products of single warps whose operands are registers already.
#include <map>

#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/lowering/mma_sync.h"
#include "compiler/gpu/lowering/smem_lowering.h"

namespace tile::ir {
using namespace llvm;

namespace {

/// The fragment registers of an operand: neighbours along k share one.
class Operand {
 public:
  /// `k`: the operand's dim along k; `other`: along the rows or columns of the product.
  Operand(Emitter& e, Engine engine, mlir::Value tile, const layout::Layout& layout, int other, int k)
      : other_(other), k_(k), pack_(32 / engineRow(engine).operandBits) {
    const auto& values = e.regs(tile);
    Fragments all;
    for (int first = 0; first < layout.numRegs(); first += pack_) {
      Value* vector = PoisonValue::get(FixedVectorType::get(values[first]->getType(), pack_));
      for (int p = 0; p < pack_; ++p) vector = e.b.CreateInsertElement(vector, values[first + p], p);
      at_[layout.regCoord(first)] = static_cast<int>(all.size());
      all.push_back(e.b.CreateBitCast(vector, e.b.getInt32Ty()));
    }
    registers_ = rounded(e, engine, tile.getType(), std::move(all));
  }

  /// Of one instruction: in steps of 8 from `first` on along the product, then those of its second half along k.
  Rounded fragment(int batch, int first, int step, int along) const {
    Rounded out;
    for (int half = 0; half < 2; ++half)
      for (int i = 0; i < along; ++i) {
        layout::Coord coord(3);
        coord[0] = batch, coord[other_] = first + 8 * i, coord[k_] = 4 * pack_ * (2 * step + half);
        const int reg = at_.at(coord);
        out.big.push_back(registers_.big[reg]);
        if (!registers_.small.empty()) out.small.push_back(registers_.small[reg]);
      }
    return out;
  }

 private:
  int other_, k_, pack_;
  std::map<layout::Coord, int> at_;
  Rounded registers_;
};

}  // namespace

LogicalResult emitBatchMma(Emitter& e, BatchMmaOp op) {
  const BatchLayouts layouts = batchLayouts(op, e.numWarps());
  const EngineRow& row = engineRow(op.getEngine());
  const MmaInstruction instruction(op.getEngine(), op.getA().getType(), op.getB().getType());
  const Operand a(e, op.getEngine(), op.getA(), layouts.a, 1, 2), b(e, op.getEngine(), op.getB(), layouts.b, 2, 1);
  const auto steps = static_cast<int>(op.getA().getType().getShape()[2] / row.k);
  Regs acc(e.regs(op.getAcc()));
  // The registers of an instruction are neighbours in the accumulator: four for each of its places.
  for (int step = 0; step < steps; ++step)
    for (int reg = 0; reg < layouts.acc.numRegs(); reg += 4) {
      const layout::Coord at = layouts.acc.regCoord(reg);
      const auto batch = static_cast<int>(at[0]), m = static_cast<int>(at[1]), n = static_cast<int>(at[2]);
      multiply(e, instruction, a.fragment(batch, m, step, 2), 0, b.fragment(batch, n, step, 1), 0,
               MutableArrayRef<Value*>(acc.data() + reg, 4));
    }
  e.define(op.getResult(), acc);
  return success();
}

}  // namespace tile::ir
