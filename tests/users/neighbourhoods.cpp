// neighbourhoods.cpp - attention of other kinds: dilated neighbourhoods of an image, padding on both sides, dropped
// weights under a slope of distances, decoding over a cache of 4-bit numbers.
#include "tests/users/use.h"
namespace users {
namespace neighbourhoods {

constexpr float kLog2e = 1.4426950408889634f;

// --- neighbourhood attention: every pixel attends to the K x K pixels around it, `dilation` apart; windows at the
// border are moved inwards
struct NeighbourCfg {
  int BM = 32, BN = 64, D = 64, K = 7, warps = 4;
};
auto neighbours =
    kernel("user_neighbours", [](const NeighbourCfg& c, Tensor<const half, 5> Q, Tensor<const half, 5> K,
                                 Tensor<const half, 5> V, Tensor<half, 5> O, I32 dilation, F32 scale) {
      // Q, K, V, O [batch, H, W, heads, D]
      num_warps(c.warps);
      auto W = Q.dim(2), H = Q.dim(1), heads = Q.dim(3);
      auto y = program_id(1), bh = program_id(2);
      auto b = bh / heads, h = bh % heads;
      auto blocks = num_programs(0) / dilation;
      auto phase = program_id(0) / blocks, i0 = program_id(0) % blocks * c.BM;
      auto columns = cdiv(W - phase, dilation), y_phase = y % dilation, rows = cdiv(H - y_phase, dilation);
      // pixels of one row and phase, as a matrix
      auto line = [&](auto& T, auto row) {
        return make_view<const half>(T.ptr() + b * T.stride(0) + row * T.stride(1) + phase * T.stride(2) + h * c.D,
                                     {columns, c.D}, {T.stride(2) * dilation, 1});
      };
      auto first = [&](auto i, auto n) { return max(min(i - c.K / 2, n - c.K), 0); };
      auto q = line(Q, y).load({i0, 0}, {c.BM, c.D});
      auto i = i0 + arange(0, c.BM);
      auto from = first(i, columns).col();
      auto j0 = first(i0, columns);
      auto j = (j0 + arange(0, c.BN)).row();
      auto near = (j >= from) & (j < from + c.K) & (j < columns);
      auto top = first(y / dilation, rows);
      Tile m = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
      for (auto r : range(top, min(top + c.K, rows))) {
        auto row = y_phase + r * dilation;
        auto s = dot(q, trans(line(K, row).load({j0, 0}, {c.BN, c.D}))) * (scale * kLog2e);
        s = where(near, s, -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto p = exp2(s - m2);
        auto a = exp2(m - m2);
        l = l * a + sum(p, axis(1));
        acc = dot(cast(p, f16), line(V, row).load({j0, 0}, {c.BN, c.D}), acc * a);
        m = m2;
      }
      make_view<half>(O.ptr() + b * O.stride(0) + y * O.stride(1) + phase * O.stride(2) + h * c.D, {columns, c.D},
                      {O.stride(2) * dilation, 1})
          .store({i0, 0}, cast(acc / l, f16));
    });
auto neighbours_in_grid = [](int batch, int H, int W, int heads, int dilation, int BM) {
  return Grid{dilation * cdiv(cdiv(W, dilation), BM), H, batch * heads};
};
Register r1("neighbours", [](Env& e) {
  NeighbourCfg c;
  if (!e.big) c = {16, 32, 32, 5, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 4 : 1, H = e.big ? 64 : 9, W = e.big ? 64 : 23, N = e.big ? 12 : 2, D = c.D, dil = 2;
  const size_t n = size_t(B) * H * W * N * D;
  auto q = random<half>(e, n), k = random<half>(e, n), v = random<half>(e, n);
  auto o = constant<half>(e, n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  auto launched = neighbours.grid([=](const NeighbourCfg& c, const auto& q, const auto&...) {
    return neighbours_in_grid(int(q.shape[0]), int(q.shape[1]), int(q.shape[2]), int(q.shape[3]), dil, c.BM);
  });
  Job j;
  j.gflop = 4e-9 * B * H * W * N * double(D) * c.K * c.K;
  j.add(launched, c, q.view(B, H, W, N, D), k.view(B, H, W, N, D), v.view(B, H, W, N, D), o.view(B, H, W, N, D), dil,
        scale);
  j.check = [=] {
    std::vector<double> want(n);
    auto at = [&](int b, int y, int x, int h) { return (((size_t(b) * H + y) * W + x) * N + h) * D; };
    auto first = [&](int i, int len) { return std::max(std::min(i - c.K / 2, len - c.K), 0); };
    for (int b = 0; b < B; ++b)
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x)
          for (int h = 0; h < N; ++h) {
            const int px = x % dil, py = y % dil, nx = (W - px + dil - 1) / dil, ny = (H - py + dil - 1) / dil;
            const int x0 = first(x / dil, nx), y0 = first(y / dil, ny);
            double total = 0;
            const size_t mine = at(b, y, x, h);
            for (int r = y0; r < std::min(y0 + c.K, ny); ++r)
              for (int s = x0; s < std::min(x0 + c.K, nx); ++s) {
                const size_t other = at(b, py + r * dil, px + s * dil, h);
                double dots = 0;
                for (int d = 0; d < D; ++d) dots += q[mine + d] * k[other + d];
                const double p = std::exp(dots * scale);
                total += p;
                for (int d = 0; d < D; ++d) want[mine + d] += p * v[other + d];
              }
            for (int d = 0; d < D; ++d) want[mine + d] /= total;
          }
    return agree(o.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- cross attention of padded batches: bytes say which queries and which keys exist
struct CrossCfg {
  int BM = 128, BN = 128, D = 64, stages = 2, warps = 8;
};
auto cross = kernel("user_cross", [](const CrossCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                     Tensor<const bfloat16, 4> V, Tensor<const uint8_t, 2> queries,
                                     Tensor<const uint8_t, 2> keys, Tensor<bfloat16, 4> O, F32 scale) {
  // Q, O [B, M, H, D], K, V [B, N, H, D], queries [B, M], keys [B, N]: 0 where there is padding
  num_warps(c.warps);
  auto m0 = program_id(0) * c.BM, h = program_id(1), b = program_id(2);
  auto q = reshape(Q.load({b, m0, h, 0}, {1, c.BM, 1, c.D}), {c.BM, c.D});
  auto alive = (queries.load({b, m0}, {c.BM}) != 0).col();
  Tile m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
  for (auto n : range(0, K.dim(1), c.BN, {.stages = c.stages})) {
    auto k = reshape(K.load({b, n, h, 0}, {1, c.BN, 1, c.D}), {c.BN, c.D});
    auto v = reshape(V.load({b, n, h, 0}, {1, c.BN, 1, c.D}), {c.BN, c.D});
    auto there = (keys.load({b, n}, {c.BN}) != 0).row();
    auto s = where(alive & there, dot(q, trans(k)) * (scale * kLog2e), -INFINITY);
    auto m2 = max(m, max(s, axis(1)));
    auto safe = where(m2 == -INFINITY, 0.f, m2);
    auto p = exp2(s - safe);
    auto a = exp2(m - safe);
    l = l * a + sum(p, axis(1));
    acc = dot(cast(p, bf16), v, acc * a);
    m = m2;
  }
  O.store({b, m0, h, 0}, reshape(cast(where(l > 0.f, acc / l, 0.f), bf16), {1, c.BM, 1, c.D}));
}).grid([](const CrossCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[2], q.shape[0]};
});
Register r2("cross_padded", [](Env& e) {
  CrossCfg c;
  if (!e.big) c = {16, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 8 : 2, M = e.big ? 4096 : 37, N = e.big ? 1024 : 71, H = e.big ? 16 : 3, D = c.D;
  auto q = random<bfloat16>(e, size_t(B) * M * H * D), k = random<bfloat16>(e, size_t(B) * N * H * D),
       v = random<bfloat16>(e, k.n);
  auto qm = filled<uint8_t>(e, size_t(B) * M, [&](size_t i) { return uint8_t(int(i % M) < M - 5 * int(i / M + 1)); });
  auto km = drawn<uint8_t>(e, size_t(B) * N, [&] { return uint8_t(e.uniform() < .8); });
  auto o = constant<bfloat16>(e, q.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * B * double(M) * N * H * D;
  j.add(cross, c, q.view(B, M, H, D), k.view(B, N, H, D), v.view(B, N, H, D), qm.view(B, M), km.view(B, N),
        o.view(B, M, H, D), scale);
  j.check = [=] {
    std::vector<double> want(q.n);
    for (int b = 0; b < B; ++b)
      for (int m = 0; m < M; ++m)
        for (int h = 0; h < H; ++h) {
          const size_t mine = ((size_t(b) * M + m) * H + h) * D;
          double total = 0;
          for (int n = 0; n < N && qm.at(size_t(b) * M + m); ++n) {
            if (!km.at(size_t(b) * N + n)) continue;
            const size_t other = ((size_t(b) * N + n) * H + h) * D;
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[mine + d] * k[other + d];
            s = std::exp(s * scale), total += s;
            for (int d = 0; d < D; ++d) want[mine + d] += s * v[other + d];
          }
          for (int d = 0; d < D && total > 0; ++d) want[mine + d] /= total;
        }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- causal attention under slopes of distances (ALiBi), a share of the weights dropped at random
struct DroppedCfg {
  int BM = 128, BN = 64, D = 64, stages = 2, warps = 8;
};
auto dropped = kernel("user_dropped", [](const DroppedCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                         Tensor<const half, 3> V, Ptr<const float> slopes, Tensor<half, 3> O,
                                         Tensor<float, 2> L, F32 scale, F32 rate, I64 seed) {
  // Q, K, V, O [BH, N, D], slopes [BH], L [BH, N]: logarithm of the sum, for the way back
  num_warps(c.warps);
  auto m0 = program_id(0) * c.BM, bh = program_id(1);
  auto N = K.dim(1);
  auto q = Q.load({bh, m0, 0}, {c.BM, c.D});
  auto i = (m0 + arange(0, c.BM)).col();
  auto slope = load(slopes + bh);
  Tile m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
  for (auto n : range(0, min(m0 + c.BM, N), c.BN, {.stages = c.stages})) {
    auto j = (n + arange(0, c.BN)).row();
    auto s = dot(q, trans(K.load({bh, n, 0}, {c.BN, c.D}))) * scale - slope * cast(i - j, f32);
    s = where((i >= j) & (j < N), s, -INFINITY);
    auto m2 = max(m, max(s, axis(1)));
    auto p = exp(s - m2), a = exp(m - m2);
    l = l * a + sum(p, axis(1));
    auto keep = rand(seed, (cast(bh, i64) * N + i) * N + j) >= rate;
    p = where(keep, p / (1.f - rate), 0.f);
    acc = dot(cast(p, f16), V.load({bh, n, 0}, {c.BN, c.D}), acc * a);
    m = m2;
  }
  O.store({bh, m0, 0}, cast(acc / l, f16));
  L.store({bh, m0}, squeeze(m + log(l), 1));
}).grid([](const DroppedCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[1], c.BM), q.shape[0]}; });
Register r3("attention_dropout", [](Env& e) {
  DroppedCfg c;
  if (!e.big) c = {32, 16, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 64 : 2, N = e.big ? 2048 : 75, D = c.D;
  auto q = random<half>(e, size_t(B) * N * D), k = random<half>(e, q.n), v = random<half>(e, q.n);
  auto slopes = filled<float>(e, B, [](size_t i) { return std::exp2(-.5f * float(i % 16 + 1)); });
  auto o = constant<half>(e, q.n, NAN);
  auto lse = constant<float>(e, size_t(B) * N, NAN);
  const float scale = 1 / std::sqrt(float(D)), rate = .1f;
  Job j;
  j.gflop = 2e-9 * B * double(N) * N * D;
  j.add(dropped, c, q.view(B, N, D), k.view(B, N, D), v.view(B, N, D), slopes.p, o.view(B, N, D), lse.view(B, N), scale,
        rate, int64_t(77));
  j.check = [=] {
    std::vector<double> want(q.n), sums;
    for (int b = 0; b < B; ++b)
      for (int m = 0; m < N; ++m) {
        double total = 0;
        const size_t mine = (size_t(b) * N + m) * D;
        for (int n = 0; n <= m; ++n) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[mine + d] * k[(size_t(b) * N + n) * D + d];
          s = std::exp(s * scale - slopes[b] * (m - n)), total += s;
          const float u = float(reference_philox(77, (uint64_t(b) * N + m) * N + n)[0] >> 8) * 0x1p-24f;
          for (int d = 0; d < D && u >= rate; ++d) want[mine + d] += s / (1 - rate) * v[(size_t(b) * N + n) * D + d];
        }
        for (int d = 0; d < D; ++d) want[mine + d] /= total;
        sums.push_back(std::log(total));
      }
    const auto wrong = agree(o.now(), want, 2e-3, 2e-3);
    return wrong.empty() ? agree(lse.now(), sums, 1e-3, 1e-3) : "sums: " + wrong;
  };
  return j;
});

// --- decoding over a cache of 4-bit numbers, a scale and an offset for every key and head
struct FourBitsCfg {
  int BN = 64, D = 128, G = 8, stages = 2, warps = 4;
};
auto four_bits =
    kernel("user_int4_cache", [](const FourBitsCfg& c, Tensor<const half, 3> Q, Tensor<const uint8_t, 4> K,
                                 Tensor<const uint8_t, 4> V, Tensor<const half, 4> k_scale,
                                 Tensor<const half, 4> v_scale, Ptr<const int32_t> lengths, Tensor<half, 3> O,
                                 F32 scale) {
      // Q, O [B, Hk * G, D], K, V [B, N, Hk, D / 2] even channels in the low nibbles, scales [B, N, Hk, 2]
      num_warps(c.warps);
      auto hk = program_id(0), b = program_id(1);
      auto length = load(lengths + b);
      auto q = Q.load({b, hk * c.G, 0}, {16, c.D});
      auto numbers = [&](auto& codes, auto& scales, auto n) {
        auto both = reshape(codes.load({b, n, hk, 0}, {1, c.BN, 1, c.D / 2}), {c.BN, c.D / 2});
        auto x = reshape(join(both & 15, both >> 4), {c.BN, c.D});
        auto two = reshape(scales.load({b, n, hk, 0}, {1, c.BN, 1, 2}), {c.BN, 2});
        auto [s, z] = split(two);
        return cast(x, f16) * s.col() + z.col();
      };
      Tile m = full({16, 1}, -INFINITY, f32), l = zeros({16, 1}, f32), acc = zeros({16, c.D}, f32);
      for (auto n : range(0, length, c.BN, {.stages = c.stages})) {
        auto there = (n + arange(0, c.BN) < length).row();
        auto s = where(there, dot(q, trans(numbers(K, k_scale, n))) * (scale * kLog2e), -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto p = exp2(s - m2), a = exp2(m - m2);
        l = l * a + sum(p, axis(1));
        acc = dot(cast(p, f16), numbers(V, v_scale, n), acc * a);
        m = m2;
      }
      auto out = cast(acc / l, f16);
      auto row = arange(0, 16).col();
      store(O.ptr() + b * O.stride(0) + (hk * c.G + row) * O.stride(1) + arange(0, c.D).row(), out,
            {.mask = row < c.G});
    }).grid([](const FourBitsCfg& c, const auto& q, const auto& k, const auto&...) {
      return Grid{k.shape[2], q.shape[0]};
    });
Register r4("int4_cache", [](Env& e) {
  FourBitsCfg c;
  if (!e.big) c = {32, 32, 4, 2, 4};
  c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 64 : 3, N = e.big ? 4096 : 70, Hk = e.big ? 8 : 2, G = c.G, D = c.D;
  auto q = random<half>(e, size_t(B) * Hk * G * D);
  auto k = integers<uint8_t>(e, size_t(B) * N * Hk * D / 2, 0, 256), v = integers<uint8_t>(e, k.n, 0, 256);
  auto ks = random<half>(e, size_t(B) * N * Hk * 2, -.1, .1), vs = random<half>(e, ks.n, -.1, .1);
  auto lengths = filled<int32_t>(e, B, [&](size_t i) { return int32_t(e.big ? N : N - 33 * int(i)); });
  auto o = constant<half>(e, q.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 1e-6 * double(B) * N * Hk * (D + 8);
  j.add(four_bits, c, q.view(B, Hk * G, D), k.view(B, N, Hk, D / 2), v.view(B, N, Hk, D / 2), ks.view(B, N, Hk, 2),
        vs.view(B, N, Hk, 2), lengths.p, o.view(B, Hk * G, D), scale);
  j.check = [=] {
    std::vector<double> want(q.n);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < Hk * G; ++h) {
        double total = 0;
        const size_t mine = (size_t(b) * Hk * G + h) * D;
        for (int n = 0; n < lengths.at(b); ++n) {
          const size_t row = (size_t(b) * N + n) * Hk + h / G;
          auto number = [&](auto& codes, auto& scales, int d) {
            return (codes.at(row * D / 2 + d / 2) >> d % 2 * 4 & 15) * scales[row * 2] + scales[row * 2 + 1];
          };
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[mine + d] * number(k, ks, d);
          s = std::exp(s * scale), total += s;
          for (int d = 0; d < D; ++d) want[mine + d] += s * number(v, vs, d);
        }
        for (int d = 0; d < D; ++d) want[mine + d] /= total;
      }
    return agree(o.now(), want, 4e-3, 4e-3);
  };
  return j;
});

}  // namespace neighbourhoods
}  // namespace users
