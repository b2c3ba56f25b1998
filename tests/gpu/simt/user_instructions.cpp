// user_instructions.cpp - instructions that only authors of kernels write, in assembly of their own, and start_accumulators.
#include <algorithm>
#include <cmath>

#include "tests/gpu/simt/machine.h"
#include "tests/gpu/simt/numbers.h"

namespace tile::testing {

bool userStatement(const AsmStatement& s, AsmFrame& f) {
  auto in = [&](size_t i) { return f.get(s.operands[i]); };
  auto number = [&](size_t i) { return toFloat(in(i)); };
  if (s.is("mov.b32") && s.operands[0].kind == AsmOperand::vector) {  // a word taken apart
    const auto& parts = s.operands[0].parts;
    const size_t bits = 32 / parts.size();
    for (size_t i = 0; i < parts.size(); ++i) f.set(parts[i], in(1) >> (bits * i) & ((uint64_t{1} << bits) - 1));
  } else if (s.is("cvt.u32.u8")) {
    f.set(s.operands[0], in(1) & 0xff);
  } else if (s.is("cvt.rn.f32.s32")) {
    f.set(s.operands[0], fromFloat(static_cast<float>(static_cast<int32_t>(in(1)))));
  } else if (s.is("add.f32")) {
    f.set(s.operands[0], fromFloat(number(1) + number(2)));
  } else if (s.is("add.s32")) {
    f.set(s.operands[0], static_cast<uint32_t>(in(1) + in(2)));
  } else if (s.is("max.f32")) {
    f.set(s.operands[0], fromFloat(std::fmax(number(1), number(2))));
  } else if (s.is("tanh.approx.f32")) {
    f.set(s.operands[0], fromFloat(std::tanh(number(1))));
  } else if (s.is("dp4a.s32.s32")) {
    auto sum = static_cast<int32_t>(in(3));
    for (int i = 0; i < 4; ++i) sum += static_cast<int8_t>(in(1) >> (8 * i)) * static_cast<int8_t>(in(2) >> (8 * i));
    f.set(s.operands[0], static_cast<uint32_t>(sum));
  } else {
    return false;
  }
  return true;
}

}  // namespace tile::testing
