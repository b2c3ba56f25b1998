// fragments.cpp - plans of fragment loads.
//
// Fragments (g = lane / 4, t = lane % 4, p = elements per 32-bit register):
//   A register r: row g + 8 * (r % 2), k = p * t + 4p * (r / 2) ...     B register r: column g, k = p * t + 4p * r ...
// ldmatrix gives lane l the pair (row l / 4, bytes 4 * (l % 4)) of each 8 x 16-byte matrix whose rows eight lanes point
// to; transposed, for 16-bit elements, column l / 4 and rows 2 * (l % 4), + 1. So reading along k needs no
// transposition.
#include "compiler/layout/fragments.h"

namespace tile::layout {

int64_t ThreadSum::of(int laneIndex, int warpIndex) const {
  int64_t sum = 0;
  for (const ThreadTerm& term : terms) sum += term.of(laneIndex, warpIndex);
  return sum;
}

int64_t ThreadSum::mask(int numWarps) const {
  int64_t bits = 0;
  for (int warp = 0; warp < numWarps; ++warp)
    for (int lane = 0; lane < 32; ++lane) bits |= of(lane, warp);
  return bits;
}

std::optional<SplitOffset> splitOffset(const SharedTile& tile, int64_t rowMask, int64_t byteMask, int64_t rowConstant,
                                       int64_t byteConstant) {
  if (!tile.swizzle) return SplitOffset{0, rowConstant * tile.pitch + byteConstant};
  const int64_t s = tile.swizzle;
  const int64_t rowLow = rowConstant % 8, inside = byteConstant % s;
  // No carries out of the bits that meet: row bits 0..2, byte bits below the panel.
  if ((rowLow & rowMask) || (inside & byteMask) || rowConstant < 0 || byteConstant < 0) return std::nullopt;
  const int64_t chunk = (rowLow * s >> 7) & (s / 16 - 1);
  return SplitOffset{inside ^ (chunk * 16), rowConstant * s + byteConstant / s * tile.rows * s};
}

namespace {

ThreadTerm laneTerm(int div, int mod, int mul) { return {ThreadTerm::lane, div, mod, mul}; }
ThreadTerm warpTerm(int div, int mod, int mul) { return {ThreadTerm::warp, div, mod, mul}; }

// One operand, seen along `outer` (m or n): `atom` outer elements, each made of matrices of 8.
struct Shape {
  int atom;    ///< 16 for A, 8 for B
  int stride;  ///< outer elements between repetitions
  int warpDiv, warpMod;
};

FragmentPlan elementPlan(FragmentPlan plan, bool kMinor, const Shape& shape, int reps, int perRepetition) {
  const int eb = plan.elementBytes, pack = 4 / eb;
  plan.access = FragmentPlan::elements;
  ThreadSum outer{{laneTerm(4, 8, 1), warpTerm(shape.warpDiv, shape.warpMod, shape.atom)}};
  ThreadSum k{{laneTerm(1, 4, pack)}};
  auto bytes = [&](ThreadSum sum) {
    for (ThreadTerm& term : sum.terms) term.mul *= eb;
    return sum;
  };
  plan.row = kMinor ? outer : k;
  plan.byte = kMinor ? bytes(k) : bytes(outer);
  for (int rep = 0; rep < reps; ++rep) {
    for (int r = 0; r < perRepetition; ++r) {
      // A registers alternate in rows first, B registers only along k.
      int outerConstant = rep * shape.stride + (perRepetition == 4 ? 8 * (r % 2) : 0);
      int kConstant = 4 * pack * (perRepetition == 4 ? r / 2 : r);
      FragmentLoad load;
      load.row = kMinor ? outerConstant : kConstant;
      load.byte = (kMinor ? kConstant : outerConstant) * eb;
      load.registers = {rep * perRepetition + r};
      for (int i = 0; i < pack; ++i) {
        load.elementRows.push_back(kMinor ? 0 : i);
        load.elementBytes.push_back(kMinor ? i * eb : 0);
      }
      plan.step.push_back(load);
    }
  }
  return plan;
}

FragmentPlan begin(const SharedTile& tile, bool kMinor, int registers) {
  FragmentPlan plan;
  plan.tile = tile;
  plan.elementBytes = tile.elementBytes;
  plan.registersPerStep = registers;
  const int k = tile.elementBytes == 8 ? 8 : 32 / tile.elementBytes;  // a mma.sync takes 32 bytes of k, or 8 doubles
  plan.rowStep = kMinor ? 0 : k;
  plan.byteStep = kMinor ? k * tile.elementBytes : 0;
  return plan;
}

// 64-bit elements, k steps of 8: lane % 4, + 4 in the registers of the instruction's upper half of k. `outer`: the
// lane's share along m or n.
FragmentPlan doublePlan(FragmentPlan plan, bool kMinor, ThreadSum outer) {
  plan.access = FragmentPlan::doubles;
  const ThreadSum k{{laneTerm(1, 4, 1)}};
  plan.row = kMinor ? outer : k;
  plan.byte = kMinor ? k : outer;
  for (ThreadTerm& term : plan.byte.terms) term.mul *= 8;
  return plan;
}

FragmentLoad doubleLoad(bool kMinor, int64_t outer, int64_t k, std::vector<int> registers) {
  FragmentLoad load;
  load.row = kMinor ? outer : k;
  load.byte = 8 * (kMinor ? k : outer);
  load.count = static_cast<int>(registers.size());
  load.registers = std::move(registers);
  return load;
}

}  // namespace

FragmentPlan planOperandA(const SharedTile& tile, bool kMinor, int warpsM, int, int reps) {
  FragmentPlan plan = begin(tile, kMinor, 4 * reps);
  const Shape shape{16, 16 * warpsM, 1, warpsM};
  if (tile.elementBytes == 8) {
    ThreadSum rows =
        kMinor ? ThreadSum{{laneTerm(4, 4, 2), laneTerm(16, 2, 1)}} : ThreadSum{{laneTerm(4, 2, 8), laneTerm(8, 4, 2)}};
    rows.terms.push_back(warpTerm(1, warpsM, 16));
    plan = doublePlan(std::move(plan), kMinor, rows);
    for (int rep = 0; rep < reps; ++rep)
      for (int half = 0; half < 2; ++half) {  // of k
        const int64_t row = rep * shape.stride;
        const int first = 4 * rep + 2 * half;
        if (kMinor)
          for (int i = 0; i < 2; ++i) plan.step.push_back(doubleLoad(kMinor, row + 8 * i, 4 * half, {first + i}));
        else
          plan.step.push_back(doubleLoad(kMinor, row, 4 * half, {first, first + 1}));
      }
    return plan;
  }
  if (!kMinor && tile.elementBytes != 2) return elementPlan(plan, kMinor, shape, reps, 4);
  // Matrices in register order: rows 0-7, rows 8-15, then the same 16 bytes further along k.
  if (kMinor) {
    plan.row.terms = {laneTerm(1, 16, 1), warpTerm(1, warpsM, 16)};
    plan.byte.terms = {laneTerm(16, 2, 16)};
  } else {
    plan.access = FragmentPlan::ldmatrixTrans;
    plan.row.terms = {laneTerm(1, 8, 1), laneTerm(16, 2, 8)};
    plan.byte.terms = {laneTerm(8, 2, 16), warpTerm(1, warpsM, 32)};
  }
  for (int rep = 0; rep < reps; ++rep) {
    FragmentLoad load;
    load.count = 4;
    load.row = kMinor ? rep * shape.stride : 0;
    load.byte = kMinor ? 0 : 2 * rep * shape.stride;
    load.registers = {4 * rep, 4 * rep + 1, 4 * rep + 2, 4 * rep + 3};
    plan.step.push_back(load);
  }
  return plan;
}

FragmentPlan planOperandB(const SharedTile& tile, bool kMinor, int warpsM, int warpsN, int reps) {
  FragmentPlan plan = begin(tile, kMinor, 2 * reps);
  const Shape shape{8, 8 * warpsN, warpsM, warpsN};
  if (tile.elementBytes == 8) {
    ThreadSum columns = kMinor ? ThreadSum{{laneTerm(4, 2, 4), laneTerm(8, 2, 2), laneTerm(16, 2, 8)}}
                               : ThreadSum{{laneTerm(4, 2, 1), laneTerm(8, 2, 8), laneTerm(16, 2, 2)}};
    columns.terms.push_back(warpTerm(warpsM, warpsN, 16));
    plan = doublePlan(std::move(plan), kMinor, columns);
    for (int rep = 0; rep < reps; ++rep)
      for (int half = 0; half < 2; ++half)  // of k
        plan.step.push_back(
            doubleLoad(kMinor, rep / 2 * 2 * shape.stride + rep % 2 * (kMinor ? 1 : 4), 4 * half, {2 * rep + half}));
    return plan;
  }
  if (!kMinor && tile.elementBytes != 2) return elementPlan(plan, kMinor, shape, reps, 2);
  // Matrices: k low and k high of one repetition, then of the next one, which lanes 16-31 point to.
  if (kMinor) {
    plan.row.terms = {laneTerm(1, 8, 1), laneTerm(16, 2, shape.stride), warpTerm(warpsM, warpsN, 8)};
    plan.byte.terms = {laneTerm(8, 2, 16)};
  } else {
    plan.access = FragmentPlan::ldmatrixTrans;
    plan.row.terms = {laneTerm(1, 16, 1)};
    plan.byte.terms = {laneTerm(16, 2, 2 * shape.stride), warpTerm(warpsM, warpsN, 16)};
  }
  for (int rep = 0; rep < reps; rep += 2) {
    FragmentLoad load;
    load.row = kMinor ? rep * shape.stride : 0;
    load.byte = kMinor ? 0 : 2 * rep * shape.stride;
    load.registers = {2 * rep, 2 * rep + 1};
    if (rep + 1 < reps) load.registers.insert(load.registers.end(), {2 * rep + 2, 2 * rep + 3});
    load.count = static_cast<int>(load.registers.size());
    plan.step.push_back(load);
  }
  return plan;
}

}  // namespace tile::layout
