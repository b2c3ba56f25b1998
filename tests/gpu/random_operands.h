// random_operands.h - random loops of products whose operands come in every way there is: boxes of views in any order
// of dims, rows by number, pointers with masks, numbers of 4 and 8 bits with factors, tables, pieces put together,
// results of other products; one tile for two products, products that meet. All values are small whole numbers (or
// quarters of them), so every order of summation gives the same bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// Builds the kernel while it is traced. T: what products read; Sum: what they add up in.
template <class T, class Sum>
class OperandMaker : Choices {
 public:
  static constexpr int kPrograms = 3, kRowsOfProgram = 192, kColumns = 3 * 160;
  static constexpr int kTable = 256;  ///< row numbers
  static constexpr bool kWhole = std::is_integral_v<T>;
  static constexpr bool kBytes = sizeof(T) == 1, kWide = sizeof(T) == 4;

  struct Arguments {
    const Tensor<const T, 2>&x, &y;
    const Tensor<const T, 3>& z;
    const Tensor<const int8_t, 2>& bytes;     ///< in [-2, 2]
    const Tensor<const uint8_t, 2>& packed;   ///< two numbers of 4 bits each
    const Tensor<const uint8_t, 2>& factors;  ///< e8m0: 1/2, 1 or 2
    const Tensor<const Sum, 2>& terms;
    const Ptr<const int32_t>& table;  ///< row numbers, some of them outside
    const Tensor<Sum, 2>& out;
    const I32& limit;
  };
  OperandMaker(int seed, const Arguments& a) : Choices(seed), a_(a) {}

  void program() {
    const bool groups = !one_in(4);
    const int warps = groups ? pick_of({4, 4, 8, 8, 12}) : pick_of({1, 2, 4, 8});
    num_warps(warps);
    prec_ = !groups && one_in(2) ? Prec::ieee : one_in(6) ? Prec::bf16x3 : Prec::tf32;
    m_ = !groups ? std::min(pick_of({16, 32, 64}), 32 * warps) : warps == 4 ? pick_of({64, 64, 128}) : 16 * warps;
    n_ = pick_of({16, 32, 64, 64, 80, 96, 128, 160}), k_ = pick_of({32, 64, 64, 128});
    if (warps <= 2) n_ = std::min(n_, 64), k_ = std::min(k_, 64);
    if (kWide) k_ = std::min(k_, 64);
    row_ = program_id(0) * m_;
    const int sums = 1 + number(3);
    for (int i = 0; i < sums; ++i) carry(zeros({m_, n_}, sum()));
    if (one_in(4)) shared_.push_back({operand(m_, k_, row_, Tile(0)), m_, k_});  // a tile that stays
    loop();
    if (one_in(5)) loop();
    int at = 0;
    for (const Tile& c : carried_) {
      Tile r = one_in(3) ? c * 2 - 1 : c;
      if (one_in(5)) r = r + a_.terms.load({row_, Tile(at)}, {m_, n_});
      a_.out.store({program_id(0) * kRowsOfProgram, Tile(at)}, r);
      at += n_;
    }
  }

 private:
  struct Shared {
    Tile tile;
    int rows, columns;
  };
  static constexpr DType sum() { return dtype_of<Sum>(); }
  static constexpr DType type() { return dtype_of<T>(); }
  void carry(const Tile& t) { carried_.push_back(t); }
  Tile product(const Tile& a, const Tile& b, OptionalExpr into = {}) {
    if constexpr (kWide && kWhole) return dot_bits(a, b, into);
    if constexpr (kWide) return dot(a, b, into, prec_);
    return dot(a, b, into);
  }
  Tile narrowed(const Tile& x) { return cast(min(max(x, -2), 2), type()); }

  void loop() {
    const bool descending = one_in(4), skips = one_in(8), indirect = one_in(6);
    const Tile end = one_in(3) ? min(a_.limit, row_ + m_) : Tile(a_.limit);
    const LoopOptions options = loop_options();
    for (auto i : range(0, end, k_, options)) {
      if (skips) continue_if(load(a_.table + i % kTable) % 3 == 1);
      const size_t shared = shared_.size();
      Tile at = descending ? (end - 1) / k_ * k_ - i : Tile(i);
      if (indirect) at = load(a_.table + i % kTable) % 4 * k_;
      for (Tile& c : carried_) {
        if (one_in(8)) continue;
        update(c, at);
      }
      while (shared_.size() > shared) shared_.pop_back();
    }
  }

  void update(Tile& c, const Tile& at) {
    switch (number(10)) {
      case 0:
        if constexpr (!kWide && !kWhole) return scaled(c, at);
        [[fallthrough]];
      case 1: {  // matrix by matrix
        if constexpr (kBytes && !kWhole) break;
        const int each = m_ / 2;
        const Tile a = reshape(operand(m_, k_, row_, at), {2, each, k_});
        const Tile b = a_.z.load({Tile(number(2)), at, Tile(number(3) * 8)}, {2, k_, n_});
        c = reshape(product(a, b, reshape(c, {2, each, n_})), {m_, n_});
        return;
      }
      case 2: {  // two products that meet
        const Tile a = operand(m_, k_, row_, at), b = operand(k_, n_, at, Tile(0));
        const Tile d = one_in(2) ? b : operand(k_, n_, at, Tile(8));
        const Tile one = product(a, b), two = product(operand(m_, k_, row_, at), d);
        c = c + (one_in(2) ? one - two : one * where(two > 0, cast(Tile(1), sum()), cast(Tile(-1), sum())));
        return;
      }
      case 3: {  // one that feeds another
        const Tile first = product(operand(m_, n_, row_, at), operand(n_, k_, at, Tile(0)));
        c = product(narrowed(first), operand(k_, n_, at, Tile(0)), c);
        return;
      }
      case 4: {  // a chain of two into one sum
        const Tile half_way = product(operand(m_, k_, row_, at), operand(k_, n_, at, Tile(0)), c);
        c = product(operand(m_, k_, row_, at), operand(k_, n_, at, Tile(16)), half_way);
        return;
      }
      default: break;
    }
    c = product(operand(m_, k_, row_, at), operand(k_, n_, at, Tile(number(2) * 16)), c);
  }

  /// A factor for every 32 numbers of a row; 1 outside.
  Tile factors(const Tile& row, const Tile& at, int rows) {
    return a_.factors.load({row, at / 32}, {rows, k_ / 32}, {.pad = 127});
  }
  /// Numbers of 4 bits with a factor for every 32.
  void scaled(Tile& c, const Tile& at) {
    const bool along = one_in(2);
    const Tile w =
        along ? a_.packed.load({at / 2, Tile(0)}, {k_ / 2, n_}) : a_.packed.load({at, Tile(0)}, {k_, n_ / 2});
    const ScaledOperand b =
        one_in(4) ? ScaledOperand{.values = w, .packed_along_k = along}
                  : ScaledOperand{w, factors(Tile(0), at, n_), along};
    const Tile a = operand(m_, k_, row_, at);
    c = dot_scaled(one_in(2) ? ScaledOperand{a} : ScaledOperand{a, factors(row_, at, m_)}, b, c);
  }

  // ---- operands

  Tile operand(int rows, int columns, const Tile& row, const Tile& column) {
    if (one_in(4))
      for (const Shared& s : shared_) {
        if (s.rows == rows && s.columns == columns) return s.tile;
        if (s.rows == columns && s.columns == rows && one_in(2)) return trans(s.tile);
      }
    Tile t = one_in(4) ? trans(made(columns, rows, column, row)) : made(rows, columns, row, column);
    if (one_in(10)) t = where(row + arange(0, rows).col() < a_.limit, t, cast(Tile(0), type()));
    if (one_in(10)) t = where((column + arange(0, columns)).row() < a_.limit, t, cast(Tile(1), type()));
    shared_.push_back({t, rows, columns});
    return t;
  }
  Tile box(int rows, int columns, const Tile& row, const Tile& column) {
    return (one_in(2) ? a_.x : a_.y).load({row, column}, {rows, columns});
  }
  Tile made(int rows, int columns, const Tile& row, const Tile& column) {
    switch (number(26)) {
      case 0: return a_.x.gather(load(a_.table + (row + arange(0, rows)) % kTable), column, columns);
      case 1: {  // rows through a table, by pointers
        const Tile r = load(a_.table + (row + arange(0, rows)) % kTable).col(), c = column + arange(0, columns).row();
        return load(a_.y.ptr() + cast(r, i64) * a_.y.stride(0) + cast(c, i64) * a_.y.stride(1),
                    {.mask = (r >= 0) & (r < a_.y.dim(0)) & (c >= 0) & (c < a_.y.dim(1)), .other = number(2)});
      }
      case 2: {  // every second column, or rows that repeat
        const Tile r = one_in(2) ? row + arange(0, rows).col() / 2 : row + arange(0, rows).col(),
                   c = column + arange(0, columns).row() * (1 + number(2));
        return load(a_.x.ptr() + cast(r, i64) * a_.x.stride(0) + cast(c, i64) * a_.x.stride(1),
                    {.mask = (r >= 0) & (r < a_.x.dim(0)) & (c >= 0) & (c < a_.x.dim(1))});
      }
      case 3: return a_.z.load({Tile(number(3)), row, column}, {rows, columns});
      case 4: return reshape(a_.z.load({Tile(0), row / 2, column}, {2, rows / 2, columns}), {rows, columns});
      case 5: {
        const Tile both = a_.z.load({Tile(0), row, column / 2}, {2, rows, columns / 2});
        return reshape(permute(both, {1, 0, 2}), {rows, columns});
      }
      case 6: return box(rows, columns, row + number(20) - 5, column + number(20) - 5);
      case 7: {  // bytes with a factor for each row or column
        const Tile b = a_.bytes.load({row, column}, {rows, columns});
        const bool of_rows = one_in(2);
        const Tile along = of_rows ? a_.terms.load({row, Tile(number(9))}, {rows, 1})
                                   : a_.terms.load({Tile(number(9)), column}, {1, columns});
        const Tile factor = where(along > 0, cast(Tile(2), sum()), cast(Tile(-1), sum()));
        return cast(cast(b, sum()) * factor, type());
      }
      case 8: return cast(a_.bytes.load({row, column}, {rows, columns}), type());
      case 9: {  // factors of groups along a row
        if constexpr (kBytes) break;
        const Tile b = cast(a_.bytes.load({row, column}, {rows, columns}), type());
        const Tile of_group = cast(a_.terms.load({row, column / 32}, {rows, columns / 32 + (columns < 32)}), type());
        if (columns % 32) return b;
        return reshape(reshape(b, {rows, columns / 32, 32}) * expand_dims(of_group, 2), {rows, columns});
      }
      case 10: {  // two numbers of 4 bits in a byte, side by side
        const Tile b = a_.packed.load({row, column / 2}, {rows, columns / 2});
        return interleave(nibble(b & 15), nibble(b >> 4));
      }
      case 11: {  // ... one above the other
        const Tile b = a_.packed.load({row / 2, column}, {rows / 2, columns});
        return reshape(permute(join(nibble(b & 15), nibble(b >> 4)), {0, 2, 1}), {rows, columns});
      }
      case 12: {  // ... in halves
        const Tile b = a_.packed.load({row, column / 2}, {rows, columns / 2});
        return cat(nibble(b & 15), nibble(b >> 4), 1);
      }
      case 13:
        if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
          return from_e2m1(a_.packed.load({row, column / 2}, {rows, columns / 2}), type());
        break;
      case 14: {
        const Tile a = box(rows, columns, row, column), b = box(rows, columns, row, column + 16);
        return kBytes ? cast(cast(a, sum()) + cast(b, sum()), type()) : a + b;
      }
      case 15: {
        const Tile x = box(rows, columns, row, column);
        return where(cast(x, sum()) > 0, x, box(rows, columns, row + 3, column));
      }
      case 16: return cat(box(rows / 2, columns, row, column), box(rows / 2, columns, row + 40, column), 0);
      case 17: return cat(box(rows, columns / 2, row, column), box(rows, columns / 2, row, column + 40), 1);
      case 18: return extract(box(rows, columns * 2, row, column), {0, number(2) * columns}, {rows, columns});
      case 19: return cast(a_.terms.load({row, column}, {rows, columns}), type());
      case 20: {  // a table of values
        const Tile at = cast(a_.bytes.load({row, column}, {rows, columns}), i32) + 2;
        return cast(load(a_.table + at) % 3, type());
      }
      case 21: {  // a table in registers
        const Tile at = cast(a_.packed.load({row, column}, {rows, columns}), i32) % columns;
        return take(box(rows, columns, row, column), at, 1);
      }
      case 22: return cast((arange(0, rows).col() + arange(0, columns).row() + column) % 3 - 1, type());
      case 23: {
        const Tile x = box(rows, columns, row, column);
        return narrowed(cast(x, sum()) + tile::sum(cast(x, sum()), axis(number(2))));
      }
      default: break;
    }
    return box(rows, columns, row, column);
  }
  /// A number of 4 bits less 2, of those below 5.
  Tile nibble(const Tile& bits) { return cast(cast(min(bits, 4), i32) - 2, type()); }

  Arguments a_;
  Prec prec_ = Prec::ieee;
  int m_ = 0, n_ = 0, k_ = 0;
  Tile row_;
  std::deque<Tile> carried_;
  std::deque<Shared> shared_;
};

}  // namespace tile::testing
