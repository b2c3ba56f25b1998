// matrix_instructions.cpp - what a warp does with 8x8 matrices and fragments: ldmatrix, stmatrix, mma.sync.
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/gpu/simt/machine.h"
#include "tests/gpu/simt/numbers.h"

namespace tile::testing {
namespace {

struct MmaRecord {
  const uint64_t* args;
  uint64_t* results;
};

// mma.sync m16n8: A registers a0..a3, B b0 b1, C c0..c3 per lane, as in the PTX ISA's fragment tables.
void mma(Operand aKind, Operand bKind, const Call& call) {
  int pack = 4 / operandBytes(aKind), k = 8 * pack;
  MmaRecord record{call.args, call.results};
  collective(warpMeeting(), laneOf(self()), "mma.sync", record, [&](std::vector<MmaRecord*>& lanes) {
    for (int lane = 0; lane < 32; ++lane)
      for (int c = 0; c < 4; ++c) {
        int row = lane / 4 + (c >= 2 ? 8 : 0), col = lane % 4 * 2 + c % 2;
        double sum = 0;
        for (int kk = 0; kk < k; ++kk) {
          int half = kk / (4 * pack), inHalf = kk % (4 * pack), owner = inHalf / pack, i = inHalf % pack;
          const uint64_t* a = lanes[static_cast<size_t>((row % 8) * 4 + owner)]->args;
          const uint64_t* b = lanes[static_cast<size_t>(col * 4 + owner)]->args;
          const uint64_t left = a[half * 2 + row / 8], right = b[4 + half];
          sum += aKind == Operand::b1
                     ? commonBits(left, right)
                     : static_cast<double>(packedValue(aKind, left, i)) * packedValue(bKind, right, i);
        }
        const MmaRecord& own = *lanes[static_cast<size_t>(lane)];
        own.results[c] = aKind == Operand::s8 || aKind == Operand::b1
                             ? static_cast<uint32_t>(static_cast<int32_t>(own.args[6 + c]) + static_cast<int32_t>(sum))
                             : fromFloat(static_cast<float>(toFloat(own.args[6 + c]) + sum));
      }
  });
}

void mma(Operand kind, const Call& call) { mma(kind, kind, call); }

// The same of f64: m16n8k8 with a0..a3, b0 b1, c0..c3, and m8n8k4 with a0, b0, c0 c1. Sums in order of k, every step
// rounded once, as a chain of fused multiply-adds.
void mmaDouble(int m, int k, const Call& call) {
  const int aRegisters = m * k / 32, bRegisters = k / 4;
  MmaRecord record{call.args, call.results};
  collective(warpMeeting(), laneOf(self()), "mma.sync", record, [&](std::vector<MmaRecord*>& lanes) {
    for (int lane = 0; lane < 32; ++lane)
      for (int c = 0; c < m / 4; ++c) {
        const int row = lane / 4 + (c >= 2 ? 8 : 0), col = lane % 4 * 2 + c % 2;
        const MmaRecord& own = *lanes[static_cast<size_t>(lane)];
        double sum = std::bit_cast<double>(own.args[aRegisters + bRegisters + c]);
        for (int kk = 0; kk < k; ++kk) {
          const uint64_t* a = lanes[static_cast<size_t>(row % 8 * 4 + kk % 4)]->args;
          const uint64_t* b = lanes[static_cast<size_t>(col * 4 + kk % 4)]->args;
          sum = std::fma(std::bit_cast<double>(a[kk / 4 * (m / 8) + row / 8]),
                         std::bit_cast<double>(b[aRegisters + kk / 4]), sum);
        }
        own.results[c] = std::bit_cast<uint64_t>(sum);
      }
  });
}

struct MoveRecord {
  uint64_t address;
  std::array<uint32_t, 4> values;
};

/// Element (row, col) of matrix m: a 16-bit place at the row address lane 8m + row gave.
char* place(const std::vector<MoveRecord*>& lanes, int m, int row, int col, bool writes) {
  MoveRecord* owner = lanes[static_cast<size_t>(m * 8 + row)];
  if (owner->address % 16) fail("ldmatrix or stmatrix: row address not aligned to 16 bytes");
  SharedMemory& shared = program().shared;
  uint32_t address = shared.address(owner->address, 16) + static_cast<uint32_t>(2 * col);
  int thread = self().thread / 32 * 32 + m * 8 + row;
  writes ? shared.threadWrites(thread, address, 2) : shared.threadReads(thread, address, 2);
  return shared.at(address);
}

// .xN: lanes 8i..8i+7 give the row addresses of matrix i; lane l holds elements (l/4, 2(l%4)) and the next of each
// matrix, or the same of the transposed matrix.
void moveMatrices(int count, bool trans, bool store, MoveRecord& record) {
  collective(warpMeeting(), laneOf(self()), store ? "stmatrix" : "ldmatrix", record,
             [&](std::vector<MoveRecord*>& lanes) {
               for (int lane = 0; lane < 32; ++lane)
                 for (int m = 0; m < count; ++m)
                   for (int i = 0; i < 2; ++i) {
                     int row = lane / 4, col = lane % 4 * 2 + i;
                     if (trans) std::swap(row, col);
                     uint32_t& reg = lanes[static_cast<size_t>(lane)]->values[static_cast<size_t>(m)];
                     char* at = place(lanes, m, row, col, store);
                     uint16_t half = static_cast<uint16_t>(reg >> 16 * i);
                     if (store)
                       std::memcpy(at, &half, 2);
                     else {
                       std::memcpy(&half, at, 2);
                       reg = (reg & ~(0xffffu << 16 * i)) | static_cast<uint32_t>(half) << 16 * i;
                     }
                   }
             });
}

}  // namespace

bool matrixInstruction(const Call& c) {
  if (c.is("mma.m16n8k16.row.col.f32.f32"))
    mma(Operand::f16, c);
  else if (c.is("mma.m16n8k16.row.col.bf16"))
    mma(Operand::bf16, c);
  else if (c.is("mma.m16n8k8.row.col.tf32"))
    mma(Operand::tf32, c);
  else if (c.is("mma.m16n8k32.row.col.s8"))
    mma(Operand::s8, c);
  else if (c.is("mma.and.popc.m16n8k256.row.col.b1"))
    mma(Operand::b1, c);
  else if (c.is("mma.m16n8k32.row.col.f32.e"))
    mma(c.has("f32.e4m3.") ? Operand::e4m3 : Operand::e5m2, c.has(".e4m3.f32") ? Operand::e4m3 : Operand::e5m2, c);
  else if (c.is("mma.m16n8k8.row.col.f64"))
    mmaDouble(16, 8, c);
  else if (c.is("mma.m8n8k4.row.col.f64"))
    mmaDouble(8, 4, c);
  else if (c.is("ldmatrix.") || c.is("stmatrix.")) {
    bool store = c.is("stmatrix.");
    int count = store ? c.inst.arguments - 1 : static_cast<int>(c.inst.resultBits.size());
    MoveRecord record{c.args[0], {}};
    for (int i = 0; store && i < count; ++i)
      record.values[static_cast<size_t>(i)] = static_cast<uint32_t>(c.args[1 + i]);
    moveMatrices(count, c.has(".trans"), store, record);
    for (int i = 0; !store && i < count; ++i) c.results[i] = record.values[static_cast<size_t>(i)];
  } else {
    return false;
  }
  return true;
}

bool matrixStatement(const AsmStatement& s, AsmFrame& f) {
  bool store = s.is("stmatrix.");
  if (!store && !s.is("ldmatrix.")) return false;
  const AsmOperand& list = s.operands[store ? 1 : 0];
  std::vector<AsmOperand> registers = list.kind == AsmOperand::vector ? list.parts : std::vector<AsmOperand>{list};
  MoveRecord record{f.address(s.operands[store ? 0 : 1]), {}};
  for (size_t i = 0; store && i < registers.size(); ++i) record.values[i] = static_cast<uint32_t>(f.get(registers[i]));
  moveMatrices(static_cast<int>(registers.size()), s.has(".trans"), store, record);
  for (size_t i = 0; !store && i < registers.size(); ++i) f.set(registers[i], record.values[i]);
  return true;
}

}  // namespace tile::testing
