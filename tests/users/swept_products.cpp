// swept_products.cpp - products in the forms that people autotune, with every tile size, the number of warps and of
// stages as a field: many problems in a launch, batches, programs that stay, parts of a sum, two accumulators, chains.
#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace swept_products {

struct SweptCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8, programs = 132, group = 8, parts = 8;
};
SweptCfg swept_cfg(Env& e, SweptCfg c) {
  if (!e.big) c = {32, 32, 16, 2, 2, 5, 2, 3};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  c.parts = e.field("parts", c.parts);
  return c;
}
/// Row and column of tile `pid`, in groups of rows of tiles.
std::pair<Tile, Tile> in_groups(const SweptCfg& c, Tile pid, Tile M, Tile N) {
  auto pids_m = cdiv(M, c.BM), pids_n = cdiv(N, c.BN);
  auto wide = c.group * pids_n;
  auto first = pid / wide * c.group;
  auto size = min(pids_m - first, c.group);
  return {first + pid % wide % size, pid % wide / size};
}

// --- many problems in one launch: addresses, sizes and strides in memory, programs that walk over all their tiles.
// Sizes are multiples of the tiles: no masks
auto swept_grouped = kernel("user_swept_grouped", [](const SweptCfg& c, Ptr<const int64_t> as, Ptr<const int64_t> bs,
                                                     Ptr<const int64_t> ys, Ptr<const int32_t> sizes,
                                                     Ptr<const int32_t> lds, I32 groups) {
                       num_warps(c.warps);
                       Tile tile = program_id(0), last = full({}, 0, i32);
                       for (auto g : range(0, groups)) {
                         auto M = load(sizes + g * 3), N = load(sizes + g * 3 + 1), K = load(sizes + g * 3 + 2);
                         auto across = cdiv(N, c.BN), tiles = cdiv(M, c.BM) * across;
                         auto la = load(lds + g * 3), lb = load(lds + g * 3 + 1), ly = load(lds + g * 3 + 2);
                         while_([&] { return (tile >= last) & (tile < last + tiles); },
                                [&] {
                                  auto a = pointer_to<const half>(multiple_of(load(as + g), 16)),
                                       b = pointer_to<const half>(multiple_of(load(bs + g), 16));
                                  auto y = pointer_to<half>(multiple_of(load(ys + g), 16));
                                  auto within = tile - last;
                                  auto m = within / across * c.BM + arange(0, c.BM),
                                       n = within % across * c.BN + arange(0, c.BN);
                                  auto k = arange(0, c.BK);
                                  Tile ap = a + (m.col() * multiple_of(la, 16) + k.row()),
                                       bp = b + (k.col() * multiple_of(lb, 16) + n.row());
                                  Tile acc = zeros({c.BM, c.BN}, f32);
                                  for (auto i : range(0, cdiv(K, c.BK), {.stages = c.stages})) {
                                    acc += dot(load(ap), load(bp));
                                    ap += c.BK;
                                    bp += c.BK * multiple_of(lb, 16);
                                  }
                                  store(y + (m.col() * multiple_of(ly, 16) + n.row()), cast(acc, f16));
                                  tile += c.programs;
                                });
                         last += tiles;
                       }
                     }).grid([](const SweptCfg& c, auto...) { return Grid{c.programs}; });
Register r1("swept_grouped", [](Env& e) {
  const auto c = swept_cfg(e, {});
  const int G = 4;
  std::vector<int64_t> as, bs, ys;
  std::vector<int32_t> sizes, lds;
  std::vector<Array<half>> A, B, Y;
  double flops = 0;
  for (int g = 0; g < G; ++g) {
    const int M = e.big ? 1024 + 1024 * g : c.BM * g, N = e.big ? 4096 : 2 * c.BN,
              K = e.big    ? 2048
                  : g == 1 ? c.BK
                           : 4 * c.BK;
    A.push_back(random<half>(e, size_t(M) * K)), B.push_back(random<half>(e, size_t(K) * N));
    Y.push_back(constant<half>(e, size_t(M) * N, NAN));
    as.push_back(int64_t(A[g].p)), bs.push_back(int64_t(B[g].p)), ys.push_back(int64_t(Y[g].p));
    sizes.insert(sizes.end(), {M, N, K}), lds.insert(lds.end(), {K, N, N});
    flops += 2e-9 * M * N * K;
  }
  auto a = repeated(e, G, as), b = repeated(e, G, bs), y = repeated(e, G, ys);
  auto s = repeated(e, sizes.size(), sizes), l = repeated(e, lds.size(), lds);
  Job j;
  j.gflop = flops;
  j.add(swept_grouped, c, a.p, b.p, y.p, s.p, l.p, G);
  j.check = [=] {
    for (int g = 0; g < G; ++g) {
      const int M = sizes[g * 3], N = sizes[g * 3 + 1], K = sizes[g * 3 + 2];
      const auto wrong = agree(Y[g].now(), product(M, N, K, matrix(A[g], K), matrix(B[g], N)), 5e-3, 2e-3);
      if (!wrong.empty()) return "problem " + std::to_string(g) + ": " + wrong;
    }
    return std::string();
  };
  return j;
});

// --- batches: the second axis of the grid counts them
auto swept_bmm =
    kernel("user_swept_bmm", [](const SweptCfg& c, Ptr<const half> a, Ptr<const half> b, Ptr<half> y, I32, I32 M, I32 N,
                                I32 K, I32 ab, I32 am, I32 bb, I32 bk, I32 yb, I32 ym) {
      num_warps(c.warps);
      auto z = program_id(1);
      auto [pm, pn] = in_groups(c, program_id(0), M, N);
      auto m = (pm * c.BM + arange(0, c.BM)) % M, n = (pn * c.BN + arange(0, c.BN)) % N, k = arange(0, c.BK);
      Tile ap = a + (z * ab + m.col() * am + k.row()), bp = b + (z * bb + k.col() * bk + n.row());
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto i : range(0, cdiv(K, c.BK), {.stages = c.stages})) {
        acc += dot(load(ap, {.mask = (k < K - i * c.BK).row(), .other = 0.f}),
                   load(bp, {.mask = (k < K - i * c.BK).col(), .other = 0.f}));
        ap += c.BK;
        bp += c.BK * bk;
      }
      auto r = pm * c.BM + arange(0, c.BM), q = pn * c.BN + arange(0, c.BN);
      store(y + (z * yb + r.col() * ym + q.row()), cast(acc, f16), {.mask = (r < M).col() & (q < N).row()});
    }).grid([](const SweptCfg& c, auto, auto, auto, int B, int M, int N, auto...) {
      return Grid{cdiv(M, c.BM) * cdiv(N, c.BN), B};
    });
Register r2("swept_bmm", [](Env& e) {
  const auto c = swept_cfg(e, {});
  const int B = e.big ? 32 : 3, M = e.big ? 1024 : 37, N = e.big ? 1024 : 40, K = e.big ? 512 : 24;
  auto a = random<half>(e, size_t(B) * M * K), b = random<half>(e, size_t(B) * K * N);
  auto y = constant<half>(e, size_t(B) * M * N, NAN);
  Job j;
  j.gflop = 2e-9 * B * M * N * K;
  j.add(swept_bmm, c, a.p, b.p, y.p, B, M, N, K, M * K, K, K * N, N, M * N, N);
  j.check = [=] {
    std::vector<double> want;
    for (int z = 0; z < B; ++z) {
      auto one = product(M, N, K, matrix(a, K, size_t(z) * M * K), matrix(b, N, size_t(z) * K * N));
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(y.now(), want, 5e-3, 2e-3);
  };
  return j;
});

// --- programs that stay: each walks over its tiles, with another one's number for the store
auto swept_persistent =
    kernel("user_swept_persistent", [](const SweptCfg& c, Ptr<const half> a, Ptr<const half> b, Ptr<half> y, I32 M,
                                       I32 N, I32 K, I32 am, I32 bn, I32 ym) {
      num_warps(c.warps);
      auto start = program_id(0);
      auto tiles = cdiv(M, c.BM) * cdiv(N, c.BN);
      Tile behind = start - c.programs;
      auto k = arange(0, c.BK);
      for (auto tile : range(start, tiles, c.programs)) {
        auto [pm, pn] = in_groups(c, tile, M, N);
        auto m = pm * c.BM + arange(0, c.BM), n = pn * c.BN + arange(0, c.BN);
        m = where(m < M, m, 0), n = where(n < N, n, 0);
        Tile acc = zeros({c.BM, c.BN}, f32);
        for (auto i : range(0, cdiv(K, c.BK), {.stages = c.stages})) {
          auto at = i * c.BK + k;
          auto x = load(a + (m.col() * am + at.row()), {.mask = (k < K - i * c.BK).row(), .other = 0.f});
          auto w = load(b + (at.col() + n.row() * bn), {.mask = (k < K - i * c.BK).col(), .other = 0.f});
          acc = dot(x, w, acc);
        }
        behind += c.programs;
        auto [qm, qn] = in_groups(c, behind, M, N);
        auto r = qm * c.BM + arange(0, c.BM), q = qn * c.BN + arange(0, c.BN);
        store(y + (r.col() * ym + q.row()), cast(acc, f16), {.mask = (r < M).col() & (q < N).row()});
      }
    }).grid([](const SweptCfg& c, auto, auto, auto, int M, int N, auto...) {
      return Grid{std::min<int64_t>(c.programs, cdiv(M, c.BM) * cdiv(N, c.BN))};
    });
Register r3("swept_persistent", [](Env& e) {
  const auto c = swept_cfg(e, {});
  const int M = e.big ? 4096 : 101, N = e.big ? 4096 : 70, K = e.big ? 4096 : 56;
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(swept_persistent, c, a.p, b.p, y.p, M, N, K, K, K, N);
  j.check = [=] {
    return agree(y.now(), product(M, N, K, matrix(a, K), [&](int k, int n) { return b[size_t(n) * K + k]; }), 5e-3,
                 2e-3);
  };
  return j;
});

// --- parts of a long sum, added in memory
auto swept_splitk = kernel("user_swept_splitk", [](const SweptCfg& c, Ptr<const half> a, Ptr<const half> b, Ptr<half> y,
                                                   I32 M, I32 N, I32 K, I32 am, I32 bk, I32 ym) {
                      num_warps(c.warps);
                      auto [pm, pn] = in_groups(c, program_id(0), M, N);
                      auto z = program_id(1);
                      auto m = pm * c.BM + arange(0, c.BM), n = pn * c.BN + arange(0, c.BN),
                           k = z * c.BK + arange(0, c.BK);
                      Tile ap = a + ((m % M).col() * am + k.row()), bp = b + (k.col() * bk + (n % N).row());
                      Tile acc = zeros({c.BM, c.BN}, f32);
                      for (auto i : range(0, cdiv(K, c.BK * c.parts), {.stages = c.stages})) {
                        auto left = K - i * (c.BK * c.parts);
                        auto x = load(ap, {.mask = (k < left).row(), .other = 0.f});
                        auto w = load(bp, {.mask = (k < left).col(), .other = 0.f});
                        acc = dot(x, w, acc);
                        ap += c.BK * c.parts;
                        bp += c.BK * c.parts * bk;
                      }
                      atomic_add(y + (m.col() * ym + n.row()), cast(acc, f16), {.mask = (m < M).col() & (n < N).row()});
                    }).grid([](const SweptCfg& c, auto, auto, auto, int M, int N, auto...) {
  return Grid{cdiv(M, c.BM) * cdiv(N, c.BN), c.parts};
});
Register r4("swept_splitk", [](Env& e) {
  const auto c = swept_cfg(e, {64, 64, 64, 3, 4});
  const int M = e.big ? e.field("M", 64) : 21, N = e.big ? 4096 : 40, K = e.big ? 8192 : 200;
  auto a = random<half>(e, size_t(M) * K, -.1, .1), b = random<half>(e, size_t(K) * N);
  auto y = constant<half>(e, size_t(M) * N, 0);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(swept_splitk, c, a.p, b.p, y.p, M, N, K, K, N, N);
  j.check = [=] { return agree(y.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 1e-2, 5e-3); };
  return j;
});

// --- gate and up in one loop, and silu(gate) * up behind it
auto swept_glu =
    kernel("user_swept_glu", [](const SweptCfg& c, Ptr<const bfloat16> a, Ptr<const bfloat16> g, Ptr<const bfloat16> u,
                                Ptr<bfloat16> y, I32 M, I32 N, I32 K) {
      num_warps(c.warps);
      auto [pm, pn] = in_groups(c, program_id(0), M, N);
      auto m = (pm * c.BM + arange(0, c.BM)) % M, n = (pn * c.BN + arange(0, c.BN)) % N, k = arange(0, c.BK);
      Tile ap = a + (m.col() * K + k.row()), gp = g + (k.col() + n.row() * K), up = u + (k.col() + n.row() * K);
      Tile gate = zeros({c.BM, c.BN}, f32), value = zeros({c.BM, c.BN}, f32);
      for (auto i : range(0, cdiv(K, c.BK), {.stages = c.stages})) {
        auto left = K - i * c.BK;
        auto x = load(ap, {.mask = (k < left).row(), .other = 0.f});
        gate = dot(x, load(gp, {.mask = (k < left).col(), .other = 0.f}), gate);
        value = dot(x, load(up, {.mask = (k < left).col(), .other = 0.f}), value);
        ap += c.BK;
        gp += c.BK;
        up += c.BK;
      }
      auto out = gate * sigmoid(gate) * value;
      auto r = pm * c.BM + arange(0, c.BM), q = pn * c.BN + arange(0, c.BN);
      store(y + (r.col() * N + q.row()), cast(out, bf16), {.mask = (r < M).col() & (q < N).row()});
    }).grid([](const SweptCfg& c, auto, auto, auto, auto, int M, int N, int) {
      return Grid{cdiv(M, c.BM) * cdiv(N, c.BN)};
    });
Register r5("swept_glu", [](Env& e) {
  const auto c = swept_cfg(e, {});
  const int M = e.big ? e.field("M", 4096) : 37, N = e.big ? 8192 : 40, K = e.big ? 4096 : 56;
  auto a = random<bfloat16>(e, size_t(M) * K), g = random<bfloat16>(e, size_t(N) * K),
       u = random<bfloat16>(e, size_t(N) * K);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 4e-9 * M * N * K;
  j.add(swept_glu, c, a.p, g.p, u.p, y.p, M, N, K);
  j.check = [=] {
    auto up = product(M, N, K, matrix(a, K), [&](int k, int n) { return u[size_t(n) * K + k]; });
    return agree(y.now(),
                 product(
                     M, N, K, matrix(a, K), [&](int k, int n) { return g[size_t(n) * K + k]; },
                     [&](double s, int m, int n) { return s / (1 + std::exp(-s)) * up[size_t(m) * N + n]; }),
                 2e-2, 1e-2);
  };
  return j;
});

// --- a chain: blocks of a product are rounded and multiplied with the next matrix (the output's width is a block)
auto swept_chain =
    kernel("user_swept_chain", [](const SweptCfg& c, Ptr<const half> a, Ptr<const half> b, Ptr<const half> d,
                                  Ptr<half> y, I32 M, I32 N, I32 K) {
      // a [M, BK], b [K, BK], d [K, BK]: y = (a b^T) d
      num_warps(c.warps);
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = arange(0, c.BN), k = arange(0, c.BK);
      auto x = load(a + (m.col() * N + k.row()), {.mask = (m < M).col()});
      Tile acc = zeros({c.BM, c.BK}, f32);
      for (auto i : range(0, K, c.BN, {.stages = c.stages})) {
        auto in = (i + n < K).col();
        auto w = load(b + ((i + n).col() * N + k.row()), {.mask = in, .other = 0.f});
        auto v = load(d + ((i + n).col() * N + k.row()), {.mask = in, .other = 0.f});
        acc = dot(cast(dot(x, trans(w)), f16), v, acc);
      }
      store(y + (m.col() * N + k.row()), cast(acc, f16), {.mask = (m < M).col()});
    }).grid([](const SweptCfg& c, auto, auto, auto, auto, int M, auto...) { return Grid{cdiv(M, c.BM)}; });
Register r6("swept_chain", [](Env& e) {
  const auto c = swept_cfg(e, {128, 64, 128, 2, 8});
  const int M = e.big ? 16896 : 45, K = e.big ? 4096 : 70, N = c.BK;
  auto a = random<half>(e, size_t(M) * N, -.3, .3), b = random<half>(e, size_t(K) * N, -.3, .3),
       d = random<half>(e, size_t(K) * N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 4e-9 * M * double(K) * N;
  j.add(swept_chain, c, a.p, b.p, d.p, y.p, M, N, K);
  j.check = [=] {
    auto s = product(M, K, N, matrix(a, N), [&](int k, int n) { return b[size_t(n) * N + k]; });
    return agree(y.now(),
                 product(
                     M, N, K, [&](int m, int k) { return s[size_t(m) * K + k]; }, matrix(d, N)),
                 2e-2, 5e-3);
  };
  return j;
});

}  // namespace swept_products
}  // namespace users
