// lane_trades.cpp - trades as digits of 2 that change their place between registers and lanes.
#include "compiler/layout/lane_trades.h"

#include <algorithm>
#include <tuple>

#include "compiler/layout/relations.h"

namespace tile::layout {
namespace {

/// Every digit as digits of 2, minor first; nullopt for replicas and other radices.
std::optional<std::vector<Digit>> bitsOf(const std::vector<Digit>& digits) {
  std::vector<Digit> bits;
  for (const Digit& digit : digits) {
    if (digit.dim == kReplicated || (digit.count & (digit.count - 1)) != 0) return std::nullopt;
    for (int step = 1; step < digit.count; step *= 2) bits.push_back({digit.dim, 2, digit.stride * step});
  }
  return bits;
}

}  // namespace

std::optional<LaneSwaps> laneSwaps(const Layout& from, const Layout& to) {
  if (from.shape() != to.shape() || from.warps() != to.warps() || from.isPadded() || to.isPadded()) return std::nullopt;
  auto regs = bitsOf(from.regs()), lanes = bitsOf(from.lanes()), wantedRegs = bitsOf(to.regs()),
       wantedLanes = bitsOf(to.lanes());
  if (!regs || !lanes || !wantedRegs || !wantedLanes || regs->size() != wantedRegs->size()) return std::nullopt;
  LaneSwaps out;
  for (size_t p = 0; p < lanes->size(); ++p) {
    if ((*lanes)[p] == (*wantedLanes)[p]) continue;
    auto reg = std::find(regs->begin(), regs->end(), (*wantedLanes)[p]);
    if (reg == regs->end()) return std::nullopt;
    LaneSwap swap{1 << p, {}};
    const int bit = 1 << (reg - regs->begin());
    for (int r = 0; r < from.numRegs(); ++r)
      if (!(r & bit)) swap.pairs.emplace_back(r, r | bit);
    out.swaps.push_back(std::move(swap));
    std::swap((*lanes)[p], *reg);
  }
  const Layout swapped(from.shape(), *regs, *lanes, from.warps());
  if (conversion(swapped, to) == Conversion::shared) return std::nullopt;
  out.map = registerMap(swapped, to);
  return out;
}

std::optional<Layout> cuttableLayout(const Layout& source, const Shape& shape, int most) {
  auto isCut = [&](const Digit& bit) {
    const auto dim = static_cast<size_t>(bit.dim);
    return bit.dim != kReplicated && shape[dim] != source.shape()[dim] && int64_t{bit.stride} * bit.count > shape[dim];
  };
  auto regs = bitsOf(source.regs()), lanes = bitsOf(source.lanes());
  if (!regs || !lanes || source.isPadded()) return std::nullopt;
  for (const Digit& digit : source.warps())
    if (isCut(digit)) return std::nullopt;
  // Neighbours across rows go to lanes first, which reads and writes memory well; those of a row are kept longest: they
  // are read and written at once.
  constexpr int kVector = 4;
  auto rank = [&](const Digit& bit) {
    const bool isVector = bit.dim == source.rank() - 1 && bit.stride < kVector;
    return std::tuple(isVector, -bit.dim, isVector ? -bit.stride : bit.stride);
  };
  int traded = 0;
  for (Digit& lane : *lanes) {
    if (!isCut(lane)) continue;
    Digit* given = nullptr;
    for (Digit& reg : *regs)
      if (!isCut(reg) && (!given || rank(reg) < rank(*given))) given = &reg;
    if (!given || ++traded > most) return std::nullopt;
    std::swap(lane, *given);
  }
  if (!traded) return std::nullopt;
  return Layout(source.shape(), *regs, *lanes, source.warps());
}

std::optional<Layout> runsOfWarps(const Layout& source, int dim, int vector, int run) {
  auto bits = bitsOf(source.regs()), lanes = bitsOf(source.lanes());
  if (!bits || !lanes || source.isPadded()) return std::nullopt;
  const size_t laneBits = lanes->size();
  bits->insert(bits->end(), lanes->begin(), lanes->end());
  // What a thread holds, what its neighbours do, what further lanes do, the rest: by what comes first.
  auto place = [&](const Digit& bit) {
    const int part = bit.dim != dim ? 2 : bit.stride < vector ? 0 : bit.stride < run ? 1 : 3;
    return std::tuple(part, -bit.dim, bit.stride);
  };
  std::stable_sort(bits->begin(), bits->end(), [&](const Digit& a, const Digit& b) { return place(a) < place(b); });
  size_t inRun = 0, inVector = 0;
  for (const Digit& bit : *bits)
    if (bit.dim == dim && bit.stride < run) ++inRun, inVector += bit.stride < vector;
  if (1 << inRun != run || 1 << inVector != vector || inRun - inVector > laneBits) return std::nullopt;
  if (bits->size() < inVector + laneBits) return std::nullopt;
  std::vector<Digit> regs(bits->begin(), bits->begin() + inVector);
  const std::vector<Digit> spread(bits->begin() + inVector, bits->begin() + inVector + laneBits);
  regs.insert(regs.end(), bits->begin() + inVector + laneBits, bits->end());
  return Layout(source.shape(), regs, spread, source.warps());
}

}  // namespace tile::layout
