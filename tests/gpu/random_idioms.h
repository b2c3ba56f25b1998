// random_idioms.h - random kernels of statements that people write and passes look for: sums that are cut and put
// together in every iteration, many small products, several sums of one tile, records side by side, widened integers,
// bytes of floats, states read behind their update, ways out of loops. All values are small whole numbers, so every
// order of summation gives the same bits.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/gpu/random_idiom_values.h"

namespace tile::testing {

/// Builds the kernel while it is traced.
template <class T, class Wide>
class IdiomMaker : public IdiomValues<T, Wide> {
 public:
  using Values = IdiomValues<T, Wide>;
  using Values::Values, Values::kPlaces, Values::kResult, Values::kResults, Values::kScratch;

  void program() {
    warps_ = pick_of({1, 2, 4, 4, 4, 8, 8});
    num_warps(warps_);
    at_ = program_id(0);
    rows_ = pick_of({16, 32, 64}), columns_ = pick_of({16, 32, 48, 64, 5, 24});
    count_ = pick_of({2, 4, 8, 16});
    while (!fits(rows_ * columns_)) rows_ /= 2;
    while (!fits(count_ * 16 * 16)) count_ /= 2;
    precise_ = one_in(2);
    if (one_in(8)) return_if(a_.limit + at_ > 40 + number(20));
    for (int i = 0; i < 2; ++i) keep(fresh({rows_, columns_}), 3);
    block(0, 3 + number(4));
    for (int i = 0; i < kResults; ++i) {
      const Value& v = values_[values_.size() - 1 - static_cast<size_t>(number(std::min<int64_t>(6, count())))];
      store(a_.out + (at_ * (kResults * kResult) + i * kResult) + index(v.tile.shape()), v.tile);
    }
  }

 private:
  using typename Values::Value;
  using Values::a_, Values::any_value, Values::at_, Values::bounded, Values::columns_, Values::count, Values::count_,
      Values::fits, Values::fresh, Values::index, Values::kBytes, Values::keep, Values::kTame, Values::kWhole, Values::loop, Values::loop_options,
      Values::matrix, Values::narrow, Values::narrowed, Values::number, Values::one_in, Values::pick_of,
      Values::precise_, Values::product, Values::room, Values::rows_, Values::shuffle, Values::some,
      Values::store_somewhere, Values::tame, Values::values_, Values::warps_, Values::wide;

  // ---- sums

  void several_sums() {
    const Tile x = any_value();
    const Shape s = x.shape();
    const int along = number(s.rank()), other = number(s.rank());
    Tile total = zeros(s, wide());
    const int n = 1 + number(4);
    for (int i = 0; i < n; ++i) {
      Tile y = i == 0 ? x : one_in(2) ? bounded(x, 7) * bounded(some(s), 7) : one_in(2) ? abs(x) : x + some(s);
      Tile r;
      switch (number(4)) {
        case 0:
          r = tile::sum(y, axis(along));
          break;
        case 1:
          r = max(y, axis(along));
          break;
        case 2:
          r = reshape(tile::sum(x), ones(s.rank()));
          break;
        default:
          r = tile::sum(tile::sum(x, axis(along)), axis(other));
      }
      if (one_in(4)) r = max(r, min(x, axis(along)));
      total = total + bounded(r, 100);
      if (one_in(3)) store_somewhere(r);
    }
    keep(total, 400);
  }
  static Shape ones(int rank) {
    Shape s;
    for (int i = 0; i < rank; ++i) s.push_back(1);
    return s;
  }
  void running() {
    const Tile x = any_value();
    const Shape s = x.shape();
    const int along = number(s.rank());
    const bool reverse = one_in(2);
    if (one_in(2)) {  // sums that begin anew where a flag is set
      const Tile flag = cast(some(s) > 1, i32);
      const auto r = scan({bounded(x, 5), flag}, axis(along),
                          [](Tile v, Tile f, Tile w, Tile g) {
                            return std::array{where(g != 0, w, v + w), f | g};
                          },
                          {.reverse = reverse});
      keep(r[0], 5 * s[along]);
      if (one_in(2)) keep(cast(r[1], wide()), 1);
      return;
    }
    // x -> d x + u with d in {-1, 0, 1}
    const Tile d = cast(bounded(some(s), 1), wide()), u = bounded(x, 3);
    const auto r = scan({d, u}, axis(along),
                        [](Tile a, Tile b, Tile c, Tile e) {
                          return std::array{a * c, b * c + e};
                        },
                        {.reverse = reverse});
    keep(r[1], 3 * s[along]);
  }

  // ---- put together and cut

  void cats() {
    const Tile x = matrix();
    const Shape s = x.shape();
    if (!fits(s.elements() * 4)) return;
    const int along = number(2);
    const int n = 2 + number(3);
    Tile all = x;
    for (int i = 1; i < n; ++i) all = one_in(2) ? cat(all, some(s), along) : cat(some(s), all, along);
    if (one_in(2)) return keep(all, kTame);
    Shape from{0, 0}, piece = s;
    from[along] = number(s[along] * n - 1);
    piece[along] = 1 + number(s[along] * n - from[along]);
    keep(extract(all, from, piece), kTame);
  }
  void quadruples() {
    const Tile x = matrix(), y = some(x.shape());
    if (!fits(x.shape().elements() * 4)) return;
    const Tile four = one_in(2) ? join(join(x, y), join(y + 1, x - 1)) : join(join(x, y), join(y, x));
    const Shape s = x.shape();
    if (one_in(2)) {
      const auto [a, b] = split(four);
      const auto [c, d] = split(a);
      keep(c - d * 2, 3 * kTame);
      if (one_in(2)) keep(tile::sum(b, axis(2)), 2 * kTame + 1);
    }
    keep(reshape(four, {s[0], s[1] * 4}), kTame + 1);
  }
  /// A tile that a loop carries whole, and cuts and puts together in every iteration.
  void pieces() {
    const int along = number(2), parts = one_in(2) ? 2 : 4;
    const Shape s{rows_, 16 * pick_of({1, 2, 4})};
    if (s[along] % parts || !fits(s.elements())) return;
    Shape size = s;
    size[along] /= parts;
    Tile all = one_in(2) ? zeros(s, wide()) : some(s);
    const bool products = one_in(2) && size[0] >= 16 && size[1] >= 16, whole = one_in(6), flat = one_in(3);
    loop([&] {
      Tile next;
      if (whole) store_somewhere(all);
      for (int i = 0; i < parts; ++i) {
        Shape from{0, 0};
        from[along] = size[along] * i;
        Tile part = extract(all, from, size);
        if (flat) part = reshape(part, {size.elements()});
        if (flat)
          part = bounded(part + some({size.elements()}), kTame);
        else if (products)
          part = bounded(product(narrowed(some({size[0], 16})), narrowed(some({16, size[1]})), part), kTame);
        else
          part = bounded(part * 2 - some(size), kTame);
        if (flat) part = reshape(part, size);
        next = i == 0 ? part : cat(next, part, along);
      }
      all = next;
    });
    keep(all, kTame);
  }

  // ---- products

  void many_products() {
    if (kBytes && !kWhole) return;
    const int m = pick_of({4, 8, 16, 16}), n = pick_of({4, 8, 16, 16}), k = pick_of({4, 8, 16, 16, 32});
    const bool ends = one_in(2), carried = one_in(2), turned = one_in(3);
    if (!fits(int64_t{count_} * m * k) || !fits(int64_t{count_} * n * k)) return;
    Tile c = zeros({count_, m, n}, wide());
    auto step = [&] {
      const Tile a = narrowed(some({count_, m, k}));
      const Tile b = turned ? permute(narrowed(some({count_, n, k})), {0, 2, 1}) : narrowed(some({count_, k, n}));
      c = product(a, b, c);
      if (ends) c = bounded(c, kTame);
    };
    if (carried)
      loop(step);
    else
      step();
    keep(c, 1000);
    if (one_in(2)) keep(reshape(bounded(c, kTame), {count_ * m, n}), kTame);
  }
  /// Small products of each other's results, in any order.
  void web_of_products() {
    const int n = pick_of({16, 16, 32});
    std::deque<Tile> tiles;
    for (int i = 0; i < 3; ++i) tiles.push_back(narrowed(some({n, n})));
    auto one = [&]() -> const Tile& { return tiles[static_cast<size_t>(number(static_cast<int64_t>(tiles.size())))]; };
    const int steps = 3 + number(4);
    Tile total = zeros({n, n}, wide());
    for (int i = 0; i < steps; ++i) {
      const Tile a = one(), b = one();
      const Tile p = product(a, one_in(4) ? trans(b) : b);
      if (!one_in(3)) tiles.push_back(narrowed(p));
      total = one_in(3) ? max(total, p) : total + p;
    }
    keep(total, 1000);
  }
  /// Weights of 8 bits with factors, widened on their way to the second operand.
  void widened_weights() {
    if constexpr (sizeof(T) == 2) {
      const int m = pick_of({8, 16, 32, 64}), n = 16 * warps_ * (warps_ == 4 && one_in(2) ? 2 : 1),
                k = pick_of({32, 64});
      if (warps_ < 4 && !one_in(4)) return;
      const bool factors = one_in(2), of_groups = one_in(2), across = one_in(4);
      Tile acc = zeros({std::max(m, 16), n}, wide());
      const int rows = std::max(m, 16);
      for (auto i : range(0, min(a_.limit * 2, 100), k, loop_options())) {
        const Tile a = a_.view.load({at_ * 16, i}, {rows, k});
        Tile b = across ? trans(a_.bytes.load({Tile(3), i}, {n, k})) : a_.bytes.load({i, Tile(8)}, {k, n});
        if (factors) {
          const Tile f = max(
              cast(a_.bytes.load({of_groups ? i : Tile(2), Tile(5)}, {of_groups ? k : 1, of_groups ? 1 : n}), wide()),
              -1);
          acc = product(a, cast(cast(b, wide()) * f, narrow()), acc);
        } else {
          acc = product(a, cast(b, narrow()), acc);
        }
      }
      keep(acc, 1000);
    }
  }

  // ---- memory

  void records() {
    const int fields = 2 + number(3), n = pick_of({32, 64, 100, 256});
    Tile at = one_in(2) ? load(a_.places + (arange(0, n) * 5 + number(9)) % kPlaces) * (1 + number(8)) : arange(0, n);
    at = at * fields;
    const Tile mask = at < a_.limit * 40;
    std::vector<Tile> field;
    Tile total = zeros({n}, wide());
    for (int f = 0; f < fields; ++f) {
      const Tile x = one_in(2) ? load(a_.records + at + f, {.mask = mask, .other = 1}) : load(a_.records + (at + f));
      total = f % 2 ? total - x : total + x * 2;
      field.push_back(x);
    }
    keep(total, 30);
    const int to = room(int64_t{n} * fields);
    if (to < 0) return;
    const Tile back = a_.wide + at_ * kScratch + to + arange(0, n) * fields;
    if (one_in(3)) {  // adds to records that several elements share
      const Tile shared = a_.counters + 64 + abs(cast(total, i32)) % 16 * 4;
      for (int f = 0; f < fields; ++f) atomic_add(shared + f, cast(field[static_cast<size_t>(f)], i32), {.mask = mask});
    } else {
      for (int f = 0; f < fields; ++f) store(back + f, field[static_cast<size_t>(fields - 1 - f)]);
      keep(load(back + number(fields)), 3);
    }
  }
  void same_boxes() {
    const int n = pick_of({16, 32, 64}), boxes = 1 + number(3), column = number(40);
    const bool to_memory = one_in(3);
    Tile acc = zeros({n}, wide());
    loop([&] {
      for (int i = 0; i < boxes; ++i) acc = acc + cast(a_.view.load({at_ * 8 + i, Tile(column)}, {n}), wide());
      if (to_memory) store_somewhere(acc);
    });
    keep(acc, 1000);
  }

  // ---- conversions

  void widened_integers() {
    const int n = pick_of({32, 64, 100, 256});
    Tile x = load(a_.words + (arange(0, n) * 3 + number(50)) % kPlaces) + cast(arange(0, n), u32), low, high;
    const Tile y = one_in(2) ? load(a_.words + number(kPlaces)) + 0u : load(a_.words + arange(0, n) % kPlaces);
    switch (number(5)) {
      case 0:
        low = x * y, high = mulhi(x, y);
        break;
      case 1: {
        const Tile both = cast(x, u64) * cast(y, u64);
        low = cast(both, u32), high = cast(both >> 32, u32);
        break;
      }
      case 2: {
        const Tile both = cast(cast(x, i32), i64) * cast(cast(y, i32), i64);
        low = cast(both, u32), high = cast(both >> 32, u32);
        break;
      }
      case 3: {
        const auto words = randint4(number(1000), cast(x % 5000u, i32));
        low = words[0] ^ words[2], high = words[1] + words[3];
        break;
      }
      default: {
        const auto words = philox(x, y, cast(at_, u32), 7u, 3u, 5u, 1 + number(4));
        low = words[3], high = words[0];
      }
    }
    if (one_in(2)) low = rotl(low, 1 + number(30)) ^ (x / (3u + static_cast<unsigned>(number(20))));
    keep(cast(low % 7u, wide()) - cast(high % 5u, wide()) + cast(popcount(high ^ low), wide()), 50);
  }
  /// Rounded behind a permutation, as memory has it; and back.
  void rounded_moves() {
    const int m = pick_of({2, 4, 5}), n = pick_of({8, 16}), k = pick_of({8, 16, 24});
    const Shape s{m, n, k};
    std::array<int, 3> order{0, 1, 2};
    shuffle(order);
    Shape by, to;
    for (int d : order) by.push_back(d), to.push_back(s[d]);
    Tile moved = permute(bounded(some(s) * 2, 7), by);
    if (one_in(2)) moved = reshape(moved, {to[0] * to[1], to[2]});
    const Tile y = cast(moved, narrow());
    if (const int at = room(s.elements()); at >= 0 && one_in(2)) {
      const Tile p = a_.narrow + at_ * kScratch + at;
      store(p + index(y.shape()), y);
      keep(cast(load(p + (int(s.elements()) - 1 - index(s))), wide()), 7);
    }
    keep(cast(y, wide()), 7);
  }
  /// Through a narrower type and back; every value there is exact.
  void through_bytes() {
    const Tile x = any_value();
    const Shape s = x.shape();
    switch (number(6)) {
      case 0:
        return keep(cast(cast(cast(bounded(x, 15), f32), f8e4m3), wide()), 15);
      case 1:
        return keep(cast(cast(cast(bounded(x, 7), f16), f8e5m2), wide()), 7);
      case 2:
        return keep(cast(cast(cast(x, f32), f8e4m3), wide()), 52);  // to nearest even
      case 3:
        return keep(cast(saturate(cast(x, i32) * 5, i8), wide()), 128);
      case 4:
        return keep(cast(bitcast(cast(cast(bounded(x, 7), f32), bf16), u16) % 97, wide()), 97);
      default: {  // two numbers of 4 bits in a byte
        const Tile low = cast(abs(cast(x, i32)) % 16, u8), high = cast(abs(cast(some(s), i32)) % 16, u8);
        const Tile byte = low | (high << 4);
        keep(cast(byte & 15, wide()) * 2 - cast(byte >> 4, wide()), 30);
        if (one_in(2) && fits(2 * s.elements()))
          keep(cast(from_e2m1(reshape(byte, {s.elements()}), f32) * 2, wide()), 12);
      }
    }
  }

  // ---- order

  void ordered() {
    const Tile x = any_value();
    const Shape s = x.shape();
    const int along = number(s.rank());
    if (s[along] > 128 || s.elements() > 2048) return;
    const auto [best, where_it_was] = topk(x, 1 + number(std::min<int64_t>(s[along], 9)), axis(along));
    keep(best, kTame);
    if (one_in(2)) keep(cast(where_it_was, wide()), s[along]);
    if (one_in(2)) {
      const auto [least, at] = min_with_index(x, axis(along));
      keep(least + cast(at, wide()), kTame + s[along]);
    }
  }
  void counted() {
    const Tile x = any_value();
    const Tile i = abs(cast(x, i32));
    switch (number(4)) {
      case 0: {
        const Tile w = i % 3;
        const Tile counts = one_in(2)   ? histogram(i % 40, 32, {.mask = x > 0})
                            : one_in(2) ? histogram(i % 40, 32, {.mask = x > 0, .weight = w})
                                        : histogram(i % 40, 32, {.mask = x > 0, .weight = cast(w, f32)});
        return keep(cast(counts, wide()), 2 * x.shape().elements());
      }
      case 1:
        atomic_max(a_.counters + i % 16, i, {.mask = i % 3 != 1});
        return;
      case 2:
        atomic_xor(a_.counters + 16 + i % 16, i * 77);
        return;
      default:
        atomic_or(a_.counters + 32 + i % 8, shifted(i));
    }
  }
  static Tile shifted(const Tile& i) { return Tile(1) << (i % 30); }
  void four_dims() {
    if (!fits(2048)) return;
    const Tile x = some({8, 4, 4, 16});
    std::array<int, 4> order{0, 1, 2, 3};
    shuffle(order);
    Shape by, to;
    for (int d : order) by.push_back(d), to.push_back(x.shape()[d]);
    Tile y = permute(x, by);
    if (one_in(2)) y = y + tile::sum(bounded(y, 3), axis(number(4)));
    if (one_in(2)) y = max(y, take(y, abs(cast(y, i32)) % int(to[2]), 2));
    keep(reshape(y, one_in(2) ? Shape{to[0] * to[1], to[2] * to[3]} : Shape{to[0], to[1] * to[2], to[3]}), 100);
  }

  // ---- constructs

  /// A state that is read behind its update, or before it, or both.
  void states() {
    const Shape s = one_in(2) ? Shape{rows_, columns_} : Shape{count_, 16, 8};
    const int along = number(s.rank());
    Tile state = some(s), seen = tile::sum(state, axis(along));
    const bool early = one_in(2), both = one_in(3), kept = one_in(3), in_memory = one_in(3);
    loop([&] {
      const Tile u = some(s);
      const Tile next = bounded(one_in(2) ? u - state : max(state, u) + 1, kTame);
      if (early) seen = bounded(seen + tile::sum(bounded(state * u, 9), axis(along)), kTame);
      if (in_memory) store_somewhere(state);
      if (both) seen = seen - min(next, axis(along));
      if (kept)
        state = where(u > 1, state, next);
      else
        state = next;
      if (!early) seen = bounded(seen - max(bounded(state + u, 9), axis(along)), kTame);
    });
    keep(state, kTame), keep(seen, 2 * kTame);
  }
  void branch(int depth) {
    const Value& v = values_[static_cast<size_t>(number(count()))];
    Tile x = tame(v);
    const size_t before = values_.size();
    auto side = [&] {
      block(depth + 1, 1 + number(2));
      x = some(x.shape());
      while (values_.size() > before) values_.pop_back();
    };
    const Tile c = one_in(2) ? a_.limit > number(60) : any(x > 2);
    if (one_in(2))
      if_(c, side, side);
    else
      if_(c, side);
    keep(x, kTame);
  }
  void nest(int depth) {
    Tile x = any_value();
    loop([&] {
      block(depth + 1, 1 + number(3));
      x = bounded(x + some(x.shape()), kTame);
    });
    keep(x, kTame);
  }
  void block(int depth, int steps) {
    for (int i = 0; i < steps; ++i) statement(depth);
  }
  void statement(int depth) {
    switch (number(depth < 2 ? 20 : 17)) {
      case 0:
      case 1:
        return several_sums();
      case 2:
        return running();
      case 3:
        return cats();
      case 4:
        return quadruples();
      case 5:
        return pieces();
      case 6:
        return many_products();
      case 7:
        return web_of_products();
      case 8:
        return widened_weights();
      case 9:
        return records();
      case 10:
        return same_boxes();
      case 11:
        return widened_integers();
      case 12:
        return rounded_moves();
      case 13:
        return through_bytes();
      case 14:
        return ordered();
      case 15:
        return counted();
      case 16:
        return four_dims();
      case 17:
        return states();
      case 18:
        return branch(depth);
      default:
        return nest(depth);
    }
  }
};

}  // namespace tile::testing
