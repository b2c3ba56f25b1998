// wgmma_group.cpp - spells wgmma.mma_async.
#include "compiler/gpu/lowering/wgmma_group.h"

namespace tile::ir {
using namespace llvm;

namespace {

/// Names of the instruction's accumulator and operand types (of bits with the operation), and what stands behind the
/// scale of the accumulator.
struct Spelling {
  std::string types;
  bool scales;      ///< immediate signs of a and b
  bool transposes;  ///< immediate transpose flags
};
Spelling spellingOf(MmaOp op) {
  switch (op.getEngine()) {
    case Engine::wgmma_bf16:
      return {"f32.bf16.bf16", true, true};
    case Engine::wgmma_tf32:
      return {"f32.tf32.tf32", true, false};
    case Engine::wgmma_s8:
      return {"s32.s8.s8", false, false};
    case Engine::wgmma_b1:
      return {"s32.b1.b1.and.popc", false, false};
    case Engine::wgmma_f8: {
      const auto [first, second] = f8Names(op.getA().getType(), op.getB().getType());
      return {isTransposed(op) ? "f32." + second + "." + first : "f32." + first + "." + second, true, false};
    }
    default:
      return {"f32.f16.f16", true, true};
  }
}

std::string list(int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

}  // namespace

GroupOfProducts::GroupOfProducts(Emitter& e, MmaOp op, MutableArrayRef<Value*> acc, bool fromZero)
    : e_(e), op_(op), acc_(acc), fromZero_(fromZero) {
  const std::string kind = acc[0]->getType()->isIntegerTy() ? "r" : "f";
  // What the first of the instructions writes, the others' operands may not share a register with; nor may a's, which
  // an instruction reads to its end.
  for (size_t i = 0; i < acc.size(); ++i) constrain((fromZero ? "=&" : "=") + kind);
  if (fromZero) return;
  for (size_t i = 0; i < acc.size(); ++i) constrain(std::to_string(i));
  args_.append(acc.begin(), acc.end());
}

void GroupOfProducts::add(int first, int count, ArrayRef<Value*> registers, const DescriptorPlace& a,
                          const DescriptorPlace& b, bool starts) {
  const Spelling spelling = spellingOf(op_);
  const bool inRegisters = !registers.empty();
  std::string aText;
  if (inRegisters) {
    for (Value* v : registers) aText += (aText.empty() ? "{" : ", ") + input(v, "r");
    aText += "}";
  } else {
    aText = descriptor(a, "a");
  }
  const std::string bText = descriptor(b, "b");
  const int k = op_.getEngine() == Engine::wgmma_b1 ? 256 : engineRow(op_.getEngine()).k;  // the row counts words
  text_ += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * count) + "k" +
           std::to_string(k) + "." + spelling.types + " " + list(first, count) + ", " + aText +
           ", " + bText + ", " + (fromZero_ && starts ? "0" : "1");
  if (spelling.scales) text_ += ", 1, 1";
  if (spelling.transposes) {
    if (!inRegisters) text_ += a.transposed ? ", 1" : ", 0";
    text_ += b.transposed ? ", 1" : ", 0";
  }
  text_ += ";\n\t";
  ++instructions_;
}

void GroupOfProducts::emit() {
  Type* type = StructType::get(e_.b.getContext(), SmallVector<Type*>(acc_.size(), acc_[0]->getType()));
  Value* result = e_.inlineAsm(type, "{" + text_ + "}", constraints_, args_);
  for (auto [i, acc] : llvm::enumerate(acc_)) acc = e_.b.CreateExtractValue(result, static_cast<unsigned>(i));
}

void GroupOfProducts::constrain(const std::string& one) { constraints_ += (constraints_.empty() ? "" : ",") + one; }

std::string GroupOfProducts::input(Value* v, const char* kind) {
  auto [place, isNew] = inputs_.try_emplace(v, 0);
  if (isNew) {
    place->second = acc_.size() + args_.size();
    constrain(kind);
    args_.push_back(v);
  }
  return "$" + std::to_string(place->second);
}

std::string GroupOfProducts::descriptor(const DescriptorPlace& place, const char* name) {
  const std::string start = input(place.descriptor, "l");
  if (place.bytes == 0) return start;
  const std::string own = name + std::to_string(instructions_);
  text_ += ".reg .b64 " + own + "; add.s64 " + own + ", " + start + ", " + std::to_string(place.bytes / 16) + "; ";
  return own;
}

}  // namespace tile::ir
