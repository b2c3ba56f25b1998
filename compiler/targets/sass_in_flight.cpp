// sass_in_flight.cpp - for each place in the code, which products may be in flight: forward data flow over its blocks.
//
// A product that commits ("gsb0") ends a group: itself and those before it since the last one. A wait
// (WARPGROUP.DEPBAR) that leaves N groups covers products with more than N groups committed since they were issued,
// their own included: that number is a product's age here. Where several paths meet the youngest counts. What is called
// (ptxas's slow paths of divisions) touches registers where it is called from, and has no products.
#include "compiler/targets/sass_in_flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/targets/sass_blocks.h"
#include "compiler/targets/sass_registers.h"

namespace tile::ir {
namespace {

constexpr int kSm = 90;
constexpr uint8_t kOldest = 8;  ///< any wait covers it: they leave 7 groups at most
constexpr uint8_t kDone = 255;

using Ages = std::vector<uint8_t>;  ///< by product

struct Product {
  int at = 0;
  SassRegisters registers;
  bool commits = false;
};

bool isProduct(uint32_t op) {
  switch (op) {
    case kHgmma:
    case kHgmmaReg:
    case kIgmma:
    case kIgmmaReg:
    case kBgmma:
    case kBgmmaReg:
    case kQgmma:
    case kQgmmaReg:
      return true;
    default:
      return false;
  }
}

class InFlight {
 public:
  explicit InFlight(const SassKernel& kernel) : code_(kernel.code), blocks_(splitBlocks(kernel.code, kSm)) {
    for (int i = 0; i < static_cast<int>(code_.size()); ++i)
      if (isProduct(at(i).opcode())) products_.push_back({i, *registersOf(at(i)), (at(i).high >> 20 & 7) != 7});
  }

  std::vector<std::string> run() {
    if (products_.empty()) return {};
    std::vector<Ages> entry(blocks_.size(), Ages(products_.size(), kDone));
    std::set<size_t> work;
    for (size_t b = 0; b < blocks_.size(); ++b) work.insert(b);
    while (!work.empty()) {
      const size_t b = *work.begin();
      work.erase(work.begin());
      Ages ages = entry[b];
      for (int i = blocks_[b].first; i < blocks_[b].end; ++i) step(i, ages);
      for (int successor : blocks_[b].successors) {
        const size_t s = static_cast<size_t>(successor);
        Ages& there = entry[s];
        bool younger = false;
        for (size_t p = 0; p < ages.size(); ++p)
          if (ages[p] < there[p]) there[p] = ages[p], younger = true;
        if (younger) work.insert(s);
      }
    }
    for (size_t b = 0; b < blocks_.size(); ++b)
      for (int i = blocks_[b].first; i < blocks_[b].end; ++i) {
        check(i, entry[b]);
        if (at(i).opcode() == kCall) checkCall(i, entry[b]);
        step(i, entry[b]);
      }
    return std::move(found_);
  }

 private:
  const SassInstruction& at(int i) const { return code_[static_cast<size_t>(i)]; }

  size_t productAt(int i) const {
    const auto it = std::lower_bound(products_.begin(), products_.end(), i,
                                     [](const Product& p, int index) { return p.at < index; });
    return static_cast<size_t>(it - products_.begin());
  }

  void step(int i, Ages& ages) const {
    const SassInstruction& inst = at(i);
    if (isProduct(inst.opcode())) {
      const size_t p = productAt(i);
      ages[p] = 0;
      if (!products_[p].commits || inst.predicated()) return;
      for (uint8_t& age : ages)
        if (age < kOldest) ++age;
    } else if (inst.opcode() == kWarpgroup && (inst.low >> 47 & 1) && !inst.predicated()) {
      const uint8_t left = inst.high >> 8 & 7;
      for (uint8_t& age : ages)
        if (age > left) age = kDone;
    }
  }

  static bool anyInFlight(const Ages& ages) {
    return std::any_of(ages.begin(), ages.end(), [](uint8_t age) { return age != kDone; });
  }

  /// Everything that the call at `call` may execute.
  void checkCall(int call, const Ages& ages) {
    if (!anyInFlight(ages)) return;
    const int64_t target = branchTarget(at(call), call, kSm);
    std::set<int> body;
    std::vector<int> work;
    for (size_t b = 0; b < blocks_.size(); ++b)
      if (blocks_[b].first == target) work.push_back(static_cast<int>(b));
    bool known = !work.empty();
    while (!work.empty()) {
      const int b = work.back();
      work.pop_back();
      if (!body.insert(b).second) continue;
      const SassBlock& block = blocks_[static_cast<size_t>(b)];
      work.insert(work.end(), block.successors.begin(), block.successors.end());
      for (int i = block.first; i < block.end; ++i) {
        const uint32_t op = at(i).opcode();
        known = known && !isProduct(op) && op != kWarpgroup && op != kCall && op != kIndirect;
        check(i, ages);
      }
    }
    if (!known)
      found_.push_back(fmt::format("instruction {}: a call nobody can follow, with products in flight", call));
  }

  void check(int i, const Ages& ages) {
    if (!anyInFlight(ages)) return;
    const auto own = registersOf(at(i));
    if (!own) {
      found_.push_back(
          fmt::format("instruction {}: registers of opcode {:#x} are unknown (sass_registers.cpp), and "
                      "products are in flight",
                      i, at(i).opcode()));
      return;
    }
    const bool product = isProduct(at(i).opcode());
    for (size_t p = 0; p < ages.size(); ++p) {
      if (ages[p] == kDone) continue;
      const SassRegisters& theirs = products_[p].registers;
      if (own->written.overlaps(theirs.read[0])) report(i, own->written, "writes", p, theirs.read[0], "operand A");
      const bool chained = product && own->written == theirs.written;
      if (chained && (own->read[2].count == 0 || own->read[2] == own->written)) {
        if (own->read[0].overlaps(theirs.written)) report(i, own->read[0], "reads", p, theirs.written, "accumulator");
        continue;
      }
      if (own->written.overlaps(theirs.written)) report(i, own->written, "writes", p, theirs.written, "accumulator");
      for (const SassRange& read : own->read)
        if (read.overlaps(theirs.written)) report(i, read, "reads", p, theirs.written, "accumulator");
    }
  }

  void report(int i, const SassRange& own, const char* does, size_t product, const SassRange& theirs,
              const char* what) {
    const int first = std::max(own.first, theirs.first);
    found_.push_back(fmt::format("instruction {} (opcode {:#x}) {} R{}: {} R{}..R{} of the product at {}, in flight", i,
                                 at(i).opcode(), does, first, what, theirs.first, theirs.first + theirs.count - 1,
                                 products_[product].at));
  }

  const std::vector<SassInstruction>& code_;
  const std::vector<SassBlock> blocks_;
  std::vector<Product> products_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> touchedInFlight(const SassKernel& kernel) { return InFlight(kernel).run(); }

}  // namespace tile::ir
