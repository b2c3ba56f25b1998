// pointer_scales.cpp - products of narrow operands through pointers: int8 with scales of tokens and channels and a
// bias, f8 with scales of blocks, f4 with scales of groups (mxfp4, nvfp4), LoRA's two steps with int8 weights.
#include "tests/users/use.h"
namespace users {
namespace pointer_scales {

// --- vLLM's scaled_mm_kernel: int8, scale_a [M, 1], scale_b [N, 1], bias [N]
struct MmCfg {
  int BM = 128, BN = 128, BK = 128, G = 8;
};
auto scaled_mm =
    kernel("user_scaled_mm", [](const MmCfg& c, Ptr<const int8_t> a_ptr, Ptr<const int8_t> b_ptr,
                                Ptr<const float> scale_a_ptr, Ptr<const float> scale_b_ptr,
                                Ptr<const bfloat16> bias_ptr, Ptr<bfloat16> c_ptr, I32 M, I32 N, I32 K, I32 stride_am,
                                I32 stride_ak, I32 stride_bk, I32 stride_bn, I32 stride_cm, I32 stride_cn) {
      auto pid = program_id(0);
      auto num_pid_n = cdiv(N, c.BN);
      auto pid_m = pid / num_pid_n, pid_n = pid % num_pid_n;
      auto offsets_am = cast(pid_m * c.BM + arange(0, c.BM), i64),
           offsets_bn = cast(pid_n * c.BN + arange(0, c.BN), i64);
      auto masks_am = offsets_am < cast(M, i64), masks_bn = offsets_bn < cast(N, i64);
      auto offsets_k = cast(arange(0, c.BK), i64);
      Tile a_ptrs = a_ptr + (offsets_am.col() * cast(stride_am, i64) + offsets_k.row() * cast(stride_ak, i64));
      Tile b_ptrs = b_ptr + (offsets_k.col() * cast(stride_bk, i64) + offsets_bn.row() * cast(stride_bn, i64));
      Tile acc = zeros({c.BM, c.BN}, i32);
      Tile left = cast(K, i64);
      for (auto _ : range(0, cdiv(K, c.BK))) {
        auto masks_k = offsets_k < left;
        auto a = load(a_ptrs, {.mask = masks_am.col() & masks_k.row()});
        auto b = load(b_ptrs, {.mask = masks_k.col() & masks_bn.row()});
        acc = dot(a, b, acc);
        left -= c.BK;
        a_ptrs += c.BK * stride_ak;
        b_ptrs += c.BK * stride_bk;
      }
      auto scale_a = load(scale_a_ptr + offsets_am, {.mask = masks_am}),
           scale_b = load(scale_b_ptr + offsets_bn, {.mask = masks_bn});
      auto out = scale_a.col() * cast(acc, f32);
      out = scale_b.row() * out + cast(load(bias_ptr + offsets_bn, {.mask = masks_bn}), f32).row();
      store(c_ptr + (cast(stride_cm, i64) * offsets_am.col() + cast(stride_cn, i64) * offsets_bn.row()),
            cast(out, bf16), {.mask = masks_am.col() & masks_bn.row()});
    }).grid([](const MmCfg& c, auto, auto, auto, auto, auto, auto, int M, int N, auto...) {
      return Grid{cdiv(M, c.BM) * cdiv(N, c.BN)};
    });
Register r1("scaled_mm", [](Env& e) {
  MmCfg c;
  if (!e.big) c = {32, 32, 64};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 4096 : 45, N = e.big ? 8192 : 51, K = e.big ? 4096 : 208;
  auto a = integers<int8_t>(e, size_t(M) * K, -127, 128), b = integers<int8_t>(e, size_t(N) * K, -127, 128);
  auto sa = random<float>(e, M, .001, .01), sb = random<float>(e, N, .001, .01);
  auto bias = random<bfloat16>(e, N), out = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(scaled_mm, c, a.p, b.p, sa.p, sb.p, bias.p, out.p, M, N, K, K, 1, 1, K, N, 1);
  j.check = [=] {
    auto weight = [&](int k, int n) { return b[size_t(n) * K + k]; };
    return agree(
        out.now(),
        product(M, N, K, matrix(a, K), weight, [&](double s, int m, int n) { return s * sa[m] * sb[n] + bias[n]; }),
        1e-3, 5e-3);
  };
  return j;
});

// --- SGLang's and vLLM's _w8a8_block_fp8_matmul
auto block_fp8 =
    kernel("user_block_fp8", [](const MmCfg& c, Ptr<const fp8_e4m3> A, Ptr<const fp8_e4m3> B, Ptr<bfloat16> C,
                                Ptr<const float> As, Ptr<const float> Bs, I32 M, I32 N, I32 K, I32 group_n, I32 group_k,
                                I32 stride_am, I32 stride_ak, I32 stride_bk, I32 stride_bn, I32 stride_cm,
                                I32 stride_cn, I32 stride_As_m, I32 stride_As_k, I32 stride_Bs_k, I32 stride_Bs_n) {
      auto pid = program_id(0);
      auto num_pid_m = cdiv(M, c.BM), num_pid_n = cdiv(N, c.BN);
      auto num_pid_in_group = c.G * num_pid_n;
      auto group_id = pid / num_pid_in_group;
      auto first_pid_m = group_id * c.G;
      auto group_size_m = min(num_pid_m - first_pid_m, c.G);
      auto pid_m = first_pid_m + (pid % group_size_m), pid_n = (pid % num_pid_in_group) / group_size_m;
      auto offs_am = (pid_m * c.BM + arange(0, c.BM)) % M, offs_bn = (pid_n * c.BN + arange(0, c.BN)) % N,
           offs_k = arange(0, c.BK);
      Tile a_ptrs = A + (offs_am.col() * stride_am + offs_k.row() * stride_ak);
      Tile b_ptrs = B + (offs_k.col() * stride_bk + offs_bn.row() * stride_bn);
      auto As_ptrs = As + offs_am * stride_As_m, Bs_ptrs = Bs + offs_bn / group_n * stride_Bs_n;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, cdiv(K, c.BK))) {
        auto a = load(a_ptrs, {.mask = offs_k.row() < K - k * c.BK, .other = 0.f});
        auto b = load(b_ptrs, {.mask = offs_k.col() < K - k * c.BK, .other = 0.f});
        auto k_start = k * c.BK;
        auto offs_ks = k_start / group_k;
        auto a_s = load(As_ptrs + offs_ks * stride_As_k), b_s = load(Bs_ptrs + offs_ks * stride_Bs_k);
        acc += dot(a, b) * a_s.col() * b_s.row();
        a_ptrs += c.BK * stride_ak;
        b_ptrs += c.BK * stride_bk;
      }
      auto offs_cm = pid_m * c.BM + arange(0, c.BM), offs_cn = pid_n * c.BN + arange(0, c.BN);
      store(C + (stride_cm * offs_cm.col() + stride_cn * offs_cn.row()), cast(acc, bf16),
            {.mask = (offs_cm.col() < M) & (offs_cn.row() < N)});
    }).grid([](const MmCfg& c, auto, auto, auto, auto, auto, int M, int N, auto...) {
      return Grid{cdiv(M, c.BM) * cdiv(N, c.BN)};
    });
Register r2("block_fp8", [](Env& e) {
  MmCfg c;
  const int G = e.big ? 128 : 32;
  if (!e.big) c = {32, 32, 32, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 4096 : 45, N = e.big ? 7168 : 80, K = e.big ? 4096 : 144, KG = cdiv(K, G);
  auto a = random<fp8_e4m3>(e, size_t(M) * K, -8, 8), b = random<fp8_e4m3>(e, size_t(N) * K, -8, 8);
  auto as = random<float>(e, size_t(M) * KG, .01, .1), bs = random<float>(e, size_t(cdiv(N, G)) * KG, .01, .1);
  auto out = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(block_fp8, c, a.p, b.p, out.p, as.p, bs.p, M, N, K, G, G, K, 1, 1, K, N, 1, KG, 1, 1, KG);
  j.check = [=] {
    auto x = [&](int m, int k) { return a[size_t(m) * K + k] * as[size_t(m) * KG + k / G]; };
    auto weight = [&](int k, int n) { return b[size_t(n) * K + k] * bs[size_t(n / G) * KG + k / G]; };
    return agree(out.now(), product(M, N, K, x, weight), 2e-2, 8e-3);
  };
  return j;
});

// --- weights of e2m1: two in a byte along K; scales of e8m0 for 32 (mxfp4) or e4m3 for 16 and a factor for all (nvfp4)
struct F4Cfg {
  int BM = 128, BN = 128, BK = 128;
};
auto mxfp4 = kernel("user_mxfp4_pointers", [](const F4Cfg& c, Ptr<const bfloat16> x, Ptr<const uint8_t> w,
                                              Ptr<const uint8_t> scales, Ptr<bfloat16> y, I32 M, I32 N, I32 K,
                                              I32 stride_xm, I32 stride_wn, I32 stride_sn) {
               auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
               Tile x_ptrs = x + (m.col() * stride_xm + arange(0, c.BK).row());
               Tile w_ptrs = w + (n.col() * stride_wn + arange(0, c.BK / 2).row());
               Tile s_ptrs = scales + (n.col() * stride_sn + arange(0, c.BK / 32).row());
               Tile acc = zeros({c.BM, c.BN}, f32);
               for (auto _ : range(0, K, c.BK)) {
                 auto a = load(x_ptrs, {.mask = (m < M).col()});
                 auto b = load(w_ptrs, {.mask = (n < N).col()});
                 auto s = load(s_ptrs, {.mask = (n < N).col()});
                 acc = dot_scaled({a}, {trans(b), s}, acc);
                 x_ptrs += c.BK, w_ptrs += c.BK / 2, s_ptrs += c.BK / 32;
               }
               store(y + (m.col() * N + n.row()), cast(acc, bf16), {.mask = (m < M).col() & (n < N).row()});
             }).grid([](const F4Cfg& c, auto, auto, auto, auto, int M, int N, auto...) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
auto nvfp4 =
    kernel("user_nvfp4_pointers", [](const F4Cfg& c, Ptr<const bfloat16> x, Ptr<const uint8_t> w,
                                     Ptr<const fp8_e4m3> scales, Ptr<const float> global, Ptr<bfloat16> y, I32 M, I32 N,
                                     I32 K) {
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN), kk = arange(0, c.BK);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, K, c.BK)) {
        auto a = load(x + (m.col() * K + (k + kk).row()), {.mask = (m < M).col()});
        auto b = load(w + (n.col() * (K / 2) + (k / 2 + arange(0, c.BK / 2)).row()), {.mask = (n < N).col()});
        auto s = cast(
            load(scales + (n.col() * (K / 16) + (k / 16 + arange(0, c.BK / 16)).row()), {.mask = (n < N).col()}), bf16);
        auto values = reshape(from_e2m1(b, bf16), {c.BN, c.BK / 16, 16}) * expand_dims(s, 2);
        acc = dot(a, trans(reshape(values, {c.BN, c.BK})), acc);
      }
      store(y + (m.col() * N + n.row()), cast(acc * load(global), bf16), {.mask = (m < M).col() & (n < N).row()});
    }).grid([](const F4Cfg& c, auto, auto, auto, auto, auto, int M, int N, int) {
      return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
    });
const double kE2m1[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};
Job f4_job(Env& e, bool nv) {
  F4Cfg c;
  if (!e.big) c = {32, 32, 64};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 512 : 45, N = e.big ? 8192 : 51, K = e.big ? 4096 : 192, G = nv ? 16 : 32;
  auto x = random<bfloat16>(e, size_t(M) * K), y = constant<bfloat16>(e, size_t(M) * N, NAN);
  auto w = integers<uint8_t>(e, size_t(N) * K / 2, 0, 256), s = integers<uint8_t>(e, size_t(N) * K / G, 120, 129);
  auto s8 = random<fp8_e4m3>(e, size_t(N) * K / G, .1, 3);
  auto global = constant<float>(e, 1, .125);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  if (nv)
    j.add(nvfp4, c, x.p, w.p, s8.p, global.p, y.p, M, N, K);
  else
    j.add(mxfp4, c, x.p, w.p, s.p, y.p, M, N, K, K, K / 2, K / 32);
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const size_t at = size_t(n) * K + k;
      const int q = w.h[at / 2] >> (k % 2 * 4) & 15;
      return (q & 8 ? -1 : 1) * kE2m1[q & 7] * (nv ? .125 * s8[at / G] : std::exp2(s.h[at / G] - 127.));
    };
    return agree(y.now(), product(M, N, K, matrix(x, K), weight), 3e-2, 8e-3);
  };
  return j;
}
Register r3("mxfp4_pointers", [](Env& e) { return f4_job(e, false); });
Register r4("nvfp4_pointers", [](Env& e) { return f4_job(e, true); });

// --- LoRA in vLLM's manner: tokens sorted by adapter, shrink with split K by atomics, expand added to what is there;
// weights of int8 with a scale per row
struct LoraCfg {
  int BM = 32, BN = 16, BK = 256, SPLIT = 8;
};
auto shrink =
    kernel("user_shrink_i8", [](const LoraCfg& c, Ptr<const bfloat16> x, Ptr<const int8_t> lora, Ptr<const float> scale,
                                Ptr<float> out, Ptr<const int32_t> sorted, Ptr<const int32_t> counts,
                                Ptr<const int32_t> starts, I32 M, I32 N, I32 K, I32 adapters) {
      auto pid_sk = program_id(0) % c.SPLIT, pid_m = program_id(0) / c.SPLIT, adapter = program_id(1);
      auto count = load(counts + adapter);
      return_if(pid_m * c.BM >= count);
      auto i = pid_m * c.BM + arange(0, c.BM);
      auto token = load(sorted + (load(starts + adapter) + i), {.mask = i < count});
      auto n = arange(0, c.BN);
      auto offset_k = pid_sk * c.BK + arange(0, c.BK);
      Tile a_ptrs = x + (token.col() * K + offset_k.row()),
           b_ptrs = lora + (adapter * N * K + n.row() * K + offset_k.col());
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, cdiv(K, c.BK * c.SPLIT))) {
        auto left = K - k * (c.BK * c.SPLIT);
        auto a = load(a_ptrs, {.mask = (offset_k < left).row() & (i < count).col(), .other = 0.f});
        auto b = load(b_ptrs, {.mask = (offset_k < left).col() & (n < N).row(), .other = 0});
        acc = dot(a, cast(b, bf16), acc);
        a_ptrs += c.BK * c.SPLIT;
        b_ptrs += c.BK * c.SPLIT;
      }
      acc *= load(scale + adapter * N + n, {.mask = n < N}).row();
      atomic_add(out + (token.col() * N + n.row()), acc, {.mask = (i < count).col() & (n < N).row()});
    }).grid([](const LoraCfg& c, auto, auto, auto, auto, auto, auto, auto, int M, int, int, int adapters) {
      return Grid{cdiv(M, c.BM) * c.SPLIT, adapters};
    });
auto expand =
    kernel("user_expand", [](const LoraCfg& c, Ptr<const float> x, Ptr<const int8_t> lora, Ptr<const float> scale,
                             Ptr<bfloat16> out, Ptr<const int32_t> sorted, Ptr<const int32_t> counts,
                             Ptr<const int32_t> starts, I32 M, I32 N, I32 R, I32 adapters) {
      auto pid_m = program_id(0), adapter = program_id(1), pid_n = program_id(2);
      auto count = load(counts + adapter);
      return_if(pid_m * c.BM >= count);
      auto i = pid_m * c.BM + arange(0, c.BM);
      auto token = load(sorted + (load(starts + adapter) + i), {.mask = i < count});
      auto n = pid_n * 128 + arange(0, 128), k = arange(0, c.BN);
      auto a = load(x + (token.col() * R + k.row()), {.mask = (k < R).row() & (i < count).col()});
      auto b = load(lora + (adapter * N * R + n.row() * R + k.col()), {.mask = (k < R).col() & (n < N).row()});
      auto acc = dot(cast(a, bf16), cast(b, bf16), zeros({c.BM, 128}, f32)) *
                 load(scale + adapter * N + n, {.mask = n < N}).row();
      auto at = token.col() * N + n.row();
      auto mask = (i < count).col() & (n < N).row();
      store(out + at, cast(acc + cast(load(out + at, {.mask = mask}), f32), bf16), {.mask = mask});
    }).grid([](const LoraCfg& c, auto, auto, auto, auto, auto, auto, auto, int M, int N, int, int adapters) {
      return Grid{cdiv(M, c.BM), adapters, cdiv(N, 128)};
    });
Register r5("lora_i8", [](Env& e) {
  LoraCfg c;
  if (!e.big) c = {16, 16, 32, 2};
  const int M = e.big ? 4096 : 53, N = e.big ? 4096 : 200, K = e.big ? 4096 : 144, R = e.big ? 16 : 8,
            L = e.big ? 8 : 3;
  auto x = random<bfloat16>(e, size_t(M) * K);
  auto la = integers<int8_t>(e, size_t(L) * R * K, -127, 128), lb = integers<int8_t>(e, size_t(L) * N * R, -127, 128);
  auto sa = random<float>(e, L * R, .001, .002), sb = random<float>(e, L * N, .001, .01);
  auto mid = constant<float>(e, size_t(M) * R, 0);
  auto y = random<bfloat16>(e, size_t(M) * N);
  std::vector<int32_t> of(M), s, cs, st;
  for (int m = 0; m < M; ++m) of[m] = m * 7 % 5 % L;
  for (int l = 0; l < L; ++l) {
    st.push_back(int(s.size()));
    for (int m = 0; m < M; ++m)
      if (of[m] == l) s.push_back(m);
    cs.push_back(int(s.size()) - st.back());
  }
  auto sorted = repeated<int32_t>(e, M, s), counts = repeated<int32_t>(e, L, cs), starts = repeated<int32_t>(e, L, st);
  Job j;
  j.mbytes = 1e-6 * (2. * M * K + 4. * M * N);
  restore(e, j, mid, y);
  j.add(shrink, c, x.p, la.p, sa.p, mid.p, sorted.p, counts.p, starts.p, M, R, K, L);
  j.add(expand, c, mid.p, lb.p, sb.p, y.p, sorted.p, counts.p, starts.p, M, N, R, L);
  j.inTurn = true;
  j.check = [=] {
    std::vector<double> want(y.n), middle(size_t(M) * R);
    for (int m = 0; m < M; ++m) {
      const int l = of[m];
      for (int r = 0; r < R; ++r) {
        for (int k = 0; k < K; ++k) middle[m * R + r] += x[size_t(m) * K + k] * la.h[(size_t(l) * R + r) * K + k];
        middle[m * R + r] *= sa[l * R + r];
      }
      for (int n = 0; n < N; ++n) {
        double sum = 0;
        for (int r = 0; r < R; ++r) sum += middle[m * R + r] * lb.h[(size_t(l) * N + n) * R + r];
        want[size_t(m) * N + n] = y[size_t(m) * N + n] + sum * sb[l * N + n];
      }
    }
    return agree(y.now(), want, 2e-2, 8e-3);
  };
  return j;
});

}  // namespace pointer_scales
}  // namespace users
