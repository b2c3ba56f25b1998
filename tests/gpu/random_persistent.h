// random_persistent.h - random kernels whose programs work on several tiles of an output, one after another: by
// strides, by tickets, in another order, in ranges; or one tile each, which the compiler may deal out itself. In each a
// loop of products; behind it tiles are stored, narrowed, added to memory, or are parts that the last program to arrive
// adds up. All values are small whole numbers, so every order of summation gives the same bits.
#pragma once
#include <algorithm>
#include <cstdint>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// Builds the kernel while it is traced. T: what products read; Sum: what they add up in.
template <class T, class Sum>
class PersistentMaker : Choices {
 public:
  static constexpr int kMost = 300;  ///< rows and columns of the output
  static constexpr int kTiles = 64, kSplits = 3, kSides = 192;  ///< tiles; parts of a sum; rows of a tile
  static constexpr int kCounters = 2 + kTiles;

  struct Arguments {
    const Tensor<const T, 3>&a, &b;  ///< [layer, row, depth], [layer, depth, column], their dims in any order
    const Tensor<const Sum, 2>& terms;
    const Ptr<const int32_t>& order;   ///< a permutation of the tiles
    const Ptr<const int32_t>& depths;  ///< of each tile
    const Tensor<Sum, 2>&out, &sums;
    const Tensor<T, 2>& narrow;
    const Tensor<Sum, 3>& parts;
    const Ptr<Sum>& rows;  ///< sums of rows
    const Ptr<int32_t>& counters;
    const I32& depth;
  };
  PersistentMaker(int seed, const Arguments& a) : Choices(seed), a_(a) {}

  void program() {
    const bool groups = !one_in(5);
    const int warps = groups ? pick_of({4, 4, 8, 8, 8, 12}) : pick_of({1, 2, 4, 8});
    num_warps(warps);
    prec_ = groups || one_in(2) ? Prec::tf32 : Prec::ieee;
    m_ = !groups ? std::min(pick_of({16, 32, 64}), 32 * warps) : warps == 4 ? pick_of({64, 64, 128}) : 16 * warps;
    if (groups && warps == 8 && one_in(5)) m_ = 64;
    n_ = std::min(pick_of({32, 48, 64, 64, 96, 128, 160}), m_ * 2 > 32 * warps ? 128 : 160);
    k_ = pick_of({32, 32, 64, 128});
    if (warps <= 2) n_ = std::min(n_, 64), k_ = std::min(k_, 64);
    if (m_ < 64) n_ = 64;  // not too many tiles
    if (m_ < 64) m_ = 32;
    across_ = cdiv(a_.out.dim(1), n_), down_ = cdiv(a_.out.dim(0), m_);
    const Tile tiles = across_ * down_;
    const Tile programs = num_programs(0) * num_programs(1), at = program_id(1) * num_programs(0) + program_id(0);
    grouped_ = one_in(3), by_order_ = one_in(3), own_depths_ = one_in(3), views_ = one_in(2);
    inner_ = loop_options(), outer_ = loop_options();
    epilogue_ = number(9);
    if (one_in(8)) programs_per_multiprocessor(2);
    switch (number(7)) {
      case 0:
        for (auto t : range(at, tiles, programs, outer_)) work(t);
        return;
      case 1: {
        Tile t = atomic_add(a_.counters, 1);
        while_([&] { return t < tiles; }, [&] { work(t), t = atomic_add(a_.counters, 1); });
        return;
      }
      case 2: {
        const Tile each = cdiv(tiles, programs), low = at * each;
        for (auto t : range(low, min(low + each, tiles), outer_)) work(t);
        return;
      }
      case 3: {  // parts of sums, of all tiles
        splits_ = 2 + number(kSplits - 1);
        for (auto u : range(at, tiles * splits_, programs, outer_)) split(u);
        return;
      }
      case 4:  // the compiler deals them out; two programs of a cluster may share what they copy
        if (one_in(2)) programs_per_cluster(2);
        return_if((program_id(0) >= down_) | (program_id(1) >= across_));
        return tile_at(program_id(0) * m_, program_id(1) * n_, program_id(1) * down_ + program_id(0));
      default:
        return_if(at >= tiles);
        if (one_in(3)) {
          splits_ = 2;
          return split(at * 2 + number(2));
        }
        return work(at);
    }
  }

 private:
  static constexpr DType sum() { return dtype_of<Sum>(); }
  Tile product(const Tile& a, const Tile& b, const Tile& into) {
    if constexpr (std::is_same_v<T, float>) return dot(a, b, into, prec_);
    return dot(a, b, into);
  }

  void work(const Tile& turn) {
    const Tile t = by_order_ ? load(a_.order + turn % kTiles) : turn;
    auto place = [&](const Tile& row, const Tile& column) { tile_at(row * m_, column * n_, t); };
    // The permutation is of more tiles than there are.
    auto one = [&] {
      if (grouped_) {
        const auto [row, column] = swizzle2d(t / across_, t % across_, down_, across_, 2);
        place(row, column);
      } else {
        place(t / across_, t % across_);
      }
    };
    if (by_order_)
      if_(t < across_ * down_, one);
    else
      one();
  }
  void tile_at(const Tile& row, const Tile& column, const Tile& t) {
    const Tile end = own_depths_ ? load(a_.depths + t % kTiles) : Tile(a_.depth);
    finish(products(row, column, Tile(0), end), row, column, t);
  }
  Tile products(const Tile& row, const Tile& column, const Tile& low, const Tile& high) {
    Tile acc = one_in(4) ? cast(a_.terms.load({row, column}, {m_, n_}), sum()) : zeros({m_, n_}, sum());
    const Tile layer = one_in(4) ? load(a_.depths + row % kTiles) % 2 : Tile(0);
    const bool scaled = one_in(6);
    auto loop = [&](auto load_a, auto load_b) {
      for (auto k : range(low, high, k_, inner_)) step(acc, load_a(k), load_b(k), column, scaled);
    };
    auto a = [&](const Tile& k) { return a_.a.load({layer, row, k}, {m_, k_}); };
    auto b = [&](const Tile& k) { return a_.b.load({layer, k, column}, {k_, n_}); };
    if (!views_) {
      loop(a, b);
      return acc;
    }
    // Of one layer, with fewer rows for some tiles, and none for a few.
    const Tile rows = where(row % 5 == 3, 0, min(a_.a.dim(1), row + m_ - layer * 8));
    auto own_a = view_of(a_.a, layer, rows, a_.a.dim(2));
    if (one_in(3)) {
      loop([&](const Tile& k) { return own_a.load({row, k}, {m_, k_}); }, b);
      return acc;
    }
    auto own_b = view_of(a_.b, layer, one_in(2) ? Tile(a_.b.dim(1)) : min(a_.b.dim(1), high), a_.b.dim(2));
    loop([&](const Tile& k) { return own_a.load({row, k}, {m_, k_}); },
         [&](const Tile& k) { return own_b.load({k, column}, {k_, n_}); });
    return acc;
  }
  static Tensor<const T, 2> view_of(const Tensor<const T, 3>& x, const Tile& layer, const Tile& rows,
                                    const Tile& columns) {
    return make_view<const T>(x.ptr() + cast(layer, i64) * x.stride(0), {rows, columns}, {x.stride(1), x.stride(2)});
  }
  void step(Tile& acc, const Tile& a, const Tile& b, const Tile& column, bool scaled) {
    if (scaled) {
      const Tile along = a_.terms.load({Tile(1), column}, {1, n_});
      const Tile factor = where(along > 0, cast(Tile(2), sum()), cast(Tile(1), sum()));
      acc = acc + product(a, b, zeros({m_, n_}, sum())) * factor;
    } else {
      acc = product(a, b, acc);
    }
  }

  void finish(Tile x, const Tile& row, const Tile& column, const Tile& t) {
    switch (epilogue_) {
      case 0: a_.sums.atomic_add({row, column}, x); break;
      case 1: x = x * 2 + a_.terms.load({row, column}, {m_, n_}); break;
      case 2: x = x + a_.terms.load({Tile(5), column}, {1, n_}); break;
      case 3: x = max(x + a_.terms.load({row, Tile(5)}, {m_, 1}), 0); break;
      case 4: {  // sums of rows of the whole output
        const Tile inside = (column + arange(0, n_)).row() < a_.out.dim(1);
        const Tile of_rows = tile::sum(where(inside, min(max(x, -9), 9), 0), axis(1));
        const Tile r = (row + arange(0, m_)).col();
        atomic_add(a_.rows + r, of_rows, {.mask = r < kMost});
        break;
      }
      case 5: x = x - max(x, axis(1)); break;
      default: break;
    }
    if (epilogue_ == 6 || epilogue_ == 3) a_.narrow.store({row, column}, cast(min(max(x, -8), 8), dtype_of<T>()));
    if (epilogue_ == 7) {
      a_.parts.store({t, 0, 0}, x);
      x = x + 1;
    }
    a_.out.store({row, column}, x);
  }

  /// Part u % splits of a sum; the last one to arrive adds them up.
  void split(const Tile& u) {
    const Tile t = u / splits_, part = u % splits_;
    const Tile row = t / across_ * m_, column = t % across_ * n_;
    const Tile each = cdiv(cdiv(a_.depth, k_), splits_) * k_, low = part * each;
    const Tile x = products(row, column, low, min(low + each, a_.depth));
    a_.parts.store({u, 0, 0}, x);
    const Tile before = atomic_add(a_.counters + 1 + t, 1);
    if_(before == splits_ - 1, [&] {
      Tile total = zeros({m_, n_}, sum());
      if (one_in(2))
        for (auto s : range(splits_))
          total = total + reshape(a_.parts.load({t * splits_ + s, 0, 0}, {1, m_, n_}), {m_, n_});
      else
        for (int s = 0; s < splits_; ++s) total = total + a_.parts.load({t * splits_ + s, 0, 0}, {m_, n_});
      finish(total, row, column, t * splits_);
    });
  }

  Arguments a_;
  Prec prec_ = Prec::ieee;
  LoopOptions inner_, outer_;
  bool grouped_ = false, views_ = false, by_order_ = false, own_depths_ = false;
  int epilogue_ = 0, splits_ = 1;
  int m_ = 0, n_ = 0, k_ = 0;
  Tile across_, down_;
};

}  // namespace tile::testing
