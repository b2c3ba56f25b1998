// optimisers.cpp - steps of training that are not products of big matrices: many tensors by a table of addresses, roots
// of matrices by iteration until they are good, gradients of modulated norms.
#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace optimisers {

// --- LAMB over a list of tensors: chunks of all tensors in one launch, norms of a tensor by atomics, then the step
struct LambCfg {
  int B = 2048, warps = 4;
  float beta1 = .9f, beta2 = .99f, decay = .01f, rate = .1f;
};
/// Entry i of a tensor's row of addresses, all of whose tensors begin at multiples of 16 bytes.
template <class T>
Tile tensor_at(const Tile& row, int i) {
  return pointer_to<T>(multiple_of(load(row + i), 16));
}
auto lamb_moments =
    kernel("user_lamb_moments", [](const LambCfg& c, Ptr<const int64_t> addresses, Ptr<const int32_t> chunks,
                                   Ptr<float> norms, F32 correct1, F32 correct2) {
      // addresses [tensors, 5]: w (bf16), g (bf16), m (f32), v (f32), u (f32); chunks [n, 3]: tensor, start, size
      num_warps(c.warps);
      auto i = program_id(0);
      auto tensor = load(chunks + 3 * i), start = multiple_of(load(chunks + 3 * i + 1), 64),
           size = load(chunks + 3 * i + 2);
      auto at = start + arange(0, c.B);
      auto inside = at < size;
      auto row = addresses + 5 * tensor;
      auto w = cast(load(tensor_at<const bfloat16>(row, 0) + at, {.mask = inside}), f32);
      auto g = cast(load(tensor_at<const bfloat16>(row, 1) + at, {.mask = inside}), f32);
      auto mp = tensor_at<float>(row, 2) + at, vp = tensor_at<float>(row, 3) + at;
      auto m = c.beta1 * load(mp, {.mask = inside}) + (1 - c.beta1) * g;
      auto v = c.beta2 * load(vp, {.mask = inside}) + (1 - c.beta2) * g * g;
      store(mp, m, {.mask = inside});
      store(vp, v, {.mask = inside});
      auto u = m * correct1 / (sqrt(v * correct2) + 1e-6f) + c.decay * w;
      store(tensor_at<float>(row, 4) + at, u, {.mask = inside});
      atomic_add(norms + 2 * tensor, sum(w * w), {.order = Order::relaxed});
      atomic_add(norms + 2 * tensor + 1, sum(where(inside, u * u, 0.f)), {.order = Order::relaxed});
    }).grid([](const LambCfg&, auto*, auto*, auto*, float, float) { return Grid{1}; });
auto lamb_step = kernel("user_lamb_step", [](const LambCfg& c, Ptr<const int64_t> addresses, Ptr<const int32_t> chunks,
                                             Ptr<const float> norms) {
                   num_warps(c.warps);
                   auto i = program_id(0);
                   auto tensor = load(chunks + 3 * i), start = multiple_of(load(chunks + 3 * i + 1), 64),
                        size = load(chunks + 3 * i + 2);
                   auto at = start + arange(0, c.B);
                   auto inside = at < size;
                   auto wn = load(norms + 2 * tensor), un = load(norms + 2 * tensor + 1);
                   auto trust = where((wn > 0.f) & (un > 0.f), sqrt(wn / un), 1.f);
                   auto row = addresses + 5 * tensor;
                   auto wp = tensor_at<bfloat16>(row, 0) + at;
                   auto u = load(tensor_at<const float>(row, 4) + at, {.mask = inside});
                   store(wp, cast(cast(load(wp, {.mask = inside}), f32) - c.rate * trust * u, bf16), {.mask = inside});
                 }).grid([](const LambCfg&, auto*, auto*, auto*) { return Grid{1}; });
Register r1("lamb", [](Env& e) {
  std::vector<int> sizes;
  if (e.big)
    for (int i = 0; i < 96; ++i) sizes.push_back(i % 3 ? 1024 * 1024 : 4096 + i);
  else
    sizes = {5000, 17, 2048, 4097};
  int n = int(sizes.size()), total = 0;
  LambCfg cfg;
  cfg.B = e.field("B", 2048), cfg.warps = e.field("warps", 4);
  std::vector<int> starts;
  std::vector<int32_t> list;
  for (int t = 0; t < n; ++t) {
    starts.push_back(total);
    for (int s = 0; s < sizes[t]; s += cfg.B) list.insert(list.end(), {t, s, sizes[t]});
    total += (sizes[t] + 63) / 64 * 64;
  }
  auto w = random<bfloat16>(e, total), g = random<bfloat16>(e, total), w0 = w;
  auto m = random<float>(e, total, -.1, .1), v = random<float>(e, total, 0, .1), u = constant<float>(e, total, NAN);
  auto norms = constant<float>(e, 2 * n, 0);
  auto table = filled<int64_t>(e, 5 * n, [&](size_t i) {
    const int at = starts[i / 5];
    return i % 5 == 0   ? reinterpret_cast<int64_t>(w.p + at)
           : i % 5 == 1 ? reinterpret_cast<int64_t>(g.p + at)
                        : reinterpret_cast<int64_t>((i % 5 == 2   ? m.p
                                                     : i % 5 == 3 ? v.p
                                                                  : u.p) +
                                                    at);
  });
  auto chunks = filled<int32_t>(e, list.size(), [&](size_t i) { return list[i]; });
  const int programs = int(list.size() / 3);
  Job j;
  j.mbytes = 34e-6 * total;
  j.add(lamb_moments.grid([=](const LambCfg&, auto*, auto*, auto*, float, float) { return Grid{programs}; }), cfg,
        table.p, chunks.p, norms.p, 2.f, 3.f);
  j.add(lamb_step.grid([=](const LambCfg&, auto*, auto*, auto*) { return Grid{programs}; }), cfg, table.p, chunks.p,
        norms.p);
  j.check = [=] {
    std::vector<double> want(total);
    for (int i = 0; i < total; ++i) want[i] = w0[i];
    for (int t = 0; t < n; ++t) {
      double wn = 0, un = 0;
      std::vector<double> us(sizes[t]);
      for (int i = 0; i < sizes[t]; ++i) {
        const int at = starts[t] + i;
        const double mm = .9 * m[at] + .1 * g[at], vv = .99 * v[at] + .01 * g[at] * g[at];
        us[i] = mm * 2 / (std::sqrt(vv * 3) + 1e-6) + .01 * w0[at];
        wn += w0[at] * w0[at], un += us[i] * us[i];
      }
      for (int i = 0; i < sizes[t]; ++i) want[starts[t] + i] -= .1 * std::sqrt(wn / un) * us[i];
    }
    return agree(w.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- Shampoo: A^(-1/4) of many symmetric matrices by coupled Newton steps, until the error is small
struct RootCfg {
  int N = 64, most = 30, warps = 4;
};
auto inverse_root = kernel("user_inverse_root", [](const RootCfg& c, Tensor<const float, 3> A, Tensor<float, 3> X,
                                                   Tensor<int32_t, 1> used) {
                      num_warps(c.warps);
                      auto b = program_id(0);
                      auto a = A.load({b, 0, 0}, {c.N, c.N});
                      auto identity = where(arange(0, c.N).col() == arange(0, c.N).row(), 1.f, 0.f);
                      auto z = 5.f / (2.f * sqrt(sum(a * a)));
                      Tile m = a * z, x = identity * sqrt(sqrt(z)), error = max(abs(m - identity)), steps = 0;
                      while_([&] { return (error > 1e-5f) & (steps < c.most); },
                             [&] {
                               auto t = 1.25f * identity - .25f * m;
                               auto t2 = dot(t, t, Prec::ieee);
                               m = dot(dot(t2, t2), m);
                               x = dot(x, t);
                               error = max(abs(m - identity));
                               steps += 1;
                             });
                      X.store({b, 0, 0}, x);
                      store(used.ptr() + b, steps);
                    }).grid([](const RootCfg&, const auto& a, const auto&...) { return Grid{a.shape[0]}; });
Register r2("inverse_root", [](Env& e) {
  int B = e.big ? 1024 : 3, N = e.big ? 64 : 32;
  std::vector<double> all;  // I / 2 + G G^T / N
  std::vector<double> g(N * N);
  for (int b = 0; b < (e.big ? 4 : B); ++b) {
    for (double& x : g) x = e.uniform() * 2 - 1;
    for (int i = 0; i < N; ++i)
      for (int k = 0; k < N; ++k) {
        double s = i == k ? .5 : 0;
        for (int q = 0; q < N; ++q) s += g[i * N + q] * g[k * N + q] / N;
        all.push_back(s);
      }
  }
  auto a = filled<float>(e, size_t(B) * N * N, [&](size_t i) { return float(all[i % all.size()]); });
  auto x = constant<float>(e, size_t(B) * N * N, NAN);
  auto used = constant<int32_t>(e, B, 0);
  Job j;
  j.add(inverse_root, RootCfg{N, 30, e.field("warps", 4)}, a.view(B, N, N), x.view(B, N, N), used.view(B));
  j.check = [=] {  // X^4 A = I
    std::vector<double> identity(size_t(B) * N * N), got;
    const auto r = x.now();
    for (int b = 0; b < B; ++b) {
      auto at = [&, b](int i, int k) { return double(r[(size_t(b) * N + i) * N + k]); };
      auto two = product(N, N, N, at, at);
      auto four = product(
          N, N, N, [&](int i, int k) { return two[i * N + k]; }, [&](int i, int k) { return two[i * N + k]; });
      auto one = product(
          N, N, N, [&](int i, int k) { return four[i * N + k]; }, matrix(a, N, size_t(b) * N * N));
      got.insert(got.end(), one.begin(), one.end());
      for (int i = 0; i < N; ++i) identity[(size_t(b) * N + i) * N + i] = 1;
    }
    return agree(got, identity, 3e-4, 3e-4);
  };
  return j;
});

// --- y = x + gate (norm(x) (1 + scale) + shift), modulation by image (adaLN): gradients of x, gate, scale, shift
struct ModCfg {
  int BT = 16, D = 1024, parts = 8, warps = 4;
};
auto modulation_bwd =
    kernel("user_modulation_bwd", [](const ModCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 3> DY,
                                     Tensor<const bfloat16, 3> M, Tensor<bfloat16, 3> DX, Tensor<float, 4> P) {
      // X, DY, DX [images, T, D]; M [images, 3, D]: gate, scale, shift; P [parts, images, 3, D]
      num_warps(c.warps);
      auto part = program_id(0), image = program_id(1);
      auto mod = [&](int i) { return cast(M.load({image, i, 0}, {c.D}), f32).row(); };
      auto gate = mod(0), scale = 1.f + mod(1), shift = mod(2);
      auto T = X.dim(1), per = cdiv(cdiv(T, c.BT), c.parts) * c.BT;
      Tile dgate = zeros({1, c.D}, f32), dscale = zeros({1, c.D}, f32), dshift = zeros({1, c.D}, f32);
      for (auto t : range(part * per, min(part * per + per, T), c.BT)) {
        auto x = cast(X.load({image, t, 0}, {c.BT, c.D}), f32), dy = cast(DY.load({image, t, 0}, {c.BT, c.D}), f32);
        auto mean = sum(x, axis(1)) / float(c.D);
        auto xc = x - mean;
        auto r = rsqrt(sum(xc * xc, axis(1)) / float(c.D) + 1e-6f);
        auto n = xc * r;
        dgate += sum(dy * (n * scale + shift), axis(0));
        auto dz = dy * gate;
        dscale += sum(dz * n, axis(0));
        dshift += sum(dz, axis(0));
        auto dn = dz * scale;
        auto dx = dy + (dn - sum(dn, axis(1)) / float(c.D) - n * (sum(dn * n, axis(1)) / float(c.D))) * r;
        DX.store({image, t, 0}, reshape(cast(dx, bf16), {1, c.BT, c.D}));
      }
      P.store({part, image, 0, 0}, squeeze(dgate, 0));
      P.store({part, image, 1, 0}, squeeze(dscale, 0));
      P.store({part, image, 2, 0}, squeeze(dshift, 0));
    }).grid([](const ModCfg& c, const auto& x, const auto&...) {
      return Grid{c.parts, x.shape[0]};
    });
auto modulation_sums =
    kernel("user_modulation_sums", [](const ModCfg& c, Tensor<const float, 2> P, Tensor<bfloat16, 1> G) {
      num_warps(c.warps);
      auto at = program_id(0) * 256;
      G.store({at}, cast(squeeze(sum(P.load({0, at}, {c.parts, 256}), axis(0)), 0), bf16));
    }).grid([](const ModCfg&, const auto& p, const auto&) { return Grid{cdiv(p.shape[1], 256)}; });
Register r3("modulation_bwd", [](Env& e) {
  int I = e.big ? 64 : 2, T = e.big ? 1024 : 37, D = e.big ? 1024 : 128, parts = e.big ? 8 : 2;
  auto x = random<bfloat16>(e, size_t(I) * T * D, -2, 3), dy = random<bfloat16>(e, size_t(I) * T * D);
  auto m = random<bfloat16>(e, size_t(I) * 3 * D);
  auto dx = constant<bfloat16>(e, size_t(I) * T * D, NAN), g = constant<bfloat16>(e, size_t(I) * 3 * D, NAN);
  auto p = constant<float>(e, size_t(parts) * I * 3 * D, NAN);
  Job j;
  j.mbytes = 6e-6 * I * T * D;
  const ModCfg cfg{e.big ? e.field("BT", 4) : 8, D, parts, e.field("warps", 4)};
  j.add(modulation_bwd, cfg, x.view(I, T, D), dy.view(I, T, D), m.view(I, 3, D), dx.view(I, T, D),
        p.view(parts, I, 3, D));
  j.add(modulation_sums, cfg, p.view(parts, I * 3 * D), g.view(I * 3 * D));
  j.check = [=] {
    std::vector<double> want(size_t(I) * T * D), sums(size_t(I) * 3 * D);
    for (int i = 0; i < I; ++i)
      for (int t = 0; t < T; ++t) {
        const size_t base = (size_t(i) * T + t) * D;
        double mean = 0, var = 0, a = 0, b = 0;
        for (int d = 0; d < D; ++d) mean += x[base + d] / D;
        for (int d = 0; d < D; ++d) var += (x[base + d] - mean) * (x[base + d] - mean) / D;
        const double r = 1 / std::sqrt(var + 1e-6);
        auto mod = [&](int k, int d) { return m[(size_t(i) * 3 + k) * D + d]; };
        for (int d = 0; d < D; ++d) {
          const double n = (x[base + d] - mean) * r, dn = dy[base + d] * mod(0, d) * (1 + mod(1, d));
          a += dn / D, b += dn * n / D;
          sums[(size_t(i) * 3) * D + d] += dy[base + d] * (n * (1 + mod(1, d)) + mod(2, d));
          sums[(size_t(i) * 3 + 1) * D + d] += dy[base + d] * mod(0, d) * n;
          sums[(size_t(i) * 3 + 2) * D + d] += dy[base + d] * mod(0, d);
        }
        for (int d = 0; d < D; ++d) {
          const double n = (x[base + d] - mean) * r, dn = dy[base + d] * mod(0, d) * (1 + mod(1, d));
          want[base + d] = dy[base + d] + (dn - a - n * b) * r;
        }
      }
    auto wrong = agree(dx.now(), want, 2e-2, 1e-2);
    return wrong.empty() ? agree(g.now(), sums, 3e-2, 1e-2) : wrong;
  };
  return j;
});

}  // namespace optimisers
}  // namespace users
