// random_loops.h - random kernels of the shape people write: loops that load boxes, multiply them, work on the results
// and carry them. All values are small whole numbers, so every order of summation gives the same bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// Data of a random kernel: whole numbers in [-2, 2], block numbers in [0, 4).
inline constexpr int kLargestInput = 2, kBlocks = 4, kBlockRows = 16;
/// Programs of a launch, and the most iterations of a loop.
inline constexpr int kPrograms = 3;

/// Builds the kernel while it is traced. T: what products read; Sum: what they add up in.
template <class T, class Sum>
class LoopMaker : Choices {
 public:
  using In = Tensor<const T, 2>;
  LoopMaker(int seed, const std::array<const In*, 3>& inputs, const Tensor<const Sum, 2>& terms,
            const Ptr<const int32_t>& blocks, const Tensor<const int8_t, 2>& bytes, const Tensor<Sum, 2>& out,
            const Tensor<Sum, 2>& sums, const I32& limit)
      : Choices(seed),
        inputs_(inputs),
        terms_(terms),
        blocks_(blocks),
        bytes_(bytes),
        out_(out),
        sums_(sums),
        limit_(limit) {}

  void program() {
    // Most are kernels that warpgroups can have roles in; what is like them in all but one thing is found below.
    wide_ = !one_in(4);
    const int warps = wide_ ? pick_of({4, 4, 8, 8, 12}) : pick_of({1, 2, 4, 8});
    num_warps(warps);
    prec_ = wide_ || one_in(2) ? Prec::tf32 : Prec::ieee;
    m_ = !wide_ ? std::min(pick_of({16, 32, 48, 64, 128}), 32 * warps) : warps == 4 ? pick_of({64, 64, 128}) : 16 * warps;
    n_ = pick_of({16, 32, 48, 64, 64, 80, 96, 112, 128}), k_ = pick_of({32, 32, 64, 128});
    if (!wide_ && warps <= 2) n_ = std::min(n_, 64), k_ = std::min(k_, 64);  // what a thread can hold
    const Tile id = program_id(0);
    row_ = id * m_;
    outer_ = {&row_};
    if (one_in(3)) keep(load(m_, k_, row_, Tile(0)), kLargestInput, true);  // a tile that stays
    const int loops = 1 + one_in(4);
    for (int i = 0; i < loops; ++i) {
      const int carried = 1 + number(3);
      for (int c = 0; c < carried; ++c) carry();
      if (one_in(3))
        around(1 + number(2));
      else
        loop(one_in(5) ? 1 : 0);
    }
    finish();
  }

 private:
  struct Value {
    Tile tile;
    int rows, columns;
    int64_t bound;  ///< of the absolute values
    bool narrow;    ///< of type T, an operand
  };
  struct Carried {
    Tile tile;
    int rows, columns;
  };
  static constexpr int64_t kMost = 1 << 12;

  static constexpr DType sum() { return dtype_of<Sum>(); }

  const Value& keep(const Tile& tile, int64_t bound, bool narrow, int rows, int columns) {
    values_.push_back({tile, rows, columns, bound, narrow});
    return values_.back();
  }
  const Value& keep(const Tile& tile, int64_t bound, bool narrow) { return keep(tile, bound, narrow, m_, k_); }

  // ---- memory

  Tile load(int rows, int columns, const Tile& row, const Tile& column) {
    const In& x = *inputs_[number(3)];
    if (one_in(4)) return trans(x.load({column, row}, {columns, rows}));
    if (one_in(wide_ ? 40 : 10)) {  // by pointers
      Tile r = row + arange(0, rows).col(), c = column + arange(0, columns).row();
      Tile inside = (r >= 0) & (r < x.dim(0)) & (c >= 0) & (c < x.dim(1));
      return tile::load(x.ptr() + cast(r, i64) * x.stride(0) + cast(c, i64) * x.stride(1), {.mask = inside});
    }
    return x.load({row, column}, {rows, columns});
  }
  /// Where a box starts along one dim.
  Tile place() {
    if (tight_ && one_in(4)) return *outer_.back() - number(40);  // in front of the first row or column
    if (tight_ && one_in(3)) return *outer_.back();
    if (tight_) return *outer_.back() + *outer_[number(static_cast<int>(outer_.size()))] % 16;
    switch (number(5)) {
      case 0: return Tile(0);
      case 1: return row_;
      case 2: return *outer_[number(static_cast<int>(outer_.size()))] + (number(32) - 8);
      case 3:
        if (block_) return *block_ * kBlockRows;
        [[fallthrough]];
      default: return *outer_.back();
    }
  }
  Tile operand(int rows, int columns) {
    std::vector<const Value*> fit, across;
    for (const Value& v : values_) {
      if (v.rows == rows && v.columns == columns) fit.push_back(&v);
      if (v.rows == columns && v.columns == rows) across.push_back(&v);
    }
    if (!fit.empty() && !one_in(3)) return narrowed(*fit[number(static_cast<int>(fit.size()))]);
    if (!across.empty() && one_in(2)) return trans(narrowed(*across[number(static_cast<int>(across.size()))]));
    const Tile row = place(), column = place();
    Tile x = load(rows, columns, row, column);
    if (std::is_same_v<T, half> && one_in(6)) x = x * 2;
    if (one_in(8) && !tight_) x = computed(rows, columns, row, column);
    if (one_in(8) && !tight_) x = where(row + arange(0, rows).col() < limit_, x, cast(Tile(0), dtype_of<T>()));
    keep(x, 2 * kLargestInput, true, rows, columns);
    return x;
  }
  /// Rows through a table, or bytes with a factor for every row or column.
  Tile computed(int rows, int columns, const Tile& row, const Tile& column) {
    if (one_in(2)) {
      const In& x = *inputs_[number(3)];
      const Tile i = arange(0, rows);
      const Tile r = (tile::load(blocks_ + i % kBlocks) * 9 + i / kBlocks).col(), c = column + arange(0, columns).row();
      return tile::load(x.ptr() + cast(r, i64) * x.stride(0) + cast(c, i64) * x.stride(1),
                        {.mask = (r < x.dim(0)) & (c >= 0) & (c < x.dim(1))});
    }
    const Tile b = bytes_.load({row, column}, {rows, columns});
    if (std::is_same_v<T, int8_t>) return b;
    const bool ofRows = one_in(2);
    const Tile along = terms_.load({Tile(number(20)), ofRows ? row : column}, {1, ofRows ? rows : columns});
    const Tile factors = where(along > 0, cast(Tile(2), sum()), cast(Tile(1), sum()));
    return cast(cast(b, sum()) * (ofRows ? trans(factors) : factors), dtype_of<T>());
  }
  Tile narrowed(const Value& v) {
    if (v.narrow) return v.tile;
    return cast(min(max(v.tile, -kLargestInput), kLargestInput), dtype_of<T>());
  }

  // ---- what loops carry

  void carry() {
    const bool column = one_in(4);
    const int rows = one_in(wide_ ? 16 : 5) ? n_ : m_, columns = column ? 1 : pick_of({n_, n_, k_});
    carried_.push_back({full({rows, columns}, one_in(3) ? 1 : 0, sum()), rows, columns});
  }
  void update(Carried& c) {
    if (c.columns > 1 && !one_in(4)) {
      const int depth = one_in(2) ? k_ : n_;
      const Tile a = operand(c.rows, depth), b = operand(depth, c.columns);
      c.tile = product(a, b, c.tile);
      return;
    }
    const Value* v = wide(c.rows, c.columns);
    if (!v) v = &term(c.rows, c.columns);
    switch (number(4)) {
      case 0: c.tile = max(c.tile, v->tile); break;
      case 1:
        for (const Value& factor : values_)
          if (factor.rows == c.rows && factor.columns == 1 && c.columns > 1 && !factor.narrow) {
            c.tile = c.tile * where(factor.tile > 1, cast(Tile(-1), sum()), cast(Tile(1), sum())) + v->tile;
            return;
          }
        [[fallthrough]];
      default: c.tile = c.tile + v->tile;
    }
  }

  // ---- work on sums

  Tile product(const Tile& a, const Tile& b, OptionalExpr into = {}) {
    if constexpr (std::is_same_v<T, float>) return dot(a, b, into, prec_);
    return dot(a, b, into);
  }
  const Value* wide(int rows, int columns) {
    std::vector<const Value*> fit;
    for (const Value& v : values_)
      if (v.rows == rows && v.columns == columns && !v.narrow) fit.push_back(&v);
    return fit.empty() ? nullptr : fit[number(static_cast<int>(fit.size()))];
  }
  const Value& term(int rows, int columns) {
    Tile t = terms_.load({place(), columns == 1 ? Tile(number(20)) : place()}, {rows, columns});
    return keep(t, kLargestInput, false, rows, columns);
  }
  void work() {
    Value* v = nullptr;
    std::vector<Value*> all;
    for (Value& x : values_)
      if (!x.narrow && x.columns > 1) all.push_back(&x);
    if (!all.empty()) v = all[number(static_cast<int>(all.size()))];
    if (!v || one_in(3)) {
      const int rows = one_in(wide_ ? 12 : 4) ? n_ : m_, columns = one_in(3) ? k_ : n_, depth = one_in(2) ? k_ : n_;
      const Tile a = operand(rows, depth), b = operand(depth, columns);
      keep(product(a, b), int64_t{4} * kLargestInput * kLargestInput * depth, false, rows, columns);
      return;
    }
    if (one_in(12)) return batched();
    Tile x = v->tile;
    int64_t bound = v->bound;
    if (bound > kMost) x = min(max(x, -100), 100), bound = 100;
    const int rows = v->rows, columns = v->columns;
    switch (number(9)) {
      case 7: {
        const Tile small = min(max(x, -4), 4);
        const int along = number(2);
        const int64_t most = int64_t{4} * std::max(rows, columns);
        keep(cumsum(small, axis(along), {.reverse = one_in(2)}), most, false, rows, columns);
        break;
      }
      case 8: {
        const Tile total = tile::sum(min(max(x, -4), 4), axis(0));
        keep(x - total, bound + int64_t{4} * rows, false, rows, columns);
        break;
      }
      case 0: keep(max(x, 0), bound, false, rows, columns); break;
      case 1: keep(x * 2 - 1, 2 * bound + 1, false, rows, columns); break;
      case 2: {
        Tile r = *outer_[number(static_cast<int>(outer_.size()))] + arange(0, rows).col();
        Tile c = *outer_.back() + arange(0, columns).row();
        keep(where(one_in(2) ? r >= c : c < limit_, x, cast(Tile(-3), sum())), std::max<int64_t>(bound, 3), false, rows,
             columns);
        break;
      }
      case 3: keep(x + term(rows, columns).tile, bound + kLargestInput, false, rows, columns); break;
      case 4: {
        Tile most = one_in(2) ? max(x, axis(1)) : tile::sum(min(max(x, -4), 4), axis(1));
        const int64_t of = std::max<int64_t>(bound, 4 * columns);
        keep(most, of, false, rows, 1);
        if (one_in(2)) keep(x - most, bound + of, false, rows, columns);
        break;
      }
      case 5: {
        Tile least = min(x, axis(0));
        keep(x - least, 2 * bound, false, rows, columns);
        break;
      }
      default:
        if (const Value* other = wide(rows, columns)) keep(x - other->tile, bound + other->bound, false, rows, columns);
    }
  }

  /// Two products at once, of the halves of tiles.
  void batched() {
    if constexpr (!std::is_same_v<T, fp8_e4m3>) {
      const Tile a = reshape(operand(m_, k_), {2, m_ / 2, k_});
      const Tile b = reshape(load(2 * k_, n_, place(), place()), {2, k_, n_});
      keep(reshape(product(a, b), {m_, n_}), int64_t{4} * kLargestInput * kLargestInput * k_, false, m_, n_);
    }
  }

  // ---- loops

  /// Loops with nothing beside the inner one but numbers: one that the loop moves on, one that it makes.
  void around(int depth) {
    Tile at = row_;
    const Tile by = limit_ % 7;
    const bool moves = one_in(2);
    const bool down = one_in(4);
    Tile from = down ? Tile(number(4)) : Tile(number(2)), to = down ? Tile(-1) : one_in(2) ? Tile(number(5)) : limit_ % 4;
    if (!down && one_in(4)) from = from + limit_ % 2 - 1, to = from + number(4);
    for (auto t : down ? range(from, to, -1 - number(2)) : range(from, to, 1 + number(2))) {
      const Tile made = at + t * 5;
      for (const Tile* one : std::initializer_list<const Tile*>{&at, &t, &made}) outer_.push_back(one);
      if (depth > 1)
        around(depth - 1);
      else if (one_in(4))
        loop(0);
      else
        products();
      if (moves) at = at + by;
      outer_.resize(outer_.size() - 3);
    }
  }
  /// A loop of products whose boxes all move with it: the compiler makes one of it and those around it.
  void products() {
    const size_t values = values_.size();
    const int step = pick_of({16, k_, 32});
    Tile at = Tile(number(30));
    const Tile by = limit_ % 9;
    const bool moves = one_in(3);
    LoopOptions options{.stages = pick_of({0, 1, 2, 2, 3, 3, 4})};
    if (one_in(10)) options.unroll = 1 + number(3);
    // Bounds and a step of the launch, or places that the loop around says.
    Tile low = Tile(number(20)), high = one_in(3) ? Tile(number(200)) : Tile(limit_), by_step = Tile(step);
    if (one_in(5)) low = *outer_[number(static_cast<int>(outer_.size()))] * 8, high = low + (one_in(2) ? limit_ : number(99));
    if (one_in(5)) by_step = (limit_ % 3 + 1) * 16;
    auto body = [&](const Tile& i) {
      const Tile moved = moves ? at + i : Tile(i);
      outer_.push_back(&moved);
      tight_ = true;
      for (Carried& c : carried_)
        if (c.columns > 1) c.tile = product(operand(c.rows, k_), operand(k_, c.columns), c.tile);
      tight_ = false;
      outer_.pop_back();
      if (moves) at = at + by;
      forget(values);
    };
    if (one_in(8)) {  // as a condition on a counter
      Tile i = low;
      while_([&] { return i < high; },
             [&] {
               const Tile here = i;
               body(here);
               i += step;
             });
      return;
    }
    for (auto i : range(low, high, by_step, options)) body(i);
  }
  void loop(int depth) {
    const size_t values = values_.size();
    Tile at = row_;
    const Tile by = limit_ % 9;
    const bool moves = one_in(4);
    const int step = pick_of({16, k_, n_, 32});
    Tile low = Tile(0), high = Tile(limit_);
    switch (number(5)) {
      case 0: high = min(limit_, row_ + m_); break;
      case 1: low = max(row_ - 32, 0) / step * step; break;
      case 2: high = tile::load(blocks_ + program_id(0)) * step; break;
      default: break;
    }
    LoopOptions options;
    options.stages = number(5);
    options.specialize = static_cast<Choice>(number(4) == 0 ? number(2) : -1);
    options.overlap = static_cast<Choice>(number(4) == 0 ? number(2) : -1);
    const bool skips = one_in(6), branches = one_in(6), byTable = one_in(5);
    for (auto i : range(low, high, step, options)) {
      if (skips) continue_if(tile::load(blocks_ + i / step % kBlocks) == 1);
      Tile block;
      if (byTable) block = tile::load(blocks_ + i / step % kBlocks), block_ = &block;
      if (moves) outer_.push_back(&at);
      outer_.push_back(&i);
      if (depth > 0) loop(depth - 1);
      const int steps = 1 + number(3);
      for (int s = 0; s < steps; ++s) work();
      for (Carried& c : carried_) {
        if (one_in(4)) continue;
        if (branches && one_in(2))
          if_(i < limit_ / 2, [&] { inner([&] { update(c); }); });
        else
          update(c);
      }
      if (one_in(12))
        if (const Value* v = wide(m_, n_)) sums_.atomic_add({row_, Tile(0)}, min(max(v->tile, -9), 9));
      if (one_in(12))  // what is stored there later comes later
        if (const Value* v = wide(m_, n_)) out_.store({program_id(0) * kRowsOfProgram, Tile(number(100))}, v->tile);
      outer_.pop_back();
      if (moves) outer_.pop_back(), at = at + by;
      block_ = nullptr;
      forget(values);
    }
  }
  /// Values of a branch end with it.
  template <class F>
  void inner(F&& f) {
    const size_t values = values_.size();
    f();
    forget(values);
  }
  void forget(size_t from) {
    while (values_.size() > from) values_.pop_back();
  }

  void finish() {
    int at = 0;
    for (Carried& c : carried_) {
      Tile x = c.tile;
      if (one_in(3)) x = x * 2 + 1;
      if (c.columns > 1 && one_in(4)) x = x - max(x, axis(1));
      if (c.columns > 1 && one_in(4)) x = min(max(x, -1000), 1000);
      out_.store({program_id(0) * kRowsOfProgram, Tile(at)}, x);
      at += c.columns;
    }
  }

 public:
  static constexpr int kRowsOfProgram = 192, kColumns = 6 * 128 + 64;

 private:
  std::array<const In*, 3> inputs_;
  const Tensor<const Sum, 2>& terms_;
  const Ptr<const int32_t>& blocks_;
  const Tensor<const int8_t, 2>& bytes_;
  const Tensor<Sum, 2>&out_, &sums_;
  const I32& limit_;
  Prec prec_ = Prec::ieee;
  bool wide_ = false, tight_ = false;
  int m_ = 0, n_ = 0, k_ = 0;
  Tile row_;
  std::vector<const Tile*> outer_;
  const Tile* block_ = nullptr;
  std::deque<Value> values_;  ///< never moved: a copy of a tile is another variable
  std::deque<Carried> carried_;
};

}  // namespace tile::testing
