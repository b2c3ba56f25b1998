// decoder_layer.cpp - a layer of a decoder for one step of many sequences, of kernels that hand buffers to each other:
// norm, heads with rope into pages of the cache, attention in parts, a product with a residual, SwiGLU of 4-bit weights.
// One source for f16 and bf16.
#include "tests/users/use.h"
namespace users {
namespace decoder_layer {

struct LayerCfg {
  int BM = 64, BN = 128, BK = 64, D = 128, G = 128;
};

template <class T>
auto dec_norm = kernel("user_dec_norm", [](const LayerCfg&, Ptr<const T> x, Ptr<const T> w, Ptr<T> y, I32, I32 n) {
                  constexpr int B = 1024;
                  auto row = program_id(0);
                  Tile squares = zeros({B}, f32);
                  for (auto j : range(0, n, B)) {
                    auto i = j + arange(0, B);
                    auto v = cast(load(x + row * n + i, {.mask = i < n}), f32);
                    squares += v * v;
                  }
                  auto scale = rsqrt(sum(squares) / cast(n, f32) + 1e-5f);
                  for (auto j : range(0, n, B)) {
                    auto i = j + arange(0, B);
                    auto v = cast(load(x + row * n + i, {.mask = i < n}), f32);
                    auto by = cast(load(w + i, {.mask = i < n}), f32);
                    store(y + row * n + i, cast(v * scale * by, dtype_of<T>()), {.mask = i < n});
                  }
                }).grid([](const LayerCfg&, auto, auto, auto, int rows, int) { return Grid{rows}; });

// A program a head of some tokens: query heads are turned and kept, key heads turned and put into their page, values put.
template <class T>
auto dec_heads =
    kernel("user_dec_heads", [](const LayerCfg& c, Ptr<const T> x, Ptr<const T> w, Ptr<const float> turns, Ptr<const int32_t> slots,
                                Ptr<T> q, Ptr<T> keys, Ptr<T> values, I32 n, I32 K, I32 HQ, I32 HK) {
      auto m = program_id(1) * c.BM + arange(0, c.BM), h = program_id(0), d = arange(0, c.D), half_d = arange(0, c.D / 2);
      Tile acc = zeros({c.BM, c.D}, f32);
      for (auto i : range(0, K, c.BK)) {
        auto k = i + arange(0, c.BK);
        auto xs = load(x + m.col() * K + k.row(), {.mask = (m < n).col() & (k < K).row()});
        auto ws = load(w + (h * c.D + d).row() * K + k.col(), {.mask = (k < K).col()});
        acc = dot(xs, ws, acc);
      }
      auto in = (m < n).col();
      // turns [n, D]: cosines, then sines of a token's place
      auto cosine = load(turns + m.col() * c.D + half_d.row(), {.mask = in});
      auto sine = load(turns + m.col() * c.D + c.D / 2 + half_d.row(), {.mask = in});
      auto a = extract(acc, {0, 0}, {c.BM, c.D / 2}), b = extract(acc, {0, c.D / 2}, {c.BM, c.D / 2});
      auto turned = cast(cat(a * cosine - b * sine, b * cosine + a * sine, 1), dtype_of<T>());
      auto slot = cast(load(slots + m, {.mask = m < n}), i64).col();
      if_(h < HQ, [&] { store(q + (m.col() * HQ + h) * c.D + d.row(), turned, {.mask = in}); },
          [&] {
            if_(h < HQ + HK, [&] { store(keys + (slot * HK + (h - HQ)) * c.D + d.row(), turned, {.mask = in}); },
                [&] { store(values + (slot * HK + (h - HQ - HK)) * c.D + d.row(), cast(acc, dtype_of<T>()), {.mask = in}); });
          });
    }).grid([](const LayerCfg& c, auto, auto, auto, auto, auto, auto, auto, int n, int, int HQ, int HK) {
      return Grid{HQ + 2 * HK, cdiv(n, c.BM)};
    });

template <class T>
auto dec_attend = kernel("user_dec_attend", [](const LayerCfg& c, Ptr<const T> q, Ptr<const T> keys, Ptr<const T> values,
                                               Ptr<const int32_t> table, Ptr<const int32_t> lengths, Ptr<float> parts,
                                               Ptr<float> logs, I32 pages, I32 HQ, I32 HK, I32, I32 P) {
                    constexpr int H = 16, page = 16;
                    auto b = program_id(0), g = program_id(1), part = program_id(2);
                    auto length = load(lengths + b);
                    auto each = cdiv(cdiv(length, P), page) * page, first = part * each, end = min(first + each, length);
                    auto group = HQ / HK;
                    auto h = arange(0, H), d = arange(0, c.D);
                    auto head = g * group + h;
                    auto qs = load(q + (b * HQ + head).col() * c.D + d.row(), {.mask = (h < group).col()});
                    Tile most = full({H, 1}, -INFINITY, f32), total = zeros({H, 1}, f32), acc = zeros({H, c.D}, f32);
                    for (auto i : range(first, end, c.BK)) {
                      auto n = i + arange(0, c.BK);
                      auto in = n < end;
                      auto at = cast(load(table + b * pages + n / page, {.mask = in}), i64) * page + n % page;
                      auto row = (at * HK + g) * c.D;
                      auto k = load(keys + (row.row() + d.col()), {.mask = in.row()});
                      auto s = where(in.row(), dot(qs, k) * float(M_LOG2E / std::sqrt(double(c.D))), -INFINITY);
                      auto now = max(most, max(s, axis(1)));
                      auto p = exp2(s - now), again = exp2(most - now);
                      total = total * again + sum(p, axis(1));
                      auto v = load(values + (row.col() + d.row()), {.mask = in.col()});
                      acc = dot(cast(p, dtype_of<T>()), v, acc * again);
                      most = now;
                    }
                    auto to = (b * HQ + head) * P + part;
                    store(parts + to.col() * c.D + d.row(), acc / max(total, 1e-30f), {.mask = (h < group).col()});
                    store(logs + to, squeeze(where(total > 0, most + log2(total), -INFINITY), 1), {.mask = h < group});
                  }).grid([](const LayerCfg&, auto, auto, auto, auto, auto, auto, auto, int, int, int HK, int B, int P) {
  return Grid{B, HK, P};
});
template <class T>
auto dec_combine = kernel("user_dec_combine", [](const LayerCfg& c, Ptr<const float> parts, Ptr<const float> logs, Ptr<T> o, I32, I32 P) {
                     constexpr int most = 16;
                     auto row = program_id(0), p = arange(0, most), d = arange(0, c.D);
                     auto l = load(logs + row * P + p, {.mask = p < P, .other = -INFINITY});
                     auto w = exp2(l - max(l));
                     auto x = load(parts + (row * P + p).col() * c.D + d.row(), {.mask = (p < P).col()});
                     store(o + row * c.D + d, cast(squeeze(sum(x * w.col(), axis(0)), 0) / sum(w), dtype_of<T>()));
                   }).grid([](const LayerCfg&, auto, auto, auto, int rows, int) { return Grid{rows}; });

template <class T>
auto dec_out = kernel("user_dec_out", [](const LayerCfg& c, Ptr<const T> x, Ptr<const T> w, Ptr<const T> before, Ptr<T> y, I32 n,
                                         I32 N, I32 K) {
                 auto m = program_id(1) * c.BM + arange(0, c.BM), j = program_id(0) * c.BN + arange(0, c.BN);
                 Tile acc = zeros({c.BM, c.BN}, f32);
                 for (auto i : range(0, K, c.BK)) {
                   auto k = i + arange(0, c.BK);
                   auto xs = load(x + m.col() * K + k.row(), {.mask = (m < n).col() & (k < K).row()});
                   auto ws = load(w + j.row() * K + k.col(), {.mask = (j < N).row() & (k < K).col()});
                   acc = dot(xs, ws, acc);
                 }
                 auto in = (m < n).col() & (j < N).row();
                 acc += cast(load(before + m.col() * N + j.row(), {.mask = in}), f32);
                 store(y + m.col() * N + j.row(), cast(acc, dtype_of<T>()), {.mask = in});
               }).grid([](const LayerCfg& c, auto, auto, auto, auto, int n, int N, int) { return Grid{cdiv(N, c.BN), cdiv(n, c.BM)}; });

// Rows of weights: two numbers of 4 bits in a byte (the even column low), 8 more than they are; a factor per G columns.
template <class T>
Tile four_bits(const LayerCfg& c, const Ptr<const uint8_t>& w, const Ptr<const T>& scales, const Tile& j, const Tile& i, const I32& N, const I32& K) {
  auto two = load(w + j.col() * (K / 2) + (i / 2 + arange(0, c.BK / 2)).row(), {.mask = (j < N).col()});
  auto numbers = reshape(join(cast(two & 15, i8), cast(two >> 4, i8)), {c.BN, c.BK});
  auto s = load(scales + j * (K / c.G) + i / c.G, {.mask = j < N});
  return trans(cast(numbers - 8, dtype_of<T>()) * s.col());
}
template <class T>
auto dec_gate_up = kernel("user_dec_gate_up", [](const LayerCfg& c, Ptr<const T> x, Ptr<const uint8_t> gate, Ptr<const T> gate_scales,
                                                 Ptr<const uint8_t> up, Ptr<const T> up_scales, Ptr<T> y, I32 n, I32 N, I32 K) {
                     auto m = program_id(1) * c.BM + arange(0, c.BM), j = program_id(0) * c.BN + arange(0, c.BN);
                     Tile g = zeros({c.BM, c.BN}, f32), u = zeros({c.BM, c.BN}, f32);
                     for (auto i : range(0, K, c.BK)) {
                       auto xs = load(x + m.col() * K + (i + arange(0, c.BK)).row(), {.mask = (m < n).col()});
                       g = dot(xs, four_bits<T>(c, gate, gate_scales, j, i, N, K), g);
                       u = dot(xs, four_bits<T>(c, up, up_scales, j, i, N, K), u);
                     }
                     store(y + m.col() * N + j.row(), cast(silu(g) * u, dtype_of<T>()), {.mask = (m < n).col() & (j < N).row()});
                   }).grid([](const LayerCfg& c, auto, auto, auto, auto, auto, auto, int n, int N, int) {
  return Grid{cdiv(N, c.BN), cdiv(n, c.BM)};
});
template <class T>
auto dec_down = kernel("user_dec_down", [](const LayerCfg& c, Ptr<const T> x, Ptr<const uint8_t> w, Ptr<const T> scales,
                                           Ptr<const T> before, Ptr<T> y, I32 n, I32 N, I32 K) {
                  auto m = program_id(1) * c.BM + arange(0, c.BM), j = program_id(0) * c.BN + arange(0, c.BN);
                  Tile acc = zeros({c.BM, c.BN}, f32);
                  for (auto i : range(0, K, c.BK)) {
                    auto xs = load(x + m.col() * K + (i + arange(0, c.BK)).row(), {.mask = (m < n).col()});
                    acc = dot(xs, four_bits<T>(c, w, scales, j, i, N, K), acc);
                  }
                  auto in = (m < n).col() & (j < N).row();
                  acc += cast(load(before + m.col() * N + j.row(), {.mask = in}), f32);
                  store(y + m.col() * N + j.row(), cast(acc, dtype_of<T>()), {.mask = in});
                }).grid([](const LayerCfg& c, auto, auto, auto, auto, auto, int n, int N, int) {
  return Grid{cdiv(N, c.BN), cdiv(n, c.BM)};
});

template <class T>
Job layer(Env& e) {
  LayerCfg c;
  if (!e.big) c = {16, 32, 32, 32, 32};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int n = e.big ? 64 : 5, HQ = e.big ? 32 : 4, HK = e.big ? 8 : 2, D = c.D, E = HQ * D, F = e.big ? 14336 : 96, G = c.G;
  const int longest = e.big ? 4096 : 80, pages = longest / 16, P = e.big ? 8 : 2;
  auto x = random<T>(e, size_t(n) * E), w1 = random<T>(e, E, .5, 1.5), w2 = random<T>(e, E, .5, 1.5);
  auto wqkv = random<T>(e, size_t(HQ + 2 * HK) * D * E, -.1, .1), wo = random<T>(e, size_t(E) * E, -.1, .1);
  auto lengths = filled<int32_t>(e, n, [&](size_t b) { return longest - int(b) * 13; });
  auto table = filled<int32_t>(e, n * pages, [&](size_t i) { return int((i * 7 + 3) % (n * pages)); });  // 7 divides no n * pages
  auto slots = filled<int32_t>(e, n, [&](size_t b) {
    const int last = longest - int(b) * 13 - 1;
    return int(((b * pages + last / 16) * 7 + 3) % (n * pages)) * 16 + last % 16;
  });
  auto turns = filled<float>(e, n * D, [&](size_t i) {
    const double angle = (longest - double(i / D) * 13 - 1) * std::pow(1e4, -double(i % D % (D / 2)) / (D / 2));
    return float(i % D < size_t(D / 2) ? std::cos(angle) : std::sin(angle));
  });
  auto keys = random<T>(e, size_t(n) * longest * HK * D), values = random<T>(e, size_t(n) * longest * HK * D);
  auto gate = integers<uint8_t>(e, size_t(F) * (E / 2), 0, 256), up = integers<uint8_t>(e, size_t(F) * (E / 2), 0, 256), down = integers<uint8_t>(e, size_t(E) * (F / 2), 0, 256);
  auto gs = random<T>(e, size_t(F) * (E / G), .001, .02), us = random<T>(e, size_t(F) * (E / G), .001, .02), ds = random<T>(e, size_t(E) * (F / G), .001, .02);
  auto norm1 = constant<T>(e, x.n, NAN), q = constant<T>(e, x.n, NAN), o = constant<T>(e, x.n, NAN), mid = constant<T>(e, x.n, NAN), norm2 = constant<T>(e, x.n, NAN), y = constant<T>(e, x.n, NAN), hidden = constant<T>(e, size_t(n) * F, NAN);
  auto parts = constant<float>(e, size_t(n) * E * P, NAN), logs = constant<float>(e, size_t(n) * HQ * P, NAN);
  Job j;
  j.add(dec_norm<T>, c, x.p, w1.p, norm1.p, n, E);
  j.add(dec_heads<T>, c, norm1.p, wqkv.p, turns.p, slots.p, q.p, keys.p, values.p, n, E, HQ, HK);
  j.add(dec_attend<T>, c, q.p, keys.p, values.p, table.p, lengths.p, parts.p, logs.p, pages, HQ, HK, n, P);
  j.add(dec_combine<T>, c, parts.p, logs.p, o.p, n * HQ, P);
  j.add(dec_out<T>, c, o.p, wo.p, x.p, mid.p, n, E, E);
  j.add(dec_norm<T>, c, mid.p, w2.p, norm2.p, n, E);
  j.add(dec_gate_up<T>, c, norm2.p, gate.p, gs.p, up.p, us.p, hidden.p, n, F, E);
  j.add(dec_down<T>, c, hidden.p, down.p, ds.p, mid.p, y.p, n, E, F);
  j.check = [=] {
    const double tight = std::is_same_v<T, half> ? 3e-3 : 2e-2;  // every step from what the one before left
    auto numbers = [](const auto& a) {
      auto v = a.now();
      std::vector<double> all;
      for (auto t : v) all.push_back(static_cast<double>(static_cast<float>(t)));
      return all;
    };
    auto norm_of = [&](const std::vector<double>& v, const Array<T>& w) {
      std::vector<double> r(v.size());
      for (int b = 0; b < n; ++b) {
        double s = 0;
        for (int i = 0; i < E; ++i) s += v[b * E + i] * v[b * E + i];
        for (int i = 0; i < E; ++i) r[b * E + i] = v[b * E + i] / std::sqrt(s / E + 1e-5) * w[i];
      }
      return r;
    };
    std::vector<double> xs(x.n);
    for (size_t i = 0; i < x.n; ++i) xs[i] = x[i];
    if (auto bad = agree(norm1.now(), norm_of(xs, w1), tight, tight); !bad.empty()) return "norm: " + bad;
    const auto in = numbers(norm1);
    auto heads = product(n, (HQ + 2 * HK) * D, E, [&](int b, int k) { return in[b * E + k]; }, [&](int k, int i) { return wqkv[size_t(i) * E + k]; });
    auto turned = heads;
    const int all = (HQ + 2 * HK) * D;
    for (int b = 0; b < n; ++b)
      for (int i = 0; i < (HQ + HK) * D; ++i) {
        const int d = i % D, f = d % (D / 2), other = d < D / 2 ? i + D / 2 : i - D / 2;
        turned[b * all + i] = heads[b * all + i] * turns[b * D + f] + (d < D / 2 ? -1 : 1) * heads[b * all + other] * turns[b * D + D / 2 + f];
      }
    std::vector<double> wq, wk(keys.n), wv(values.n);
    for (size_t i = 0; i < keys.n; ++i) wk[i] = keys[i], wv[i] = values[i];
    for (int b = 0; b < n; ++b) {
      for (int i = 0; i < E; ++i) wq.push_back(turned[b * all + i]);
      for (int i = 0; i < HK * D; ++i) {
        wk[size_t(slots.h[b]) * HK * D + i] = turned[b * all + E + i];
        wv[size_t(slots.h[b]) * HK * D + i] = turned[b * all + E + HK * D + i];
      }
    }
    if (auto bad = agree(q.now(), wq, tight, tight); !bad.empty()) return "queries: " + bad;
    if (auto bad = agree(keys.now(), wk, tight, tight); !bad.empty()) return "keys: " + bad;
    if (auto bad = agree(values.now(), wv, tight, tight); !bad.empty()) return "values: " + bad;
    const auto qn = numbers(q), kn = numbers(keys), vn = numbers(values);
    std::vector<double> wo_(x.n);
    for (int b = 0; b < n; ++b)
      for (int h = 0; h < HQ; ++h) {
        std::vector<double> s(lengths.h[b]);
        double most = -1e30, sum = 0;
        auto at = [&](int t) { return (size_t(table.h[b * pages + t / 16]) * 16 + t % 16) * HK * D + h / (HQ / HK) * D; };
        for (int t = 0; t < lengths.h[b]; ++t) {
          for (int d = 0; d < D; ++d) s[t] += qn[b * E + h * D + d] * kn[at(t) + d] / std::sqrt(double(D));
          most = std::max(most, s[t]);
        }
        for (double& v : s) sum += v = std::exp(v - most);
        for (int t = 0; t < lengths.h[b]; ++t)
          for (int d = 0; d < D; ++d) wo_[b * E + h * D + d] += s[t] / sum * vn[at(t) + d];
      }
    if (auto bad = agree(o.now(), wo_, tight, tight); !bad.empty()) return "attention: " + bad;
    const auto on = numbers(o);
    if (auto bad = agree(mid.now(), product(n, E, E, [&](int b, int k) { return on[b * E + k]; }, [&](int k, int i) { return wo[size_t(i) * E + k]; },
                                            [&](double s, int b, int i) { return s + x[b * E + i]; }), tight, tight); !bad.empty()) return "output: " + bad;
    const auto mn = numbers(mid);
    if (auto bad = agree(norm2.now(), norm_of(mn, w2), tight, tight); !bad.empty()) return "second norm: " + bad;
    const auto nn = numbers(norm2);
    auto weight = [&](const Array<uint8_t>& w, const Array<T>& s, int K) {
      return [&w, &s, K, G](int k, int i) { return ((w.h[(size_t(i) * K + k) / 2] >> k % 2 * 4 & 15) - 8) * s[size_t(i) * (K / G) + k / G]; };
    };
    auto a = [&](int b, int k) { return nn[b * E + k]; };
    auto gates = product(n, F, E, a, weight(gate, gs, E)), ups = product(n, F, E, a, weight(up, us, E));
    for (size_t i = 0; i < gates.size(); ++i) gates[i] *= ups[i] / (1 + std::exp(-gates[i]));
    if (auto bad = agree(hidden.now(), gates, 2 * tight, 2 * tight); !bad.empty()) return "gate: " + bad;
    const auto hn = numbers(hidden);
    return agree(y.now(), product(n, E, F, [&](int b, int k) { return hn[size_t(b) * F + k]; }, weight(down, ds, F),
                                  [&](double s, int b, int i) { return s + mn[b * E + i]; }), 2 * tight, 2 * tight);
  };
  return j;
}
Register r1("decoder", layer<half>);
Register r2("decoder_bf16", layer<bfloat16>);

}  // namespace decoder_layer
}  // namespace users
