// ptx_asm.cpp - the parser of inline assembly.
#include "tests/gpu/simt/ptx_asm.h"

#include <cctype>
#include <map>
#include <stdexcept>

namespace tile::testing {
namespace {

class Parser {
 public:
  Parser(const std::string& text, AsmBody& body) : text_(text), body_(body) {}

  void run() {
    while (skip()) {
      if (take('{') || take('}') || take(';')) continue;
      if (peek() == '.' || std::isalpha(static_cast<unsigned char>(peek())) || peek() == '_' || peek() == '@')
        statement();
      else
        error();
    }
    for (auto& [name, index] : labels_)
      if (body_.targets[static_cast<size_t>(index)] < 0) throw std::runtime_error("no label " + name + " in: " + text_);
  }

 private:
  [[noreturn]] void error() {
    throw std::runtime_error("simulated machine: cannot read assembly at '" + text_.substr(at_, 20) + "' of: " + text_);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool skip() {
    while (at_ < text_.size()) {
      if (text_.compare(at_, 2, "//") == 0)
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (std::isspace(static_cast<unsigned char>(text_[at_])))
        ++at_;
      else
        break;
    }
    return at_ < text_.size();
  }
  bool take(char c) {
    skip();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) error();
  }
  /// Letters, digits and `extra`; "${:uid}" is dropped: every call has its own body.
  std::string word(const char* extra) {
    skip();
    std::string w;
    while (at_ < text_.size()) {
      if (text_.compare(at_, 7, "${:uid}") == 0) {
        at_ += 7;
        continue;
      }
      char c = text_[at_];
      if (!std::isalnum(static_cast<unsigned char>(c)) && std::string(extra).find(c) == std::string::npos) break;
      w += c;
      ++at_;
    }
    return w;
  }
  int64_t number() {
    size_t used = 0;
    int64_t value = 0;
    const bool isFloat = text_.compare(at_, 2, "0f") == 0;  // the bits of an f32 follow
    if (isFloat) at_ += 2;
    try {
      value = static_cast<int64_t>(std::stoll(text_.substr(at_), &used, isFloat ? 16 : 0));
    } catch (const std::exception&) {
      error();
    }
    at_ += used;
    if (peek() == '.') {  // a fraction of a cache: nobody asks what it is
      ++at_;
      while (std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
    }
    return value;
  }

  int registerIndex(const std::string& name) {
    auto [it, fresh] = registers_.try_emplace(name, body_.registers);
    if (fresh) ++body_.registers;
    return it->second;
  }
  int labelIndex(const std::string& name) {
    auto [it, fresh] = labels_.try_emplace(name, static_cast<int>(body_.targets.size()));
    if (fresh) body_.targets.push_back(-1);
    return it->second;
  }

  AsmOperand operand(bool isLabel) {
    AsmOperand o;
    skip();
    if (take('{')) {
      o.kind = AsmOperand::vector;
      do o.parts.push_back(operand(false));
      while (take(','));
      expect('}');
    } else if (take('[')) {
      o.kind = AsmOperand::address;
      do o.parts.push_back(operand(false));
      while (take(','));
      if (take('+')) skip(), o.value = number();
      expect(']');
    } else if (peek() == '$') {
      ++at_;
      o.kind = AsmOperand::slot;
      o.index = static_cast<int>(number());
    } else if (std::isdigit(static_cast<unsigned char>(peek())) || peek() == '-') {
      o.kind = AsmOperand::immediate;
      o.value = number();
    } else {
      std::string name = word("_%$.");
      if (name.empty()) error();
      if (name == "_") return o;
      o.kind = isLabel ? AsmOperand::label : AsmOperand::reg;
      o.index = isLabel ? labelIndex(name) : registerIndex(name);
    }
    if (o.kind != AsmOperand::label && take('|')) {  // a pair of results: value|predicate
      AsmOperand pair;
      pair.kind = AsmOperand::vector;
      pair.parts = {o, operand(false)};
      return pair;
    }
    return o;
  }

  void statement() {
    if (peek() == '.') {  // a declaration
      while (at_ < text_.size() && text_[at_] != ';') ++at_;
      return;
    }
    AsmStatement s;
    if (take('@')) {
      s.negated = take('!');
      s.predicate = static_cast<int>(body_.predicates.size());
      body_.predicates.push_back(operand(false));
    }
    s.opcode = word("_.:");
    if (s.opcode.size() > 1 && s.opcode.back() == ':' && s.predicate < 0) {
      s.opcode.pop_back();
      body_.targets[static_cast<size_t>(labelIndex(s.opcode))] = static_cast<int>(body_.statements.size());
      return;
    }
    if (s.opcode.empty()) error();
    if (!take(';')) {
      bool isBranch = s.opcode.rfind("bra", 0) == 0;
      do s.operands.push_back(operand(isBranch));
      while (take(','));
      skip();
      if (!take(';') && peek() != '}' && peek() != '\0') error();
    }
    body_.statements.push_back(std::move(s));
  }

  const std::string& text_;
  AsmBody& body_;
  size_t at_ = 0;
  std::map<std::string, int> registers_, labels_;
};

}  // namespace

AsmBody parseAsm(const std::string& text, const std::string& constraints, int results) {
  AsmBody body;
  body.text = text;
  body.results = results;
  size_t at = 0;
  while (at < constraints.size()) {
    size_t end = std::min(constraints.find(',', at), constraints.size());
    std::string c = constraints.substr(at, end - at);
    at = end + 1;
    if (c.empty() || c[0] == '=' || c[0] == '~') continue;
    body.tied.push_back(std::isdigit(static_cast<unsigned char>(c[0])) ? std::stoi(c) : -1);
  }
  Parser(text, body).run();
  return body;
}

uint64_t AsmFrame::get(const AsmOperand& operand) const {
  switch (operand.kind) {
    case AsmOperand::slot:
      return operand.index < body.results ? results[operand.index] : args[operand.index - body.results];
    case AsmOperand::reg:
      return registers[static_cast<size_t>(operand.index)];
    case AsmOperand::immediate:
      return static_cast<uint64_t>(operand.value);
    case AsmOperand::address:
      return address(operand);
    default:
      throw std::runtime_error("simulated machine: not a value in: " + body.text);
  }
}

void AsmFrame::set(const AsmOperand& operand, uint64_t value) {
  if (operand.kind == AsmOperand::slot && operand.index < body.results)
    results[operand.index] = value;
  else if (operand.kind == AsmOperand::reg)
    registers[static_cast<size_t>(operand.index)] = value;
  else if (operand.kind != AsmOperand::sink)
    throw std::runtime_error("simulated machine: writes something that is no result in: " + body.text);
}

}  // namespace tile::testing
