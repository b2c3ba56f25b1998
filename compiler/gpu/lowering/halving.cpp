// halving.cpp - see halving.h.
#include "compiler/gpu/lowering/halving.h"

#include <algorithm>

namespace tile::ir {

namespace {

/// Values that are reduced together. More at once would cost as many shuffles each, but more registers.
constexpr size_t kGroup = 8;

Tuple fromPartner(Emitter& e, Combiner& combine, const Tuple& tuple, int partner) {
  return combine.map(tuple, [&](llvm::Value* value) { return e.shuffleXor(value, partner); });
}

/// How many of the steps can halve that many values.
size_t halvingsOf(size_t values, size_t steps) {
  size_t count = 0;
  while (count < steps && (values >> count) % 2 == 0) ++count;
  return count;
}

/// Whether it costs at most three quarters of what butterflies do. A shuffle costs as much as two choices.
bool isWorthHalving(size_t values, size_t steps) {
  const size_t halvings = halvingsOf(values, steps), left = values >> halvings, sent = values - left;
  const size_t shuffles = sent + (steps - halvings) * left + values, choices = 2 * sent;
  return 4 * (2 * shuffles + choices) <= 3 * (2 * values * steps);
}

/// Halves as often as possible, makes butterflies of the steps that remain, and lets every lane fetch each value from
/// the lane that has it.
void reduceGroup(Emitter& e, Combiner& combine, llvm::ArrayRef<Tuple> group, llvm::ArrayRef<int> partners,
                 Together together, std::vector<Tuple>& reduced) {
  constexpr int kAllBits = 31;  // of a lane's number
  const size_t halvings = halvingsOf(group.size(), partners.size());
  std::vector<Tuple> kept = group.vec();
  int sharing = 0;
  for (int partner : partners.take_front(halvings)) {
    sharing |= partner;
    kept = keepHalf(e, combine, kept, partner);
  }
  for (int partner : partners.drop_front(halvings))
    for (Tuple& tuple : kept) tuple = together(tuple, fromPartner(e, combine, tuple, partner), partner);
  for (size_t i = 0; i < group.size(); ++i) {
    int from = 0;
    for (size_t k = 0; k < halvings; ++k) from |= (i >> k & 1) ? partners[k] : 0;
    llvm::Value* lane = e.i32(from);
    if (sharing != kAllBits) lane = e.b.CreateOr(e.b.CreateAnd(e.lane(), e.i32(kAllBits & ~sharing)), lane);
    reduced.push_back(combine.map(kept[i >> halvings], [&](llvm::Value* value) { return e.shuffleIdx(value, lane); }));
  }
}

}  // namespace

std::vector<Tuple> keepHalf(Emitter& e, Combiner& combine, llvm::ArrayRef<Tuple> values, int partner) {
  llvm::Value* isUpper = e.b.CreateICmpNE(e.b.CreateAnd(e.lane(), e.i32(partner)), e.i32(0));
  std::vector<Tuple> kept;
  for (size_t i = 0; i < values.size(); i += 2) {
    const Tuple own = combine.select(isUpper, values[i + 1], values[i]);
    const Tuple sent = combine.select(isUpper, values[i], values[i + 1]);
    kept.push_back(combine(own, fromPartner(e, combine, sent, partner)));
  }
  return kept;
}

std::vector<Tuple> reduceByHalves(Emitter& e, Combiner& combine, llvm::ArrayRef<Tuple> values,
                                  llvm::ArrayRef<int> partners, Together together) {
  const size_t group = std::min(values.size(), kGroup);
  std::vector<Tuple> reduced;
  if (values.size() % group || !isWorthHalving(group, partners.size())) return reduced;
  for (size_t i = 0; i < values.size(); i += group)
    reduceGroup(e, combine, values.slice(i, group), partners, together, reduced);
  return reduced;
}

}  // namespace tile::ir
