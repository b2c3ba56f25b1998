// made_quants.cpp - numbers made narrow in blocks, by pointers: nvfp4 and mxfp8 activations, nf4 weights
// (bitsandbytes), int8 rows without their outliers (LLM.int8), 3 bits in slabs (HQQ); a product of int8 activations and
// int4 weights with factors of groups.
#include "tests/users/use.h"
namespace users {
namespace made_quants {

const double kE2m1[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};
double e2m1(int code) { return (code & 8 ? -1 : 1) * kE2m1[code & 7]; }

// --- nvfp4: groups of 16 along a row, a factor of e4m3 for each, one f32 factor for all
struct BlockCfg {
  int BM = 32, BN = 128;
};
auto nvfp4 =
    kernel("user_to_nvfp4", [](const BlockCfg& c, Ptr<const bfloat16> x_ptr, Ptr<const float> global_ptr,
                               Ptr<uint8_t> q_ptr, Ptr<fp8_e4m3> s_ptr, I32 M, I32 N) {
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
      auto x = cast(load(x_ptr + (m.col() * N + n.row()), {.mask = (m < M).col() & (n < N).row(), .other = 0.f}), f32);
      auto global = load(global_ptr);
      auto groups = reshape(x, {c.BM, c.BN / 16, 16});
      auto s8 = cast(clamp(max(abs(groups), axis(2)) * (global / 6.f), 0.f, 448.f), f8e4m3);
      auto s = cast(s8, f32);
      auto scaled = groups * where(s > 0, global / s, 0.f);
      auto a = abs(scaled);
      Tile code = zeros({c.BM, c.BN / 16, 16}, i32);
      for (float t : {.25f, .75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.f}) code = code + cast(a > t, i32);
      code = code | where(scaled < 0, 8, 0);
      auto [low, high] = split(reshape(code, {c.BM, c.BN / 2, 2}));
      auto half_n = program_id(1) * (c.BN / 2) + arange(0, c.BN / 2),
           g = program_id(1) * (c.BN / 16) + arange(0, c.BN / 16);
      store(q_ptr + (m.col() * (N / 2) + half_n.row()), cast(low | (high << 4), u8),
            {.mask = (m < M).col() & (half_n < N / 2).row()});
      store(s_ptr + (m.col() * (N / 16) + g.row()), squeeze(s8, 2), {.mask = (m < M).col() & (g < N / 16).row()});
    }).grid([](const BlockCfg& c, auto, auto, auto, auto, int M, int N) {
      return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
    });
Register r1("to_nvfp4", [](Env& e) {
  BlockCfg c;
  if (!e.big) c = {16, 64};
  const int M = e.big ? 8192 : 27, N = e.big ? 7168 : 80;
  auto x = random<bfloat16>(e, size_t(M) * N, -5, 5);
  auto global = constant<float>(e, 1, 100);
  auto q = constant<uint8_t>(e, x.n / 2, 0);
  auto s = constant<fp8_e4m3>(e, x.n / 16, 0);
  Job j;
  j.mbytes = 2.6e-6 * x.n;
  j.add(nvfp4, c, x.p, global.p, q.p, s.p, M, N);
  j.check = [=] {
    const auto codes = q.now();
    const auto factors = s.now();
    for (size_t g = 0; g < s.n; ++g) {
      double most = 0;
      for (int i = 0; i < 16; ++i) most = std::max(most, std::abs(x[g * 16 + i]));
      const double f = double(float(factors[g])), ideal = most * 100 / 6;
      if (std::abs(f - ideal) > ideal / 15) return "factor " + std::to_string(g);
      for (int i = 0; i < 16; ++i) {
        const double v = x[g * 16 + i] * 100 / f, got = e2m1(codes[g * 8 + i / 2] >> (i % 2 * 4) & 15);
        double best = 1e9;
        for (int k = 0; k < 16; ++k) best = std::min(best, std::abs(v - e2m1(k)));
        if (std::abs(v - got) > best + 1e-4) return "number " + std::to_string(g * 16 + i);
      }
    }
    return std::string();
  };
  return j;
});

// --- mxfp8: groups of 32, exponents of e8m0; values of e4m3
auto mxfp8 = kernel("user_to_mxfp8", [](const BlockCfg& c, Ptr<const bfloat16> x_ptr, Ptr<fp8_e4m3> q_ptr,
                                        Ptr<uint8_t> s_ptr, I32 M, I32 N) {
               auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
               auto mask = (m < M).col() & (n < N).row();
               auto at = m.col() * N + n.row();
               auto groups = reshape(cast(load(x_ptr + at, {.mask = mask}), f32), {c.BM, c.BN / 32, 32});
               auto most = max(abs(groups), axis(2));
               auto e = max(cast(bitcast(most, u32) >> 23, i32) - 8, 0);
               auto scaled = groups * exp2(cast(127 - e, f32));
               auto q = cast(clamp(reshape(scaled, {c.BM, c.BN}), -448.f, 448.f), f8e4m3);
               store(q_ptr + at, q, {.mask = mask});
               auto g = program_id(1) * (c.BN / 32) + arange(0, c.BN / 32);
               store(s_ptr + (m.col() * (N / 32) + g.row()), cast(squeeze(e, 2), u8),
                     {.mask = (m < M).col() & (g < N / 32).row()});
             }).grid([](const BlockCfg& c, auto, auto, auto, int M, int N) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Register r2("to_mxfp8", [](Env& e) {
  BlockCfg c;
  if (!e.big) c = {16, 64};
  const int M = e.big ? 8192 : 27, N = e.big ? 7168 : 96;
  auto x = random<bfloat16>(e, size_t(M) * N, -5, 5);
  auto q = constant<fp8_e4m3>(e, x.n, 0);
  auto s = constant<uint8_t>(e, x.n / 32, 0);
  Job j;
  j.mbytes = 3e-6 * x.n;
  j.add(mxfp8, c, x.p, q.p, s.p, M, N);
  j.check = [=] {
    std::vector<double> scales, want;
    for (size_t g = 0; g < s.n; ++g) {
      double most = 0;
      for (int i = 0; i < 32; ++i) most = std::max(most, std::abs(x[g * 32 + i]));
      scales.push_back(std::max(0, int(std::floor(std::log2(most))) + 127 - 8));
      for (int i = 0; i < 32; ++i)
        want.push_back(std::clamp(x[g * 32 + i] * std::exp2(127 - scales.back()), -448., 448.));
    }
    const auto wrong = agree(s.now(), scales, 1e-6, 0);
    return wrong.empty() ? agree(q.now(), want, 1e-3, .065) : wrong;
  };
  return j;
});

// --- bitsandbytes: quantize_blockwise to nf4, blocks of 64; boundaries half way between neighbours
const float kNf4[16] = {-1.0f,        -0.6961928f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f,
                        -0.09105004f, 0.f,         0.0795803f,   0.1609302f,   0.2461123f,   0.33791524f,
                        0.44070983f,  0.562617f,   0.72295684f,  1.f};
struct NfCfg {
  int QB = 64, BLOCKS = 16;
};
auto to_nf4 = kernel("user_to_nf4", [](const NfCfg& c, Ptr<const half> a_ptr, Ptr<float> absmax_ptr,
                                       Ptr<uint8_t> out_ptr, I32 n) {
                auto b = program_id(0) * c.BLOCKS + arange(0, c.BLOCKS);
                auto at = b.col() * c.QB + arange(0, c.QB).row();
                auto a = cast(load(a_ptr + at, {.mask = at < n, .other = 0.f}), f32);
                auto absmax = max(abs(a), axis(1));
                auto x = clamp(a / max(absmax, 1e-20f), -1.f, 1.f);
                Tile code = zeros({c.BLOCKS, c.QB}, u8);
                for (int i = 0; i < 15; ++i) code = where(x > (kNf4[i] + kNf4[i + 1]) / 2, uint8_t(i + 1), code);
                auto [left, right] = split(reshape(code, {c.BLOCKS, c.QB / 2, 2}));
                auto to = b.col() * (c.QB / 2) + arange(0, c.QB / 2).row();
                store(out_ptr + to, left << 4 | (right & 15), {.mask = to < n / 2});
                store(absmax_ptr + b, squeeze(absmax, 1), {.mask = b < cdiv(n, c.QB)});
              }).grid([](const NfCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.QB * c.BLOCKS)}; });
Register r3("to_nf4", [](Env& e) {
  NfCfg c;
  const int n = e.big ? 1 << 26 : 64 * 35 + 22;
  auto a = random<half>(e, n, -2, 2);
  auto most = constant<float>(e, cdiv(n, 64), NAN);
  auto out = constant<uint8_t>(e, n / 2, 0);
  Job j;
  j.mbytes = 2.6e-6 * n;
  j.add(to_nf4, c, a.p, most.p, out.p, n);
  j.check = [=] {
    const auto codes = out.now();
    std::vector<double> scales(most.n);
    for (int i = 0; i < n; ++i) scales[i / 64] = std::max(scales[i / 64], std::abs(a[i]));
    for (int i = 0; i < n; ++i) {
      const double v = a[i] / scales[i / 64], got = kNf4[i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4];
      double best = 1e9;
      for (double t : kNf4) best = std::min(best, std::abs(v - t));
      if (std::abs(v - got) > best + 1e-5) return "number " + std::to_string(i);
    }
    return agree(most.now(), scales, 1e-6, 1e-6);
  };
  return j;
});

// --- LLM.int8: rows to int8 without what is at or above a threshold; which columns have such is noted
struct RowCfg {
  int BN = 4096;
};
auto vectorwise =
    kernel("user_vectorwise", [](const RowCfg& c, Ptr<const half> A, Ptr<int8_t> out, Ptr<float> row_stats,
                                 Ptr<int32_t> outliers, F32 threshold, I32 rows, I32 cols) {
      auto row = program_id(0), col = arange(0, c.BN);
      auto x = cast(load(A + (cast(row, i64) * cols + col), {.mask = col < cols, .other = 0.f}), f32);
      auto outlier = abs(x) >= threshold;
      auto kept = where(outlier, 0.f, abs(x));
      auto most = max(kept);
      store(row_stats + row, most);
      auto q = cast(rint(x * (127.f / most)), i8);
      store(out + (cast(row, i64) * cols + col), where(outlier, int8_t(0), q), {.mask = col < cols});
      atomic_max(outliers + col, cast(outlier, i32), {.mask = outlier & (col < cols)});
    }).grid([](const RowCfg&, auto, auto, auto, auto, float, int rows, int) { return Grid{rows}; });
Register r4("vectorwise", [](Env& e) {
  RowCfg c;
  if (!e.big) c = {256};
  const int M = e.big ? 8192 : 11, N = e.big ? 4096 : 203;
  auto a = drawn<half>(e, size_t(M) * N, [&] {
    const double u = e.uniform();
    return half(float(u < .001 ? 7 + u : 4 * e.uniform() - 2));
  });
  auto q = constant<int8_t>(e, a.n, 99);
  auto s = constant<float>(e, M, NAN);
  auto outliers = constant<int32_t>(e, N, 0);
  Job j;
  j.mbytes = 3e-6 * a.n;
  j.add(vectorwise, c, a.p, q.p, s.p, outliers.p, 6.f, M, N);
  j.check = [=] {
    std::vector<double> want(a.n), stats(M), columns(N);
    for (int m = 0; m < M; ++m) {
      for (int n = 0; n < N; ++n)
        if (const double x = std::abs(a[m * N + n]); x < 6) stats[m] = std::max(stats[m], x);
      for (int n = 0; n < N; ++n) {
        const double x = a[m * N + n];
        if (std::abs(x) >= 6) columns[n] = 1;
        want[m * N + n] = std::abs(x) >= 6 ? 0 : std::rint(x * 127 / stats[m]);
      }
    }
    auto wrong = agree(s.now(), stats, 1e-6, 1e-6);
    if (wrong.empty()) wrong = agree(outliers.now(), columns, 1e-6, 0);
    return wrong.empty() ? agree(q.now(), want, 1.001, 0) : wrong;
  };
  return j;
});

// --- HQQ's 3 bits in 32: word i of W_q [step, N] holds rows i, i + step, ..., i + 9 step, the first in the highest
// bits
auto hqq3 =
    kernel("user_hqq3", [](const BlockCfg& c, Ptr<const int32_t> w_ptr, Ptr<const half> scale_ptr,
                           Ptr<const half> zero_ptr, Ptr<half> out_ptr, I32 step, I32 N, I32 rows) {
      auto i = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
      auto inside = (i < step).col() & (n < N).row();
      auto w = load(w_ptr + (i.col() * N + n.row()), {.mask = inside});
      auto s = load(scale_ptr + n, {.mask = n < N}).row(), z = load(zero_ptr + n, {.mask = n < N}).row();
      for (int k = 0; k < 10; ++k) {
        auto q = (w >> (27 - 3 * k)) & 7;
        auto row = i + k * step;
        store(out_ptr + (row.col() * N + n.row()), (cast(q, f16) - z) * s, {.mask = inside & (row < rows).col()});
      }
    }).grid([](const BlockCfg& c, auto, auto, auto, auto, int step, int N, int) {
      return Grid{cdiv(step, c.BM), cdiv(N, c.BN)};
    });
Register r5("hqq3", [](Env& e) {
  BlockCfg c{16, 128};
  const int rows = e.big ? 64 * 256 : 64, step = cdiv(rows, 10), N = e.big ? 4096 : 203;
  auto w = integers<int32_t>(e, size_t(step) * N, 0, 1 << 30);
  auto s = random<half>(e, N, .01, .1), z = random<half>(e, N, 0, 7), out = constant<half>(e, size_t(rows) * N, NAN);
  Job j;
  j.mbytes = 2.4e-6 * out.n;
  j.add(hqq3, c, w.p, s.p, z.p, out.p, step, N, rows);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int r = 0; r < rows; ++r)
      for (int n = 0; n < N; ++n)
        want[r * N + n] = in_half((w.h[(r % step) * N + n] >> (27 - 3 * (r / step)) & 7) - z[n]) * s[n];
    return agree(out.now(), want, 1e-6, 1e-3);
  };
  return j;
});

// --- int8 activations [M, K] with a factor a token, signed int4 weights [N, K / 2] with a factor a group of 128:
// integers are summed by group
struct W4A8Cfg {
  int BM = 128, BN = 128, G = 128;
};
auto w4a8 =
    kernel("user_w4a8_groups", [](const W4A8Cfg& c, Ptr<const int8_t> a_ptr, Ptr<const uint8_t> w_ptr,
                                  Ptr<const float> token_ptr, Ptr<const float> scale_ptr, Ptr<half> y_ptr, I32 M, I32 N,
                                  I32 K, I32 stride_w, I32 stride_s) {
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
      auto kk = arange(0, c.G), k2 = arange(0, c.G / 2);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto g : range(0, K / c.G)) {
        auto a = load(a_ptr + (m.col() * K + (g * c.G + kk).row()), {.mask = (m < M).col()});
        auto b = bitcast(load(w_ptr + (n.col() * stride_w + (g * (c.G / 2) + k2).row()), {.mask = (n < N).col()}), i8);
        auto w = interleave((b << 4) >> 4, b >> 4);
        auto s = load(scale_ptr + (g * stride_s + n), {.mask = n < N});
        acc += cast(dot(a, trans(w), zeros({c.BM, c.BN}, i32)), f32) * s.row();
      }
      acc = acc * load(token_ptr + m, {.mask = m < M}).col();
      store(y_ptr + (m.col() * N + n.row()), cast(acc, f16), {.mask = (m < M).col() & (n < N).row()});
    }).grid([](const W4A8Cfg& c, auto, auto, auto, auto, auto, int M, int N, int, int, int) {
      return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
    });
Register r6("w4a8_groups", [](Env& e) {
  W4A8Cfg c;
  if (!e.big) c = {32, 32, 64};
  const int M = e.big ? 2048 : 37, N = e.big ? 8192 : 51, K = e.big ? 4096 : 192, G = c.G;
  auto a = integers<int8_t>(e, size_t(M) * K, -127, 128);
  auto w = integers<uint8_t>(e, size_t(N) * K / 2, 0, 256);
  auto t = random<float>(e, M, .001, .002), s = random<float>(e, size_t(K / G) * N, .01, .1);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(w4a8, c, a.p, w.p, t.p, s.p, y.p, M, N, K, K / 2, N);
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const int q = w.h[(size_t(n) * K + k) / 2] >> (k % 2 * 4) & 15;
      return (q < 8 ? q : q - 16) * s[size_t(k / G) * N + n];
    };
    return agree(y.now(), product(M, N, K, matrix(a, K), weight, [&](double x, int m, int) { return x * t[m]; }), 1e-3,
                 2e-3);
  };
  return j;
});

}  // namespace made_quants
}  // namespace users
