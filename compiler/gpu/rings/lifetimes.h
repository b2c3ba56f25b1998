// lifetimes.h - buffers that share memory because they live at different times: positions in program order, and the
// lowest place beside what lives at the same time. For the plan (how much) and place_buffers (where).
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// Where every op inside `root` begins and ends in program order; an op with regions ends behind what they hold.
class ProgramOrder {
 public:
  explicit ProgramOrder(mlir::Operation* root) { number(root); }
  int64_t begin(mlir::Operation* op) const { return places_.at(op).first; }
  int64_t end(mlir::Operation* op) const { return places_.at(op).second; }

 private:
  void number(mlir::Operation* op) {
    const int64_t begin = next_++;
    for (mlir::Region& region : op->getRegions())
      for (mlir::Block& block : region)
        for (mlir::Operation& inner : block) number(&inner);
    places_[op] = {begin, next_++};
  }
  int64_t next_ = 0;
  llvm::DenseMap<mlir::Operation*, std::pair<int64_t, int64_t>> places_;
};

/// The lowest aligned offset at which `one` is clear of those of `all` that have an offset (not -1) and live at the
/// same time. Fields: bytes, alignment, offset, and begin and end of the life, inclusive.
template <class Buffer>
int64_t firstFit(const Buffer& one, const std::vector<Buffer>& all) {
  std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end)
  for (const Buffer& other : all)
    if (other.offset >= 0 && other.begin <= one.end && one.begin <= other.end)
      taken.emplace_back(other.offset, other.offset + other.bytes);
  std::sort(taken.begin(), taken.end());
  int64_t at = 0;
  for (auto [begin, end] : taken) {
    if (at + one.bytes <= begin) break;
    at = std::max(at, (end + one.alignment - 1) / one.alignment * one.alignment);
  }
  return at;
}

}  // namespace tile::ir
