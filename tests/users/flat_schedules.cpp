// flat_schedules.cpp - loops over all blocks of all tiles in other forms: the tile from a quotient, experts whose tiles
// follow one another, keys of all queries of a program, groups of K that are rounded into a total, and groups with tables
// of pointers.
#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace flat_schedules {

struct SpanCfg {
  int BM = 64, BN = 128, BK = 64, stages = 0;
};
SpanCfg span_cfg(Env& e, SpanCfg big, SpanCfg small) {
  const SpanCfg c = e.big ? big : small;
  return {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK), e.field("stages", c.stages)};
}

// --- block and tile from one number by % and /; sums of 8-bit products with a factor per 128 of K go to a total
auto span_f8 = kernel("user_span_f8", [](const SpanCfg& c, Ptr<const fp8_e4m3> a, Ptr<const fp8_e4m3> b, Ptr<const float> sa,
                                         Ptr<const float> sb, Ptr<bfloat16> y, I32 M, I32 N, I32 K) {
  auto columns = cdiv(N, c.BN), blocks = cdiv(K, c.BK), tiles = cdiv(M, c.BM) * columns;
  auto mine = cdiv(max(tiles - program_id(0), 0), num_programs(0));
  Tile total = zeros({c.BM, c.BN}, f32);
  for (auto i : range(mine * blocks)) {
    auto block = i % blocks, tile = program_id(0) + i / blocks * num_programs(0);
    auto m = tile / columns * c.BM + arange(0, c.BM), n = tile % columns * c.BN + arange(0, c.BN);
    auto mi = min(m, M - 1), ni = min(n, N - 1), k = block * c.BK + arange(0, c.BK);
    auto x = load(a + (mi.col() * K + k.row()), {.mask = k.row() < K});
    auto w = load(b + (ni.row() * K + k.col()), {.mask = k.col() < K});
    auto factor = load(sa + (block * M + mi)).col() * load(sb + (floor_div(ni, 128) * blocks + block)).row();
    total += dot(x, w) * factor;
    if_(block == blocks - 1, [&] {
      store(y + (m.col() * N + n.row()), cast(total, bf16), {.mask = (m < M).col() & (n < N).row()});
      total = zeros_like(total);
    });
  }
}).grid([](const SpanCfg&, auto...) { return Grid{1}; });
Register r1("span_f8", [](Env& e) {
  const auto c = span_cfg(e, {128, 128, 128}, {32, 32, 32});
  const int M = e.big ? 4096 : 75, N = e.big ? 7168 : 90, K = e.big ? 2048 : 96, programs = e.big ? 132 : 4, blocks = cdiv(K, c.BK);
  auto a = random<fp8_e4m3>(e, size_t(M) * K), b = random<fp8_e4m3>(e, size_t(N) * K);
  auto sa = random<float>(e, size_t(M) * blocks, .5, 1), sb = random<float>(e, size_t(cdiv(N, 128)) * blocks, .5, 1);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(span_f8.grid([=](const auto&...) { return Grid{programs}; }), c, a.p, b.p, sa.p, sb.p, y.p, M, N, K);
  j.check = [=] {
    std::vector<double> want(size_t(M) * N, 0);
    for (int g = 0; g < blocks; ++g) {
      const int many = std::min(c.BK, K - g * c.BK);
      auto part = product(M, N, many, [&](int m, int k) { return a[m * K + g * c.BK + k]; },
                          [&](int k, int n) { return b[n * K + g * c.BK + k]; });
      for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n) want[m * N + n] += part[m * N + n] * sa[g * M + m] * sb[n / 128 * blocks + g];
    }
    return agree(y.now(), want, 5e-2, 2e-2);
  };
  return j;
});

// --- queries of a program's heads one after the other in one loop over keys: the state begins again with every head
auto span_attention = kernel("user_span_attention", [](const SpanCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                                       Tensor<const half, 3> V, Tensor<half, 3> O, F32 scale) {
  auto m = program_id(0) * c.BM, heads = Q.dim(0), blocks = cdiv(K.dim(1), c.BN);
  auto n = K.dim(1);
  Tile block = blocks * 0, h = program_id(1) * 1;
  Tile q = zeros({c.BM, c.BK}, f16);
  Tile top = full({c.BM, 1}, -INFINITY, f32), total = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.BK}, f32);
  auto mine = cdiv(max(heads - program_id(1), 0), num_programs(1));
  for (auto i : range(blocks * mine, {.stages = c.stages})) {
    if_(block == 0, [&] {
      q = Q.load({h, m, 0}, {c.BM, c.BK});
      top = full({c.BM, 1}, -INFINITY, f32), total = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.BK}, f32);
    });
    auto s = dot(q, trans(K.load({h, block * c.BN, 0}, {c.BN, c.BK}))) * (scale * 1.44269504f);
    s = where((block * c.BN + arange(0, c.BN) < n).row(), s, -INFINITY);
    auto now = max(top, max(s, axis(1)));
    auto p = exp2(s - now), keep = exp2(top - now);
    total = total * keep + sum(p, axis(1));
    acc = dot(cast(p, f16), V.load({h, block * c.BN, 0}, {c.BN, c.BK}), acc * keep);
    top = now;
    if_(block + 1 == blocks, [&] {
      O.store({h, m, 0}, reshape(cast(acc / total, f16), {1, c.BM, c.BK}));
      h += num_programs(1);
    });
    block = where(block + 1 == blocks, 0, block + 1);
  }
}).grid([](const SpanCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[1], c.BM), std::min<int64_t>(q.shape[0], 4)}; });
Register r2("span_attention", [](Env& e) {
  const auto c = span_cfg(e, {128, 64, 64}, {32, 16, 16});  // BK: numbers of a head
  const int H = e.big ? 64 : 5, T = e.big ? 4096 : 50, N = e.big ? 4096 : 37, D = c.BK;
  auto q = random<half>(e, size_t(H) * T * D), k = random<half>(e, size_t(H) * N * D), v = random<half>(e, size_t(H) * N * D);
  auto o = constant<half>(e, size_t(H) * T * D, NAN);
  Job j;
  j.gflop = 4e-9 * H * T * double(N) * D;
  j.add(span_attention, c, q.view(H, T, D), k.view(H, N, D), v.view(H, N, D), o.view(H, T, D), .3f);
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * D, 0);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t) {
        std::vector<double> p(N);
        double sum = 0;
        for (int i = 0; i < N; ++i) {
          for (int d = 0; d < D; ++d) p[i] += q[(h * T + t) * D + d] * k[(h * N + i) * D + d];
          sum += p[i] = std::exp(p[i] * .3f);
        }
        for (int i = 0; i < N; ++i)
          for (int d = 0; d < D; ++d) want[(h * T + t) * D + d] += p[i] / sum * v[(h * N + i) * D + d];
      }
    return agree(o.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- products of a list, all of one K, sizes and addresses in tables: what is next is read where a tile begins
auto span_list = kernel("user_span_list", [](const SpanCfg& c, Ptr<const int64_t> A, Ptr<const int64_t> B, Ptr<const int64_t> C,
                                             Ptr<const int32_t> rows, Ptr<const int32_t> tile_starts, I32 products, I32 N, I32 K) {
  assume(K > 0);
  auto columns = cdiv(N, c.BN), blocks = cdiv(K, c.BK);
  auto tiles = load(tile_starts + products);
  auto mine = cdiv(max(tiles - program_id(0), 0), num_programs(0));
  Tile tile = program_id(0) - num_programs(0), block = blocks * 0 - 1, which = tile * 0, m = tile * 0, n = tile * 0;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto i : range(blocks * mine)) {
    block = where(block == blocks - 1, 0, block + 1);
    if_(block == 0, [&] {
      tile += num_programs(0);
      while_([&] { return load(tile_starts + which + 1) <= tile; }, [&] { which += 1; });
      auto t = tile - load(tile_starts + which);
      m = t / columns * c.BM, n = t % columns * c.BN;
    });
    auto M = load(rows + which);
    auto a = make_view<const half>(pointer_to<const half>(multiple_of(load(A + which), 16)), {M, K}, {K, 1});
    auto b = make_view<const half>(pointer_to<const half>(multiple_of(load(B + which), 16)), {K, N}, {N, 1});
    acc = dot(a.load({m, block * c.BK}, {c.BM, c.BK}), b.load({block * c.BK, n}, {c.BK, c.BN}), acc);
    if_(block == blocks - 1, [&] {
      make_view<half>(pointer_to<half>(multiple_of(load(C + which), 16)), {M, N}, {N, 1}).store({m, n}, cast(acc, f16));
      acc = zeros_like(acc);
    });
  }
}).grid([](const SpanCfg&, auto...) { return Grid{1}; });
Register r3("span_list", [](Env& e) {
  const auto c = span_cfg(e, {128, 128, 64}, {32, 32, 32});
  const int G = e.big ? 16 : 5, N = e.big ? 4096 : 72, K = e.big ? 4096 : 80, programs = e.big ? 132 : 3;
  std::vector<int32_t> M(G), starts{0};
  std::vector<Array<half>> a, b, y;
  std::vector<int64_t> at[3];
  Job j;
  for (int g = 0; g < G; ++g) {
    M[g] = e.big ? 64 << (g % 5) : g == 2 ? 0 : 20 + 31 * g;
    starts.push_back(starts.back() + cdiv(M[g], c.BM) * cdiv(N, c.BN));
    a.push_back(random<half>(e, size_t(M[g]) * K)), b.push_back(random<half>(e, size_t(K) * N));
    y.push_back(constant<half>(e, size_t(M[g]) * N, NAN));
    at[0].push_back(int64_t(a[g].p)), at[1].push_back(int64_t(b[g].p)), at[2].push_back(int64_t(y[g].p));
    j.gflop += 2e-9 * M[g] * N * K;
  }
  auto list = [&](auto& v) { return filled<std::decay_t<decltype(v[0])>>(e, v.size(), [&](size_t i) { return v[i]; }); };
  auto rows = list(M), first = list(starts);
  j.add(span_list.grid([=](const auto&...) { return Grid{programs}; }), c, list(at[0]).p, list(at[1]).p, list(at[2]).p, rows.p, first.p, G,
        N, K);
  j.check = [=] {
    for (int g = 0; g < G; ++g) {
      auto wrong = agree(y[g].now(), product(M[g], N, K, matrix(a[g], K), matrix(b[g], N)), 2e-2, 2e-3);
      if (!wrong.empty()) return "product " + std::to_string(g) + ": " + wrong;
    }
    return std::string();
  };
  return j;
});

}  // namespace flat_schedules
}  // namespace users
