// odd_axes.cpp - what is reduced or scanned is not the last axis of whole tiles: norms of images and over channels, the
// best of a middle axis, scans from the end, groups of a product's columns, pairs of them.
#include <limits>

#include "tests/users/use.h"
namespace users {
namespace odd_axes {

// --- instance norm: every image of every channel by itself, three of them a program; their rows start anywhere
struct InstanceCfg {
  int BR = 3, BN = 768, warps = 4;
};
auto instance_norm = kernel("user_instance_norm", [](const InstanceCfg& c, Tensor<const half, 2> X,
                                                     Tensor<const float, 1> weight, Tensor<const float, 1> bias,
                                                     Tensor<half, 2> Y, Tensor<float, 2> stats, I32 channels) {
  // X, Y [N * C, H * W], stats [2, N * C]: mean and 1 / deviation
  num_warps(c.warps);
  auto r = program_id(0) * c.BR;
  auto n = X.dim(1);
  Tile count = zeros({c.BR, 1}, f32), mean = zeros({c.BR, 1}, f32), m2 = zeros({c.BR, 1}, f32);
  for (auto i : range(0, n, c.BN)) {  // Chan's formula over blocks
    auto x = cast(X.load({r, i}, {c.BR, c.BN}), f32);
    auto there = (i + arange(0, c.BN) < n).row();
    auto size = cast(min(n - i, c.BN), f32);
    auto mu = sum(x, axis(1)) / size;
    auto d = where(there, x - mu, 0.f);
    auto total = count + size, delta = mu - mean;
    mean += delta * (size / total);
    m2 += sum(d * d, axis(1)) + delta * delta * (count * size / total);
    count = total;
  }
  auto rstd = rsqrt(m2 / count + 1e-5f);
  auto rows = r + arange(0, c.BR);
  auto ch = rows % channels;
  auto in = rows < X.dim(0);
  auto w = load(weight.ptr() + ch, {.mask = in}).col() * rstd;
  auto b = load(bias.ptr() + ch, {.mask = in}).col() - mean * w;
  for (auto i : range(0, n, c.BN))
    Y.store({r, i}, cast(fma(cast(X.load({r, i}, {c.BR, c.BN}), f32), w, b), f16));
  stats.store({0, r}, squeeze(mean, 1));
  stats.store({1, r}, squeeze(rstd, 1));
}).grid([](const InstanceCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BR)}; });
Register r1("instance_norm", [](Env& e) {
  InstanceCfg c;
  if (!e.big) c = {3, 96, 2};
  c.BR = e.field("BR", c.BR), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 64 : 2, C = e.big ? 64 : 5, P = e.big ? 113 * 57 : 17 * 13;
  auto x = random<half>(e, size_t(N) * C * P, 0, 3);
  auto w = random<float>(e, C), b = random<float>(e, C);
  auto y = constant<half>(e, x.n, NAN);
  auto s = constant<float>(e, size_t(2) * N * C, NAN);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.add(instance_norm, c, x.view(N * C, P), w.view(C), b.view(C), y.view(N * C, P), s.view(2, N * C), C);
  j.check = [=] {
    std::vector<double> want(x.n), stats(s.n);
    for (int r = 0; r < N * C; ++r) {
      double mean = 0, var = 0;
      for (int i = 0; i < P; ++i) mean += x[size_t(r) * P + i] / P;
      for (int i = 0; i < P; ++i) var += std::pow(x[size_t(r) * P + i] - mean, 2) / P;
      stats[r] = mean, stats[N * C + r] = 1 / std::sqrt(var + 1e-5);
      for (int i = 0; i < P; ++i)
        want[size_t(r) * P + i] = (x[size_t(r) * P + i] - mean) * stats[N * C + r] * w[r % C] + b[r % C];
    }
    const auto wrong = agree(y.now(), want, 2e-3, 2e-3);
    return wrong.empty() ? agree(s.now(), stats, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- rms norm over 96 channels of images, channels first, and the sum of squares over channels and pixels of a tile
struct ChannelsCfg {
  int C = 96, BP = 128, warps = 4;
};
auto rms_channels = kernel("user_rms_channels", [](const ChannelsCfg& c, Tensor<const bfloat16, 3> X,
                                                   Tensor<const bfloat16, 1> weight, Tensor<bfloat16, 3> Y,
                                                   Ptr<double> energy) {
  num_warps(c.warps);  // X, Y [N, C, P], energy [N]
  auto n = program_id(1), p = program_id(0) * c.BP;
  auto x = cast(reshape(X.load({n, 0, p}, {1, c.C, c.BP}), {c.C, c.BP}), f32);
  auto squares = x * x;
  auto y = x * rsqrt(sum(squares, axis(0)) * (1.f / c.C) + 1e-6f) * cast(weight.load({0}, {c.C}), f32).col();
  Y.store({n, 0, p}, reshape(cast(y, bf16), {1, c.C, c.BP}));
  atomic_add(energy + n, cast(sum(squares), f64), {.order = Order::relaxed});
}).grid([](const ChannelsCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[2], c.BP), x.shape[0]};
});
Register r2("rms_channels", [](Env& e) {
  ChannelsCfg c;
  if (!e.big) c = {24, 32, 2};
  c.BP = e.field("BP", c.BP), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 64 : 3, C = c.C, P = e.big ? 128 * 128 : 77;
  auto x = random<bfloat16>(e, size_t(N) * C * P), w = random<bfloat16>(e, C);
  auto y = constant<bfloat16>(e, x.n, NAN);
  auto s = constant<double>(e, N, 0);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.add(rms_channels, c, x.view(N, C, P), w.view(C), y.view(N, C, P), s.p);
  j.check = [=] {
    std::vector<double> want(x.n), energy(N);
    for (int n = 0; n < N; ++n)
      for (int p = 0; p < P; ++p) {
        double sum = 0;
        auto at = [&](int k) { return (size_t(n) * C + k) * P + p; };
        for (int k = 0; k < C; ++k) sum += x[at(k)] * x[at(k)];
        for (int k = 0; k < C; ++k) want[at(k)] = x[at(k)] / std::sqrt(sum / C + 1e-6) * w[k];
        energy[n] += sum;
      }
    const auto wrong = agree(y.now(), want, 1e-3, 1e-2);
    return wrong.empty() ? agree(s.now(), energy, 1e-4, 1e-5) : wrong;
  };
  return j;
});

// --- the largest of the middle axis: its value, its first place (64 bits), and how often it occurs
struct MiddleCfg {
  int BD = 64, BN = 32, warps = 1;
};
auto arg_middle = kernel("user_arg_middle", [](const MiddleCfg& c, Tensor<const half, 3> X, Tensor<half, 2> best,
                                               Tensor<int64_t, 2> place, Tensor<int32_t, 2> often) {
  num_warps(c.warps);  // X [B, D, N]
  auto b = program_id(1), n = program_id(0) * c.BN;
  Tile top = full({1, c.BN}, -INFINITY, f16), at = zeros({1, c.BN}, i32), count = zeros({1, c.BN}, i32);
  for (auto d : range(0, X.dim(1), c.BD)) {
    auto x = reshape(X.load({b, d, n}, {1, c.BD, c.BN}, {.pad = -INFINITY}), {c.BD, c.BN});
    auto m = max(x, axis(0));
    auto first = d + argmax(x, axis(0));
    auto same = sum(cast((x == m) & (d + arange(0, c.BD) < X.dim(1)).col(), i32), axis(0));
    count = where(m > top, same, where(m == top, count + same, count));
    at = where(m > top, first, at);
    top = max(m, top);
  }
  best.store({b, n}, top);
  place.store({b, n}, cast(at, i64));
  often.store({b, n}, count);
}).grid([](const MiddleCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[2], c.BN), x.shape[0]}; });
Register r3("arg_middle", [](Env& e) {
  MiddleCfg c;
  if (!e.big) c = {8, 32, 2};
  c.BD = e.field("BD", c.BD), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 128 : 3, D = e.big ? 4096 : 29, N = e.big ? 256 : 37;
  auto x = drawn<half>(e, size_t(B) * D * N, [&] { return half(std::floor(float(e.uniform() * 64))); });
  auto best = constant<half>(e, size_t(B) * N, NAN);
  auto place = constant<int64_t>(e, best.n, -1);
  auto often = constant<int32_t>(e, best.n, -1);
  Job j;
  j.mbytes = 2e-6 * x.n;
  j.add(arg_middle, c, x.view(B, D, N), best.view(B, N), place.view(B, N), often.view(B, N));
  j.check = [=] {
    std::vector<double> m, p, o;
    for (int b = 0; b < B; ++b)
      for (int n = 0; n < N; ++n) {
        double top = -INFINITY;
        int at = 0, count = 0;
        for (int d = 0; d < D; ++d) {
          const double v = x[(size_t(b) * D + d) * N + n];
          if (v > top) top = v, at = d, count = 0;
          count += v == top;
        }
        m.push_back(top), p.push_back(at), o.push_back(count);
      }
    std::string wrong = agree(best.now(), m, 1e-9, 0);
    if (wrong.empty()) wrong = agree(place.now(), p, 1e-9, 0);
    return wrong.empty() ? agree(often.now(), o, 1e-9, 0) : wrong;
  };
  return j;
});

// --- the logarithm of the sum of exponentials of everything behind an element, from the end of every row; the sum in
// front of it, without itself, counting only what a mask shows
struct BehindCfg {
  int BR = 4, BN = 512, warps = 4;
};
auto behind = kernel("user_behind", [](const BehindCfg& c, Tensor<const float, 2> X, Tensor<const bool, 2> shown,
                                       Tensor<float, 2> lse, Tensor<float, 2> before) {
  num_warps(c.warps);  // all [R, N]
  auto r = program_id(0) * c.BR;
  auto blocks = cdiv(X.dim(1), c.BN);
  auto add = [](Tile a, Tile b) {
    auto m = max(a, b);
    return where(m == -INFINITY, m, m + log1p(exp(min(a, b) - m)));
  };
  Tile carry = full({c.BR, 1}, -INFINITY, f32), total = zeros({c.BR, 1}, f32);
  for (auto i : range(0, blocks)) {
    auto n = (blocks - 1 - i) * c.BN;
    auto x = X.load({r, n}, {c.BR, c.BN}, {.pad = -INFINITY});
    auto all = add(scan(x, axis(1), add, {.reverse = true}), broadcast_to(carry, {c.BR, c.BN}));
    lse.store({r, n}, all);
    carry = max(all, axis(1));  // a sum of positive numbers is largest where it has begun
  }
  for (auto n : range(0, X.dim(1), c.BN)) {
    auto x = where(shown.load({r, n}, {c.BR, c.BN}), X.load({r, n}, {c.BR, c.BN}), 0.f);
    before.store({r, n}, total + cumsum(x, axis(1)) - x);
    total += sum(x, axis(1));
  }
}).grid([](const BehindCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BR)}; });
Register r4("behind", [](Env& e) {
  BehindCfg c;
  if (!e.big) c = {2, 32, 2};
  c.BR = e.field("BR", c.BR), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int R = e.big ? 16384 : 5, N = e.big ? 4096 : 101;
  auto x = random<float>(e, size_t(R) * N, -9, 9);
  auto shown = drawn<uint8_t>(e, x.n, [&] { return uint8_t(e.uniform() < .6); });
  auto l = constant<float>(e, x.n, NAN), s = constant<float>(e, x.n, NAN);
  Job j;
  j.mbytes = 17e-6 * x.n;
  const TensorView<const bool, 2> mask(reinterpret_cast<const bool*>(shown.p), {R, N});
  j.add(behind, c, x.view(R, N), mask, l.view(R, N), s.view(R, N));
  j.check = [=] {
    std::vector<double> sums(x.n), front(x.n);
    for (int r = 0; r < R; ++r) {
      double sum = 0, run = 0;
      for (int n = N - 1; n >= 0; --n) sum += std::exp(x[size_t(r) * N + n]), sums[size_t(r) * N + n] = std::log(sum);
      for (int n = 0; n < N; ++n) {
        front[size_t(r) * N + n] = run;
        if (shown.at(size_t(r) * N + n)) run += x[size_t(r) * N + n];
      }
    }
    const auto wrong = agree(l.now(), sums, 1e-4, 1e-5);
    return wrong.empty() ? agree(s.now(), front, 1e-3, 1e-5) : "before: " + wrong;
  };
  return j;
});

// --- a product, group norm over groups of 32 of its columns, clamped; the largest of every pair of columns summed over
// the row (both as KernelBench's second level has them)
struct GroupsCfg {
  int BM = 128, BN = 128, BK = 64, G = 32, stages = 3, warps = 8;
};
Tile linear(const GroupsCfg& c, Tensor<const half, 2> X, Tensor<const half, 2> W, Tensor<const float, 1> bias, Tile m,
            Tile n) {
  // X [M, K], W [N, K]
  Tile acc = broadcast_to(bias.load({n}, {c.BN}).row(), {c.BM, c.BN});
  for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
    acc = dot(X.load({m, k}, {c.BM, c.BK}), trans(W.load({n, k}, {c.BN, c.BK})), acc);
  return acc;
}
auto groups_grid = [](const GroupsCfg& c, const auto& x, const auto& w, const auto&...) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
};
auto gemm_groups = kernel("user_gemm_groups", [](const GroupsCfg& c, Tensor<const half, 2> X, Tensor<const half, 2> W,
                                                 Tensor<const float, 1> bias, Tensor<const float, 1> gain,
                                                 Tensor<const float, 1> offset, Tensor<half, 2> Y) {
  num_warps(c.warps);
  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
  const int many = c.BN / c.G;
  auto x = reshape(linear(c, X, W, bias, m, n), {c.BM, many, c.G});
  auto mean = sum(x, axis(2)) * (1.f / c.G);
  auto d = x - mean;
  auto y = d * rsqrt(sum(d * d, axis(2)) * (1.f / c.G) + 1e-5f);
  auto line = [&](auto& v) { return v.load({n}, {c.BN}).row(); };
  Y.store({m, n}, cast(clamp(reshape(y, {c.BM, c.BN}) * line(gain) + line(offset), -2.f, 2.f), f16));
}).grid(groups_grid);
auto gemm_pairs = kernel("user_gemm_pairs", [](const GroupsCfg& c, Tensor<const half, 2> X, Tensor<const half, 2> W,
                                               Tensor<const float, 1> bias, Tensor<float, 1> sums, F32 scale) {
  num_warps(c.warps);
  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
  auto pairs = max(reshape(linear(c, X, W, bias, m, n), {c.BM, c.BN / 2, 2}), axis(2));
  sums.atomic_add({m}, squeeze(sum(squeeze(pairs, 2), axis(1)), 1) * scale);
}).grid(groups_grid);
Register r5("gemm_groups", [](Env& e) {
  GroupsCfg c;
  if (!e.big) c = {32, 32, 32, 8, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 41, N = e.big ? 4096 : 64, K = e.big ? 4096 : 72, G = c.G;
  auto x = random<half>(e, size_t(M) * K), w = random<half>(e, size_t(N) * K);
  auto b = random<float>(e, N), g = random<float>(e, N), o = random<float>(e, N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  auto s = constant<float>(e, M, 0);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(gemm_groups, c, x.view(M, K), w.view(N, K), b.view(N), g.view(N), o.view(N), y.view(M, N));
  j.add(gemm_pairs, c, x.view(M, K), w.view(N, K), b.view(N), s.view(M), .5f);
  j.check = [=] {
    const auto v = product(M, N, K, matrix(x, K), [&](int k, int n) { return w[size_t(n) * K + k]; },
                           [&](double sum, int, int n) { return sum + b[n]; });
    std::vector<double> want(v.size()), sums(M);
    for (size_t i = 0; i < v.size(); i += G) {
      double mean = 0, var = 0;
      for (int k = 0; k < G; ++k) mean += v[i + k] / G;
      for (int k = 0; k < G; ++k) var += (v[i + k] - mean) * (v[i + k] - mean) / G;
      for (size_t k = i; k < i + G; ++k)
        want[k] = std::clamp((v[k] - mean) / std::sqrt(var + 1e-5) * g[k % N] + o[k % N], -2., 2.);
    }
    for (size_t i = 0; i < v.size(); i += 2) sums[i / N] += .5 * std::max(v[i], v[i + 1]);
    const auto wrong = agree(y.now(), want, 3e-3, 2e-3);
    return wrong.empty() ? agree(s.now(), sums, 1e-2, 1e-3) : "pairs: " + wrong;
  };
  return j;
});

}  // namespace odd_axes
}  // namespace users
