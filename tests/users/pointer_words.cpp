// pointer_words.cpp - AWQ and GPTQ as vLLM's and AutoGPTQ's Triton kernels have them: pointers, words of eight, packed
// zeros.
#include "tests/users/use.h"
namespace users {
namespace pointer_words {

Array<int32_t> words_of(Env& e, size_t n) {
  return drawn<int32_t>(e, n,
                        [&] { return int32_t(uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536)); });
}
int awq_code(const Array<int32_t>& x, size_t row, int n, int N) {
  const int order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  return int(uint32_t(x.h[row * (N / 8) + n / 8]) >> (4 * order[n % 8]) & 15);
}
int in_word(const Array<int32_t>& x, size_t word, int i) { return int(uint32_t(x.h[word]) >> (4 * i) & 15); }

// --- vLLM's awq_dequantize_kernel
struct DequantCfg {
  int BX = 32, BY = 32, G = 128;
};
auto awq_dequantize =
    kernel("user_awq_dequantize", [](const DequantCfg& c, Ptr<const int32_t> qweight, Ptr<const half> scales,
                                     Ptr<const int32_t> zeros, Ptr<half> result, I32 num_cols, I32 num_rows) {
      auto pid_x = program_id(0), pid_y = program_id(1);
      auto offsets_y = pid_y * c.BY + arange(0, c.BY), offsets_x = pid_x * c.BX + arange(0, c.BX);
      auto masks = (offsets_y < num_rows).col() & (offsets_x < num_cols).row();
      auto result_x = pid_x * c.BX * 8 + arange(0, c.BX * 8);
      auto result_masks = (offsets_y < num_rows).col() & (result_x < num_cols * 8).row();
      auto iweights = load(qweight + (num_cols * offsets_y.col() + offsets_x.row()), {.mask = masks, .other = 0});
      iweights = interleave(iweights, iweights);
      iweights = interleave(iweights, iweights);
      iweights = interleave(iweights, iweights);
      // 0 4 1 5 2 6 3 7
      auto order = reshape((arange(0, 2) * 4).row() + arange(0, 4).col(), {8});
      auto shifts = reshape(broadcast_to((order * 4).row(), {c.BY * c.BX, 8}), {c.BY, c.BX * 8});
      iweights = (iweights >> shifts) & 15;
      auto zero_y = pid_y * c.BY / c.G + arange(0, 1);
      auto zero_masks = (zero_y < num_rows / c.G).col() & (offsets_x < num_cols).row();
      auto z = load(zeros + (num_cols * zero_y.col() + offsets_x.row()), {.mask = zero_masks, .other = 0});
      z = interleave(z, z);
      z = interleave(z, z);
      z = interleave(z, z);
      z = broadcast_to(z, {c.BY, c.BX * 8});
      z = (z >> shifts) & 15;
      auto scale_masks = (zero_y < num_rows / c.G).col() & (result_x < num_cols * 8).row();
      auto s = load(scales + (num_cols * 8 * zero_y.col() + result_x.row()), {.mask = scale_masks, .other = 0});
      auto out = cast(iweights - z, f16) * s;
      store(result + (8 * num_cols * offsets_y.col() + result_x.row()), out, {.mask = result_masks});
    }).grid([](const DequantCfg& c, auto, auto, auto, auto, int cols, int rows) {
      return Grid{cdiv(cols, c.BX), cdiv(rows, c.BY)};
    });
Register r1("awq_dequantize", [](Env& e) {
  DequantCfg c;
  if (!e.big) c = {16, 16, 32};
  const int K = e.big ? 8192 : 96, N = e.big ? 28672 : 8 * 21, G = c.G;
  auto w = words_of(e, size_t(K) * N / 8), z = words_of(e, size_t(K / G) * N / 8);
  auto s = random<half>(e, size_t(K / G) * N, .01, .1), out = constant<half>(e, size_t(K) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * (2.5 * K * N);
  j.add(awq_dequantize, c, w.p, s.p, z.p, out.p, N / 8, K);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n)
        want[size_t(k) * N + n] = (awq_code(w, k, n, N) - awq_code(z, k / G, n, N)) * s[size_t(k / G) * N + n];
    return agree(out.now(), want, 1e-6, 1e-3);
  };
  return j;
});

// --- vLLM's awq_gemm_kernel: split K, parts summed by a second kernel
struct AwqGemmCfg {
  int BM = 64, BN = 128, BK = 64, G = 128, SPLIT = 4;
};
auto awq_gemm = kernel("user_awq_gemm", [](const AwqGemmCfg& c, Ptr<const half> a, Ptr<const int32_t> b, Ptr<float> out,
                                           Ptr<const int32_t> zeros, Ptr<const half> scales, I32 M, I32 N, I32 K) {
                  auto pid = program_id(0), pid_z = program_id(1);
                  auto num_pid_n = cdiv(N, c.BN);
                  auto pid_m = pid / num_pid_n, pid_n = pid % num_pid_n;
                  auto order = reshape((arange(0, 2) * 4).row() + arange(0, 4).col(), {8});
                  auto shifts = reshape(broadcast_to((order * 4).row(), {c.BK * (c.BN / 8), 8}), {c.BK, c.BN});
                  auto offsets_am = pid_m * c.BM + arange(0, c.BM);
                  auto masks_am = offsets_am < M;
                  auto offsets_bn = pid_n * (c.BN / 8) + arange(0, c.BN / 8);
                  auto masks_bn = offsets_bn < N / 8;
                  auto offsets_sn = pid_n * c.BN + arange(0, c.BN);
                  auto masks_sn = offsets_sn < N;
                  Tile offsets_k = pid_z * c.BK + arange(0, c.BK);
                  Tile a_ptrs = a + (K * offsets_am.col() + offsets_k.row());
                  Tile b_ptrs = b + ((N / 8) * offsets_k.col() + offsets_bn.row());
                  Tile acc = zeros_like(full({c.BM, c.BN}, 0, f32));
                  auto eight = [](Tile x) {
                    x = interleave(x, x);
                    x = interleave(x, x);
                    return interleave(x, x);
                  };
                  for (auto k : range(0, cdiv(K, c.BK * c.SPLIT))) {
                    auto masks_k = offsets_k < K;
                    auto x = load(a_ptrs, {.mask = masks_am.col() & masks_k.row(), .other = 0});
                    auto w = eight(load(b_ptrs, {.mask = masks_k.col() & masks_bn.row(), .other = 0}));
                    auto offsets_szk = (c.BK * c.SPLIT * k + pid_z * c.BK) / c.G + arange(0, 1);
                    auto masks_zk = offsets_szk < K / c.G;
                    auto z = broadcast_to(eight(load(zeros + ((N / 8) * offsets_szk.col() + offsets_bn.row()),
                                                     {.mask = masks_zk.col() & masks_bn.row(), .other = 0})),
                                          {c.BK, c.BN});
                    auto s = load(scales + (N * offsets_szk.col() + offsets_sn.row()),
                                  {.mask = masks_zk.col() & masks_sn.row(), .other = 0});
                    auto wz = cast(((w >> shifts) & 15) - ((z >> shifts) & 15), f16) * s;
                    acc = dot(x, wz, acc);
                    offsets_k += c.BK * c.SPLIT;
                    a_ptrs += c.BK * c.SPLIT;
                    b_ptrs += c.BK * c.SPLIT * (N / 8);
                  }
                  auto offs = pid_z * N * M + N * offsets_am.col() + offsets_sn.row();
                  store(out + offs, acc, {.mask = masks_am.col() & masks_sn.row()});
                }).grid([](const AwqGemmCfg& c, auto, auto, auto, auto, auto, int M, int N, int) {
  return Grid{cdiv(M, c.BM) * cdiv(N, c.BN), c.SPLIT};
});
auto awq_parts = kernel("user_awq_parts", [](const AwqGemmCfg& c, Ptr<const float> parts, Ptr<half> out, I32 n) {
                   auto i = program_id(0) * 1024 + arange(0, 1024);
                   Tile sum = zeros({1024}, f32);
                   for (int z = 0; z < c.SPLIT; ++z) sum += load(parts + (z * n + i), {.mask = i < n});
                   store(out + i, cast(sum, f16), {.mask = i < n});
                 }).grid([](const AwqGemmCfg&, auto, auto, int n) { return Grid{cdiv(n, 1024)}; });
Register r2("awq_gemm", [](Env& e) {
  AwqGemmCfg c;
  if (!e.big) c = {32, 32, 32, 64, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 128 : 45, N = e.big ? 8192 : 8 * 9, K = e.big ? 8192 : 192, G = c.G;
  auto a = random<half>(e, size_t(M) * K, -.3, .3);
  auto w = words_of(e, size_t(K) * N / 8), z = words_of(e, size_t(K / G) * N / 8);
  auto s = random<half>(e, size_t(K / G) * N, .01, .1), out = constant<half>(e, size_t(M) * N, NAN);
  auto parts = constant<float>(e, size_t(c.SPLIT) * M * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(awq_gemm, c, a.p, w.p, parts.p, z.p, s.p, M, N, K);
  j.add(awq_parts, c, parts.p, out.p, M * N);
  j.check = [=] {
    auto weight = [&](int k, int n) {
      return in_half((awq_code(w, k, n, N) - awq_code(z, k / G, n, N)) * s[size_t(k / G) * N + n]);
    };
    return agree(out.now(), product(M, N, K, matrix(a, K), weight), 6e-3, 2e-3);
  };
  return j;
});

// --- AutoGPTQ's quant_matmul_248_kernel with act order (g_idx), and the usual case where groups are rows of K in order
struct GptqCfg {
  int BM = 64, BN = 128, BK = 32, GM = 8, bits = 4, G = 128;
};
Tile swizzled_start(const GptqCfg& c, Tile M, Tile N, Tile& pid_n) {
  auto pid = program_id(0), pm = cdiv(M, c.BM), pn = cdiv(N, c.BN);
  auto group = c.GM * pn;
  auto first = pid / group * c.GM;
  auto size = min(pm - first, c.GM);
  pid_n = (pid % group) / size;
  return first + pid % size;
}
auto gptq_order =
    kernel("user_gptq_order", [](const GptqCfg& c, Ptr<const half> a, Ptr<const int32_t> b, Ptr<half> out,
                                 Ptr<const half> scales, Ptr<const int32_t> zeros, Ptr<const int32_t> g, I32 M, I32 N,
                                 I32 K, I32 stride_am, I32 stride_bk, I32 stride_cm, I32 stride_scales,
                                 I32 stride_zeros) {
      const int per = 32 / c.bits, maxq = (1 << c.bits) - 1;
      Tile pid_n = 0;
      auto pid_m = swizzled_start(c, M, N, pid_n);
      auto offs_am = pid_m * c.BM + arange(0, c.BM), offs_bn = pid_n * c.BN + arange(0, c.BN), offs_k = arange(0, c.BK);
      Tile a_ptrs = a + (offs_am.col() * stride_am + offs_k.row());
      auto a_mask = (offs_am < M).col();
      auto b_mask = (offs_bn < N).row();
      Tile b_ptrs = b + ((offs_k.col() / per) * stride_bk + offs_bn.row());
      Tile g_ptrs = g + offs_k;
      auto scales_ptrs = scales + offs_bn.row();
      auto zeros_ptrs = zeros + offs_bn.row() / per;
      auto shifter = (offs_k % per) * c.bits, zeros_shifter = (offs_bn % per) * c.bits;
      Tile acc = tile::zeros({c.BM, c.BN}, f32);
      for (auto _ : range(0, cdiv(K, c.BK))) {
        auto g_idx = load(g_ptrs);
        auto s = load(scales_ptrs + g_idx.col() * stride_scales, {.mask = b_mask});
        auto z = load(zeros_ptrs + g_idx.col() * stride_zeros, {.mask = b_mask});
        z = ((z >> zeros_shifter.row()) & maxq) + 1;
        auto x = load(a_ptrs, {.mask = a_mask});
        auto w = load(b_ptrs, {.mask = b_mask});
        w = (w >> shifter.col()) & maxq;
        acc = dot(x, cast(w - z, f16) * s, acc);
        a_ptrs += c.BK;
        b_ptrs += (c.BK / per) * stride_bk;
        g_ptrs += c.BK;
      }
      store(out + (stride_cm * offs_am.col() + offs_bn.row()), cast(acc, f16),
            {.mask = (offs_am < M).col() & (offs_bn < N).row()});
    }).grid([](const GptqCfg& c, auto, auto, auto, auto, auto, auto, int M, int N, int, int, int, int, int, int) {
      return Grid{cdiv(M, c.BM) * cdiv(N, c.BN)};
    });
auto gptq_plain = kernel("user_gptq_plain", [](const GptqCfg& c, Ptr<const half> a, Ptr<const int32_t> b, Ptr<half> out,
                                               Ptr<const half> scales, Ptr<const int32_t> zeros, I32 M, I32 N, I32 K) {
                    const int per = 32 / c.bits, maxq = (1 << c.bits) - 1;
                    Tile pid_n = 0;
                    auto pid_m = swizzled_start(c, M, N, pid_n);
                    auto offs_am = (pid_m * c.BM + arange(0, c.BM)) % M, offs_bn = (pid_n * c.BN + arange(0, c.BN)) % N,
                         offs_k = arange(0, c.BK);
                    Tile acc = tile::zeros({c.BM, c.BN}, f32);
                    for (auto k : range(0, K, c.BK)) {
                      auto x = load(a + (offs_am.col() * K + (k + offs_k).row()));
                      auto w = load(b + ((k + offs_k).col() / per * N + offs_bn.row()));
                      auto s = load(scales + (k / c.G * N + offs_bn)).row();
                      auto z = load(zeros + (k / c.G * (N / per) + offs_bn / per));
                      auto zero = ((z >> (offs_bn % per * c.bits)) & maxq).row() + 1;
                      auto q = (w >> ((offs_k % per) * c.bits).col()) & maxq;
                      acc = dot(x, cast(q - zero, f16) * s, acc);
                    }
                    auto m = pid_m * c.BM + arange(0, c.BM), n = pid_n * c.BN + arange(0, c.BN);
                    store(out + (m.col() * N + n.row()), cast(acc, f16), {.mask = (m < M).col() & (n < N).row()});
                  }).grid([](const GptqCfg& c, auto, auto, auto, auto, auto, int M, int N, int) {
  return Grid{cdiv(M, c.BM) * cdiv(N, c.BN)};
});
Job gptq_job(Env& e, bool order) {
  GptqCfg c;
  if (!e.big) c = {32, 32, 32, 2, 4, 32};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 1024 : 41, N = e.big ? 8192 : 72, K = e.big ? 4096 : 128, G = c.G;
  auto a = random<half>(e, size_t(M) * K, -.3, .3);
  auto w = words_of(e, size_t(K / 8) * N), z = words_of(e, size_t(K / G) * N / 8);
  auto s = random<half>(e, size_t(K / G) * N, .01, .1), out = constant<half>(e, size_t(M) * N, NAN);
  auto g = filled<int32_t>(e, K, [&](size_t k) { return int(k * 7 % K) / G; });
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  if (order)
    j.add(gptq_order, c, a.p, w.p, out.p, s.p, z.p, g.p, M, N, K, K, N, N, N, N / 8);
  else
    j.add(gptq_plain, c, a.p, w.p, out.p, s.p, z.p, M, N, K);
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const int group = order ? g.h[k] : k / G;
      return in_half((in_word(w, size_t(k / 8) * N + n, k % 8) - in_word(z, size_t(group) * N / 8 + n / 8, n % 8) - 1) *
                     s[size_t(group) * N + n]);
    };
    return agree(out.now(), product(M, N, K, matrix(a, K), weight), 6e-3, 2e-3);
  };
  return j;
}
Register r3("gptq_order", [](Env& e) { return gptq_job(e, true); });
Register r4("gptq_plain", [](Env& e) { return gptq_job(e, false); });

}  // namespace pointer_words
}  // namespace users
