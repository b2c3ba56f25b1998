// sass.cpp - cubin (ELF) to instructions, loops, counts.
#include "compiler/targets/sass.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "compiler/targets/sass_blocks.h"

namespace tile::ir {
namespace {

enum Opcode : uint32_t {
  kTryWait = 0x5a7,
  kBar = 0xb1d,
  kMufu = 0x308,
  kSetRegisters = 0x9c8,
};

template <class T>
bool readAt(std::string_view bytes, uint64_t at, T& value) {
  if (at > bytes.size() || bytes.size() - at < sizeof value) return false;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return true;
}

/// The contents of section `name` of a 64-bit little-endian ELF file; empty when there is none.
std::string_view section(std::string_view elf, const std::string& name) {
  uint64_t table = 0;
  uint16_t entry = 0, count = 0, names = 0;
  if (elf.substr(0, 4) != "\177ELF" || !readAt(elf, 0x28, table) || !readAt(elf, 0x3a, entry) ||
      !readAt(elf, 0x3c, count) || !readAt(elf, 0x3e, names))
    return {};
  auto field = [&](uint64_t index, uint64_t offset, auto& value) {
    return readAt(elf, table + index * entry + offset, value);
  };
  uint64_t strings = 0;
  if (!field(names, 0x18, strings)) return {};
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t nameAt = 0;
    uint64_t offset = 0, size = 0;
    if (!field(i, 0, nameAt) || !field(i, 0x18, offset) || !field(i, 0x20, size)) return {};
    const uint64_t at = strings + nameAt;
    if (at > elf.size() || elf.size() - at <= name.size() || elf.substr(at, name.size()) != name ||
        elf[at + name.size()] != '\0')
      continue;
    if (offset > elf.size() || elf.size() - offset < size) return {};
    return elf.substr(offset, size);
  }
  return {};
}

void count(SassCounts& c, const SassInstruction& inst) {
  ++c.instructions;
  switch (inst.opcode()) {
    // clang-format off
    case kHgmma: case kHgmmaReg: ++c.hgmma; break;
    case kQgmma: case kQgmmaReg: ++c.qgmma; break;
    case kIgmma: case kIgmmaReg: ++c.igmma; break;
    case kBgmma: case kBgmmaReg: ++c.bgmma; break;
    case 0x23c: ++c.hmma; break;
    case 0x237: ++c.imma; break;
    case 0x23f: ++c.dmma; break;
    case 0x23d: ++c.bmma; break;
    case kMufu: ++c.mufu; break;
    case 0x983: ++c.localLoads; break;
    case 0x387: ++c.localStores; break;
    case 0x981: ++c.globalLoads; break;
    case 0x986: ++c.globalStores; break;
    case 0xfae: ++c.asyncCopies; break;
    case 0x5b4: case 0x3b4: ++c.bulkLoads; break;
    case 0x3b5: case 0x3b6: ++c.bulkStores; break;
    case 0x984: case 0x83b: ++c.sharedLoads; break;
    case 0x388: case 0x844: ++c.sharedStores; break;
    case kBar: ++c.barriers; break;
    case 0xf89: case 0x389: ++c.shuffles; break;
    default: break;
      // clang-format on
  }
}

// ---- loops

/// dominators[b][a]: every way to b leads through a.
std::vector<std::vector<bool>> findDominators(const std::vector<SassBlock>& blocks) {
  const size_t n = blocks.size();
  std::vector<std::vector<bool>> dom(n, std::vector<bool>(n, true));
  dom[0].assign(n, false);
  dom[0][0] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = 1; b < n; ++b) {
      std::vector<bool> next(n, true);
      for (int p : blocks[b].predecessors)
        for (size_t a = 0; a < n; ++a) next[a] = next[a] && dom[static_cast<size_t>(p)][a];
      next[b] = true;
      if (next != dom[b]) dom[b] = std::move(next), changed = true;
    }
  }
  return dom;
}

std::vector<SassLoop> findLoops(const std::vector<SassInstruction>& code, int sm) {
  const std::vector<SassBlock> blocks = splitBlocks(code, sm);
  const auto dominators = findDominators(blocks);
  std::map<int, std::set<int>> bodies;  // by header
  for (size_t b = 0; b < blocks.size(); ++b)
    for (int header : blocks[b].successors) {
      if (!dominators[b][static_cast<size_t>(header)]) continue;
      if (blocks[b].predecessors.empty() && b != 0) continue;  // unreachable: dominated by everything
      std::set<int>& body = bodies[header];
      body.insert(header);
      std::vector<int> work{static_cast<int>(b)};
      while (!work.empty()) {
        const int at = work.back();
        work.pop_back();
        if (!body.insert(at).second) continue;
        work.insert(work.end(), blocks[static_cast<size_t>(at)].predecessors.begin(),
                    blocks[static_cast<size_t>(at)].predecessors.end());
      }
    }
  std::vector<SassLoop> loops;
  for (auto& [header, body] : bodies) {
    SassLoop loop;
    for (int b : body) {
      const SassBlock& block = blocks[static_cast<size_t>(b)];
      loop.blocks.emplace_back(block.first, block.end);
      for (int i = block.first; i < block.end; ++i) count(loop.counts, code[static_cast<size_t>(i)]);
    }
    for (auto& [other, outer] : bodies) loop.depth += other != header && outer.count(header);
    loops.push_back(std::move(loop));
  }
  return loops;
}

}  // namespace

Result<SassKernel> readSass(std::string_view cubin, const std::string& entry, int sm) {
  const std::string_view text = section(cubin, ".text." + entry);
  if (text.empty() || text.size() % 16)
    return Error{ErrorKind::internal, "the cubin has no code of kernel '" + entry + "'", {}};
  SassKernel kernel;
  for (uint64_t at = 0; at < text.size(); at += 16) {
    SassInstruction inst;
    readAt(text, at, inst.low);
    readAt(text, at + 8, inst.high);
    kernel.code.push_back(inst);
    count(kernel.counts, inst);
    if (inst.opcode() == kSetRegisters) kernel.registerChanges.push_back(static_cast<int>(inst.low >> 32 & 0x1ff));
  }
  kernel.loops = findLoops(kernel.code, sm);
  return kernel;
}

const SassLoop* SassKernel::hottestLoop() const {
  auto work = [&](const SassCounts& c) {
    if (counts.tensorOps()) return c.tensorOps();
    if (counts.mufu) return c.mufu;
    return c.globalLoads + c.globalStores + c.asyncCopies + c.bulkLoads + c.sharedLoads + c.sharedStores;
  };
  const SassLoop* best = nullptr;
  for (const SassLoop& loop : loops) {
    if (work(loop.counts) == 0) continue;
    auto isInside = [&](const SassLoop& inner) {
      return &inner != &loop && inner.depth > loop.depth && work(inner.counts) &&
             std::find(loop.blocks.begin(), loop.blocks.end(), inner.blocks.front()) != loop.blocks.end();
    };
    if (std::any_of(loops.begin(), loops.end(), isInside)) continue;
    const int more = best ? work(loop.counts) - work(best->counts) : 1;
    if (more > 0 || (more == 0 && loop.counts.instructions < best->counts.instructions)) best = &loop;
  }
  return best;
}

std::string SassKernel::phases(const SassLoop& loop) const {
  std::vector<std::pair<std::string, int>> steps;  // word, how often in a row (0: not counted)
  auto add = [&](const std::string& word, bool counted) {
    if (counted && !steps.empty() && steps.back().first == word)
      ++steps.back().second;
    else
      steps.emplace_back(word, counted ? 1 : 0);
  };
  for (auto [first, end] : loop.blocks)
    for (int i = first; i < end; ++i) {
      const SassInstruction& inst = code[static_cast<size_t>(i)];
      switch (inst.opcode()) {
        // clang-format off
        case kHgmma: case kQgmma: case kIgmma: case kBgmma: add("ss", true); break;
        case kHgmmaReg: case kQgmmaReg: case kIgmmaReg: case kBgmmaReg: add("rs", true); break;
        case 0x23c: case 0x237: case 0x23f: case 0x23d: add("mma", true); break;
        case kMufu: add("mufu", true); break;
        case kTryWait: add("try", false); break;
        case kArrive: add("arrive", false); break;
        case kBar: add("bar", false); break;
        case kWarpgroup:  // bit 47: waits for all but so many groups; else orders registers
          if (inst.low >> 47 & 1) add("wait" + std::to_string(inst.high >> 8 & 7), false);
          break;
        default: break;
          // clang-format on
      }
    }
  std::string text;
  for (auto& [word, times] : steps) text += (text.empty() ? "" : " ") + word + (times ? std::to_string(times) : "");
  return text;
}

}  // namespace tile::ir
