// few_bits.h - order of integers of few bits, without comparisons: rounds of two bits, each of which puts every element
// behind those of less in these bits and behind the equal ones before it.
#pragma once
#include "dsl/tracing/emit_at.h"
#include "mlir/IR/Value.h"

namespace tile::detail {

/// How many bits integers have that are known not to be negative: digits (`x & 255`, `x >> 24`), clamped ones, bytes.
/// 0: more than `most`, or not known.
int bits_known(mlir::Value integers, bool is_unsigned, int most);

/// Whether rounds take less than a network of exchanges, for keys along an axis.
bool wants_rounds(const Shape& shape, int axis, int bits);

/// Words of u32 along an axis in ascending order of their upper halves, of which `bits` are used. Equal ones keep their
/// order.
Value sort_in_rounds(const At& at, Value words, Shape shape, int axis, int bits);

}  // namespace tile::detail
