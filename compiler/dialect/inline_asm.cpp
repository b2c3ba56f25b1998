// inline_asm.cpp - see inline_asm.h.
#include "compiler/dialect/inline_asm.h"

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr llvm::StringLiteral kClobbersMemory = "~{memory}";

std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// The letters that may hold that many bits.
llvm::StringRef lettersFor(int bits) {
  if (bits == 64) return "ld";
  if (bits == 32) return "rf";
  return "rh";  // zeros above
}

/// References of the text to registers that are not there. `$$` is a dollar.
std::string faultOfText(llvm::StringRef text, size_t registers) {
  if (text.trim().empty()) return "the text is empty";
  if (text.contains('\0')) return "the text has a zero byte";
  for (size_t at = text.find('$'); at != llvm::StringRef::npos; at = text.find('$', at)) {
    llvm::StringRef rest = text.substr(at + 1);
    if (rest.consume_front("$")) {
      at += 2;
      continue;
    }
    llvm::StringRef digits = rest.take_while(llvm::isDigit);
    unsigned number = 0;
    if (digits.empty() || digits.getAsInteger(10, number))
      return "`$" + rest.take_front(8).str() + "` names no register: write $0, $1 .., and $$ for a dollar";
    if (number >= registers)
      return "`$" + digits.str() + "` names no register: the constraints have " + std::to_string(registers) +
             ", counted from $0";
    at += 1 + digits.size();
  }
  return "";
}

}  // namespace

PackedRegisters packedRegisters(Type element, int pack) {
  constexpr int kWord = 32;
  const int bits = static_cast<int>(element.getIntOrFloatBitWidth());
  if (bits >= kWord) return {1, pack, bits};
  const int elements = std::min(pack, kWord / bits);
  return {elements, pack / elements, elements * bits};
}

llvm::SmallVector<char, 8> registerLetters(llvm::StringRef constraints) {
  llvm::SmallVector<llvm::StringRef, 8> all;
  constraints.split(all, ',');
  llvm::SmallVector<char, 8> letters;
  for (llvm::StringRef one : all)
    if (one.trim() != kClobbersMemory) letters.push_back(one.trim().back());
  return letters;
}

std::string faultOfAsm(llvm::StringRef text, llvm::StringRef constraints, llvm::ArrayRef<Type> results,
                       llvm::ArrayRef<Type> arguments, int pack) {
  if (pack < 1 || pack > kMostPacked || (pack & (pack - 1)) != 0)
    return "pack must be 1, 2, 4, 8 or 16, found " + std::to_string(pack);
  if (results.empty()) return "it must have a result";
  llvm::SmallVector<llvm::StringRef, 8> given;
  constraints.split(given, ',');
  if (given.back().trim() == kClobbersMemory) given.pop_back();
  size_t at = 0;
  std::string fault;
  auto match = [&](Type type, bool isResult, const std::string& what) {
    if (type.isInteger(1)) {
      fault = what + " is i1: cast it to u8 or u32";
      return false;
    }
    const PackedRegisters wanted = packedRegisters(type, pack);
    for (int i = 0; i < wanted.count; ++i, ++at) {
      const std::string spelt = (isResult ? "\"=" : "\"") + lettersFor(wanted.bits).take_front().str() + "\"";
      const std::string expected = what + " (" + textOf(type) + ") takes " + std::to_string(wanted.count) +
                                   (wanted.count == 1 ? " register" : " registers") + " like " + spelt;
      if (at == given.size()) {
        fault = expected + ": the constraints have too few, \"" + constraints.str() + "\"";
        return false;
      }
      llvm::StringRef one = given[at].trim();
      if (isResult) {
        if (!one.consume_front("=")) one = "";
        one.consume_front("&");
      }
      if (one.size() != 1 || !lettersFor(wanted.bits).contains(one)) {
        fault = expected + ", found \"" + given[at].trim().str() + "\" as constraint " + std::to_string(at);
        return false;
      }
    }
    return true;
  };
  for (auto [i, type] : llvm::enumerate(results))
    if (!match(type, true, "result " + std::to_string(i))) return fault;
  for (auto [i, type] : llvm::enumerate(arguments))
    if (!match(type, false, "argument " + std::to_string(i))) return fault;
  if (at != given.size() && !(at == 0 && constraints.trim().empty()))
    return "the constraints \"" + constraints.str() + "\" have " + std::to_string(given.size()) +
           " registers, results and arguments take " + std::to_string(at);
  return faultOfText(text, at);
}

LogicalResult InlineAsmOp::verify() {
  auto elements = [](TypeRange types) {
    SmallVector<Type> out;
    for (Type type : types) out.push_back(getElementTypeOrSelf(type));
    return out;
  };
  const std::string fault = faultOfAsm(getText(), getConstraints(), elements(getResultTypes()),
                                       elements(getArgs().getTypes()), static_cast<int>(getPack()));
  return fault.empty() ? success() : emitOpError() << fault;
}

void InlineAsmOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>& effects) {
  if (getPure()) return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

}  // namespace tile::ir
