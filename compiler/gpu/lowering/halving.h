// halving.h - reductions of several values over the same lanes, in which lanes share the work.
//
// A butterfly (every lane combines its value with that of lane ^ 1, then ^ 2, ...) makes all lanes do the same work.
// With several values, two lanes can divide it instead: each sends one half of its values, and combines the other half
// with what it receives. The number of values halves with every step: 32 values cost 16 + 8 + 4 shuffles in three
// steps, not 3 * 32.
#pragma once
#include <vector>

#include "compiler/gpu/lowering/combine.h"

namespace tile::ir {

/// One step between lanes whose numbers differ in the bit `partner`. Of every two neighbouring values the lane without
/// the bit keeps the first, its partner the second, combined with the other lane's. The number of values must be even.
std::vector<Tuple> keepHalf(Emitter& e, Combiner& combine, llvm::ArrayRef<Tuple> values, int partner);

/// Combines own and received value such that both lanes get the same bits.
using Together = llvm::function_ref<Tuple(const Tuple& own, const Tuple& other, int partner)>;

/// Every value reduced over the lanes whose numbers differ in the bits `partners`, in all of these lanes. Empty, and no
/// code, where butterflies are cheaper. The combiner must be commutative and associative.
std::vector<Tuple> reduceByHalves(Emitter& e, Combiner& combine, llvm::ArrayRef<Tuple> values,
                                  llvm::ArrayRef<int> partners, Together together);

}  // namespace tile::ir
