// moved_quants.cpp - rows made narrow: by groups of tokens to int8 and f8, behind silu and a product, behind a rotation
// by a Hadamard matrix to 4 bits, and weights packed again for tensor cores (GPTQ to Marlin).
#include "tests/users/use.h"
namespace users {
namespace moved_quants {

// --- SGLang's _per_token_group_quant_8bit: one program a group, y_s in rows or column-major
struct GroupCfg {
  int BLOCK = 128, column_major = 0;
};
template <class T>
auto group_quant_kernel(const char* name, DType type, double eps, double most) {
  return kernel(name,
                [=](const GroupCfg& c, Ptr<const bfloat16> y_ptr, Ptr<T> y_q_ptr, Ptr<float> y_s_ptr, I32 y_stride,
                    I32 N, I32 groups_per_row, I32 y_s_col_stride, I32) {
                  auto g_id = program_id(0);
                  auto row = g_id / groups_per_row, in_row = g_id % groups_per_row;
                  auto y = y_ptr + cast(row, i64) * y_stride + in_row * N;
                  auto y_q = y_q_ptr + cast(g_id, i64) * N;
                  auto cols = arange(0, c.BLOCK);
                  auto mask = cols < N;
                  auto x = cast(load(y + cols, {.mask = mask, .other = 0.f}), f32);
                  auto absmax = max(max(abs(x)), float(eps));
                  auto y_s = absmax / float(most);
                  auto scaled = clamp(x / y_s, float(type == f8e4m3 ? -most : -most - 1), float(most));
                  store(y_q + cols, type == i8 ? cast(scaled, i8) : cast(scaled, f8e4m3), {.mask = mask});
                  store(y_s_ptr + (c.column_major ? in_row * y_s_col_stride + row : g_id), y_s);
                })
      .grid([](const GroupCfg&, auto, auto, auto, int, int, int, int, int groups) { return Grid{groups}; });
}
auto quant_f8 = group_quant_kernel<fp8_e4m3>("user_group_f8", f8e4m3, 1e-10, 448);
auto quant_i8 = group_quant_kernel<int8_t>("user_group_i8", i8, 1e-10, 127);
template <class T, class K>
Job group_job(Env& e, const K& k, bool column_major, double most) {
  const int M = e.big ? 16384 : 19, H = e.big ? 7168 : 3 * 48, G = e.big ? 128 : 48, per = H / G;
  auto x = random<bfloat16>(e, size_t(M) * H, -3, 3);
  auto q = constant<T>(e, x.n, 0);
  auto s = constant<float>(e, size_t(M) * per, NAN);
  Job j;
  j.mbytes = 3e-6 * x.n;
  j.add(k, GroupCfg{e.big ? 128 : 64, column_major}, x.p, q.p, s.p, H, G, per, M, M * per);
  j.check = [=] {
    std::vector<double> scales(s.n), want(x.n), got(x.n);
    for (int m = 0; m < M; ++m)
      for (int g = 0; g < per; ++g) {
        double a = 1e-10;
        for (int i = 0; i < G; ++i) a = std::max(a, std::abs(x[size_t(m) * H + g * G + i]));
        scales[column_major ? size_t(g) * M + m : size_t(m) * per + g] = a / most;
        for (int i = 0; i < G; ++i) want[size_t(m) * H + g * G + i] = x[size_t(m) * H + g * G + i] / (a / most);
      }
    const auto wrong = agree(s.now(), scales, 1e-9, 1e-5);
    return wrong.empty() ? agree(q.now(), want, most == 127 ? 1.001 : 1e-3, most == 127 ? 0 : .07) : wrong;
  };
  return j;
}
Register r1("group_f8", [](Env& e) { return group_job<fp8_e4m3>(e, quant_f8, true, 448); });
Register r2("group_i8", [](Env& e) { return group_job<int8_t>(e, quant_i8, false, 127); });

// --- silu_and_mul, quantised to f8 by groups of 128 (silu_mul_quant of DeepSeek's experts, masked by counts of tokens)
struct SiluCfg {
  int BLOCK = 128, STAGES = 4;
};
auto silu_quant =
    kernel("user_silu_quant",
           [](const SiluCfg& c, Ptr<const bfloat16> input, Ptr<fp8_e4m3> output, Ptr<float> output_scale,
              Ptr<const int32_t> masked_m, I64 stride_input_0, I32 stride_input_1, I64 stride_output_0,
              I32 stride_output_1, I32 stride_scale_0, I32 stride_scale_1, I32 stride_scale_2, I32 size_n, I32 experts,
              I32 blocks) {
             auto expert = program_id(2), token = program_id(1), hidden = program_id(0);
             auto num = num_programs(1);
             auto count = load(masked_m + expert);
             auto offs = hidden * c.BLOCK + arange(0, c.BLOCK);
             auto in = input + cast(expert, i64) * stride_input_0 + offs;
             auto out = output + cast(expert, i64) * stride_output_0 + offs;
             auto scales = output_scale + (expert * stride_scale_0 + hidden * stride_scale_2);
             for (auto t : range(token, count, num, {.stages = c.STAGES})) {
               auto gate = cast(load(in + t * stride_input_1, {.mask = offs < size_n, .other = 0.f}), f32);
               auto up = load(in + (t * stride_input_1 + size_n), {.mask = offs < size_n, .other = 0.f});
               gate = gate / (1.f + exp(-gate));
               auto gate_up = cast(up, f32) * cast(cast(gate, bf16), f32);
               auto absmax = max(max(abs(gate_up)), 1e-10f);
               auto scale = absmax / 448.f;
               auto q = cast(clamp(gate_up / scale, -448.f, 448.f), f8e4m3);
               store(out + t * stride_output_1, q, {.mask = offs < size_n});
               store(scales + t * stride_scale_1, scale);
             }
           })
        .grid([](const SiluCfg&, auto, auto, auto, auto, int64_t, int, int64_t, int, int, int, int, int, int experts,
                 int blocks) {
          return Grid{blocks, 32, experts};
        });
Register r3("silu_quant", [](Env& e) {
  SiluCfg c;
  if (!e.big) c = {32, 2};
  const int E = e.big ? 32 : 3, T = e.big ? 1024 : 37, N = e.big ? 2048 : 3 * 32, B = N / c.BLOCK;
  auto x = random<bfloat16>(e, size_t(E) * T * 2 * N, -3, 3);
  auto q = constant<fp8_e4m3>(e, size_t(E) * T * N, 0);
  auto s = constant<float>(e, size_t(E) * T * B, 0);
  auto counts = filled<int32_t>(e, E, [&](size_t i) { return int32_t(T - i * 5); });
  Job j;
  j.mbytes = 5e-6 * q.n;
  j.add(silu_quant, c, x.p, q.p, s.p, counts.p, int64_t(T) * 2 * N, 2 * N, int64_t(T) * N, N, T * B, B, 1, N, E, B);
  j.check = [=] {
    std::vector<double> scales(s.n), want(q.n), got(q.n);
    const auto codes = q.now();
    const auto factors = s.now();
    for (int i = 0; i < E * T; ++i)
      for (int b = 0; b < B && i % T < counts.h[i / T]; ++b) {
        double most = 1e-10;
        for (int n = b * c.BLOCK; n < (b + 1) * c.BLOCK; ++n) {
          const size_t at = size_t(i) * N + n, from = size_t(i) * 2 * N + n;
          want[at] = x[from + N] * double(float(bfloat16(float(x[from] / (1 + std::exp(-x[from]))))));
          most = std::max(most, std::abs(want[at]));
          got[at] = double(float(codes[at])) * factors[size_t(i) * B + b];
        }
        scales[size_t(i) * B + b] = most / 448;
      }
    const auto wrong = agree(factors, scales, 1e-9, 5e-3);
    return wrong.empty() ? agree(got, want, 2e-3, .07) : wrong;
  };
  return j;
});

// --- rows times a Hadamard matrix of 128 (as a product by a matrix in memory), then to 4 bits with a factor a group,
// two in a byte
struct RotateCfg {
  int BM = 64, D = 128;
};
auto rotate4 = kernel("user_rotate4", [](const RotateCfg& c, Ptr<const half> x, Ptr<const half> hadamard,
                                         Ptr<uint8_t> packed, Ptr<half> scales, I32 M, I32 N) {
                 auto m = program_id(0) * c.BM + arange(0, c.BM), g = program_id(1);
                 auto d = arange(0, c.D);
                 auto a = load(x + (m.col() * N + (g * c.D + d).row()), {.mask = (m < M).col()});
                 auto h = load(hadamard + (d.col() * c.D + d.row()));
                 auto y = dot(a, h, zeros({c.BM, c.D}, f32));
                 auto scale = max(max(abs(y), axis(1)), 1e-6f) / 7.f;
                 auto q = cast(clamp(rint(y / scale), -8, 7), i32) & 15;
                 auto [low, high] = split(reshape(q, {c.BM, c.D / 2, 2}));
                 store(packed + (m.col() * (N / 2) + (g * (c.D / 2) + arange(0, c.D / 2)).row()),
                       cast(low | (high << 4), u8), {.mask = (m < M).col()});
                 store(scales + (m * (N / c.D) + g), cast(squeeze(scale, 1), f16), {.mask = m < M});
               }).grid([](const RotateCfg& c, auto, auto, auto, auto, int M, int N) {
  return Grid{cdiv(M, c.BM), N / c.D};
});
Register r4("rotate4", [](Env& e) {
  RotateCfg c;
  if (!e.big) c = {16, 32};
  const int M = e.big ? 16384 : 37, N = e.big ? 4096 : 96, D = c.D;
  auto x = random<half>(e, size_t(M) * N);
  auto h = filled<half>(e, D * D, [&](size_t i) {
    return half(float((__builtin_popcount(unsigned(i / D) & unsigned(i % D)) % 2 ? -1 : 1) / std::sqrt(double(D))));
  });
  auto q = constant<uint8_t>(e, size_t(M) * N / 2, 0);
  auto s = constant<half>(e, size_t(M) * N / D, NAN);
  Job j;
  j.mbytes = 2.5e-6 * M * N;
  j.add(rotate4, c, x.p, h.p, q.p, s.p, M, N);
  j.check = [=] {
    std::vector<double> want(x.n), got(x.n), scales(s.n);
    const auto codes = q.now();
    for (size_t r = 0; r < s.n; ++r) {
      double most = 1e-6;
      for (int n = 0; n < D; ++n) {
        for (int k = 0; k < D; ++k) want[r * D + n] += x[r * D + k] * h[k * D + n];
        most = std::max(most, std::abs(want[r * D + n]));
      }
      scales[r] = most / 7;
      for (int n = 0; n < D; ++n) {
        want[r * D + n] /= scales[r];
        const int code = codes[(r * D + n) / 2] >> (n % 2 * 4) & 15;
        got[r * D + n] = code < 8 ? code : code - 16;
      }
    }
    const auto wrong = agree(s.now(), scales, 1e-6, 2e-3);
    return wrong.empty() ? agree(got, want, .51, 0) : wrong;
  };
  return j;
});

// --- weights of GPTQ [K / 8, N] as Marlin wants them: tiles of 16 x 64 values in the order of fragments of m16n8k16,
// eight 4-bit numbers in a word. The word w of tile (k, n): lane w / 4 of the warp, part w % 4 of 16 columns; number i
// of it, in the order 0 2 4 6 1 3 5 7, is row lane % 4 * 2 + i % 2 + i / 2 % 2 * 8 and column 16 * part + lane / 4 + i
// / 4 * 8
struct RepackCfg {
  int TILES = 4;
};
auto repack = kernel("user_repack", [](const RepackCfg& c, Ptr<const uint32_t> in, Ptr<const int32_t> perm,
                                       Ptr<uint32_t> out, I32 K, I32 N) {
                auto k_tile = program_id(0);
                auto w = program_id(1) * c.TILES * 128 + arange(0, c.TILES * 128);
                auto n_tile = w / 128, lane = w % 128 / 4, part = w % 4;
                auto mask = n_tile * 64 < N;
                Tile word = zeros({c.TILES * 128}, u32);
                const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
                for (int j = 0; j < 8; ++j) {
                  const int i = order[j];
                  auto k = load(perm + (k_tile * 16 + lane % 4 * 2 + (i % 2 + i / 2 % 2 * 8)));
                  auto n = n_tile * 64 + part * 16 + lane / 4 + i / 4 * 8;
                  auto value = load(in + (k / 8 * N + n), {.mask = mask}) >> cast(k % 8 * 4, u32) & 15;
                  word = word | value << (4 * j);
                }
                store(out + (k_tile * (N * 2) + w), word, {.mask = mask});
              }).grid([](const RepackCfg& c, auto, auto, auto, int K, int N) {
  return Grid{K / 16, cdiv(N / 64, c.TILES)};
});
Register r5("repack", [](Env& e) {
  RepackCfg c;
  const int K = e.big ? 8192 : 48, N = e.big ? 8192 : 64 * 5;
  auto in = drawn<uint32_t>(e, size_t(K / 8) * N,
                            [&] { return uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536); });
  auto perm = filled<int32_t>(e, K, [&](size_t i) { return int32_t(i * 5 % K); });
  auto out = constant<uint32_t>(e, in.n, 0);
  Job j;
  j.mbytes = 1e-6 * K * N;
  j.add(repack, c, in.p, perm.p, out.p, K, N);
  j.check = [=] {
    const auto now = out.now();
    const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    for (int k = 0; k < K / 16; ++k)
      for (int w = 0; w < N * 2; ++w)
        for (int j = 0; j < 8; ++j) {
          const int i = order[j], lane = w % 128 / 4;
          const int row = perm.h[k * 16 + lane % 4 * 2 + i % 2 + i / 2 % 2 * 8],
                    n = w / 128 * 64 + w % 4 * 16 + lane / 4 + i / 4 * 8;
          if ((now[size_t(k) * N * 2 + w] >> (4 * j) & 15) != (in.h[size_t(row / 8) * N + n] >> (row % 8 * 4) & 15))
            return std::string("a word");
        }
    return std::string();
  };
  return j;
});

}  // namespace moved_quants
}  // namespace users
