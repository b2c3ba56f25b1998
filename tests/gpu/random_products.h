// random_products.h - random products of matrices that are reached through pointers, as Triton's tutorials write them:
// tiles of pointers that move or offsets made anew, strides that are numbers or arguments, masks in any order, rows
// that wrap around, groups of programs, split K, taps, several matrices behind one pointer, memory that is read as the
// loops before wrote it. All values are small whole numbers, so every order of summation gives the same bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// Builds the kernel while it is traced. T: what products read; Sum: what they add up in.
template <class T, class Sum>
class ProductMaker : Choices {
 public:
  static constexpr int kPrograms = 12;
  static constexpr int kMostRows = 200, kMostDepth = 280;        ///< of a problem: M and N, K
  static constexpr int kTaps = 3, kSlack = 160;                  ///< matrices behind A; rows behind C
  static constexpr int kUpdated = 3 * 64 * 160;                  ///< elements that a program writes and reads
  static constexpr bool kWide = sizeof(T) == 4;

  struct Arguments {
    const Ptr<const T>&a, &b;
    const Ptr<T>& updated;
    const Ptr<Sum>& c;
    const Ptr<const Sum>& bias;
    const I32 &M, &N, &K, &lda, &ldb, &ldc;
    const I64& plane;  ///< elements between matrices of A and of B
    const I32& limit;  ///< [0, 300]
    bool a_along_k, b_along_k;  ///< which dim lies together
    int known_lda, known_ldb, known_m, known_n, known_k;  ///< what the code may know of the arguments
  };
  ProductMaker(int seed, const Arguments& a) : Choices(seed), a_(a) {}

  void program() {
    const int warps = pick_of({4, 4, 4, 8, 8, 2});
    num_warps(warps);
    prec_ = one_in(4) ? Prec::ieee : Prec::tf32;
    m_ = warps == 8 ? 128 : warps == 4 ? pick_of({64, 64, 128}) : 32;
    n_ = warps == 2 ? pick_of({32, 64}) : pick_of({32, 64, 64, 80, 96, 128}), k_ = pick_of({32, 64, 64, 128});
    if (kWide || warps == 2) k_ = std::min(k_, 64);
    is_plain_ = one_in(2);
    plan_[0] = operand_plan(), plan_[1] = operand_plan();
    const Tile rows = cdiv(a_.M, m_), columns = cdiv(a_.N, n_);
    if (one_in(4)) {
      for (auto t : range(program_id(0), rows * columns, num_programs(0))) tile_at(t, rows, columns);
      return;
    }
    tile_at(program_id(0), rows, columns);
  }

 private:
  static constexpr int kNoWork = 9;
  static constexpr DType sum() { return dtype_of<Sum>(); }
  static constexpr DType type() { return dtype_of<T>(); }

  /// How an operand is written.
  struct Plan {
    bool moves, tile_of_pointers, wide, base_has_rows, fixed, wraps, is_turned;
    int mask;   ///< 0: as little as is right, 1: of k, 2: of both, 3: of both in another order
    int other;  ///< -1: none
    int work;   ///< on elements; kNoWork: none
    bool is_short;  ///< its mask ends before the matrix does, or before it begins
  };
  Plan operand_plan() {
    Plan p{};
    p.moves = one_in(2), p.tile_of_pointers = one_in(2), p.wide = one_in(4), p.base_has_rows = one_in(4);
    p.fixed = one_in(4), p.wraps = one_in(3), p.is_turned = one_in(2), p.mask = number(4);
    p.other = one_in(12) ? 1 : number(2) - 1, p.work = number(10), p.is_short = one_in(6);
    if (is_plain_) p.other = std::min(p.other, 0), p.work = kNoWork, p.is_short = false, p.wide = false;
    return p;
  }

  void tile_at(const Tile& t, const Tile& rows, const Tile& columns) {
    Tile pm, pn;
    switch (number(3)) {
      case 0: pm = t % rows, pn = t / rows; break;
      case 1: pm = t / columns, pn = t % columns; break;
      default: {  // groups of three rows of tiles
        const Tile in_group = columns * 3, first = t / in_group * 3, height = min(rows - first, 3);
        pm = first + t % in_group % max(height, 1), pn = t % in_group / max(height, 1);
      }
    }
    // Rows behind the last tile are behind all memory unless somebody looks.
    for (auto _ : when((pm < rows) & (pn < columns))) one_tile(pm, pn);
  }

  void one_tile(const Tile& pm, const Tile& pn) {
    row_ = pm * m_, column_ = pn * n_;
    Tile acc = zeros({m_, n_}, sum());
    const int form = number(10);
    splits_ = form == 0;
    if (form == 1) {  // taps of a filter
      const Tile taps = one_in(2) ? Tile(a_.limit % (kTaps + 1)) : Tile(kTaps);
      for (auto tap : range(0, taps)) along_k(acc, cast(tap, i64) * a_.plane);
    } else if (form == 2) {
      in_place(acc);
    } else if (form == 9) {
      in_two_loops(acc);
    } else if (splits_) {
      for (int part = 0; part < 2; ++part) {
        acc = zeros({m_, n_}, sum());
        along_k(acc, Tile(0), 2, part);
        epilogue(acc);
      }
      return;
    } else {
      along_k(acc, form == 3 ? cast(Tile(1), i64) * a_.plane : Tile(0));
      if (form == 4) along_k(acc, Tile(0));
    }
    epilogue(acc);
  }

  /// Adds products along all of k, or every `parts`th block from block `part` on, to acc.
  void along_k(Tile& acc, const Tile& plane, int parts = 1, int part = 0) {
    const int step = k_ * parts;
    const bool counts_blocks = parts == 1 && one_in(3), starts_later = parts == 1 && !counts_blocks && one_in(6);
    const Tile low = starts_later ? min(Tile(a_.limit) / k_ * k_, a_.K) : Tile(part * k_);
    Walk walks[2] = {begin(0, plane, low), begin(1, plane, low)};
    const LoopOptions options = loop_options();
    auto body = [&](const Tile& at) {
      const Tile a = operand(walks[0], at), b = operand(walks[1], at);
      acc = product(a, b, acc);
      for (Walk& w : walks)
        if (w.plan->moves) advance(w, step);
    };
    if (counts_blocks)
      for (auto i : range(0, cdiv(a_.K, k_), options)) body(i * k_);
    else
      for (auto i : range(low, a_.K, step, options)) body(i);
  }

  /// The second loop goes on where the first one left the pointers, which has nothing to do where its end is negative.
  void in_two_loops(Tile& acc) {
    Walk walks[2] = {begin(0, Tile(0), Tile(0)), begin(1, Tile(0), Tile(0))};
    auto body = [&](const Tile& at) {
      const Tile a = operand(walks[0], at), b = operand(walks[1], at);
      acc = product(a, b, acc);
      for (Walk& w : walks)
        if (w.plan->moves) advance(w, k_);
    };
    const Tile middle = min(Tile((a_.limit - 150) / k_ * k_), a_.K / k_ * k_);
    for (auto i : range(0, middle, k_, loop_options())) body(i);
    for (auto i : range(max(middle, 0), a_.K, k_, loop_options())) body(i);
  }

  /// Blocks of rows that are computed from those before.
  void in_place(Tile& acc) {
    const int ld = n_ + 16;
    const Tile mine = a_.updated + program_id(0) * kUpdated;
    const int each = std::min(m_, 64), depth = std::min(k_, each);
    const Tile columns = arange(0, n_).row();
    for (auto block : range(0, 3)) {
      Tile part = zeros({each, n_}, sum());
      const Tile rows = row_ + arange(0, each);
      for (auto i : range(0, block * each, depth, loop_options())) {
        const Tile k = i + arange(0, depth);
        const Tile a = load(a_.a + (rows.col() * stride(0) + k.row() * other_stride(0)),
                            {.mask = (rows.col() < a_.M) & (k.row() < a_.K), .other = 0});
        part = product(a, load(mine + (k.col() * ld + columns)), part);
      }
      const Tile to = mine + ((block * each + arange(0, each).col()) * ld + columns);
      store(to, cast(min(max(part + cast(load(to), sum()), -2), 2), type()));
    }
    acc = acc + tile::sum(cast(load(mine + (arange(0, 3 * each).col() * ld + columns)), sum()), axis(0));
  }

  Tile product(const Tile& a, const Tile& b, const Tile& into) {
    if constexpr (kWide) return dot(a, b, into, prec_);
    return dot(a, b, into);
  }

  // ---- operands

  /// An operand on its way along k.
  struct Walk {
    const Plan* plan;
    int which, outer;  ///< 0: A, 1: B; rows of A or columns of B in a tile
    Tile base, offsets, places;
    bool turned;  ///< the tile is [k, outer]
  };
  Tile stride(int which) const {
    const bool fixed = plan_[which].fixed;
    const bool along_k = which ? a_.b_along_k : a_.a_along_k;
    if (!along_k) return Tile(1);
    return fixed ? Tile(which ? a_.known_ldb : a_.known_lda) : Tile(which ? a_.ldb : a_.lda);
  }
  Tile other_stride(int which) const {
    const bool fixed = plan_[which].fixed;
    const bool along_k = which ? a_.b_along_k : a_.a_along_k;
    if (along_k) return Tile(1);
    return fixed ? Tile(which ? a_.known_ldb : a_.known_lda) : Tile(which ? a_.ldb : a_.lda);
  }
  Tile across(const Walk& w, const Tile& x) const { return w.turned ? x.row() : x.col(); }
  Tile along(const Walk& w, const Tile& x) const { return w.turned ? x.col() : x.row(); }

  Tile offsets(const Walk& w, const Tile& outer, const Tile& k) {
    const Tile by_outer = across(w, outer), by_k = along(w, k);
    Tile o = number(2) ? by_outer * stride(w.which) : stride(w.which) * by_outer;
    Tile p = number(2) ? by_k * other_stride(w.which) : other_stride(w.which) * by_k;
    if (w.plan->wide) o = cast(by_outer, i64) * cast(stride(w.which), i64), p = cast(p, i64);
    return one_in(2) ? o + p : p + o;
  }

  Walk begin(int which, const Tile& plane, const Tile& low) {
    Walk w{};
    w.plan = &plan_[which], w.which = which, w.outer = which ? n_ : m_;
    w.turned = w.plan->is_turned != (which == 1);
    const Tile first = which ? column_ : row_, end = which ? Tile(a_.N) : Tile(a_.M);
    const Tile count = arange(0, w.outer);
    w.base = (which ? a_.b : a_.a) + plane;
    w.places = first + count;
    Tile outer = w.places;
    if (w.plan->wraps) {
      outer = outer % end;
    } else if (w.plan->base_has_rows) {
      w.base = w.base + first * stride(which), outer = count;
    }
    w.offsets = outer;  // of rows only, where k is counted by the loop
    if (w.plan->moves) {
      const Tile o = offsets(w, outer, arange(0, k_) + low);
      if (w.plan->tile_of_pointers)
        w.base = w.base + o;
      else
        w.offsets = o;
    }
    return w;
  }
  void advance(Walk& w, int step) { w.base = w.base + other_stride(w.which) * step; }

  Tile operand(Walk& w, const Tile& at) {
    const Tile k = at + arange(0, k_);
    const Tile pointers = !w.plan->moves           ? w.base + offsets(w, w.offsets, k)
                          : w.plan->tile_of_pointers ? w.base
                                                     : w.base + w.offsets;
    const Tile x = work_on(w, k, read(w, pointers, mask_of(w, at, k)));
    return w.turned == (w.which == 1) ? x : trans(x);
  }
  /// Empty where the whole tile is there.
  std::optional<Tile> mask_of(const Walk& w, const Tile& at, const Tile& k) {
    Tile end_of_k = a_.K, end = w.which ? Tile(a_.N) : Tile(a_.M);
    if (w.plan->is_short) {
      Tile& one = one_in(2) ? end_of_k : end;
      one = min(one, a_.limit - 40);
    }
    const Tile in_k = along(w, one_in(2) ? k < end_of_k : arange(0, k_) < end_of_k - at);
    const Tile in_outer = across(w, w.places < end);
    const bool whole_k = a_.known_k % k_ == 0 && !w.plan->is_short && w.plan->mask == 0;
    const bool whole = (w.which ? a_.known_n : a_.known_m) % w.outer == 0 && !w.plan->is_short;
    const bool looks_at_rows = w.plan->mask >= 2 || (!w.plan->wraps && !whole);
    if (whole_k && !looks_at_rows) return {};
    if (!looks_at_rows) return one_in(12) ? in_k & along(w, k >= 0) : in_k;
    if (whole_k) return in_outer;
    return w.plan->mask == 3 ? in_outer & in_k : in_k & in_outer;
  }
  Tile read(const Walk& w, const Tile& pointers, const std::optional<Tile>& mask) {
    if (!mask) return load(pointers);
    return w.plan->other < 0 ? load(pointers, {.mask = *mask}) : load(pointers, {.mask = *mask, .other = w.plan->other});
  }
  Tile work_on(const Walk& w, const Tile& k, Tile x) {
    switch (w.plan->work) {
      case 0: x = cast(cast(x, sum()) * 2, type()); break;
      case 1: x = where(across(w, w.places) % 2 == 0, x, cast(Tile(0), type())); break;
      case 2: x = where(along(w, k) < a_.limit, x, cast(Tile(1), type())); break;
      default: break;
    }
    return x;
  }

  // ---- results

  void epilogue(Tile r) {
    const Tile m = row_ + arange(0, m_), n = column_ + arange(0, n_);
    const Tile to = a_.c + (m.col() * a_.ldc + n.row());
    Tile in = n.row() < a_.N;
    const bool behind = !splits_ && one_in(4);  // rows that wrapped are there, behind the last one
    if (!behind) in = one_in(2) ? in & (m.col() < a_.M) : (m.col() < a_.M) & in;
    if (splits_) return atomic_add(to, r, {.mask = in}), void();
    switch (number(6)) {
      case 0: r = r + load(a_.bias + n, {.mask = n < a_.N, .other = 0}).row(); break;
      case 1: r = r + load(to, {.mask = in}); break;
      case 2: r = r - tile::max(r, axis(1)); break;
      case 3: r = r - tile::sum(min(max(r, -3), 3), axis(0)); break;
      default: break;
    }
    store(to, r, {.mask = in});
  }

  Arguments a_;
  Plan plan_[2];
  bool is_plain_ = false;  ///< operands are what bulk copies can load
  Prec prec_ = Prec::ieee;
  int m_ = 0, n_ = 0, k_ = 0;
  bool splits_ = false;
  Tile row_, column_;
};

}  // namespace tile::testing
