// beside_triton_updates.cpp - rows and elements: dit_block, ring_sum8, ema_foreach, dice_focal
#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace beside_triton_updates {

// --- adaLN: h = LN(x) (1 + scale) + shift, z = x + gate y, per sample; and both backward
struct DitCfg {
  int C = 1152, BR = 4, chunk = 32;
};
auto dit_modulate =
    kernel("user_dit_modulate", [](const DitCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 3> mod,
                                   Tensor<bfloat16, 3> Hout, Tensor<float, 2> mean, Tensor<float, 2> rstd, F32 eps) {
      auto t = program_id(0) * c.BR, b = program_id(1);  // X [B, T, C], mod [B, 3, C]: shift, scale, gate
      auto x = cast(X.load({only(b), t, 0}, {c.BR, c.C}), f32);
      auto mu = sum(x, axis(1)) / float(c.C);
      auto d = x - mu;
      auto r = rsqrt(sum(d * d, axis(1)) / float(c.C) + eps);
      auto shift = cast(mod.load({b, 0, 0}, {c.C}), f32).row(), scale = cast(mod.load({b, 1, 0}, {c.C}), f32).row();
      Hout.store({only(b), t, 0}, cast(d * r * (1.f + scale) + shift, bf16));
      mean.store({only(b), t}, squeeze(mu, 1));
      rstd.store({only(b), t}, squeeze(r, 1));
    }).grid([](const DitCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[1], c.BR), x.shape[0]}; });
auto dit_gate = kernel("user_dit_gate", [](const DitCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 3> Y,
                                           Tensor<const bfloat16, 3> mod, Tensor<bfloat16, 3> out) {
                  auto t = program_id(0) * c.BR, b = program_id(1);
                  auto x = cast(X.load({only(b), t, 0}, {c.BR, c.C}), f32);
                  auto y = cast(Y.load({only(b), t, 0}, {c.BR, c.C}), f32);
                  auto gate = cast(mod.load({b, 2, 0}, {c.C}), f32).row();
                  out.store({only(b), t, 0}, cast(x + gate * y, bf16));
                }).grid([](const DitCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[1], c.BR), x.shape[0]};
});
auto dit_bwd =
    kernel("user_dit_bwd", [](const DitCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 3> Y,
                              Tensor<const bfloat16, 3> mod, Tensor<const float, 2> mean, Tensor<const float, 2> rstd,
                              Tensor<const bfloat16, 3> dH, Tensor<const bfloat16, 3> dZ, Tensor<bfloat16, 3> dX,
                              Tensor<bfloat16, 3> dY, Tensor<float, 4> part) {  // part [B, chunks, 3, C]
      auto p = program_id(0), b = program_id(1);
      auto scale = cast(mod.load({b, 1, 0}, {c.C}), f32), gate = cast(mod.load({b, 2, 0}, {c.C}), f32);
      Tile dshift = zeros({c.C}, f32), dscale = zeros({c.C}, f32), dgate = zeros({c.C}, f32);
      for (auto t : range(p * c.chunk, min((p + 1) * c.chunk, X.dim(1)))) {
        auto row = [&](const Tensor<const bfloat16, 3>& a) { return cast(a.load({b, t, 0}, {c.C}), f32); };
        auto x = row(X), y = row(Y), dh = row(dH), dz = row(dZ);
        auto r = rstd.load({b, t});
        auto xhat = (x - mean.load({b, t})) * r;
        dshift += dh, dscale += dh * xhat, dgate += dz * y;
        auto g = dh * (1.f + scale);
        auto dx = r * (g - sum(g) / float(c.C) - xhat * (sum(g * xhat) / float(c.C))) + dz;
        dX.store({b, t, 0}, cast(dx, bf16));
        dY.store({b, t, 0}, cast(dz * gate, bf16));
      }
      part.store({b, p, 0, 0}, dshift);
      part.store({b, p, 1, 0}, dscale);
      part.store({b, p, 2, 0}, dgate);
    }).grid([](const DitCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[1], c.chunk), x.shape[0]}; });
struct DitSumCfg {
  int BC = 256, chunks = 32;
};
auto dit_sum = kernel("user_dit_sum", [](const DitSumCfg& c, Tensor<const float, 3> part, Tensor<bfloat16, 2> dmod) {
                 auto x = program_id(0) * c.BC, b = program_id(1);  // part [B, chunks, 3 C]
                 dmod.store({b, x}, cast(squeeze(sum(part.load({only(b), 0, x}, {c.chunks, c.BC}), axis(0)), 0), bf16));
               }).grid([](const DitSumCfg& c, const auto&, const auto& d) {
  return Grid{cdiv(d.shape[1], c.BC), d.shape[0]};
});
Register r1("dit_block", [](Env& e) {
  const int B = e.big ? 16 : 2, T = e.big ? 1024 : 37, C = e.big ? 1152 : 72;
  const size_t n = size_t(B) * T * C;
  DitCfg c{C, e.field("BR", 4), e.field("chunk", e.big ? 32 : 16)};
  const int chunks = (T + c.chunk - 1) / c.chunk;
  auto x = random<bfloat16>(e, n), y = random<bfloat16>(e, n), dh = random<bfloat16>(e, n), dz = random<bfloat16>(e, n),
       mod = random<bfloat16>(e, size_t(B) * 3 * C);
  auto h = constant<bfloat16>(e, n, NAN), z = constant<bfloat16>(e, n, NAN), dx = constant<bfloat16>(e, n, NAN),
       dy = constant<bfloat16>(e, n, NAN), dmod = constant<bfloat16>(e, size_t(B) * 3 * C, NAN);
  auto mean = constant<float>(e, size_t(B) * T, 0), rstd = constant<float>(e, size_t(B) * T, 1),
       part = constant<float>(e, size_t(B) * chunks * 3 * C, 0);
  Job j;
  j.mbytes = 2e-6 * n * 11;
  j.add(dit_modulate, c, x.view(B, T, C), mod.view(B, 3, C), h.view(B, T, C), mean.view(B, T), rstd.view(B, T), 1e-6f);
  j.add(dit_gate, c, x.view(B, T, C), y.view(B, T, C), mod.view(B, 3, C), z.view(B, T, C));
  j.add(dit_bwd, c, x.view(B, T, C), y.view(B, T, C), mod.view(B, 3, C), mean.view(B, T), rstd.view(B, T),
        dh.view(B, T, C), dz.view(B, T, C), dx.view(B, T, C), dy.view(B, T, C), part.view(B, chunks, 3, C));
  j.add(dit_sum, DitSumCfg{e.field("BC", 256), chunks}, part.view(B, chunks, 3 * C), dmod.view(B, 3 * C));
  j.check = [=]() -> std::string {
    std::vector<double> wh(n), wz(n), wx(n), wy(n), wm(size_t(B) * 3 * C);
    for (int r = 0; r < B * T; ++r) {
      const size_t o = size_t(r) * C, s = size_t(r / T) * 3 * C;
      double mu = 0, v = 0, g1 = 0, g2 = 0;
      for (int i = 0; i < C; ++i) mu += x[o + i] / C;
      for (int i = 0; i < C; ++i) v += (x[o + i] - mu) * (x[o + i] - mu) / C;
      const double q = 1 / std::sqrt(v + 1e-6);
      for (int i = 0; i < C; ++i) {
        const double xh = (x[o + i] - mu) * q, g = dh[o + i] * (1 + mod[s + C + i]);
        g1 += g / C, g2 += g * xh / C;
        wh[o + i] = xh * (1 + mod[s + C + i]) + mod[s + i], wz[o + i] = x[o + i] + mod[s + 2 * C + i] * y[o + i];
        wy[o + i] = dz[o + i] * mod[s + 2 * C + i];
        wm[s + i] += dh[o + i], wm[s + C + i] += dh[o + i] * xh, wm[s + 2 * C + i] += dz[o + i] * y[o + i];
      }
      for (int i = 0; i < C; ++i)
        wx[o + i] = q * (dh[o + i] * (1 + mod[s + C + i]) - g1 - (x[o + i] - mu) * q * g2) + dz[o + i];
    }
    for (auto& [name, got, want] : {std::tuple("h ", h.now(), wh), std::tuple("z ", z.now(), wz),
                                    std::tuple("dx ", dx.now(), wx), std::tuple("dy ", dy.now(), wy),
                                    std::tuple("dmod ", dmod.now(), wm)})
      if (auto a = agree(got, want, 1e-2, 1e-2); !a.empty()) return name + a;
    return "";
  };
  return j;
});

// --- eight peers' buffers by a table of addresses, summed in f32, + residual, RMS norm, e4m3 in groups of 128
struct RingCfg {
  int H = 4096, G = 128, peers = 8;
};
auto ring_sum8 =
    kernel("user_ring_sum8", [](const RingCfg& c, Ptr<const uint64_t> table, Tensor<bfloat16, 2> residual,
                                Tensor<const bfloat16, 2> before, Tensor<const bfloat16, 1> gamma,
                                Tensor<fp8_e4m3, 2> out, Tensor<float, 2> scales, F32 eps) {
      auto row = program_id(0);
      Tile x = cast(before.load({row, 0}, {c.H}), f32);
      for (int i = 0; i < c.peers; ++i) {
        auto p = pointer_to<const bfloat16>(multiple_of(load(table + i), 16));
        auto peer = make_view<const bfloat16>(p, {before.dim64(0), before.dim64(1)}, {before.dim64(1), 1});
        x += cast(peer.load({row, 0}, {c.H}), f32);
      }
      residual.store({row, 0}, cast(x, bf16));
      auto y = x * rsqrt(sum(x * x) / cast(before.dim(1), f32) + eps) * cast(gamma.load({0}, {c.H}), f32);
      auto groups = reshape(y, {c.H / c.G, c.G});
      auto s = max(max(abs(groups), axis(1)), 1e-10f) * (1 / 448.f);
      out.store({row, 0}, reshape(saturate(groups / s, f8e4m3), {c.H}));
      scales.store({row, 0}, squeeze(s, 1));
    }).grid([](const RingCfg&, const auto*, const auto& r, const auto&...) { return Grid{r.shape[0]}; });
Register r2("ring_sum8", [](Env& e) {
  const int R = e.big ? 4096 : 19, H = e.big ? 4096 : 384;
  const size_t n = size_t(R) * H;
  std::vector<Array<bfloat16>> peers;
  for (int i = 0; i < 8; ++i) peers.push_back(random<bfloat16>(e, n));
  auto before = random<bfloat16>(e, n), gamma = random<bfloat16>(e, H, .5, 1.5);
  auto after = constant<bfloat16>(e, n, NAN);
  auto out = constant<fp8_e4m3>(e, n, 0);
  auto scales = constant<float>(e, n / 128, NAN);
  std::vector<uint64_t> addresses;
  for (auto& p : peers) addresses.push_back(reinterpret_cast<uint64_t>(p.p));
  auto table = repeated<uint64_t>(e, 8, addresses);
  Job j;
  j.mbytes = 1e-6 * n * 21;
  j.add(ring_sum8, RingCfg{H}, table.p, after.view(R, H), before.view(R, H), gamma.view(H), out.view(R, H),
        scales.view(R, H / 128), 1e-5f);
  j.check = [=]() -> std::string {
    std::vector<double> wr(n), wq(n), ws(n / 128);
    for (int r = 0; r < R; ++r) {
      double s = 0;
      for (int i = 0; i < H; ++i) {
        double x = before[size_t(r) * H + i];
        for (auto& p : peers) x += p[size_t(r) * H + i];
        wr[size_t(r) * H + i] = x, s += x * x / H;
      }
      s = 1 / std::sqrt(s + 1e-5);
      for (int g = 0; g < H / 128; ++g) {
        double most = 1e-10;
        const size_t o = size_t(r) * H + g * 128;
        for (int i = 0; i < 128; ++i) most = std::max(most, std::abs(wr[o + i] * s * gamma[g * 128 + i]));
        ws[o / 128] = most / 448;
        for (int i = 0; i < 128; ++i) wq[o + i] = wr[o + i] * s * gamma[g * 128 + i] / (most / 448);
      }
    }
    auto a = agree(after.now(), wr, 1e-2, 5e-3), b = agree(scales.now(), ws, 1e-6, 1e-3),
         d = agree(out.now(), wq, 1e-2, .066);
    return !a.empty() ? "residual " + a : !b.empty() ? "scales " + b : d.empty() ? "" : "e4m3 " + d;
  };
  return j;
});

// --- 200 tensors by tables: norm of all gradients, then clipped update with weight decay of f32 masters, bf16 weights
// rounded stochastically, moving average of the masters
struct EmaCfg {
  int BLOCK = 2048, sums = 1024;
};
auto ema_norm = kernel("user_ema_norm", [](const EmaCfg& c, Ptr<const uint64_t> grads, Ptr<const int> sizes,
                                           Ptr<const int> owner, Ptr<const int> place, Ptr<float> partial) {
  auto p = program_id(0), t = load(owner + p);
  auto i = load(place + p) * c.BLOCK + arange(0, c.BLOCK);
  auto g = cast(load(pointer_to<const bfloat16>(multiple_of(load(grads + t), 16)) + i, {.mask = i < load(sizes + t)}), f32);
  store(partial + p, sum(g * g));
});
auto ema_total = kernel("user_ema_total", [](const EmaCfg& c, Ptr<const float> partial, Ptr<float> total, I32 n) {
                   Tile s = zeros({c.sums}, f32);
                   for (auto k : range(0, n, c.sums)) {
                     auto i = k + arange(0, c.sums);
                     s += load(partial + i, {.mask = i < n});
                   }
                   store(total, sqrt(sum(s)));
                 }).grid([](const EmaCfg&, const auto&...) { return Grid{1}; });
auto ema_update =
    kernel("user_ema_update", [](const EmaCfg& c, Ptr<const uint64_t> grads, Ptr<const uint64_t> masters,
                                 Ptr<const uint64_t> weights, Ptr<const uint64_t> averages, Ptr<const int> sizes,
                                 Ptr<const int> owner, Ptr<const int> place, Ptr<const float> total, F32 lr, F32 decay,
                                 F32 beta, F32 limit, I32 seed) {
      auto p = program_id(0), t = load(owner + p);
      auto i = load(place + p) * c.BLOCK + arange(0, c.BLOCK);
      auto in = i < load(sizes + t);
      auto at = [&](const Ptr<const uint64_t>& table) { return multiple_of(load(table + t), 16); };
      auto g = cast(load(pointer_to<const bfloat16>(at(grads)) + i, {.mask = in}), f32);
      auto wp = pointer_to<float>(at(masters)) + i, ep = pointer_to<float>(at(averages)) + i;
      auto w = load(wp, {.mask = in}), avg = load(ep, {.mask = in});
      auto clip = min(limit / (load(total) + 1e-6f), 1.f);
      w = w * (1.f - lr * decay) - lr * clip * g;
      store(wp, w, {.mask = in});
      store(ep, beta * avg + (1.f - beta) * w, {.mask = in});
      store(pointer_to<bfloat16>(at(weights)) + i,
            cast_stochastic(w, bf16, randint(seed, p * c.BLOCK + arange(0, c.BLOCK))), {.mask = in});
    });
Register r3("ema_foreach", [](Env& e) {
  EmaCfg c{e.field("BLOCK", e.big ? 2048 : 128), e.field("sums", e.big ? 1024 : 64)};
  const int count = e.big ? 200 : 7;
  std::vector<int> sizes, first{0}, owner, place;
  for (int t = 0; t < count; ++t) {
    const int n = e.big ? (t % 4 == 3 ? 1000 + 37 * t : 200000 + 999 * t) : 50 + 77 * t;
    sizes.push_back(n), first.push_back(first.back() + (n + 63) / 64 * 64);
    for (int b = 0; b * c.BLOCK < n; ++b) owner.push_back(t), place.push_back(b);
  }
  const size_t n = first.back();
  auto g = random<bfloat16>(e, n);
  auto w = random<float>(e, n), avg = random<float>(e, n);
  auto lo = constant<bfloat16>(e, n, 0);
  auto table = [&](const auto& a) {
    std::vector<uint64_t> all;
    for (int t = 0; t < count; ++t) all.push_back(reinterpret_cast<uint64_t>(a.p + first[t]));
    return repeated<uint64_t>(e, count, all);
  };
  auto tg = table(g), tw = table(w), ta = table(avg), tl = table(lo);
  auto ds = repeated<int>(e, count, sizes), down = repeated<int>(e, owner.size(), owner),
       dplace = repeated<int>(e, place.size(), place);
  const int P = int(owner.size());
  auto partial = constant<float>(e, P, 0), total = constant<float>(e, 1, 0);
  Job j;
  j.inTurn = !e.big;
  j.mbytes = 1e-6 * n * 22;
  if (!e.big) restore(e, j, w, avg);
  auto grid = [P](const auto&...) { return Grid{P}; };
  j.add(ema_norm.grid(grid), c, tg.p, ds.p, down.p, dplace.p, partial.p);
  j.add(ema_total, c, partial.p, total.p, P);
  j.add(ema_update.grid(grid), c, tg.p, tw.p, tl.p, ta.p, ds.p, down.p, dplace.p, total.p, .01f, .1f, .99f, 1.f, 77);
  j.check = [=]() -> std::string {
    double norm = 0;
    for (int t = 0; t < count; ++t)
      for (int i = 0; i < sizes[t]; ++i) norm += g[first[t] + i] * g[first[t] + i];
    const double clip = std::min(1 / (std::sqrt(norm) + 1e-6), 1.);
    std::vector<double> ww(n), we(n);
    for (size_t i = 0; i < n; ++i) ww[i] = w[i], we[i] = avg[i];
    for (int t = 0; t < count; ++t)
      for (int i = first[t]; i < first[t] + sizes[t]; ++i) {
        ww[i] = w[i] * (1 - .01 * .1) - .01 * clip * g[i];
        we[i] = .99 * avg[i] + .01 * ww[i];
      }
    auto a = agree(w.now(), ww, 1e-5, 1e-5), b = agree(avg.now(), we, 1e-5, 1e-5);
    if (!a.empty() || !b.empty()) return "masters " + a + " averages " + b;
    const auto low = lo.now();
    for (int t = 0; t < count; ++t)
      for (int i = first[t]; i < first[t] + sizes[t]; ++i)
        if (std::abs(float(low[i]) - ww[i]) > std::abs(ww[i]) / 128 + 1e-6) return "a weight is off";
    return "";
  };
  return j;
});

// --- segmentation: softmax focal loss + dice sums per class, logits [N, 19, P] bf16, label 255 ignored; and backward
struct DiceCfg {
  int K = 19, BP = 256, R = 8;
};
auto dice_fwd =
    kernel("user_dice_focal_fwd", [](const DiceCfg& c, Tensor<const bfloat16, 3> X, Tensor<const uint8_t, 2> label,
                                     Tensor<float, 3> part, F32 gamma) {  // part [3, programs, 32]
      auto n = program_id(1);
      auto k = arange(0, 32).col();
      Tile both = zeros({32, 1}, f32), probs = zeros({32, 1}, f32), count = zeros({32, 1}, f32), loss = zeros({}, f32);
      for (auto r : range(0, c.R)) {
        auto at = (program_id(0) * c.R + r) * c.BP;
        auto x = cast(X.load({only(n), 0, at}, {32, c.BP}, {.pad = -INFINITY}), f32);
        auto y = cast(label.load({n, at}, {c.BP}, {.pad = 255}), i32).row();
        auto in = y != 255, hit = (k == y) & in;
        x = where((k < c.K) & in, x, where(k < c.K, 0.f, -INFINITY));
        auto e = exp(x - max(x, axis(0)));
        auto p = where(in, e / sum(e, axis(0)), 0.f);
        auto py = sum(where(hit, p, 0.f), axis(0));
        loss += sum(where(in, -pow(max(1.f - py, 0.f), gamma) * log(max(py, 1e-20f)), 0.f));
        both += sum(where(hit, p, 0.f), axis(1)), probs += sum(p, axis(1)), count += sum(cast(cast(hit, i32), f32), axis(1));
      }
      auto at = n * num_programs(0) + program_id(0);
      part.store({0, at, 0}, squeeze(both, 1));
      part.store({1, at, 0}, squeeze(probs + count, 1));
      part.store({2, at, 0}, broadcast_to(reshape(loss, {1}), {32}));
    }).grid([](const DiceCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[2], c.BP * c.R), x.shape[0]};
    });
struct DiceSumCfg {
  int BLOCK = 64;
};
auto dice_sum = kernel("user_dice_focal_sum", [](const DiceSumCfg& c, Tensor<const float, 3> part, Tensor<float, 2> out) {
                  auto w = program_id(0);
                  Tile s = zeros({1, 32}, f32);
                  for (auto i : range(0, part.dim(1), c.BLOCK)) s += sum(part.load({only(w), i, 0}, {c.BLOCK, 32}), axis(0));
                  out.store({w, 0}, squeeze(s, 0));
                }).grid([](const DiceSumCfg&, const auto&...) { return Grid{3}; });
auto dice_bwd =
    kernel("user_dice_focal_bwd", [](const DiceCfg& c, Tensor<const bfloat16, 3> X, Tensor<const uint8_t, 2> label,
                                     Tensor<const float, 2> sums, Tensor<bfloat16, 3> dX, F32 gamma, F32 wf, F32 wd) {
      auto n = program_id(1), at = program_id(0) * c.BP;
      auto k = arange(0, 32).col();
      auto x = cast(X.load({only(n), 0, at}, {32, c.BP}), f32);
      auto y = cast(label.load({n, at}, {c.BP}, {.pad = 255}), i32).row();
      auto in = y != 255, hit = (k == y) & in;
      x = where(k < c.K, x, -INFINITY);
      auto e = exp(x - max(x, axis(0)));
      auto p = e / sum(e, axis(0));
      auto py = max(sum(where(hit, p, 0.f), axis(0)), 1e-20f), q = max(1.f - py, 1e-6f);
      // focal: d/dpy of -(1 - py)^g log py; dice of a class: 1 - 2 both / (probs + count + 1), mean of classes
      auto df = wf * (gamma * pow(q, gamma - 1.f) * log(py) - pow(q, gamma) / py);
      auto both = sums.load({0, 0}, {32}).col(), all = sums.load({1, 0}, {32}).col() + 1.f;
      auto g = wd * (2.f * both / (all * all) - where(hit, 2.f / all, 0.f)) + where(hit, df, 0.f);
      auto dx = p * (g - sum(where(k < c.K, g * p, 0.f), axis(0)));
      dX.store({only(n), 0, at}, cast(where(in, dx, 0.f), bf16));
    }).grid([](const DiceCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[2], c.BP), x.shape[0]}; });
Register r4("dice_focal", [](Env& e) {
  const int N = e.big ? 8 : 2, K = e.big ? 19 : 5, P = e.big ? 512 * 512 : 23 * 29;
  const size_t n = size_t(N) * K * P;
  DiceCfg c{K, e.field("BP", e.big ? 256 : 64), e.field("R", e.big ? 8 : 2)};
  auto x = random<bfloat16>(e, n, -3, 3);
  auto label = drawn<uint8_t>(e, size_t(N) * P, [&] { return uint8_t(e.uniform() < .1 ? 255 : int(e.uniform() * K)); });
  const int programs = N * ((P + c.BP * c.R - 1) / (c.BP * c.R));
  auto part = constant<float>(e, size_t(3) * programs * 32, 0), sums = constant<float>(e, 96, 1);
  auto dx = constant<bfloat16>(e, n, NAN);
  const float wf = e.big ? 1 : 1.f, wd = 10;
  Job j;
  j.mbytes = 1e-6 * n * 6;
  j.add(dice_fwd, c, x.view(N, K, P), label.view(N, P), part.view(3, programs, 32), 2.f);
  j.add(dice_sum, DiceSumCfg{e.field("BLOCK", 64)}, part.view(3, programs, 32), sums.view(3, 32));
  j.add(dice_bwd, c, x.view(N, K, P), label.view(N, P), sums.view(3, 32), dx.view(N, K, P), 2.f, wf, wd);
  j.check = [=]() -> std::string {
    std::vector<double> s(96), p(n), want(n);
    double loss = 0;
    for (int i = 0; i < N; ++i)
      for (int q = 0; q < P; ++q) {
        const int y = label.at(size_t(i) * P + q);
        if (y == 255) continue;
        double total = 0;
        for (int k = 0; k < K; ++k) total += std::exp(x[(size_t(i) * K + k) * P + q]);
        for (int k = 0; k < K; ++k) {
          const size_t o = (size_t(i) * K + k) * P + q;
          p[o] = std::exp(x[o]) / total;
          s[32 + k] += p[o] + (k == y);
          if (k == y) s[k] += p[o], loss -= (1 - p[o]) * (1 - p[o]) * std::log(p[o]);
        }
      }
    for (int k = 0; k < 32; ++k) s[64 + k] = loss;
    for (int i = 0; i < N; ++i)
      for (int q = 0; q < P; ++q) {
        const int y = label.at(size_t(i) * P + q);
        if (y == 255) continue;
        double dot = 0, g[19];
        for (int k = 0; k < K; ++k) {
          const double pk = p[(size_t(i) * K + k) * P + q], all = s[32 + k] + 1;
          g[k] = wd * (2 * s[k] / (all * all) - (k == y ? 2 / all : 0));
          if (k == y) g[k] += wf * (2 * (1 - pk) * std::log(pk) - (1 - pk) * (1 - pk) / pk);
          dot += g[k] * pk;
        }
        for (int k = 0; k < K; ++k) want[(size_t(i) * K + k) * P + q] = p[(size_t(i) * K + k) * P + q] * (g[k] - dot);
      }
    auto a = agree(sums.now(), s, 1e-3, 1e-3), b = agree(dx.now(), want, 1e-3, 1e-2);
    return a.empty() ? b : "sums " + a;
  };
  return j;
});
}  // namespace beside_triton_updates
}  // namespace users
