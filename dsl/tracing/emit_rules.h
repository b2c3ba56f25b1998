// emit_rules.h - the type rules the emit_*.cpp files share. Internal to the dsl library. Functions that return Value{0}
// have reported why, or got a value whose error has been reported before.
#pragma once
#include "dsl/tracing/tracer.h"

namespace tile::detail {

mlir::Type ir_element_type(mlir::MLIRContext* ctx, DType d);
/// The ends of what a type holds.
double largest_float(DType d);
uint64_t largest_integer(DType d);
int64_t lowest_integer(DType d);
/// The operand's value; a literal on its own gets its natural type. Checks that the value may be used here.
Value use(Tracer& t, const Operand& o);
/// The same of a verb that takes a tile of numbers.
Value operand_tile(Tracer& t, const Operand& o, const char* verb);
/// i1, i32 (or wider when needed), f32: what a literal is when no tile decides.
DType natural_dtype(const Operand& literal);
/// A literal as messages show it.
std::string text_of(const Operand& literal);
/// {0, 2, 1}
std::string text_of(const Shape& numbers);
/// A literal as a constant; with an empty shape a scalar.
Value constant(Tracer& t, const Operand& literal, DType d, const Shape& shape);
/// The operand as elements of `d`: literals adapt, tiles may widen within their kind. `what` names it in the error.
Value coerce(Tracer& t, const Operand& o, DType d, const Shape& literal_shape, const char* what);
/// Whether every `from` is exactly a `to` of the same kind.
bool widens(DType from, DType to);
/// What sums of elements are computed in: narrow ones in 32 bits.
DType type_of_sum(DType d);
/// Any number to any other, no questions asked.
Value convert_value(Tracer& t, Value v, DType to, SrcLoc loc);

Shape shape_of(mlir::Value v);
bool valid_shape(Tracer& t, const Shape& s, SrcLoc loc);
/// Equal ranks, sizes equal or 1; or one a scalar.
bool broadcast_shapes(Tracer& t, const Shape& a, const Shape& b, SrcLoc loc, Shape& out);
/// The shape of a box's tile with dims of size 1 where offsets drop one, without leading ones; none for too many dims.
std::optional<Shape> with_dropped_dims(const Operand* offsets, int rank, const Shape& shape);
/// Error of a box with more dims than the tensor has beside those with `only`; `found` is what was given.
void too_many_dims(Tracer& t, const Operand* offsets, int rank, const std::string& found, SrcLoc loc);
/// A box element by element, under a mask (emit_rows.cpp).
Value load_masked(Tracer& t, Value view, const Operand* offsets, int rank, const Shape& shape, double pad,
                  const Operand& mask, Cache cache, SrcLoc loc);
void store_masked(Tracer& t, Value view, const Operand* offsets, int rank, const Operand& value, const Operand& mask,
                  Cache cache, SrcLoc loc);
/// Repeats a value that broadcast_shapes has accepted up to `to`.
mlir::Value stretch(Tracer& t, mlir::Value v, const Shape& to, SrcLoc loc);

}  // namespace tile::detail
