// unusual_orders.cpp - physics and numerics in orders that newcomers choose: recurrences from the end, paths as
// products of max-plus matrices, triangular products, a ring of time planes, numbers modulo 64-bit primes, pairs sorted
// and counted, places past two billion.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace unusual_orders {

// --- y[t] = a[t] y[t + 1] + b[t] from the end, block by block, in f64; the running extremes with it
struct Back {
  int B = 64, R = 4;
};
auto backward_affine =
    kernel("user_backward_affine", [](const Back& c, Tensor<const double, 2> a, Tensor<const float, 2> b,
                                      Tensor<double, 2> y, Tensor<float, 2> far) {
      auto r = program_id(0) * c.R;
      Tile state = zeros({c.R, 1}, f64), top = zeros({c.R, 1}, f32);
      auto n = a.dim(1);
      for (auto t : range((cdiv(n, c.B) - 1) * c.B, -1, -c.B)) {
        Tile inside = ((t + arange(0, c.B)) < n).row();
        Tile factor = where(inside, a.load({r, t}, {c.R, c.B}), 1.), add = cast(b.load({r, t}, {c.R, c.B}), f64);
        auto [pa, pb] = scan({factor, add}, axis(1),
                             [](Tile a0, Tile b0, Tile a1, Tile b1) { return std::tuple(a0 * a1, a1 * b0 + b1); },
                             {.reverse = true});
        Tile out = pa * state + pb;
        y.store({r, t}, out);
        Tile peak = scan(cast(abs(out), f32), axis(1), [](Tile p, Tile q) { return max(p, q); }, {.reverse = true});
        peak = max(peak, top);
        far.store({r, t}, peak);
        state = extract(out, {0, 0}, {c.R, 1});
        top = extract(peak, {0, 0}, {c.R, 1});
      }
    }).grid([](const Back& c, const auto& a, const auto&, const auto&, const auto&) {
      return Grid{cdiv(int(a.shape[0]), c.R)};
    });
Register o1("backward_affine", [](Env& e) {
  const int R = e.big ? 2048 : 7, N = e.big ? 8192 : 203;
  auto a = drawn<double>(e, size_t(R) * N, [&] { return 0.7 + 0.35 * e.uniform(); });
  auto b = random<float>(e, size_t(R) * N);
  auto y = constant<double>(e, size_t(R) * N, 9);
  auto far = constant<float>(e, size_t(R) * N, 9);
  Job j;
  j.add(backward_affine, Back{e.field("B", e.big ? 256 : 64), e.field("R", 4)}, a.view(R, N), b.view(R, N),
        y.view(R, N), far.view(R, N));
  j.mbytes = double(R) * N * 24e-6;
  j.check = [=]() -> std::string {
    std::vector<double> wy(R * N), wf(R * N);
    for (int r = 0; r < R; ++r) {
      double state = 0, top = 0;
      for (int t = N - 1; t >= 0; --t) {
        state = a[r * N + t] * state + b[r * N + t];
        wy[r * N + t] = state, wf[r * N + t] = top = std::max(top, std::abs(state));
      }
    }
    if (auto s = agree(y.now(), wy, 1e-12, 1e-12); !s.empty()) return "y: " + s;
    return agree(far.now(), wf, 1e-6, 1e-6);
  };
  return j;
});

// --- the best path through two states: a scan of 2 x 2 matrices of the max-plus algebra, carried from block to block
struct Paths {
  int B = 256;
};
auto max_plus = kernel("user_max_plus", [](const Paths& c, Tensor<const float, 3> w, Tensor<float, 3> best) {
                  auto s = program_id(0);
                  Tile from0 = full({1}, 0.f, f32), from1 = full({1}, -1e30f, f32);
                  for (auto t : range(0, w.dim(1), c.B)) {
                    Tile four = w.load({s, t, 0}, {c.B, 4});
                    auto [even, odd] = split(reshape(four, {c.B, 2, 2}));  // columns of every matrix
                    auto [m00, m10] = split(even);
                    auto [m01, m11] = split(odd);
                    auto [p00, p01, p10, p11] =
                        scan({m00, m01, m10, m11}, axis(0),
                             [](Tile a00, Tile a01, Tile a10, Tile a11, Tile b00, Tile b01, Tile b10, Tile b11) {
                               return std::tuple(max(a00 + b00, a01 + b10), max(a00 + b01, a01 + b11),
                                                 max(a10 + b00, a11 + b10), max(a10 + b01, a11 + b11));
                             });
                    Tile to0 = max(from0 + p00, from1 + p10), to1 = max(from0 + p01, from1 + p11);
                    best.store({s, t, 0}, join(to0, to1));
                    from0 = extract(to0, {c.B - 1}, {1}), from1 = extract(to1, {c.B - 1}, {1});
                  }
                }).grid([](const Paths&, const auto& w, const auto&) { return Grid{w.shape[0]}; });
Register o2("max_plus", [](Env& e) {
  const int S = e.big ? 1024 : 3, T = e.big ? 16384 : 700;
  auto w = integers<float>(e, size_t(S) * T * 4, -9, 10);
  auto best = constant<float>(e, size_t(S) * T * 2, 1);
  Job j;
  j.add(max_plus, Paths{e.field("B", e.big ? 1024 : 256)}, w.view(S, T, 4), best.view(S, T, 2));
  j.mbytes = double(S) * T * 24e-6;
  j.check = [=] {
    std::vector<double> want;
    for (int s = 0; s < S; ++s) {
      double x[2] = {0, -1e30};
      for (int t = 0; t < T; ++t) {
        const size_t m = (size_t(s) * T + t) * 4;
        const double y0 = std::max(x[0] + w[m], x[1] + w[m + 2]), y1 = std::max(x[0] + w[m + 1], x[1] + w[m + 3]);
        want.push_back(x[0] = y0), want.push_back(x[1] = y1);
      }
    }
    return agree(best.now(), want, 1e-3, 1e-6);
  };
  return j;
});

// --- B = L B with L lower triangular, out of place: programs of one triangle of blocks, numbered by a root; and the
// product with its transpose, of which the lower triangle of blocks is made and the upper one mirrored
struct Lower {
  int B = 64, K = 32, N = 64;
};
auto trmm =
    kernel("user_trmm", [](const Lower& c, Tensor<const float, 2> l, Tensor<const float, 2> b, Tensor<float, 2> y) {
      auto i = program_id(1) * c.B, n = program_id(0) * c.N;
      Tile acc = zeros({c.B, c.N}, f32);
      for (auto k : range(0, min(i + c.B, l.dim(1)), c.K)) {
        Tile rows = i + arange(0, c.B), columns = k + arange(0, c.K);
        Tile part = where(columns.row() <= rows.col(), l.load({i, k}, {c.B, c.K}), 0.f);
        acc = dot(part, b.load({k, n}, {c.K, c.N}), acc, Prec::tf32x3);
      }
      y.store({i, n}, acc);
    }).grid([](const Lower& c, const auto& l, const auto& b, const auto&) {
      return Grid{cdiv(int(b.shape[1]), c.N), cdiv(int(l.shape[0]), c.B)};
    });
auto gram_halves =
    kernel("user_gram_halves", [](const Lower& c, Tensor<const half, 2> a, Tensor<float, 2> g, F32 ridge) {
      auto p = program_id(0);  // p = i (i + 1) / 2 + j with j <= i
      Tile i = cast(floor((sqrt(cast(p * 8 + 1, f64)) - 1.) / 2.), i32), j = p - i * (i + 1) / 2;
      Tile acc = zeros({c.B, c.B}, f32);
      for (auto k : range(0, a.dim(1), c.K))
        acc = dot(a.load({i * c.B, k}, {c.B, c.K}), trans(a.load({j * c.B, k}, {c.B, c.K})), acc);
      if_(i == j, [&] { acc += where(arange(0, c.B).col() == arange(0, c.B).row(), ridge, 0.f); });
      g.store({i * c.B, j * c.B}, acc);
      if_(i != j, [&] { g.store({j * c.B, i * c.B}, trans(acc)); });
    }).grid([](const Lower& c, const auto& a, const auto&, float) {
      const int blocks = cdiv(int(a.shape[0]), c.B);
      return Grid{blocks * (blocks + 1) / 2};
    });
Register o3("trmm", [](Env& e) {
  const int M = e.big ? 4096 : 150, N = e.big ? 2048 : 77;
  auto l = random<float>(e, size_t(M) * M), b = random<float>(e, size_t(M) * N);
  auto y = constant<float>(e, size_t(M) * N, 9);
  Job j;
  j.add(trmm, Lower{e.field("B", e.big ? 128 : 64), e.field("K", 32), e.field("N", e.big ? 128 : 64)}, l.view(M, M),
        b.view(M, N), y.view(M, N));
  j.gflop = 1e-9 * M * M * N;
  j.check = [=] {
    const auto want = product(
        M, N, M, [&](int m, int k) { return k <= m ? l[m * M + k] : 0.; }, matrix(b, N));
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});
Register o4("gram_halves", [](Env& e) {
  const int M = e.big ? 8192 : 200, K = e.big ? 2048 : 90;
  auto a = random<half>(e, size_t(M) * K);
  auto g = constant<float>(e, size_t(M) * M, 9);
  Job j;
  j.add(gram_halves, Lower{e.field("B", e.big ? 128 : 64), e.field("K", 64), 64}, a.view(M, K), g.view(M, M), 2.f);
  j.gflop = 1e-9 * M * M * K;
  j.check = [=] {
    const auto want = product(
        M, M, K, matrix(a, K), [&](int k, int n) { return a[n * K + k]; },
        [](double sum, int m, int n) { return sum + 2 * (m == n); });
    return agree(g.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- waves in a box whose three newest planes of time live in a ring: u[t % 3], through one pointer and i64 strides
struct Ring {
  int X = 64, Y = 4;
};
auto wave_ring =
    kernel("user_wave_ring", [](const Ring& c, Ptr<float> u, Tensor<const float, 3> speed, I64 plane, I64 layer,
                                I64 row, I32 nz, I32 ny, I32 nx, I32 t) {
      auto z = program_id(2);
      Tile y = (program_id(1) * c.Y + arange(0, c.Y)).col(), x = (program_id(0) * c.X + arange(0, c.X)).row();
      Tile inside = (x < nx) & (y < ny);
      Tile now = cast(t % 3, i64) * plane, before = cast((t + 2) % 3, i64) * plane,
           next = cast((t + 1) % 3, i64) * plane;
      auto at = [&](Tile dz, Tile dy, Tile dx) {  // fixed walls
        Tile zz = z + dz, yy = y + dy, xx = x + dx;
        Tile in = inside & (zz >= 0) & (zz < nz) & (yy >= 0) & (yy < ny) & (xx >= 0) & (xx < nx);
        return load(u + (now + cast(zz, i64) * layer + cast(yy, i64) * row + cast(xx, i64)), {.mask = in});
      };
      Tile none = zeros({}, i32), one = none + 1;
      Tile middle = at(none, none, none);
      Tile laplace = at(none, none, one) + at(none, none, -one) + at(none, one, none) + at(none, -one, none) +
                     at(one, none, none) + at(-one, none, none) - middle * 6.f;
      Tile place = cast(z, i64) * layer + cast(y, i64) * row + cast(x, i64);
      Tile old = load(u + (before + place), {.mask = inside});
      Tile v = speed.load({z, program_id(1) * c.Y, program_id(0) * c.X}, {c.Y, c.X});
      store(u + (next + place), middle * 2.f - old + v * v * laplace, {.mask = inside});
    }).grid([](const Ring& c, float*, const auto&, int64_t, int64_t, int64_t, int nz, int ny, int nx, int) {
      return Grid{cdiv(nx, c.X), cdiv(ny, c.Y), nz};
    });
Register o5("wave_ring", [](Env& e) {
  const int Z = e.big ? 256 : 5, Y = e.big ? 256 : 9, X = e.big ? 256 : 37, row = X + 3, steps = e.big ? 1 : 4;
  const int64_t layer = int64_t(row) * Y, plane = layer * Z;
  auto u = random<float>(e, 3 * plane);
  auto v = random<float>(e, size_t(Y) * X, 0.1, 0.5);
  Job j;
  // Every layer has the same speeds: a stride of 0.
  TensorView<const float, 3> speed(v.p, {Z, Y, X}, {0, X, 1});
  for (int t = 2; t < 2 + steps; ++t)
    j.add(wave_ring, Ring{e.field("X", 64), e.field("Y", 4)}, u.p, speed, plane, layer, int64_t(row), Z, Y, X, t);
  j.mbytes = double(plane) * 12e-6;
  j.check = [=]() -> std::string {
    std::vector<double> w(3 * plane);
    for (size_t i = 0; i < w.size(); ++i) w[i] = u[i];
    for (int t = 2; t < 2 + steps; ++t)
      for (int z = 0; z < Z; ++z)
        for (int y = 0; y < Y; ++y)
          for (int x = 0; x < X; ++x) {
            auto at = [&](int a, int b, int c) {
              return a < 0 || a >= Z || b < 0 || b >= Y || c < 0 || c >= X ? 0.
                                                                           : w[t % 3 * plane + a * layer + b * row + c];
            };
            const double l = at(z, y, x + 1) + at(z, y, x - 1) + at(z, y + 1, x) + at(z, y - 1, x) + at(z + 1, y, x) +
                             at(z - 1, y, x) - 6 * at(z, y, x);
            const int64_t p = z * layer + y * row + x;
            w[(t + 1) % 3 * plane + p] = 2 * at(z, y, x) - w[(t + 2) % 3 * plane + p] + v[y * X + x] * v[y * X + x] * l;
          }
    return agree(u.now(), w, 1e-4, 1e-4);
  };
  return j;
});

// --- numbers modulo a prime of 61 and more bits: products by Montgomery's form, powers until the exponents are used
// up, square roots of unity counted, and the bits of what remains
struct Modulo {
  int B = 256;
};
/// a b / 2^64 modulo m, of numbers below m < 2^63; `inverse` is that of -m.
Tile montgomery(Tile a, Tile b, Tile m, Tile inverse) {
  Tile low = a * b, high = mulhi(a, b), q = low * inverse;
  Tile sum = high + mulhi(q, m) + cast(low != 0, u64);
  return where(sum >= m, sum - m, sum);
}
auto mod_powers =
    kernel("user_mod_powers",
           [](const Modulo& c, Ptr<const uint64_t> x, Ptr<const uint32_t> exponent, Ptr<uint64_t> y, Ptr<uint8_t> ones,
              Ptr<uint64_t> parity, U64 m, U64 inverse, U64 square, I32 n) {
             Tile i = program_id(0) * c.B + arange(0, c.B), inside = i < n;
             Tile base = montgomery(load(x + i, {.mask = inside}), full({c.B}, square, u64), m, inverse);
             Tile bits = load(exponent + i, {.mask = inside});
             Tile result = montgomery(full({c.B}, uint64_t(1), u64), full({c.B}, square, u64), m, inverse);
             while_([&] { return any(bits != 0); },
                    [&] {
                      Tile active = bits != 0;
                      result = where(active & ((bits & 1) == 1), montgomery(result, base, m, inverse), result);
                      base = where(active, montgomery(base, base, m, inverse), base);
                      bits = bits >> 1;
                    });
             result = montgomery(result, full({c.B}, uint64_t(1), u64), m, inverse);
             store(y + i, result, {.mask = inside});
             store(ones + i, cast(popcount(result), u8), {.mask = inside});
             Tile word = xor_sum(where(inside, rotl(result, cast(i % 64, u64)), uint64_t(0)));
             atomic_xor(parity, word);
           })
        .grid([](const Modulo& c, const uint64_t*, const uint32_t*, uint64_t*, uint8_t*, uint64_t*, uint64_t, uint64_t,
                 uint64_t, int n) { return Grid{cdiv(n, c.B)}; });
Register o6("mod_powers", [](Env& e) {
  const int N = e.big ? 1 << 22 : 700;
  const uint64_t m = (1ull << 61) - 1;
  uint64_t inverse = m;  // of m, by Newton's steps
  for (int k = 0; k < 6; ++k) inverse *= 2 - m * inverse;
  const uint64_t square = uint64_t((((unsigned __int128)1 << 127) % m) * 2 % m);
  auto x = drawn<uint64_t>(e, N,
                           [&] { return (uint64_t(e.uniform() * 0x1p24) << 37 | uint64_t(e.uniform() * 0x1p24)) % m; });
  auto p = drawn<uint32_t>(e, N, [&] { return uint32_t(e.uniform() * 0x1p24) >> int(e.uniform() * 24); });
  auto y = constant<uint64_t>(e, N, 1);
  auto ones = constant<uint8_t>(e, N, 1);
  auto parity = constant<uint64_t>(e, 1, 0);
  Job j;
  restore(e, j, parity);
  j.add(mod_powers, Modulo{e.field("B", 256)}, x.p, p.p, y.p, ones.p, parity.p, m, ~inverse + 1, square, N);
  j.check = [=]() -> std::string {
    const auto got = y.now();
    const auto count = ones.now();
    uint64_t all = 0;
    for (int i = 0; i < N; ++i) {
      unsigned __int128 base = x.h[i], result = 1;
      for (uint32_t bits = p.h[i]; bits; bits >>= 1, base = base * base % m)
        if (bits & 1) result = result * base % m;
      if (got[i] != uint64_t(result)) return "element " + std::to_string(i);
      if (count[i] != std::popcount(got[i])) return "count " + std::to_string(i);
      all ^= std::rotl(got[i], i % 64);
    }
    return parity.now()[0] == all ? "" : "parity";
  };
  return j;
});

// --- rows of (key, weight) made unique: sorted by key, runs numbered by a running sum of their heads, weights of a run
// summed from the end (segments), heads moved to the front
struct Unique {
  int N = 128, R = 2;
};
auto unique_rows =
    kernel("user_unique_rows", [](const Unique& c, Tensor<const int16_t, 2> key, Tensor<const half, 2> weight,
                                  Tensor<int16_t, 2> out, Tensor<float, 2> sums, Ptr<int32_t> counts) {
      auto r = program_id(0) * c.R;
      Tile place = broadcast_to(arange(0, c.N).row(), {c.R, c.N});
      Tile k = where(place < key.dim(1), cast(key.load({r, 0}, {c.R, c.N}), i32), 1 << 20);
      Tile order = argsort(k, axis(1));
      Tile sorted = take(k, order, 1), w = take(cast(weight.load({r, 0}, {c.R, c.N}), f32), order, 1);
      Tile before = take(sorted, max(place - 1, 0), 1), after = take(sorted, min(place + 1, c.N - 1), 1);
      Tile head = ((place == 0) | (sorted != before)) & (sorted < (1 << 20));
      Tile last = (place == c.N - 1) | (sorted != after);
      auto [stop, total] =
          scan({cast(last, i32), w}, axis(1),
               [](Tile f0, Tile s0, Tile f1, Tile s1) { return std::tuple(f0 | f1, where(f1 != 0, s1, s0 + s1)); },
               {.reverse = true});
      Tile number = cumsum(cast(head, i32), axis(1)), heads = sum(cast(head, i32), axis(1));
      // Element n of the result is the head with that number: heads first, in their order.
      Tile front = argsort(where(head, number, c.N + 1), axis(1));
      Tile there = place < heads;
      out.store({r, 0}, cast(where(there, take(sorted, front, 1), -1), i16));
      sums.store({r, 0}, where(there, take(total, front, 1), 0.f));
      Tile row = r + arange(0, c.R);
      store(counts + row, reshape(heads, {c.R}), {.mask = row < key.dim(0)});
    }).grid([](const Unique& c, const auto& key, const auto&, const auto&, const auto&, int32_t*) {
      return Grid{cdiv(int(key.shape[0]), c.R)};
    });
Register o7("unique_rows", [](Env& e) {
  const int R = e.big ? 65536 : 9, N = e.big ? 256 : 100;
  auto k = integers<int16_t>(e, size_t(R) * N, -20, 60);
  auto w = integers<half>(e, size_t(R) * N, -8, 9);
  auto out = constant<int16_t>(e, size_t(R) * N, 5);
  auto sums = constant<float>(e, size_t(R) * N, 5);
  auto counts = constant<int32_t>(e, R, 5);
  Job j;
  j.add(unique_rows, Unique{e.big ? 256 : 128, e.field("R", 2)}, k.view(R, N), w.view(R, N), out.view(R, N),
        sums.view(R, N), counts.p);
  j.check = [=]() -> std::string {
    std::vector<double> wo(R * N, -1), ws(R * N), wc(R);
    for (int r = 0; r < R; ++r) {
      std::map<int, double> all;
      for (int i = 0; i < N; ++i) all[k.h[r * N + i]] += w[r * N + i];
      wc[r] = double(all.size());
      int at = r * N;
      for (auto [key, total] : all) wo[at] = key, ws[at++] = total;
    }
    if (auto s = agree(counts.now(), wc, 0.1, 0); !s.empty()) return "counts: " + s;
    if (auto s = agree(out.now(), wo, 0.1, 0); !s.empty()) return "keys: " + s;
    return agree(sums.now(), ws, 1e-6, 0);
  };
  return j;
});

// --- sizes past 2^31: a row that repeats for ever (stride 0), flat places in 64 bits, bounds compared in 64 bits
struct Far {
  int B = 128;
};
auto far_places =
    kernel("user_far_places", [](const Far& c, Tensor<const float, 2> x, Ptr<const int64_t> where_, Ptr<float> y,
                                 I64 n) {
      Tile i = program_id(0) * c.B + arange(0, c.B);
      Tile at = load(where_ + i, {.mask = cast(i, i64) < n, .other = -1});
      Tile rows = at / x.dim64(1), columns = at % x.dim64(1);
      Tile inside = (at >= 0) & (rows < x.dim64(0));
      Tile v = load(x.ptr() + (rows * x.stride(0) + columns * x.stride(1)), {.mask = inside, .other = -1.f});
      Tile last = x.load({x.dim64(0) - 1, x.dim64(1) - c.B}, {c.B});
      store(y + i, v + last * 0.5f, {.mask = cast(i, i64) < n});
    }).grid([](const Far& c, const auto&, const int64_t*, float*, int64_t n) { return Grid{cdiv(int(n), c.B)}; });
Register o8("far_places", [](Env& e) {
  const int N = e.big ? 1 << 24 : 300, W = 1000;
  const int64_t rows = int64_t(5) << 31;
  auto x = random<float>(e, W);
  auto at = filled<int64_t>(e, N, [&](size_t i) {
    return i % 7 == 3 ? -int64_t(i) - 1 : int64_t(e.uniform() * 0x1p24) * 743'000'017 % (rows * W + W * 5000000ll);
  });
  auto y = constant<float>(e, N, 9);
  Job j;
  j.add(far_places, Far{}, TensorView<const float, 2>(x.p, {rows, W}, {0, 1}), at.p, y.p, int64_t(N));
  j.check = [=] {
    std::vector<double> want(N);
    for (int i = 0; i < N; ++i) {
      const int64_t a = at.h[i];
      want[i] = (a >= 0 && a / W < rows ? x[a % W] : -1.) + 0.5 * x[W - 128 + i % 128];
    }
    return agree(y.now(), want, 1e-6, 1e-6);
  };
  return j;
});

}  // namespace unusual_orders
}  // namespace users
