// outliers_and_tables.cpp - quantised products and their preparations, as people write them who come from Triton.
#include "tests/users/use.h"
namespace users {
namespace outliers_and_tables {

struct QuCfg {
  int BM = 64, BN = 128, BK = 64, stages = 3, warps = 4;
};
QuCfg qu(Env& e, QuCfg big, QuCfg small) {
  QuCfg c = e.big ? big : small;
  return {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK), e.field("stages", c.stages),
          e.field("warps", c.warps)};
}

// --- LLM.int8: codes of 8 bits but for some columns of the activations, which are multiplied as they are
auto outliers =
    kernel("user_outliers", [](const QuCfg& c, Ptr<const int8_t> a, Ptr<const float> as, Ptr<const int8_t> b,
                               Ptr<const float> bs, Ptr<const half> x, Ptr<const half> w, Ptr<const int32_t> columns,
                               I32 count, Ptr<const half> bias, Ptr<half> y, I32 M, I32 N, I32 K) {
      // a, x [M, K], b [N, K], w [K, N]
      num_warps(c.warps);
      auto [pm, pn] = swizzle2d(program_id(0), program_id(1), cdiv(M, c.BM), cdiv(N, c.BN), 8);
      auto rm = pm * c.BM + arange(0, c.BM), rn = pn * c.BN + arange(0, c.BN), rk = arange(0, c.BK);
      Tile acc = zeros({c.BM, c.BN}, i32);
      for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
        auto kk = k + rk;
        auto ta = load(a + (rm.col() * K + kk.row()), {.mask = (rm < M).col() & (kk < K).row(), .other = 0});
        auto tb = load(b + (rn.row() * K + kk.col()), {.mask = (rn < N).row() & (kk < K).col(), .other = 0});
        acc = dot(ta, tb, acc);
      }
      Tile f = cast(acc, f32) * load(as + rm, {.mask = rm < M}).col() * load(bs + rn, {.mask = rn < N}).row();
      for (auto k : range(0, count, 16)) {
        auto kk = k + arange(0, 16);
        auto col = load(columns + kk, {.mask = kk < count, .other = 0});
        auto tx = load(x + (rm.col() * K + col.row()), {.mask = (rm < M).col() & (kk < count).row(), .other = 0});
        auto tw = load(w + (col.col() * N + rn.row()), {.mask = (kk < count).col() & (rn < N).row(), .other = 0});
        f = dot(tx, tw, f);
      }
      f += cast(load(bias + rn, {.mask = rn < N}), f32).row();
      store(y + (rm.col() * N + rn.row()), cast(f, f16), {.mask = (rm < M).col() & (rn < N).row()});
    }).grid([](const QuCfg& c, auto, auto, auto, auto, auto, auto, auto, int, auto, auto, int M, int N, int) {
      return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
    });
Register r1("outliers", [](Env& e) {
  auto c = qu(e, {128, 128, 128, 3, 8}, {32, 32, 32, 2, 4});
  const int M = e.big ? 4096 : 45, N = e.big ? 4096 : 40, K = e.big ? 4096 : 72, C = e.big ? 48 : 19;
  auto a = integers<int8_t>(e, size_t(M) * K, -127, 128), b = integers<int8_t>(e, size_t(N) * K, -127, 128);
  auto as = random<float>(e, M, .001, .01), bs = random<float>(e, N, .001, .01);
  auto x = random<half>(e, size_t(M) * K, -8, 8), w = random<half>(e, size_t(K) * N), bias = random<half>(e, N);
  auto cols = filled<int32_t>(e, C, [&](size_t i) { return int(i * 29 % K); });
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(outliers, c, a.p, as.p, b.p, bs.p, x.p, w.p, cols.p, C, bias.p, y.p, M, N, K);
  j.check = [=] {
    auto want = product(
        M, N, K, matrix(a, K), [&](int k, int n) { return b[size_t(n) * K + k]; },
        [&](double s, int m, int n) {
          s = s * as[m] * bs[n] + bias[n];
          for (int i = 0; i < C; ++i) s += x[size_t(m) * K + cols.at(i)] * w[size_t(cols.at(i)) * N + n];
          return s;
        });
    return agree(y.now(), want, 2e-2, 2e-3);
  };
  return j;
});

// --- llama.cpp's Q8_0: records of 34 bytes, a factor (f16) and 32 codes; times f16
auto q8_0 = kernel("user_q8_0", [](const QuCfg& c, Tensor<const half, 2> A, Ptr<const int8_t> W, Ptr<const half> WH,
                                   Tensor<half, 2> Y) {
              // W [N, K / 32, 34], WH the same memory
              num_warps(c.warps);
              auto m = program_id(0) * c.BM, n = program_id(1) * c.BN + arange(0, c.BN);
              auto N = Y.dim(1), blocks = A.dim(1) / 32;
              Tile acc = zeros({c.BM, c.BN}, f32);
              for (auto k : range(0, blocks, c.BK / 32, {.stages = c.stages})) {
                auto rec = k + arange(0, c.BK) / 32, at = arange(0, c.BK) % 32;
                auto d =
                    load(WH + ((n.row() * blocks + rec.col()) * 17), {.mask = (n < N).row() & (rec < blocks).col()});
                auto q = load(W + ((n.row() * blocks + rec.col()) * 34 + 2 + at.col()),
                              {.mask = (n < N).row() & (rec < blocks).col()});
                acc = dot(A.load({m, k * 32}, {c.BM, c.BK}), cast(q, f16) * d, acc);
              }
              Y.store({m, program_id(1) * c.BN}, cast(acc, f16));
            }).grid([](const QuCfg& c, const auto&, auto, auto, const auto& y) {
  return Grid{cdiv(y.shape[0], c.BM), cdiv(y.shape[1], c.BN)};
});
Register r2("q8_0", [](Env& e) {
  auto c = qu(e, {64, 128, 64, 3, 4}, {16, 32, 64, 2, 2});
  const int M = e.big ? 512 : 21, N = e.big ? 4096 : 40, K = e.big ? 4096 : 160;
  auto a = random<half>(e, size_t(M) * K);
  auto w = integers<int8_t>(e, size_t(N) * K / 32 * 34, -127, 128);
  if (e.device && !e.big) {
    for (size_t r = 0; r < w.n; r += 34) w.h[r + 1] = 0x20 | (w.h[r + 1] & 3);
    w = filled<int8_t>(e, w.n, [h = w.h](size_t i) { return h[i]; });
  }
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(q8_0, c, a.view(M, K), w.p, reinterpret_cast<const half*>(w.p), y.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), [&](int k, int n) {
      const int8_t* r = &w.h[(size_t(n) * (K / 32) + k / 32) * 34];
      const int bits = uint8_t(r[0]) | uint8_t(r[1]) << 8;
      const double d = std::ldexp(1024 + (bits & 1023), (bits >> 10 & 31) - 25);
      return in_half(d * r[2 + k % 32]);
    });
    return agree(y.now(), want, 2e-2, 5e-3);
  };
  return j;
});

// --- four bits times e4m3: codes -8 .. 7 are numbers of e4m3, factors of groups of 128 come after the products
auto w4f8 = kernel("user_w4f8", [](const QuCfg& c, Tensor<const fp8_e4m3, 2> A, Ptr<const float> as,
                                   Tensor<const uint8_t, 2> W, Ptr<const half> ws, Tensor<bfloat16, 2> Y) {
              // W [N, K / 2]: code k in the low half of byte k where k < 64 of its group, high half those 64 later; ws
              // [K / 128, N]
              num_warps(c.warps);
              auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
              auto rn = n + arange(0, c.BN), rm = m + arange(0, c.BM);
              auto M = Y.dim(0), N = Y.dim(1);
              Tile acc = zeros({c.BM, c.BN}, f32);
              for (auto g : range(0, A.dim(1) / 128, 1, {.stages = c.stages})) {
                auto b = cast(W.load({n, g * 64}, {c.BN, 64}), i32);
                auto lo = cast(cast((b & 15) - 8, f16), f8e4m3), hi = cast(cast((b >> 4) - 8, f16), f8e4m3);
                auto part = dot(A.load({m, g * 128}, {c.BM, 64}), trans(lo), zeros({c.BM, c.BN}, f32));
                part = dot(A.load({m, g * 128 + 64}, {c.BM, 64}), trans(hi), part);
                acc += part * cast(load(ws + g * N + rn, {.mask = rn < N}), f32).row();
              }
              acc *= load(as + rm, {.mask = rm < M}).col();
              Y.store({m, n}, cast(acc, bf16));
            }).grid([](const QuCfg& c, const auto&, auto, const auto&, auto, const auto& y) {
  return Grid{cdiv(y.shape[0], c.BM), cdiv(y.shape[1], c.BN)};
});
Register r3("w4f8", [](Env& e) {
  auto c = qu(e, {64, 128, 128, 3, 4}, {64, 32, 128, 2, 4});
  const int M = e.big ? 512 : 67, N = e.big ? 8192 : 40, K = e.big ? 8192 : 384;
  auto a = random<fp8_e4m3>(e, size_t(M) * K);
  auto w = integers<uint8_t>(e, size_t(N) * K / 2, 0, 256);
  auto as = random<float>(e, M, .5, 1);
  auto ws = random<half>(e, size_t(K / 128) * N, .01, .02);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(w4f8, c, a.view(M, K), as.p, w.view(N, K / 2), ws.p, y.view(M, N));
  j.check = [=] {
    auto want = product(
        M, N, K, matrix(a, K),
        [&](int k, int n) {
          const int g = k / 128, i = k % 128;
          const int b = w.at(size_t(n) * K / 2 + g * 64 + i % 64);
          return ((i < 64 ? b & 15 : b >> 4) - 8) * ws[size_t(g) * N + n];
        },
        [&](double s, int m, int) { return s * as[m]; });
    return agree(y.now(), want, 5e-2, 1e-2);
  };
  return j;
});

// --- to mxfp8 with factors where tensor cores of later chips want them: blocks of 128 rows x 4 factors as [32, 4, 4]
struct MxCfg {
  int BR = 128, BC = 128, warps = 4;
};
auto mx_swizzled =
    kernel("user_mx_swizzled", [](const MxCfg& c, Ptr<const bfloat16> x, Ptr<fp8_e4m3> q, Ptr<uint8_t> s, I32 R,
                                  I32 C) {
      num_warps(c.warps);
      auto r = program_id(0) * c.BR + arange(0, c.BR), k = program_id(1) * c.BC + arange(0, c.BC);
      auto in = (r < R).col() & (k < C).row();
      auto v = reshape(cast(load(x + (r.col() * C + k.row()), {.mask = in, .other = 0}), f32), {c.BR, c.BC / 32, 32});
      auto amax = max(abs(v), axis(2));
      auto bits = bitcast(amax, i32);
      auto e = (bits >> 23 & 255) - 8;  // floor(log2(amax)) - 8 + 127
      e = clamp(e, 0, 254);
      auto inv = bitcast((254 - e) << 23, f32);
      auto y = cast(clamp(v * inv, -448.f, 448.f), f8e4m3);
      store(q + (r.col() * C + k.row()), reshape(y, {c.BR, c.BC}), {.mask = in});
      // 128 x 4 -> [4, 32, 4] -> [32, 4, 4] -> 512 bytes
      auto f = cast(reshape(e, {4, 32, 4}), u8);
      f = reshape(permute(f, {1, 0, 2}), {512});
      store(s + ((program_id(0) * num_programs(1) + program_id(1)) * 512 + arange(0, 512)), f);
    }).grid([](const MxCfg& c, auto, auto, auto, int R, int C) {
      return Grid{cdiv(R, c.BR), cdiv(C, c.BC)};
    });
Register r4("mx_swizzled", [](Env& e) {
  MxCfg c{128, 128, e.field("warps", 4)};
  const int R = e.big ? 16384 : 135, C = e.big ? 4096 : 192;
  auto x = random<bfloat16>(e, size_t(R) * C, -100, 100);
  const int pr = int(cdiv(R, 128)), pc = int(cdiv(C, 128));
  auto q = constant<fp8_e4m3>(e, size_t(R) * C, 1);
  auto s = constant<uint8_t>(e, size_t(pr) * pc * 512, 255);
  Job j;
  j.mbytes = 3e-6 * R * C;
  j.add(mx_swizzled, c, x.p, q.p, s.p, R, C);
  j.check = [=] {
    std::vector<double> wq(q.n), wsc(s.n);
    for (int r = 0; r < pr * 128; ++r)
      for (int g = 0; g < pc * 4; ++g) {
        double m = 0;
        for (int i = 0; i < 32; ++i)
          if (r < R && g * 32 + i < C) m = std::max(m, std::abs(x[size_t(r) * C + g * 32 + i]));
        const int ex = m == 0 ? -127 : std::max(-127, std::ilogb(m) - 8);
        wsc[size_t(r / 128 * pc + g / 4) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + g % 4] = ex + 127;
        for (int i = 0; i < 32; ++i)
          if (r < R && g * 32 + i < C)
            wq[size_t(r) * C + g * 32 + i] = std::clamp(std::ldexp(x[size_t(r) * C + g * 32 + i], -ex), -448., 448.);
      }
    auto bad = agree(s.now(), wsc, 1e-9, 0);
    return bad.empty() ? agree(q.now(), wq, 1e-2, .07) : bad;
  };
  return j;
});

// --- embeddings of 8 bits: a row is a factor and an offset (f16) and then codes; weighted bags of a table of tables
struct TbeCfg {
  int BD = 128, warps = 1;
};
auto tbe8 = kernel("user_tbe8", [](const TbeCfg& c, Ptr<const uint8_t> bytes, Ptr<const half> halves,
                                   Ptr<const int64_t> table, Ptr<const int64_t> indices, Ptr<const int32_t> offsets,
                                   Ptr<const float> weights, Ptr<bfloat16> y, I32 B, I32 D, I32 mean) {
  // a program a bag; table [tables]: where a table begins in bytes
  num_warps(c.warps);
  auto b = program_id(0), t = program_id(1);
  auto begin = load(offsets + (t * B + b)), end = load(offsets + (t * B + b + 1));
  auto base = load(table + t);
  auto pitch = cast(D + 4, i64);
  auto d = program_id(2) * c.BD + arange(0, c.BD);
  Tile acc = zeros({c.BD}, f32);
  for (auto i : range(begin, end)) {
    auto row = load(indices + i);
    for (auto _ : when(row >= 0)) {
      auto at = base + row * pitch;
      auto w = load(weights + i);
      auto scale = cast(load(halves + at / 2), f32), shift = cast(load(halves + at / 2 + 1), f32);
      acc += w * (cast(load(bytes + at + 4 + d, {.mask = d < D}), f32) * scale + shift);
    }
  }
  if_(mean != 0, [&] { acc = acc / max(cast(end - begin, f32), 1); });
  store(y + ((cast(b, i64) * num_programs(1) + t) * D + d), cast(acc, bf16), {.mask = d < D});
});
Register r5("tbe8", [](Env& e) {
  TbeCfg c = e.big ? TbeCfg{} : TbeCfg{32, 1};
  c.BD = e.field("BD", c.BD), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 4096 : 5, T = e.big ? 16 : 3, D = e.big ? 128 : 44, rows = e.big ? 100000 : 9;
  auto w = integers<uint8_t>(e, size_t(T) * rows * (D + 4), 0, 256);
  if (e.device && !e.big) {
    for (size_t r = 0; r < w.n; r += D + 4) w.h[r + 1] = 0x20 | (w.h[r + 1] & 3), w.h[r + 3] = 0xB8;
    w = filled<uint8_t>(e, w.n, [h = w.h](size_t i) { return h[i]; });
  }
  auto table = filled<int64_t>(e, T, [&](size_t t) { return int64_t(t) * rows * (D + 4); });
  std::vector<int32_t> off{0};
  for (int i = 0; i < B * T; ++i) off.push_back(off.back() + (e.big ? 20 : i % 4));
  auto offsets = repeated<int32_t>(e, off.size(), off);
  auto idx = integers<int64_t>(e, off.back(), e.big ? 0 : -2, rows);
  auto wt = random<float>(e, off.back());
  auto y = constant<bfloat16>(e, size_t(B) * T * D, NAN);
  auto k = tbe8.grid([B, T](const TbeCfg& c, auto, auto, auto, auto, auto, auto, auto, int, int D, int) {
    return Grid{B, T, cdiv(D, c.BD)};
  });
  Job j;
  j.mbytes = 1e-6 * off.back() * (D + 4);
  j.add(k, c, w.p, reinterpret_cast<const half*>(w.p), table.p, idx.p, offsets.p, wt.p, y.p, B, D, 1);
  j.check = [=] {
    auto f16_of = [](int bits) {
      return (bits & 0x8000 ? -1 : 1) * std::ldexp(1024 + (bits & 1023), (bits >> 10 & 31) - 25);
    };
    std::vector<double> want(y.n);
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t)
        for (int i = off[t * B + b]; i < off[t * B + b + 1]; ++i) {
          if (idx.at(i) < 0) continue;
          const uint8_t* r = &w.h[size_t(table.at(t)) + idx.at(i) * (D + 4)];
          for (int d = 0; d < D; ++d)
            want[(size_t(b) * T + t) * D + d] += wt[i] *
                                                 (r[4 + d] * f16_of(r[0] | r[1] << 8) + f16_of(r[2] | r[3] << 8)) /
                                                 std::max(1, off[t * B + b + 1] - off[t * B + b]);
        }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- a router: logits capped, the two best of them and softmax over those two alone; weights [experts, K]
auto capped_router =
    kernel("user_capped_router", [](const QuCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> w, Ptr<const float> bias,
                                    Ptr<float> top, Ptr<int32_t> ids, I32 M, I32 E, I32 K) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = arange(0, c.BN), k = arange(0, c.BK);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto i : range(0, cdiv(K, c.BK), 1, {.stages = c.stages})) {
        auto kk = i * c.BK + k;
        auto a = load(x + (m.col() * K + kk.row()), {.mask = (m < M).col() & (kk < K).row(), .other = 0});
        auto b = trans(load(w + (n.col() * K + kk.row()), {.mask = (n < E).col() & (kk < K).row(), .other = 0}));
        acc = dot(a, b, acc);
      }
      auto s = acc / 30;
      auto t = exp(2 * s);
      Tile l = 30 * ((t - 1) / (t + 1)) + load(bias + n, {.mask = n < E}).row();
      l = where((n < E).row(), l, -INFINITY);
      auto [v1, i1] = max_with_index(l, axis(1));
      auto [v2, i2] = max_with_index(where(n.row() == i1, -INFINITY, l), axis(1));
      auto z = 1 / (1 + exp(v2 - v1));
      auto ok = (m < M).col();
      store(top + m.col() * 2, z, {.mask = ok});
      store(top + m.col() * 2 + 1, 1 - z, {.mask = ok});
      store(ids + m.col() * 2, i1, {.mask = ok});
      store(ids + m.col() * 2 + 1, i2, {.mask = ok});
    }).grid([](const QuCfg& c, auto, auto, auto, auto, auto, int M, int, int) { return Grid{cdiv(M, c.BM)}; });
Register r6("capped_router", [](Env& e) {
  auto c = qu(e, {32, 16, 256, 3, 4}, {16, 16, 32, 2, 4});
  const int M = e.big ? 4096 : 21, E = e.big ? 8 : 7, K = e.big ? 6144 : 77;
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(E) * K);
  auto bias = random<float>(e, E);
  auto top = constant<float>(e, M * 2, NAN);
  auto ids = constant<int32_t>(e, M * 2, -1);
  Job j;
  j.mbytes = 2e-6 * M * double(K);
  j.add(capped_router, c, x.p, w.p, bias.p, top.p, ids.p, M, E, K);
  j.check = [=] {
    auto l = product(
        M, E, K, matrix(x, K), [&](int k, int n) { return w[size_t(n) * K + k]; },
        [&](double s, int, int n) { return 30 * std::tanh(s / 30) + bias[n]; });
    std::vector<double> wt(M * 2), wi(M * 2);
    for (int m = 0; m < M; ++m) {
      std::vector<int> o(E);
      for (int i = 0; i < E; ++i) o[i] = i;
      std::sort(o.begin(), o.end(), [&](int a, int b) { return l[m * E + a] > l[m * E + b]; });
      wi[2 * m] = o[0], wi[2 * m + 1] = o[1];
      wt[2 * m] = 1 / (1 + std::exp(l[m * E + o[1]] - l[m * E + o[0]])), wt[2 * m + 1] = 1 - wt[2 * m];
    }
    auto bad = agree(ids.now(), wi, 1e-9, 0);
    return bad.empty() ? agree(top.now(), wt, 1e-3, 1e-3) : bad;
  };
  return j;
});

// --- weights in e5m2, activations transposed [K, M] in bf16, result transposed: y' = x' w in batches
auto turned_f8 = kernel("user_turned_f8", [](const QuCfg& c, Tensor<const bfloat16, 3> X, Tensor<const fp8_e5m2, 3> W,
                                             Ptr<const float> s, Tensor<bfloat16, 3> Y) {
                   // X [B, K, M], W [B, N, K], Y [B, N, M]
                   num_warps(c.warps);
                   auto b = program_id(2), n = program_id(0) * c.BM, m = program_id(1) * c.BN;
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
                     acc = dot(cast(W.load({b, n, k}, {c.BM, c.BK}), bf16), X.load({b, k, m}, {c.BK, c.BN}), acc);
                   auto sc = make_view<const float>(s + b * W.dim(1), {W.dim(1)}, {1}).load({n}, {c.BM});
                   Y.store({b, n, m}, cast(acc * sc.col(), bf16));
                 }).grid([](const QuCfg& c, const auto& x, const auto&, auto, const auto& y) {
  return Grid{cdiv(y.shape[1], c.BM), cdiv(y.shape[2], c.BN), x.shape[0]};
});
Register r7("turned_f8", [](Env& e) {
  auto c = qu(e, {128, 128, 64, 3, 8}, {64, 32, 32, 2, 4});
  const int B = e.big ? 16 : 2, M = e.big ? 1024 : 40, N = e.big ? 4096 : 72, K = e.big ? 2048 : 48;
  auto x = random<bfloat16>(e, size_t(B) * M * K);
  auto w = random<fp8_e5m2>(e, size_t(B) * N * K);
  auto s = random<float>(e, B * N, .5, 1);
  auto y = constant<bfloat16>(e, size_t(B) * M * N, NAN);
  Job j;
  j.gflop = 2e-9 * B * M * N * double(K);
  j.add(turned_f8, c, x.view(B, K, M), w.view(B, N, K), s.p, y.view(B, N, M));
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b) {
      auto one = product(N, M, K, matrix(w, K, size_t(b) * N * K), matrix(x, M, size_t(b) * K * M),
                         [&](double v, int n, int) { return v * s[b * N + n]; });
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(y.now(), want, 2e-2, 1e-2);
  };
  return j;
});

}  // namespace outliers_and_tables
}  // namespace users
