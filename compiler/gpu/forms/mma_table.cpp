// mma_table.cpp - the rows, and the register layouts that follow from them.
#include "compiler/gpu/forms/mma_table.h"

#include <limits>
#include <numeric>

namespace tile::ir {
using namespace mlir;

namespace {

constexpr EngineRow kRows[] = {
    {Engine::m16n8k16_f16, "m16n8k16_f16", 16, 8, 16, 16, true, 80},
    {Engine::m16n8k16_bf16, "m16n8k16_bf16", 16, 8, 16, 16, true, 80},
    {Engine::m16n8k8_tf32, "m16n8k8_tf32", 16, 8, 8, 32, true, 80},
    {Engine::m16n8k8_tf32x3, "m16n8k8_tf32x3", 16, 8, 8, 32, true, 80},
    {Engine::m16n8k32_s8, "m16n8k32_s8", 16, 8, 32, 8, true, 80},
    {Engine::m16n8k32_f8, "m16n8k32_f8", 16, 8, 32, 8, true, 89},
    // Counted in words of 32 bits, fragments of bits are those of tf32.
    {Engine::m16n8k256_b1, "m16n8k256_b1", 16, 8, 8, 32, true, 80},
    // Two instructions side by side (layout::mmaDoubleAccumulator); m8n8k4 four times for one m16n8k8.
    {Engine::m16n8k8_f64, "m16n8k8_f64", 16, 16, 8, 64, true, 90},
    {Engine::m8n8k4_f64, "m8n8k4_f64", 16, 16, 8, 64, true, 80},
    {Engine::wgmma_f16, "wgmma_f16", 16, 8, 16, 16, true, 90, true},
    {Engine::wgmma_bf16, "wgmma_bf16", 16, 8, 16, 16, true, 90, true},
    {Engine::wgmma_tf32, "wgmma_tf32", 16, 8, 8, 32, true, 90, true},
    {Engine::wgmma_s8, "wgmma_s8", 16, 16, 32, 8, true, 90, true},
    {Engine::wgmma_f8, "wgmma_f8", 16, 8, 32, 8, true, 90, true},
    {Engine::wgmma_b1, "wgmma_b1", 16, 16, 8, 32, true, 90, true},
    {Engine::fma, "fma", 4, 32, 4, 0, false, 0},
};

bool accepts(const EngineRow& row, Type element, Type acc, Precision precision) {
  switch (row.engine) {
    case Engine::m16n8k16_f16:
    case Engine::wgmma_f16:
      return element.isF16() && acc.isF32();
    case Engine::m16n8k16_bf16:
    case Engine::wgmma_bf16:
      return element.isBF16() && acc.isF32();
    case Engine::m16n8k8_tf32:
    case Engine::wgmma_tf32:
      return element.isF32() && acc.isF32() && precision == Precision::tf32;
    case Engine::m16n8k8_tf32x3:
      return element.isF32() && acc.isF32() && precision == Precision::tf32x3;
    case Engine::m16n8k32_s8:
    case Engine::wgmma_s8:
      return element.isInteger(8) && acc.isInteger(32);
    case Engine::m16n8k8_f64:
    case Engine::m8n8k4_f64:
      return element.isF64() && acc.isF64();
    case Engine::m16n8k32_f8:
    case Engine::wgmma_f8:
      return isF8(element) && acc.isF32();
    case Engine::m16n8k256_b1:
    case Engine::wgmma_b1:
      return precision == Precision::bits;
    case Engine::fma:
      return true;
  }
  return false;
}

int64_t roundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

const EngineRow& engineRow(Engine engine) {
  for (const EngineRow& row : kRows)
    if (row.engine == engine) return row;
  return kRows[std::size(kRows) - 1];
}

std::pair<std::string, std::string> f8Names(Type a, Type b) {
  auto nameOf = [](Type operand) {
    auto smem = dyn_cast<SmemType>(operand);
    const Type element = smem ? smem.getElementType() : getElementTypeOrSelf(operand);
    return std::string(isa<Float8E4M3FNType>(element) ? "e4m3" : "e5m2");
  };
  return {nameOf(a), nameOf(b)};
}

Engine chooseEngine(Type element, Type acc, Precision precision, const Target& target) {
  for (const EngineRow& row : kRows)
    if (!row.isWgmma && accepts(row, element, acc, precision) &&
        (!row.isMma || (target.hasMma && target.sm >= row.minSm)))
      return row.engine;
  return Engine::fma;
}

std::optional<Engine> chooseWarpgroupEngine(Type element, Type acc, Precision precision, const Target& target) {
  for (const EngineRow& row : kRows)
    if (row.isWgmma && target.hasWgmma && accepts(row, element, acc, precision)) return row.engine;
  return std::nullopt;
}

FmaLanes fmaLanes(int64_t m, int64_t n, int warpsM, int warpsN) {
  constexpr int kLanes = 32, kWidest = 8, kNarrowest = 2;  // eight columns: 16 bytes of a row of 16-bit elements
  FmaLanes best{1, 1, 1};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int columns = kWidest; columns >= kNarrowest; columns /= 2) {
    const int rows = kLanes / columns;
    const int64_t area = roundUp(m, rows * warpsM) * roundUp(n, 4 * columns * warpsN);
    const bool four = roundUp(m, 4 * rows * warpsM) == roundUp(m, rows * warpsM);
    if (area < least) least = area, best = {rows, columns, four ? 4 : 1};
  }
  return best;
}

FmaColumns fmaColumns(const FmaLanes& lanes, bool alongK) {
  return alongK ? FmaColumns{lanes.columns, 1} : FmaColumns{1, 4};
}

Cover coverOf(Engine engine, int64_t m, int64_t n, int64_t k, int warpsM, int warpsN) {
  const EngineRow& row = engineRow(engine);
  if (engine == Engine::fma) {
    const FmaLanes lanes = fmaLanes(m, n, warpsM, warpsN);
    return {roundUp(m, lanes.height() * warpsM), roundUp(n, lanes.width() * warpsN), roundUp(k, row.k)};
  }
  return {roundUp(m, row.m * warpsM), roundUp(n, row.n * warpsN), roundUp(k, row.k)};
}

WarpgroupProduct warpgroupProduct(MmaOp op) {
  auto shape = cast<RankedTensorType>(op.getAcc().getType()).getShape();
  const int warpsM = static_cast<int>(op.getWarpsM()), warpsN = static_cast<int>(op.getWarpsN());
  WarpgroupProduct p{shape[0], shape[1], warpsM / 4, warpsN, {}};
  if (isTransposed(op)) p = {shape[1], shape[0], warpsN / 4, warpsM, {}};
  p.cover = coverOf(op.getEngine(), p.m, p.n, op.getK(), 4 * p.teamsM, p.teamsN);
  return p;
}

layout::Layout accumulatorLayout(MmaOp op) {
  const EngineRow& row = engineRow(op.getEngine());
  if (row.isWgmma) {
    const WarpgroupProduct p = warpgroupProduct(op);
    const layout::Layout computed =
        fragmentOperand(op) ? layout::wgmmaSpreadAccumulator({p.m, p.n}, p.teamsM, p.teamsN, row.operandBits, row.n)
                            : layout::wgmmaAccumulator({p.m, p.n}, p.teamsM, p.teamsN, row.n);
    return isTransposed(op) ? computed.transposed({1, 0}) : computed;
  }
  auto shape = cast<RankedTensorType>(op.getAcc().getType()).getShape();
  layout::Shape tile(shape.begin(), shape.end());
  const int warpsM = static_cast<int>(op.getWarpsM()), warpsN = static_cast<int>(op.getWarpsN());
  if (row.operandBits == 64) {
    const bool aAlongK = cast<SmemType>(op.getA().getType()).getMinor() == 1,
               bAlongK = op.getB().getType().getMinor() == 0;
    return layout::mmaDoubleAccumulator(tile, warpsM, warpsN, aAlongK, bAlongK);
  }
  if (row.isMma) return layout::mmaAccumulator(tile, warpsM, warpsN);
  // Four columns of a row per lane, rows below each other, lanes along a row, then rows, then warps.
  const FmaLanes lanes = fmaLanes(tile[0], tile[1], warpsM, warpsN);
  const int high = lanes.height(), wide = lanes.width();
  int repM = static_cast<int>(roundUp(tile[0], high * warpsM) / (high * warpsM));
  int repN = static_cast<int>(roundUp(tile[1], wide * warpsN) / (wide * warpsN));
  const FmaColumns columns = fmaColumns(lanes, op.getB().getType().getMinor() == 0);
  return layout::Layout(
      tile, {{1, 4, columns.apart}, {1, repN, wide * warpsN}, {0, lanes.deep, 1}, {0, repM, high * warpsM}},
      {{1, lanes.columns, columns.ofLanes}, {0, lanes.rows, lanes.deep}}, {{0, warpsM, high}, {1, warpsN, wide}});
}

BatchLayouts batchLayouts(BatchMmaOp op, int numWarps) {
  auto shapeOf = [](Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); };
  const ArrayRef<int64_t> a = shapeOf(op.getA()), acc = shapeOf(op.getAcc());
  const int bits = engineRow(op.getEngine()).operandBits, warps = static_cast<int>(std::gcd<int64_t>(a[0], numWarps)),
            warpsN = numWarps / warps;
  auto all = [&](const layout::Layout& one) { return layout::inBatches(one, a[0], warps); };
  // Two fragments of b are one of a, turned: x times its own transpose needs one of them.
  const layout::Layout b = warpsN == 1 && acc[2] % 16 == 0
                               ? layout::mmaOperandA({acc[2], a[2]}, 1, 1, bits).transposed({1, 0})
                               : layout::mmaOperandB({a[2], acc[2]}, 1, warpsN, bits);
  return {all(layout::mmaOperandA({a[1], a[2]}, 1, warpsN, bits)), all(b),
          all(layout::mmaAccumulator({acc[1], acc[2]}, 1, warpsN))};
}

layout::Layout fragmentLayout(MmaOp op) {
  const WarpgroupProduct p = warpgroupProduct(op);
  return layout::wgmmaSpreadOperandA({p.cover.m, p.cover.k}, p.teamsM, p.teamsN);
}

layout::Layout operandALayout(MmaOp op) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getA().getType()).getShape();
  const int warpsM = static_cast<int>(op.getWarpsM()), warpsN = static_cast<int>(op.getWarpsN());
  const int bits = engineRow(op.getEngine()).operandBits;
  if (isWgmma(op.getEngine())) return layout::wgmmaOperandA({shape.begin(), shape.end()}, warpsM / 4, warpsN, bits);
  return layout::mmaOperandA({shape.begin(), shape.end()}, warpsM, warpsN, bits);
}

}  // namespace tile::ir
