// store_tile.cpp - a register tile to a buffer in shared memory: stmatrix for 16-bit accumulators, else each thread's
// runs; and back by ldmatrix.
#include <algorithm>
#include <set>

#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "compiler/layout/matrix_store.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace llvm;

int vectorLength(const layout::Layout& layout, const layout::SharedTile& tile, int minor) {
  const int run = layout.runLength(minor);
  const int64_t limit =
      tile.swizzle ? 16 : std::min<int64_t>(16, tile.pitch & -tile.pitch);  // what rows are aligned to
  int length = 1;
  while (2 * length * tile.elementBytes <= limit && run % (2 * length) == 0 &&
         layout.shape()[minor] % (2 * length) == 0)
    length *= 2;
  return length;
}

namespace {

void storeMatrices(Emitter& e, ArrayRef<Value*> values, Value* base, const layout::SharedTile& tile,
                   const layout::MatrixStore& plan) {
  SmemAddress address(e, tile, plan.row, plan.byte);
  for (const layout::MatrixStore::Instruction& instruction : plan.instructions) {
    SmallVector<Value*> args{address.at(base, instruction.row, instruction.byte)};
    for (int reg : instruction.registers)
      args.push_back(e.b.CreateBitCast(e.packPair(values[reg], values[reg + 1]), e.b.getInt32Ty()));
    const bool four = instruction.registers.size() == 4;
    std::string text = "stmatrix.sync.aligned.m8n8.x" + std::string(four ? "4" : "2") +
                       (plan.transposed ? ".trans" : "") + ".shared.b16 [$0], {" +
                       (four ? "$1, $2, $3, $4" : "$1, $2") + "};";
    e.inlineAsm(e.b.getVoidTy(), text, four ? "r,r,r,r,r,~{memory}" : "r,r,r,~{memory}", args);
  }
}

}  // namespace

bool storeByMatrices(Emitter& e, ArrayRef<Value*> values, const layout::Layout& layout, Value* base,
                     const layout::SharedTile& tile, int minor, int64_t first, bool everyWarp) {
  if (e.target.sm < 90) return false;
  auto plan = layout::planMatrixStore(layout, tile, minor, first, everyWarp);
  if (plan) storeMatrices(e, values, base, tile, *plan);
  return plan.has_value();
}

/// Pairs of 16-bit elements as products hold them: a quarter of the instructions of one load for each pair, an eighth
/// where pairs lie across the buffer's rows.
std::optional<Regs> loadByMatrices(Emitter& e, Type* element, const layout::Layout& layout, Value* base,
                                   const layout::SharedTile& tile, int minor) {
  const auto plan = layout::planMatrixLoad(layout, tile, minor);
  if (!plan) return std::nullopt;
  SmemAddress address(e, tile, plan->row, plan->byte);
  Type* pair = FixedVectorType::get(element, 2);
  Regs result(static_cast<size_t>(layout.numRegs()));
  for (const layout::MatrixStore::Instruction& instruction : plan->instructions) {
    const bool four = instruction.registers.size() == 4;
    const Intrinsic::ID id = four ? plan->transposed ? Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                                                     : Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16
                             : plan->transposed ? Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16
                                                : Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16;
    Value* pointer = address.at(base, instruction.row, instruction.byte);
    Value* loaded = e.b.CreateIntrinsic(id, {pointer->getType()}, {pointer});
    for (auto [i, reg] : llvm::enumerate(instruction.registers)) {
      Value* both = e.b.CreateBitCast(e.b.CreateExtractValue(loaded, {static_cast<unsigned>(i)}), pair);
      for (int j = 0; j < 2; ++j)
        result[static_cast<size_t>(reg + j)] = e.b.CreateExtractElement(both, static_cast<uint64_t>(j));
    }
  }
  return result;
}

void storeTile(Emitter& e, ArrayRef<Value*> values, const layout::Layout& layout, Value* base,
               const layout::SharedTile& tile, int minor, int64_t first) {
  if (storeByMatrices(e, values, layout, base, tile, minor, first)) return;
  const int major = 1 - minor;
  SmemAddress address(e, tile, layout, major);
  const int length = vectorLength(layout, tile, minor);
  Value* firstReplica = e.isFirstReplica(layout);
  const int replicas = layout.regReplicas();
  const int64_t end = first + tile.cols, threads = layout.maxThreadCoord(minor);
  const bool whole = first == 0 && end >= layout.shape()[minor];
  std::set<layout::Coord> written;
  for (const std::vector<int>& run : layout.runs(minor, length)) {
    const int reg = run[0];
    if (layout.isRegPadding(reg)) continue;
    layout::Coord coord = layout.regCoord(reg);
    if (replicas > 1 && !written.insert(coord).second) continue;
    const int64_t at = coord[minor];
    if (!whole && (at >= end || at + threads < first)) continue;  // in no thread's part
    Value* inPart = nullptr;
    if (!whole && (at < first || at + threads >= end))
      inPart = e.b.CreateICmpULT(e.b.CreateAdd(e.threadCoord(layout, minor), e.i32(at - first)), e.i32(tile.cols));
    Value* pointer = address.at(base, coord[major], (at - first) * tile.elementBytes);
    SmallVector<Value*, 16> piece;
    for (int from : run) piece.push_back(values[static_cast<size_t>(from)]);
    storeVector(e, pointer, piece, e.andAll({firstReplica, e.inTile(layout, reg), inPart}));
  }
}

}  // namespace tile::ir
