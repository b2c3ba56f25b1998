// first_attentions.cpp - attention and its gradients as the first tutorials have them, through pointers, and operators
// of detection and distillation: nothing is said of warps and stages.
#include "tests/users/use.h"
namespace users {
namespace first_attentions {

// --- gradients of causal attention as the tutorial has them: keys and values of a block, queries of a block
struct BackCfg {
  int M1 = 32, N1 = 128, M2 = 128, N2 = 32, D = 64, warps = 0, stages = 0;  // 0: nothing said
};
auto tutorial_dkdv = kernel("user_tutorial_dkdv", [](const BackCfg& c, Ptr<const half> Q, Ptr<const half> K, Ptr<const half> V,
                                                     Ptr<const half> DO, Ptr<const float> M, Ptr<const float> D,
                                                     Ptr<half> DK, Ptr<half> DV, F32 scale, I32 T, I32) {
  if (c.warps) num_warps(c.warps);
  auto at = cast(program_id(1), i64) * T;
  auto start = program_id(0) * c.N1;
  auto n = start + arange(0, c.N1), d = arange(0, c.D);
  auto k = load(K + at * c.D + (n.col() * c.D + d.row()), {.mask = (n < T).col()});
  auto v = load(V + at * c.D + (n.col() * c.D + d.row()), {.mask = (n < T).col()});
  Tile dk = zeros({c.N1, c.D}, f32), dv = zeros({c.N1, c.D}, f32);
  auto inner = [&](Expr low, Expr high, int step, bool diagonal) {
    for (auto i : range(low, high, step, {.stages = c.stages})) {
      auto m = i + arange(0, step);
      auto qT = load(Q + at * c.D + (m.row() * c.D + d.col()), {.mask = (m < T).row()});
      auto top = load(M + at + m, {.mask = m < T});
      auto pT = exp2(dot(k, qT) - top.row());
      if (diagonal) pT = where(m.row() >= n.col(), pT, 0.f);
      auto dO = load(DO + at * c.D + (m.col() * c.D + d.row()), {.mask = (m < T).col()});
      dv += dot(cast(pT, f16), dO);
      auto Di = load(D + at + m, {.mask = m < T});
      auto dsT = pT * (dot(v, trans(dO)) - Di.row());
      dk += dot(cast(dsT, f16), trans(qT));
    }
  };
  inner(start, min(start + c.N1, T), c.M1 / 2, true);
  inner(start + c.N1, T, c.M1, false);
  store(DV + at * c.D + (n.col() * c.D + d.row()), cast(dv, f16), {.mask = (n < T).col()});
  store(DK + at * c.D + (n.col() * c.D + d.row()), cast(dk * scale, f16), {.mask = (n < T).col()});
}).grid([](const BackCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, float, int T, int Z) {
  return Grid{cdiv(T, c.N1), Z};
});
auto tutorial_dq = kernel("user_tutorial_dq", [](const BackCfg& c, Ptr<const half> Q, Ptr<const half> K, Ptr<const half> V,
                                                 Ptr<const half> DO, Ptr<const float> M, Ptr<const float> D, Ptr<half> DQ,
                                                 I32 T, I32) {
  if (c.warps) num_warps(c.warps);
  auto at = cast(program_id(1), i64) * T;
  auto start = program_id(0) * c.M2;
  auto m = start + arange(0, c.M2), d = arange(0, c.D);
  auto q = load(Q + at * c.D + (m.col() * c.D + d.row()), {.mask = (m < T).col()});
  auto dO = load(DO + at * c.D + (m.col() * c.D + d.row()), {.mask = (m < T).col()});
  auto top = load(M + at + m, {.mask = m < T}).col(), Di = load(D + at + m, {.mask = m < T}).col();
  Tile dq = zeros({c.M2, c.D}, f32);
  auto inner = [&](Expr low, Expr high, int step, bool diagonal) {
    for (auto i : range(low, high, step, {.stages = c.stages})) {
      auto n = i + arange(0, step);
      auto kT = load(K + at * c.D + (n.row() * c.D + d.col()), {.mask = (n < T).row()});
      auto vT = load(V + at * c.D + (n.row() * c.D + d.col()), {.mask = (n < T).row()});
      auto p = exp2(dot(q, kT) - top);
      if (diagonal) p = where(m.col() >= n.row(), p, 0.f);
      auto ds = cast(p * (dot(dO, vT) - Di), f16);
      dq += dot(ds, trans(kT));
    }
  };
  inner(start, min(start + c.M2, T), c.N2 / 2, true);
  inner(0, start, c.N2, false);
  store(DQ + at * c.D + (m.col() * c.D + d.row()), cast(dq * .69314718f, f16), {.mask = (m < T).col()});
}).grid([](const BackCfg& c, auto, auto, auto, auto, auto, auto, auto, int T, int Z) { return Grid{cdiv(T, c.M2), Z}; });
Register r1("tutorial_bwd", [](Env& e) {
  BackCfg c;
  if (!e.big) c = {32, 32, 32, 32, 32};
  c.M1 = e.field("M1", c.M1), c.N1 = e.field("N1", c.N1), c.M2 = e.field("M2", c.M2), c.N2 = e.field("N2", c.N2);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages), c.D = e.field("D", c.D);
  const int Z = e.big ? 64 : 2, T = e.big ? 2048 : 77, D = c.D;
  const size_t n = size_t(Z) * T * D;
  // K comes multiplied by scale / ln 2, as the tutorial's first step leaves it
  const double scale = .5 / std::sqrt(double(D)), turned = scale / std::log(2.);
  auto q = random<half>(e, n), v = random<half>(e, n), dO = random<half>(e, n);
  auto k = random<half>(e, n, -turned, turned);
  // rows' maxima with sums in them, and sums of dO * O
  std::vector<float> top(size_t(Z) * T), Di(size_t(Z) * T);
  std::vector<double> wq(n), wk(n), wv(n);
  if (e.device && !e.big) {
    for (int z = 0; z < Z; ++z)
      for (int m = 0; m < T; ++m) {
        const size_t r = size_t(z) * T + m;
        std::vector<double> p(m + 1), dp(m + 1);
        double all = 0, mean = 0;
        for (int j = 0; j <= m; ++j) {
          for (int d = 0; d < D; ++d) p[j] += q[r * D + d] * k[(size_t(z) * T + j) * D + d], dp[j] += dO[r * D + d] * v[(size_t(z) * T + j) * D + d];
          all += p[j] = std::exp2(p[j]);
        }
        for (int j = 0; j <= m; ++j) mean += (p[j] /= all) * dp[j];
        top[r] = float(std::log2(all)), Di[r] = float(mean);
        for (int j = 0; j <= m; ++j)
          for (int d = 0; d < D; ++d) {
            const size_t kd = (size_t(z) * T + j) * D + d;
            const double ds = p[j] * (dp[j] - mean);
            wv[kd] += p[j] * dO[r * D + d], wk[kd] += ds * q[r * D + d] * scale, wq[r * D + d] += ds * k[kd] * std::log(2.);
          }
      }
  }
  auto m = repeated(e, top.size(), top), di = repeated(e, Di.size(), Di);
  auto dq = constant<half>(e, n, NAN), dk = constant<half>(e, n, NAN), dv = constant<half>(e, n, NAN);
  Job j;
  j.gflop = 5e-9 * Z * double(T) * T * D;
  j.add(tutorial_dkdv, c, q.p, k.p, v.p, dO.p, m.p, di.p, dk.p, dv.p, float(scale), T, Z);
  j.add(tutorial_dq, c, q.p, k.p, v.p, dO.p, m.p, di.p, dq.p, T, Z);
  j.check = [=] {
    auto wrong = agree(dv.now(), wv, 1e-2, 1e-2);
    if (wrong.empty()) wrong = agree(dk.now(), wk, 1e-2, 1e-2);
    return wrong.empty() ? agree(dq.now(), wq, 1e-2, 1e-2) : wrong;
  };
  return j;
});

// --- one query per sequence and group of heads over pages, parts of the sequence apart, then put together
struct PartsCfg {
  int H = 16, BN = 32, D = 128, parts = 8, warps = 0, stages = 0;  // 0: nothing said
};
auto page_parts = kernel("user_page_parts", [](const PartsCfg& c, Ptr<const half> Q, Ptr<const half> K, Ptr<const half> V,
                                               Ptr<const int32_t> table, Ptr<const int32_t> lengths, Ptr<float> out,
                                               Ptr<float> logs, F32 scale, I32, I32 heads, I32 group, I32 pages, I32 page) {
                    if (c.warps) num_warps(c.warps);
                    auto b = program_id(0), g = program_id(1), part = program_id(2);
                    auto length = load(lengths + b);
                    auto each = cdiv(length, c.parts);
                    auto begin = part * each, end = min(begin + each, length);
                    auto h = arange(0, c.H), d = arange(0, c.D);
                    auto head = g * group + h;
                    auto in = (h < group).col();
                    auto q = load(Q + ((b * heads + head).col() * c.D + d.row()), {.mask = in});
                    Tile most = full({c.H}, -INFINITY, f32), all = zeros({c.H}, f32), acc = zeros({c.H, c.D}, f32);
                    for (auto i : range(begin, end, c.BN, {.stages = c.stages})) {
                      auto n = i + arange(0, c.BN);
                      auto at = load(table + b * pages + n / page, {.mask = n < end, .other = 0});
                      auto row = cast(at * page + n % page, i64) * (heads / group) + g;
                      auto k = load(K + (row.row() * c.D + d.col()), {.mask = (n < end).row(), .other = 0});
                      auto s = where((n < end).row() & in, dot(q, k) * scale, -INFINITY);
                      auto v = load(V + (row.col() * c.D + d.row()), {.mask = (n < end).col(), .other = 0});
                      auto now = max(max(squeeze(max(s, axis(1)), 1), most), -1e30f);
                      auto again = exp(most - now);
                      auto p = exp(s - now.col());
                      acc = acc * again.col() + dot(cast(p, f16), v);
                      all = all * again + squeeze(sum(p, axis(1)), 1);
                      most = now;
                    }
                    auto to = (b * heads + head) * c.parts + part;
                    store(out + (to.col() * c.D + d.row()), acc / max(all, 1e-30f).col(), {.mask = in});
                    store(logs + to, where(all > 0.f, most + log(all), -INFINITY), {.mask = h < group});
                  }).grid([](const PartsCfg& c, auto, auto, auto, auto, auto, auto, auto, float, int B, int heads, int group,
                             auto...) { return Grid{B, heads / group, c.parts}; });
auto sum_parts = kernel("user_parts_of_pages", [](const PartsCfg& c, Ptr<const float> parts, Ptr<const float> logs, Ptr<half> O, I32) {
                   auto row = program_id(0);
                   auto d = arange(0, c.D);
                   Tile most = -INFINITY, all = 0.f, acc = zeros({c.D}, f32);
                   for (auto i : range(0, c.parts)) {
                     auto l = load(logs + row * c.parts + i);
                     auto now = max(most, l);
                     auto again = exp(most - now), w = exp(l - now);
                     acc = acc * again + w * load(parts + ((row * c.parts + i) * c.D + d));
                     all = all * again + w;
                     most = now;
                   }
                   store(O + row * c.D + d, cast(acc / all, f16));
                 }).grid([](const PartsCfg&, auto, auto, auto, int rows) { return Grid{rows}; });
Register r2("page_parts", [](Env& e) {
  PartsCfg c;
  if (!e.big) c = {16, 16, 32, 3};
  c.BN = e.field("BN", c.BN), c.parts = e.field("parts", c.parts);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int B = e.big ? 64 : 3, heads = e.big ? 32 : 4, group = e.big ? 8 : 2, page = 16, D = c.D, kv = heads / group;
  const int longest = e.big ? 4096 : 70, pages = cdiv(longest, page);
  auto length = [=](size_t b) { return e.big ? 3000 + int(b) * 17 % 1096 : int(b) * 29 + 5; };
  auto q = random<half>(e, size_t(B) * heads * D), k = random<half>(e, size_t(B) * pages * page * kv * D),
       v = random<half>(e, k.n);
  auto table = filled<int32_t>(e, size_t(B) * pages, [=](size_t i) { return int((i * 7 + 3) % (B * pages)); });
  auto lengths = filled<int32_t>(e, B, [=](size_t b) { return length(b); });
  auto parts = constant<float>(e, size_t(B) * heads * c.parts * D, NAN), logs = constant<float>(e, size_t(B) * heads * c.parts, NAN);
  auto o = constant<half>(e, size_t(B) * heads * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  double total = 0;
  for (int b = 0; b < B; ++b) total += length(b);
  j.mbytes = 4e-6 * total * kv * D;
  j.add(page_parts, c, q.p, k.p, v.p, table.p, lengths.p, parts.p, logs.p, scale, B, heads, group, pages, page);
  j.add(sum_parts, c, parts.p, logs.p, o.p, B * heads);
  j.check = [=] {
    std::vector<double> want(o.n);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < heads; ++h) {
        double all = 0;
        for (int n = 0; n < length(b); ++n) {
          const size_t row = (size_t(table.at(size_t(b) * pages + n / page)) * page + n % page) * kv + h / group;
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[(size_t(b) * heads + h) * D + d] * k[row * D + d];
          all += s = std::exp(s * scale);
          for (int d = 0; d < D; ++d) want[(size_t(b) * heads + h) * D + d] += s * v[row * D + d];
        }
        for (int d = 0; d < D; ++d) want[(size_t(b) * heads + h) * D + d] /= all;
      }
    return agree(o.now(), want, 3e-3, 5e-3);
  };
  return j;
});

// --- divergence of two rows of logits (distillation), long and odd vocabulary: two walks
struct WalkCfg {
  int N = 2048;
};
auto plain_kl = kernel("user_plain_kl", [](const WalkCfg& c, Ptr<const bfloat16> s, Ptr<const bfloat16> t, Ptr<float> loss,
                                           Ptr<bfloat16> ds, I32, I32 n) {
                  auto row = cast(program_id(0), i64) * n;
                  Tile ms = -INFINITY, mt = -INFINITY, as = 0.f, at = 0.f;
                  for (auto k : range(0, n, c.N)) {
                    auto i = k + arange(0, c.N);
                    auto x = cast(load(s + row + i, {.mask = i < n, .other = -INFINITY}), f32);
                    auto y = cast(load(t + row + i, {.mask = i < n, .other = -INFINITY}), f32);
                    auto nx = max(ms, max(x)), ny = max(mt, max(y));
                    as = as * exp(ms - nx) + sum(exp(x - nx));
                    at = at * exp(mt - ny) + sum(exp(y - ny));
                    ms = nx, mt = ny;
                  }
                  auto ls = ms + log(as), lt = mt + log(at);
                  Tile acc = zeros({c.N}, f32);
                  for (auto k : range(0, n, c.N)) {
                    auto i = k + arange(0, c.N);
                    auto x = cast(load(s + row + i, {.mask = i < n, .other = 0}), f32) - ls;
                    auto y = cast(load(t + row + i, {.mask = i < n, .other = 0}), f32) - lt;
                    acc += where(i < n, exp(y) * (y - x), 0.f);
                    store(ds + row + i, cast(exp(x) - exp(y), bf16), {.mask = i < n});
                  }
                  store(loss + program_id(0), sum(acc));
                }).grid([](const WalkCfg&, auto, auto, auto, auto, int rows, int) { return Grid{rows}; });
Register r3("plain_kl", [](Env& e) {
  WalkCfg c;
  if (!e.big) c = {64};
  c.N = e.field("N", c.N);
  const int R = e.big ? 2048 : 5, n = e.big ? 128256 : 173;
  auto s = random<bfloat16>(e, size_t(R) * n, -3, 3), t = random<bfloat16>(e, size_t(R) * n, -3, 3);
  auto loss = constant<float>(e, R, NAN);
  auto ds = constant<bfloat16>(e, s.n, NAN);
  Job j;
  j.mbytes = 6e-6 * s.n;
  j.add(plain_kl, c, s.p, t.p, loss.p, ds.p, R, n);
  j.check = [=] {
    std::vector<double> want(R), wd(s.n);
    for (int r = 0; r < R; ++r) {
      double as = 0, at = 0;
      for (int i = 0; i < n; ++i) as += std::exp(s[size_t(r) * n + i]), at += std::exp(t[size_t(r) * n + i]);
      for (int i = 0; i < n; ++i) {
        const double x = s[size_t(r) * n + i] - std::log(as), y = t[size_t(r) * n + i] - std::log(at);
        want[r] += std::exp(y) * (y - x), wd[size_t(r) * n + i] = std::exp(x) - std::exp(y);
      }
    }
    auto wrong = agree(loss.now(), want, 1e-4, 1e-4);
    return wrong.empty() ? agree(ds.now(), wd, 1e-4, 1e-2) : wrong;
  };
  return j;
});

// --- regions of a picture by interpolation, mean of two samples a bin and dim: a program a region, channels in the tile
struct RegionCfg {
  int BC = 64, P = 7;
};
auto roi_align = kernel("user_roi_align", [](const RegionCfg& c, Ptr<const float> x, Ptr<const float> boxes, Ptr<float> y,
                                             I32, I32 C, I32 H, I32 W, F32 scale) {
                   auto r = program_id(0), ch = (program_id(1) * c.BC + arange(0, c.BC)).col();
                   auto bin = arange(0, 64).row();
                   auto box = boxes + r * 5;
                   auto b = cast(load(box), i32);
                   auto x0 = load(box + 1) * scale - .5f, y0 = load(box + 2) * scale - .5f;
                   auto w = (load(box + 3) * scale - .5f - x0) / c.P, h = (load(box + 4) * scale - .5f - y0) / c.P;
                   auto py = cast(bin / c.P, f32), px = cast(bin % c.P, f32);
                   Tile acc = zeros({c.BC, 64}, f32);
                   for (int s = 0; s < 4; ++s) {
                     auto yy = max(y0 + (py + (s / 2 ? .75f : .25f)) * h, 0.f), xx = max(x0 + (px + (s % 2 ? .75f : .25f)) * w, 0.f);
                     auto yl = min(cast(yy, i32), H - 1), xl = min(cast(xx, i32), W - 1);
                     auto yh = min(yl + 1, H - 1), xh = min(xl + 1, W - 1);
                     auto ly = min(yy - cast(yl, f32), 1.f), lx = min(xx - cast(xl, f32), 1.f);
                     auto at = x + (b * C + ch) * (H * W);
                     auto in = (ch < C) & (bin < c.P * c.P);
                     acc += load(at + (yl * W + xl), {.mask = in}) * (1 - ly) * (1 - lx) + load(at + (yl * W + xh), {.mask = in}) * (1 - ly) * lx +
                            load(at + (yh * W + xl), {.mask = in}) * ly * (1 - lx) + load(at + (yh * W + xh), {.mask = in}) * ly * lx;
                   }
                   store(y + ((r * C + ch) * (c.P * c.P) + bin), acc * .25f, {.mask = (ch < C) & (bin < c.P * c.P)});
                 }).grid([](const RegionCfg& c, auto, auto, auto, int R, int C, auto...) { return Grid{R, cdiv(C, c.BC)}; });
Register r4("roi_align", [](Env& e) {
  RegionCfg c;
  if (!e.big) c = {16};
  c.BC = e.field("BC", c.BC);
  const int R = e.big ? 1024 : 4, B = 2, C = e.big ? 256 : 20, H = e.big ? 200 : 12, W = e.big ? 272 : 15;
  auto x = random<float>(e, size_t(B) * C * H * W);
  auto boxes = filled<float>(e, R * 5, [&](size_t i) {
    const size_t r = i / 5, k = i % 5;
    const double wide = 4. * W, high = 4. * H;
    return float(k == 0 ? r % B : k == 1 ? (r * 37 % 50) * .01 * wide : k == 2 ? (r * 53 % 50) * .01 * high : k == 3 ? (.5 + (r * 31 % 50) * .01) * wide : (.5 + (r * 17 % 50) * .01) * high);
  });
  auto y = constant<float>(e, size_t(R) * C * 49, NAN);
  Job j;
  j.mbytes = 4e-6 * y.n;
  j.add(roi_align, c, x.p, boxes.p, y.p, R, C, H, W, .25f);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (size_t i = 0; i < y.n; ++i) {
      const size_t r = i / 49 / C, ch = i / 49 % C;
      const double x0 = boxes[r * 5 + 1] * .25 - .5, y0 = boxes[r * 5 + 2] * .25 - .5;
      const double w = (boxes[r * 5 + 3] * .25 - .5 - x0) / 7, h = (boxes[r * 5 + 4] * .25 - .5 - y0) / 7;
      for (int s = 0; s < 4; ++s) {
        const double yy = std::max(y0 + (int(i % 49) / 7 + (s / 2 ? .75 : .25)) * h, 0.), xx = std::max(x0 + (int(i % 49) % 7 + (s % 2 ? .75 : .25)) * w, 0.);
        const int yl = std::min(int(yy), H - 1), xl = std::min(int(xx), W - 1), yh = std::min(yl + 1, H - 1), xh = std::min(xl + 1, W - 1);
        const double ly = std::min(yy - yl, 1.), lx = std::min(xx - xl, 1.);
        const size_t at = (size_t(boxes[r * 5]) * C + ch) * H * W;
        want[i] += .25 * (x[at + yl * W + xl] * (1 - ly) * (1 - lx) + x[at + yl * W + xh] * (1 - ly) * lx + x[at + yh * W + xl] * ly * (1 - lx) + x[at + yh * W + xh] * ly * lx);
      }
    }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- means of windows of a volume, 3 x 3 x 3 with steps of 2
struct CubeCfg {
  int N = 512;
};
auto mean_cubes = kernel("user_mean_cubes", [](const CubeCfg& c, Ptr<const half> x, Ptr<half> y, I32 D, I32 H, I32 W, I32 OD,
                                               I32 OH, I32 OW, I32 all) {
                    auto i = program_id(0) * c.N + arange(0, c.N);
                    auto ow = i % OW, oh = i / OW % OH, od = i / (OW * OH) % OD, p = i / (OW * OH * OD);
                    Tile acc = zeros({c.N}, f32);
                    for (auto a : range(0, 3))
                      for (auto b : range(0, 3))
                        for (auto s : range(0, 3)) {
                          auto d = od * 2 + a - 1, h = oh * 2 + b - 1, w = ow * 2 + s - 1;
                          auto in = (i < all) & (d >= 0) & (d < D) & (h >= 0) & (h < H) & (w >= 0) & (w < W);
                          acc += cast(load(x + (((p * D + d) * H + h) * W + w), {.mask = in, .other = 0}), f32);
                        }
                    store(y + i, cast(acc / 27.f, f16), {.mask = i < all});
                  }).grid([](const CubeCfg& c, auto, auto, int, int, int, int, int, int, int all) { return Grid{cdiv(all, c.N)}; });
Register r5("mean_cubes", [](Env& e) {
  CubeCfg c;
  if (!e.big) c = {64};
  c.N = e.field("N", c.N);
  const int P = e.big ? 128 : 2, D = e.big ? 64 : 5, H = e.big ? 128 : 6, W = e.big ? 128 : 9, OD = (D - 1) / 2 + 1,
            OH = (H - 1) / 2 + 1, OW = (W - 1) / 2 + 1;
  auto x = random<half>(e, size_t(P) * D * H * W), y = constant<half>(e, size_t(P) * OD * OH * OW, NAN);
  Job j;
  j.mbytes = 2e-6 * (x.n + y.n);
  j.add(mean_cubes, c, x.p, y.p, D, H, W, OD, OH, OW, int(y.n));
  j.check = [=] {
    std::vector<double> want(y.n);
    for (size_t i = 0; i < y.n; ++i)
      for (int k = 0; k < 27; ++k) {
        const int w = int(i % OW) * 2 + k % 3 - 1, h = int(i / OW % OH) * 2 + k / 3 % 3 - 1, d = int(i / OW / OH % OD) * 2 + k / 9 - 1;
        if (w >= 0 && w < W && h >= 0 && h < H && d >= 0 && d < D) want[i] += x[((i / OW / OH / OD * D + d) * H + h) * W + w] / 27;
      }
    return agree(y.now(), want, 1e-3, 2e-3);
  };
  return j;
});

}  // namespace first_attentions
}  // namespace users
