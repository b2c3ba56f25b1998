// generated_loops.cpp - kernels in the form of generated code (Inductor): flat indices that constants divide, every
// value under its own mask, reductions in parts that a second kernel finishes.
#include "tests/users/use.h"
namespace users {
namespace generated_loops {

// --- batch norm of training, NCHW: the pixels of a channel are split into parts, each with a Welford triple per
// element of the tile; the parts' triples, and what is remembered of earlier batches, come together in a second kernel;
// a third one normalises. All sizes are constants of the code
struct Bn {
  int N = 64, C = 192, HW = 28 * 28, S = 7, XB = 8, RB = 256, XP = 64;
};
struct Welford {
  Tile mean, m2, weight;
};
std::tuple<Tile, Tile, Tile> combined(Tile mean1, Tile m1, Tile w1, Tile mean2, Tile m2, Tile w2) {
  Tile delta = mean2 - mean1, w = w1 + w2;
  Tile share = where(w == 0.f, 0.f, w2 / w);
  return {mean1 + delta * share, m1 + m2 + delta * delta * w1 * share, w};
}
auto bn_parts =
    kernel("user_bn_parts", [](const Bn& c, Ptr<const bfloat16> in, Ptr<float> out_mean, Ptr<float> out_m2,
                               Ptr<float> out_weight) {
      const int xnumel = c.C * c.S, all = c.N * c.HW, rnumel = cdiv(all, c.S);
      Tile xindex = (program_id(0) * c.XB + arange(0, c.XB)).col();
      Tile xmask = xindex < xnumel;
      Tile rbase = arange(0, c.RB).row();
      Tile x0 = xindex % c.C, x1 = xindex / c.C;
      Welford w{zeros({c.XB, c.RB}, f32), zeros({c.XB, c.RB}, f32), zeros({c.XB, c.RB}, f32)};
      for (auto roffset : range(0, rnumel, c.RB)) {
        Tile r2 = roffset + rbase;
        Tile rmask = r2 < rnumel;
        Tile pixel = r2 + rnumel * x1;
        Tile inside = pixel < all;
        Tile at = c.HW * x0 + c.C * c.HW * (pixel / c.HW % c.N) + pixel % c.HW;
        Tile x = cast(load(in + at, {.mask = rmask & inside & xmask}), f32);
        Tile one = where(inside, 1.f, 0.f);
        auto [mean, m2, weight] = combined(w.mean, w.m2, w.weight, x, zeros_like(x), one);
        w.mean = where(rmask & xmask, mean, w.mean);
        w.m2 = where(rmask & xmask, m2, w.m2);
        w.weight = where(rmask & xmask, weight, w.weight);
      }
      auto [mean, m2, weight] = reduce({w.mean, w.m2, w.weight}, axis(1), combined);
      store(out_mean + xindex, mean, {.mask = xmask});
      store(out_m2 + xindex, m2, {.mask = xmask});
      store(out_weight + xindex, weight, {.mask = xmask});
    }).grid([](const Bn& c, const bfloat16*, float*, float*, float*) { return Grid{cdiv(c.C * c.S, c.XB)}; });
auto bn_join = kernel("user_bn_join", [](const Bn& c, Ptr<const float> means, Ptr<const float> m2s,
                                         Ptr<const float> weights, Ptr<float> running_mean, Ptr<float> running_var,
                                         Ptr<float> out_mean, Ptr<float> out_rstd) {
                 Tile x = (program_id(0) * c.XP + arange(0, c.XP)).col(), r = arange(0, c.S).row();
                 Tile xmask = x < c.C;
                 Tile at = x + c.C * r;
                 auto part = [&](auto& p) { return load(p + at, {.mask = xmask}); };
                 auto [mean, m2, n] = reduce({part(means), part(m2s), part(weights)}, axis(1), combined);
                 Tile var = m2 / n;
                 store(out_mean + x, mean, {.mask = xmask});
                 store(out_rstd + x, rsqrt(var + 1e-5), {.mask = xmask});
                 Tile old = load(running_mean + x, {.mask = xmask}), oldv = load(running_var + x, {.mask = xmask});
                 const double pixels = double(c.N) * c.HW;
                 store(running_mean + x, mean * 0.1 + old * 0.9, {.mask = xmask});
                 store(running_var + x, var * (0.1 * pixels / (pixels - 1)) + oldv * 0.9, {.mask = xmask});
               }).grid([](const Bn& c, const auto&...) { return Grid{cdiv(c.C, c.XP)}; });
auto bn_apply =
    kernel("user_bn_apply", [](const Bn& c, Ptr<const bfloat16> in, Ptr<const float> mean, Ptr<const float> rstd,
                               Ptr<const float> w, Ptr<const float> b, Ptr<bfloat16> out, Ptr<bool> positive) {
      const int xnumel = c.N * c.C * c.HW;
      Tile x = program_id(0) * 1024 + arange(0, 1024);
      Tile xmask = x < xnumel;
      Tile x1 = x / c.HW % c.C;
      auto of = [&](auto& p) { return load(p + x1, {.mask = xmask, .cache = Cache::last}); };
      Tile y = (cast(load(in + x, {.mask = xmask}), f32) - of(mean)) * of(rstd) * of(w) + of(b);
      y = max(y, 0.f);
      store(out + x, cast(y, bf16), {.mask = xmask});
      store(positive + x, y > 0.f, {.mask = xmask});
    }).grid([](const Bn& c, const auto&...) { return Grid{cdiv(c.N * c.C * c.HW, 1024)}; });
Register r1("bn_split", [](Env& e) {
  Bn c;
  if (!e.big) c = {3, 5, 7 * 9, 4, 2, 16, 4};
  c.XB = e.field("XB", c.XB), c.RB = e.field("RB", c.RB);
  const size_t n = size_t(c.N) * c.C * c.HW, parts = size_t(c.C) * c.S;
  auto x = random<bfloat16>(e, n, 3, 6);
  auto m = constant<float>(e, parts, NAN), m2 = constant<float>(e, parts, NAN), w = constant<float>(e, parts, NAN);
  auto rm = random<float>(e, c.C), rv = random<float>(e, c.C, 1, 2), g = random<float>(e, c.C),
       b = random<float>(e, c.C);
  auto mean = constant<float>(e, c.C, NAN), rstd = constant<float>(e, c.C, NAN);
  auto y = constant<bfloat16>(e, n, NAN);
  auto p = constant<uint8_t>(e, n, 9);
  Job j;
  j.add(bn_parts, c, x.p, m.p, m2.p, w.p);
  j.add(bn_join, c, m.p, m2.p, w.p, rm.p, rv.p, mean.p, rstd.p);
  j.add(bn_apply, c, x.p, mean.p, rstd.p, g.p, b.p, y.p, reinterpret_cast<bool*>(p.p));
  j.mbytes = 1e-6 * (7. * n);
  j.check = [=]() -> std::string {
    std::vector<double> wm(c.C), ws(c.C), wrm(c.C), wrv(c.C), wy(n);
    const int count = c.N * c.HW;
    for (int ch = 0; ch < c.C; ++ch) {
      auto at = [&](int i) { return (size_t(i / c.HW) * c.C + ch) * c.HW + i % c.HW; };
      double s = 0, v = 0;
      for (int i = 0; i < count; ++i) s += x[at(i)] / count;
      for (int i = 0; i < count; ++i) v += (x[at(i)] - s) * (x[at(i)] - s);
      wm[ch] = s, ws[ch] = 1 / std::sqrt(v / count + 1e-5);
      wrm[ch] = .1 * s + .9 * rm[ch], wrv[ch] = .1 * v / (count - 1) + .9 * rv[ch];
      for (int i = 0; i < count; ++i) wy[at(i)] = std::max(0., (x[at(i)] - s) * ws[ch] * g[ch] + b[ch]);
    }
    if (auto bad = agree(mean.now(), wm, 1e-5, 1e-5); !bad.empty()) return "mean: " + bad;
    if (auto bad = agree(rstd.now(), ws, 1e-5, 1e-5); !bad.empty()) return "rstd: " + bad;
    if (auto bad = agree(rm.now(), wrm, 1e-5, 1e-5); !bad.empty()) return "running mean: " + bad;
    if (auto bad = agree(rv.now(), wrv, 1e-5, 1e-5); !bad.empty()) return "running variance: " + bad;
    const auto sign = p.now();
    for (size_t i = 0; i < n; ++i)
      if (std::abs(wy[i]) > 1e-4 && sign[i] != (wy[i] > 0)) return "sign of element " + std::to_string(i);
    return agree(y.now(), wy, 1e-4, 5e-3);
  };
  return j;
});

// --- three sources side by side in rows of 164: x, a gated product, and a pair of columns turned by an angle; each is
// loaded where the column is its own. The row is kept, and once more after GELU and a scale per column
struct Cat {
  int A = 80, G = 48, R = 36, XBLOCK = 1024;
};
auto poi_cat =
    kernel("user_poi_cat",
           [](const Cat& c, Ptr<const bfloat16> in0, Ptr<const bfloat16> in1, Ptr<const bfloat16> in2,
              Ptr<const bfloat16> in3, Ptr<const float> in4, Ptr<const float> in5, Ptr<bfloat16> out0,
              Ptr<bfloat16> out1, I32 xnumel) {
             const int W = c.A + c.G + c.R, half = c.R / 2;
             Tile xindex = program_id(0) * c.XBLOCK + arange(0, c.XBLOCK);
             Tile xmask = xindex < xnumel;
             Tile x0 = xindex % W, x1 = xindex / W;
             Tile tmp0 = x0;
             Tile tmp3 = tmp0 < c.A;
             Tile tmp4 = load(in0 + (c.A * x1 + x0), {.mask = tmp3 & xmask, .other = 0, .cache = Cache::last});
             Tile tmp5 = (tmp0 >= c.A) & (tmp0 < c.A + c.G);
             Tile tmp6 = cast(load(in1 + (c.G * x1 + (x0 - c.A)), {.mask = tmp5 & xmask}), f32);
             Tile tmp7 = cast(load(in2 + (c.G * x1 + (x0 - c.A)), {.mask = tmp5 & xmask}), f32);
             Tile tmp8 = tmp6 * sigmoid(tmp6) * tmp7;
             Tile tmp9 = where(tmp5, cast(tmp8, bf16), cast(0.f, bf16));
             Tile tmp10 = tmp0 >= c.A + c.G;
             Tile at = x0 - (c.A + c.G);
             Tile tmp11 = at < half;
             Tile tmp12 = cast(load(in3 + (c.R * x1 + at), {.mask = tmp10 & xmask}), f32);
             Tile tmp13 = cast(load(in3 + (c.R * x1 + at + half), {.mask = tmp10 & tmp11 & xmask}), f32);
             Tile tmp14 = cast(load(in3 + (c.R * x1 + at - half), {.mask = tmp10 & ~tmp11 & xmask}), f32);
             Tile tmp15 = load(in4 + (half * x1 + at % half), {.mask = tmp10 & xmask, .other = 0.0});
             Tile tmp16 = tmp12 * cos(tmp15) + where(tmp11, -tmp13, tmp14) * sin(tmp15);
             Tile tmp17 = where(tmp3, tmp4, where(tmp5, tmp9, cast(tmp16, bf16)));
             Tile tmp18 = cast(tmp17, f32);
             Tile tmp19 = tmp18 * 0.5 * (erf(tmp18 * 0.7071067811865476) + 1.0);
             Tile tmp20 = tmp19 * load(in5 + x0, {.mask = xmask, .cache = Cache::last});
             store(out0 + xindex, tmp17, {.mask = xmask});
             store(out1 + xindex, cast(tmp20, bf16), {.mask = xmask});
           })
        .grid([](const Cat& c, const bfloat16*, const bfloat16*, const bfloat16*, const bfloat16*, const float*,
                 const float*, bfloat16*, bfloat16*, int n) { return Grid{cdiv(n, c.XBLOCK)}; });
Register r2("poi_cat", [](Env& e) {
  Cat c;
  if (!e.big) c = {5, 3, 6, 64};
  c.XBLOCK = e.field("XBLOCK", c.XBLOCK);
  const int T = e.big ? 131072 : 37, W = c.A + c.G + c.R, half = c.R / 2;
  auto a = random<bfloat16>(e, size_t(T) * c.A), g = random<bfloat16>(e, size_t(T) * c.G, -3, 3),
       u = random<bfloat16>(e, size_t(T) * c.G), r = random<bfloat16>(e, size_t(T) * c.R);
  auto t = random<float>(e, size_t(T) * half, -9, 9), s = random<float>(e, W);
  auto y = constant<bfloat16>(e, size_t(T) * W, NAN), z = constant<bfloat16>(e, size_t(T) * W, NAN);
  Job j;
  j.add(poi_cat, c, a.p, g.p, u.p, r.p, t.p, s.p, y.p, z.p, T * W);
  j.mbytes = 1e-6 * T * (2. * (c.A + 2 * c.G + c.R) + 4. * half + 4. * W);
  j.check = [=]() -> std::string {
    std::vector<double> wy(y.n), wz(y.n);
    for (int i = 0; i < T; ++i)
      for (int x = 0; x < W; ++x) {
        double v;
        if (x < c.A)
          v = a[size_t(i) * c.A + x];
        else if (x < c.A + c.G) {
          const size_t at = size_t(i) * c.G + x - c.A;
          v = g[at] / (1 + std::exp(-g[at])) * u[at];
        } else {
          const int k = x - c.A - c.G;
          const double angle = t[size_t(i) * half + k % half];
          const double other = k < half ? -r[size_t(i) * c.R + k + half] : r[size_t(i) * c.R + k - half];
          v = r[size_t(i) * c.R + k] * std::cos(angle) + other * std::sin(angle);
        }
        wy[size_t(i) * W + x] = v;
        wz[size_t(i) * W + x] = v * .5 * (1 + std::erf(v * std::sqrt(.5))) * s[x];
      }
    if (auto bad = agree(y.now(), wy, 1e-3, 5e-3); !bad.empty()) return "row: " + bad;
    return agree(z.now(), wz, 4e-3, 1e-2);
  };
  return j;
});
}  // namespace generated_loops
}  // namespace users
