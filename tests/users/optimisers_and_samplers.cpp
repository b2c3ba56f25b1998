// optimisers_and_samplers.cpp - losses, optimisers and samplers, as people write them who come from Triton.
#include "tests/users/use.h"
namespace users {
namespace optimisers_and_samplers {

struct RoCfg {
  int BLOCK = 1024, warps = 4;
};
RoCfg ro(Env& e, RoCfg big, RoCfg small) {
  RoCfg c = e.big ? big : small;
  return {e.field("BLOCK", c.BLOCK), e.field("warps", c.warps)};
}

// --- Prodigy: the step length is learned: two sums over all parameters by atomics, then the step
auto prodigy_sums =
    kernel("user_prodigy_sums", [](const RoCfg& c, Ptr<const bfloat16> g, Ptr<const bfloat16> p, Ptr<const bfloat16> p0,
                                   Ptr<float> s, Ptr<float> m, Ptr<float> v, Ptr<const float> d, Ptr<double> sums,
                                   F32 b1, F32 b2, F32 b3, F32 lr, I64 n) {
      num_warps(c.warps);
      auto dd = load(d);
      auto i = cast(program_id(0), i64) * c.BLOCK + arange(0, c.BLOCK);
      auto in = i < n;
      auto gg = cast(load(g + i, {.mask = in}), f32);
      auto diff = cast(load(p0 + i, {.mask = in}), f32) - cast(load(p + i, {.mask = in}), f32);
      atomic_add(sums, sum(cast(gg * diff, f64)));
      auto ns = load(s + i, {.mask = in}) * b3 + dd * lr * gg;
      store(s + i, ns, {.mask = in});
      store(m + i, load(m + i, {.mask = in}) * b1 + (1 - b1) * dd * gg, {.mask = in});
      store(v + i, load(v + i, {.mask = in}) * b2 + (1 - b2) * dd * dd * gg * gg, {.mask = in});
      atomic_add(sums + 1, sum(cast(abs(ns), f64)));
    }).grid([](const RoCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, float, float, float, float, int64_t n) {
      return Grid{cdiv(n, c.BLOCK)};
    });
auto prodigy_step =
    kernel("user_prodigy_step", [](const RoCfg& c, Ptr<bfloat16> p, Ptr<const float> m, Ptr<const float> v,
                                   Ptr<const float> d, Ptr<const double> sums, Ptr<float> next, F32 lr, F32 eps,
                                   I64 seed, I64 n) {
      num_warps(c.warps);
      auto dd = load(d);
      auto hat = load(sums) * cast(lr, f64) * cast(dd, f64) / (load(sums + 1) + 1e-30);
      auto nd = max(dd, cast(hat, f32));
      if_(program_id(0) == 0, [&] { store(next, nd); });
      auto i = cast(program_id(0), i64) * c.BLOCK + arange(0, c.BLOCK);
      auto in = i < n;
      auto w = cast(load(p + i, {.mask = in}), f32);
      w -= nd * lr * (load(m + i, {.mask = in}) / (sqrt(load(v + i, {.mask = in})) + nd * eps) + 0.01f * w);
      store(p + i, cast(w, bf16), {.mask = in});
    }).grid([](const RoCfg& c, auto, auto, auto, auto, auto, auto, float, float, int64_t, int64_t n) {
      return Grid{cdiv(n, c.BLOCK)};
    });
Register r1("prodigy", [](Env& e) {
  auto c = ro(e, {1024, 4}, {64, 2});
  const int64_t n = e.big ? 1 << 26 : 333;
  auto g = random<bfloat16>(e, n), p = random<bfloat16>(e, n), p0 = random<bfloat16>(e, n);
  auto s = random<float>(e, n), m = random<float>(e, n), v = random<float>(e, n, 0, 1), d = constant<float>(e, 1, .25),
       next = constant<float>(e, 1, 0);
  auto sums = constant<double>(e, 2, 0);
  Job j;
  j.inTurn = true;
  j.mbytes = 1e-6 * n * 40;
  restore(e, j, p, s, m, v, sums);
  j.add(prodigy_sums, c, g.p, p.p, p0.p, s.p, m.p, v.p, d.p, sums.p, .9f, .99f, .995f, 1.f, n);
  j.add(prodigy_step, c, p.p, m.p, v.p, d.p, sums.p, next.p, 1.f, 1e-8f, int64_t(7), n);
  j.check = [=] {
    double s0 = 0, s1 = 0;
    for (int64_t i = 0; i < n; ++i) s0 += g[i] * (p0[i] - p[i]), s1 += std::abs(s[i] * .995 + .25 * g[i]);
    const double nd = std::max(.25, s0 * .25 / s1);
    std::vector<double> want(n);
    for (int64_t i = 0; i < n; ++i) {
      const double mm = m[i] * .9 + .1 * .25 * g[i], vv = v[i] * .99 + .01 * .0625 * g[i] * g[i];
      want[i] = p[i] - nd * (mm / (std::sqrt(vv) + nd * 1e-8) + .01 * p[i]);
    }
    return agree(p.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- AdEMAMix with three states of 8 bits in blocks: factors of blocks, a table of 256 numbers searched by bisection
auto ademamix8 =
    kernel("user_ademamix8", [](const RoCfg& c, Ptr<float> p, Ptr<const float> g, Ptr<uint8_t> m1, Ptr<uint8_t> m2,
                                Ptr<uint8_t> nu, Ptr<float> absmax, Ptr<const float> table, F32 lr, F32 alpha, F32 b3,
                                I32 n) {
      num_warps(c.warps);
      auto blk = program_id(0), blocks = num_programs(0);
      auto i = blk * c.BLOCK + arange(0, c.BLOCK);
      auto in = i < n;
      auto get = [&](const Ptr<uint8_t>& s, int k) {
        return load(table + cast(load(s + i, {.mask = in}), i32)) * load(absmax + (k * blocks + blk));
      };
      auto put = [&](const Ptr<uint8_t>& s, int k, const Tile& x) {
        auto top = max(abs(where(in, x, 0)));
        store(absmax + (k * blocks + blk), top);
        auto y = x / (top + 1e-30f);
        Tile lo = zeros({c.BLOCK}, i32), hi = full({c.BLOCK}, 255, i32);
        for (auto _ : range(0, 8)) {  // the last not above
          auto mid = (lo + hi + 1) / 2;
          auto le = load(table + mid) <= y;
          lo = where(le, mid, lo), hi = where(le, hi, mid - 1);
        }
        auto up = min(lo + 1, 255);
        auto near = where(load(table + up) - y < y - load(table + lo), up, lo);
        store(s + i, cast(near, u8), {.mask = in});
      };
      auto gg = load(g + i, {.mask = in});
      auto a = get(m1, 0) * 0.9f + 0.1f * gg, b = get(m2, 1) * b3 + (1 - b3) * gg,
           v = get(nu, 2) * 0.999f + 0.001f * gg * gg;
      auto w = load(p + i, {.mask = in});
      store(p + i, w - lr * ((a / 0.1f + alpha * b) / (sqrt(v / 0.001f) + 1e-8f) + 0.1f * w), {.mask = in});
      put(m1, 0, a), put(m2, 1, b), put(nu, 2, v);
    }).grid([](const RoCfg& c, auto, auto, auto, auto, auto, auto, auto, float, float, float, int n) {
      return Grid{cdiv(n, c.BLOCK)};
    });
Register r2("ademamix8", [](Env& e) {
  auto c = ro(e, {256, 2}, {64, 1});
  const int n = e.big ? 1 << 25 : 333, B = int(cdiv(n, c.BLOCK));
  auto p = random<float>(e, n), g = random<float>(e, n);
  auto m1 = integers<uint8_t>(e, n, 0, 256), m2 = integers<uint8_t>(e, n, 0, 256),
       nu = integers<uint8_t>(e, n, 128, 256);
  auto am = random<float>(e, 3 * B, .5, 1);
  auto tab = filled<float>(e, 256, [](size_t i) {
    const double x = (double(i) - 127.5) / 127.5;
    return float(x * std::abs(x));
  });
  Job j;
  restore(e, j, p, m1, m2, nu, am);
  j.mbytes = 1e-6 * n * 18;
  j.add(ademamix8, c, p.p, g.p, m1.p, m2.p, nu.p, am.p, tab.p, .01f, 5.f, .9999f, n);
  j.check = [=] {
    std::vector<double> want(n), wa(3 * B), a(n), b(n), v(n);
    for (int i = 0; i < n; ++i) {
      const int k = i / c.BLOCK;
      a[i] = tab[m1.at(i)] * am[k] * .9 + .1 * g[i], b[i] = tab[m2.at(i)] * am[B + k] * .9999 + .0001 * g[i];
      v[i] = tab[nu.at(i)] * am[2 * B + k] * .999 + .001 * g[i] * g[i];
      want[i] = p[i] - .01 * ((a[i] / .1 + 5 * b[i]) / (std::sqrt(v[i] / .001) + 1e-8) + .1 * p[i]);
      wa[k] = std::max(wa[k], std::abs(a[i])), wa[B + k] = std::max(wa[B + k], std::abs(b[i])),
      wa[2 * B + k] = std::max(wa[2 * B + k], std::abs(v[i]));
    }
    auto bad = agree(p.now(), want, 1e-3, 1e-3);
    if (bad.empty()) bad = agree(am.now(), wa, 1e-5, 1e-5);
    if (!bad.empty()) return bad;
    auto codes = m1.now();
    std::vector<double> wv(n), got(n);
    for (int i = 0; i < n; ++i) {
      double best = 1e9;
      for (int t = 0; t < 256; ++t) best = std::min(best, std::abs(tab[t] - a[i] / wa[i / c.BLOCK]));
      wv[i] = best, got[i] = std::abs(tab[codes[i]] - a[i] / wa[i / c.BLOCK]);
    }
    return agree(got, wv, 1e-5, 1e-4);
  };
  return j;
});

// --- SM3: a second moment per row and per column; the smaller of both
auto sm3 =
    kernel("user_sm3", [](const RoCfg& c, Tensor<bfloat16, 2> W, Tensor<const bfloat16, 2> G, Ptr<const float> row,
                          Ptr<const float> col, Ptr<float> row_next, Ptr<float> col_next, F32 lr) {
      num_warps(c.warps);
      auto r = program_id(0) * 16, k = program_id(1) * c.BLOCK;
      auto ri = r + arange(0, 16), ki = k + arange(0, c.BLOCK);
      auto R = W.dim(0), C = W.dim(1);
      auto g = cast(G.load({r, k}, {16, c.BLOCK}), f32);
      auto v = min(load(row + ri, {.mask = ri < R}).col(), load(col + ki, {.mask = ki < C}).row()) + g * g;
      v = where((ri < R).col() & (ki < C).row(), v, 0);
      W.store({r, k}, cast(cast(W.load({r, k}, {16, c.BLOCK}), f32) - lr * g / sqrt(v + 1e-30f), bf16));
      atomic_max(row_next + ri, squeeze(max(v, axis(1)), 1), {.mask = ri < R});
      atomic_max(col_next + ki, squeeze(max(v, axis(0)), 0), {.mask = ki < C});
    }).grid([](const RoCfg& c, const auto& w, const auto&, auto, auto, auto, auto, float) {
      return Grid{cdiv(w.shape[0], 16), cdiv(w.shape[1], c.BLOCK)};
    });
Register r3("sm3", [](Env& e) {
  auto c = ro(e, {256, 4}, {32, 2});
  const int R = e.big ? 8192 : 37, C = e.big ? 8192 : 75;
  auto w = random<bfloat16>(e, size_t(R) * C), g = random<bfloat16>(e, size_t(R) * C);
  auto r = random<float>(e, R, 0, 1), k = random<float>(e, C, 0, 1), rn = constant<float>(e, R, 0),
       cn = constant<float>(e, C, 0);
  Job j;
  restore(e, j, w, rn, cn);
  j.mbytes = 6e-6 * R * C;
  j.add(sm3, c, w.view(R, C), g.view(R, C), r.p, k.p, rn.p, cn.p, .01f);
  j.check = [=] {
    std::vector<double> ww(w.n), wr(R), wc(C);
    for (int y = 0; y < R; ++y)
      for (int x = 0; x < C; ++x) {
        const double gg = g[size_t(y) * C + x], v = std::min(r[y], k[x]) + gg * gg;
        ww[size_t(y) * C + x] = w[size_t(y) * C + x] - .01 * gg / std::sqrt(v);
        wr[y] = std::max(wr[y], v), wc[x] = std::max(wc[x], v);
      }
    auto bad = agree(w.now(), ww, 1e-2, 1e-2);
    if (bad.empty()) bad = agree(rn.now(), wr, 1e-4, 1e-4);
    return bad.empty() ? agree(cn.now(), wc, 1e-4, 1e-4) : bad;
  };
  return j;
});

// --- ArcFace: the label's angle gets a margin; loss and gradient of cosines, online maximum, odd vocabulary
auto arcface = kernel("user_arcface", [](const RoCfg& c, Ptr<half> cosines, Ptr<const int64_t> labels, Ptr<float> loss,
                                         F32 s, F32 margin, I32 V) {
  num_warps(c.warps);
  auto r = program_id(0);
  auto y = cast(load(labels + r), i32);
  auto x = cosines + cast(r, i64) * V;
  auto j = arange(0, c.BLOCK);
  auto cy = clamp(cast(load(x + y), f32), -1 + 1e-4f, 1 - 1e-4f);
  auto th = acos(cy) + margin;
  auto target = s * cos(th);
  Tile m = target, l = 1.f;
  for (auto i : range(0, V, c.BLOCK)) {
    auto k = i + j;
    auto v = where((k < V) & (k != y), s * cast(load(x + k, {.mask = k < V}), f32), -INFINITY);
    auto mn = max(m, max(v));
    l = l * exp(m - mn) + sum(exp(v - mn));
    m = mn;
  }
  auto lse = m + log(l);
  store(loss + r, lse - target);
  auto slope = sin(th) / sin(th - margin);
  for (auto i : range(0, V, c.BLOCK)) {
    auto k = i + j;
    auto v = s * cast(load(x + k, {.mask = k < V}), f32);
    auto p = where(k == y, (exp(target - lse) - 1) * slope, exp(v - lse)) * s;
    store(x + k, cast(p, f16), {.mask = k < V});
  }
});
Register r4("arcface", [](Env& e) {
  auto c = ro(e, {2048, 8}, {64, 2});
  const int R = e.big ? 4096 : 6, V = e.big ? 93431 : 203;
  auto x = random<half>(e, size_t(R) * V, -.9, .9);
  auto y = filled<int64_t>(e, R, [&](size_t i) { return int64_t(i * 37 % V); });
  auto loss = constant<float>(e, R, NAN);
  Job j;
  restore(e, j, x);
  j.mbytes = 6e-6 * R * V;
  j.add(arcface.grid([R](const RoCfg&, auto, auto, auto, float, float, int) { return Grid{R}; }), c, x.p, y.p, loss.p,
        16.f, .5f, V);
  j.check = [=] {
    std::vector<double> wl(R), wx(x.n);
    for (int r = 0; r < R; ++r) {
      const double th = std::acos(x[size_t(r) * V + y.at(r)]) + .5, t = 16 * std::cos(th);
      double l = std::exp(t);
      for (int k = 0; k < V; ++k)
        if (k != y.at(r)) l += std::exp(16 * x[size_t(r) * V + k]);
      wl[r] = std::log(l) - t;
      for (int k = 0; k < V; ++k)
        wx[size_t(r) * V + k] = 16 * (k == y.at(r) ? (std::exp(t) / l - 1) * std::sin(th) / std::sin(th - .5)
                                                   : std::exp(16 * x[size_t(r) * V + k]) / l);
    }
    auto bad = agree(loss.now(), wl, 2e-3, 1e-3);
    return bad.empty() ? agree(x.now(), wx, 2e-3, 3e-3) : bad;
  };
  return j;
});

// --- a sampler: temperature by entropy, what is below max - n sigma goes (top-n-sigma), the likeliest go if another
// above a threshold stays (XTC), one draw by Gumbel noise
struct SampleCfg {
  int V = 8192, warps = 8;
};
auto xtc =
    kernel("user_xtc", [](const SampleCfg& c, Ptr<const float> logits, Ptr<const int64_t> seeds, Ptr<int32_t> out,
                          Ptr<int32_t> kept, F32 nsigma, F32 threshold, F32 lo, F32 hi, I32 V, I64 stride) {
      num_warps(c.warps);
      auto r = program_id(0);
      auto k = arange(0, c.V);
      auto in = k < V;
      Tile x = load(logits + r * stride + k, {.mask = in, .other = -INFINITY});
      auto m = max(x);
      auto p = exp(x - m);
      p = p / sum(p);
      auto h = -sum(where(p > 0, p * log(p), 0)) / log(cast(V, f32));
      auto t = lo + (hi - lo) * h;
      x = x / t;
      auto n = cast(V, f32);
      auto mean = sum(where(in, x, 0)) / n;
      auto sd = sqrt(sum(where(in, (x - mean) * (x - mean), 0)) / n);
      x = where(x >= max(x) - nsigma * sd, x, -INFINITY);
      auto q = exp(x - max(x));
      q = q / sum(q);
      auto above = q >= threshold;
      auto least = min(where(above, q, 2.f));
      auto two = sum(cast(above, i32)) > 1;
      x = where(two & above & (q > least), -INFINITY, x);
      store(kept + r, sum(cast(x > -INFINITY, i32)));
      auto u = rand(load(seeds + r), k);
      auto g = x - log(-log(max(u, 1e-20f)));
      store(out + r, to_scalar(argmax(g, axis(0))));
    });
Register r5("xtc", [](Env& e) {
  SampleCfg c = e.big ? SampleCfg{16384, 32} : SampleCfg{160, 2};
  c.warps = e.field("warps", c.warps);
  const int R = e.big ? 256 : 7, V = e.big ? 16000 : 131, S = V + 5;
  auto x = random<float>(e, size_t(R) * S, -4, 4);
  auto seeds = integers<int64_t>(e, R, 0, 1 << 20);
  auto out = constant<int32_t>(e, R, -1), kept = constant<int32_t>(e, R, -1);
  Job j;
  j.mbytes = 4e-6 * R * V;
  j.add(xtc.grid([R](const SampleCfg&, auto, auto, auto, auto, float, float, float, float, int, int64_t) {
    return Grid{R};
  }),
        c, x.p, seeds.p, out.p, kept.p, 1.5f, .03f, .5f, 1.5f, V, int64_t(S));
  j.check = [=] {
    std::vector<double> wk(R);
    for (int r = 0; r < R; ++r) {
      std::vector<double> l(V), p(V);
      double m = -1e9, s = 0, h = 0;
      for (int k = 0; k < V; ++k) l[k] = x[size_t(r) * S + k], m = std::max(m, l[k]);
      for (int k = 0; k < V; ++k) s += p[k] = std::exp(l[k] - m);
      for (int k = 0; k < V; ++k) p[k] /= s, h -= p[k] * std::log(p[k]);
      h /= std::log(V);
      double mean = 0, sd = 0, mx = -1e9;
      for (double& v : l) v /= .5 + h, mean += v / V, mx = std::max(mx, v);
      for (double v : l) sd += (v - mean) * (v - mean) / V;
      sd = std::sqrt(sd), s = 0;
      for (int k = 0; k < V; ++k) s += p[k] = l[k] >= mx - 1.5 * sd ? std::exp(l[k] - mx) : 0;
      int above = 0, alive = 0;
      for (double& v : p) v /= s, above += v >= .03, alive += v > 0;
      wk[r] = above > 1 ? alive - above + 1 : alive;
    }
    return agree(kept.now(), wk, 1e-9, 0);
  };
  return j;
});

// --- KTO: desirable and undesirable answers, log-probabilities of answers summed over tokens of packed sequences
auto kto = kernel("user_kto", [](const RoCfg& c, Ptr<const float> lp, Ptr<const float> ref, Ptr<const int32_t> cu,
                                 Ptr<const uint8_t> good, Ptr<const float> kl, Ptr<float> loss, Ptr<bfloat16> grad,
                                 F32 beta, F32 wg, F32 wb) {
  num_warps(c.warps);
  auto b = program_id(0);
  auto lo = load(cu + b), hi = load(cu + b + 1);
  Tile acc = zeros({c.BLOCK}, f32);
  for (auto i : range(lo, hi, c.BLOCK)) {
    auto k = i + arange(0, c.BLOCK);
    acc += load(lp + k, {.mask = k < hi}) - load(ref + k, {.mask = k < hi});
  }
  auto ratio = sum(acc);
  auto g = load(good + b) != 0;
  Tile l = 0.f, d = 0.f;
  if_(
      g,
      [&] {
        auto s = sigmoid(beta * (ratio - load(kl)));
        l = wg * (1 - s), d = -wg * beta * s * (1 - s);
      },
      [&] {
        auto s = sigmoid(beta * (load(kl) - ratio));
        l = wb * (1 - s), d = wb * beta * s * (1 - s);
      });
  store(loss + b, l);
  for (auto i : range(lo, hi, c.BLOCK)) {
    auto k = i + arange(0, c.BLOCK);
    store(grad + k, cast(broadcast_to(reshape(d, {1}), {c.BLOCK}), bf16), {.mask = k < hi});
  }
});
Register r6("kto", [](Env& e) {
  auto c = ro(e, {1024, 4}, {16, 1});
  const int B = e.big ? 512 : 6;
  std::vector<int32_t> cu{0};
  for (int i = 0; i < B; ++i) cu.push_back(cu.back() + (e.big ? 3000 : i * 7 % 40));
  const int n = cu.back();
  auto lp = random<float>(e, n), ref = random<float>(e, n);
  auto cud = repeated<int32_t>(e, cu.size(), cu);
  auto good = filled<uint8_t>(e, B, [](size_t i) { return i % 3 != 1; });
  auto kl = constant<float>(e, 1, .3);
  auto loss = constant<float>(e, B, NAN);
  auto grad = constant<bfloat16>(e, n, NAN);
  Job j;
  j.mbytes = 10e-6 * n;
  j.add(kto.grid([B](const RoCfg&, auto, auto, auto, auto, auto, auto, auto, float, float, float) { return Grid{B}; }),
        c, lp.p, ref.p, cud.p, good.p, kl.p, loss.p, grad.p, .5f, 1.f, 1.5f);
  j.check = [=] {
    std::vector<double> wl(B), wg(n);
    for (int b = 0; b < B; ++b) {
      double r = 0;
      for (int i = cu[b]; i < cu[b + 1]; ++i) r += lp[i] - ref[i];
      const bool g = b % 3 != 1;
      const double z = g ? .5 * (r - .3) : .5 * (.3 - r), s = 1 / (1 + std::exp(-z)), w = g ? 1 : 1.5;
      wl[b] = w * (1 - s);
      for (int i = cu[b]; i < cu[b + 1]; ++i) wg[i] = (g ? -1 : 1) * w * .5 * s * (1 - s);
    }
    auto bad = agree(loss.now(), wl, 1e-4, 1e-4);
    return bad.empty() ? agree(grad.now(), wg, 1e-3, 1e-2) : bad;
  };
  return j;
});

}  // namespace optimisers_and_samplers
}  // namespace users
