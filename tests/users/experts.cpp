// experts.cpp - what stands around a mixture of experts: routing by groups of experts (DeepSeek V3), rows sorted by
// expert and put together again, gradients of the experts' weights, products whose operands are found through tables
// of pointers, weights of 4 bits with a codebook (NF4).
#include <algorithm>
#include <map>

#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace experts {

// --- routing: the 4 best of 8 groups by the sum of their two best biased scores, the 8 best experts of those groups
struct RouteCfg {
  int R = 16, E = 256, groups = 8, keep = 4, top = 8, warps = 4;
};
auto route = kernel("user_route", [](const RouteCfg& c, Tensor<const float, 2> logits, Tensor<const float, 1> bias,
                                     Tensor<int32_t, 2> ids, Tensor<float, 2> weights, Ptr<int32_t> counts, F32 factor) {
               num_warps(c.warps);
               const int per = c.E / c.groups;
               auto r = program_id(0) * c.R;
               auto score = sigmoid(logits.load({r, 0}, {c.R, c.E}));
               auto biased = score + bias.load({0}, {c.E}).row();
               auto parts = reshape(biased, {c.R, c.groups, per});
               auto first = argmax(parts, axis(2));
               auto at = reshape(arange(0, per), {1, 1, per});
               auto second = max(where(at == first, -INFINITY, parts), axis(2));
               Tile group = squeeze(max(parts, axis(2)) + second, 2);
               auto g = arange(0, c.groups).row();
               Tile kept = g < 0;
               for (int i = 0; i < c.keep; ++i) {
                 auto best = g == argmax(group, axis(1));
                 kept = kept | best;
                 group = where(best, -INFINITY, group);
               }
               auto e = arange(0, c.E).row();
               Tile rest = reshape(where(expand_dims(kept, 2), parts, -INFINITY), {c.R, c.E});
               auto slot = arange(0, c.top).row();
               Tile chosen = zeros({c.R, c.top}, i32), weight = zeros({c.R, c.top}, f32);
               for (int i = 0; i < c.top; ++i) {
                 auto best = argmax(rest, axis(1));
                 chosen = where(slot == i, best, chosen);
                 weight = where(slot == i, sum(where(e == best, score, 0.f), axis(1)), weight);
                 rest = where(e == best, -INFINITY, rest);
               }
               ids.store({r, 0}, chosen);
               weights.store({r, 0}, weight / sum(weight, axis(1)) * factor);
               auto live = (r + arange(0, c.R)).col() < logits.dim(0);
               atomic_add(counts + chosen, 1, {.mask = live, .order = Order::relaxed});
             }).grid([](const RouteCfg& c, const auto& l, const auto&...) { return Grid{cdiv(l.shape[0], c.R)}; });
// the place of every choice among the rows of its expert, and the row itself
struct MoveCfg {
  int D = 1024, top = 8, warps = 4;
};
auto dispatch = kernel("user_dispatch", [](const MoveCfg& c, Tensor<const bfloat16, 2> X, Tensor<const int32_t, 2> ids,
                                           Ptr<int32_t> cursors, Tensor<int32_t, 2> places, Tensor<bfloat16, 2> Y) {
                  num_warps(c.warps);
                  auto t = program_id(0);
                  auto x = X.load({t, 0}, {1, c.D});
                  auto place = atomic_add(cursors + ids.load({t, 0}, {c.top}), 1, {.order = Order::relaxed});
                  places.store({t, 0}, place);
                  auto d = arange(0, c.D).row();
                  store(Y.ptr() + (cast(place, i64).col() * c.D + d), broadcast_to(x, {c.top, c.D}));
                }).grid([](const MoveCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
auto put_together =
    kernel("user_combine", [](const MoveCfg& c, Tensor<const bfloat16, 2> Y, Tensor<const int32_t, 2> places,
                              Tensor<const float, 2> weights, Tensor<bfloat16, 2> O) {
      num_warps(c.warps);
      auto t = program_id(0);
      auto d = arange(0, c.D).row();
      auto rows = places.load({t, 0}, {c.top}), w = weights.load({t, 0}, {c.top}).col();
      auto y = cast(load(Y.ptr() + (cast(rows, i64).col() * c.D + d)), f32);
      O.store({t, 0}, cast(sum(y * w, axis(0)), bf16));
    }).grid([](const MoveCfg&, const auto&, const auto& p, const auto&...) { return Grid{p.shape[0]}; });
Register r1("moe_route", [](Env& e) {
  int T = e.big ? 16384 : 70, E = 256, top = 8, D = e.big ? 2048 : 64;
  auto logits = random<float>(e, size_t(T) * E, -3, 3), bias = random<float>(e, E, -.2, .2);
  auto ids = constant<int32_t>(e, size_t(T) * top, 0);
  auto weights = constant<float>(e, size_t(T) * top, NAN);
  auto counts = constant<int32_t>(e, E, 0);
  // Cursors start where experts do: here every expert has room for every token.
  auto cursors = filled<int32_t>(e, E, [=](size_t i) { return int(i) * (e.big ? T / 8 : T); });
  const size_t room = size_t(E) * (e.big ? T / 8 : T);
  auto x = random<bfloat16>(e, size_t(T) * D);
  auto places = constant<int32_t>(e, size_t(T) * top, 0);
  auto y = constant<bfloat16>(e, room * D, NAN), o = constant<bfloat16>(e, size_t(T) * D, NAN);
  Job j;
  j.inTurn = false;
  j.mbytes = 1e-6 * T * (E * 4. + 64);
  const int R = e.field("R", e.big ? 4 : 16);
  j.add(route, RouteCfg{R, E, 8, 4, top, e.field("warps", 4)}, logits.view(T, E), bias.view(E),
        ids.view(T, top), weights.view(T, top), counts.p, 2.5f);
  if (!e.big)  // the cursors of a second run would be past the end
    j.add(dispatch, MoveCfg{D, top, 4}, x.view(T, D), ids.view(T, top), cursors.p, places.view(T, top),
          y.view(int64_t(room), D));
  if (!e.big)
    j.add(put_together, MoveCfg{D, top, 4}, y.view(int64_t(room), D), places.view(T, top), weights.view(T, top),
          o.view(T, D));
  j.check = [=]() -> std::string {
    auto got = ids.now(), count = counts.now(), place = places.now();
    auto w = weights.now();
    std::vector<int> wantCount(E);
    std::vector<double> wantW, wantO;
    for (int t = 0; t < T; ++t) {
      std::vector<double> s(E), b(E);
      for (int i = 0; i < E; ++i) s[i] = 1 / (1 + std::exp(-logits[t * E + i])), b[i] = s[i] + bias[i];
      std::vector<std::pair<double, int>> groups;
      for (int g = 0; g < 8; ++g) {
        std::vector<double> p(b.begin() + g * 32, b.begin() + g * 32 + 32);
        std::sort(p.rbegin(), p.rend());
        groups.push_back({-(p[0] + p[1]), g});
      }
      std::sort(groups.begin(), groups.end());
      std::vector<std::pair<double, int>> best;
      for (int g = 0; g < 4; ++g)
        for (int i = 0; i < 32; ++i) best.push_back({-b[groups[g].second * 32 + i], groups[g].second * 32 + i});
      std::sort(best.begin(), best.end());
      double total = 0;
      for (int i = 0; i < top; ++i) total += s[best[i].second];
      for (int i = 0; i < top; ++i) {
        if (got[t * top + i] != best[i].second) return "token " + std::to_string(t) + ": another expert";
        ++wantCount[best[i].second];
        wantW.push_back(s[best[i].second] / total * 2.5);
      }
      for (int d = 0; d < D; ++d) wantO.push_back(x[t * D + d] * 2.5);
    }
    if (wantCount != count) return "counts differ";
    std::vector<int> sorted(place.begin(), place.end()), distinct = sorted;
    std::sort(distinct.begin(), distinct.end());
    if (std::unique(distinct.begin(), distinct.end()) != distinct.end()) return "two rows in one place";
    for (size_t i = 0; i < sorted.size(); ++i)
      if (sorted[i] / T != got[i]) return "a row among another expert's";
    auto bad = agree(w, wantW, 1e-5, 1e-5);
    return bad.empty() ? agree(o.now(), wantO, 1e-2, 1e-2) : bad;
  };
  return j;
});

// --- gradients of experts' weights: dW[e] = X_e^T dY_e over the rows of expert e
struct WgradCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto wgrad = kernel("user_grouped_wgrad", [](const WgradCfg& c, Tensor<const bfloat16, 2> X,
                                             Tensor<const bfloat16, 2> dY, Ptr<const int32_t> offsets,
                                             Tensor<bfloat16, 3> dW) {
               // X [rows, K], dY [rows, N], expert e has rows offsets[e] .. offsets[e + 1] - 1, dW [E, K, N]
               num_warps(c.warps);
               auto e = program_id(2), m = program_id(1) * c.BM, n = program_id(0) * c.BN;
               auto begin = load(offsets + e), end = load(offsets + e + 1);
               Tile acc = zeros({c.BM, c.BN}, f32);
               for (auto t : range(begin, end, c.BK, {.stages = c.stages})) {
                 auto x = X.load({t, m}, {c.BK, c.BM}), g = dY.load({t, n}, {c.BK, c.BN});
                 x = where((t + arange(0, c.BK)).col() < end, x, 0.f);
                 acc = dot(trans(x), g, acc);
               }
               dW.store({e, m, n}, reshape(cast(acc, bf16), {1, c.BM, c.BN}));
             }).grid([](const WgradCfg& c, const auto& x, const auto& y, auto*, const auto& w) {
               return Grid{cdiv(y.shape[1], c.BN), cdiv(x.shape[1], c.BM), w.shape[0]};
             });
Register r2("grouped_wgrad", [](Env& e) {
  int E = e.big ? 16 : 4, K = e.big ? 2048 : 130, N = e.big ? 4096 : 72;
  std::vector<int> at{0};
  for (int i = 0; i < E; ++i) at.push_back(at.back() + (e.big ? 700 + i * 101 : std::vector{65, 0, 1, 140}[i]));
  auto off = filled<int32_t>(e, E + 1, [&](size_t i) { return at[i]; });
  int R = at.back();
  auto x = random<bfloat16>(e, size_t(R) * K), g = random<bfloat16>(e, size_t(R) * N);
  auto w = constant<bfloat16>(e, size_t(E) * K * N, NAN);
  Job j;
  j.gflop = 2e-9 * R * double(K) * N;
  const int BN = e.field("BN", e.big ? 256 : 128);
  j.add(wgrad, WgradCfg{e.field("BM", 128), BN, 64, e.field("stages", 3), e.field("warps", 8)},
        x.view(R, K), g.view(R, N), off.p, w.view(E, K, N));
  j.check = [=] {
    std::vector<double> want(size_t(E) * K * N);
    for (int i = 0; i < E; ++i)
      for (int r = at[i]; r < at[i + 1]; ++r)
        for (int k = 0; k < K; ++k)
          for (int n = 0; n < N; ++n) want[(size_t(i) * K + k) * N + n] += x[size_t(r) * K + k] * g[size_t(r) * N + n];
    return agree(w.now(), want, 2e-2, 1e-2);
  };
  return j;
});

// --- products of matrices found through tables of pointers, of sizes of their own (Triton's grouped tutorial)
struct TableCfg {
  int BM = 64, BN = 128, BK = 64, stages = 3, warps = 4;
};
auto table_gemm =
    kernel("user_table_gemm", [](const TableCfg& c, Ptr<const int64_t> As, Ptr<const int64_t> Bs, Ptr<const int64_t> Cs,
                                 Tensor<const int32_t, 2> sizes, I32 groups) {
      // As, Bs, Cs [groups]: addresses; sizes [groups, 3]: M, N, K
      num_warps(c.warps);
      Tile last = 0, tile = program_id(0);
      for (auto g : range(groups)) {
        auto M = sizes.load({g, 0}), N = multiple_of(sizes.load({g, 1}), 8), K = multiple_of(sizes.load({g, 2}), 8);
        auto across = cdiv(N, c.BN), tiles = cdiv(M, c.BM) * across;
        auto address = [&](const Ptr<const int64_t>& p) { return multiple_of(load(p + g), 16); };
        while_([&] { return tile < last + tiles; },
               [&] {
                 auto m = (tile - last) / across * c.BM, n = (tile - last) % across * c.BN;
                 auto A = make_view<const half>(pointer_to<const half>(address(As)), {M, K}, {K, 1});
                 auto B = make_view<const half>(pointer_to<const half>(address(Bs)), {K, N}, {N, 1});
                 Tile acc = zeros({c.BM, c.BN}, f32);
                 for (auto k : range(0, K, c.BK, {.stages = c.stages}))
                   acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
                 make_view<half>(pointer_to<half>(address(Cs)), {M, N}, {N, 1}).store({m, n}, cast(acc, f16));
                 tile += num_programs(0);
               });
        last += tiles;
      }
    }).grid([](const TableCfg&, const auto&...) { return Grid{132}; });
Register r3("table_gemm", [](Env& e) {
  std::vector<std::array<int, 3>> s;
  for (int i = 0; i < (e.big ? 16 : 3); ++i)
    s.push_back(e.big ? std::array{1024 + 256 * (i % 4), 2048, 1024} : std::array{70 + 60 * i, 136, 40 + 8 * i});
  std::vector<Array<half>> as, bs, cs;
  Job j;
  for (auto [m, n, k] : s) {
    as.push_back(random<half>(e, size_t(m) * k));
    bs.push_back(random<half>(e, size_t(k) * n));
    cs.push_back(constant<half>(e, size_t(m) * n, NAN));
    j.gflop += 2e-9 * m * double(n) * k;
  }
  const int G = int(s.size());
  auto addresses = [&](const std::vector<Array<half>>& x) {
    return filled<int64_t>(e, G, [&](size_t i) { return int64_t(reinterpret_cast<intptr_t>(x[i].p)); });
  };
  auto pa = addresses(as), pb = addresses(bs), pc = addresses(cs);
  auto sizes = filled<int32_t>(e, G * 3, [&](size_t i) { return s[i / 3][i % 3]; });
  j.add(table_gemm, TableCfg{e.field("BM", 128), e.field("BN", 128), 64, e.field("stages", 3), e.field("warps", 8)}, pa.p,
        pb.p, pc.p, sizes.view(G, 3), G);
  j.check = [=]() -> std::string {
    for (int g = 0; g < G; ++g) {
      auto [m, n, k] = s[g];
      auto bad = agree(cs[g].now(), product(m, n, k, matrix(as[g], k), matrix(bs[g], n)), 4e-3, 4e-3);
      if (!bad.empty()) return "group " + std::to_string(g) + ": " + bad;
    }
    return "";
  };
  return j;
});

// --- NF4: two weights in a byte, each one of 16 numbers of a table times the scale of 64 of them
struct NfCfg {
  int BM = 64, BN = 128, BK = 64, stages = 3, warps = 4;
};
auto nf4 = kernel("user_nf4", [](const NfCfg& c, Tensor<const bfloat16, 2> A, Tensor<const uint8_t, 2> W,
                                 Tensor<const float, 2> scales, Tensor<const float, 1> book, Tensor<bfloat16, 2> C) {
             // A [M, K], W [N, K / 2] (low four bits first), scales [N, K / 64], book [16], C [M, N]
             num_warps(c.warps);
             auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
             auto codes = book.load({0}, {16});
             Tile acc = zeros({c.BM, c.BN}, f32);
             for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
               auto w = cast(W.load({n, k / 2}, {c.BN, c.BK / 2}), i32);
               auto at = reshape(join(w & 15, w >> 4), {c.BN * c.BK});
               auto value = reshape(take(codes, at, 0), {c.BN, c.BK}) * scales.load({n, k / 64}, {c.BN, 1});
               acc = dot(A.load({m, k}, {c.BM, c.BK}), trans(cast(value, bf16)), acc);
             }
             C.store({m, n}, cast(acc, bf16));
           }).grid([](const NfCfg& c, const auto& a, const auto& w, const auto&...) {
             return Grid{cdiv(w.shape[0], c.BN), cdiv(a.shape[0], c.BM)};
           });
Register r4("nf4", [](Env& e) {
  int M = e.big ? 512 : 40, N = e.big ? 4096 : 136, K = e.big ? 4096 : 192;
  auto a = random<bfloat16>(e, size_t(M) * K);
  auto w = integers<uint8_t>(e, size_t(N) * K / 2, 0, 256);
  auto scales = random<float>(e, size_t(N) * K / 64, .01, .1);
  const std::vector<float> table{-1.0f, -0.6962f, -0.5251f, -0.3949f, -0.2844f, -0.1848f, -0.0911f, 0.f,
                                 0.0796f, 0.1609f, 0.2461f, 0.3379f, 0.4407f, 0.5626f, 0.7230f, 1.f};
  auto book = filled<float>(e, 16, [&](size_t i) { return table[i]; });
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  const int BM = e.field("BM", e.big ? 128 : 64), warps = e.field("warps", e.big ? 8 : 4);
  j.add(nf4, NfCfg{BM, e.field("BN", 128), 64, e.field("stages", 3), warps}, a.view(M, K), w.view(N, K / 2),
        scales.view(N, K / 64), book.view(16), y.view(M, N));
  j.check = [=] {
    auto value = [&](int k, int n) {
      const int b = w.h[size_t(n) * (K / 2) + k / 2];
      const float v = table[k % 2 ? b >> 4 : b & 15] * scales.h[size_t(n) * (K / 64) + k / 64];
      return double(float(bfloat16(v)));
    };
    return agree(y.now(), product(M, N, K, matrix(a, K), value), 5e-3, 8e-3);
  };
  return j;
});

}  // namespace experts
}  // namespace users
