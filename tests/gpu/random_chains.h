// random_chains.h - random kernels whose products feed products: scores of queries and keys, masks and work on their
// rows, a second product (attention), the products of its gradients, chunks of a recurrence. All values are small whole
// numbers, or halves of them, so every order of summation gives the same bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// Builds the kernel while it is traced. T: what products read; Sum: what they add up in. Views are [head, row, depth].
template <class T, class Sum>
class ChainMaker : Choices {
 public:
  using In = Tensor<const T, 3>;
  static constexpr int kHeads = 2, kRowPrograms = 2, kMostRows = 192;
  static constexpr int kOutRows = kRowPrograms * kMostRows, kOutColumns = 512, kTable = 16;

  /// `trips` counts blocks, `length` keys; numbers behind `table` are in [0, 4).
  struct Arguments {
    const In &q, &k, &v, &w;
    const Tensor<const Sum, 3>& terms;
    const Ptr<const int32_t>& table;
    const Tensor<Sum, 3>&out, &sums;
    const I32 &trips, &length;
  };
  ChainMaker(int seed, const Arguments& a) : Choices(seed), a_(a) {}

  void program() {
    plain_ = one_in(2);
    const bool groups = plain_ || !one_in(5);  // warpgroups
    const int warps = groups ? pick_of({4, 4, 8, 8, 8, 12}) : pick_of({1, 2, 4, 8});
    num_warps(warps);
    prec_ = groups || one_in(2) ? Prec::tf32 : Prec::ieee;
    m_ = !groups ? std::min(pick_of({16, 32, 64}), 32 * warps) : warps == 4 ? pick_of({64, 64, 128}) : 16 * warps;
    if (groups && warps == 8 && rarely(6)) m_ = 64;
    const int most = m_ * 2 > 32 * warps ? 128 : 160;
    n_ = std::min(pick_of({16, 32, 48, 64, 64, 80, 96, 128, 160}), most);
    d_ = pick_of({16, 32, 64, 64, 96, 128}), e_ = pick_of({16, 32, 64, 64, 80, 128});
    if (warps <= 2) n_ = std::min(n_, 64), d_ = std::min(d_, 64), e_ = std::min(e_, 64);
    head_ = program_id(1);
    const Tile at = one_in(3) ? num_programs(0) - 1 - program_id(0) : Tile(program_id(0));
    row_ = at * m_;
    switch (number(plain_ ? 12 : 8)) {
      case 0: return gradients();
      case 1: return recurrence();
      default: return forward();
    }
  }

 private:
  static constexpr DType sum() { return dtype_of<Sum>(); }
  static constexpr int kFar = 4096;  ///< below every score
  static constexpr bool kFloat = !std::is_integral_v<Sum>;

  /// Most kernels are like those people write; half of them have something besides.
  bool rarely(int n) { return !plain_ && one_in(n); }
  Tile product(const Tile& a, const Tile& b, OptionalExpr into = {}) {
    if constexpr (std::is_same_v<T, float>) return dot(a, b, into, prec_);
    return dot(a, b, into);
  }
  static Tile number_of(double x) { return cast(Tile(static_cast<float>(x)), sum()); }
  static Tile narrowed(const Tile& x) { return cast(min(max(x, -2), 2), dtype_of<T>()); }
  /// rows x columns of a view, from memory in either order of its dims or through pointers.
  Tile box(const In& x, const Tile& row, int rows, int columns) {
    if (rarely(12)) {
      const Tile r = row + arange(0, rows).col(), c = arange(0, columns).row();
      const Tile p = x.ptr() + cast(head_, i64) * x.stride(0) + cast(r, i64) * x.stride(1) + cast(c, i64) * x.stride(2);
      return load(p, {.mask = (r >= 0) & (r < x.dim(1)) & (c < x.dim(2)) & (head_ < x.dim(0))});
    }
    return x.load({head_, row, 0}, {rows, columns});
  }

  // ---- one walk over blocks of keys (or queries)

  struct Walk {
    bool causal, window, descending, by_elements, paged, skips, split;
    LoopOptions options;
  };
  Walk walk() {
    return {one_in(2), one_in(4), one_in(2), rarely(3), rarely(6), rarely(8), rarely(8), loop_options()};
  }
  /// step(first row of the block, whether elements have to be masked).
  template <class F>
  void blocks(const Walk& w, F&& step) {
    Tile low = 0, high = one_in(3) ? Tile(a_.trips) : cdiv(a_.length, n_);
    if (w.causal) high = min(high, cdiv(row_ + m_ - number(2) * 8, n_));
    if (w.window) low = max(row_ - 40, 0) / n_;
    auto body = [&](const Tile& block, bool masked) {
      if (w.skips) continue_if(load(a_.table + block % kTable) == 1);
      step(w.paged ? load(a_.table + block % kTable) * n_ : block * n_, block * n_, masked);
    };
    auto loop = [&](const Tile& from, const Tile& to, bool masked) {
      if (w.by_elements) {
        for (auto i : range(from * n_, to * n_, n_, w.options))
          body(w.descending ? from + to - 1 - i / n_ : i / n_, masked);
      } else {
        for (auto i : range(from, to, w.options)) body(w.descending ? from + to - 1 - i : Tile(i), masked);
      }
    };
    if (!w.split) return loop(low, high, true);
    const Tile middle = min(max(row_ / n_, low), max(high, low));
    if (w.descending) loop(middle, high, true);
    loop(low, middle, !w.causal);
    if (!w.descending) loop(middle, high, true);
  }
  /// Scores with what models do to them. `across`: scores lie [key, query].
  Tile worked(Tile s, const Walk& w, const Tile& key, bool masked, bool across) {
    const int rows = across ? n_ : m_, columns = across ? m_ : n_;
    const Tile r = (across ? key : row_) + arange(0, rows).col(), c = (across ? row_ : key) + arange(0, columns).row();
    const Tile query = across ? c : r, of_key = across ? r : c;
    for (int i = number(3); i > 0; --i) switch (number(6)) {
        case 0: s = s * 2 - 1; break;
        case 1: s = s + a_.terms.load({head_, across ? key : row_, across ? row_ : key}, {rows, columns}); break;
        case 2: s = s + a_.terms.load({head_, Tile(number(9)), across ? row_ : key}, {1, columns}); break;
        case 3: s = s + a_.terms.load({head_, across ? key : row_, Tile(number(9))}, {rows, 1}); break;
        case 4: s = max(s, -3); break;
        default: s = s - cast((query - of_key) % 4, sum());
      }
    if (!masked) return s;
    switch (number(4)) {
      case 0:
        if (w.causal) s = where(query >= of_key, s, -kFar);
        if (w.window) s = where(query - of_key < 40, s, -kFar);
        if (one_in(2)) s = where(of_key < a_.length, s, -kFar);
        break;
      case 1: {
        Tile seen = of_key < a_.length;
        if (w.causal) seen = seen & (query >= of_key);
        s = where(broadcast_to(seen, {rows, columns}), s, -kFar);
        break;
      }
      case 2: {  // what is known when the kernel runs only
        const Tile far = number_of(-kFar) - cast(a_.trips, sum());
        if (w.causal) s = where(query < of_key, far, s);
        break;
      }
      default: s = where((of_key < query) | (key < 2 * n_), s, -kFar);
    }
    return s;
  }

  // ---- attention

  void forward() {
    const Walk w = walk();
    const bool across = rarely(6), online = !one_in(4), powers = kFloat && one_in(3), two_values = rarely(6),
               two_scores = rarely(8), added = rarely(3), rescale_if = rarely(8), q_stays = !rarely(8),
               halves = rarely(6), guarded = rarely(8);
    const int along = across ? 0 : 1;
    const Shape of_rows = across ? Shape{1, m_} : Shape{m_, 1};
    Tile q = box(a_.q, row_, m_, d_);
    if (std::is_same_v<T, half> && one_in(5)) q = q * 2;
    Tile most = full(of_rows, -kFar, sum()), total = zeros(of_rows, sum());
    Tile acc = zeros(across ? Shape{e_, m_} : Shape{m_, e_}, sum());
    Tile acc2 = zeros({m_, d_}, sum());
    auto step = [&](const Tile& place, const Tile& key, bool masked) {
      const Tile k = box(a_.k, place, n_, d_);
      if (!q_stays) q = box(a_.q, row_, m_, d_);
      Tile s = across ? product(k, trans(q)) : product(q, trans(k));
      if (two_scores) {
        const Tile k2 = box(a_.w, place, n_, d_);
        s = across ? product(k2, trans(q), s) : product(q, trans(k2), s);
      }
      s = worked(s, w, key, masked, across);
      Tile p, factor;
      if (online) {
        const Tile now = max(most, max(s, axis(along)));
        if (powers) {
          p = exp2(max(s - now, -3.f)), factor = exp2(max(most - now, -1.f));
        } else {
          p = max(s - now + 2, 0);
          factor = where(now - most > 5, number_of(0), where(now > most, number_of(-1), number_of(1)));
        }
        most = now;
      } else {
        p = min(max(s, -2), 2);
        if (rarely(4)) p = min(max(p + tile::sum(p, axis(along)), -2), 2);  // two sums of one tile
      }
      if (online) total = total * factor;
      total = total + tile::sum(p, axis(along));
      if (online && rescale_if)
        if_(any(factor != 1), [&] { acc = acc * factor; });
      else if (online)
        acc = acc * factor;
      const Tile narrow = cast(p, dtype_of<T>());
      const Tile v = box(a_.v, place, n_, e_);
      if (halves && !across) {  // the sum is cut and put together in every iteration
        const int half = e_ / 2;
        auto part = [&](int at) {
          return product(narrow, extract(v, {0, at}, {n_, half}), extract(acc, {0, at}, {m_, half}));
        };
        const Tile left = part(0);
        acc = cat(left, part(half), 1);
      } else if (across) {
        acc = added ? acc + product(trans(v), narrow) : product(trans(v), narrow, acc);
      } else {
        acc = added ? acc + product(narrow, v) : product(narrow, v, acc);
        if (two_values) acc2 = product(narrow, one_in(2) ? k : box(a_.w, place, n_, d_), acc2);
      }
      if (rarely(10)) a_.sums.atomic_add({head_, Tile(0), key}, across ? trans(p) : p);
    };
    blocks(w, [&](const Tile& place, const Tile& key, bool masked) {
      if (guarded)  // a branch around products
        if_(key < row_ + m_, [&] { step(place, key, masked); });
      else
        step(place, key, masked);
    });
    if (one_in(2)) acc = acc - total;
    const Tile rows = across ? trans(most) : most;
    a_.out.store({head_, row_, 0}, across ? trans(acc) : acc);
    a_.out.store({head_, row_, e_}, cat(rows, across ? trans(total) : total, 1));
    if (two_values && !across) a_.out.store({head_, row_, e_ + 2}, acc2);
  }

  // ---- gradients: keys stay (or queries), the others come by blocks

  void gradients() {
    const Walk w = walk();
    const bool across = one_in(2), both = !one_in(3), third = one_in(2);
    const Tile k = box(a_.k, row_, m_, d_), v = box(a_.v, row_, m_, e_);
    Tile dk = zeros({m_, d_}, sum()), dv = zeros({m_, e_}, sum());
    blocks(w, [&](const Tile& place, const Tile& query, bool masked) {
      const Tile q = box(a_.q, place, n_, d_), g = box(a_.w, place, n_, e_);
      Tile s = across ? product(q, trans(k)) : product(k, trans(q));
      s = worked(s, w, query, masked, across);
      const Tile delta = a_.terms.load({head_, Tile(3), query}, {1, n_}),
                 most = one_in(2) ? a_.terms.load({head_, Tile(7), query}, {1, n_}) : delta;
      const Tile p = min(max(s - (across ? trans(most) : most), 0), 2);
      const Tile narrow = cast(p, dtype_of<T>());
      auto upright = [&](const Tile& x) { return across ? trans(x) : x; };
      if (both) dv = product(upright(narrow), g, dv);
      const Tile dp = across ? product(g, trans(v)) : product(v, trans(g));
      const Tile ds = narrowed(p * (dp - (across ? trans(delta) : delta)));
      dk = product(upright(ds), q, dk);
      if (third) a_.sums.atomic_add({head_, query, Tile(0)}, product(across ? ds : trans(ds), k));
    });
    a_.out.store({head_, row_, 0}, one_in(2) ? dk * 2 : dk);
    a_.out.store({head_, row_, d_}, dv);
  }

  // ---- chunks of a recurrence: programs have columns of the state

  void recurrence() {
    const LoopOptions options = loop_options();
    const bool decays = one_in(2), inner = !one_in(3), transposed = one_in(4), first = one_in(2),
               descending = one_in(3);
    const int chunk = std::min(m_, kMostRows);
    const Tile column = program_id(0) * e_;
    Tile state = zeros(transposed ? Shape{e_, d_} : Shape{d_, e_}, sum());
    const Tile trips = one_in(2) ? Tile(a_.trips) : cdiv(a_.length, chunk);
    for (auto i : range(trips, options)) {
      const Tile place = (descending ? trips - 1 - i : Tile(i)) * chunk;
      const Tile k = box(a_.k, place, chunk, d_);
      const Tile v = a_.v.load({head_, place, column}, {chunk, e_});
      auto update = [&] {
        if (decays) {
          const Tile keep = a_.terms.load({head_, Tile(number(9)), i}, {1, 1});
          state = state * where(keep > 0, number_of(-1), number_of(1));
        }
        state = transposed ? product(trans(v), k, state) : product(trans(k), v, state);
      };
      if (first) update();
      const Tile q = box(a_.q, place, chunk, d_);
      const Tile narrow = narrowed(transposed ? trans(state) : state);
      Tile o = product(q, narrow);
      if (inner) {
        const Tile r = arange(0, chunk);
        const Tile s = where(r.col() >= r.row(), product(q, trans(k)), number_of(0));
        o = product(narrowed(s), v, o);
      }
      if (!first) update();
      a_.out.store({head_, place, column}, o);
    }
    a_.sums.store({head_, Tile(0), column}, transposed ? trans(state) : state);
  }

  Arguments a_;
  bool plain_ = false;
  Prec prec_ = Prec::ieee;
  int m_ = 0, n_ = 0, d_ = 0, e_ = 0;
  Tile head_, row_;
};

}  // namespace tile::testing
