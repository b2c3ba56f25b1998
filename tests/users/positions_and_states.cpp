// positions_and_states.cpp - attention of odd kinds and recurrences, as people write them who come from Triton.
#include "tests/users/use.h"
namespace users {
namespace positions_and_states {

struct AtCfg {
  int BM = 64, BN = 64, D = 64, P = 64, stages = 2, warps = 4;
};

// --- contextual positions (CoPE): the distance of a key is the sum of gates between, from the diagonal back
auto cope = kernel("user_cope", [](const AtCfg& c, Ptr<const half> Q, Ptr<const half> K, Ptr<const half> V,
                                   Ptr<const half> E, Ptr<half> O, I32 T, F32 scale) {
              num_warps(c.warps);
              auto bh = program_id(1);
              auto m0 = program_id(0) * c.BM;
              auto rows = m0 + arange(0, c.BM), d = arange(0, c.D), n = arange(0, c.BN), p = arange(0, c.P);
              auto base = cast(bh, i64) * T * c.D;
              auto q = load(Q + (base + (rows.col() * c.D + d.row())), {.mask = (rows < T).col(), .other = 0});
              auto e = load(E + (p.col() * c.D + d.row()));  // [P, D]
              auto qe = dot(q, trans(e));                    // [BM, P]
              Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM}, -INFINITY, f32), l = zeros({c.BM}, f32),
                   far = zeros({c.BM}, f32);
              auto last = cdiv(min(m0 + c.BM, T), c.BN) - 1;
              for (auto j : range(last, -1, -1)) {
                auto cols = j * c.BN + n;
                auto k = load(K + (base + (cols.row() * c.D + d.col())), {.mask = (cols < T).row(), .other = 0});
                auto s = dot(q, k) * scale;
                auto seen = (cols.row() <= rows.col()) & (cols < T).row();
                auto g = where(seen, sigmoid(s), 0.f);
                auto pos = min(cumsum(g, axis(1), {.reverse = true}) + far.col(), float(c.P - 1));
                auto lo = floor(pos);
                auto i0 = cast(lo, i32), i1 = min(i0 + 1, c.P - 1);
                auto w = pos - lo;
                s += (1 - w) * take(qe, i0, 1) + w * take(qe, i1, 1);
                s = where(seen, s, -INFINITY);
                far += squeeze(sum(g, axis(1)), 1);
                auto mn = max(m, squeeze(max(s, axis(1)), 1));
                auto safe = where(mn == -INFINITY, 0.f, mn);
                auto pr = exp(s - safe.col());
                auto alpha = exp(m - safe);
                l = l * alpha + squeeze(sum(pr, axis(1)), 1);
                auto v = load(V + (base + (cols.col() * c.D + d.row())), {.mask = (cols < T).col(), .other = 0});
                acc = dot(cast(pr, f16), v, acc * alpha.col());
                m = mn;
              }
              store(O + (base + (rows.col() * c.D + d.row())), cast(acc / l.col(), f16), {.mask = (rows < T).col()});
            }).grid([](const AtCfg& c, auto, auto, auto, auto, auto, int T, float) {
  return Grid{cdiv(T, c.BM), 32};
});
Register r1("cope", [](Env& e) {
  AtCfg c = e.big ? AtCfg{} : AtCfg{16, 16, 32, 16};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 4096 : 41, BH = 32, D = c.D, P = c.P;
  auto q = random<half>(e, size_t(BH) * T * D), k = random<half>(e, size_t(BH) * T * D),
       v = random<half>(e, size_t(BH) * T * D);
  auto em = random<half>(e, size_t(P) * D);
  auto o = constant<half>(e, size_t(BH) * T * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * BH * T * double(T) * D;
  j.add(cope, c, q.p, k.p, v.p, em.p, o.p, T, scale);
  j.check = [=] {
    std::vector<double> want(o.n);
    for (int b = 0; b < BH; ++b)
      for (int r = 0; r < T; ++r) {
        std::vector<double> s(r + 1);
        double pos = 0, mx = -1e30, l = 0;
        for (int x = r; x >= 0; --x) {
          double dotp = 0;
          for (int i = 0; i < D; ++i) dotp += q[(size_t(b) * T + r) * D + i] * k[(size_t(b) * T + x) * D + i];
          dotp *= scale;
          pos += 1 / (1 + std::exp(-dotp));
          const double ps = std::min(pos, double(P - 1)), lo = std::floor(ps), w = ps - lo;
          const int i0 = int(lo), i1 = std::min(i0 + 1, P - 1);
          double e0 = 0, e1 = 0;
          for (int i = 0; i < D; ++i) {
            e0 += q[(size_t(b) * T + r) * D + i] * em[size_t(i0) * D + i];
            e1 += q[(size_t(b) * T + r) * D + i] * em[size_t(i1) * D + i];
          }
          s[x] = dotp + (1 - w) * e0 + w * e1;
          mx = std::max(mx, s[x]);
        }
        for (double& x : s) x = std::exp(x - mx), l += x;
        for (int i = 0; i < D; ++i) {
          double sum = 0;
          for (int x = 0; x <= r; ++x) sum += s[x] * v[(size_t(b) * T + x) * D + i];
          want[(size_t(b) * T + r) * D + i] = sum / l;
        }
      }
    return agree(o.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- Llama 4: a query sees its own chunk only, queries grow with the logarithm of their place; packed sequences,
// groups of queries, logits capped, lse kept
struct ChunkedCfg {
  int BM = 128, BN = 64, D = 128, CHUNK = 1024, stages = 3, warps = 8;
};
auto chunked_local =
    kernel(
        "user_chunked_local",
        [](const ChunkedCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
           Ptr<const int32_t> cu, Tensor<bfloat16, 3> O, Tensor<float, 2> LSE, F32 scale, I32 most) {
          // [tokens, heads, D]
          num_warps(c.warps);
          auto h = program_id(1), b = program_id(2);
          auto kvh = h / (Q.dim(1) / K.dim(1));
          auto begin = load(cu + b), end = load(cu + b + 1), len = end - begin;
          auto m0 = program_id(0) * c.BM;
          return_if(m0 >= len);
          auto q_of =
              make_view<const bfloat16>(Q.ptr() + begin * Q.stride(0) + h * Q.stride(1), {len, c.D}, {Q.stride(0), 1});
          auto k_of = make_view<const bfloat16>(K.ptr() + begin * K.stride(0) + kvh * K.stride(1), {len, c.D},
                                                {K.stride(0), 1});
          auto v_of = make_view<const bfloat16>(V.ptr() + begin * V.stride(0) + kvh * V.stride(1), {len, c.D},
                                                {V.stride(0), 1});
          auto o_of =
              make_view<bfloat16>(O.ptr() + begin * O.stride(0) + h * O.stride(1), {len, c.D}, {O.stride(0), 1});
          auto rows = m0 + arange(0, c.BM);
          auto temp = log(floor(cast(rows + 1, f32) / 64.f) + 1) * 0.1f + 1;
          auto q = cast(cast(q_of.load({m0, 0}, {c.BM, c.D}), f32) * temp.col(), bf16);
          auto lo = m0 / c.CHUNK * c.CHUNK, hi = min(m0 + c.BM, len);
          Tile m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
          for (auto n : range(lo, hi, c.BN, {.stages = c.stages})) {
            auto cols = n + arange(0, c.BN);
            auto s = dot(q, trans(k_of.load({n, 0}, {c.BN, c.D}))) * scale;
            s = 30 * tanh(s / 30);
            s = where((rows.col() >= cols.row()) & (rows.col() / c.CHUNK == cols.row() / c.CHUNK), s * 1.44269504f,
                      -INFINITY);
            auto mn = max(m, max(s, axis(1)));
            auto mm = where(mn == -INFINITY, 0, mn);
            auto p = exp2(s - mm);
            auto a = exp2(m - mm);
            l = l * a + sum(p, axis(1));
            acc = dot(cast(p, bf16), v_of.load({n, 0}, {c.BN, c.D}), acc * a);
            m = mn;
          }
          o_of.store({m0, 0}, cast(acc / l, bf16));
          auto lse = squeeze(m + log2(l), 1) * 0.69314718f;
          store(LSE.ptr() + (h * LSE.stride(0) + begin + rows), lse, {.mask = rows < len});
        })
        .grid([](const ChunkedCfg& c, const auto& q, const auto&, const auto&, auto, const auto&, const auto& lse,
                 float, int most) {
          return Grid{cdiv(most, c.BM), q.shape[1], 3};
        });
Register r2("chunked_local", [](Env& e) {
  ChunkedCfg c = e.big ? ChunkedCfg{} : ChunkedCfg{32, 16, 32, 16, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps),
  c.stages = e.field("stages", c.stages);
  std::vector<int32_t> cu = e.big ? std::vector<int32_t>{0, 8192, 12288, 16384} : std::vector<int32_t>{0, 45, 45, 78};
  const int N = cu.back(), H = e.big ? 32 : 4, G = e.big ? 4 : 2, HK = H / G, D = c.D;
  auto q = random<bfloat16>(e, size_t(N) * H * D, -3, 3), k = random<bfloat16>(e, size_t(N) * HK * D, -3, 3),
       v = random<bfloat16>(e, size_t(N) * HK * D);
  auto o = constant<bfloat16>(e, size_t(N) * H * D, NAN);
  auto lse = constant<float>(e, size_t(N) * H, NAN);
  auto cud = repeated<int32_t>(e, cu.size(), cu);
  const float scale = 1 / std::sqrt(float(D));
  int most = 0;
  for (size_t i = 1; i < cu.size(); ++i) most = std::max(most, cu[i] - cu[i - 1]);
  Job j;
  j.gflop = 4e-9 * N * H * c.CHUNK / 2 * double(D);
  j.add(chunked_local, c, q.view(N, H, D), k.view(N, HK, D), v.view(N, HK, D), cud.p, o.view(N, H, D), lse.view(H, N),
        scale, most);
  j.check = [=] {
    std::vector<double> want(o.n), wl(lse.n);
    for (int b = 0; b < 3; ++b)
      for (int h = 0; h < H; ++h)
        for (int r = 0; r < cu[b + 1] - cu[b]; ++r) {
          const double t = std::log(std::floor((r + 1) / 64.) + 1) * .1 + 1;
          std::vector<double> s;
          double mx = -1e30, l = 0;
          const int lo = r / c.CHUNK * c.CHUNK;
          for (int x = lo; x <= r; ++x) {
            double a = 0;
            for (int i = 0; i < D; ++i)
              a += q[(size_t(cu[b] + r) * H + h) * D + i] * k[(size_t(cu[b] + x) * HK + h / G) * D + i];
            a = 30 * std::tanh(a * t * scale / 30), mx = std::max(mx, a), s.push_back(a);
          }
          for (double& x : s) x = std::exp(x - mx), l += x;
          wl[size_t(h) * N + cu[b] + r] = mx + std::log(l);
          for (int i = 0; i < D; ++i) {
            double a = 0;
            for (int x = lo; x <= r; ++x) a += s[x - lo] * v[(size_t(cu[b] + x) * HK + h / G) * D + i];
            want[(size_t(cu[b] + r) * H + h) * D + i] = a / l;
          }
        }
    auto bad = agree(o.now(), want, 3e-2, 2e-2);
    return bad.empty() ? agree(lse.now(), wl, 3e-2, 1e-2) : bad;
  };
  return j;
});

// --- Infini-attention: segments one after another, each sees itself and a memory of those before, which then learns it
struct InfiniCfg {
  int S = 64, D = 64, warps = 4;
};
Tile elu1(Tile x) { return where(x > 0, x + 1, exp(x)); }
auto infini = kernel("user_infini", [](const InfiniCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                       Tensor<const half, 3> V, Ptr<const float> gate, Tensor<half, 3> O) {
                num_warps(c.warps);
                auto bh = program_id(0);
                auto g = sigmoid(load(gate + bh));
                Tile M = zeros({c.D, c.D}, f32), z = zeros({c.D}, f32);
                auto i = arange(0, c.S);
                for (auto t : range(0, Q.dim(1), c.S)) {
                  auto q = Q.load({bh, t, 0}, {c.S, c.D});
                  auto k = K.load({bh, t, 0}, {c.S, c.D});
                  auto v = V.load({bh, t, 0}, {c.S, c.D});
                  auto valid = (t + i < Q.dim(1)).col();
                  auto sq = elu1(cast(q, f32)), sk = where(valid, elu1(cast(k, f32)), 0);
                  auto mem = dot(cast(sq, f16), cast(M, f16)) / (sum(sq * z.row(), axis(1)) + 1e-6f);
                  auto s = dot(q, trans(k)) * (1.f / std::sqrt(float(c.D)));
                  s = where(i.col() >= i.row(), s, -INFINITY);
                  s = exp(s - max(s, axis(1)));
                  auto local = dot(cast(s, f16), v) / sum(s, axis(1));
                  O.store({bh, t, 0}, cast(g * mem + (1 - g) * local, f16));
                  M = dot(trans(cast(sk, f16)), v, M);
                  z += squeeze(sum(sk, axis(0)), 0);
                }
              }).grid([](const InfiniCfg&, const auto& q, const auto&, const auto&, auto, const auto&) {
  return Grid{q.shape[0]};
});
Register r3("infini", [](Env& e) {
  InfiniCfg c = e.big ? InfiniCfg{128, 64, 8} : InfiniCfg{16, 32, 4};
  c.S = e.field("S", c.S), c.warps = e.field("warps", c.warps);
  const int BH = e.big ? 256 : 2, T = e.big ? 4096 : 40, D = c.D;
  auto q = random<half>(e, size_t(BH) * T * D), k = random<half>(e, size_t(BH) * T * D),
       v = random<half>(e, size_t(BH) * T * D);
  auto gate = random<float>(e, BH);
  auto o = constant<half>(e, size_t(BH) * T * D, NAN);
  Job j;
  j.add(infini, c, q.view(BH, T, D), k.view(BH, T, D), v.view(BH, T, D), gate.p, o.view(BH, T, D));
  j.check = [=] {
    std::vector<double> want(o.n);
    auto f = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
    for (int b = 0; b < BH; ++b) {
      std::vector<double> M(D * D), z(D);
      const double g = 1 / (1 + std::exp(-gate[b]));
      for (int t = 0; t < T; t += c.S) {
        for (int r = t; r < std::min(T, t + c.S); ++r) {
          std::vector<double> s;
          double l = 0, mx = -1e30, den = 1e-6;
          for (int x = t; x <= r; ++x) {
            double a = 0;
            for (int i = 0; i < D; ++i) a += q[(size_t(b) * T + r) * D + i] * k[(size_t(b) * T + x) * D + i];
            s.push_back(a / std::sqrt(D)), mx = std::max(mx, s.back());
          }
          for (double& x : s) x = std::exp(x - mx), l += x;
          for (int i = 0; i < D; ++i) den += f(q[(size_t(b) * T + r) * D + i]) * z[i];
          for (int i = 0; i < D; ++i) {
            double a = 0, mm = 0;
            for (int x = t; x <= r; ++x) a += s[x - t] * v[(size_t(b) * T + x) * D + i];
            for (int d = 0; d < D; ++d) mm += f(q[(size_t(b) * T + r) * D + d]) * M[d * D + i];
            want[(size_t(b) * T + r) * D + i] = g * mm / den + (1 - g) * a / l;
          }
        }
        for (int r = t; r < std::min(T, t + c.S); ++r)
          for (int d = 0; d < D; ++d) {
            const double s = f(k[(size_t(b) * T + r) * D + d]);
            z[d] += s;
            for (int i = 0; i < D; ++i) M[d * D + i] += s * v[(size_t(b) * T + r) * D + i];
          }
      }
    }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- RWKV-4: weighted sums with a running maximum, a lane per channel; then the gradients, with the states found again
// from what was kept (here: kept for all tokens)
struct WkvCfg {
  int BC = 128, warps = 4;
};
auto wkv4 = kernel("user_wkv4", [](const WkvCfg& c, Ptr<const float> w, Ptr<const float> u, Ptr<const bfloat16> K,
                                   Ptr<const bfloat16> V, Ptr<bfloat16> Y, Ptr<float> state, I32 T, I32 C) {
              num_warps(c.warps);
              auto b = program_id(1);
              auto ch = program_id(0) * c.BC + arange(0, c.BC);
              auto in = ch < C;
              auto wd = -exp(load(w + ch, {.mask = in})), uu = load(u + ch, {.mask = in});
              auto st = state + (cast(b, i64) * 3 * C + ch);
              Tile a = load(st, {.mask = in}), d = load(st + C, {.mask = in}), o = load(st + 2 * C, {.mask = in});
              auto at = cast(b, i64) * T * C + ch;
              for (auto t : range(0, T)) {
                auto p = at + cast(t, i64) * C;
                auto k = cast(load(K + p, {.mask = in}), f32), v = cast(load(V + p, {.mask = in}), f32);
                auto no = max(o, uu + k);
                auto A = exp(o - no), B = exp(uu + k - no);
                store(Y + p, cast((A * a + B * v) / (A * d + B), bf16), {.mask = in});
                no = max(wd + o, k);
                A = exp(wd + o - no), B = exp(k - no);
                a = A * a + B * v;
                d = A * d + B;
                o = no;
              }
              store(st, a, {.mask = in});
              store(st + C, d, {.mask = in});
              store(st + 2 * C, o, {.mask = in});
            }).grid([](const WkvCfg& c, auto, auto, auto, auto, auto, auto, int, int C) {
  return Grid{cdiv(C, c.BC), 2};
});
Register r4("wkv4", [](Env& e) {
  WkvCfg c = e.big ? WkvCfg{} : WkvCfg{32, 1};
  c.BC = e.field("BC", c.BC), c.warps = e.field("warps", c.warps);
  const int B = 2, T = e.big ? 2048 : 21, C = e.big ? 8192 : 45;
  auto w = random<float>(e, C), u = random<float>(e, C);
  auto k = random<bfloat16>(e, size_t(B) * T * C, -4, 4), v = random<bfloat16>(e, size_t(B) * T * C);
  auto y = constant<bfloat16>(e, size_t(B) * T * C, NAN);
  auto st = filled<float>(e, size_t(B) * 3 * C, [&](size_t i) { return i / C % 3 == 2 ? -1e38f : 0.f; });
  Job j;
  restore(e, j, st);
  j.add(wkv4, c, w.p, u.p, k.p, v.p, y.p, st.p, T, C);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int b = 0; b < B; ++b)
      for (int x = 0; x < C; ++x) {
        double a = 0, d = 0;
        for (int t = 0; t < T; ++t) {
          const double kk = k[(size_t(b) * T + t) * C + x], vv = v[(size_t(b) * T + t) * C + x],
                       e1 = std::exp(u[x] + kk);
          want[(size_t(b) * T + t) * C + x] = (a + e1 * vv) / (d + e1);
          const double dec = std::exp(-std::exp(w[x]));
          a = a * dec + std::exp(kk) * vv, d = d * dec + std::exp(kk);
        }
      }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- HGRN: h = exp(g) h + x by associative scans of chunks, going back: dx, dg in chunks from the last to the first
struct HgrnCfg {
  int BT = 64, BD = 64, warps = 4;
};
auto hgrn =
    kernel("user_hgrn", [](const HgrnCfg& c, Tensor<const half, 3> X, Tensor<const half, 3> G, Tensor<half, 3> O) {
      num_warps(c.warps);
      auto d = program_id(0) * c.BD, b = program_id(1);
      Tile h = zeros({1, c.BD}, f32);
      for (auto t : range(0, X.dim(1), c.BT)) {
        auto x = cast(X.load({b, t, d}, {c.BT, c.BD}), f32), g = cast(G.load({b, t, d}, {c.BT, c.BD}), f32);
        auto [f, s] = scan({exp(g), x}, axis(0),
                           [](Tile f0, Tile x0, Tile f1, Tile x1) { return std::tuple(f0 * f1, x0 * f1 + x1); });
        auto all = s + f * h;
        O.store({b, t, d}, cast(all, f16));
        h = extract(all, {c.BT - 1, 0}, {1, c.BD});
      }
    }).grid([](const HgrnCfg& c, const auto& x, const auto&, const auto&) {
      return Grid{cdiv(x.shape[2], c.BD), x.shape[0]};
    });
auto hgrn_bwd = kernel("user_hgrn_bwd", [](const HgrnCfg& c, Tensor<const half, 3> G, Tensor<const half, 3> O,
                                           Tensor<const half, 3> DO, Tensor<half, 3> DX, Tensor<half, 3> DG) {
                  num_warps(c.warps);
                  auto d = program_id(0) * c.BD, b = program_id(1);
                  auto T = G.dim(1);
                  Tile carry = zeros({1, c.BD}, f32);
                  for (auto i : range(cdiv(T, c.BT) - 1, -1, -1)) {
                    auto t = i * c.BT;
                    auto gn = cast(G.load({b, t + 1, d}, {c.BT, c.BD}, {.pad = 0}), f32);  // the gate behind
                    auto dy = cast(DO.load({b, t, d}, {c.BT, c.BD}), f32);
                    auto [f, s] =
                        scan({exp(gn), dy}, axis(0),
                             [](Tile f1, Tile y1, Tile f0, Tile y0) { return std::tuple(f0 * f1, y0 + f0 * y1); },
                             {.reverse = true});
                    auto dx = s + f * carry;
                    auto g = cast(G.load({b, t, d}, {c.BT, c.BD}), f32);
                    auto before = cast(O.load({b, t - 1, d}, {c.BT, c.BD}), f32);
                    DX.store({b, t, d}, cast(dx, f16));
                    DG.store({b, t, d}, cast(dx * before * exp(g), f16));
                    carry = extract(dx, {0, 0}, {1, c.BD});
                  }
                }).grid([](const HgrnCfg& c, const auto& x, const auto&, const auto&, const auto&, const auto&) {
  return Grid{cdiv(x.shape[2], c.BD), x.shape[0]};
});
Register r5("hgrn", [](Env& e) {
  HgrnCfg c = e.big ? HgrnCfg{} : HgrnCfg{8, 16, 2};
  c.BT = e.field("BT", c.BT), c.BD = e.field("BD", c.BD), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 8 : 2, T = e.big ? 4096 : 27, D = e.big ? 2048 : 37;
  auto x = random<half>(e, size_t(B) * T * D), g = random<half>(e, size_t(B) * T * D, -2, 0),
       dy = random<half>(e, size_t(B) * T * D);
  auto o = constant<half>(e, size_t(B) * T * D, NAN), dx = constant<half>(e, size_t(B) * T * D, NAN),
       dg = constant<half>(e, size_t(B) * T * D, NAN);
  Job j;
  j.mbytes = 2e-6 * B * T * double(D) * 8;
  j.add(hgrn, c, x.view(B, T, D), g.view(B, T, D), o.view(B, T, D));
  j.add(hgrn_bwd, c, g.view(B, T, D), TensorView<const half, 3>(o.p, {B, T, D}), dy.view(B, T, D), dx.view(B, T, D),
        dg.view(B, T, D));
  j.check = [=] {
    std::vector<double> wo(o.n), wx(o.n), wg(o.n);
    for (int b = 0; b < B; ++b)
      for (int d = 0; d < D; ++d) {
        auto at = [&](int t) { return (size_t(b) * T + t) * D + d; };
        double h = 0;
        for (int t = 0; t < T; ++t) wo[at(t)] = h = std::exp(g[at(t)]) * h + x[at(t)];
        double s = 0;
        for (int t = T - 1; t >= 0; --t) {
          s = dy[at(t)] + (t + 1 < T ? std::exp(g[at(t + 1)]) * s : 0);
          wx[at(t)] = s, wg[at(t)] = t ? s * wo[at(t - 1)] * std::exp(g[at(t)]) : 0;
        }
      }
    auto bad = agree(o.now(), wo, 5e-3, 5e-3);
    if (bad.empty()) bad = agree(dx.now(), wx, 5e-3, 5e-3);
    return bad.empty() ? agree(dg.now(), wg, 1e-2, 1e-2) : bad;
  };
  return j;
});

// --- Mamba-2, a token: states of chosen slots (none: -1) of [heads, dim, N], softplus, gate
struct SsuCfg {
  int BM = 32, N = 128, warps = 4;
};
auto state_update =
    kernel("user_state_update",
           [](const SsuCfg& c, Ptr<bfloat16> S, Ptr<const int32_t> slots, Ptr<const bfloat16> X, Ptr<const bfloat16> dt,
              Ptr<const float> bias, Ptr<const float> A, Ptr<const bfloat16> Bm, Ptr<const bfloat16> Cm,
              Ptr<const float> D, Ptr<const bfloat16> Z, Ptr<bfloat16> Y, I32 H, I32 dim, I32 groups, I32 n) {
             num_warps(c.warps);
             auto b = program_id(1), h = program_id(2);
             auto slot = cast(load(slots + b), i64);
             return_if(slot < 0);
             auto m = program_id(0) * c.BM + arange(0, c.BM), k = arange(0, c.N);
             auto ok = (m < dim).col() & (k < n).row();
             auto sp = S + ((slot * H + h) * dim + m).col() * n + k.row();
             auto s = cast(load(sp, {.mask = ok, .other = 0}), f32);
             auto row = (b * H + h) * dim + m;
             auto x = cast(load(X + row, {.mask = m < dim}), f32);
             auto d = cast(load(dt + (b * H + h)), f32) + load(bias + h);
             d = where(d <= 20, log1p(exp(d)), d);
             auto g = h / (H / groups);
             auto bm = cast(load(Bm + ((b * groups + g) * n + k), {.mask = k < n}), f32),
                  cm = cast(load(Cm + ((b * groups + g) * n + k), {.mask = k < n}), f32);
             auto next = s * exp(load(A + h) * d) + (bm * d).row() * x.col();
             store(sp, cast(next, bf16), {.mask = ok});
             auto y = squeeze(sum(next * cm.row(), axis(1)), 1) + x * load(D + h);
             auto z = cast(load(Z + row, {.mask = m < dim}), f32);
             store(Y + row, cast(y * z * sigmoid(z), bf16), {.mask = m < dim});
           })
        .grid([](const SsuCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, int H, int dim, int,
                 int) {
          return Grid{cdiv(dim, c.BM), 1, H};
        });
Register r6("state_update", [](Env& e) {
  SsuCfg c = e.big ? SsuCfg{} : SsuCfg{16, 32, 2};
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 128 : 3, H = e.big ? 64 : 4, dim = e.big ? 64 : 19, n = e.big ? 128 : 21, G = e.big ? 8 : 2,
            slots = B + 2;
  auto S = random<bfloat16>(e, size_t(slots) * H * dim * n);
  auto sl = filled<int32_t>(e, B, [&](size_t i) { return i == 1 ? -1 : int(B + 1 - i); });
  auto x = random<bfloat16>(e, size_t(B) * H * dim), dt = random<bfloat16>(e, B * H, -3, 25),
       bm = random<bfloat16>(e, B * G * n), cm = random<bfloat16>(e, B * G * n),
       z = random<bfloat16>(e, size_t(B) * H * dim);
  auto bias = random<float>(e, H), A = random<float>(e, H, -1, 0), D = random<float>(e, H);
  auto y = constant<bfloat16>(e, size_t(B) * H * dim, 7);
  auto k = state_update.grid(
      [B](const SsuCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, int H, int dim, int, int) {
        return Grid{cdiv(dim, c.BM), B, H};
      });
  Job j;
  j.mbytes = 4e-6 * B * H * double(dim) * n;
  restore(e, j, S);
  j.add(k, c, S.p, sl.p, x.p, dt.p, bias.p, A.p, bm.p, cm.p, D.p, z.p, y.p, H, dim, G, n);
  j.check = [=] {
    std::vector<double> want(y.n, 7), ws(S.n);
    for (size_t i = 0; i < S.n; ++i) ws[i] = S[i];
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H && sl.at(b) >= 0; ++h)
        for (int m = 0; m < dim; ++m) {
          double d = dt[b * H + h] + bias[h], acc = 0;
          d = d <= 20 ? std::log1p(std::exp(d)) : d;
          const double xx = x[(size_t(b) * H + h) * dim + m], zz = z[(size_t(b) * H + h) * dim + m];
          for (int i = 0; i < n; ++i) {
            double& s = ws[((size_t(sl.at(b)) * H + h) * dim + m) * n + i];
            s = s * std::exp(A[h] * d) + bm[(b * G + h / (H / G)) * n + i] * d * xx;
            acc += s * cm[(b * G + h / (H / G)) * n + i];
          }
          want[(size_t(b) * H + h) * dim + m] = (acc + xx * D[h]) * zz / (1 + std::exp(-zz));
        }
    auto bad = agree(y.now(), want, 2e-2, 2e-2);
    return bad.empty() ? agree(S.now(), ws, 2e-2, 2e-2) : bad;
  };
  return j;
});

// --- (1 + A)^-1 of strictly lower 64 x 64: four blocks of 16 by rows, the others by products (flash-linear-attention)
struct TrilCfg {
  int warps = 4;
};
auto solve_tril =
    kernel("user_solve_tril", [](const TrilCfg& c, Tensor<const float, 3> A, Tensor<half, 3> Ai) {
      // [T, H, 64]
      num_warps(c.warps);
      auto t = program_id(0) * 64, h = program_id(1);
      auto o = arange(0, 16);
      auto lower = o.col() > o.row();
      auto T = A.dim(0);
      auto a = make_view<const float>(A.ptr() + h * A.stride(1), {T, 64}, {A.stride(0), 1});
      auto out = make_view<half>(Ai.ptr() + h * Ai.stride(1), {T, 64}, {Ai.stride(0), 1});
      Tile d[4];
      for (int k = 0; k < 4; ++k) d[k] = -where(lower, a.load({t + 16 * k, 16 * k}, {16, 16}), 0);
      for (int k = 0; k < 4; ++k)
        for (auto i : range(2, min(T - t - 16 * k, 16))) {
          Tile r = -a.load({t + 16 * k + i, 16 * k}, {16});
          r = where(o < i, r, 0);
          r += squeeze(sum(r.col() * d[k], axis(0)), 0);
          d[k] = where((o == i).col(), r.row(), d[k]);
        }
      for (int k = 0; k < 4; ++k) d[k] += cast(o.col() == o.row(), f32);
      auto block = [&](int i, int j) { return a.load({t + 16 * i, 16 * j}, {16, 16}); };
      auto mul = [&](const Tile& x, const Tile& y) { return dot(x, y, zeros({16, 16}, f32), Prec::tf32x3); };
      auto i21 = -mul(mul(d[1], block(1, 0)), d[0]);
      auto i32_ = -mul(mul(d[2], block(2, 1)), d[1]);
      auto i43 = -mul(mul(d[3], block(3, 2)), d[2]);
      auto i31 = -mul(d[2], mul(block(2, 0), d[0]) + mul(block(2, 1), i21));
      auto i42 = -mul(d[3], mul(block(3, 1), d[1]) + mul(block(3, 2), i32_));
      auto i41 = -mul(d[3], mul(block(3, 0), d[0]) + mul(block(3, 1), i21) + mul(block(3, 2), i31));
      for (int k = 0; k < 4; ++k) out.store({t + 16 * k, 16 * k}, cast(d[k], f16));
      out.store({t + 16, 0}, cast(i21, f16));
      out.store({t + 32, 16}, cast(i32_, f16));
      out.store({t + 48, 32}, cast(i43, f16));
      out.store({t + 32, 0}, cast(i31, f16));
      out.store({t + 48, 16}, cast(i42, f16));
      out.store({t + 48, 0}, cast(i41, f16));
      auto z = zeros({16, 16}, f16);
      for (int i = 0; i < 4; ++i)
        for (int k = i + 1; k < 4; ++k) out.store({t + 16 * i, 16 * k}, z);
    }).grid([](const TrilCfg&, const auto& a, const auto&) {
      return Grid{cdiv(a.shape[0], 64), a.shape[1]};
    });
Register r7("solve_tril", [](Env& e) {
  TrilCfg c{e.field("warps", e.big ? 4 : 2)};
  const int T = e.big ? 16384 : 64 + 37, H = e.big ? 32 : 2;
  auto a = random<float>(e, size_t(T) * H * 64, -.5, .5);
  auto ai = constant<half>(e, size_t(T) * H * 64, NAN);
  Job j;
  j.mbytes = 6e-6 * T * H * 64;
  j.add(solve_tril, c, a.view(T, H, 64), ai.view(T, H, 64));
  j.check = [=] {
    std::vector<double> want(ai.n);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; t += 64)
        for (int col = 0; col < 64; ++col) {
          double x[64];
          for (int r = 0; r < 64 && t + r < T; ++r) {
            x[r] = r == col;
            for (int k = 0; k < r; ++k) x[r] -= a[(size_t(t + r) * H + h) * 64 + k] * x[k];
            want[(size_t(t + r) * H + h) * 64 + col] = x[r];
          }
        }
    return agree(ai.now(), want, 5e-3, 5e-3);
  };
  return j;
});

}  // namespace positions_and_states
}  // namespace users
