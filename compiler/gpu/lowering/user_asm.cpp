// user_asm.cpp - see user_asm.h. Registers of tiles are taken `pack` at a time, narrow elements put together in words.
#include "compiler/gpu/lowering/user_asm.h"

#include "compiler/dialect/inline_asm.h"
#include "compiler/targets/nvptx.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// FILE:LINE on one line, with what LLVM takes for a register in it masked.
std::string placeOf(Location loc) {
  std::string place, safe;
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    place = file.getFilename().str() + ":" + std::to_string(file.getLine());
  for (char c : place) safe += c == '$' ? "$$" : std::string(1, c == '\n' || c == '\r' ? ' ' : c);
  return safe;
}

llvm::Type* registerType(llvm::IRBuilderBase& b, char letter) {
  switch (letter) {
    case 'h': return b.getInt16Ty();
    case 'l': return b.getInt64Ty();
    case 'f': return b.getFloatTy();
    case 'd': return b.getDoubleTy();
    default: return b.getInt32Ty();
  }
}

/// Elements side by side in a register of the letter's kind.
llvm::Value* together(llvm::IRBuilderBase& b, llvm::ArrayRef<llvm::Value*> elements, char letter) {
  llvm::Type* type = registerType(b, letter);
  llvm::Value* all = elements.front();
  if (elements.size() > 1) {
    all = llvm::PoisonValue::get(llvm::FixedVectorType::get(all->getType(), elements.size()));
    for (auto [i, element] : llvm::enumerate(elements)) all = b.CreateInsertElement(all, element, uint64_t{i});
  }
  const auto bits = static_cast<unsigned>(all->getType()->getPrimitiveSizeInBits().getFixedValue());
  if (bits < type->getPrimitiveSizeInBits().getFixedValue())
    return b.CreateZExt(b.CreateBitCast(all, b.getIntNTy(bits)), type);
  return b.CreateBitCast(all, type);
}

void apart(llvm::IRBuilderBase& b, llvm::Value* value, llvm::Type* element, int count, Regs& out) {
  const auto bits = static_cast<unsigned>(count * element->getPrimitiveSizeInBits().getFixedValue());
  if (bits < value->getType()->getPrimitiveSizeInBits().getFixedValue())
    value = b.CreateTrunc(value, b.getIntNTy(bits));
  if (count == 1) return out.push_back(b.CreateBitCast(value, element));
  value = b.CreateBitCast(value, llvm::FixedVectorType::get(element, static_cast<unsigned>(count)));
  for (int i = 0; i < count; ++i) out.push_back(b.CreateExtractElement(value, static_cast<uint64_t>(i)));
}

}  // namespace

LogicalResult emitUserAsm(Emitter& e, InlineAsmOp op) {
  llvm::IRBuilder<>& b = e.b;
  const int pack = static_cast<int>(op.getPack());
  const auto letters = registerLetters(op.getConstraints());
  const std::string text = kUserAsmMark + placeOf(op.getLoc()) + "\n" + op.getText().str() + "\n";
  std::string constraints = op.getConstraints().str();
  llvm::erase_if(constraints, [](char c) { return c == ' ' || c == '\t'; });

  // Registers that hold elements of the tile; those left over by whole groups go with the last one again.
  const bool isTile = isa<RankedTensorType>(op.getResult(0).getType());
  const size_t held = isTile ? e.layoutOf(op.getResult(0)).numRegs() : 1;
  SmallVector<size_t> real;
  for (size_t reg = 0; reg < held; ++reg)
    if (!isTile || !e.layoutOf(op.getResult(0)).isRegPadding(static_cast<int>(reg))) real.push_back(reg);

  SmallVector<llvm::Type*> outputs;
  SmallVector<PackedRegisters> forms;
  size_t letter = 0;
  for (Value result : op.getResults()) {
    forms.push_back(packedRegisters(getElementTypeOrSelf(result.getType()), pack));
    for (int i = 0; i < forms.back().count; ++i) outputs.push_back(registerType(b, letters[letter++]));
  }
  llvm::Type* made = outputs.size() == 1 ? outputs[0] : llvm::StructType::get(b.getContext(), outputs);
  SmallVector<Regs, 2> results;
  for (Value result : op.getResults()) results.emplace_back(held, llvm::PoisonValue::get(e.elementType(result)));

  for (size_t first = 0; first < real.size(); first += pack) {
    auto place = [&](int i) { return real[std::min(first + i, real.size() - 1)]; };
    SmallVector<llvm::Value*> inputs;
    letter = outputs.size();
    for (Value arg : op.getArgs()) {
      const PackedRegisters form = packedRegisters(getElementTypeOrSelf(arg.getType()), pack);
      llvm::ArrayRef<llvm::Value*> regs = e.regs(arg);
      for (int word = 0; word < form.count; ++word) {
        Regs elements;
        for (int i = 0; i < form.elements; ++i) elements.push_back(regs[place(word * form.elements + i)]);
        inputs.push_back(together(b, elements, letters[letter++]));
      }
    }
    llvm::Value* all = e.inlineAsm(made, text, constraints, inputs, op.getPure());
    unsigned output = 0;
    for (auto [i, result] : llvm::enumerate(op.getResults())) {
      Regs elements;
      for (int word = 0; word < forms[i].count; ++word, ++output)
        apart(b, outputs.size() == 1 ? all : b.CreateExtractValue(all, output), e.elementType(result),
              forms[i].elements, elements);
      for (int j = 0; j < pack && first + j < real.size(); ++j) results[i][place(j)] = elements[j];
    }
  }
  for (auto [result, regs] : llvm::zip(op.getResults(), results)) e.define(result, std::move(regs));
  return success();
}

}  // namespace tile::ir
