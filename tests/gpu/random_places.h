// random_places.h - random places in memory: sums, products, quotients, remainders, shifts, choices and minima of
// places of elements, program ids, arguments, counters of loops, numbers from memory; negative ones, too. A tree of
// operations that the kernel records and plain loops evaluate.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

struct PlaceArguments {
  int a = 0, b = 1, m = 1, n = 1;  ///< m and n are at least 1
};

enum class PlaceOp {
  row,
  column,
  program,
  a,
  b,
  m,
  n,
  counter,
  carried,
  memory,
  constant,
  add,
  sub,
  mul,
  div,
  rem,
  shift,
  less,
  more,
  choose,
  floorDiv,
  floorRem,
  narrow,
  byLaunch,
  restOfLaunch
};

struct PlaceNode {
  PlaceOp op;
  std::vector<const PlaceNode*> from;
  int64_t c = 0, low = 0, high = 0;  ///< bounds of all its values
};

/// What a program does: tables are read at `place` where `left` < `right`, in every iteration of a loop.
class PlaceMaker : Choices {
 public:
  static constexpr int kTable = 4096, kOrigin = 2048, kPrograms = 6, kMost = 512;
  explicit PlaceMaker(int seed) : Choices(seed) {
    warps = 1 << number(3);
    if (one_in(2))
      rows = 1, columns = pick_of({64, 128, 256, 512});
    else
      rows = pick_of({2, 4, 8}), columns = pick_of({16, 32, 64});
    const int loops = number(4);
    steps = loops;
    if (loops == 1) first = number(64) - 40, end = first + 64, step = 16;
    if (loops == 2) first = 40 - number(60), end = first - 50, step = -16;
    if (loops == 3) first = number(5) * 16 - 32, end = first + number(5) * 8, step = 8;
    carriedStep = one_in(2) ? -16 : pick_of({-1, 8, 3});
    for (int i = 0; i < 6; ++i) pool_.push_back(tree(1 + number(4)));
    place = whole(sum(tree(2 + number(4)), tree(1 + number(2))));
    if (!one_in(4)) place = block();
    left = tree(number(4)), right = tree(number(2));
    if (one_in(3)) left = block(), right = one_in(2) ? constant(0) : right;
    isWide = one_in(4), isMasked = one_in(2), marks = one_in(2);
  }

  int warps = 1, rows = 1, columns = 64, steps = 0, first = 0, end = 1, step = 1, carriedStep = 1;
  bool isWide = false, isMasked = false, marks = false;
  const PlaceNode *place = nullptr, *left = nullptr, *right = nullptr;

 private:
  const PlaceNode* make(PlaceNode n) { return &nodes_.emplace_back(std::move(n)); }
  const PlaceNode* constant(int64_t c) { return make({PlaceOp::constant, {}, c, c, c}); }
  const PlaceNode* leaf() {
    switch (number(14)) {
      case 0:
        return make({PlaceOp::row, {}, 0, 0, rows - 1});
      case 1:
        return make({PlaceOp::program, {}, 0, 0, kPrograms - 1});
      case 2:
        return make({PlaceOp::a, {}, 0, -512, 512});
      case 3:
        return make({PlaceOp::b, {}, 0, -64, 64});
      case 4:
        return make({PlaceOp::m, {}, 0, 1, 64});
      case 5:
        return steps ? make({PlaceOp::counter, {}, 0, -128, 128}) : make({PlaceOp::program, {}, 0, 0, kPrograms - 1});
      case 6:
        return steps ? make({PlaceOp::carried, {}, 0, -128, 128}) : make({PlaceOp::a, {}, 0, -512, 512});
      case 7:
        return make({PlaceOp::memory, {}, 0, -64, 63});
      case 8:
        return constant(number(40) - 20);
      case 9:
        return constant(16 * (number(8) - 4));
      default:
        return make({PlaceOp::column, {}, 0, 0, columns - 1});
    }
  }
  int64_t divisor() { return pick_of({2, 3, 4, 7, 8, 16, 28, 32, 48, 49, 64, 784, 128}); }
  const PlaceNode* sum(const PlaceNode* x, const PlaceNode* y) {
    return fits(x->low + y->low, x->high + y->high)
               ? make({PlaceOp::add, {x, y}, 0, x->low + y->low, x->high + y->high})
               : x;
  }
  static bool fits(int64_t low, int64_t high) { return low > -(1 << 28) && high < (1 << 28); }
  const PlaceNode* times(const PlaceNode* x, int64_t by) {
    return fits(x->low * by, x->high * by) ? make({PlaceOp::mul, {x, constant(by)}, 0, x->low * by, x->high * by}) : x;
  }
  const PlaceNode* quotient(const PlaceNode* x, int64_t d) {
    return make({PlaceOp::div, {x}, d, x->low / d, x->high / d});
  }
  const PlaceNode* rest(const PlaceNode* x, int64_t d) {
    return make({PlaceOp::rem, {x}, d, x->low < 0 ? 1 - d : 0, x->high > 0 ? d - 1 : 0});
  }
  /// Rows and columns of flat places that begin at multiples of what they are divided by.
  const PlaceNode* block() {
    const int64_t d = pick_of({4, 8, 16, 32, 48, 64, 784});
    const PlaceNode* x = times(tree(number(4)), pick_of({4, 8, 16, 32, 64}));
    if (one_in(2)) x = sum(x, times(tree(number(3)), pick_of({4, 8, 16, 64})));
    if (one_in(2)) x = sum(x, times(make({PlaceOp::row, {}, 0, 0, rows - 1}), columns));
    x = whole(x);
    if (one_in(6)) x = narrow(x);
    const PlaceNode *q = quotient(x, d), *r = rest(x, d);
    switch (number(4)) {
      case 0:
        return r;
      case 1:
        return q;
      case 2:
        return sum(times(rest(q, pick_of({4, 8, 16, 7})), 64), rest(r, 64));
      default:
        return sum(times(q, pick_of({16, 48, 64})), r);
    }
  }
  /// Of bytes or words of 16 bits, which wrap.
  const PlaceNode* narrow(const PlaceNode* x) {
    const int64_t most = one_in(3) ? 32767 : 127;
    const bool fits = x->low >= -most - 1 && x->high <= most;
    return make({PlaceOp::narrow, {x}, most, fits ? x->low : -most - 1, fits ? x->high : most});
  }
  static bool isTile(const PlaceNode* x) {
    return x->op == PlaceOp::row || x->op == PlaceOp::column || std::any_of(x->from.begin(), x->from.end(), isTile);
  }
  const PlaceNode* whole(const PlaceNode* x) { return sum(x, make({PlaceOp::column, {}, 0, 0, columns - 1})); }

  const PlaceNode* tree(int depth) {
    if (depth == 0) return leaf();
    if (one_in(8) && !pool_.empty()) return pool_[static_cast<size_t>(number(static_cast<int64_t>(pool_.size())))];
    const PlaceNode* x = tree(depth - 1);
    switch (number(20)) {
      case 0:
      case 1:
      case 2:
        return sum(x, tree(number(depth)));
      case 3: {
        const PlaceNode* y = tree(number(depth));
        const int64_t low = x->low - y->high, high = x->high - y->low;
        return fits(low, high) ? make({PlaceOp::sub, {x, y}, 0, low, high}) : x;
      }
      case 4:
      case 5: {
        const PlaceNode* y = one_in(2) ? constant(pick_of({2, 4, 8, 16, 64, 3, -4, 784})) : tree(number(2));
        const int64_t all[] = {x->low * y->low, x->low * y->high, x->high * y->low, x->high * y->high};
        const int64_t low = *std::min_element(all, all + 4), high = *std::max_element(all, all + 4);
        return fits(low, high) ? make({PlaceOp::mul, {x, y}, 0, low, high}) : x;
      }
      case 6:
      case 7:
      case 8: {
        const int64_t d = one_in(12) ? -divisor() : divisor(), p = x->low / d, q = x->high / d;
        return make({PlaceOp::div, {x}, d, std::min(p, q), std::max(p, q)});
      }
      case 9:
      case 10:
      case 11: {
        const int64_t d = one_in(12) ? -divisor() : divisor(), m = std::abs(d) - 1;
        return make({PlaceOp::rem, {x}, d, x->low < 0 ? -m : 0, x->high > 0 ? m : 0});
      }
      case 12: {
        const int64_t by = 1 + number(5);
        return make({PlaceOp::shift, {x}, by, x->low >> by, x->high >> by});
      }
      case 13:
      case 14: {
        const PlaceNode* y = one_in(2) ? constant(number(40) * 8) : tree(number(depth));
        if (one_in(2)) return make({PlaceOp::less, {x, y}, 0, std::min(x->low, y->low), std::min(x->high, y->high)});
        return make({PlaceOp::more, {x, y}, 0, std::max(x->low, y->low), std::max(x->high, y->high)});
      }
      case 15: {
        const PlaceNode *y = tree(number(depth)), *p = tree(number(2)), *q = tree(number(2));
        return make({PlaceOp::choose, {p, q, x, y}, 0, std::min(x->low, y->low), std::max(x->high, y->high)});
      }
      case 16: {
        const int64_t d = divisor();
        return make({PlaceOp::floorDiv, {x}, d, x->low >= 0 ? 0 : x->low / d - 1, x->high / d});
      }
      case 17: {
        const int64_t d = divisor();
        return make({PlaceOp::floorRem, {x}, d, 0, d - 1});
      }
      case 18:
        return narrow(x);
      default: {  // by an argument: a tile that is divided is not negative then
        if (x->low < 0 && isTile(x)) x = make({PlaceOp::more, {x, constant(0)}, 0, 0, std::max<int64_t>(x->high, 0)});
        if (one_in(2))
          return make({PlaceOp::byLaunch, {x}, 0, std::min<int64_t>(x->low, 0), std::max<int64_t>(x->high, 0)});
        return make({PlaceOp::restOfLaunch, {x}, 0, x->low < 0 ? -63 : 0, x->high > 0 ? 63 : 0});
      }
    }
  }

  std::deque<PlaceNode> nodes_;
  std::vector<const PlaceNode*> pool_;
};

/// The kernel. T: what memory holds.
template <class T>
class PlaceKernel {
 public:
  PlaceKernel(const PlaceMaker& maker, const Ptr<const T>& table, const Ptr<const int32_t>& numbers,
              const Ptr<int32_t>& out, const Ptr<T>& marks, const I32& a, const I32& b, const I32& m, const I32& n)
      : m_(maker), table_(table), numbers_(numbers), out_(out), marks_(marks), a_(a), b_(b), n1_(m), n2_(n) {}

  void program() {
    num_warps(m_.warps);
    counter_ = Tile(0), carried_ = Tile(32);
    memory_ = load(numbers_ + program_id(0));
    total_ = zeros({m_.rows, m_.columns}, i32);
    if (m_.steps == 0) {
      read();
    } else {
      for (auto k : range(m_.first, m_.end, m_.step)) {
        counter_ = Tile(k);
        read();
        carried_ += m_.carriedStep;
      }
    }
    store(out_ + (program_id(0) * (m_.rows * m_.columns) + row() * m_.columns + column()), total_);
  }

 private:
  Tile row() const { return arange(0, m_.rows).col(); }
  Tile column() const { return arange(0, m_.columns).row(); }
  void read() {
    Tile at = broadcast_to(tile(m_.place) + zeros({m_.rows, m_.columns}, i32), {m_.rows, m_.columns});
    Tile in = (at >= -PlaceMaker::kOrigin) & (at < PlaceMaker::kTable - PlaceMaker::kOrigin);
    if (m_.isMasked) in = in & (tile(m_.left) < tile(m_.right));
    const Tile x = m_.isWide ? load(table_ + (cast(at, i64) + PlaceMaker::kOrigin), {.mask = in})
                             : load(table_ + PlaceMaker::kOrigin + at, {.mask = in});
    total_ = total_ + cast(x, i32);
    // Places may repeat: what is stored there is the same.
    if (m_.marks) store(marks_ + PlaceMaker::kOrigin + at, cast(at % 100, dtype_of<T>()), {.mask = in});
  }
  Tile tile(const PlaceNode* n) const {
    auto of = [&](size_t i) { return tile(n->from[i]); };
    const int c = static_cast<int>(n->c);
    switch (n->op) {
      case PlaceOp::row:
        return row();
      case PlaceOp::column:
        return column();
      case PlaceOp::program:
        return program_id(0);
      case PlaceOp::a:
        return a_;
      case PlaceOp::b:
        return b_;
      case PlaceOp::m:
        return n1_;
      case PlaceOp::n:
        return n2_;
      case PlaceOp::counter:
        return counter_;
      case PlaceOp::carried:
        return carried_;
      case PlaceOp::memory:
        return memory_;
      case PlaceOp::constant:
        return Tile(c);
      case PlaceOp::add:
        return of(0) + of(1);
      case PlaceOp::sub:
        return of(0) - of(1);
      case PlaceOp::mul:
        return of(0) * of(1);
      case PlaceOp::div:
        return of(0) / c;
      case PlaceOp::rem:
        return of(0) % c;
      case PlaceOp::shift:
        return of(0) >> c;
      case PlaceOp::less:
        return min(of(0), of(1));
      case PlaceOp::more:
        return max(of(0), of(1));
      case PlaceOp::choose:
        return where(of(0) < of(1), of(2), of(3));
      case PlaceOp::floorDiv:
        return floor_div(of(0), c);
      case PlaceOp::floorRem:
        return floor_mod(of(0), c);
      case PlaceOp::narrow:
        return cast(cast(of(0), c == 127 ? i8 : i16), i32);
      case PlaceOp::byLaunch:
        return of(0) / n1_;
      case PlaceOp::restOfLaunch:
        return of(0) % n1_;
    }
    return Tile(0);
  }

  const PlaceMaker& m_;
  const Ptr<const T>& table_;
  const Ptr<const int32_t>& numbers_;
  const Ptr<int32_t>& out_;
  const Ptr<T>& marks_;
  const I32 &a_, &b_, &n1_, &n2_;
  Tile counter_ = Tile(0), carried_ = Tile(0), memory_ = Tile(0), total_ = Tile(0);
};

/// The same in plain loops.
template <class T>
struct PlaceReference {
  const PlaceMaker& maker;
  PlaceArguments arguments;
  const T* table;
  const int32_t* numbers;
  T* marks;
  int program = 0, row = 0, column = 0, counter = 0, carried = 0;

  int64_t number(const PlaceNode* n) const {
    auto of = [&](size_t i) { return number(n->from[i]); };
    auto floored = [](int64_t x, int64_t d) { return x / d - (x % d < 0); };
    switch (n->op) {
      case PlaceOp::row:
        return row;
      case PlaceOp::column:
        return column;
      case PlaceOp::program:
        return program;
      case PlaceOp::a:
        return arguments.a;
      case PlaceOp::b:
        return arguments.b;
      case PlaceOp::m:
        return arguments.m;
      case PlaceOp::n:
        return arguments.n;
      case PlaceOp::counter:
        return counter;
      case PlaceOp::carried:
        return carried;
      case PlaceOp::memory:
        return numbers[program];
      case PlaceOp::constant:
        return n->c;
      case PlaceOp::add:
        return of(0) + of(1);
      case PlaceOp::sub:
        return of(0) - of(1);
      case PlaceOp::mul:
        return of(0) * of(1);
      case PlaceOp::div:
        return of(0) / n->c;
      case PlaceOp::rem:
        return of(0) % n->c;
      case PlaceOp::shift:
        return of(0) >> n->c;
      case PlaceOp::less:
        return std::min(of(0), of(1));
      case PlaceOp::more:
        return std::max(of(0), of(1));
      case PlaceOp::choose:
        return of(0) < of(1) ? of(2) : of(3);
      case PlaceOp::floorDiv:
        return floored(of(0), n->c);
      case PlaceOp::floorRem:
        return of(0) - floored(of(0), n->c) * n->c;
      case PlaceOp::narrow:
        return n->c == 127 ? int64_t{static_cast<int8_t>(of(0))} : int64_t{static_cast<int16_t>(of(0))};
      case PlaceOp::byLaunch:
        return of(0) / arguments.m;
      case PlaceOp::restOfLaunch:
        return of(0) % arguments.m;
    }
    return 0;
  }
  void add(int32_t& total) const {
    const int64_t at = number(maker.place) + PlaceMaker::kOrigin;
    if (at < 0 || at >= PlaceMaker::kTable) return;
    if (maker.isMasked && !(number(maker.left) < number(maker.right))) return;
    total += table[at];
    if (maker.marks) marks[at] = static_cast<T>((at - PlaceMaker::kOrigin) % 100);
  }
  int32_t element(int p, int r, int c) {
    program = p, row = r, column = c, counter = 0, carried = 32;
    int32_t total = 0;
    if (maker.steps == 0) add(total);
    for (counter = maker.first; maker.steps && (maker.step > 0 ? counter < maker.end : counter > maker.end);
         counter += maker.step, carried += maker.carriedStep)
      add(total);
    return total;
  }
};

}  // namespace tile::testing
