// range.cpp - interval arithmetic.
#include "compiler/analysis/range.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

namespace tile::ir {
namespace {

std::optional<int64_t> add(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}
std::optional<int64_t> sub(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}
std::optional<int64_t> mul(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

}  // namespace

Range fullRange(unsigned bits) {
  if (bits <= 1) return {0, 1};
  if (bits >= 64) return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
}

Range wrapped(Range r, unsigned bits) {
  Range full = fullRange(bits);
  return r.min >= full.min && r.max <= full.max ? r : full;
}

Range multiplesIn(Range r, int64_t divisor) {
  if (divisor <= 1) return r;
  const auto above = [&](int64_t v) { return (v % divisor + divisor) % divisor; };  // the multiple at or below v
  const int64_t max = r.max - above(r.max);
  auto min = above(r.min) ? add(r.min, divisor - above(r.min)) : r.min;
  return min && *min <= max ? Range{*min, max} : r;
}

Range join(Range a, Range b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
std::optional<Range> common(Range a, Range b) {
  const Range both{std::max(a.min, b.min), std::min(a.max, b.max)};
  return both.min <= both.max ? std::optional(both) : std::nullopt;
}

Range addRange(Range a, Range b, unsigned bits) {
  auto low = add(a.min, b.min), high = add(a.max, b.max);
  return low && high ? wrapped({*low, *high}, bits) : fullRange(bits);
}

Range subRange(Range a, Range b, unsigned bits) {
  auto low = sub(a.min, b.max), high = sub(a.max, b.min);
  return low && high ? wrapped({*low, *high}, bits) : fullRange(bits);
}

Range mulRange(Range a, Range b, unsigned bits) {
  Range r{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (int64_t x : {a.min, a.max})
    for (int64_t y : {b.min, b.max}) {
      auto p = mul(x, y);
      if (!p) return fullRange(bits);
      r = join(r, {*p, *p});
    }
  return wrapped(r, bits);
}

Range divRange(Range a, Range b, unsigned bits) {
  if (b.contains(0) || (a.contains(fullRange(64).min) && b.contains(-1))) return fullRange(bits);
  Range r{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  for (int64_t x : {a.min, a.max})
    for (int64_t y : {b.min, b.max}) r = join(r, {x / y, x / y});
  return wrapped(r, bits);
}

Range remRange(Range a, Range b, unsigned bits) {
  if (b.contains(0) || b.min == std::numeric_limits<int64_t>::min()) return fullRange(bits);
  int64_t largest = std::max(std::abs(b.min), std::abs(b.max)) - 1;  // |a % b| <= |b| - 1, with the sign of a
  return {a.min >= 0 ? 0 : std::max(-largest, a.min), a.max <= 0 ? 0 : std::min(largest, a.max)};
}

Range minRange(Range a, Range b) { return {std::min(a.min, b.min), std::min(a.max, b.max)}; }
Range maxRange(Range a, Range b) { return {std::max(a.min, b.min), std::max(a.max, b.max)}; }

Range andRange(Range a, Range b, unsigned bits) {
  if (a.isNonNegative() && b.isNonNegative()) return {0, std::min(a.max, b.max)};
  if (a.isNonNegative()) return {0, a.max};
  if (b.isNonNegative()) return {0, b.max};
  return fullRange(bits);
}

// The largest number of as many bits as one of the range has, be it below 0 (-9 to 8: 15).
static int64_t allBits(Range r) {
  const auto magnitude = static_cast<uint64_t>(std::max(r.max, ~r.min));  // ~x: -1 - x, which no x lets overflow
  return static_cast<int64_t>(std::bit_ceil(magnitude + 1) - 1);
}

Range orRange(Range a, Range b) {
  // Bits only come: neither a number nor one with its sign gets smaller.
  const bool both = a.isNonNegative() && b.isNonNegative();
  const int64_t min = both ? std::max(a.min, b.min) : std::min(a.min, b.min);
  return {min, a.max < 0 || b.max < 0 ? -1 : allBits({0, std::max(a.max, b.max)})};
}

Range xorRange(Range a, Range b) {
  const int64_t all = allBits(join(a, b));
  auto isNegative = [](Range r) { return r.max < 0; };
  if ((a.isNonNegative() && b.isNonNegative()) || (isNegative(a) && isNegative(b))) return {0, all};
  if ((a.isNonNegative() && isNegative(b)) || (isNegative(a) && b.isNonNegative())) return {~all, -1};
  return {~all, all};
}

}  // namespace tile::ir
