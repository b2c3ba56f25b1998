// emit_dot.cpp - products of matrices, and of several at once (3 dims, the first counts them).
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
using namespace mlir;

namespace {

/// What is wrong with the operands; empty: nothing.
std::string fault_of(const TileType& a, const TileType& b) {
  const std::string both = a.to_string() + " and " + b.to_string();
  const int rank = a.shape.rank();
  if (rank != b.shape.rank() || rank < 2 || rank > 3)
    return "operands must have 2 dims, or 3 with the number of matrices first, found " + both;
  if (rank == 3 && a.shape[0] != b.shape[0]) return "operands hold different numbers of matrices: " + both;
  if (a.shape[rank - 1] != b.shape[rank - 2])
    return "inner dimensions do not agree: " + a.to_string() + " * " + b.to_string() +
           (a.shape[rank - 1] == b.shape[rank - 1]
                ? "; where the second has a row for every column of the result, write dot(a, trans(b))"
                : "");
  if (a.dtype != b.dtype && !(is_f8(a.dtype) && is_f8(b.dtype)))
    return "operands must have one element type, found " + both + "; convert one with cast(x, dtype)";
  if (!is_float(a.dtype) && a.dtype != DType::i8)
    return "operands must be f16, bf16, f8, f32, f64 or i8, found " + std::string(name(a.dtype));
  return "";
}

/// f32 as a sum of two or three bf16, the largest first: what is left of each rounding is exact.
SmallVector<mlir::Value, 3> bf16_parts(OpBuilder& b, Location loc, mlir::Value x, int count) {
  SmallVector<mlir::Value, 3> parts;
  const auto shape = cast<RankedTensorType>(x.getType()).getShape();
  const Type narrow = RankedTensorType::get(shape, b.getBF16Type());
  for (int i = 0; i < count; ++i) {
    mlir::Value part = arith::TruncFOp::create(b, loc, narrow, x);
    parts.push_back(part);
    if (i + 1 < count) x = arith::SubFOp::create(b, loc, x, arith::ExtFOp::create(b, loc, x.getType(), part));
  }
  return parts;
}

}  // namespace

Value dot(const Operand& a, const Operand& b, const Operand& acc, Prec prec) {
  static_assert(int(Prec::ieee) == int(ir::Precision::ieee) && int(Prec::tf32) == int(ir::Precision::tf32) &&
                int(Prec::tf32x3) == int(ir::Precision::tf32x3));
  Tracer* t = Tracer::current();
  if (!t) return {0};
  const SrcLoc loc = a.loc;
  const Value x = operand_tile(*t, a, "dot"), y = operand_tile(*t, b, "dot");
  if (t->is_bad(x) || t->is_bad(y)) return {0};
  const TileType tx = t->type_of(x), ty = t->type_of(y);
  if (!t->known(static_cast<int>(prec), 5, "Prec", loc)) return {0};
  if (const std::string fault = fault_of(tx, ty); !fault.empty()) {
    t->error("dot: " + fault, loc);
    return {0};
  }
  const DType d = tx.dtype;
  const DType out = d == DType::f64 ? DType::f64 : is_float(d) ? DType::f32 : DType::i32;
  Shape shape = tx.shape;
  shape[shape.rank() - 1] = ty.shape[shape.rank() - 1];
  if (!valid_shape(*t, shape, loc)) return {0};
  Value c;
  if (acc.kind == Operand::absent) {
    Operand zero;
    zero.kind = Operand::integer, zero.i = 0, zero.loc = loc;
    c = constant(*t, zero, out, shape);
  } else {
    c = coerce(*t, acc, out, shape, "the accumulator of dot");
  }
  if (t->is_bad(c)) return {0};
  if (!(t->type_of(c).shape == shape)) {
    t->error("dot: the accumulator is " + t->type_of(c).to_string() + " but the product is " +
                 TileType{out, false, shape}.to_string(),
             acc.loc);
    return {0};
  }
  OpBuilder& builder = t->at_end();
  const Location at = t->location(loc);
  const int parts = d != DType::f32 ? 1 : prec == Prec::bf16x3 ? 2 : prec == Prec::bf16x6 ? 3 : 1;
  const auto precision =
      ir::PrecisionAttr::get(t->context(), prec > Prec::tf32x3 ? ir::Precision::ieee : static_cast<ir::Precision>(prec));
  auto one_product = [&](mlir::Value left, mlir::Value right, mlir::Value init) -> mlir::Value {
    if (shape.rank() == 3) return ir::BatchDotOp::create(builder, at, init.getType(), left, right, init, precision);
    return ir::DotOp::create(builder, at, init.getType(), left, right, init, precision);
  };
  auto product = [&](mlir::Value left, mlir::Value right, mlir::Value init) -> mlir::Value {
    if (parts == 1) return one_product(left, right, init);
    const auto x = bf16_parts(builder, at, left, parts), y = bf16_parts(builder, at, right, parts);
    for (int order = parts - 1; order >= 0; --order)  // the smallest first
      for (int i = 0; i <= order; ++i) init = one_product(x[i], y[order - i], init);
    return init;
  };
  const mlir::Value left = t->info(x).value, right = t->info(y).value, init = t->info(c).value;
  return t->add(product(left, right, init), out, loc);
}

}  // namespace tile::detail
