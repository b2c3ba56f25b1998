// pointer_groups.cpp - HQQ and GemLite (scale and zero of a group), bitsandbytes' nf4 in blocks, weights of 2, 3 and 6
// bits; by pointers.
#include "tests/users/use.h"
namespace users {
namespace pointer_groups {

Array<int32_t> words_of(Env& e, size_t n) {
  return drawn<int32_t>(e, n,
                        [&] { return int32_t(uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536)); });
}

// --- GemLite's gemm_INT_packed_weight kernel: W_q [K / 8, N] in int32, zeros and scales [K / G, N]
struct GemCfg {
  int BM = 64, BN = 128, BK = 64, bits = 4, G = 64;
};
auto hqq = kernel("user_hqq_groups", [](const GemCfg& c, Ptr<const half> a_ptr, Ptr<const int32_t> b_ptr,
                                        Ptr<half> c_ptr, Ptr<const half> scales_ptr, Ptr<const half> zeros_ptr, I32 M,
                                        I32 N, I32 K, I32 stride_am, I32 stride_ak, I32 stride_bk, I32 stride_bn,
                                        I32 stride_cm, I32 stride_cn, I32 stride_meta_g, I32 stride_meta_n) {
             const int elements = 32 / c.bits;
             auto [pid_m, pid_n] = swizzle2d(program_id(0), program_id(1), num_programs(0), num_programs(1), 8);
             auto offs_m = pid_m * c.BM + arange(0, c.BM), offs_n = pid_n * c.BN + arange(0, c.BN),
                  offs_k = arange(0, c.BK);
             Tile a_ptrs = a_ptr + (offs_m.col() * stride_am + offs_k.row() * stride_ak);
             auto a_mask = (offs_m < M).col() & (offs_k < K).row();
             Tile b_ptrs = b_ptr + ((offs_k.col() / elements) * stride_bk + offs_n.row() * stride_bn);
             auto q_shift = ((offs_k % elements) * c.bits).col();
             auto s_ptrs = scales_ptr + offs_n.row() * stride_meta_n, z_ptrs = zeros_ptr + offs_n.row() * stride_meta_n;
             Tile acc = zeros({c.BM, c.BN}, f32);
             auto n_mask = (offs_n < N).row();
             for (auto k : range(0, cdiv(K, c.BK))) {
               auto a = load(a_ptrs, {.mask = a_mask, .other = 0.f});
               auto b = load(b_ptrs, {.mask = n_mask, .other = 0, .cache = Cache::streaming});
               auto k_m = k * c.BK / c.G;
               auto scale = load(s_ptrs + k_m * stride_meta_g, {.mask = n_mask}),
                    zero = load(z_ptrs + k_m * stride_meta_g, {.mask = n_mask});
               b = (b >> q_shift) & ((1 << c.bits) - 1);
               acc = dot(a, (cast(b, f16) - zero) * scale, acc);
               a_ptrs += c.BK * stride_ak;
               b_ptrs += (c.BK / elements) * stride_bk;
             }
             store(c_ptr + (offs_m.col() * stride_cm + offs_n.row() * stride_cn), cast(acc, f16),
                   {.mask = (offs_m < M).col() & (offs_n < N).row()});
           }).grid([](const GemCfg& c, auto, auto, auto, auto, auto, int M, int N, auto...) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Job hqq_job(Env& e, int bits) {
  GemCfg c;
  c.bits = bits;
  if (!e.big) c = {32, 32, 32, bits, 32};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 512 : 37, N = e.big ? 8192 : 72, K = e.big ? 4096 : 160, G = c.G, per = 32 / bits;
  auto a = random<half>(e, size_t(M) * K, -.3, .3), s = random<half>(e, size_t(K / G) * N, .01, .1),
       z = random<half>(e, s.n, 0, (1 << bits) - 1);
  auto w = words_of(e, size_t(K / per) * N);
  auto out = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(hqq, c, a.p, w.p, out.p, s.p, z.p, M, N, K, K, 1, N, 1, N, 1, N, 1);
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const int q = int(uint32_t(w.h[size_t(k / per) * N + n]) >> (k % per * bits)) & ((1 << bits) - 1);
      const size_t at = size_t(k / G) * N + n;
      return in_half(in_half(q - z[at]) * s[at]);
    };
    return agree(out.now(), product(M, N, K, matrix(a, K), weight), 1e-2, 4e-3);
  };
  return j;
}
Register r1("hqq4", [](Env& e) { return hqq_job(e, 4); });
Register r2("hqq2", [](Env& e) { return hqq_job(e, 2); });

// --- bitsandbytes: dequantize_blockwise of nf4: high half of a byte first, a factor per block of 64, a table in memory
const float kNf4[16] = {-1.0f,        -0.6961928f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f,
                        -0.09105004f, 0.f,         0.0795803f,   0.1609302f,   0.2461123f,   0.33791524f,
                        0.44070983f,  0.562617f,   0.72295684f,  1.f};
struct NfCfg {
  int B = 1024, QB = 64;
};
auto nf4_dequant =
    kernel("user_nf4_dequant", [](const NfCfg& c, Ptr<const uint8_t> a_ptr, Ptr<const float> quant_ptr,
                                  Ptr<const float> absmax_ptr, Ptr<bfloat16> out_ptr, I32 num_paired_elements) {
      auto offsets = program_id(0) * c.B + arange(0, c.B);
      auto mask = offsets < num_paired_elements;
      auto a = load(a_ptr + offsets, {.mask = mask});
      auto absmax = load(absmax_ptr + offsets / (c.QB / 2), {.mask = mask, .other = 1.f, .cache = Cache::last});
      auto high = cast(a >> 4, i32), low = cast(a & 15, i32);
      auto out = interleave(load(quant_ptr + high) * absmax, load(quant_ptr + low) * absmax);
      auto out_at = program_id(0) * c.B * 2 + arange(0, c.B * 2);
      store(out_ptr + out_at, cast(out, bf16), {.mask = out_at < num_paired_elements * 2});
    }).grid([](const NfCfg& c, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("nf4_dequant", [](Env& e) {
  NfCfg c;
  const int n = e.big ? 1 << 26 : 3 * 1024 + 32 * 7;
  auto a = integers<uint8_t>(e, n, 0, 256);
  auto table = repeated<float>(e, 16, std::vector<float>(kNf4, kNf4 + 16));
  auto most = random<float>(e, n / 32, .1, 2);
  auto out = constant<bfloat16>(e, size_t(2) * n, NAN);
  Job j;
  j.mbytes = 1e-6 * (5. * n);
  j.add(nf4_dequant, c, a.p, table.p, most.p, out.p, n);
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < 2 * n; ++i)
      want.push_back(double(kNf4[i % 2 ? a.h[i / 2] & 15 : a.h[i / 2] >> 4]) * most[i / 64]);
    return agree(out.now(), want, 1e-6, 5e-3);
  };
  return j;
});

// --- a product with nf4 weights [N, K / 2], blocks of 64 along K, as a user fuses it
struct NfGemmCfg {
  int BM = 64, BN = 128, BK = 64;
};
auto nf4_gemm =
    kernel("user_nf4_gemm", [](const NfGemmCfg& c, Ptr<const bfloat16> x, Ptr<const uint8_t> w, Ptr<const float> table,
                               Ptr<const float> absmax, Ptr<bfloat16> y, I32 M, I32 N, I32 K) {
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
      auto k2 = arange(0, c.BK / 2), kk = arange(0, c.BK);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, K, c.BK)) {
        auto a = load(x + (m.col() * K + (k + kk).row()), {.mask = (m < M).col()});
        auto b = load(w + (n.col() * (K / 2) + (k / 2 + k2).row()), {.mask = (n < N).col()});
        auto s = load(absmax + (n * (K / 64) + k / 64), {.mask = n < N});
        auto both = interleave(load(table + cast(b >> 4, i32)), load(table + cast(b & 15, i32)));
        acc = dot(a, trans(cast(both * s.col(), bf16)), acc);
      }
      store(y + (m.col() * N + n.row()), cast(acc, bf16), {.mask = (m < M).col() & (n < N).row()});
    }).grid([](const NfGemmCfg& c, auto, auto, auto, auto, auto, int M, int N, int) {
      return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
    });
Register r4("nf4_gemm", [](Env& e) {
  NfGemmCfg c;
  if (!e.big) c = {32, 32, 64};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 256 : 35, N = e.big ? 11008 : 51, K = e.big ? 4096 : 192;
  auto x = random<bfloat16>(e, size_t(M) * K), y = constant<bfloat16>(e, size_t(M) * N, NAN);
  auto w = integers<uint8_t>(e, size_t(N) * K / 2, 0, 256);
  auto table = repeated<float>(e, 16, std::vector<float>(kNf4, kNf4 + 16));
  auto most = random<float>(e, size_t(N) * K / 64, .1, 2);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(nf4_gemm, c, x.p, w.p, table.p, most.p, y.p, M, N, K);
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const int b = w.h[(size_t(n) * K + k) / 2];
      return double(kNf4[k % 2 ? b & 15 : b >> 4]) * most[size_t(n) * (K / 64) + k / 64];
    };
    return agree(y.now(), product(M, N, K, matrix(x, K), weight), 6e-2, 1e-2);
  };
  return j;
});

// --- 3 bits: ten in a word along K; 6 bits: four low bits in one array, two high bits in another (TorchAO's fp6 and
// llama.cpp's q6_K split them so); dequantised to bf16 on the way into a product
struct FewCfg {
  int BM = 64, BN = 128, BK = 64;
};
auto int6 =
    kernel("user_int6", [](const FewCfg& c, Ptr<const bfloat16> x, Ptr<const uint8_t> ql, Ptr<const uint8_t> qh,
                           Ptr<const bfloat16> scale, Ptr<bfloat16> y, I32 M, I32 N, I32 K) {
      // ql [N, K / 2], qh [N, K / 4], scale [N, K / 64]
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN), kk = arange(0, c.BK);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k0 : range(0, K, c.BK)) {
        auto k = k0 + kk;
        auto a = load(x + (m.col() * K + k.row()), {.mask = (m < M).col() & (k < K).row()});
        auto inside = (n < N).col() & (k < K).row();
        auto low =
            cast(load(ql + (n.col() * (K / 2) + (k / 2).row()), {.mask = inside}), i32) >> ((k % 2) * 4).row() & 15;
        auto high =
            cast(load(qh + (n.col() * (K / 4) + (k / 4).row()), {.mask = inside}), i32) >> ((k % 4) * 2).row() & 3;
        auto s = load(scale + (n.col() * (K / 64) + (k / 64).row()), {.mask = inside});
        auto w = cast((low | high << 4) - 32, bf16) * s;
        acc = dot(a, trans(w), acc);
      }
      store(y + (m.col() * N + n.row()), cast(acc, bf16), {.mask = (m < M).col() & (n < N).row()});
    }).grid([](const FewCfg& c, auto, auto, auto, auto, auto, int M, int N, int) {
      return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
    });
Register r5("int6", [](Env& e) {
  FewCfg c;
  if (!e.big) c = {32, 32, 64};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 256 : 35, N = e.big ? 8192 : 51, K = e.big ? 4096 : 192;
  auto x = random<bfloat16>(e, size_t(M) * K), y = constant<bfloat16>(e, size_t(M) * N, NAN),
       s = random<bfloat16>(e, size_t(N) * K / 64, .01, .1);
  auto ql = integers<uint8_t>(e, size_t(N) * K / 2, 0, 256), qh = integers<uint8_t>(e, size_t(N) * K / 4, 0, 256);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(int6, c, x.p, ql.p, qh.p, s.p, y.p, M, N, K);
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const size_t at = size_t(n) * K + k;
      const int q = (ql.h[at / 2] >> (k % 2 * 4) & 15) | (qh.h[at / 4] >> (k % 4 * 2) & 3) << 4;
      return double(float(bfloat16(float((q - 32) * s[at / 64]))));
    };
    return agree(y.now(), product(M, N, K, matrix(x, K), weight), 4e-2, 8e-3);
  };
  return j;
});
auto int3 =
    kernel("user_int3", [](const FewCfg& c, Ptr<const bfloat16> x, Ptr<const uint32_t> w, Ptr<const bfloat16> scale,
                           Ptr<const bfloat16> zero, Ptr<bfloat16> y, I32 M, I32 N, I32 K, I32 words) {
      // w [words, N] with words = cdiv(K, 10): ten codes in a word; scale, zero [K / 64, N]
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN), kk = arange(0, c.BK);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k0 : range(0, K, c.BK)) {
        auto k = k0 + kk;
        auto a = load(x + (m.col() * K + k.row()), {.mask = (m < M).col()});
        auto q = load(w + ((k / 10).col() * N + n.row()), {.mask = (n < N).row()}) >> cast(k % 10 * 3, u32).col() & 7;
        auto s = load(scale + (k0 / 64 * N + n), {.mask = n < N}), z = load(zero + (k0 / 64 * N + n), {.mask = n < N});
        acc = dot(a, (cast(q, bf16) - z.row()) * s.row(), acc);
      }
      store(y + (m.col() * N + n.row()), cast(acc, bf16), {.mask = (m < M).col() & (n < N).row()});
    }).grid([](const FewCfg& c, auto, auto, auto, auto, auto, int M, int N, int, int) {
      return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
    });
Register r6("int3", [](Env& e) {
  FewCfg c;
  if (!e.big) c = {32, 32, 64};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 256 : 35, N = e.big ? 8192 : 51, K = e.big ? 4096 : 192, words = cdiv(K, 10);
  auto x = random<bfloat16>(e, size_t(M) * K), y = constant<bfloat16>(e, size_t(M) * N, NAN),
       s = random<bfloat16>(e, size_t(N) * K / 64, .01, .1);
  auto z = random<bfloat16>(e, s.n, 0, 7);
  auto w = integers<uint32_t>(e, size_t(words) * N, 0, 1 << 30);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(int3, c, x.p, w.p, s.p, z.p, y.p, M, N, K, words);
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const int q = w.h[size_t(k / 10) * N + n] >> (k % 10 * 3) & 7;
      const size_t at = size_t(k / 64) * N + n;
      return double(float(bfloat16(float(bfloat16(float(q - z[at]))) * float(s[at]))));
    };
    return agree(y.now(), product(M, N, K, matrix(x, K), weight), 4e-2, 8e-3);
  };
  return j;
});

}  // namespace pointer_groups
}  // namespace users
