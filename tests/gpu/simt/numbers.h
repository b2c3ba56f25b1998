// numbers.h - the number formats of the simulated machine, from bits to values.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/float_types.h"

namespace tile::testing {

inline float toFloat(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
inline uint64_t fromFloat(float value) { return std::bit_cast<uint32_t>(value); }
inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

inline float halfToFloat(uint16_t bits) { return half::from_bits(bits); }
inline float bf16ToFloat(uint16_t bits) { return bfloat16::from_bits(bits); }

/// The nearest number with 10 bits of mantissa, of two the even one; what is no number stays.
inline uint32_t roundedToTf32(uint32_t bits) {
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  return (bits + 0xfffu + (bits >> 13 & 1)) & 0xffffe000u;
}

/// Element formats of matrix operands.
enum class Operand { f16, bf16, tf32, s8, u8, e4m3, e5m2, b1 };  // b1: 32 of them, a word
inline int operandBytes(Operand kind) {
  return kind == Operand::tf32 || kind == Operand::b1 ? 4 : kind == Operand::f16 || kind == Operand::bf16 ? 2 : 1;
}
/// The value of one element given its bytes in the low bits. A word of b1 has none: see commonBits.
inline float operandValue(Operand kind, uint32_t bits) {
  switch (kind) {
    case Operand::f16:
      return halfToFloat(static_cast<uint16_t>(bits));
    case Operand::bf16:
      return bf16ToFloat(static_cast<uint16_t>(bits));
    case Operand::tf32:
      return toFloat(bits & 0xffffe000u);
    case Operand::s8:
      return static_cast<int8_t>(bits);
    case Operand::u8:
      return static_cast<uint8_t>(bits);
    case Operand::e4m3:
      return fp8_e4m3::from_bits(static_cast<uint8_t>(bits));
    case Operand::e5m2:
      return fp8_e5m2::from_bits(static_cast<uint8_t>(bits));
    case Operand::b1:
      break;
  }
  return 0;
}
/// The product of two words of b1.
inline int commonBits(uint64_t a, uint64_t b) { return std::popcount(static_cast<uint32_t>(a & b)); }
/// Element `i` of a packed 32-bit register.
inline float packedValue(Operand kind, uint64_t reg, int i) {
  return operandValue(kind, static_cast<uint32_t>(reg >> 8 * operandBytes(kind) * i));
}

/// Two 8-bit floats as two f16.
inline uint64_t fp8PairToHalves(Operand kind, uint64_t bits) {
  auto one = [&](int i) { return static_cast<uint64_t>(half(packedValue(kind, bits, i)).bits); };
  return one(0) | one(1) << 16;
}

}  // namespace tile::testing
