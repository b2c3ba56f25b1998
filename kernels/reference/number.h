// number.h - element types as a reference sees them: bits to double, double to bits, and how a computation rounds.
// Independent of the compiler and of the float types the language uses, so that an error there cannot hide here.
#pragma once
#include <cstdint>

#include "runtime/dtype.h"

namespace tile::reference {

/// The value stored at `bits` (any alignment). Integers up to 2^53 are exact.
double decode(DType type, const void* bits);

/// Rounds to nearest even (floats) or to the nearest integer with saturation, and stores size_of(type) bytes.
void encode(DType type, double value, void* bits);

/// `value` after a round trip through `type`.
double round_to(DType type, double value);

/// `value` with the 10 mantissa bits a tensor core keeps of an f32 operand.
double round_to_tf32(double value);

/// Spacing of `type` just above 1 (0 for integers): 2^-10 for f16, 2^-7 for bf16, 2^-23 for f32.
double epsilon(DType type);

/// How a reference computes. `exact` is the oracle: double everywhere. `working` is the baseline a kernel has to match:
/// every sum and product in f32, every tensor a straightforward implementation would write to memory rounded to
/// `storage`.
struct Arithmetic {
  DType storage = DType::f64;
  bool single = false;  ///< scalar operations round to f32
  bool tf32 = false;    ///< factors of a matrix product keep 10 mantissa bits

  static Arithmetic exact() { return {}; }
  static Arithmetic working(DType storage) { return {storage, storage != DType::f64, false}; }

  double op(double x) const { return single ? static_cast<double>(static_cast<float>(x)) : x; }
  double factor(double x) const { return tf32 ? round_to_tf32(x) : x; }
  double store(double x) const { return storage == DType::f64 ? x : round_to(storage, x); }
};

}  // namespace tile::reference
