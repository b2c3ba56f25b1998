// layout.h - where the elements of a tile live: in which register of which lane of which warp. Pure C++, no MLIR.
//
// One representation for every register layout (blocked, mma fragments, slices for row vectors, ...): three lists of
// mixed-radix digits. A thread's register number, lane and warp are each written in their list's radices, minor digit
// first; every digit adds value * stride to one coordinate:
//     coord[d] = sum over all digits q with q.dim == d of value(q) * q.stride
// Radices are any positive integers, so tile sides need not be powers of two (an instruction's atom is digits of 2, its
// repetitions and the teams of warps are digits of any count). A digit with dim kReplicated moves no coordinate: all its
// values hold the same element. Strides of one dim never overlap, so the map is one-to-one up to replication.
// A layout may cover more than the tile (cover(d) > shape[d]): elements at coord >= shape are padding and hold garbage.
//
// transpose, slice, broadcast and many reshapes are digit arithmetic and cost nothing at run time.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tile::layout {

inline constexpr int kReplicated = -1;

struct Digit {
  int dim;     ///< tile dim it moves along, or kReplicated
  int count;   ///< radix, >= 1
  int stride;  ///< elements per step; 0 when replicated
  bool operator==(const Digit&) const = default;
};

using Shape = std::vector<int64_t>;
using Coord = std::vector<int64_t>;

class Layout {
 public:
  Layout() = default;
  Layout(Shape shape, std::vector<Digit> regs, std::vector<Digit> lanes, std::vector<Digit> warps);

  const Shape& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  const std::vector<Digit>& regs() const { return regs_; }
  const std::vector<Digit>& lanes() const { return lanes_; }
  const std::vector<Digit>& warps() const { return warps_; }
  int numRegs() const;    ///< elements each thread holds, replicas and padding included
  int numLanes() const;   ///< 32 on NVIDIA GPUs
  int numWarps() const;

  int64_t cover(int dim) const;               ///< extent the digits span; >= shape()[dim]
  bool isPadded() const;                      ///< some dim covers more than the tile
  Coord coordOf(int reg, int lane, int warp) const;
  Coord regCoord(int reg) const;              ///< the register digits' share: constants added to the thread's own coordinate
  /// Registers in row-major order of element, for a thread at its own origin: contiguous runs along `dim` of length
  /// `contiguousRegs(dim)` sit in consecutive registers when the minor register digit moves along `dim` with stride 1.
  int contiguousRegs(int dim) const;

  Layout transposed(const std::vector<int>& permutation) const;  ///< result dim i is source dim permutation[i]
  Layout sliced(int dim) const;               ///< dim becomes size 1: its register digits vanish, lanes/warps replicate
  std::optional<Layout> expanded(int dim, int64_t size, const Layout& like) const;
  Layout withShape(Shape shape) const;        ///< same digits over another tile shape (e.g. broadcast of the covered dim)
  std::optional<Layout> reshaped(const Shape& shape) const;      ///< nullopt: elements would have to move

  bool operator==(const Layout&) const = default;
  std::string to_string() const;
  std::string check() const;                  ///< empty when well formed, else what is wrong

 private:
  Shape shape_;
  std::vector<Digit> regs_, lanes_, warps_;
};

/// How two layouts of one tile relate; decides how a conversion is lowered.
enum class Conversion : uint8_t {
  identity,   ///< same element in the same register of the same thread
  registers,  ///< same thread, other register: a renaming
  shared,     ///< through shared memory
};
Conversion conversion(const Layout& from, const Layout& to);
/// For Conversion::registers: source register of each destination register.
std::vector<int> registerMap(const Layout& from, const Layout& to);

/// Coalesced layout: `vector` consecutive elements of dim order[0] per thread, lanes then warps along order[0], then the
/// next dims; what is left over becomes repetitions. order[0] is the fastest dim.
Layout blocked(const Shape& shape, int vector, const std::vector<int>& order, int numWarps, int numLanes = 32);

/// mma.sync accumulator (m16n8): rows lane/4 and +8, columns (lane%4)*2 and +1; warps tile rows first, then columns.
Layout mmaAccumulator(const Shape& shape, int warpsM, int warpsN);
/// mma.sync A operand (row-major fragment, m16 x k) for the same warp grid; `bits` per element (8, 16, 32).
Layout mmaOperandA(const Shape& shape, int warpsM, int warpsN, int bits);
/// mma.sync B operand (k x n8).
Layout mmaOperandB(const Shape& shape, int warpsM, int warpsN, int bits);

}  // namespace tile::layout
