// dtype.h - element types as the language names them, with their size and C++ storage type.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tile {

/// Order matters: within a kind (bool, signed, unsigned, float) later types are wider, and promotion picks the later one.
enum class DType : uint8_t { i1, i8, i16, i32, i64, u8, u16, u32, u64, f8e4m3, f8e5m2, f16, bf16, f32, f64 };
inline constexpr int kNumDTypes = 15;

constexpr std::string_view name(DType d) {
  constexpr std::string_view names[kNumDTypes] = {"i1",  "i8",  "i16",    "i32",    "i64", "u8",   "u16", "u32",
                                                  "u64", "f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64"};
  return names[static_cast<int>(d)];
}
/// Bytes one element takes in memory (i1 is stored as one byte, 0 or 1).
constexpr size_t size_of(DType d) {
  constexpr uint8_t sizes[kNumDTypes] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 1, 2, 2, 4, 8};
  return sizes[static_cast<int>(d)];
}
constexpr int bits_of(DType d) { return d == DType::i1 ? 1 : static_cast<int>(size_of(d)) * 8; }
constexpr bool is_float(DType d) { return d >= DType::f8e4m3; }
constexpr bool is_f8(DType d) { return d == DType::f8e4m3 || d == DType::f8e5m2; }
constexpr bool is_unsigned(DType d) { return d >= DType::u8 && d <= DType::u64; }
constexpr bool is_int(DType d) { return !is_float(d); }

}  // namespace tile
