// axis_facts.h - how each operation moves AxisFacts from operands to result; the algebra under facts.h.
// Every function is sound for wrapping arithmetic: divisibility by powers of two survives the wrap.
#pragma once
#include "compiler/analysis/facts.h"
#include "llvm/ADT/ArrayRef.h"

namespace tile::ir {

using Shape = llvm::ArrayRef<int64_t>;  ///< dims of a tile; empty for a scalar

/// Largest power of two dividing v, at most kZeroDivisibility (which is also the answer for 0).
int64_t powerOfTwoIn(int64_t v);

AxisFacts unknownAxis(Shape shape);
/// All elements equal, a multiple of `divisibility`.
AxisFacts constantAxis(Shape shape, int64_t divisibility);
/// start, start + 1, ...
AxisFacts iotaAxis(int64_t start, int64_t size);

/// Largest power of two known to divide every element.
int64_t elementDivisibility(const AxisFacts& a);
/// What holds for a value that is one of the two.
AxisFacts joinAxis(const AxisFacts& a, const AxisFacts& b);

AxisFacts addAxis(const AxisFacts& a, const AxisFacts& b);
AxisFacts subAxis(const AxisFacts& a, const AxisFacts& b);
AxisFacts mulAxis(const AxisFacts& a, const AxisFacts& b);
/// Floor division and its remainder by a positive number, for signed division of values that are not negative. The number
/// is the same for all elements: `divisor` or a multiple of it; a quotient tells more where it `isKnown` to be `divisor`.
AxisFacts floorDivAxis(const AxisFacts& a, int64_t divisor, bool isKnown = true);
AxisFacts floorRemAxis(const AxisFacts& a, int64_t divisor);
/// The same with runs of at most this many elements, a power of two.
AxisFacts shorterRunsAxis(const AxisFacts& a, int64_t most);
/// Elementwise choice between a and b (min, max); or by a condition with its own constancy.
AxisFacts eitherAxis(const AxisFacts& a, const AxisFacts& b);
AxisFacts selectAxis(const AxisFacts& condition, const AxisFacts& a, const AxisFacts& b);
/// Any elementwise function: equal operands give equal results.
AxisFacts elementwiseAxis(Shape shape, llvm::ArrayRef<AxisFacts> operands);
/// a < b or a >= b, element by element.
AxisFacts compareAxis(Shape shape, const AxisFacts& a, const AxisFacts& b);

AxisFacts broadcastAxis(const AxisFacts& a, Shape from, Shape to);
AxisFacts reshapeAxis(const AxisFacts& a, Shape from, Shape to);
AxisFacts transposeAxis(const AxisFacts& a, llvm::ArrayRef<int32_t> permutation);
AxisFacts extractAxis(const AxisFacts& a, llvm::ArrayRef<int32_t> offsets, Shape to);

}  // namespace tile::ir
