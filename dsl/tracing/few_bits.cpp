// few_bits.cpp - see the header. A round has four values of two bits. Elements are in runs that one thread has:
//   1. In a run, a word of four fields of 8 bits counts how many of each value stand up to an element.
//   2. The counts of runs, as fields of 16 bits, are summed up from run to run, and from value to value.
//   3. Both together are where the element goes to; all go there through shared memory, which threads read as runs.
// A step of a network takes half of what a round takes, without its barriers, but there are log2(n)^2 / 2 of them.
#include "dsl/tracing/few_bits.h"

#include <bit>
#include <optional>

#include "compiler/analysis/range.h"
#include "compiler/dialect/dialect.h"
#include "dsl/tracing/emit_rules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tile::detail {
namespace {
using namespace mlir;
using ir::Range;

/// Of signed integers, as far as the operations say that they are made of.
Range range_of(mlir::Value v, int deep) {
  constexpr int kDeepest = 12;
  auto element = dyn_cast<IntegerType>(getElementTypeOrSelf(v.getType()));
  const unsigned bits = element ? element.getWidth() : 64;
  const Range any = ir::fullRange(bits);
  APInt number;
  if (matchPattern(v, m_ConstantInt(&number))) return {number.getSExtValue(), number.getSExtValue()};
  Operation* op = v.getDefiningOp();
  if (!op || !element || deep > kDeepest) return any;
  auto of = [&](unsigned i) { return range_of(op->getOperand(i), deep + 1); };
  if (isa<ir::SplatOp, ir::BroadcastOp, ir::ReshapeOp, ir::TransOp, ir::ExtractOp, ir::TakeOp, arith::ExtSIOp>(op))
    return of(0);
  if (isa<arith::SelectOp>(op)) return ir::join(of(1), of(2));
  if (isa<arith::AndIOp>(op)) return ir::andRange(of(0), of(1), bits);
  if (isa<arith::OrIOp>(op)) return ir::orRange(of(0), of(1));
  if (isa<arith::XOrIOp>(op)) return ir::xorRange(of(0), of(1));
  if (isa<arith::AddIOp>(op)) return ir::addRange(of(0), of(1), bits);
  if (isa<arith::SubIOp>(op)) return ir::subRange(of(0), of(1), bits);
  if (isa<arith::MinSIOp>(op)) return ir::minRange(of(0), of(1));
  if (isa<arith::MaxSIOp>(op)) return ir::maxRange(of(0), of(1));
  if (isa<arith::TruncIOp>(op)) return ir::wrapped(of(0), bits);
  if (isa<arith::ExtUIOp>(op)) {
    const Range narrow = of(0);
    const auto width = getElementTypeOrSelf(op->getOperand(0).getType()).getIntOrFloatBitWidth();
    if (narrow.isNonNegative()) return narrow;
    return width < 63 ? Range{0, (int64_t{1} << width) - 1} : any;
  }
  if (isa<arith::MinUIOp, arith::RemUIOp>(op)) {
    const Range a = of(0), b = of(1);
    if (isa<arith::MinUIOp>(op) && a.isNonNegative()) return {0, b.isNonNegative() ? std::min(a.max, b.max) : a.max};
    if (!b.isNonNegative()) return any;
    return isa<arith::MinUIOp>(op) ? Range{0, b.max} : b.min > 0 ? Range{0, b.max - 1} : any;
  }
  if (isa<arith::ShRUIOp, arith::ShRSIOp>(op)) {
    const Range by = of(1), x = of(0);
    if (by.min < 0 || by.max >= bits) return x.isNonNegative() ? Range{0, x.max} : any;
    if (x.isNonNegative()) return {0, x.max >> by.min};
    return isa<arith::ShRUIOp>(op) && by.min > 0 ? Range{0, static_cast<int64_t>(~uint64_t{0} >> (64 - bits + by.min))}
                                                 : any;
  }
  return any;
}

}  // namespace

int bits_known(mlir::Value integers, bool is_unsigned, int most) {
  const Range range = range_of(integers, 0);
  const auto width = getElementTypeOrSelf(integers.getType()).getIntOrFloatBitWidth();
  const int bits = range.isNonNegative() ? std::max(1, 64 - std::countl_zero(static_cast<uint64_t>(range.max)))
                   : is_unsigned         ? static_cast<int>(width)
                                         : 64;
  return bits <= most ? bits : 0;
}

bool wants_rounds(const Shape& shape, int axis, int bits) {
  // Shorter tiles are within a warp or nearly so; places and counts have 16 bits.
  constexpr int64_t kShortest = 256, kLongest = 1 << 15;
  constexpr int kRound = 6;  // times as long as a step: it has more work, and two barriers
  const int64_t size = shape[axis];
  int64_t behind = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) behind *= shape[d];
  if (size < kShortest || size > kLongest || behind > 1 || shape.rank() > 7) return false;
  const int steps = std::bit_width(static_cast<uint64_t>(size - 1));
  return (bits + 1) / 2 * kRound <= steps * (steps + 1) / 2;
}

Value sort_in_rounds(const At& at, Value words, Shape shape, int axis, int bits) {
  constexpr int kKey = 16;                      // where a key begins in its word
  constexpr int64_t kThreads = 128;             // of four warps, which kernels have that do not say
  constexpr uint64_t kLater = 0x1000100010000;  // a field's count goes to all fields above it
  const int64_t size = shape[axis];
  int64_t run = 4;
  while (run < 16 && size / (2 * run) >= kThreads) run *= 2;
  Shape runs;
  for (int d = 0; d < shape.rank(); ++d) {
    runs.push_back(d == axis ? size / run : shape[d]);
    if (d == axis) runs.push_back(run);
  }
  const int64_t mask = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size))) - 1;
  auto sums = [&](Value x, int along) { return scan(Fold::sum, at(x), along, false); };
  auto total = [&](Value x, int along) { return reduce(Fold::sum, at(x), along); };
  for (int bit = 0; bit < bits; bit += 2) {
    // 8 times the value: the place of its field.
    const Value field =
        at.apply(Op::bit_and, at.apply(Op::shr, reshape(at(words), runs), kKey + bit - 3), bit + 1 < bits ? 24 : 8);
    const Value one = at.apply(Op::shl, full(runs, at(1), DType::u32), field);
    const Value upTo = sums(one, axis + 1), ofRun = convert(at(total(one, axis + 1)), DType::u64);
    Value wide = at.apply(Op::bit_and, ofRun, 0xff);
    for (int f = 1; f < 4; ++f) {
      const Value count = at.apply(Op::bit_and, at.apply(Op::shr, ofRun, 8 * f), 0xff);
      wide = at.apply(Op::bit_or, wide, at.apply(Op::shl, count, 16 * f));
    }
    const Value less = at.apply(Op::mul, total(wide, axis), kLater);
    const Value before = at.apply(Op::add, at.apply(Op::sub, sums(wide, axis), wide), less);
    const Value twice = convert(at(at.apply(Op::shl, field, 1)), DType::u64);
    const Value ofOthers = convert(at(at.apply(Op::shr, before, twice)), DType::u32);
    const Value own = at.apply(Op::bit_and, at.apply(Op::shr, upTo, field), 0xff);
    const Value place = at.apply(Op::bit_and, at.apply(Op::sub, at.apply(Op::add, own, ofOthers), 1), mask);
    words = put(at(words), at(reshape(at(convert(at(place), DType::i32)), shape)), at(words), axis, Operand{}, /*whole=*/true);
  }
  return words;
}

}  // namespace tile::detail
