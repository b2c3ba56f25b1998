// ptx_asm.h - inline assembly of a kernel, parsed: statements with predicates, registers, labels and operands.
// Operands of the LLVM call are `$n`: results first, then arguments; an argument may be tied to a result.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tile::testing {

struct AsmOperand {
  enum Kind { slot, reg, immediate, vector, address, sink, label } kind = sink;
  int index = 0;                  ///< of slot, register or label
  int64_t value = 0;              ///< immediate, or what an address adds
  std::vector<AsmOperand> parts;  ///< of a vector; base (and coordinates) of an address
};

struct AsmStatement {
  int predicate = -1;  ///< index into AsmBody::predicates
  bool negated = false;
  std::string opcode;  ///< with all modifiers
  std::vector<AsmOperand> operands;
  bool is(const char* prefix) const { return opcode.rfind(prefix, 0) == 0; }
  bool has(const char* part) const { return opcode.find(part) != std::string::npos; }
};

struct AsmBody {
  std::string text;
  std::vector<AsmStatement> statements;
  std::vector<AsmOperand> predicates;
  std::vector<int> targets;  ///< statement each label stands before
  std::vector<int> tied;     ///< per argument: the result it starts, or -1
  int registers = 0, results = 0;
};

/// Throws std::runtime_error with the text when it is not understood.
AsmBody parseAsm(const std::string& text, const std::string& constraints, int results);

/// Values while a body runs.
struct AsmFrame {
  const AsmBody& body;
  const uint64_t* args;
  uint64_t* results;
  std::vector<uint64_t> registers;

  uint64_t get(const AsmOperand& operand) const;
  void set(const AsmOperand& operand, uint64_t value);
  /// What `[...]` points to.
  uint64_t address(const AsmOperand& operand) const {
    return get(operand.parts.at(0)) + static_cast<uint64_t>(operand.value);
  }
};

}  // namespace tile::testing
