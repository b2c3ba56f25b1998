// narrow_indices.h - where a kernel would leave 32 bits: indices computed from program ids, and sizes of tensors that
// it reads as i32. Found in the trace, checked at every launch: an index that wraps would touch other memory without a
// word.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/launch.h"

namespace mlir {
class ModuleOp;
}

namespace tile::detail {

class NarrowIndices {
 public:
  NarrowIndices() = default;
  /// Of the kernel in a traced module. Sums and products that launches keep from wrapping say so where something is
  /// divided (nsw).
  explicit NarrowIndices(mlir::ModuleOp module);

  /// Whether a launch stays inside; `slots` as in runtime/abi.h.
  bool hold(const Grid& grid, std::span<const uint64_t> slots) const {
    for (const Index& i : indices_)
      if (i.wraps(grid)) return false;
    for (const Size& s : sizes_)
      if (s.slot < slots.size() && static_cast<int64_t>(slots[s.slot]) > INT32_MAX) return false;
    return true;
  }
  /// What hold() found, with the line of the kernel.
  Error problem(const std::string& kernel, const Grid& grid, std::span<const uint64_t> slots) const;

 private:
  struct Place {
    std::string file;
    uint32_t line = 0, column = 0;
  };
  /// A sum or product computed in 32 bits that is at most `rest` plus, for every axis, `step` times the program's id.
  struct Index {
    std::array<int64_t, 3> step{};
    int64_t rest = 0;
    Place place;
    /// Grids that no device takes have an error of their own.
    bool wraps(const Grid& g) const {
      return last(g) > INT32_MAX && g.x <= INT32_MAX && g.y <= INT32_MAX && g.z <= INT32_MAX;
    }
    double last(const Grid& g) const {  // exact where it matters: around 2^31
      return static_cast<double>(step[0]) * static_cast<double>(g.x - 1) +
             static_cast<double>(step[1]) * static_cast<double>(g.y - 1) +
             static_cast<double>(step[2]) * static_cast<double>(g.z - 1) + static_cast<double>(rest);
    }
  };
  struct Size {
    size_t slot = 0;
    uint32_t param = 0, dim = 0;
    Place place;
  };
  class Finder;
  std::vector<Index> indices_;
  std::vector<Size> sizes_;
};

}  // namespace tile::detail
