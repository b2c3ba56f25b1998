// written_attentions.cpp - attention as people write it who know another language for tiles: strides and pointers, masks
// of rows and keys, heads padded to a power of two, and nothing said of warps and stages.
#include "tests/users/use.h"
namespace users {
namespace written_attentions {

struct WrittenAttentionCfg {
  int BM = 128, BN = 64, D = 128;
};
WrittenAttentionCfg attention_cfg(Env& e, WrittenAttentionCfg big, WrittenAttentionCfg small) {
  WrittenAttentionCfg c = e.big ? big : small;
  return {e.field("BM", c.BM), e.field("BN", c.BN), c.D};
}

/// One step of softmax(scores) V, exponents of two.
struct Running {
  Tile top, total, acc;
  Running(int rows, int width)
      : top(full({rows}, -INFINITY, f32)), total(zeros({rows}, f32)), acc(zeros({rows, width}, f32)) {}
  void add(const Tile& scores, const Tile& v, DType type) {
    auto now = max(top, squeeze(max(scores, axis(1)), 1));
    auto p = exp2(scores - now.col());
    auto alpha = exp2(top - now);
    total = total * alpha + squeeze(sum(p, axis(1)), 1);
    acc = acc * alpha.col();
    acc = dot(cast(p, type), v, acc);
    top = now;
  }
};

/// Reference: rows of `D` at q(m), k(n), v(n), score(s, m, n) of the scaled product; nothing where it is -inf.
template <class Q, class K, class V, class S>
void attend(std::vector<double>& want, int M, int N, int D, double scale, Q q, K k, V v, S score) {
  for (int m = 0; m < M; ++m) {
    std::vector<double> s(N), out(D);
    double top = -INFINITY, total = 0;
    for (int n = 0; n < N; ++n) {
      double x = 0;
      for (int d = 0; d < D; ++d) x += q(m, d) * k(n, d);
      s[n] = score(x * scale, m, n);
      top = std::max(top, s[n]);
    }
    for (int n = 0; n < N; ++n) {
      const double p = std::exp(s[n] - top);
      total += p;
      for (int d = 0; d < D; ++d) out[d] += p * v(n, d);
    }
    for (int d = 0; d < D; ++d) want.push_back(out[d] / total);
  }
}

// --- heads whose width is no power of two, in tiles that are; causal
auto padded_heads = kernel("user_padded_heads", [](const WrittenAttentionCfg& c, Ptr<const half> q, Ptr<const half> k, Ptr<const half> v,
                                                   Ptr<half> o, F32 scale, I32 Z, I32 H, I32 T, I32 width, I32 zs, I32 hs, I32 ts) {
                      auto z = program_id(1) / H, h = program_id(1) % H;
                      auto base = cast(z, i64) * zs + cast(h, i64) * hs;
                      auto m = program_id(0) * c.BM + arange(0, c.BM), n = arange(0, c.BN), d = arange(0, c.D);
                      auto qs = load(q + base + (m.col() * ts + d.row()), {.mask = (m < T).col() & (d < width).row(), .other = 0});
                      Running r(c.BM, c.D);
                      for (auto i : range(0, min((program_id(0) + 1) * c.BM, T), c.BN)) {
                        auto at = (i + n).col() * ts + d.row();
                        auto in = (i + n < T).col() & (d < width).row();
                        auto ks = load(k + base + at, {.mask = in, .other = 0});
                        auto s = dot(qs, trans(ks)) * (scale * 1.44269504f);
                        s = where(m.col() >= (i + n).row(), s, -INFINITY);
                        r.add(s, load(v + base + at, {.mask = in, .other = 0}), f16);
                      }
                      store(o + base + (m.col() * ts + d.row()), cast(r.acc / r.total.col(), f16), {.mask = (m < T).col() & (d < width).row()});
                    }).grid([](const WrittenAttentionCfg& c, auto, auto, auto, auto, float, int Z, int H, int T, auto...) {
  return Grid{cdiv(T, c.BM), Z * H};
});
Register r1("padded_heads", [](Env& e) {
  const auto c = attention_cfg(e, {}, {64, 32, 64});
  const int W = e.field("D", e.big ? 80 : 48), Z = e.big ? 4 : 1, H = e.big ? 32 : 2, T = e.big ? 4096 : 100;
  auto make = [&] { return random<half>(e, size_t(Z) * H * T * W); };
  auto q = make(), k = make(), v = make(), o = constant<half>(e, size_t(Z) * H * T * W, NAN);
  const float scale = 1 / std::sqrt(float(W));
  Job j;
  j.gflop = 2e-9 * Z * H * double(T) * T * W;
  j.add(padded_heads, c, q.p, k.p, v.p, o.p, scale, Z, H, T, W, H * T * W, T * W, W);
  j.check = [=] {
    std::vector<double> want;
    for (int z = 0; z < Z * H; ++z) {
      const size_t at = size_t(z) * T * W;
      attend(want, T, T, W, scale, matrix(q, W, at), matrix(k, W, at), matrix(v, W, at),
             [](double s, int m, int n) { return m >= n ? s : -INFINITY; });
    }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- images: positions told by a row's and a column's number, each a table beside the queries
auto axis_bias = kernel("user_axis_bias", [](const WrittenAttentionCfg& c, Ptr<const half> q, Ptr<const half> k, Ptr<const half> v,
                                             Ptr<const half> rel_h, Ptr<const half> rel_w, Ptr<half> o, F32 scale, I32, I32 S, I32 W) {
                   // q, k, v [heads, S, D], rel_h [heads, S, S / W], rel_w [heads, S, W]
                   auto z = cast(program_id(1), i64);
                   auto m = program_id(0) * c.BM + arange(0, c.BM), n = arange(0, c.BN), d = arange(0, c.D);
                   auto base = z * S * c.D;
                   auto qs = load(q + base + (m.col() * c.D + d.row()), {.mask = (m < S).col()});
                   Running r(c.BM, c.D);
                   for (auto i : range(0, S, c.BN)) {
                     auto at = (i + n).col() * c.D + d.row();
                     auto ks = load(k + base + at, {.mask = (i + n < S).col()});
                     auto s = dot(qs, trans(ks)) * scale;
                     auto in = (m < S).col() & (i + n < S).row();
                     s += cast(load(rel_h + z * S * (S / W) + (m.col() * (S / W) + (i + n).row() / W), {.mask = in}), f32);
                     s += cast(load(rel_w + z * S * W + (m.col() * W + (i + n).row() % W), {.mask = in}), f32);
                     s = where((i + n < S).row(), s * 1.44269504f, -INFINITY);
                     r.add(s, load(v + base + at, {.mask = (i + n < S).col()}), f16);
                   }
                   store(o + base + (m.col() * c.D + d.row()), cast(r.acc / r.total.col(), f16), {.mask = (m < S).col()});
                 }).grid([](const WrittenAttentionCfg& c, auto, auto, auto, auto, auto, auto, float, int Z, int S, int) {
  return Grid{cdiv(S, c.BM), Z};
});
Register r2("axis_bias", [](Env& e) {
  const auto c = attention_cfg(e, {128, 64, 64}, {64, 32, 32});
  const int Z = e.big ? 64 : 2, W = e.big ? 64 : 8, S = e.big ? 4096 : 80, D = c.D, HH = S / W;
  auto make = [&] { return random<half>(e, size_t(Z) * S * D); };
  auto q = make(), k = make(), v = make(), o = constant<half>(e, size_t(Z) * S * D, NAN);
  auto rh = random<half>(e, size_t(Z) * S * HH), rw = random<half>(e, size_t(Z) * S * W);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * Z * double(S) * S * D;
  j.add(axis_bias, c, q.p, k.p, v.p, rh.p, rw.p, o.p, scale, Z, S, W);
  j.check = [=] {
    std::vector<double> want;
    for (int z = 0; z < Z; ++z) {
      const size_t at = size_t(z) * S * D;
      attend(want, S, S, D, scale, matrix(q, D, at), matrix(k, D, at), matrix(v, D, at), [&](double s, int m, int n) {
        return s + rh[(size_t(z) * S + m) * HH + n / W] + rw[(size_t(z) * S + m) * W + n % W];
      });
    }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- few keys, no power of two, queries, keys and values side by side in one matrix
auto image_tokens = kernel("user_image_tokens", [](const WrittenAttentionCfg& c, Ptr<const bfloat16> qkv, Ptr<bfloat16> o, F32 scale,
                                                   I32, I32 T, I32 H) {
                      // qkv [batch, T, 3, H, D], o [batch, T, H, D]
                      auto z = program_id(1) / H, h = program_id(1) % H;
                      auto row = 3 * H * c.D;
                      auto first = qkv + (cast(z, i64) * T * row + h * c.D);
                      auto m = program_id(0) * c.BM + arange(0, c.BM), n = arange(0, c.BN), d = arange(0, c.D);
                      auto qs = load(first + (m.col() * row + d.row()), {.mask = (m < T).col(), .other = 0});
                      Running r(c.BM, c.D);
                      for (auto i : range(0, T, c.BN)) {
                        auto at = (i + n).col() * row + d.row();
                        auto ks = load(first + (H * c.D + at), {.mask = (i + n < T).col(), .other = 0});
                        auto vs = load(first + (2 * H * c.D + at), {.mask = (i + n < T).col(), .other = 0});
                        auto s = where((i + n < T).row(), dot(qs, trans(ks)) * (scale * 1.44269504f), -INFINITY);
                        r.add(s, vs, bf16);
                      }
                      store(o + (cast(z, i64) * T * H * c.D + (m.col() * (H * c.D) + h * c.D + d.row())), cast(r.acc / r.total.col(), bf16),
                            {.mask = (m < T).col()});
                    }).grid([](const WrittenAttentionCfg& c, auto, auto, float, int Z, int T, int H) {
  return Grid{cdiv(T, c.BM), Z * H};
});
Register r3("image_tokens", [](Env& e) {
  const auto c = attention_cfg(e, {64, 64, 64}, {64, 32, 32});
  const int Z = e.big ? 128 : 2, T = e.field("T", e.big ? 197 : 77), H = e.big ? 12 : 2, D = c.D;
  auto qkv = random<bfloat16>(e, size_t(Z) * T * 3 * H * D), o = constant<bfloat16>(e, size_t(Z) * T * H * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * Z * H * double(T) * T * D;
  j.add(image_tokens, c, qkv.p, o.p, scale, Z, T, H);
  j.check = [=] {
    std::vector<double> want(o.n);
    for (int z = 0; z < Z; ++z)
      for (int h = 0; h < H; ++h) {
        auto part = [&](int which) {
          return [=, &qkv](int t, int d) { return qkv[((size_t(z) * T + t) * 3 + which) * H * D + h * D + d]; };
        };
        std::vector<double> one;
        attend(one, T, T, D, scale, part(0), part(1), part(2), [](double s, int, int) { return s; });
        for (int t = 0; t < T; ++t)
          for (int d = 0; d < D; ++d) want[((size_t(z) * T + t) * H + h) * D + d] = one[t * D + d];
      }
    return agree(o.now(), want, 2e-2, 2e-2);
  };
  return j;
});

// --- gradients of keys and values that several heads of queries share; then those of the queries
auto shared_keys_dkdv = kernel("user_shared_keys_dkdv", [](const WrittenAttentionCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k,
                                                           Ptr<const bfloat16> v, Ptr<const bfloat16> dout, Ptr<const float> lse,
                                                           Ptr<const float> delta, Ptr<bfloat16> dk, Ptr<bfloat16> dv, F32 scale, I32,
                                                           I32 HK, I32 group, I32 T) {
                          // q, dout [Z, HK * group, T, D], k, v, dk, dv [Z, HK, T, D]; causal
                          auto zk = program_id(1);
                          auto n = program_id(0) * c.BN + arange(0, c.BN), d = arange(0, c.D);
                          auto at = n.col() * c.D + d.row();
                          auto kbase = cast(zk, i64) * T * c.D;
                          auto ks = load(k + kbase + at, {.mask = (n < T).col(), .other = 0});
                          auto vs = load(v + kbase + at, {.mask = (n < T).col(), .other = 0});
                          Tile dks = zeros({c.BN, c.D}, f32), dvs = zeros({c.BN, c.D}, f32);
                          for (auto g : range(0, group)) {
                            auto head = cast(zk * group + g, i64);
                            for (auto i : range(program_id(0) * c.BN, T, c.BM)) {
                              auto m = i + arange(0, c.BM);
                              auto rows = m.col() * c.D + d.row();
                              auto qs = load(q + head * T * c.D + rows, {.mask = (m < T).col(), .other = 0});
                              auto ds = load(dout + head * T * c.D + rows, {.mask = (m < T).col(), .other = 0});
                              auto l = load(lse + head * T + m, {.mask = m < T, .other = 0});
                              auto delta_ = load(delta + head * T + m, {.mask = m < T, .other = 0});
                              auto st = dot(ks, trans(qs)) * (scale * 1.44269504f);
                              auto pt = where((n.col() <= m.row()) & (m < T).row(), exp2(st - l.row() * 1.44269504f), 0.f);
                              dvs = dot(cast(pt, bf16), ds, dvs);
                              auto dpt = dot(vs, trans(ds));
                              auto dst = pt * (dpt - delta_.row());
                              dks = dot(cast(dst, bf16), qs, dks);
                            }
                          }
                          store(dk + kbase + at, cast(dks * scale, bf16), {.mask = (n < T).col()});
                          store(dv + kbase + at, cast(dvs, bf16), {.mask = (n < T).col()});
                        }).grid([](const WrittenAttentionCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, float, int Z, int HK, int,
                                   int T) { return Grid{cdiv(T, c.BN), Z * HK}; });
Register r4("shared_keys_dkdv", [](Env& e) {
  const auto c = attention_cfg(e, {64, 64, 128}, {32, 64, 32});
  const int Z = e.big ? 2 : 1, HK = e.big ? 8 : 2, G = e.big ? 4 : 3, T = e.big ? 4096 : 80, D = c.D;
  auto queries = [&] { return random<bfloat16>(e, size_t(Z) * HK * G * T * D); };
  auto q = queries(), dout = queries();
  auto k = random<bfloat16>(e, size_t(Z) * HK * T * D), v = random<bfloat16>(e, size_t(Z) * HK * T * D);
  auto dk = constant<bfloat16>(e, k.n, NAN), dv = constant<bfloat16>(e, k.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  std::vector<float> ls, deltas;
  if (!e.big && e.device)
    for (int h = 0; h < Z * HK * G; ++h)
      for (int m = 0; m < T; ++m) {
        double top = 0, delta = 0;
        std::vector<double> s(m + 1), w(m + 1);
        for (int n = 0; n <= m; ++n)
          for (int d = 0; d < D; ++d) {
            s[n] += q[(size_t(h) * T + m) * D + d] * k[(size_t(h / G) * T + n) * D + d] * scale;
            w[n] += dout[(size_t(h) * T + m) * D + d] * v[(size_t(h / G) * T + n) * D + d];
          }
        for (double x : s) top += std::exp(x);
        for (int n = 0; n <= m; ++n) delta += std::exp(s[n]) / top * w[n];
        ls.push_back(float(std::log(top))), deltas.push_back(float(delta));
      }
  else ls = deltas = {1.f};
  auto lse = repeated<float>(e, size_t(Z) * HK * G * T, ls), delta = repeated<float>(e, size_t(Z) * HK * G * T, deltas);
  Job j;
  j.gflop = 4e-9 * Z * HK * G * double(T) * T * D;
  j.add(shared_keys_dkdv, c, q.p, k.p, v.p, dout.p, lse.p, delta.p, dk.p, dv.p, scale, Z, HK, G, T);
  j.check = [=] {
    std::vector<double> wk(k.n), wv(k.n);
    for (int h = 0; h < Z * HK * G; ++h)
      for (int m = 0; m < T; ++m)
        for (int n = 0; n <= m; ++n) {
          const size_t qa = (size_t(h) * T + m) * D, ka = (size_t(h / G) * T + n) * D;
          double s = 0, dp = 0;
          for (int d = 0; d < D; ++d) s += q[qa + d] * k[ka + d], dp += dout[qa + d] * v[ka + d];
          const double p = std::exp(s * scale - lse[size_t(h) * T + m]), ds = p * (dp - delta[size_t(h) * T + m]) * scale;
          for (int d = 0; d < D; ++d) wv[ka + d] += p * dout[qa + d], wk[ka + d] += ds * q[qa + d];
        }
    const auto wrong = agree(dk.now(), wk, 2e-2, 2e-2);
    return wrong.empty() ? agree(dv.now(), wv, 2e-2, 2e-2) : "dk: " + wrong;
  };
  return j;
});

// --- a token's queries, many keys in parts; then the parts together
auto key_parts = kernel("user_key_parts", [](const WrittenAttentionCfg& c, Ptr<const half> q, Ptr<const half> k, Ptr<const half> v,
                                             Ptr<float> part, Ptr<float> tops, F32 scale, I32, I32 HK, I32 group, I32 S, I32 span) {
                   // q [Z, HK * group, D], k, v [Z, S, HK, D], part [parts, Z * HK * group, D], tops [2, parts, Z * HK * group]
                   auto zh = program_id(0), s = program_id(1);
                   auto z = zh / HK, h = zh % HK;
                   auto g = arange(0, c.BM), n = arange(0, c.BN), d = arange(0, c.D);
                   auto qs = load(q + (zh * group + g).col() * c.D + d.row(), {.mask = (g < group).col(), .other = 0});
                   auto row = HK * c.D;
                   auto base = cast(z, i64) * S * row + h * c.D;
                   Running r(c.BM, c.D);
                   auto end = min(S, (s + 1) * span);
                   for (auto i : range(s * span, end, c.BN)) {
                     auto at = (i + n).col() * row + d.row();
                     auto ks = load(k + base + at, {.mask = (i + n < end).col(), .other = 0});
                     auto vs = load(v + base + at, {.mask = (i + n < end).col(), .other = 0});
                     auto x = where((i + n < end).row(), dot(qs, trans(ks)) * (scale * 1.44269504f), -INFINITY);
                     r.add(x, vs, f16);
                   }
                   auto all = num_programs(0) * group;
                   auto to = s * all + zh * group + g;
                   store(part + (to.col() * c.D + d.row()), r.acc / r.total.col(), {.mask = (g < group).col()});
                   store(tops + to, r.top + log2(r.total), {.mask = g < group});
                 }).grid([](const WrittenAttentionCfg&, auto, auto, auto, auto, auto, float, int Z, int HK, int, int S, int span) {
  return Grid{Z * HK, cdiv(S, span)};
});
auto key_parts_sum = kernel("user_key_parts_sum", [](const WrittenAttentionCfg& c, Ptr<const float> part, Ptr<const float> tops, Ptr<half> o,
                                                     I32 all, I32 parts) {
                       auto row = program_id(0);
                       auto d = arange(0, c.D);
                       Tile top = full({1}, -INFINITY, f32), total = zeros({1}, f32), acc = zeros({c.D}, f32);
                       for (auto s : range(0, parts)) {
                         auto l = load(tops + (s * all + row) + arange(0, 1));
                         auto now = max(top, l);
                         auto before = exp2(top - now), weight = exp2(l - now);
                         acc = acc * before + weight * load(part + ((s * all + row) * c.D + d));
                         total = total * before + weight;
                         top = now;
                       }
                       store(o + (row * c.D + d), cast(acc / total, f16));
                     }).grid([](const WrittenAttentionCfg&, auto, auto, auto, int all, int) { return Grid{all}; });
Register r5("key_parts", [](Env& e) {
  const auto c = attention_cfg(e, {16, 64, 128}, {16, 32, 32});
  const int Z = e.big ? 16 : 2, HK = e.big ? 8 : 2, G = e.big ? 8 : 3, S = e.big ? 16384 : 200, D = c.D;
  const int span = e.field("span", e.big ? 4096 : 64), parts = cdiv(S, span), all = Z * HK * G;
  auto q = random<half>(e, size_t(all) * D), k = random<half>(e, size_t(Z) * S * HK * D), v = random<half>(e, k.n);
  auto o = constant<half>(e, q.n, NAN);
  auto part = constant<float>(e, size_t(parts) * all * D, NAN), tops = constant<float>(e, size_t(parts) * all, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 4e-6 * k.n;
  j.add(key_parts, c, q.p, k.p, v.p, part.p, tops.p, scale, Z, HK, G, S, span);
  j.add(key_parts_sum, c, part.p, tops.p, o.p, all, parts);
  j.check = [=] {
    std::vector<double> want;
    for (int zh = 0; zh < Z * HK; ++zh) {
      auto row = [&](const Array<half>& a) {
        return [=, &a](int n, int d) { return a[((size_t(zh / HK) * S + n) * HK + zh % HK) * D + d]; };
      };
      attend(want, G, S, D, scale, matrix(q, D, size_t(zh) * G * D), row(k), row(v), [](double s, int, int) { return s; });
    }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- floats through tensor cores, slopes of heads, one head of keys and values for all queries
auto slopes_floats = kernel("user_slopes_floats", [](const WrittenAttentionCfg& c, Ptr<const float> q, Ptr<const float> k, Ptr<const float> v,
                                                     Ptr<const float> slopes, Ptr<float> o, F32 scale, I32, I32 H, I32 T) {
                       auto z = program_id(1) / H, h = program_id(1) % H;
                       auto m = program_id(0) * c.BM + arange(0, c.BM), n = arange(0, c.BN), d = arange(0, c.D);
                       auto qbase = cast(program_id(1), i64) * T * c.D, kbase = cast(z, i64) * T * c.D;
                       auto qs = load(q + qbase + (m.col() * c.D + d.row()), {.mask = (m < T).col(), .other = 0});
                       auto slope = load(slopes + h) * 1.44269504f;
                       Running r(c.BM, c.D);
                       for (auto i : range(0, min((program_id(0) + 1) * c.BM, T), c.BN)) {
                         auto at = (i + n).col() * c.D + d.row();
                         auto ks = load(k + kbase + at, {.mask = (i + n < T).col(), .other = 0});
                         auto vs = load(v + kbase + at, {.mask = (i + n < T).col(), .other = 0});
                         auto s = dot(qs, trans(ks), zeros({c.BM, c.BN}, f32), Prec::tf32) * (scale * 1.44269504f);
                         s += slope * cast((i + n).row() - m.col(), f32);
                         s = where(m.col() >= (i + n).row(), s, -INFINITY);
                         auto now = max(r.top, squeeze(max(s, axis(1)), 1));
                         auto p = exp2(s - now.col()), alpha = exp2(r.top - now);
                         r.total = r.total * alpha + squeeze(sum(p, axis(1)), 1);
                         r.acc = dot(p, vs, r.acc * alpha.col(), Prec::tf32);
                         r.top = now;
                       }
                       store(o + qbase + (m.col() * c.D + d.row()), r.acc / r.total.col(), {.mask = (m < T).col()});
                     }).grid([](const WrittenAttentionCfg& c, auto, auto, auto, auto, auto, float, int Z, int H, int T) {
  return Grid{cdiv(T, c.BM), Z * H};
});
Register r6("slopes_floats", [](Env& e) {
  const auto c = attention_cfg(e, {64, 64, 64}, {64, 32, 32});
  const int Z = e.big ? 4 : 1, H = e.big ? 16 : 3, T = e.big ? 2048 : 80, D = c.D;
  auto q = random<float>(e, size_t(Z) * H * T * D), k = random<float>(e, size_t(Z) * T * D), v = random<float>(e, size_t(Z) * T * D);
  auto slopes = filled<float>(e, H, [&](size_t h) { return float(std::exp2(-8. * double(h + 1) / H)); });
  auto o = constant<float>(e, q.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * Z * H * double(T) * T * D;
  j.add(slopes_floats, c, q.p, k.p, v.p, slopes.p, o.p, scale, Z, H, T);
  j.check = [=] {
    std::vector<double> want;
    for (int zh = 0; zh < Z * H; ++zh) {
      const size_t at = size_t(zh / H) * T * D;
      attend(want, T, T, D, scale, matrix(q, D, size_t(zh) * T * D), matrix(k, D, at), matrix(v, D, at),
             [&](double s, int m, int n) { return m >= n ? s + slopes[zh % H] * (n - m) : -INFINITY; });
    }
    return agree(o.now(), want, 5e-3, 5e-3);
  };
  return j;
});

}  // namespace written_attentions
}  // namespace users
