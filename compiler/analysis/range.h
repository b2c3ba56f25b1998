// range.h - intervals of signed integers. An operation that may leave 64 bits, or the width asked for, gives
// everything.
#pragma once
#include <cstdint>
#include <optional>

namespace tile::ir {

/// min <= value <= max. i1 counts as 0 or 1.
struct Range {
  int64_t min, max;
  bool operator==(const Range&) const = default;
  bool contains(int64_t v) const { return min <= v && v <= max; }
  bool isConstant() const { return min == max; }
  bool isNonNegative() const { return min >= 0; }
};

/// Everything an integer of `bits` (1..64) can hold.
Range fullRange(unsigned bits);
/// The range itself when it fits `bits`, else fullRange(bits): the value wrapped.
Range wrapped(Range r, unsigned bits);
/// From the first multiple of the divisor inside to the last; the range itself where there is none.
Range multiplesIn(Range r, int64_t divisor);
Range join(Range a, Range b);
/// What is in both; nullopt: nothing.
std::optional<Range> common(Range a, Range b);

Range addRange(Range a, Range b, unsigned bits);
Range subRange(Range a, Range b, unsigned bits);
Range mulRange(Range a, Range b, unsigned bits);
/// Signed division and remainder, rounding toward zero, by a range without 0 (else everything).
Range divRange(Range a, Range b, unsigned bits);
Range remRange(Range a, Range b, unsigned bits);
Range minRange(Range a, Range b);
Range maxRange(Range a, Range b);
/// Bitwise and, when a side is not negative.
Range andRange(Range a, Range b, unsigned bits);
/// Bitwise or and exclusive or, of signed numbers: as many bits as the operands have.
Range orRange(Range a, Range b);
Range xorRange(Range a, Range b);

}  // namespace tile::ir
