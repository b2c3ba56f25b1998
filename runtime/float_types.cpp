// float_types.cpp - element bits of any dtype as a number.
#include "runtime/float_types.h"

namespace tile {

double to_double(DType d, uint64_t bits) {
  switch (d) {
    case DType::i1:
      return (bits & 1) ? 1 : 0;
    case DType::i8:
      return static_cast<int8_t>(bits);
    case DType::i16:
      return static_cast<int16_t>(bits);
    case DType::i32:
      return static_cast<int32_t>(bits);
    case DType::i64:
      return static_cast<double>(static_cast<int64_t>(bits));
    case DType::u8:
      return static_cast<uint8_t>(bits);
    case DType::u16:
      return static_cast<uint16_t>(bits);
    case DType::u32:
      return static_cast<uint32_t>(bits);
    case DType::u64:
      return static_cast<double>(bits);
    case DType::f8e4m3:
      return fp8_e4m3::from_bits(static_cast<uint8_t>(bits));
    case DType::f8e5m2:
      return fp8_e5m2::from_bits(static_cast<uint8_t>(bits));
    case DType::f16:
      return half::from_bits(static_cast<uint16_t>(bits));
    case DType::bf16:
      return bfloat16::from_bits(static_cast<uint16_t>(bits));
    case DType::f32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case DType::f64:
      return std::bit_cast<double>(bits);
  }
  return 0;
}

}  // namespace tile
