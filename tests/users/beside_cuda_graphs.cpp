// beside_cuda_graphs.cpp - percolate, sgns, k_truss, kyber, eam
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_graphs {

// --- Swendsen-Wang on a periodic Potts lattice: bonds, clusters by union-find, new spins by the hash of the root
struct PercCfg {
  int B = 256;
};
Tile root_of(const Ptr<const int>& labels, Tile x) {
  Tile p = load(labels + x);
  while_([&] { return p != x; },
         [&] {
           x = p;
           p = load(labels + x);
         });
  return x;
}
auto sw_bonds =
    kernel("user_sw_bonds", [](const PercCfg& c, Ptr<const uint8_t> spins, Ptr<uint8_t> bonds, Ptr<int> labels, I32 H,
                               I32 W, U64 seed, U32 below) {
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < H * W;
      auto y = i / W, x = i % W;
      auto s = load(spins + i, {.mask = in});
      auto right = load(spins + where(x + 1 < W, i + 1, i + 1 - W), {.mask = in});
      auto down = load(spins + where(y + 1 < H, i + W, x), {.mask = in});
      auto w = randint4(seed, i);
      auto r = (s == right) & (w[0] < below), d = (s == down) & (w[1] < below);
      store(bonds + i, cast(r, u8) | (cast(d, u8) << 1), {.mask = in});
      store(labels + i, i, {.mask = in});
    }).grid([](const PercCfg& c, auto, auto, auto, int H, int W, auto...) { return Grid{cdiv(H * W, c.B)}; });
auto sw_unite = kernel("user_sw_unite", [](const PercCfg& c, Ptr<const uint8_t> bonds, Ptr<int> labels, I32 H, I32 W) {
                  auto i = program_id(0) * c.B + arange(0, c.B);
                  auto bond = load(bonds + i, {.mask = i < H * W});
                  auto y = i / W, x = i % W;
                  auto unite = [&](const Tile& other, const Tile& wanted) {
                    Tile a = i, b = other, on = wanted;
                    while_([&] { return on; },
                           [&] {
                             a = root_of(labels, a), b = root_of(labels, b);
                             auto hi = max(a, b), lo = min(a, b);
                             auto old = atomic_min(labels + hi, lo, {.mask = hi != lo, .order = Order::relaxed});
                             on = (hi != lo) & (old != hi);
                             a = where(on, old, a), b = lo;
                           });
                  };
                  unite(where(x + 1 < W, i + 1, i + 1 - W), (bond & 1) != 0);
                  unite(where(y + 1 < H, i + W, x), (bond & 2) != 0);
                }).grid([](const PercCfg& c, auto, auto, int H, int W) { return Grid{cdiv(H * W, c.B)}; });
auto sw_flip = kernel("user_sw_flip", [](const PercCfg& c, Ptr<const int> labels, Ptr<int> roots, Ptr<uint8_t> spins,
                                         I32 n, U64 seed, U32 q) {
                 auto i = program_id(0) * c.B + arange(0, c.B);
                 auto in = i < n;
                 Tile p = load(labels + i, {.mask = in}), r = p;
                 p = load(labels + r, {.mask = in});
                 while_([&] { return in & (p != r); },
                        [&] {
                          r = p;
                          p = load(labels + r);
                        });
                 store(roots + i, r, {.mask = in});
                 store(spins + i, cast(mulhi(randint(seed, r), q), u8), {.mask = in});
               }).grid([](const PercCfg& c, auto, auto, auto, int n, auto...) { return Grid{cdiv(n, c.B)}; });
Register r1("percolate", [](Env& e) {
  PercCfg c{e.field("B", 256)};
  const int H = e.big ? 2048 : 45, W = e.big ? 2048 : 67, n = H * W, q = 3;
  const uint32_t below = uint32_t(0.62 * 0x1p32);
  auto spins = drawn<uint8_t>(e, n, [&] { return uint8_t(e.uniform() < .6 ? 0 : 3 * e.uniform()); });
  auto bonds = constant<uint8_t>(e, n, 0);
  auto labels = constant<int>(e, n, -1), roots = constant<int>(e, n, -1);
  auto next = constant<uint8_t>(e, n, 77);
  Job j;
  j.inTurn = true;
  j.add(sw_bonds, c, spins.p, bonds.p, labels.p, H, W, uint64_t(99), below);
  j.add(sw_unite, c, bonds.p, labels.p, H, W);
  j.add(sw_flip, c, labels.p, roots.p, next.p, n, uint64_t(1234567), uint32_t(q));
  j.check = [=]() -> std::string {
    std::vector<int> l(n);
    for (int i = 0; i < n; ++i) l[i] = i;
    auto find = [&](int x) {
      while (l[x] != x) x = l[x];
      return x;
    };
    auto unite = [&](int a, int b) {
      a = find(a), b = find(b);
      l[std::max(a, b)] = std::min(a, b);
    };
    for (int i = 0; i < n; ++i) {
      const auto w = reference_philox(99, i);
      const int y = i / W, x = i % W, r = y * W + (x + 1) % W, d = (y + 1) % H * W + x;
      if (spins.at(i) == spins.at(r) && w[0] < below) unite(i, r);
      if (spins.at(i) == spins.at(d) && w[1] < below) unite(i, d);
    }
    std::vector<double> wr, ws;
    for (int i = 0; i < n; ++i)
      wr.push_back(find(i)), ws.push_back(double(uint64_t(reference_philox(1234567, find(i))[0]) * q >> 32));
    return agree(roots.now(), wr, .01, 0) + agree(next.now(), ws, .01, 0);
  };
  return j;
});

// --- skip-gram with negative sampling: a position a program; gradients are added to tables of their own
struct SgnsCfg {
  int D = 128, W = 5, NEG = 5;
};
auto sgns = kernel("user_sgns", [](const SgnsCfg& c, Ptr<const int> tokens, Ptr<const int> sentence,
                                   Tensor<const float, 2> syn0, Tensor<const float, 2> syn1, Tensor<float, 2> d0,
                                   Ptr<float> d1, I32 n, U64 seed, F32 rate) {
              auto p = program_id(0);
              auto center = load(tokens + p), mine = load(sentence + p);
              auto reach = c.W - cast(randint(seed + 1, p) % uint32_t(c.W), i32);
              auto k = arange(0, 8);
              for (auto o : range(-reach, reach + 1)) {
                auto at = p + o;
                auto inside = (o != 0) & (at >= 0) & (at < n);
                continue_if(~(inside & (load(sentence + at, {.mask = inside, .other = -1}) == mine)));
                auto context = load(tokens + at);
                auto draw = randint(seed, (cast(p, i64) * (2 * c.W + 1) + o + c.W) * 8 + k);
                auto target = where(k == 0, center, cast(mulhi(draw, cast(syn1.dim(0), u32)), i32));
                auto used = (k <= c.NEG) & ((k == 0) | (target != center));
                auto h = syn0.load({context, 0}, {1, c.D});
                auto v = syn1.gather(where(used, target, -1), 0, c.D);
                auto label = where(k == 0, 1.f, 0.f).col();
                auto g = where(used.col(), (label - sigmoid(sum(v * h, axis(1)))) * rate, 0.f);
                d0.atomic_add({context, 0}, sum(g * v, axis(0)));
                atomic_add(d1 + (target.col() * c.D + arange(0, c.D).row()), g * h,
                           {.mask = broadcast_to(used.col(), {8, c.D})});
              }
            }).grid([](const SgnsCfg&, auto, auto, const auto&, const auto&, const auto&, auto, int n, auto...) {
  return Grid{n};
});
Register r2("sgns", [](Env& e) {
  SgnsCfg c;
  const int V = e.big ? 100000 : 97, n = e.big ? 20000 : 151, D = c.D;
  auto tokens = drawn<int>(e, n, [&] { return int(V * std::pow(e.uniform(), 2)); });
  auto sentence = filled<int>(e, n, [&](size_t i) { return int(i / 19); });
  auto s0 = random<float>(e, size_t(V) * D, -.5, .5), s1 = random<float>(e, size_t(V) * D, -.5, .5);
  auto d0 = constant<float>(e, size_t(V) * D, 0), d1 = constant<float>(e, size_t(V) * D, 0);
  const uint64_t seed = 4242;
  const float rate = 0.025f;
  Job j;
  if (!e.big) restore(e, j, d0, d1);
  j.add(sgns, c, tokens.p, sentence.p, s0.view(V, D), s1.view(V, D), d0.view(V, D), d1.p, n, seed, rate);
  j.check = [=]() -> std::string {
    std::vector<double> w0(size_t(V) * D), w1(size_t(V) * D);
    for (int p = 0; p < n; ++p) {
      const int reach = 5 - int(reference_philox(seed + 1, p)[0] % 5);
      for (int o = -reach; o <= reach; ++o) {
        const int at = p + o;
        if (!o || at < 0 || at >= n || sentence.at(at) != sentence.at(p)) continue;
        const int cx = tokens.at(at), ce = tokens.at(p);
        for (int k = 0; k <= 5; ++k) {
          const int t = k ? int(uint64_t(reference_philox(seed, (uint64_t(p) * 11 + o + 5) * 8 + k)[0]) * V >> 32) : ce;
          if (k && t == ce) continue;
          double s = 0;
          for (int d = 0; d < D; ++d) s += s0[size_t(cx) * D + d] * s1[size_t(t) * D + d];
          const double g = ((k == 0) - 1 / (1 + std::exp(-s))) * rate;
          for (int d = 0; d < D; ++d)
            w0[size_t(cx) * D + d] += g * s1[size_t(t) * D + d], w1[size_t(t) * D + d] += g * s0[size_t(cx) * D + d];
        }
      }
    }
    return agree(d0.now(), w0, 1e-4, 1e-3) + agree(d1.now(), w1, 1e-4, 1e-3);
  };
  return j;
});

// --- k-truss: triangles of every edge by merging two sorted lists; edges with enough of them are kept, degrees follow
struct TrussCfg {
  int B = 128, warps = 4;
};
auto supports =
    kernel("user_truss_support", [](const TrussCfg& c, Ptr<const int> start, Ptr<const int> adj, Ptr<const int> U,
                                    Ptr<const int> V, Ptr<int> support, I32 edges) {
      num_warps(c.warps);
      auto e = program_id(0) * c.B + arange(0, c.B);
      auto in = e < edges;
      auto u = load(U + e, {.mask = in}), v = load(V + e, {.mask = in});
      Tile i = load(start + u), j = load(start + v), n = zeros({c.B}, i32);
      auto iend = load(start + u + 1), jend = load(start + v + 1);
      while_([&] { return in & (i < iend) & (j < jend); },
             [&] {
               auto a = load(adj + i), b = load(adj + j);
               n += cast(a == b, i32);
               i += cast(a <= b, i32);
               j += cast(b <= a, i32);
             });
      store(support + e, n, {.mask = in});
    }).grid([](const TrussCfg& c, auto, auto, auto, auto, auto, int edges) { return Grid{cdiv(edges, c.B)}; });
auto peel =
    kernel("user_truss_peel", [](const TrussCfg& c, Ptr<const int> U, Ptr<const int> V, Ptr<const int> support,
                                 Ptr<int> U2, Ptr<int> V2, Ptr<int> count, Ptr<int> degree, I32 edges, I32 least) {
      num_warps(c.warps);
      auto e = program_id(0) * c.B + arange(0, c.B);
      auto in = e < edges;
      auto u = load(U + e, {.mask = in}), v = load(V + e, {.mask = in});
      auto stays = in & (load(support + e, {.mask = in}) >= least), goes = in & ~stays;
      auto one = cast(stays, i32);
      auto place = atomic_add(count, sum(one)) + cumsum(one, axis(0)) - 1;
      store(U2 + place, u, {.mask = stays});
      store(V2 + place, v, {.mask = stays});
      atomic_add(degree + u, -1, {.mask = goes, .order = Order::relaxed});
      atomic_add(degree + v, -1, {.mask = goes, .order = Order::relaxed});
    }).grid([](const TrussCfg& c, auto, auto, auto, auto, auto, auto, auto, int edges, int) {
      return Grid{cdiv(edges, c.B)};
    });
Register r3("k_truss", [](Env& e) {
  TrussCfg c{e.field("B", 128), e.field("warps", 4)};
  const int N = e.big ? 1 << 16 : 120, least = e.big ? 2 : 5;
  const int tries = e.big ? N * 20 : N * 12;
  std::vector<std::vector<int>> lists(N);
  if (e.device) {
    for (int t = 0; t < tries; ++t) {  // a few hubs, neighbours often near
      const int u = int(N * e.uniform() * (e.uniform() < .2 ? e.uniform() : 1.));
      const int v = e.uniform() < .7 ? (u + 1 + int(40 * e.uniform())) % N : int(N * e.uniform());
      if (u != v) lists[u].push_back(v), lists[v].push_back(u);
    }
    for (auto& l : lists) std::sort(l.begin(), l.end()), l.erase(std::unique(l.begin(), l.end()), l.end());
  }
  std::vector<int> st{0}, ad, us, vs, dg;
  for (int u = 0; u < N; ++u) {
    for (int v : lists[u]) {
      ad.push_back(v);
      if (u < v) us.push_back(u), vs.push_back(v);
    }
    st.push_back(int(ad.size())), dg.push_back(int(lists[u].size()));
  }
  const int E = e.device ? int(us.size()) : N * 15;
  auto start = repeated(e, N + 1, st), adj = repeated(e, 2 * E, ad), U = repeated(e, E, us), V = repeated(e, E, vs),
       degree = repeated(e, N, dg);
  auto support = constant<int>(e, E, -1), count = constant<int>(e, 1, 0), U2 = constant<int>(e, E, -1),
       V2 = constant<int>(e, E, -1);
  Job j;
  j.inTurn = true;
  restore(e, j, count, degree);
  j.add(supports, c, start.p, adj.p, U.p, V.p, support.p, E);
  j.add(peel, c, U.p, V.p, support.p, U2.p, V2.p, count.p, degree.p, E, least);
  j.check = [=]() -> std::string {
    std::vector<double> want, deg(dg.begin(), dg.end());
    std::vector<std::pair<int, int>> kept, got;
    for (int i = 0; i < E; ++i) {
      std::vector<int> both;
      const auto &a = lists[us[i]], &b = lists[vs[i]];
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
      want.push_back(double(both.size()));
      if (int(both.size()) >= least)
        kept.push_back({us[i], vs[i]});
      else
        --deg[us[i]], --deg[vs[i]];
    }
    const auto u2 = U2.now(), v2 = V2.now();
    const int k = count.now()[0];
    for (int i = 0; i < k && i < E; ++i) got.push_back({u2[i], v2[i]});
    std::sort(got.begin(), got.end());
    if (got != kept) return "kept " + std::to_string(k) + " edges instead of " + std::to_string(kept.size());
    return agree(support.now(), want, .01, 0) + agree(degree.now(), deg, .01, 0);
  };
  return j;
});

// --- Kyber: c = a b modulo x^256 + 1 and 3329: NTT of both, products of pairs, inverse; B polynomials a program
struct KyberCfg {
  int B = 8, warps = 4;
};
constexpr int kQ = 3329;
Tile montgomery(Tile a) { return (a - cast(cast(a * -3327, i16), i32) * kQ) >> 16; }
Tile barrett(Tile a) { return a - ((a * 20159 + (1 << 25)) >> 26) * kQ; }
Tile ntt(Tile x, const Ptr<const int16_t>& zetas, int B) {
  for (int len = 128; len >= 2; len /= 2) {
    const int nb = 128 / len;
    auto y = reshape(x, {B, nb, 2, len});
    auto lo = extract(y, {0, 0, 0, 0}, {B, nb, 1, len}), hi = extract(y, {0, 0, 1, 0}, {B, nb, 1, len});
    auto z = reshape(cast(load(zetas + (nb + arange(0, nb))), i32), {1, nb, 1, 1});
    auto t = montgomery(hi * z);
    x = reshape(cat(lo + t, lo - t, 2), {B, 256});
  }
  return barrett(x);
}
Tile inverse_ntt(Tile x, const Ptr<const int16_t>& zetas, int B) {
  for (int len = 2; len <= 128; len *= 2) {
    const int nb = 128 / len;
    auto y = reshape(x, {B, nb, 2, len});
    auto lo = extract(y, {0, 0, 0, 0}, {B, nb, 1, len}), hi = extract(y, {0, 0, 1, 0}, {B, nb, 1, len});
    auto z = reshape(cast(load(zetas + (2 * nb - 1 - arange(0, nb))), i32), {1, nb, 1, 1});
    x = reshape(cat(barrett(lo + hi), montgomery((hi - lo) * z), 2), {B, 256});
  }
  return montgomery(x * 1441);
}
auto kyber = kernel("user_kyber", [](const KyberCfg& c, Tensor<const int16_t, 2> A, Tensor<const int16_t, 2> Bm,
                                     Ptr<const int16_t> zetas, Tensor<int16_t, 2> C) {
               num_warps(c.warps);
               auto p = program_id(0) * c.B;
               auto get = [&](const Tensor<const int16_t, 2>& X) {
                 return split(reshape(ntt(cast(X.load({p, 0}, {c.B, 256}), i32), zetas, c.B), {c.B, 64, 2, 2}));
               };
               auto [a0, a1] = get(A);
               auto [b0, b1] = get(Bm);
               auto z = reshape(cast(load(zetas + (64 + arange(0, 64))), i32), {1, 64, 1}) *
                        reshape(1 - 2 * arange(0, 2), {1, 1, 2});
               auto r0 = montgomery(montgomery(a1 * b1) * z) + montgomery(a0 * b0);
               auto r1 = montgomery(a0 * b1) + montgomery(a1 * b0);
               auto r = inverse_ntt(reshape(join(r0, r1), {c.B, 256}), zetas, c.B);
               C.store({p, 0}, cast(barrett(r), i16));
             }).grid([](const KyberCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
std::vector<int16_t> zeta_table() {
  std::vector<int16_t> z(128);
  for (int i = 0; i < 128; ++i) {
    int r = 0, v = 65536 % kQ;
    for (int b = 0; b < 7; ++b) r |= (i >> b & 1) << (6 - b);
    for (int k = 0; k < r; ++k) v = v * 17 % kQ;
    z[i] = int16_t(v > kQ / 2 ? v - kQ : v);
  }
  return z;
}
Register r4("kyber", [](Env& e) {
  KyberCfg c{e.field("B", 8), e.field("warps", 4)};
  const int N = e.big ? 1 << 16 : 19;
  auto a = integers<int16_t>(e, size_t(N) * 256, 0, kQ), b = integers<int16_t>(e, size_t(N) * 256, 0, kQ);
  auto z = repeated(e, 128, zeta_table());
  auto out = constant<int16_t>(e, size_t(N) * 256, -9999);
  Job j;
  j.mbytes = 3 * 512e-6 * N;
  j.add(kyber, c, a.view(N, 256), b.view(N, 256), z.p, out.view(N, 256));
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int n = 0; n < N; ++n) {
      std::vector<int64_t> w(256);
      for (int i = 0; i < 256; ++i)
        for (int k = 0; k < 256; ++k) {
          const int64_t v = int64_t(a.at(n * 256 + i)) * b.at(n * 256 + k);
          w[(i + k) & 255] += i + k < 256 ? v : -v;
        }
      for (int i = 0; i < 256; ++i)
        if ((w[i] - got[n * 256 + i]) % kQ || std::abs(got[n * 256 + i]) > kQ)
          return "coefficient " + std::to_string(n * 256 + i);
    }
    return "";
  };
  return j;
});

// --- embedded atoms: densities and embedding, then forces; splines of four coefficients, neighbour k of all atoms side
// by side
struct EamCfg {
  int B = 128;
};
struct Spline {
  Tile value, slope;
};
Spline spline(const Ptr<const float>& table, const Tile& x, int knots, const Tile& mask) {
  auto m = clamp(cast(x, i32), 0, knots - 1);
  auto p = min(x - cast(m, f32), 1.f);
  auto a = [&](int k) { return load(table + m * 4 + k, {.mask = mask}); };
  auto c0 = a(0), c1 = a(1), c2 = a(2), c3 = a(3);
  return {((c3 * p + c2) * p + c1) * p + c0, (3 * c3 * p + 2 * c2) * p + c1};
}
constexpr int kKnots = 1000;
struct Pair {
  Tile dx, dy, dz, r2;
};
Pair apart(const Ptr<const float>& pos, const Tile& x, const Tile& y, const Tile& z, const Tile& j, const Tile& mask,
           const F32& box) {
  auto near = [&](const Tile& a, int k) {
    auto d = a - load(pos + j * 4 + k, {.mask = mask});
    return d - box * rint(d / box);
  };
  Pair p{near(x, 0), near(y, 1), near(z, 2), {}};
  p.r2 = p.dx * p.dx + p.dy * p.dy + p.dz * p.dz;
  return p;
}
auto eam_density =
    kernel("user_eam_density", [](const EamCfg& c, Ptr<const float> pos, Ptr<const int> neighbours, Ptr<const int> many,
                                  Ptr<const float> rho_table, Ptr<const float> embed_table, Ptr<float> slope,
                                  Ptr<double> energy, I32 n, F32 box, F32 cutoff, F32 embed_step) {
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n;
      auto x = load(pos + i * 4, {.mask = in}), y = load(pos + i * 4 + 1, {.mask = in}),
           z = load(pos + i * 4 + 2, {.mask = in});
      auto count = load(many + i, {.mask = in});
      Tile rho = zeros({c.B}, f32);
      for (auto k : range(max(count))) {
        auto here = k < count;
        auto j = load(neighbours + cast(k, i64) * n + i, {.mask = here});
        auto d = apart(pos, x, y, z, j, here, box);
        auto near = here & (d.r2 < cutoff * cutoff);
        auto f = spline(rho_table, sqrt(d.r2) * (kKnots / cutoff), kKnots, near);
        rho += where(near, f.value, 0.f);
      }
      auto F = spline(embed_table, rho / embed_step, kKnots, in);
      store(slope + i, F.slope / embed_step, {.mask = in});
      atomic_add(energy, sum(cast(where(in, F.value, 0.f), f64)));
    }).grid([](const EamCfg& c, auto, auto, auto, auto, auto, auto, auto, int n, auto...) {
      return Grid{cdiv(n, c.B)};
    });
auto eam_force =
    kernel("user_eam_force", [](const EamCfg& c, Ptr<const float> pos, Ptr<const int> neighbours, Ptr<const int> many,
                                Ptr<const float> rho_table, Ptr<const float> phi_table, Ptr<const float> slope,
                                Ptr<float> force, I32 n, F32 box, F32 cutoff) {
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n;
      auto x = load(pos + i * 4, {.mask = in}), y = load(pos + i * 4 + 1, {.mask = in}),
           z = load(pos + i * 4 + 2, {.mask = in});
      auto count = load(many + i, {.mask = in});
      auto mine = load(slope + i, {.mask = in});
      Tile fx = zeros({c.B}, f32), fy = fx, fz = fx, energy = fx;
      for (auto k : range(max(count))) {
        auto here = k < count;
        auto j = load(neighbours + cast(k, i64) * n + i, {.mask = here});
        auto d = apart(pos, x, y, z, j, here, box);
        auto near = here & (d.r2 < cutoff * cutoff);
        auto ir = rsqrt(where(near, d.r2, 1.f)), at = d.r2 * ir * (kKnots / cutoff);
        auto rho = spline(rho_table, at, kKnots, near), phi = spline(phi_table, at, kKnots, near);
        auto other = load(slope + j, {.mask = near});
        auto f = where(near, -(phi.slope + (mine + other) * rho.slope) * (kKnots / cutoff) * ir, 0.f);
        fx += f * d.dx, fy += f * d.dy, fz += f * d.dz;
        energy += where(near, 0.5f * phi.value, 0.f);
      }
      auto put4 = [&](int k, const Tile& v) { store(force + i * 4 + k, v, {.mask = in}); };
      put4(0, fx), put4(1, fy), put4(2, fz), put4(3, energy);
    }).grid([](const EamCfg& c, auto, auto, auto, auto, auto, auto, auto, int n, auto...) {
      return Grid{cdiv(n, c.B)};
    });
Register r5("eam", [](Env& e) {
  EamCfg c{e.field("B", 128)};
  const int n = e.big ? 1 << 18 : 211, K = e.big ? 64 : 80;
  const float cutoff = 6, box = e.big ? 7.f : 13.5f, step = e.big ? 0.05f : 0.02f;
  auto pos = random<float>(e, size_t(n) * 4, 0, box);
  auto coefficients = [&](auto f, double h) {  // Hermite on every interval
    std::vector<float> t;
    for (int m = 0; m < kKnots; ++m) {
      const double a = f(m * h), b = f((m + 1) * h), s = (f(m * h + 1e-4 * h) - f(m * h - 1e-4 * h)) / 2e-4,
                   u = (f((m + 1) * h + 1e-4 * h) - f((m + 1) * h - 1e-4 * h)) / 2e-4;
      for (double v : {a, s, 3 * (b - a) - 2 * s - u, 2 * (a - b) + s + u}) t.push_back(float(v));
    }
    return t;
  };
  const double h = cutoff / double(kKnots);
  auto rho =
      repeated(e, kKnots * 4, coefficients([](double r) { return std::exp(-0.5 * r) * (6 - r) * (6 - r) * .01; }, h));
  auto phi =
      repeated(e, kKnots * 4, coefficients([](double r) { return std::exp(-1.2 * r) * (6 - r) * (6 - r) * .1; }, h));
  auto emb = repeated(e, kKnots * 4, coefficients([](double r) { return -std::sqrt(r + .01) + .02 * r * r; }, step));
  std::vector<int> nb, cnt;
  auto wrap = [=](double d) { return d - box * std::rint(d / box); };
  if (e.device && !e.big) {
    nb.assign(size_t(K) * n, 1 << 30);
    for (int i = 0; i < n; ++i) {
      int k = 0;
      for (int j = 0; j < n && k < K; ++j) {
        double r2 = 0;
        for (int d = 0; d < 3; ++d) r2 += std::pow(wrap(pos[i * 4 + d] - pos[j * 4 + d]), 2);
        if (j != i && r2 < 6.5 * 6.5) nb[size_t(k++) * n + i] = j;  // a skin of neighbours beyond the cutoff
      }
      cnt.push_back(k);
    }
  }
  auto neighbours =
      e.big ? filled<int>(e, size_t(K) * n,
                          [&](size_t i) { return std::clamp(int(i % n) + int(3000 * e.uniform()) - 1500, 0, n - 1); })
            : repeated(e, nb.size() ? nb.size() : 16, nb);
  auto many = e.big ? integers<int>(e, n, 44, K + 1) : repeated(e, n, cnt);
  auto slope = constant<float>(e, n, NAN), force = constant<float>(e, size_t(n) * 4, NAN);
  auto energy = constant<double>(e, 1, 0);
  Job j;
  j.inTurn = true;
  restore(e, j, energy);
  j.add(eam_density, c, pos.p, neighbours.p, many.p, rho.p, emb.p, slope.p, energy.p, n, box, cutoff, step);
  j.add(eam_force, c, pos.p, neighbours.p, many.p, rho.p, phi.p, slope.p, force.p, n, box, cutoff);
  j.check = [=]() -> std::string {
    struct S {
      double v, s;
    };
    auto sp = [&](const auto& t, double x) {
      const int m = std::clamp(int(x), 0, kKnots - 1);
      const double p = std::min(x - m, 1.), c0 = t[m * 4], c1 = t[m * 4 + 1], c2 = t[m * 4 + 2], c3 = t[m * 4 + 3];
      return S{((c3 * p + c2) * p + c1) * p + c0, (3 * c3 * p + 2 * c2) * p + c1};
    };
    std::vector<double> sl(n), total(1), f(size_t(n) * 4);
    for (int pass = 0; pass < 2; ++pass)
      for (int i = 0; i < n; ++i) {
        double rh = 0;
        for (int k = 0; k < cnt[i]; ++k) {
          const int q = nb[size_t(k) * n + i];
          double d[3], r2 = 0;
          for (int a = 0; a < 3; ++a) d[a] = wrap(pos[i * 4 + a] - pos[q * 4 + a]), r2 += d[a] * d[a];
          if (r2 >= 36) continue;
          const double r = std::sqrt(r2);
          const S a = sp(rho, r / h), b = sp(phi, r / h);
          rh += a.v;
          if (!pass) continue;
          for (int x = 0; x < 3; ++x) f[i * 4 + x] -= (b.s + (sl[i] + sl[q]) * a.s) / h / r * d[x];
          f[i * 4 + 3] += .5 * b.v;
        }
        if (pass) continue;
        const S F = sp(emb, rh / step);
        sl[i] = F.s / step, total[0] += F.v;
      }
    return agree(slope.now(), sl, 1e-3, 1e-3) + agree(force.now(), f, 2e-3, 2e-3) +
           agree(energy.now(), total, 1e-2, 1e-3);
  };
  return j;
});
}  // namespace beside_cuda_graphs
}  // namespace users
