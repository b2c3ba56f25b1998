// sass_blocks.cpp - branches, and the blocks between them.
#include "compiler/targets/sass_blocks.h"

#include <iterator>
#include <map>
#include <set>

namespace tile::ir {
namespace {

bool fallsThrough(const SassInstruction& inst) {
  switch (inst.opcode()) {
    case kBra:
      return inst.predicated() || (inst.high >> 23 & 7) != 7;
    case kExit:
    case kRet:
      return inst.predicated();
    case kIndirect:
      return false;
    default:
      return true;
  }
}

}  // namespace

// The distance counts from the next instruction, in units of 4 bytes: bits 34 to 81; from sm_90 on with 8 more low bits
// at 16.
int64_t branchTarget(const SassInstruction& inst, int64_t index, int sm) {
  uint64_t upper = (inst.high & 0x3ffff) << 30 | inst.low >> 34;
  int64_t words = static_cast<int64_t>(upper << 16) >> 16;
  if (sm >= 90) words = words * 256 + static_cast<int64_t>(inst.low >> 16 & 0xff);
  return index + 1 + words / 4;
}

std::vector<SassBlock> splitBlocks(const std::vector<SassInstruction>& code, int sm) {
  const int n = static_cast<int>(code.size());
  auto isBranch = [&](int i) {
    const uint32_t op = code[static_cast<size_t>(i)].opcode();
    return op == kBra || op == kBraUniform;
  };
  auto target = [&](int i) {
    const int64_t t = branchTarget(code[static_cast<size_t>(i)], i, sm);
    return t >= 0 && t < n ? static_cast<int>(t) : -1;
  };
  std::set<int> starts{0};
  for (int i = 0; i < n; ++i) {
    if (isBranch(i) && target(i) >= 0) starts.insert(target(i));
    if ((isBranch(i) || !fallsThrough(code[static_cast<size_t>(i)])) && i + 1 < n) starts.insert(i + 1);
  }
  std::vector<SassBlock> blocks;
  std::map<int, int> blockAt;
  for (auto it = starts.begin(); it != starts.end(); ++it) {
    blockAt[*it] = static_cast<int>(blocks.size());
    blocks.push_back({*it, std::next(it) == starts.end() ? n : *std::next(it), {}, {}});
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    const int last = blocks[b].end - 1;
    auto link = [&](int to) {
      blocks[b].successors.push_back(to);
      blocks[static_cast<size_t>(to)].predecessors.push_back(static_cast<int>(b));
    };
    if (isBranch(last) && target(last) >= 0) link(blockAt[target(last)]);
    if (fallsThrough(code[static_cast<size_t>(last)]) && b + 1 < blocks.size()) link(static_cast<int>(b) + 1);
  }
  return blocks;
}

}  // namespace tile::ir
