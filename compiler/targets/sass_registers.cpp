// sass_registers.cpp - a table by opcode, measured on what ptxas 13.0 makes of all kernels of the catalog for sm_90a (a
// million instructions; every register that the vendor's disassembler names is one that this table finds).
//
// The low 9 bits of an opcode say what is done, the three above them where operands come from: form 1 takes the operand
// at bits 32 to 39 from a register, forms 4 to 6 a constant in its place, 2, 3 and 7 a constant and that register at
// bits 64 to 71. Destinations are at bits 16 to 23, the first operand at 24 to 31, whatever the form.
#include "compiler/targets/sass_registers.h"

#include <algorithm>
#include <iterator>

#include "compiler/targets/sass_blocks.h"

namespace tile::ir {
namespace {

constexpr int kZero = 255;  ///< RZ

/// Numbers of registers that are in the instruction's own bits.
enum Width : int {
  kAccess = -1,    ///< a load's or store's size, at bits 73 to 75
  kMatrices = -2,  ///< ldmatrix and stmatrix: 1, 2 or 4 at bits 72 and 73
  kMade = -3,      ///< what a conversion makes: 8 to 64 bits (0 to 3) at bits 75 and 76
  kFrom = -4,      ///< what it converts, at bits 84 and 85
};

/// When the field at bits 32 to 39 is a register.
enum class Second { inForm1, always, inForm2 };

struct Row {
  uint32_t operation;  ///< the low 9 bits
  int written, first, second, third;
  Second when = Second::inForm1;
};

/// Ordered by operation. Only uniform registers and predicates: all zero.
constexpr Row kRows[] = {
    // clang-format off
    {0x002, 1, 0, 1, 0},  // MOV
    {0x003, 1, 1, 0, 0},  // P2R
    {0x005, 2, 0, 0, 0},  // CS2R
    {0x007, 1, 1, 1, 0},  // SEL
    {0x008, 1, 1, 1, 0},  // FSEL
    {0x009, 1, 1, 1, 0},  // FMNMX
    {0x00b, 0, 1, 1, 0},  // FSETP
    {0x00c, 0, 1, 1, 0},  // ISETP
    {0x00f, 1, 1, 1, 1},  // VIMNMX3
    {0x010, 1, 1, 1, 1},  // IADD3
    {0x011, 1, 1, 1, 1},  // LEA
    {0x012, 1, 1, 1, 1},  // LOP3
    {0x013, 1, 0, 1, 0},  // IABS
    {0x016, 1, 1, 1, 1},  // PRMT
    {0x019, 1, 1, 1, 1},  // SHF
    {0x01a, 1, 1, 1, 0},  // SGXT
    {0x01c, 0, 0, 0, 0},  // PLOP3
    {0x020, 1, 1, 1, 0},  // FMUL
    {0x021, 1, 1, 1, 0},  // FADD
    {0x023, 1, 1, 1, 1},  // FFMA
    {0x024, 1, 1, 1, 1},  // IMAD
    {0x025, 2, 1, 1, 2},  // IMAD.WIDE
    {0x027, 1, 1, 1, 2},  // IMAD.HI
    {0x028, 2, 2, 2, 0},  // DMUL
    {0x029, 2, 2, 0, 2},  // DADD
    {0x02a, 0, 2, 2, 0},  // DSETP
    {0x02b, 2, 2, 2, 2},  // DFMA
    {0x02d, 0, 0, 0, 0},  // PREEXIT
    {0x02e, 0, 0, 0, 0},  // ACQBULK
    {0x02f, 0, 0, 0, 0},  // ELECT
    {0x030, 1, 1, 1, 0},  // HADD2
    {0x031, 1, 1, 1, 1},  // HFMA2 of bf16
    {0x032, 1, 1, 1, 0},  // HMUL2
    {0x034, 0, 1, 1, 0},  // HSETP2
    {0x035, 1, 1, 1, 1},  // HFMA2
    {0x036, 1, 1, 1, 0},  // VIADD
    {0x03b, kMatrices, 1, 0, 0},                     // LDSM
    {0x03c, 4, 4, 2, 4},                             // HMMA
    {0x03d, 4, 4, 2, 4},                             // BMMA
    {0x03e, 1, 1, 1, 1},                             // F2FP
    {0x03f, 8, 16, 8, 8},                            // DMMA
    {0x040, 1, 1, 1, 0},                             // HMNMX2
    {0x044, 0, 1, kMatrices, 0, Second::always},     // STSM
    {0x045, 1, 0, 1, 0},                             // I2FP
    {0x046, 1, 1, 1, 1},                             // VIADDMNMX
    {0x047, 1, 1, 1, 1},                             // VHMNMX
    {0x048, 1, 1, 1, 0},                             // VIMNMX
    {0x082, 0, 0, 0, 0},  // UMOV
    {0x083, 0, 0, 0, 0},  // UP2UR
    {0x086, 0, 0, 0, 0},  // VOTEU
    {0x087, 0, 0, 0, 0},  // USEL
    {0x08c, 0, 0, 0, 0},  // UISETP
    {0x090, 0, 0, 0, 0},  // UIADD3
    {0x091, 0, 0, 0, 0},  // ULEA
    {0x092, 0, 0, 0, 0},  // ULOP3
    {0x096, 0, 0, 0, 0},  // UPRMT
    {0x097, 0, 0, 0, 0},  // UIADD3.64
    {0x099, 0, 0, 0, 0},  // USHF
    {0x09a, 0, 0, 0, 0},  // USGXT
    {0x09c, 0, 0, 0, 0},  // UPLOP3
    {0x0a4, 0, 0, 0, 0},  // UIMAD
    {0x0a5, 0, 0, 0, 0},  // UIMAD.WIDE
    {0x0b9, 0, 0, 0, 0},  // ULDC
    {0x0bd, 0, 0, 0, 0},  // UFLO
    {0x0bf, 0, 0, 0, 0},  // UPOPC
    {0x0ca, 0, 1, 0, 0},  // R2UR
    {0x100, 1, 0, 1, 0},  // FLO
    {0x102, 0, 1, 1, 0},  // FCHK
    {0x104, 1, 0, 1, 0},  // F2F
    {0x105, 1, 0, 1, 0},  // F2I
    {0x106, 1, 0, 1, 0},  // I2F
    {0x107, 1, 0, 1, 0},  // FRND
    {0x108, 1, 0, 1, 0},  // MUFU
    {0x109, 1, 0, 1, 0},  // POPC
    {0x110, kMade, 0, kFrom, 0},                     // F2F from or to 64 bits, and so on
    {0x111, kMade, 0, kFrom, 0},                     // F2I
    {0x112, kMade, 0, kFrom, 0},                     // I2F
    {0x113, kMade, 0, kFrom, 0},                     // FRND
    {0x118, 0, 0, 0, 0},  // NOP
    {0x119, 1, 0, 0, 0},  // S2R
    {0x11a, 0, 0, 0, 0},  // DEPBAR
    {0x11b, 0, 0, 0, 0},  // ENDCOLLECTIVE
    {0x11d, 0, 0, 1, 0, Second::inForm2},            // BAR
    {0x141, 0, 0, 0, 0},  // BSYNC: its target is the next instruction
    {0x142, 0, 0, 0, 0},  // BREAK
    {0x144, 0, 0, 0, 0},  // CALL
    {0x145, 0, 0, 0, 0},  // BSSY
    {0x146, 0, 0, 0, 0},  // YIELD
    {0x147, 0, 0, 0, 0},  // BRA
    {0x14d, 0, 0, 0, 0},  // EXIT
    {0x150, 0, 2, 0, 0},  // RET
    {0x181, kAccess, 2, 0, 0},                       // LDG
    {0x182, kAccess, 1, 0, 0},                       // LDC
    {0x183, kAccess, 1, 0, 0},                       // LDL
    {0x184, kAccess, 1, 0, 0},                       // LDS
    {0x186, 0, 2, kAccess, 0, Second::always},       // STG
    {0x187, 0, 1, kAccess, 0, Second::always},       // STL
    {0x188, 0, 1, kAccess, 0, Second::always},       // STS
    {0x18e, 0, 2, kAccess, 0, Second::always},       // REDG of integers
    {0x18f, 0, 0, 0, 0},                             // CCTL.IVALL
    {0x192, 0, 0, 0, 0},                             // MEMBAR
    {0x1a6, 0, 2, kAccess, 0, Second::always},       // REDG
    {0x1a7, 0, 1, 1, 0, Second::always},             // SYNCS of a barrier: arrivals and tests
    {0x1a8, 2, 2, 2, 0, Second::always},             // ATOMG
    {0x1ab, 0, 0, 0, 0},  // ERRBAR, CGAERRBAR
    {0x1af, 0, 0, 0, 0},  // LDGDEPBAR
    {0x1b0, 0, 1, 0, 0},  // ARRIVES
    {0x1b2, 0, 0, 0, 0},  // SYNCS.EXCH
    {0x1b4, 0, 0, 0, 0},  // UTMALDG
    {0x1b5, 0, 0, 0, 0},  // UTMASTG
    {0x1b6, 0, 0, 0, 0},  // UTMAREDG
    {0x1b7, 0, 0, 0, 0},  // UTMACMDFLUSH
    {0x1b9, 0, 0, 0, 0},  // UTMACCTL
    {0x1c3, 0, 0, 0, 0},  // S2UR
    {0x1c4, 0, 1, 0, 0},  // REDUX
    {0x1c5, 0, 0, 0, 0},  // WARPGROUP
    {0x1c6, 0, 0, 0, 0},  // FENCE.VIEW.ASYNC
    {0x1c8, 0, 0, 0, 0},  // USETMAXREG
    // clang-format on
};

SassRange range(uint64_t field, int count) {
  const int first = static_cast<int>(field & 0xff);
  return first == kZero || count == 0 ? SassRange{} : SassRange{first, count};
}

/// Columns of a product with integers: 8, 16, 24, 32, then every 16, counted from 0 (three to a step for bytes).
int integerColumns(int step) { return step < 4 ? 8 * (step + 1) : 16 * (step - 1); }

std::optional<SassRegisters> warpgroupProduct(const SassInstruction& inst) {
  const uint32_t op = inst.opcode();
  const int code = static_cast<int>(inst.low >> 53 & 0x3f);
  int columns = 8 * ((code & 0x1f) + 1), perWord = 2;  // accumulators of 32 bits: half a column for each thread
  switch (op) {
    case kHgmma:
    case kHgmmaReg:
    case kQgmma:
    case kQgmmaReg:
      if (!(inst.high >> 11 & 1)) perWord = 4;
      break;
    case kIgmma:
    case kIgmmaReg:
      columns = integerColumns(code / 3);
      break;
    case kBgmma:
    case kBgmmaReg:
      columns = integerColumns(code & 0x1f);
      break;
    default:
      return std::nullopt;
  }
  const bool fromRegisters = op >> 9 == kHgmmaReg >> 9;
  SassRegisters r;
  r.written = range(inst.low >> 16, columns / perWord);
  if (fromRegisters) r.read[0] = range(inst.low >> 24, 4);
  r.read[2] = range(inst.high, columns / perWord);
  return r;
}

int width(int entry, const SassInstruction& inst) {
  if (entry == kMatrices) return 1 << (inst.high >> 8 & 3);
  if (entry == kMade) return (inst.high >> 11 & 3) == 3 ? 2 : 1;
  if (entry == kFrom) return (inst.high >> 20 & 3) == 3 ? 2 : 1;
  if (entry != kAccess) return entry;
  const int size = static_cast<int>(inst.high >> 9 & 7);  // 4: one word, 5: two, 6: four, below: parts of a word
  return size == 5 ? 2 : size >= 6 ? 4 : 1;
}

/// Shuffles have constants for the lane, the mask or both, by form.
SassRegisters shuffle(const SassInstruction& inst, uint32_t form) {
  SassRegisters r{range(inst.low >> 16, 1), {range(inst.low >> 24, 1), {}, {}}};
  if (form == 1 || form == 2) r.read[1] = range(inst.low >> 32, 1);
  if (form == 1 || form == 4) r.read[2] = range(inst.high, 1);
  return r;
}

}  // namespace

std::optional<SassRegisters> registersOf(const SassInstruction& inst) {
  if (auto product = warpgroupProduct(inst)) return product;
  const uint32_t operation = inst.opcode() & 0x1ff, form = inst.opcode() >> 9;
  if (operation == 0x189) return shuffle(inst, form);
  if (operation == 0x1ae)  // LDGSTS: both are addresses
    return SassRegisters{{}, {range(inst.low >> 24, 2), range(inst.low >> 16, 1), {}}};
  if (operation == 0x148)  // WARPSYNC: of the lanes of a register, or of all
    return form == 1 ? SassRegisters{{}, {range(inst.low >> 24, 1), {}, {}}} : SassRegisters{};
  const Row* row = std::lower_bound(std::begin(kRows), std::end(kRows), operation,
                                    [](const Row& r, uint32_t value) { return r.operation < value; });
  if (row == std::end(kRows) || row->operation != operation) return std::nullopt;
  SassRegisters r;
  r.written = range(inst.low >> 16, width(row->written, inst));
  if (inst.opcode() == kArrive) r.written = range(inst.low >> 16, 2);  // a barrier's state; tests write a predicate
  r.read[0] = range(inst.low >> 24, width(row->first, inst));
  const bool second = row->when == Second::always || form == (row->when == Second::inForm1 ? 1u : 2u);
  if (second) r.read[1] = range(inst.low >> 32, width(row->second, inst));
  r.read[2] = range(inst.high, width(row->third, inst));
  return r;
}

}  // namespace tile::ir
