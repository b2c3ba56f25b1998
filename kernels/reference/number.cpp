// number.cpp - conversions by the definition of the formats: sign, exponent field, fraction.
#include "kernels/reference/number.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tile::reference {
namespace {

struct FloatFormat {
  int exponent_bits, fraction_bits;
  bool has_infinity;  // e4m3 spends the infinity codes on numbers and keeps one NaN
};

FloatFormat format_of(DType type) {
  switch (type) {
    case DType::f8e4m3:
      return {4, 3, false};
    case DType::f8e5m2:
      return {5, 2, true};
    case DType::f16:
      return {5, 10, true};
    default:
      return {8, 7, true};  // bf16
  }
}

double decode_small_float(DType type, uint32_t bits) {
  FloatFormat f = format_of(type);
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  uint32_t fraction = bits & ((1u << f.fraction_bits) - 1);
  uint32_t exponent = (bits >> f.fraction_bits) & ((1u << f.exponent_bits) - 1);
  double sign = (bits >> (f.exponent_bits + f.fraction_bits)) & 1 ? -1.0 : 1.0;
  uint32_t top = (1u << f.exponent_bits) - 1;
  if (f.has_infinity && exponent == top)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (!f.has_infinity && exponent == top && fraction == (1u << f.fraction_bits) - 1)
    return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - f.fraction_bits);
  return sign * std::ldexp(fraction + (1u << f.fraction_bits), static_cast<int>(exponent) - bias - f.fraction_bits);
}

uint32_t encode_small_float(DType type, double value) {
  FloatFormat f = format_of(type);
  int bias = (1 << (f.exponent_bits - 1)) - 1;
  uint32_t top = (1u << f.exponent_bits) - 1,
           sign = std::signbit(value) ? 1u << (f.exponent_bits + f.fraction_bits) : 0;
  uint32_t nan = (top << f.fraction_bits) | ((1u << f.fraction_bits) - 1), infinity = top << f.fraction_bits;
  if (std::isnan(value)) return sign | nan;
  double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  // The unit in the last place of the result: that of the binade, but never below the subnormals' one.
  int exponent = std::max(std::isinf(magnitude) ? 2000 : std::ilogb(magnitude), 1 - bias);
  if (exponent > bias + 1) return sign | (f.has_infinity ? infinity : nan);
  double units = std::nearbyint(std::ldexp(magnitude, f.fraction_bits - exponent));  // ties to even by default
  // Rounding up into the next binade carries into the exponent field by itself.
  uint32_t code = static_cast<uint32_t>(units) + (static_cast<uint32_t>(exponent + bias - 1) << f.fraction_bits);
  if (code >= (f.has_infinity ? infinity : nan)) code = f.has_infinity ? infinity : nan;
  return sign | code;
}

template <class T>
T read(const void* bits) {
  T value;
  std::memcpy(&value, bits, sizeof value);
  return value;
}

template <class T>
void write_integer(double value, void* bits) {
  double low = static_cast<double>(std::numeric_limits<T>::min()),
         high = static_cast<double>(std::numeric_limits<T>::max());
  double rounded = std::nearbyint(value);
  // `high` of a 64-bit type rounds up to 2^63 (2^64), which the type cannot hold: hence >=.
  T result = rounded >= high  ? std::numeric_limits<T>::max()
             : rounded <= low ? std::numeric_limits<T>::min()
                              : static_cast<T>(rounded);
  std::memcpy(bits, &result, sizeof result);
}

}  // namespace

double decode(DType type, const void* bits) {
  switch (type) {
    case DType::i1:
      return read<uint8_t>(bits) != 0;
    case DType::i8:
      return read<int8_t>(bits);
    case DType::i16:
      return read<int16_t>(bits);
    case DType::i32:
      return read<int32_t>(bits);
    case DType::i64:
      return static_cast<double>(read<int64_t>(bits));
    case DType::u8:
      return read<uint8_t>(bits);
    case DType::u16:
      return read<uint16_t>(bits);
    case DType::u32:
      return read<uint32_t>(bits);
    case DType::u64:
      return static_cast<double>(read<uint64_t>(bits));
    case DType::f8e4m3:
    case DType::f8e5m2:
      return decode_small_float(type, read<uint8_t>(bits));
    case DType::f16:
      return decode_small_float(type, read<uint16_t>(bits));
    case DType::bf16:
      return std::bit_cast<float>(static_cast<uint32_t>(read<uint16_t>(bits)) << 16);
    case DType::f32:
      return read<float>(bits);
    case DType::f64:
      return read<double>(bits);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void encode(DType type, double value, void* bits) {
  switch (type) {
    case DType::i1: {
      uint8_t b = value != 0;
      std::memcpy(bits, &b, 1);
      return;
    }
    case DType::i8:
      return write_integer<int8_t>(value, bits);
    case DType::i16:
      return write_integer<int16_t>(value, bits);
    case DType::i32:
      return write_integer<int32_t>(value, bits);
    case DType::i64:
      return write_integer<int64_t>(value, bits);
    case DType::u8:
      return write_integer<uint8_t>(value, bits);
    case DType::u16:
      return write_integer<uint16_t>(value, bits);
    case DType::u32:
      return write_integer<uint32_t>(value, bits);
    case DType::u64:
      return write_integer<uint64_t>(value, bits);
    case DType::f8e4m3:
    case DType::f8e5m2: {
      uint8_t b = static_cast<uint8_t>(encode_small_float(type, value));
      std::memcpy(bits, &b, 1);
      return;
    }
    case DType::f16:
    case DType::bf16: {
      uint16_t b = static_cast<uint16_t>(encode_small_float(type, value));
      std::memcpy(bits, &b, 2);
      return;
    }
    case DType::f32: {
      float b = static_cast<float>(value);
      std::memcpy(bits, &b, 4);
      return;
    }
    case DType::f64:
      std::memcpy(bits, &value, 8);
      return;
  }
}

double round_to(DType type, double value) {
  uint64_t bits = 0;
  encode(type, value, &bits);
  return decode(type, &bits);
}

double round_to_tf32(double value) {
  uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;  // infinity, NaN
  bits += 0xfffu + ((bits >> 13) & 1u);                   // nearest even at bit 13
  return std::bit_cast<float>(bits & ~0x1fffu);
}

double epsilon(DType type) {
  switch (type) {
    case DType::f8e4m3:
      return 0x1p-3;
    case DType::f8e5m2:
      return 0x1p-2;
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    case DType::f32:
      return 0x1p-23;
    case DType::f64:
      return 0x1p-52;
    default:
      return 0;
  }
}

}  // namespace tile::reference
