// factory.cpp - the layouts the compiler starts from: coalesced (blocked) ones and the fragments of mma.sync and wgmma.
#include <algorithm>
#include <numeric>

#include "compiler/layout/layout.h"

namespace tile::layout {
namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The smallest divisor of `units` that is at least n, or all units.
int64_t coveringDivisor(int64_t n, int64_t units) {
  for (int64_t c = 1; c < units; ++c)
    if (units % c == 0 && c >= n) return c;
  return units;
}

// Lanes along a dim with n pieces left. Exact splits first; when those are narrower than four neighbours, a split that
// wastes at most 30 % of the work reads longer runs of memory.
int64_t laneCount(int64_t n, int64_t lanes) {
  int64_t exact = std::gcd(n, lanes);
  if (exact >= 4 || exact >= n) return exact;
  for (int64_t c = lanes; c > exact; --c) {
    if (lanes % c) continue;
    if (10 * n >= 7 * c * ceilDiv(n, c)) return c;
  }
  return exact;
}

// Hands out lanes, warps and registers along dims, from the minor end of each dim outwards.
class Builder {
 public:
  explicit Builder(const Shape& shape) : left_(shape), extent_(shape.size(), 1) {}

  int64_t left(int dim) const { return left_[dim]; }
  void take(int dim, int64_t count, std::vector<Digit>& list) {
    if (count <= 1) return;
    list.push_back({dim, static_cast<int>(count), static_cast<int>(extent_[dim])});
    extent_[dim] *= count;
    left_[dim] = ceilDiv(left_[dim], count);
  }

 private:
  std::vector<int64_t> left_, extent_;
};

}  // namespace

Layout blocked(const Shape& shape, int vector, const std::vector<int>& order, int numWarps, int numLanes) {
  Builder builder(shape);
  std::vector<Digit> regs, lanes, warps;
  if (!order.empty()) builder.take(order[0], std::gcd(int64_t{vector}, shape[order[0]]), regs);

  int64_t lanesLeft = numLanes;
  for (int dim : order) {
    int64_t count = laneCount(builder.left(dim), lanesLeft);
    builder.take(dim, count, lanes);
    lanesLeft /= count;
  }
  for (int dim : order) {  // whatever no exact split could use
    if (lanesLeft == 1 || builder.left(dim) == 1) continue;
    int64_t count = coveringDivisor(builder.left(dim), lanesLeft);
    builder.take(dim, count, lanes);
    lanesLeft /= count;
  }
  if (lanesLeft > 1) lanes.push_back({kReplicated, static_cast<int>(lanesLeft), 0});

  int64_t warpsLeft = numWarps;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    int64_t count = std::gcd(builder.left(*it), warpsLeft);
    builder.take(*it, count, warps);
    warpsLeft /= count;
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (warpsLeft == 1 || builder.left(*it) == 1) continue;
    int64_t count = coveringDivisor(builder.left(*it), warpsLeft);
    builder.take(*it, count, warps);
    warpsLeft /= count;
  }
  if (warpsLeft > 1) warps.push_back({kReplicated, static_cast<int>(warpsLeft), 0});

  for (int dim : order) builder.take(dim, builder.left(dim), regs);
  return Layout(shape, regs, lanes, warps);
}

namespace {

int repetitions(int64_t extent, int64_t unit) { return static_cast<int>(ceilDiv(extent, unit)); }

}  // namespace

Layout mmaAccumulator(const Shape& shape, int warpsM, int warpsN) {
  int repM = repetitions(shape[0], 16 * warpsM), repN = repetitions(shape[1], 8 * warpsN);
  return Layout(shape, {{1, 2, 1}, {0, 2, 8}, {1, repN, 8 * warpsN}, {0, repM, 16 * warpsM}}, {{1, 4, 2}, {0, 8, 1}},
                {{0, warpsM, 16}, {1, warpsN, 8}});
}

Layout mmaOperandA(const Shape& shape, int warpsM, int warpsN, int bits) {
  int pack = 32 / bits, k = 8 * pack;  // elements per 32-bit register, and per instruction along k
  int repM = repetitions(shape[0], 16 * warpsM), repK = repetitions(shape[1], k);
  return Layout(shape, {{1, pack, 1}, {0, 2, 8}, {1, 2, 4 * pack}, {1, repK, k}, {0, repM, 16 * warpsM}},
                {{1, 4, pack}, {0, 8, 1}}, {{0, warpsM, 16}, {kReplicated, warpsN, 0}});
}

Layout mmaOperandB(const Shape& shape, int warpsM, int warpsN, int bits) {
  int pack = 32 / bits, k = 8 * pack;
  int repK = repetitions(shape[0], k), repN = repetitions(shape[1], 8 * warpsN);
  return Layout(shape, {{0, pack, 1}, {0, 2, 4 * pack}, {0, repK, k}, {1, repN, 8 * warpsN}}, {{0, 4, pack}, {1, 8, 1}},
                {{kReplicated, warpsM, 0}, {1, warpsN, 8}});
}

Layout inBatches(const Layout& matrix, int64_t count, int warps) {
  auto moved = [](std::vector<Digit> digits) {
    for (Digit& digit : digits) digit.dim += digit.dim == kReplicated ? 0 : 1;
    return digits;
  };
  Shape shape{count};
  shape.insert(shape.end(), matrix.shape().begin(), matrix.shape().end());
  std::vector<Digit> regs = moved(matrix.regs()), ofWarps = moved(matrix.warps());
  regs.push_back({0, repetitions(count, warps), warps});
  ofWarps.push_back({0, warps, 1});
  return Layout(shape, regs, moved(matrix.lanes()), ofWarps);
}

Layout mmaDoubleAccumulator(const Shape& shape, int warpsM, int warpsN, bool aAlongK, bool bAlongK) {
  int repM = repetitions(shape[0], 16 * warpsM), repN = repetitions(shape[1], 16 * warpsN);
  std::vector<Digit> lanes =
      bAlongK ? std::vector<Digit>{{1, 2, 2}, {1, 2, 8}} : std::vector<Digit>{{1, 2, 8}, {1, 2, 2}};
  if (aAlongK)
    lanes.insert(lanes.end(), {{0, 4, 2}, {0, 2, 1}});
  else
    lanes.insert(lanes.end(), {{0, 2, 8}, {0, 4, 2}});
  return Layout(shape,
                {{1, 2, bAlongK ? 4 : 1},
                 {0, 2, aAlongK ? 8 : 1},
                 {1, 2, bAlongK ? 1 : 4},
                 {1, repN, 16 * warpsN},
                 {0, repM, 16 * warpsM}},
                lanes, {{0, warpsM, 16}, {1, warpsN, 16}});
}

Layout wgmmaAccumulator(const Shape& shape, int teamsM, int teamsN, int unitN) {
  int repM = repetitions(shape[0], 64 * teamsM), part = repetitions(shape[1], unitN * teamsN) * unitN;
  return Layout(shape, {{1, 2, 1}, {0, 2, 8}, {1, part / 8, 8}, {0, repM, 64 * teamsM}}, {{1, 4, 2}, {0, 8, 1}},
                {{0, 4, 16}, {0, teamsM, 64}, {1, teamsN, part}});
}

Layout wgmmaOperandA(const Shape& shape, int teamsM, int teamsN, int bits) {
  const int k = 256 / bits;
  int repM = repetitions(shape[0], 64 * teamsM), repK = repetitions(shape[1], k);
  return Layout(shape, {{1, 2, 1}, {0, 2, 8}, {1, k / 8 * repK, 8}, {0, repM, 64 * teamsM}}, {{1, 4, 2}, {0, 8, 1}},
                {{0, 4, 16}, {0, teamsM, 64}, {kReplicated, teamsN, 0}});
}

Layout wgmmaSpreadAccumulator(const Shape& shape, int teamsM, int teamsN, int bits, int unitN) {
  int repM = repetitions(shape[0], 64 * teamsM), part = repetitions(shape[1], unitN * teamsN) * unitN;
  return Layout(shape, {{1, 2, 1}, {0, 2, 1}, {1, part / 8, 8}, {0, repM, 64 * teamsM}},
                bits == 8 ? std::vector<Digit>{{1, 4, 2}, {0, 8, 2}}
                          : std::vector<Digit>{{1, 4, 2}, {0, 2, 2}, {0, 2, 16}, {0, 2, 4}},
                {{0, 2, bits == 8 ? 16 : 8}, {0, 2, 32}, {0, teamsM, 64}, {1, teamsN, part}});
}

Layout wgmmaSpreadOperandA(const Shape& shape, int teamsM, int teamsN) {
  int repM = repetitions(shape[0], 64 * teamsM), repK = repetitions(shape[1], 8);
  return Layout(shape, {{0, 2, 1}, {1, 2, 4}, {1, repK, 8}, {0, repM, 64 * teamsM}},
                {{1, 4, 1}, {0, 2, 2}, {0, 2, 16}, {0, 2, 4}},
                {{0, 2, 8}, {0, 2, 32}, {0, teamsM, 64}, {kReplicated, teamsN, 0}});
}

}  // namespace tile::layout
