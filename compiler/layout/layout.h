// layout.h - where the elements of a tile live: in which register of which lane of which warp. Pure C++, no MLIR.
//
// One representation for every register layout (blocked, mma fragments, slices for row vectors, ...): three lists of
// mixed-radix digits. A thread's register number, lane and warp are each written in their list's radices, minor digit
// first; every digit adds value * stride to one coordinate:
//     coord[d] = sum over all digits q with q.dim == d of value(q) * q.stride
// Radices are any positive integers, so tile sides need not be powers of two (an instruction's atom is digits of 2, its
// repetitions and the teams of warps are digits of any count). A digit with dim kReplicated moves no coordinate: all
// its values hold the same element. The digits of one dim are dense (strides 1, c0, c0*c1, ... in some order), so the
// map is one-to-one up to replication and leaves no element out. A layout may cover more than the tile (cover(d) >
// shape[d]): elements at coord >= shape are padding and hold garbage.
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
  /// Normalises: digits of count 1 vanish, neighbours that act as one digit merge. So equal maps of the same register
  /// order compare equal.
  Layout(Shape shape, std::vector<Digit> regs, std::vector<Digit> lanes, std::vector<Digit> warps);

  const Shape& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  const std::vector<Digit>& regs() const { return regs_; }
  const std::vector<Digit>& lanes() const { return lanes_; }
  const std::vector<Digit>& warps() const { return warps_; }
  int numRegs() const;    ///< elements each thread holds, replicas and padding included
  int numLanes() const;   ///< 32 on NVIDIA GPUs
  int numWarps() const;
  int numThreads() const { return numLanes() * numWarps(); }

  int64_t cover(int dim) const;               ///< extent the digits span; >= shape()[dim]
  bool isPadded() const;                      ///< some dim covers more than the tile
  bool isPadded(int dim) const { return cover(dim) > shape_[dim]; }
  /// Padding in every thread (the register digits alone leave the tile): needs no code at all.
  bool isRegPadding(int reg) const;
  bool inTile(const Coord& coord) const;
  Coord coordOf(int reg, int lane, int warp) const;
  Coord regCoord(int reg) const;  ///< the register digits' share: constants added to the thread's own coordinate
  Coord threadCoord(int lane, int warp) const;
  /// Consecutive registers that hold consecutive elements along `dim` (from every multiple of it); 1 if none.
  int contiguousRegs(int dim) const;
  /// Length of the runs of elements consecutive along `dim` that each thread holds, in whatever registers.
  int runLength(int dim) const;
  /// Registers of each run of `length` elements along `dim` (length divides runLength(dim)), in order of coordinate;
  /// every register once. Runs start at multiples of their length.
  std::vector<std::vector<int>> runs(int dim, int length) const;
  /// Largest coordinate along `dim` that lanes and warps add to the registers' own.
  int64_t maxThreadCoord(int dim) const;
  /// Threads and registers with the same element: product of the replicated digits of each list.
  int regReplicas() const;
  int laneReplicas() const;
  int warpReplicas() const;

  Layout transposed(const std::vector<int>& permutation) const;  ///< result dim i is source dim permutation[i]
  Layout sliced(int dim) const;               ///< dim becomes size 1: its register digits vanish, lanes/warps replicate
  std::optional<Layout> reshaped(const Shape& shape) const;      ///< nullopt: elements would have to move
  /// Every coordinate along `dim` cut to a multiple of `step`: where the element's group begins. Nullopt: what single
  /// digits add below `step` does not stay below it.
  std::optional<Layout> groupsAlong(int dim, int64_t step) const;

  bool operator==(const Layout&) const = default;
  /// `8x16 regs [1:2*1] lanes [1:4*2, 0:8*1] warps [rep:4]`: dim:count*stride per digit, minor digit first.
  std::string to_string() const;
  std::string check() const;                  ///< empty when well formed, else what is wrong

 private:
  Shape shape_;
  std::vector<Digit> regs_, lanes_, warps_;
};

/// Coalesced layout: up to `vector` consecutive elements of dim order[0] per thread, lanes along order[0] and then the
/// next dims, warps along the slowest dims first (so that few warps share a row); what is left over becomes
/// repetitions. order[0] is the fastest dim. Prefers exact splits; pads only when threads would idle or rows be read in
/// tiny pieces.
Layout blocked(const Shape& shape, int vector, const std::vector<int>& order, int numWarps, int numLanes = 32);

// Fragments of mma.sync, all over a grid of warpsM x warpsN (warp = m + warpsM * n), each warp owning atoms interleaved
// with the other warps' (stride 16 rows, 8 columns). Register order, minor first: the atom's registers as the
// instruction numbers them, then repetitions along columns (accumulator: n; A: k) and then rows (B: k, then n).

/// Accumulator (m16n8): rows lane/4 and +8, columns (lane%4)*2 and +1.
Layout mmaAccumulator(const Shape& shape, int warpsM, int warpsN);
/// A operand (m16 x k, row-major fragment) for the same warp grid; `bits` per element (8, 16, 32).
Layout mmaOperandA(const Shape& shape, int warpsM, int warpsN, int bits);
/// B operand (k x n8).
Layout mmaOperandB(const Shape& shape, int warpsM, int warpsN, int bits);

/// As many matrices that all lie like `matrix`, which has the warps of one, dealt out in turn to `warps` times as many.
Layout inBatches(const Layout& matrix, int64_t count, int warps);

/// Accumulator of 64-bit elements: m16n8 twice, for 16 columns. Rows and columns of the instructions are assigned to rows
/// and columns of the tile in an order of our own, in which reads of an operand by half a warp, from tiles swizzled in
/// rows of 128 bytes, have no bank conflicts. Added to the coordinate by the lane bits (g = lane / 4, t = lane % 4), by
/// the second row (column) of an instruction, and by the second instruction:
///
///   rows,    a contiguous along k   bits of g: 2, 4, 1   second row: 8
///            else                   bits of g: 8, 2, 4   second row: 1 (read together with the first)
///   columns, b contiguous along k   bits of t: 2, 8      second column: 4   second instruction: 1
///            else                   bits of t: 8, 2      second column: 1   second instruction: 4
Layout mmaDoubleAccumulator(const Shape& shape, int warpsM, int warpsN, bool aAlongK, bool bAlongK);

// Fragments of wgmma over a grid of teamsM x teamsN warpgroups of 4 warps (warpgroup = m + teamsM * n). A warpgroup
// owns 64 consecutive rows of every repetition (stride 64 * teamsM) and one consecutive part of the columns, a multiple
// of `unitN`. With teamsN = 1 these are the layouts of mma.sync over 4 * teamsM warps along M.

/// Accumulator (m64nN): as mma.sync's, 16 rows per warp.
Layout wgmmaAccumulator(const Shape& shape, int teamsM, int teamsN, int unitN = 8);
/// A operand in registers (m64k16 of 16 bits, m64k32 of 8): threads hold the rows and columns they hold of an
/// accumulator of this shape, so a narrowed accumulator is an operand. Of 8-bit elements the instruction wants other
/// columns: a product counts k in this order, too (interleaved tiles), or exchanges elements between threads first.
Layout wgmmaOperandA(const Shape& shape, int teamsM, int teamsN, int bits = 16);

// For a first operand that lies in shared memory with its rows m as neighbours (rows of 128 bytes along k, swizzled)
// and is read into registers element by element, the 64 rows of an instruction stand for rows in another order: the two
// rows of a thread are neighbours (one read), and so are those of lanes, for whole sectors of results. Rows that bit b
// of the instruction's row moves by, from bit 0:
//   32-bit elements: 2, 16, 4, 1, 8, 32. The threads of half a warp read 8 different 16-byte chunks: no bank conflict.
//    8-bit elements: 2, 4, 8, 1, 16, 32. A warp reads 16 bytes of a row, of four rows in different chunks.

/// Accumulator (m64nN) of such a product; `bits` of an operand's element, 8 or 32.
Layout wgmmaSpreadAccumulator(const Shape& shape, int teamsM, int teamsN, int bits, int unitN = 8);
/// Its first operand, 32-bit (m64k8): registers (row, k), (row + 1, k), (row, k + 4), (row + 1, k + 4).
Layout wgmmaSpreadOperandA(const Shape& shape, int teamsM, int teamsN);

}  // namespace tile::layout
