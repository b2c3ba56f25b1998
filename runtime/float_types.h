// float_types.h - the narrow floating-point types as C++ storage types, with exact conversions on the host.
// half and bfloat16 have the layout of CUDA's __half and __nv_bfloat16, so a pointer to one may be passed as the other.
// Conversions round to nearest, ties to even, straight from double (never through float, which would round twice).
// They are free of the FPU's mode: denormals are kept, infinities and the sign of zero survive, a NaN stays a (quiet)
// NaN with its sign and upper payload bits. The two fp8 types saturate instead of overflowing, as the GPU's cvt does.
#pragma once
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dtype.h"

namespace tile {
namespace detail {

/// A binary float format narrower than f32: sign, E exponent bits, M mantissa bits.
struct NarrowFormat {
  int exponent_bits, mantissa_bits;
  bool has_inf;    ///< all-ones exponent is inf/NaN as in IEEE 754; else only the all-ones pattern is NaN (e4m3)
  bool saturates;  ///< values beyond the largest finite (and inf) become the largest finite
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr uint32_t exponent_mask() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  constexpr uint32_t max_finite() const {
    return has_inf ? exponent_mask() - 1 : (exponent_mask() | ((1u << mantissa_bits) - 1)) - 1;
  }
};

constexpr uint32_t encode(NarrowFormat f, double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint32_t sign = (bits >> 63) ? f.sign_bit() : 0;
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const int source_exponent = static_cast<int>(magnitude >> 52);
  const uint64_t fraction = magnitude & ((uint64_t{1} << 52) - 1);
  if (source_exponent == 0x7ff && fraction != 0) {  // NaN: keep the upper payload bits, set the quiet bit
    if (!f.has_inf) return sign | f.exponent_mask() | ((1u << f.mantissa_bits) - 1);
    return sign | f.exponent_mask() | (1u << (f.mantissa_bits - 1)) |
           static_cast<uint32_t>(fraction >> (52 - f.mantissa_bits));
  }
  const uint32_t overflow = f.saturates ? f.max_finite() : f.exponent_mask();
  if (source_exponent == 0x7ff) return sign | overflow;
  if (source_exponent == 0) return sign;                   // a double denormal is far below half of any narrow denormal
  const int exponent = source_exponent - 1023 + f.bias();  // biased as in the narrow format; <= 0: denormal there
  if (exponent >= (1 << f.exponent_bits)) return sign | overflow;
  const uint64_t significand = fraction | (uint64_t{1} << 52);
  const int drop = 52 - f.mantissa_bits + (exponent > 0 ? 0 : 1 - exponent);
  if (drop > 53) return sign;  // less than half of the smallest denormal
  // Adding half an ulp less one, plus the lowest kept bit, carries exactly when nearest-even rounds up; a carry out of
  // the mantissa moves into the exponent field, which is the right answer for every format here.
  const uint64_t kept = significand >> drop;
  const uint64_t rounded = (significand + ((uint64_t{1} << (drop - 1)) - 1) + (kept & 1)) >> drop;
  const uint64_t hidden = uint64_t{1} << f.mantissa_bits;
  const uint64_t result =
      exponent > 0 ? (static_cast<uint64_t>(exponent) << f.mantissa_bits) + (rounded - hidden) : rounded;
  return sign | (result > f.max_finite() ? overflow : static_cast<uint32_t>(result));
}

constexpr float decode(NarrowFormat f, uint32_t bits) {
  const uint32_t sign = (bits & f.sign_bit()) ? 0x80000000u : 0;
  const uint32_t magnitude = bits & (f.sign_bit() - 1);
  const uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  const uint32_t exponent = magnitude >> f.mantissa_bits;
  if (magnitude > f.max_finite())
    return std::bit_cast<float>(
        sign | 0x7f800000u |
        (f.has_inf ? mantissa << (23 - f.mantissa_bits) : 0x00400000u | (mantissa << (23 - f.mantissa_bits))));
  if (exponent == 0) {
    if (f.exponent_bits == 8)
      return std::bit_cast<float>(sign | (mantissa << (23 - f.mantissa_bits)));  // bf16: f32's own denormals
    // mantissa * 2^(1 - bias - M), exact in f32 because the exponent range is far inside f32's
    const int scale = 1 - f.bias() - f.mantissa_bits;
    const float unit = std::bit_cast<float>(static_cast<uint32_t>(127 + scale) << 23);
    const float absolute = static_cast<float>(mantissa) * unit;
    return sign ? -absolute : absolute;
  }
  const uint32_t wide = exponent + static_cast<uint32_t>(127 - f.bias());
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << (23 - f.mantissa_bits)));
}

/// Storage type: just the bits. Arithmetic happens in float after the implicit conversion.
template <class Bits, int Exponent, int Mantissa, bool HasInf, bool Saturates>
struct NarrowFloat {
  static constexpr NarrowFormat kFormat{Exponent, Mantissa, HasInf, Saturates};
  Bits bits;

  NarrowFloat() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  constexpr explicit NarrowFloat(T value) : bits(static_cast<Bits>(encode(kFormat, static_cast<double>(value)))) {}
  static constexpr NarrowFloat from_bits(Bits b) {
    NarrowFloat out{};
    out.bits = b;
    return out;
  }
  constexpr operator float() const { return decode(kFormat, bits); }
};
template <class T>
constexpr bool kIsNarrow = false;
template <class Bits, int Exponent, int Mantissa, bool HasInf, bool Saturates>
constexpr bool kIsNarrow<NarrowFloat<Bits, Exponent, Mantissa, HasInf, Saturates>> = true;
template <class T>
concept Narrow = kIsNarrow<T>;

// The float arithmetic of two of them, said here: both would become operands of tiles (dsl/value.h) as well.
constexpr float operator-(Narrow auto x) { return -float(x); }
constexpr bool operator!(Narrow auto x) { return !float(x); }
constexpr float operator+(Narrow auto x, Narrow auto y) { return float(x) + float(y); }
constexpr float operator-(Narrow auto x, Narrow auto y) { return float(x) - float(y); }
constexpr float operator*(Narrow auto x, Narrow auto y) { return float(x) * float(y); }
constexpr float operator/(Narrow auto x, Narrow auto y) { return float(x) / float(y); }
constexpr bool operator==(Narrow auto x, Narrow auto y) { return float(x) == float(y); }
constexpr auto operator<=>(Narrow auto x, Narrow auto y) { return float(x) <=> float(y); }

}  // namespace detail

using half = detail::NarrowFloat<uint16_t, 5, 10, true, false>;
using bfloat16 = detail::NarrowFloat<uint16_t, 8, 7, true, false>;
using fp8_e4m3 =
    detail::NarrowFloat<uint8_t, 4, 3, false, true>;  ///< "fn" flavour: no infinity, NaN = 0x7f, largest 448
using fp8_e5m2 = detail::NarrowFloat<uint8_t, 5, 2, true, true>;  ///< has infinity, but conversions saturate at 57344

static_assert(sizeof(half) == 2 && alignof(half) == 2 && std::is_trivially_copyable_v<half> &&
              std::is_standard_layout_v<half>);
static_assert(sizeof(bfloat16) == 2 && sizeof(fp8_e4m3) == 1 && sizeof(fp8_e5m2) == 1);

/// The DType of a C++ storage type (cv ignored); kHasDType<T> says whether there is one.
template <class T>
constexpr int dtype_index() {
  using U = std::remove_cv_t<T>;
  constexpr auto i = [](DType d) { return static_cast<int>(d); };
  if constexpr (std::is_same_v<U, bool>)
    return i(DType::i1);
  else if constexpr (std::is_same_v<U, half>)
    return i(DType::f16);
  else if constexpr (std::is_same_v<U, bfloat16>)
    return i(DType::bf16);
  else if constexpr (std::is_same_v<U, fp8_e4m3>)
    return i(DType::f8e4m3);
  else if constexpr (std::is_same_v<U, fp8_e5m2>)
    return i(DType::f8e5m2);
  else if constexpr (std::is_same_v<U, float>)
    return i(DType::f32);
  else if constexpr (std::is_same_v<U, double>)
    return i(DType::f64);
  else if constexpr (std::is_integral_v<U> && std::is_signed_v<U>)
    return sizeof(U) == 1   ? i(DType::i8)
           : sizeof(U) == 2 ? i(DType::i16)
           : sizeof(U) == 4 ? i(DType::i32)
                            : i(DType::i64);
  else if constexpr (std::is_integral_v<U>)
    return sizeof(U) == 1   ? i(DType::u8)
           : sizeof(U) == 2 ? i(DType::u16)
           : sizeof(U) == 4 ? i(DType::u32)
                            : i(DType::u64);
  else
    return -1;
}
template <class T>
inline constexpr bool kHasDType = dtype_index<T>() >= 0;
template <class T>
requires(kHasDType<T>) inline constexpr DType kDTypeOf = static_cast<DType>(dtype_index<T>());

/// The value of `bits` read as a `d`, for printing and references (i64/u64 beyond 2^53 lose digits).
double to_double(DType d, uint64_t bits);

}  // namespace tile
