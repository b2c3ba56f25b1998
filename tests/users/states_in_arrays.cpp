// states_in_arrays.cpp - states of many numbers a lane, in arrays of tiles that loops carry: Lorenz 96 by Runge-Kutta,
// SHA-512 of short messages, the ten nearest of many points by insertion, sums over a ring buffer of lags
// (autocorrelation).
#include "tests/users/flat_fields.h"
namespace users {
namespace states_in_arrays {
// --- Lorenz 96: N coupled numbers a lane, four stages a step, float64
constexpr int kN = 20;
auto lorenz = kernel("user_lorenz96", [](const FlatCfg& c, Ptr<double> state, F64 force, F64 dt, I32 steps, I32 n) {
                num_warps(c.warps);  // state [N, n]
                auto i = program_id(0) * c.B + arange(0, c.B);
                auto in = i < n;
                using State = std::array<Tile, kN>;
                State x;
                for (int k = 0; k < kN; ++k) x[k] = load(state + cast(n, i64) * k + i, {.mask = in});
                auto slope = [&](const State& x, int k) {
                  return (x[(k + 1) % kN] - x[(k + kN - 2) % kN]) * x[(k + kN - 1) % kN] - x[k] + force;
                };
                for (auto s : range(steps)) {
                  State sum = x, y = x;
                  const double weight[4] = {1. / 6, 1. / 3, 1. / 3, 1. / 6}, ahead[4] = {.5, .5, 1, 0};
                  for (int stage = 0; stage < 4; ++stage) {
                    State k;
                    for (int v = 0; v < kN; ++v) k[v] = slope(y, v);
                    for (int v = 0; v < kN; ++v) {
                      sum[v] += (dt * weight[stage]) * k[v];
                      if (stage < 3) y[v] = x[v] + (dt * ahead[stage]) * k[v];
                    }
                  }
                  for (int v = 0; v < kN; ++v) x[v] = sum[v];
                }
                for (int k = 0; k < kN; ++k) store(state + cast(n, i64) * k + i, x[k], {.mask = in});
              }).grid([](const FlatCfg& c, auto, double, double, int, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("lorenz96", [](Env& e) {
  auto c = flat(e, {128, 4}, {32, 1});
  const int n = e.big ? 1 << 16 : 41, steps = e.big ? 100 : 3;
  auto x = random<double>(e, size_t(kN) * n, -3, 3);
  Job j;
  restore(e, j, x);
  j.inTurn = true;
  j.gflop = 1e-9 * n * steps * kN * 4 * 8;
  j.add(lorenz, c, x.p, 8., .01, steps, n);
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int i = 0; i < n; ++i) {
      std::vector<double> v(kN);
      for (int k = 0; k < kN; ++k) v[k] = x[size_t(k) * n + i];
      for (int s = 0; s < steps; ++s) {
        auto sum = v, y = v;
        for (int st = 0; st < 4; ++st) {
          std::vector<double> k(kN);
          for (int q = 0; q < kN; ++q)
            k[q] = (y[(q + 1) % kN] - y[(q + kN - 2) % kN]) * y[(q + kN - 1) % kN] - y[q] + 8;
          for (int q = 0; q < kN; ++q)
            sum[q] += .01 * (st == 0 || st == 3 ? 1. / 6 : 1. / 3) * k[q], y[q] = v[q] + .01 * (st < 2 ? .5 : 1) * k[q];
        }
        v = sum;
      }
      for (int k = 0; k < kN; ++k) want[size_t(k) * n + i] = v[k];
    }
    return agree(x.now(), want, 1e-10, 1e-10);
  };
  return j;
});
// --- SHA-512 of messages of one block: 80 rounds of 64-bit words
std::array<uint64_t, 80> constants() {
  std::array<uint64_t, 80> k;
  int found = 0;
  for (int p = 2; found < 80; ++p) {
    bool prime = true;
    for (int d = 2; d * d <= p; ++d) prime &= p % d != 0;
    if (!prime) continue;
    // the first 64 bits of the fraction of the cube root, by search
    unsigned __int128 low = (unsigned __int128)(uint64_t(std::floor(std::cbrt((double)p)))) << 64,
                      high = low + ((unsigned __int128)1 << 64);
    auto below = [&](unsigned __int128 r) {  // r^3 <= p 2^192, in parts of 32 bits
      uint32_t a[3] = {uint32_t(r), uint32_t(r >> 32), uint32_t(r >> 64)};
      uint64_t sq[7]{}, cu[10]{};
      auto mul = [](const uint64_t* x, int nx, const uint32_t* y, uint64_t* out, int n) {
        for (int i = 0; i < n; ++i) out[i] = 0;
        for (int i = 0; i < nx; ++i) {
          uint64_t carry = 0;
          for (int j = 0; j < 3 || carry; ++j) {
            if (i + j >= n) break;
            const uint64_t t = out[i + j] + (j < 3 ? x[i] * uint64_t(y[j]) : 0) + carry;
            out[i + j] = uint32_t(t), carry = t >> 32;
          }
        }
      };
      uint64_t x[3] = {a[0], a[1], a[2]};
      mul(x, 3, a, sq, 7), mul(sq, 7, a, cu, 10);
      for (int i = 9; i > 6; --i)
        if (cu[i]) return false;
      return cu[6] < uint64_t(p);
    };
    while (high - low > 1) {
      const auto mid = low + (high - low) / 2;
      (below(mid) ? low : high) = mid;
    }
    k[found++] = uint64_t(low);
  }
  return k;
}
template <class W, class R>
std::array<W, 8> sha512_block(std::array<W, 16> w, std::array<W, 8> s, R rot) {
  static const auto k = constants();
  W a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
  for (int i = 0; i < 80; ++i) {
    if (i >= 16) {
      W x = w[(i + 1) % 16], y = w[(i + 14) % 16];
      w[i % 16] =
          w[i % 16] + (rot(x, 1) ^ rot(x, 8) ^ (x >> 7)) + w[(i + 9) % 16] + (rot(y, 19) ^ rot(y, 61) ^ (y >> 6));
    }
    W t1 = h + (rot(e, 14) ^ rot(e, 18) ^ rot(e, 41)) + ((e & f) ^ (~e & g)) + k[i] + w[i % 16];
    W t2 = (rot(a, 28) ^ rot(a, 34) ^ rot(a, 39)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  return {s[0] + a, s[1] + b, s[2] + c, s[3] + d, s[4] + e, s[5] + f, s[6] + g, s[7] + h};
}
constexpr uint64_t kStart[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
                                0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
auto sha512 = kernel("user_sha512", [](const FlatCfg& c, Ptr<const uint64_t> words, Ptr<uint64_t> out, I32 n) {
                num_warps(c.warps);  // words [16, n], padded blocks; out [8, n]
                auto i = program_id(0) * c.B + arange(0, c.B);
                auto in = i < n;
                std::array<Tile, 16> w;
                for (int k = 0; k < 16; ++k) w[k] = load(words + (k * n + i), {.mask = in});
                std::array<Tile, 8> s;
                for (int k = 0; k < 8; ++k) s[k] = full({c.B}, kStart[k], u64);
                auto h = sha512_block(w, s, [](const Tile& x, int by) { return rotr(x, by); });
                for (int k = 0; k < 8; ++k) store(out + (k * n + i), h[k], {.mask = in});
              }).grid([](const FlatCfg& c, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r2("sha512", [](Env& e) {
  auto c = flat(e, {128, 4}, {32, 1});
  const int n = e.big ? 1 << 20 : 37;
  auto words = filled<uint64_t>(e, size_t(16) * n, [&](size_t i) {
    if (i % n == 0 && !e.big)
      return i == 0 ? uint64_t(0x6162638000000000) : i == size_t(15) * n ? uint64_t(24) : uint64_t(0);  // "abc"
    return uint64_t(e.uniform() * 0x1p24) << 40 | uint64_t(e.uniform() * 0x1p24) << 16 | uint64_t(e.uniform() * 0x1p16);
  });
  auto out = constant<uint64_t>(e, size_t(8) * n, 0);
  Job j;
  j.mbytes = 192e-6 * n;
  j.add(sha512, c, words.p, out.p, n);
  j.check = [=]() -> std::string {
    auto got = out.now();
    if (got[0] != 0xddaf35a193617abaull || got[size_t(7) * n] != 0x2a9ac94fa54ca49full) return "known answer";
    for (int i = 0; i < n; ++i) {
      std::array<uint64_t, 16> w;
      std::array<uint64_t, 8> s;
      for (int k = 0; k < 16; ++k) w[k] = words.h[size_t(k) * n + i];
      for (int k = 0; k < 8; ++k) s[k] = kStart[k];
      auto h = sha512_block<uint64_t>(w, s, [](uint64_t x, int by) { return x >> by | x << (64 - by); });
      for (int k = 0; k < 8; ++k)
        if (h[k] != got[size_t(k) * n + i]) return "message " + std::to_string(i);
    }
    return "";
  };
  return j;
});
// --- the ten nearest points of every query by insertion into a list in registers (Kokkos and ArborX do it so)
constexpr int kNear = 10;
auto nearest = kernel("user_insertion_knn", [](const FlatCfg& c, Ptr<const float> points, Ptr<const float> queries,
                                               Ptr<float> far, Ptr<int32_t> ids, I32 n, I32 q) {
                 num_warps(c.warps);
                 auto i = program_id(0) * c.B + arange(0, c.B);
                 auto in = i < q;
                 std::array<Tile, 3> x;
                 for (int d = 0; d < 3; ++d) x[d] = load(queries + (i * 3 + d), {.mask = in});
                 std::array<Tile, kNear> best, who;
                 for (int k = 0; k < kNear; ++k) best[k] = full({c.B}, INFINITY, f32), who[k] = full({c.B}, -1, i32);
                 for (auto p : range(n)) {
                   Tile d2 = zeros({c.B}, f32);
                   for (int d = 0; d < 3; ++d) {
                     auto diff = x[d] - load(points + (p * 3 + d));
                     d2 += diff * diff;
                   }
                   auto near = d2 < best[kNear - 1];
                   if_(any(near), [&] {
                     Tile v = d2, id = broadcast_to(p, {c.B});
                     for (int k = 0; k < kNear; ++k) {
                       auto less = near & (v < best[k]);
                       Tile b = best[k], w = who[k];
                       best[k] = where(less, v, b), who[k] = where(less, id, w);
                       v = where(less, b, v), id = where(less, w, id);
                     }
                   });
                 }
                 for (int k = 0; k < kNear; ++k)
                   store(far + (i * kNear + k), best[k], {.mask = in}),
                       store(ids + (i * kNear + k), who[k], {.mask = in});
               }).grid([](const FlatCfg& c, auto, auto, auto, auto, int, int q) { return Grid{cdiv(q, c.B)}; });
Register r3("insertion_knn", [](Env& e) {
  auto c = flat(e, {128, 4}, {32, 1});
  const int n = e.big ? 20000 : 71, q = e.big ? 20000 : 41;
  auto points = random<float>(e, n * 3), queries = random<float>(e, q * 3), far = constant<float>(e, q * kNear, NAN);
  auto ids = constant<int32_t>(e, q * kNear, -7);
  Job j;
  j.gflop = 8e-9 * n * double(q);
  j.add(nearest, c, points.p, queries.p, far.p, ids.p, n, q);
  j.check = [=] {
    std::vector<double> d, w;
    for (int i = 0; i < q; ++i) {
      std::vector<std::pair<double, int>> all;
      for (int p = 0; p < n; ++p) {
        double s = 0;
        for (int k = 0; k < 3; ++k) s += std::pow(queries[i * 3 + k] - points[p * 3 + k], 2);
        all.push_back({s, p});
      }
      std::sort(all.begin(), all.end());
      for (int k = 0; k < kNear; ++k) d.push_back(all[k].first), w.push_back(all[k].second);
    }
    return agree(far.now(), d, 1e-5, 1e-5) + agree(ids.now(), w, .5, 0);
  };
  return j;
});
// --- autocorrelation of many series: sums of x[t] x[t - lag] for all lags at once, the last values in registers
constexpr int kLags = 12;
auto lags = kernel("user_autocorrelation", [](const FlatCfg& c, Ptr<const float> x, Ptr<double> out, I32 T, I32 n) {
              num_warps(c.warps);  // x [T, n], out [lags, n]
              auto i = program_id(0) * c.B + arange(0, c.B);
              auto in = i < n;
              std::array<Tile, kLags> past, sum;
              for (int k = 0; k < kLags; ++k) past[k] = zeros({c.B}, f32), sum[k] = zeros({c.B}, f64);
              for (auto t : range(T)) {
                for (int k = kLags - 1; k > 0; --k) past[k] = past[k - 1];
                past[0] = load(x + (cast(t, i64) * cast(n, i64) + i), {.mask = in});
                for (int k = 0; k < kLags; ++k) sum[k] += cast(past[0], f64) * cast(past[k], f64);
              }
              for (int k = 0; k < kLags; ++k) store(out + (k * n + i), sum[k] / cast(T, f64), {.mask = in});
            }).grid([](const FlatCfg& c, auto, auto, int, int n) { return Grid{cdiv(n, c.B)}; });
Register r4("autocorrelation", [](Env& e) {
  auto c = flat(e, {128, 4}, {32, 1});
  const int T = e.big ? 4096 : 29, n = e.big ? 1 << 15 : 37;
  auto x = random<float>(e, size_t(T) * n);
  auto out = constant<double>(e, size_t(kLags) * n, NAN);
  Job j;
  j.mbytes = 4e-6 * T * n;
  j.add(lags, c, x.p, out.p, T, n);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int k = 0; k < kLags; ++k)
      for (int i = 0; i < n; ++i) {
        for (int t = k; t < T; ++t) want[size_t(k) * n + i] += x[size_t(t) * n + i] * x[size_t(t - k) * n + i];
        want[size_t(k) * n + i] /= T;
      }
    return agree(out.now(), want, 1e-12, 1e-12);
  };
  return j;
});
}  // namespace states_in_arrays
}  // namespace users
