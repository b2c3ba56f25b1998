// emit_dot.cpp - products of matrices, and of several at once (3 dims, the first counts them).
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
using namespace mlir;

namespace {

/// What is wrong with the operands' shapes; empty: nothing.
std::string shape_fault(const char* verb, const TileType& a, const TileType& b) {
  const std::string both = a.to_string() + " and " + b.to_string();
  const int rank = a.shape.rank();
  if (rank != b.shape.rank() || rank < 2 || rank > 3)
    return "operands must have 2 dims, or 3 with the number of matrices first, found " + both;
  if (rank == 3 && a.shape[0] != b.shape[0]) return "operands hold different numbers of matrices: " + both;
  if (a.shape[rank - 1] != b.shape[rank - 2])
    return "inner dimensions do not agree: " + a.to_string() + " * " + b.to_string() +
           (a.shape[rank - 1] == b.shape[rank - 1]
                ? std::string("; where the second has a row for every column of the result, write ") + verb +
                      "(a, trans(b))"
                : "");
  return "";
}

/// What is wrong with the element types of a dot, and of a dot_bits; empty: nothing.
std::string type_fault(const TileType& a, const TileType& b) {
  if (a.dtype != b.dtype && !(is_f8(a.dtype) && is_f8(b.dtype)))
    return "operands must have one element type, found " + a.to_string() + " and " + b.to_string() +
           "; convert one with cast(x, dtype)";
  if (!is_float(a.dtype) && a.dtype != DType::i8)
    return "operands must be f16, bf16, f8, f32, f64 or i8, found " + std::string(name(a.dtype));
  return "";
}
std::string fault_of_bits(const TileType& a, const TileType& b) {
  for (const TileType& type : {a, b})
    if (type.dtype != DType::u32 && type.dtype != DType::i32)
      return "operands must be words of 32 bits, u32 or i32, found " + std::string(name(type.dtype)) +
             (is_float(type.dtype) ? "; their bits are bitcast(x, u32)" : "");
  if (a.dtype != b.dtype)
    return "operands must have one element type, found " + a.to_string() + " and " + b.to_string() +
           "; bitcast(x, u32) makes u32 of i32";
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

mlir::Value one_product(OpBuilder& b, Location at, mlir::Value left, mlir::Value right, mlir::Value init,
                        ir::Precision how) {
  const auto precision = ir::PrecisionAttr::get(b.getContext(), how);
  if (cast<RankedTensorType>(init.getType()).getRank() == 3)
    return ir::BatchDotOp::create(b, at, init.getType(), left, right, init, precision);
  return ir::DotOp::create(b, at, init.getType(), left, right, init, precision);
}

using TypeFault = std::string(const TileType& a, const TileType& b);
using Multiply = llvm::function_ref<mlir::Value(OpBuilder& b, Location at, mlir::Value left, mlir::Value right,
                                                mlir::Value init)>;

/// What products have in common: the checks, the accumulator, the number of the result.
Value traced(Tracer& t, const char* verb, const Operand& a, const Operand& b, const Operand& acc, TypeFault* fault_of,
             Multiply multiply) {
  const SrcLoc loc = a.loc;
  const Value x = operand_tile(t, a, verb), y = operand_tile(t, b, verb);
  if (t.is_bad(x) || t.is_bad(y)) return {0};
  const TileType tx = t.type_of(x), ty = t.type_of(y);
  std::string fault = shape_fault(verb, tx, ty);
  if (fault.empty()) fault = fault_of(tx, ty);
  if (!fault.empty()) {
    t.error(std::string(verb) + ": " + fault, loc);
    return {0};
  }
  const DType d = tx.dtype;
  const DType out = d == DType::f64 ? DType::f64 : is_float(d) ? DType::f32 : DType::i32;
  Shape shape = tx.shape;
  shape[shape.rank() - 1] = ty.shape[shape.rank() - 1];
  if (!valid_shape(t, shape, loc)) return {0};
  Value c;
  if (acc.kind == Operand::absent) {
    Operand zero;
    zero.kind = Operand::integer, zero.i = 0, zero.loc = loc;
    c = constant(t, zero, out, shape);
  } else {
    c = coerce(t, acc, out, shape, (std::string("the accumulator of ") + verb).c_str());
  }
  if (t.is_bad(c)) return {0};
  if (!(t.type_of(c).shape == shape)) {
    t.error(std::string(verb) + ": the accumulator is " + t.type_of(c).to_string() + " but the product is " +
                TileType{out, false, shape}.to_string(),
            acc.loc);
    return {0};
  }
  OpBuilder& builder = t.at_end();
  const mlir::Value left = t.info(x).value, right = t.info(y).value, init = t.info(c).value;
  return t.add(multiply(builder, t.location(loc), left, right, init), out, loc);
}

}  // namespace

Value dot(const Operand& a, const Operand& b, const Operand& acc, Prec prec) {
  static_assert(int(Prec::ieee) == int(ir::Precision::ieee) && int(Prec::tf32) == int(ir::Precision::tf32) &&
                int(Prec::tf32x3) == int(ir::Precision::tf32x3));
  Tracer* t = Tracer::current();
  if (!t || !t->known(static_cast<int>(prec), 5, "Prec", a.loc)) return {0};
  const auto how = prec > Prec::tf32x3 ? ir::Precision::ieee : static_cast<ir::Precision>(prec);
  return traced(*t, "dot", a, b, acc, type_fault,
                [&](OpBuilder& builder, Location at, mlir::Value left, mlir::Value right, mlir::Value init) {
                  const bool isF32 = cast<RankedTensorType>(left.getType()).getElementType().isF32();
                  const int parts = !isF32 ? 1 : prec == Prec::bf16x3 ? 2 : prec == Prec::bf16x6 ? 3 : 1;
                  if (parts == 1) return one_product(builder, at, left, right, init, how);
                  const auto x = bf16_parts(builder, at, left, parts), y = bf16_parts(builder, at, right, parts);
                  for (int order = parts - 1; order >= 0; --order)  // the smallest first
                    for (int i = 0; i <= order; ++i) init = one_product(builder, at, x[i], y[order - i], init, how);
                  return init;
                });
}

Value dot_bits(const Operand& a, const Operand& b, const Operand& acc) {
  Tracer* t = Tracer::current();
  if (!t) return {0};
  return traced(*t, "dot_bits", a, b, acc, fault_of_bits,
                [&](OpBuilder& builder, Location at, mlir::Value left, mlir::Value right, mlir::Value init) {
                  return one_product(builder, at, left, right, init, ir::Precision::bits);
                });
}

}  // namespace tile::detail
