// emit_assembly.cpp - pieces of PTX, and the question that chooses their form for hosts.
#include "compiler/dialect/inline_asm.h"
#include "dsl/tracing/emit_rules.h"

namespace tile::detail {
using namespace mlir;

bool spread_arguments(const Operand* args, int count, SrcLoc loc, Value* out) {
  Tracer* t = Tracer::current();
  if (!t) return false;
  Shape shape;
  for (int i = 0; i < count; ++i) {
    out[i] = use(*t, args[i]);
    if (t->is_bad(out[i])) return false;
    if (t->info(out[i]).kind != ValueKind::number) {
      const std::string found = t->type_of(out[i]).to_string() + " as argument " + std::to_string(i);
      t->error("inline_asm takes numbers, found " + found, args[i].loc);
      return false;
    }
    Shape joint;
    if (!broadcast_shapes(*t, shape, t->type_of(out[i]).shape, args[i].loc, joint)) return false;
    shape = joint;
  }
  for (int i = 0; i < count; ++i) {
    const ValueInfo info = t->info(out[i]);
    out[i] = t->add(stretch(*t, info.value, shape, args[i].loc), info.dtype, args[i].loc);
  }
  return true;
}

TileType result_type(const Value* args, int count, DType dtype) {
  return {dtype, false, count ? type_of(args[0]).shape : Shape{}};
}

void inline_asm(const std::string& text, const std::string& constraints, const Value* args, int count,
                const DType* results, int result_count, int pack, bool pure, SrcLoc loc, Value* out) {
  for (int i = 0; i < result_count; ++i) out[i] = {0};
  Tracer* t = Tracer::current();
  if (!t) return;
  if (t->in_combiner()) return t->error("inline_asm cannot be used inside a combiner", loc);
  SmallVector<mlir::Value> values;
  SmallVector<Type> elements, made, types;
  for (int i = 0; i < count; ++i) {
    values.push_back(t->info(args[i]).value);
    elements.push_back(getElementTypeOrSelf(values.back().getType()));
  }
  const Shape shape = result_type(args, count, DType::i32).shape;
  for (int i = 0; i < result_count; ++i) {
    if (!t->known(static_cast<int>(results[i]), kNumDTypes, "DType", loc)) return;
    made.push_back(ir_element_type(t->context(), results[i]));
    types.push_back(shape.rank() == 0
                        ? made.back()
                        : RankedTensorType::get(llvm::ArrayRef(shape.begin(), shape.end()), made.back()));
  }
  if (const std::string fault = ir::faultOfAsm(text, constraints, made, elements, pack); !fault.empty())
    return t->error("inline_asm: " + fault, loc);
  OpBuilder& b = t->at_end();
  auto op = ir::InlineAsmOp::create(b, t->location(loc), types, text, constraints, values, pack, pure);
  for (int i = 0; i < result_count; ++i) out[i] = t->add(op.getResult(i), results[i], loc);
}

Value on_host(SrcLoc loc) {
  Tracer* t = Tracer::current();
  return t ? t->add(ir::OnHostOp::create(t->at_end(), t->location(loc)), DType::i1, loc) : Value{0};
}

bool check_host_form(const Operand& made, const TileType& wanted, int number, SrcLoc loc) {
  Tracer* t = Tracer::current();
  if (!t) return false;
  const Value v = use(*t, made);
  if (t->is_bad(v)) return true;  // reported where it went bad
  if (t->type_of(v) == wanted) return true;
  const std::string found = t->type_of(v).to_string() + " as result " + std::to_string(number);
  t->error("inline_asm: its form for hosts gives " + found + ", expected " + wanted.to_string(), loc);
  return false;
}

}  // namespace tile::detail
