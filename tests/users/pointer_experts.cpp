// pointer_experts.cpp - vLLM's fused_moe_kernel and fused_moe_kernel_gptq_awq: experts with int8, int4 and block-scaled
// f8 weights.
#include "tests/users/use.h"
namespace users {
namespace pointer_experts {

struct MoeCfg {
  int BM = 64, BN = 128, BK = 64, GM = 8, G = 128, top_k = 2;
  bool int4 = true, zp = true, mul = true;
};
// A [M, K]; B int8 [E, N, K] or packed [E, N, K / 2]; scales [E, N, K / G], zeros packed [E, N / 2, K / G]
auto moe_wna16 =
    kernel("user_moe_wna16", [](const MoeCfg& c, Ptr<const bfloat16> a_ptr, Ptr<const uint8_t> b_ptr,
                                Ptr<bfloat16> c_ptr, Ptr<const bfloat16> b_scale_ptr, Ptr<const uint8_t> b_zp_ptr,
                                Ptr<const float> topk_weights_ptr, Ptr<const int32_t> sorted_token_ids_ptr,
                                Ptr<const int32_t> expert_ids_ptr, Ptr<const int32_t> num_tokens_post_padded_ptr, I32 N,
                                I32 K, I32 EM, I32 num_valid_tokens, I32 stride_am, I32 stride_ak, I32 stride_be,
                                I32 stride_bk, I32 stride_bn, I32 stride_cm, I32 stride_cn, I32 stride_bse,
                                I32 stride_bsk, I32 stride_bsn, I32 stride_bze, I32 stride_bzk, I32 stride_bzn) {
      auto pid = program_id(0);
      auto num_pid_m = cdiv(EM, c.BM), num_pid_n = cdiv(N, c.BN);
      auto num_pid_in_group = c.GM * num_pid_n;
      auto group_id = pid / num_pid_in_group;
      auto first_pid_m = group_id * c.GM;
      auto group_size_m = min(num_pid_m - first_pid_m, c.GM);
      auto pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m),
           pid_n = (pid % num_pid_in_group) / group_size_m;
      auto num_tokens_post_padded = load(num_tokens_post_padded_ptr);
      return_if(pid_m * c.BM >= num_tokens_post_padded);
      auto offs_token_id = pid_m * c.BM + cast(arange(0, c.BM), i64);
      auto offs_token = load(sorted_token_ids_ptr + offs_token_id);
      auto token_mask = offs_token < num_valid_tokens;
      auto off_experts = cast(load(expert_ids_ptr + pid_m), i64);
      auto offs_bn = (pid_n * c.BN + cast(arange(0, c.BN), i64)) % cast(N, i64);
      auto offs_k = arange(0, c.BK);
      Tile a_ptrs = a_ptr + (offs_token.col() / c.top_k * stride_am + offs_k.row() * stride_ak);
      Tile b_ptrs = c.int4
                        ? b_ptr + (off_experts * stride_be + (offs_k.col() / 2) * stride_bk + offs_bn.row() * stride_bn)
                        : b_ptr + (off_experts * stride_be + offs_k.col() * stride_bk + offs_bn.row() * stride_bn);
      auto b_shifter = (offs_k.col() % 2) * 4, b_zp_shifter = cast((offs_bn.row() % 2) * 4, i32);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, cdiv(K, c.BK))) {
        auto k_mask = offs_k.col() < K - k * c.BK;
        auto a = load(a_ptrs, {.mask = token_mask.col() & (offs_k.row() < K - k * c.BK), .other = 0.f});
        Tile b = cast(load(b_ptrs), i32);
        if (c.int4) b = (b >> b_shifter) & 15;
        auto scale_at = b_scale_ptr + (off_experts * stride_bse + offs_bn.row() * stride_bsn +
                                       ((offs_k.col() + c.BK * k) / c.G) * stride_bsk);
        auto b_scale = cast(load(scale_at, {.mask = k_mask, .other = 0.f}), f32);
        Tile zero = full({1, 1}, c.int4 ? 8 : 128, i32);
        if (c.zp && c.int4) {
          auto offs_k_true = (offs_k.col() + c.BK * k) / c.G;
          auto z = cast(
              load(b_zp_ptr + (off_experts * stride_bze + (offs_bn.row() / 2) * stride_bzn + offs_k_true * stride_bzk),
                   {.mask = k_mask, .other = 0}),
              i32);
          zero = (z >> b_zp_shifter) & 15;
        }
        auto w = cast(cast(b - zero, f32) * b_scale, bf16);
        acc = dot(a, w, acc);
        a_ptrs += c.BK * stride_ak;
        b_ptrs += (c.int4 ? c.BK / 2 : c.BK) * stride_bk;
      }
      if (c.mul) acc = acc * load(topk_weights_ptr + offs_token, {.mask = token_mask, .other = 0.f}).col();
      auto offs_cn = pid_n * c.BN + arange(0, c.BN);
      store(c_ptr + (stride_cm * offs_token.col() + stride_cn * offs_cn.row()), cast(acc, bf16),
            {.mask = token_mask.col() & (offs_cn.row() < N)});
    }).grid([](const MoeCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, int N, int, int EM, auto...) {
      return Grid{cdiv(EM, c.BM) * cdiv(N, c.BN)};
    });

/// Tokens of every expert, padded to blocks: what moe_align_block_size makes.
struct Sorted {
  Array<int32_t> ids, experts, total;
  std::vector<int> expert_of;  // of every (token, slot)
};
Sorted sort_tokens(Env& e, int M, int top_k, int E, int BM) {
  Sorted s;
  std::vector<int32_t> ids, experts;
  for (int i = 0; i < M * top_k; ++i) s.expert_of.push_back((i / top_k * 5 + i % top_k * 3 + i / 7) % E);
  for (int x = 0; x < E; ++x) {
    for (int i = 0; i < M * top_k; ++i)
      if (s.expert_of[i] == x) ids.push_back(i);
    while (ids.size() % BM) ids.push_back(M * top_k);
    while (experts.size() < ids.size() / BM) experts.push_back(x);
  }
  s.ids = repeated<int32_t>(e, ids.size(), ids), s.experts = repeated<int32_t>(e, experts.size(), experts);
  s.total = repeated<int32_t>(e, 1, {int32_t(ids.size())});
  return s;
}
Job wna16_job(Env& e, bool int4, bool zp) {
  MoeCfg c;
  if (!e.big) c = {16, 32, 32, 2, 32, 2};
  c.int4 = int4, c.zp = zp;
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 2048 : 29, N = e.big ? 4096 : 72, K = e.big ? 2048 : 96, E = e.big ? 16 : 3, G = c.G,
            KP = int4 ? K / 2 : K;
  auto a = random<bfloat16>(e, size_t(M) * K), out = constant<bfloat16>(e, size_t(M) * c.top_k * N, NAN);
  auto b = integers<uint8_t>(e, size_t(E) * N * KP, 0, 256),
       z = integers<uint8_t>(e, size_t(E) * N / 2 * (K / G), 0, 256);
  auto s = random<bfloat16>(e, size_t(E) * N * (K / G), .01, .1);
  auto weights = random<float>(e, size_t(M) * c.top_k, .1, 1);
  auto sorted = sort_tokens(e, M, c.top_k, E, c.BM);
  Job j;
  j.gflop = 2e-9 * M * c.top_k * double(N) * K;
  j.add(moe_wna16, c, a.p, b.p, out.p, s.p, z.p, weights.p, sorted.ids.p, sorted.experts.p, sorted.total.p, N, K,
        int(sorted.ids.n), M * c.top_k, K, 1, N * KP, 1, KP, N, 1, N * (K / G), 1, K / G, N / 2 * (K / G), 1, K / G);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int i = 0; i < M * c.top_k; ++i)
      for (int n = 0; n < N; ++n) {
        const int x = sorted.expert_of[i];
        double sum = 0;
        for (int k = 0; k < K; ++k) {
          const size_t row = size_t(x) * N + n;
          const int q = int4 ? b.h[row * KP + k / 2] >> (k % 2 * 4) & 15 : b.h[row * KP + k];
          const int zero =
              int4 ? (zp ? z.h[(size_t(x) * (N / 2) + n / 2) * (K / G) + k / G] >> (n % 2 * 4) & 15 : 8) : 128;
          sum += a[size_t(i / c.top_k) * K + k] * double(float(bfloat16(float((q - zero) * s[row * (K / G) + k / G]))));
        }
        want[size_t(i) * N + n] = sum * weights[i];
      }
    return agree(out.now(), want, int4 ? 2e-2 : .2, 1e-2);
  };
  return j;
}
Register r1("moe_int4_zp", [](Env& e) { return wna16_job(e, true, true); });
Register r2("moe_int4", [](Env& e) { return wna16_job(e, true, false); });
Register r3("moe_int8", [](Env& e) { return wna16_job(e, false, false); });

// --- fused_moe_kernel with f8 activations and weights, scales of blocks of 128
struct Moe8Cfg {
  int BM = 64, BN = 128, BK = 128, GM = 8, group_n = 128, group_k = 128, top_k = 8;
};
auto moe_f8 =
    kernel("user_moe_f8", [](const Moe8Cfg& c, Ptr<const fp8_e4m3> a_ptr, Ptr<const fp8_e4m3> b_ptr,
                             Ptr<bfloat16> c_ptr, Ptr<const float> a_scale_ptr, Ptr<const float> b_scale_ptr,
                             Ptr<const int32_t> sorted_token_ids_ptr, Ptr<const int32_t> expert_ids_ptr,
                             Ptr<const int32_t> num_tokens_post_padded_ptr, I32 N, I32 K, I32 EM, I32 num_valid_tokens,
                             I32 stride_am, I32 stride_ak, I64 stride_be, I32 stride_bk, I32 stride_bn, I32 stride_cm,
                             I32 stride_cn, I32 stride_asm, I32 stride_ask, I32 stride_bse, I32 stride_bsk,
                             I32 stride_bsn) {
      auto pid = program_id(0);
      auto num_pid_m = cdiv(EM, c.BM), num_pid_n = cdiv(N, c.BN);
      auto num_pid_in_group = c.GM * num_pid_n;
      auto first_pid_m = pid / num_pid_in_group * c.GM;
      auto group_size_m = min(num_pid_m - first_pid_m, c.GM);
      auto pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m),
           pid_n = (pid % num_pid_in_group) / group_size_m;
      return_if(pid_m * c.BM >= load(num_tokens_post_padded_ptr));
      auto offs_token = load(sorted_token_ids_ptr + (pid_m * c.BM + arange(0, c.BM)));
      auto token_mask = offs_token < num_valid_tokens;
      auto off_experts = load(expert_ids_ptr + pid_m);
      auto offs_bn = (pid_n * c.BN + arange(0, c.BN)) % N;
      auto offs_k = arange(0, c.BK);
      Tile a_ptrs = a_ptr + (offs_token.col() / c.top_k * stride_am + offs_k.row() * stride_ak);
      Tile b_ptrs = b_ptr + cast(off_experts, i64) * stride_be + (offs_k.col() * stride_bk + offs_bn.row() * stride_bn);
      auto a_scale_ptrs = a_scale_ptr + (offs_token / c.top_k) * stride_asm;
      auto b_scale_ptrs = b_scale_ptr + off_experts * stride_bse + (offs_bn / c.group_n) * stride_bsn;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, cdiv(K, c.BK))) {
        auto a = load(a_ptrs, {.mask = token_mask.col() & (offs_k.row() < K - k * c.BK), .other = 0.f});
        auto b = load(b_ptrs, {.mask = offs_k.col() < K - k * c.BK, .other = 0.f});
        auto offs_ks = k * c.BK / c.group_k;
        auto a_scale = load(a_scale_ptrs + offs_ks * stride_ask, {.mask = token_mask, .other = 0.f});
        auto b_scale = load(b_scale_ptrs + offs_ks * stride_bsk);
        acc += dot(a, b) * a_scale.col() * b_scale.row();
        a_ptrs += c.BK * stride_ak;
        b_ptrs += c.BK * stride_bk;
      }
      auto offs_cn = pid_n * c.BN + arange(0, c.BN);
      store(c_ptr + (stride_cm * offs_token.col() + stride_cn * offs_cn.row()), cast(acc, bf16),
            {.mask = token_mask.col() & (offs_cn.row() < N)});
    }).grid([](const Moe8Cfg& c, auto, auto, auto, auto, auto, auto, auto, auto, int N, int, int EM, auto...) {
      return Grid{cdiv(EM, c.BM) * cdiv(N, c.BN)};
    });
Register r4("moe_f8", [](Env& e) {
  Moe8Cfg c;
  if (!e.big) c = {16, 32, 32, 2, 32, 32, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 2048 : 29, N = e.big ? 4096 : 72, K = e.big ? 7168 : 112, E = e.big ? 32 : 3, G = c.group_k,
            KG = cdiv(K, G), NG = cdiv(N, c.group_n);
  auto a = random<fp8_e4m3>(e, size_t(M) * K, -4, 4), b = random<fp8_e4m3>(e, size_t(E) * N * K, -4, 4);
  auto as = random<float>(e, size_t(M) * KG, .01, .1), bs = random<float>(e, size_t(E) * NG * KG, .01, .1);
  auto out = constant<bfloat16>(e, size_t(M) * c.top_k * N, NAN);
  auto sorted = sort_tokens(e, M, c.top_k, E, c.BM);
  Job j;
  j.gflop = 2e-9 * M * c.top_k * double(N) * K;
  j.add(moe_f8, c, a.p, b.p, out.p, as.p, bs.p, sorted.ids.p, sorted.experts.p, sorted.total.p, N, K, int(sorted.ids.n),
        M * c.top_k, K, 1, int64_t(N) * K, 1, K, N, 1, KG, 1, NG * KG, 1, KG);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int i = 0; i < M * c.top_k; ++i)
      for (int n = 0; n < N; ++n) {
        const int x = sorted.expert_of[i], m = i / c.top_k;
        for (int k = 0; k < K; ++k)
          want[size_t(i) * N + n] += a[size_t(m) * K + k] * as[size_t(m) * KG + k / G] *
                                     b[(size_t(x) * N + n) * K + k] * bs[(size_t(x) * NG + n / c.group_n) * KG + k / G];
      }
    return agree(out.now(), want, 1e-2, 8e-3);
  };
  return j;
});

}  // namespace pointer_experts
}  // namespace users
