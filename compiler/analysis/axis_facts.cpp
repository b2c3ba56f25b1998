// axis_facts.cpp - the transfer functions. Groups of size g exist inside groups of size c exactly when g divides c
// (groups are aligned), so sizes meet in their gcd.
#include "compiler/analysis/axis_facts.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace tile::ir {
namespace {

int64_t product(int64_t a, int64_t b) { return std::min(a * b, kZeroDivisibility); }  // both at most 2^30

/// Divisibility of the elements that start groups of size g along dim d.
int64_t firstsDivisibility(const AxisFacts& a, size_t d, int64_t g) {
  if (g % a.contiguity[d] == 0) return a.divisibility[d];
  return std::min(a.divisibility[d], powerOfTwoIn(std::gcd(g, a.contiguity[d])));
}

/// The longest runs along dim d that cross no multiple of a divisor of which `two` is a factor: runs of g that start at
/// multiples of g, where g divides it.
int64_t runBetweenMultiples(const AxisFacts& a, size_t d, int64_t two) {
  int64_t run = std::gcd(a.contiguity[d], two);
  while (run > 1 && firstsDivisibility(a, d, run) < run) run /= 2;
  return run;
}

bool isSplat(const AxisFacts& a, Shape shape) {
  for (size_t d = 0; d < shape.size(); ++d)
    if (a.constancy[d] != shape[d]) return false;
  return true;
}

/// Of an operation on a and b that makes runs of run(d) along dim d, each starting where runs of both start.
template <class Run>
AxisFacts withRuns(const AxisFacts& a, const AxisFacts& b, Run run) {
  AxisFacts r = a;
  for (size_t d = 0; d < r.contiguity.size(); ++d) {
    const int64_t g = run(d);
    r.contiguity[d] = g;
    r.divisibility[d] = std::min(firstsDivisibility(a, d, g), firstsDivisibility(b, d, g));
    r.constancy[d] = std::gcd(a.constancy[d], b.constancy[d]);
  }
  return r;
}
/// Of an operation that makes no runs, only elements of some divisibility.
AxisFacts withoutRuns(const AxisFacts& a, const AxisFacts& b, int64_t divisibility) {
  AxisFacts r = a;
  for (size_t d = 0; d < r.contiguity.size(); ++d) {
    r.contiguity[d] = 1;
    r.divisibility[d] = divisibility;
    r.constancy[d] = std::gcd(a.constancy[d], b.constancy[d]);
  }
  return r;
}

}  // namespace

int64_t powerOfTwoIn(int64_t v) {
  return int64_t{1} << std::min(std::countr_zero(static_cast<uint64_t>(v)), 30);  // countr_zero(0) is 64
}

AxisFacts unknownAxis(Shape shape) {
  const size_t rank = std::max<size_t>(shape.size(), 1);
  return {llvm::SmallVector<int64_t, 4>(rank, 1), llvm::SmallVector<int64_t, 4>(rank, 1),
          llvm::SmallVector<int64_t, 4>(rank, 1)};
}

AxisFacts constantAxis(Shape shape, int64_t divisibility) {
  AxisFacts r = unknownAxis(shape);
  std::fill(r.divisibility.begin(), r.divisibility.end(), divisibility);
  for (size_t d = 0; d < shape.size(); ++d) r.constancy[d] = shape[d];
  return r;
}

AxisFacts iotaAxis(int64_t start, int64_t size) { return {{size}, {powerOfTwoIn(start)}, {1}}; }

int64_t elementDivisibility(const AxisFacts& a) {
  int64_t best = 1;
  for (size_t d = 0; d < a.contiguity.size(); ++d)
    if (a.contiguity[d] == 1) best = std::max(best, a.divisibility[d]);
  return best;
}

AxisFacts joinAxis(const AxisFacts& a, const AxisFacts& b) {
  return withRuns(a, b, [&](size_t d) { return std::gcd(a.contiguity[d], b.contiguity[d]); });
}

AxisFacts addAxis(const AxisFacts& a, const AxisFacts& b) {
  return withRuns(a, b, [&](size_t d) {  // a contiguous run plus a constant is a run
    return std::max(std::gcd(a.contiguity[d], b.constancy[d]), std::gcd(a.constancy[d], b.contiguity[d]));
  });
}

AxisFacts subAxis(const AxisFacts& a, const AxisFacts& b) {
  return withRuns(a, b, [&](size_t d) { return std::gcd(a.contiguity[d], b.constancy[d]); });
}

AxisFacts mulAxis(const AxisFacts& a, const AxisFacts& b) {
  return withoutRuns(a, b, product(elementDivisibility(a), elementDivisibility(b)));
}

AxisFacts floorDivAxis(const AxisFacts& a, int64_t divisor, bool isKnown) {
  if (divisor == 1 && isKnown) return a;
  AxisFacts r = a;
  const int64_t two = powerOfTwoIn(divisor);
  const bool isPower = isKnown && two == divisor;
  const int64_t elements = elementDivisibility(a);
  for (size_t d = 0; d < r.contiguity.size(); ++d) {
    r.contiguity[d] = 1;
    r.divisibility[d] = isPower && elements >= divisor ? elements / divisor : 1;
    r.constancy[d] = std::max(r.constancy[d], runBetweenMultiples(a, d, two));
  }
  return r;
}

AxisFacts floorRemAxis(const AxisFacts& a, int64_t divisor) {
  AxisFacts r = a;
  const int64_t two = powerOfTwoIn(divisor);
  for (size_t d = 0; d < r.contiguity.size(); ++d) {
    const int64_t run = runBetweenMultiples(a, d, two);
    r.contiguity[d] = run;
    r.divisibility[d] = std::min(firstsDivisibility(a, d, run), two);
  }
  return r;
}

AxisFacts shorterRunsAxis(const AxisFacts& a, int64_t most) {
  AxisFacts r = a;
  for (size_t d = 0; d < r.contiguity.size(); ++d) {
    if (a.contiguity[d] <= most) continue;
    r.contiguity[d] = std::gcd(a.contiguity[d], most);
    r.divisibility[d] = firstsDivisibility(a, d, r.contiguity[d]);
  }
  return r;
}

AxisFacts eitherAxis(const AxisFacts& a, const AxisFacts& b) {
  return withoutRuns(a, b, std::min(elementDivisibility(a), elementDivisibility(b)));
}

AxisFacts selectAxis(const AxisFacts& condition, const AxisFacts& a, const AxisFacts& b) {
  AxisFacts r = joinAxis(a, b);
  // A scalar condition picks one side whole.
  if (condition.constancy.size() == r.constancy.size())
    for (size_t d = 0; d < r.contiguity.size(); ++d) {
      const int64_t g = std::gcd(r.contiguity[d], condition.constancy[d]);
      r.divisibility[d] = firstsDivisibility(r, d, g);
      r.contiguity[d] = g;
      r.constancy[d] = std::gcd(r.constancy[d], condition.constancy[d]);
    }
  return r;
}

AxisFacts elementwiseAxis(Shape shape, llvm::ArrayRef<AxisFacts> operands) {
  AxisFacts r = constantAxis(shape, 1);
  for (const AxisFacts& operand : operands)
    if (operand.constancy.size() == r.constancy.size())
      for (size_t d = 0; d < r.constancy.size(); ++d) r.constancy[d] = std::gcd(r.constancy[d], operand.constancy[d]);
  return r;
}

AxisFacts compareAxis(Shape shape, const AxisFacts& a, const AxisFacts& b) {
  AxisFacts r = elementwiseAxis(shape, {a, b});
  for (size_t d = 0; d < shape.size(); ++d) {
    // Whole runs lie on one side of a bound when both start at multiples of the run.
    int64_t run = std::gcd(a.contiguity[d], b.constancy[d]);
    run = std::min(run, powerOfTwoIn(run));
    run = std::min({run, firstsDivisibility(a, d, run), firstsDivisibility(b, d, run)});
    r.constancy[d] = std::max(r.constancy[d], run);
  }
  return r;
}

AxisFacts broadcastAxis(const AxisFacts& a, Shape from, Shape to) {
  AxisFacts r = a;
  for (size_t d = 0; d < to.size(); ++d)
    if (from[d] == 1) r.constancy[d] = to[d];
  return r;
}

AxisFacts reshapeAxis(const AxisFacts& a, Shape from, Shape to) {
  if (isSplat(a, from)) return constantAxis(to, elementDivisibility(a));
  AxisFacts r = unknownAxis(to);
  const int64_t all = elementDivisibility(a);
  std::fill(r.divisibility.begin(), r.divisibility.end(), all);

  auto kept = [](Shape shape) {
    llvm::SmallVector<size_t> dims;
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != 1) dims.push_back(d);
    return dims;
  };
  const auto source = kept(from), target = kept(to);
  bool sameDims = source.size() == target.size();
  for (size_t i = 0; sameDims && i < source.size(); ++i) sameDims = from[source[i]] == to[target[i]];
  if (sameDims) {  // only dims of size 1 come or go
    for (size_t i = 0; i < source.size(); ++i) {
      r.contiguity[target[i]] = a.contiguity[source[i]];
      r.divisibility[target[i]] = a.divisibility[source[i]];
      r.constancy[target[i]] = a.constancy[source[i]];
    }
    return r;
  }
  if (source.empty() || target.empty()) return r;
  // Row-major order: runs along the last dim survive as far as both last dims cut them alike.
  const size_t s = source.back(), t = target.back();
  const int64_t run = std::gcd(a.contiguity[s], to[t]);
  r.divisibility[t] = firstsDivisibility(a, s, run);
  r.contiguity[t] = run;
  r.constancy[t] = std::gcd(a.constancy[s], to[t]);
  return r;
}

AxisFacts transposeAxis(const AxisFacts& a, llvm::ArrayRef<int32_t> permutation) {
  AxisFacts r = a;
  for (size_t d = 0; d < permutation.size(); ++d) {
    r.contiguity[d] = a.contiguity[permutation[d]];
    r.divisibility[d] = a.divisibility[permutation[d]];
    r.constancy[d] = a.constancy[permutation[d]];
  }
  return r;
}

AxisFacts extractAxis(const AxisFacts& a, llvm::ArrayRef<int32_t> offsets, Shape to) {
  AxisFacts r = a;
  for (size_t d = 0; d < to.size(); ++d) {
    const int64_t run = std::gcd(std::gcd(a.contiguity[d], static_cast<int64_t>(offsets[d])), to[d]);
    r.divisibility[d] = firstsDivisibility(a, d, run);
    r.contiguity[d] = run;
    r.constancy[d] = std::gcd(std::gcd(a.constancy[d], static_cast<int64_t>(offsets[d])), to[d]);
  }
  return r;
}

}  // namespace tile::ir
