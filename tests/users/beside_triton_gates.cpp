// beside_triton_gates.cpp - expert choice, 8-bit AdamW, graph attention, image preparation, Mamba2's chunk states
#include "tests/users/use.h"
namespace users {
namespace beside_triton_gates {

constexpr float kLog2e = 1.4426950408889634f;

// --- DeepSeek's gate: best 4 of 8 groups by the sum of their best two, best 8 experts of these
struct GateCfg {
  int BT = 8, E = 256, G = 8, GROUPS = 4, TOP = 8, warps = 0, form = 0;
};
auto deepseek_gate =
    kernel("user_deepseek_gate", [](const GateCfg& c, Tensor<const float, 2> X, Ptr<const float> bias,
                                    Tensor<int, 2> index, Tensor<float, 2> weight, F32 factor) {
      if (c.warps) num_warps(c.warps);
      auto t = program_id(0) * c.BT;
      const int per = c.E / c.G;
      auto score = sigmoid(X.load({t, 0}, {c.BT, c.E}));
      auto chosen = reshape(score + load(bias + arange(0, c.E)).row(), {c.BT, c.G, per});
      auto [first, at] = max_with_index(chosen, axis(2));
      auto rest = where(reshape(arange(0, per), {1, 1, per}) == at, -INFINITY, chosen);
      auto group = squeeze(first + max(rest, axis(2)), 2);
      auto [v, g] = topk(group, c.GROUPS, axis(1));
      (void)v;
      auto keep = put(zeros({c.BT, c.G}, i32), g, ones({c.BT, c.GROUPS}, i32), 1) != 0;
      auto left = reshape(where(expand_dims(keep, 2), chosen, -INFINITY), {c.BT, c.E});
      if (c.form == 0) {
        auto [w, e] = topk(left, c.TOP, axis(1));
        (void)w;
        auto s = take(score, e, 1);
        index.store({t, 0}, e);
        weight.store({t, 0}, s / (sum(s, axis(1)) + 1e-20f) * factor);
      } else {  // the best, TOP times
        auto column = arange(0, c.E).row(), slot = arange(0, c.TOP).row();
        Tile e = zeros({c.BT, c.TOP}, i32), s = zeros({c.BT, c.TOP}, f32);
        for (int i = 0; i < c.TOP; ++i) {
          auto best = argmax(left, axis(1));
          auto hit = column == best;
          s = where(slot == i, sum(where(hit, score, 0.f), axis(1)), s);
          e = where(slot == i, best, e);
          left = where(hit, -INFINITY, left);
        }
        index.store({t, 0}, e);
        weight.store({t, 0}, s / (sum(s, axis(1)) + 1e-20f) * factor);
      }
    }).grid([](const GateCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BT)}; });
Register r1("deepseek_gate", [](Env& e) {
  const int T = e.big ? 65536 : 37, E = 256, TOP = 8;
  GateCfg c;
  c.BT = e.field("BT", c.BT), c.warps = e.field("warps", c.warps), c.form = e.field("form", c.form);
  auto x = random<float>(e, size_t(T) * E, -3, 3), bias = random<float>(e, E, -.2, .2);
  auto index = constant<int>(e, size_t(T) * TOP, -1);
  auto weight = constant<float>(e, size_t(T) * TOP, NAN);
  Job j;
  j.mbytes = 1e-6 * T * (E * 4 + TOP * 8);
  j.add(deepseek_gate, c, x.view(T, E), bias.p, index.view(T, TOP), weight.view(T, TOP), 2.5f);
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(T) * TOP);
    const auto got = index.now();
    for (int t = 0; t < T; ++t) {
      std::vector<double> s(E), b(E);
      for (int i = 0; i < E; ++i) s[i] = 1 / (1 + std::exp(-x[size_t(t) * E + i])), b[i] = s[i] + bias[i];
      std::vector<std::pair<double, int>> group, all;
      for (int g = 0; g < 8; ++g) {
        std::vector<double> v(b.begin() + g * 32, b.begin() + g * 32 + 32);
        std::sort(v.rbegin(), v.rend());
        group.push_back({-(v[0] + v[1]), g});
      }
      std::sort(group.begin(), group.end());
      for (int g = 0; g < 4; ++g)
        for (int i = 0; i < 32; ++i) all.push_back({-b[group[g].second * 32 + i], group[g].second * 32 + i});
      std::sort(all.begin(), all.end());
      double total = 0;
      for (int i = 0; i < TOP; ++i) {
        total += s[all[i].second];
        if (got[size_t(t) * TOP + i] != all[i].second)
          return "token " + std::to_string(t) + " place " + std::to_string(i) + ": expert " +
                 std::to_string(got[size_t(t) * TOP + i]) + " instead of " + std::to_string(all[i].second);
      }
      for (int i = 0; i < TOP; ++i) want[size_t(t) * TOP + i] = 2.5 * s[all[i].second] / total;
    }
    return agree(weight.now(), want, 1e-5, 1e-4);
  };
  return j;
});

// --- AdamW with moments of 8 bits: codes of tables of 256, the largest magnitude of every 256 beside them
struct AdamCfg {
  int R = 4, warps = 0, form = 0;
};
auto adamw8 =
    kernel("user_adamw8", [](const AdamCfg& c, Tensor<bfloat16, 2> P, Tensor<const bfloat16, 2> G, Tensor<uint8_t, 2> M,
                             Tensor<uint8_t, 2> V, Ptr<float> mmax, Ptr<float> vmax, Ptr<const float> mtable,
                             Ptr<const float> vtable, F32 lr, F32 b1, F32 b2, F32 eps, F32 decay, F32 fix1, F32 fix2) {
      // P, G, M, V [blocks, 256]; fix1, fix2: 1 / (1 - beta^step)
      if (c.warps) num_warps(c.warps);
      auto r = program_id(0) * c.R, rows = r + arange(0, c.R);
      auto in = rows < P.dim(0);
      auto entry = [&](const Ptr<const float>& table, const Tile& code) {
        if (c.form == 0) return load(table + code);
        return reshape(take(load(table + arange(0, 256)), ravel(code), 0), {c.R, 256});
      };
      auto g = cast(G.load({r, 0}, {c.R, 256}), f32), p = cast(P.load({r, 0}, {c.R, 256}), f32);
      auto state = [&](const Tensor<uint8_t, 2>& codes, const Ptr<float>& most, const Ptr<const float>& table) {
        return entry(table, cast(codes.load({r, 0}, {c.R, 256}), i32)) * load(most + rows, {.mask = in}).col();
      };
      auto m = state(M, mmax, mtable) * b1 + g * (1.f - b1);
      auto v = state(V, vmax, vtable) * b2 + g * g * (1.f - b2);
      auto step = m * fix1 / (sqrt(v * fix2) + eps);
      P.store({r, 0}, cast(p * (1.f - lr * decay) - step * lr, bf16));
      auto keep = [&](const Tile& x, const Tensor<uint8_t, 2>& codes, const Ptr<float>& most,
                      const Ptr<const float>& table) {
        auto top = max(abs(x), axis(1));
        auto y = x / where(top > 0.f, top, 1.f);
        Tile at = zeros({c.R, 256}, i32);  // the last entry not above y
        for (int s = 128; s; s /= 2) at = where(y >= entry(table, at + s), at + s, at);
        auto up = min(at + 1, 255);
        at = where(entry(table, up) - y < y - entry(table, at), up, at);
        codes.store({r, 0}, cast(at, u8));
        store(most + rows, squeeze(top, 1), {.mask = in});
      };
      keep(m, M, mmax, mtable);
      keep(v, V, vmax, vtable);
    }).grid([](const AdamCfg& c, const auto& p, const auto&...) { return Grid{cdiv(p.shape[0], c.R)}; });
Register r2("adamw8", [](Env& e) {
  const int N = e.big ? 131072 : 11;  // blocks of 256
  AdamCfg c;
  c.R = e.field("R", c.R), c.warps = e.field("warps", c.warps), c.form = e.field("form", c.form);
  const size_t n = size_t(N) * 256;
  std::vector<float> mt(256), vt(256);
  for (int i = 0; i < 256; ++i) vt[i] = float(std::pow(i / 255., 3)), mt[i] = float(std::pow((i - 127) / 128., 3));
  auto p = random<bfloat16>(e, n), g = random<bfloat16>(e, n, -.1, .1);
  auto m = integers<uint8_t>(e, n, 0, 256), v = integers<uint8_t>(e, n, 0, 256);
  auto mm = random<float>(e, N, .01, .05), vm = random<float>(e, N, .0001, .001);
  auto mtable = repeated<float>(e, 256, mt), vtable = repeated<float>(e, 256, vt);
  const float lr = .01f, b1 = .9f, b2 = .99f, eps = 1e-8f, decay = .1f, f1 = 1 / (1 - .9f * .9f),
              f2 = 1 / (1 - .99f * .99f);
  Job j;
  j.mbytes = 10e-6 * n;
  j.add(adamw8, c, p.view(N, 256), g.view(N, 256), m.view(N, 256), v.view(N, 256), mm.p, vm.p, mtable.p, vtable.p, lr,
        b1, b2, eps, decay, f1, f2);
  j.check = [=]() -> std::string {
    std::vector<double> wp(n), nm(n), nv(n), tm(N), tv(N);
    for (size_t i = 0; i < n; ++i) {
      const size_t b = i / 256;
      nm[i] = double(mt[m.at(i)]) * mm[b] * b1 + g[i] * (1 - double(b1));
      nv[i] = double(vt[v.at(i)]) * vm[b] * b2 + g[i] * g[i] * (1 - double(b2));
      tm[b] = std::max(tm[b], std::abs(nm[i])), tv[b] = std::max(tv[b], nv[i]);
      wp[i] = p[i] * (1 - double(lr) * decay) - lr * nm[i] * f1 / (std::sqrt(nv[i] * f2) + eps);
    }
    auto a = agree(p.now(), wp, 1e-3, 8e-3), x = agree(mm.now(), tm, 1e-7, 1e-5), y = agree(vm.now(), tv, 1e-9, 1e-5);
    if (!a.empty() || !x.empty() || !y.empty()) return "parameters " + a + ", largest " + x + y;
    auto nearest = [&](const std::vector<uint8_t>& code, const std::vector<float>& t, const auto& want,
                       const auto& top) {
      for (size_t i = 0; i < n; ++i) {
        const double w = want[i] / top[i / 256];
        double least = 9;
        for (float q : t) least = std::min(least, std::abs(q - w));
        if (std::abs(t[code[i]] - w) > least + 1e-5) return "code " + std::to_string(i) + " is not the nearest; ";
      }
      return std::string();
    };
    return nearest(m.now(), mt, nm, tm) + nearest(v.now(), vt, nv, tv);
  };
  return j;
});

// --- GATv2 over CSR: score = a . leaky(x_j + y_i), softmax over the neighbours, weighted sum of x_j, bias, ELU
struct GatCfg {
  int BN = 16, H = 4, C = 64, stages = 0, warps = 0;
};
auto gatv2 = kernel("user_gatv2", [](const GatCfg& c, Tensor<const half, 2> X, Tensor<const half, 2> Y,
                                     Ptr<const float> att, Ptr<const int> first, Ptr<const int> neighbour,
                                     Ptr<const float> bias, Tensor<half, 2> O, F32 slope) {
               // X, Y, O [nodes, H * C]
               if (c.warps) num_warps(c.warps);
               const int W = c.H * c.C;
               auto i = program_id(0);
               auto begin = load(first + i), end = load(first + i + 1);
               auto channel = arange(0, W);
               auto y = cast(Y.load({i, 0}, {1, W}), f32);
               auto a = load(att + channel).row() * kLog2e;
               Tile m = full({1, c.H}, -1e30f, f32), l = zeros({1, c.H}, f32), acc = zeros({1, c.H, c.C}, f32);
               for (auto n : range(begin, end, c.BN, {.stages = c.stages})) {
                 auto at = n + arange(0, c.BN);
                 auto in = at < end;
                 auto x = cast(X.gather(load(neighbour + at, {.mask = in, .other = -1}), 0, W), f32);
                 auto z = x + y;
                 auto part = where(z > 0.f, z, z * slope) * a;
                 auto s = squeeze(sum(reshape(part, {c.BN, c.H, c.C}), axis(2)), 2);
                 s = where(in.col(), s, -INFINITY);
                 auto m2 = max(m, max(s, axis(0)));
                 auto alpha = exp2(m - m2), p = exp2(s - m2);
                 l = l * alpha + sum(p, axis(0));
                 auto sums = sum(expand_dims(p, 2) * reshape(x, {c.BN, c.H, c.C}), axis(0));
                 acc = acc * expand_dims(alpha, 2) + sums;
                 m = m2;
               }
               auto o = reshape(acc / expand_dims(max(l, 1e-20f), 2), {W}) + load(bias + channel);
               O.store({i, 0}, cast(where(o > 0.f, o, expm1(o)), f16));
             }).grid([](const GatCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r3("gatv2", [](Env& e) {
  const int N = e.big ? 65536 : 45, H = e.big ? 4 : 3, C = e.big ? 64 : 24, W = H * C;
  GatCfg c;
  c.H = H, c.C = C;
  c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  std::vector<int> first{0}, nb;
  for (int i = 0; i < N; ++i) {
    const double u = e.uniform();
    const int degree = i == 7 ? 0 : e.big ? int(6 + 40 * u * u * u) : int(37 * u * u);
    for (int k = 0; k < degree; ++k) nb.push_back(int(e.uniform() * N));
    first.push_back(int(nb.size()));
  }
  auto x = random<half>(e, size_t(N) * W), y = random<half>(e, size_t(N) * W);
  auto att = random<float>(e, W), bias = random<float>(e, W, -.3, .3);
  auto f = repeated<int>(e, first.size(), first), neighbours = repeated<int>(e, nb.size(), nb);
  auto o = constant<half>(e, size_t(N) * W, NAN);
  Job j;
  j.mbytes = 2e-6 * W * (double(nb.size()) + 2. * N);
  j.add(gatv2, c, x.view(N, W), y.view(N, W), att.p, f.p, neighbours.p, bias.p, o.view(N, W), .2f);
  j.check = [=] {
    std::vector<double> want(size_t(N) * W);
    for (int i = 0; i < N; ++i)
      for (int h = 0; h < H; ++h) {
        double total = 0;
        const size_t r = size_t(i) * W + h * C;
        for (int k = first[i]; k < first[i + 1]; ++k) {
          const size_t q = size_t(nb[k]) * W + h * C;
          double s = 0;
          for (int d = 0; d < C; ++d) {
            const double z = x[q + d] + y[r + d];
            s += att[h * C + d] * (z > 0 ? z : .2 * z);
          }
          s = std::exp(s), total += s;
          for (int d = 0; d < C; ++d) want[r + d] += s * x[q + d];
        }
        for (int d = 0; d < C; ++d) {
          double& w = want[r + d];
          w = (total > 0 ? w / total : 0) + bias[h * C + d];
          if (w < 0) w = std::expm1(w);
        }
      }
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- images of bytes, of any size, to 224 x 224: bilinear with half-pixel centres, normalised, planes of f16
struct ImgCfg {
  int BLOCK = 1024, S = 224, warps = 0;
};
auto image_in =
    kernel("user_image_in", [](const ImgCfg& c, Ptr<const uint8_t> pixels, Ptr<const int64_t> offset,
                               Ptr<const int> size, Ptr<const float> mean, Ptr<const float> rstd, Ptr<half> O) {
      // size [images, 2]: height, width; O [images, 3, S, S]
      if (c.warps) num_warps(c.warps);
      auto i = program_id(1), p = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
      auto in = p < c.S * c.S;
      auto H = load(size + 2 * i), W = load(size + 2 * i + 1);
      auto image = pixels + load(offset + i);
      auto place = [&](const Tile& at, const Tile& n) {
        auto x = (cast(at, f32) + .5f) * (cast(n, f32) / float(c.S)) - .5f;
        x = max(x, 0.f);
        auto low = cast(x, i32);
        return std::tuple(min(low, n - 1), min(low + 1, n - 1), x - cast(low, f32));
      };
      auto [y0, y1, fy] = place(p / c.S, H);
      auto [x0, x1, fx] = place(p % c.S, W);
      auto out = O + (cast(i, i64) * (3 * c.S * c.S) + p);
      for (int k = 0; k < 3; ++k) {
        auto at = [&](const Tile& y, const Tile& x) {
          return cast(load(image + ((y * W + x) * 3 + k), {.mask = in}), f32);
        };
        auto top = at(y0, x0) * (1.f - fx) + at(y0, x1) * fx;
        auto low = at(y1, x0) * (1.f - fx) + at(y1, x1) * fx;
        auto v = (top * (1.f - fy) + low * fy) * (1 / 255.f);
        v = (v - load(mean + k)) * load(rstd + k);
        store(out + k * c.S * c.S, cast(v, f16), {.mask = in});
      }
    });
Register r4("image_in", [](Env& e) {
  const int N = e.big ? 256 : 3;
  ImgCfg c;
  c.S = e.big ? 224 : 30;
  c.BLOCK = e.field("BLOCK", c.BLOCK), c.warps = e.field("warps", c.warps);
  const int S = c.S;
  std::vector<int64_t> off;
  std::vector<int> sizes;
  int64_t total = 0;
  for (int i = 0; i < N; ++i) {
    const int h = e.big ? 240 + i * 37 % 400 : 19 + 23 * i, w = e.big ? 320 + i * 53 % 320 : 41 - 7 * i;
    off.push_back(total), sizes.push_back(h), sizes.push_back(w), total += int64_t(h) * w * 3;
  }
  auto px = integers<uint8_t>(e, total, 0, 256);
  auto offset = repeated<int64_t>(e, N, off);
  auto size = repeated<int>(e, 2 * N, sizes);
  auto mean = repeated<float>(e, 3, {.485f, .456f, .406f}),
       rstd = repeated<float>(e, 3, {1 / .229f, 1 / .224f, 1 / .225f});
  auto o = constant<half>(e, size_t(N) * 3 * S * S, NAN);
  Job j;
  j.mbytes = 1e-6 * total + 6e-6 * N * S * S;
  j.add(image_in.grid([N](const ImgCfg& c, const auto&...) {
    return Grid{cdiv(c.S * c.S, c.BLOCK), N};
  }),
        c, px.p, offset.p, size.p, mean.p, rstd.p, o.p);
  j.check = [=] {
    std::vector<double> want(size_t(N) * 3 * S * S);
    for (int i = 0; i < N; ++i)
      for (int k = 0; k < 3; ++k)
        for (int y = 0; y < S; ++y)
          for (int x = 0; x < S; ++x) {
            const int H = sizes[2 * i], W = sizes[2 * i + 1];
            const double a = std::max(0., (y + .5) * H / S - .5), b = std::max(0., (x + .5) * W / S - .5);
            auto at = [&](int u, int v) {
              return px[off[i] + (int64_t(std::min(u, H - 1)) * W + std::min(v, W - 1)) * 3 + k];
            };
            const int u = int(a), v = int(b);
            const double fy = a - u, fx = b - v;
            const double s = (at(u, v) * (1 - fx) + at(u, v + 1) * fx) * (1 - fy) +
                             (at(u + 1, v) * (1 - fx) + at(u + 1, v + 1) * fx) * fy;
            want[((size_t(i) * 3 + k) * S + y) * S + x] = (s / 255 - mean[k]) * rstd[k];
          }
    return agree(o.now(), want, 3e-3, 2e-3);
  };
  return j;
});

// --- Mamba2: the state that every chunk of 256 tokens adds, and what it leaves of the one before
struct SsdCfg {
  int L = 256, N = 128, P = 64, warps = 0, BK = 256, stages = 0;
};
auto ssd_state = kernel("user_ssd_state", [](const SsdCfg& c, Tensor<const bfloat16, 4> X, Tensor<const bfloat16, 4> Bm,
                                             Tensor<const bfloat16, 3> dt, Ptr<const float> A, Ptr<const float> dt_bias,
                                             Tensor<float, 5> states, Tensor<float, 3> decay) {
                   // X [B, T, H, P]; Bm [B, T, groups, N]; dt [B, T, H]; states [B, chunks, H, P, N];
                   // decay [B, chunks, H]
                   if (c.warps) num_warps(c.warps);
                   auto h = program_id(0), i = program_id(1), b = program_id(2);
                   auto g = h / (X.dim(2) / Bm.dim(2));
                   auto a = load(A + h), bias = load(dt_bias + h);
                   auto step = [&](const Tile& t, int n) {
                     auto x = cast(dt.load({b, t, only(h)}, {n}), f32) + bias;
                     x = where(x > 20.f, x, log1p(exp(min(x, 20.f))));
                     return where(t + arange(0, n) < X.dim(1), x, 0.f);
                   };
                   auto part = [&](const Tile& t, int n, const Tile& weight, const Tile& acc) {
                     auto x = X.load({b, t, only(h), 0}, {n, c.P});
                     auto y = cast(cast(x, f32) * weight.col(), bf16);
                     return dot(trans(y), Bm.load({b, t, only(g), 0}, {n, c.N}), acc);
                   };
                   auto t = i * c.L;
                   Tile all = zeros({}, f32), acc = zeros({c.P, c.N}, f32);
                   if (c.BK == c.L) {
                     auto s = step(t, c.L);
                     auto da = cumsum(s * a, axis(0));
                     all = sum(s) * a;
                     acc = part(t, c.L, exp(all - da) * s, acc);
                   } else {  // from the end, in parts
                     for (auto k : range(c.L - c.BK, -1, -c.BK, {.stages = c.stages})) {
                       auto s = step(t + k, c.BK);
                       auto behind = cumsum(s * a, axis(0), {.reverse = true, .exclusive = true});
                       acc = part(t + k, c.BK, exp(behind + all) * s, acc);
                       all += sum(s) * a;
                     }
                   }
                   states.store({b, i, h, 0, 0}, acc);
                   decay.store({b, i, h}, exp(all));
                 }).grid([](const SsdCfg& c, const auto& x, const auto&...) {
  return Grid{x.shape[2], cdiv(x.shape[1], c.L), x.shape[0]};
});
Register r5("ssd_chunk_ends", [](Env& e) {
  const int B = e.big ? 4 : 2, T = e.big ? 4096 : 87, H = e.big ? 64 : 4, G = e.big ? 1 : 2;
  SsdCfg c;
  if (!e.big) c.L = 32, c.N = 48, c.P = 16, c.BK = 32;
  c.BK = e.field("BK", c.BK), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int N = c.N, P = c.P, chunks = (T + c.L - 1) / c.L, L = c.L;
  auto x = random<bfloat16>(e, size_t(B) * T * H * P), bm = random<bfloat16>(e, size_t(B) * T * G * N);
  auto dt = random<bfloat16>(e, size_t(B) * T * H, -4, 1);
  auto A = random<float>(e, H, -2, -.05), bias = random<float>(e, H, -1, 1);
  auto st = constant<float>(e, size_t(B) * chunks * H * P * N, NAN),
       dec = constant<float>(e, size_t(B) * chunks * H, NAN);
  Job j;
  j.gflop = 2e-9 * B * T * double(H) * P * N, j.mbytes = 2e-6 * B * T * H * P + 4e-6 * B * chunks * double(H) * P * N;
  j.add(ssd_state, c, x.view(B, T, H, P), bm.view(B, T, G, N), dt.view(B, T, H), A.p, bias.p,
        st.view(B, chunks, H, P, N), dec.view(B, chunks, H));
  j.check = [=] {
    std::vector<double> want(size_t(B) * chunks * H * P * N), wd(size_t(B) * chunks * H);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < chunks; ++i)
        for (int h = 0; h < H; ++h) {
          double all = 0;
          const size_t r = (size_t(b) * chunks + i) * H + h;
          for (int t = std::min(T, (i + 1) * L) - 1; t >= i * L; --t) {
            const size_t at = size_t(b) * T + t;
            const double s = std::log1p(std::exp(dt[at * H + h] + bias[h])), w = std::exp(all) * s;
            all += s * A[h];
            for (int p = 0; p < P; ++p)
              for (int n = 0; n < N; ++n)
                want[(r * P + p) * N + n] += w * x[(at * H + h) * P + p] * bm[(at * G + h / (H / G)) * N + n];
          }
          wd[r] = std::exp(all);
        }
    auto a = agree(st.now(), want, 1e-2, 1e-2), d = agree(dec.now(), wd, 1e-4, 1e-3);
    return !a.empty() ? a : !d.empty() ? "decay " + d : "";
  };
  return j;
});
}  // namespace beside_triton_gates
}  // namespace users
