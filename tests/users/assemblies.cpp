// assemblies.cpp - kernels with PTX in them: an instruction that C++ has no name for (tanh.approx), four bytes to a
// register (the example of Triton's documentation), dot products of packed bytes (dp4a), a clock around a loop.
#include "tests/users/use.h"
namespace users {
namespace assemblies {

struct RowCfg {
  int B = 1024, warps = 4;
};
// --- GELU with the hardware's tanh
auto gelu = kernel("user_asm_gelu", [](const RowCfg& c, Ptr<const half> x, Ptr<half> y, I32 n) {
              num_warps(c.warps);
              auto i = program_id(0) * c.B + arange(0, c.B);
              auto v = cast(load(x + i, {.mask = i < n}), f32);
              auto t = inline_asm("tanh.approx.f32 $0, $1;", "=f,f", {0.7978845608f * (v + 0.044715f * v * v * v)}, f32,
                                  {}, [](Tile u) { return tanh(u); });
              store(y + i, cast(0.5f * v * (1.f + t), f16), {.mask = i < n});
            }).grid([](const RowCfg& c, const half*, half*, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("asm_gelu", [](Env& e) {
  const int n = e.big ? 1 << 26 : 5001;
  auto x = random<half>(e, n, -4, 4), y = constant<half>(e, n, NAN);
  Job j;
  j.mbytes = 4e-6 * n;
  j.add(gelu, RowCfg{e.field("B", e.big ? 2048 : 256), 4}, x.p, y.p, n);
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < n; ++i)
      want.push_back(.5 * x[i] * (1 + std::tanh(.7978845608 * (x[i] + .044715 * x[i] * x[i] * x[i]))));
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- four bytes in a register become floats, and the larger of them and another tile
auto larger =
    kernel("user_asm_bytes", [](const RowCfg& c, Ptr<const uint8_t> a, Ptr<const float> b, Ptr<float> wide,
                                Ptr<float> most, I32 n) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto live = i < n;
      auto [w, m] = inline_asm(
          R"({
                      .reg .b8 part<4>;
                      mov.b32 {part0, part1, part2, part3}, $8;  // a
                      cvt.u32.u8 $0, part0;
                      cvt.u32.u8 $1, part1;
                      cvt.u32.u8 $2, part2;
                      cvt.u32.u8 $3, part3;
                      cvt.rn.f32.s32 $0, $0;
                      cvt.rn.f32.s32 $1, $1;
                      cvt.rn.f32.s32 $2, $2;
                      cvt.rn.f32.s32 $3, $3;
                      max.f32 $4, $0, $9;
                      max.f32 $5, $1, $10;
                      max.f32 $6, $2, $11;
                      max.f32 $7, $3, $12;
                    })",
          "=r,=r,=r,=r,=r,=r,=r,=r, r,r,r,r,r", {load(a + i, {.mask = live}), load(b + i, {.mask = live})}, {f32, f32},
          {.pack = 4}, [](Tile x, Tile y) {
            auto f = cast(x, f32);
            return std::pair(f, max(f, y));
          });
      store(wide + i, w, {.mask = live});
      store(most + i, m, {.mask = live});
    }).grid([](const RowCfg& c, const uint8_t*, const float*, float*, float*, int n) { return Grid{cdiv(n, c.B)}; });
Register r2("asm_bytes", [](Env& e) {
  const int n = e.big ? 1 << 26 : 5003;
  auto a = integers<uint8_t>(e, n, 0, 256);
  auto b = random<float>(e, n, 0, 256), w = constant<float>(e, n, NAN), m = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 13e-6 * n;
  j.add(larger, RowCfg{e.field("B", e.big ? 1024 : 256), 4}, a.p, b.p, w.p, m.p, n);
  j.check = [=] {
    std::vector<double> wide, most;
    for (int i = 0; i < n; ++i) wide.push_back(a.h[i]), most.push_back(std::max(double(a.h[i]), b[i]));
    const auto wrong = agree(w.now(), wide, 1e-9, 0);
    return wrong.empty() ? agree(m.now(), most, 1e-9, 0) : wrong;
  };
  return j;
});

// --- y = W x in bytes, four products an instruction
struct DpCfg {
  int BM = 8, BK = 256, warps = 4;
};
auto dp4a = kernel("user_asm_dp4a", [](const DpCfg& c, Tensor<const int32_t, 2> W, Tensor<const int32_t, 1> x,
                                       Tensor<const float, 1> scale, Tensor<float, 1> y) {
              num_warps(c.warps);
              auto m = program_id(0) * c.BM;
              Tile acc = zeros({c.BM, c.BK}, i32);
              for (auto k : range(0, W.dim(1), c.BK))
                acc = inline_asm("dp4a.s32.s32 $0, $1, $2, $3;", "=r,r,r,r",
                                 {W.load({m, k}, {c.BM, c.BK}), x.load({k}, {c.BK}).row(), acc}, i32, {},
                                 [](Tile a, Tile b, Tile sum) {
                                   for (int i = 0; i < 4; ++i)
                                     sum += (a << (24 - 8 * i) >> 24) * (b << (24 - 8 * i) >> 24);
                                   return sum;
                                 });
              auto total = squeeze(sum(acc, axis(1)), 1);
              y.store({m}, cast(total, f32) * scale.load({m}, {c.BM}));
            }).grid([](const DpCfg& c, const auto& w, const auto&...) { return Grid{cdiv(w.shape[0], c.BM)}; });
Register r3("asm_dp4a", [](Env& e) {
  const int M = e.big ? 16384 : 37, K = e.big ? 16384 : 1200;
  auto bytes = [&](size_t n) {
    return drawn<int32_t>(e, n, [&] {
      uint32_t word = 0;
      for (int i = 0; i < 4; ++i) word = word << 8 | uint32_t(e.uniform() * 256);
      return int32_t(word);
    });
  };
  auto w = bytes(size_t(M) * (K / 4)), x = bytes(K / 4);
  auto s = random<float>(e, M, .01, .02), y = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 1e-6 * M * K;
  j.add(dp4a, DpCfg{e.field("BM", 8), e.field("BK", 256), e.field("warps", 4)}, w.view(M, K / 4), x.view(K / 4),
        s.view(M), y.view(M));
  j.check = [=] {
    auto byte = [](uint32_t word, int i) { return double(int8_t(word >> (8 * i))); };
    std::vector<double> want(M);
    for (int m = 0; m < M; ++m) {
      for (int k = 0; k < K; ++k) want[m] += byte(w.h[size_t(m) * (K / 4) + k / 4], k % 4) * byte(x.h[k / 4], k % 4);
      want[m] *= s[m];
    }
    return agree(y.now(), want, 1e-3, 1e-6);
  };
  return j;
});

// --- where and how long programs run: a profile beside a sum
auto clock_sum =
    kernel("user_asm_clock", [](const RowCfg& c, Tensor<const float, 2> X, Tensor<float, 1> Y, Tensor<uint64_t, 2> T) {
      num_warps(c.warps);
      auto r = program_id(0);
      auto now = [] {
        return inline_asm("mov.u64 $0, %globaltimer;", "=l", u64, {.pure = false}, [] { return cast(Tile(0), u64); });
      };
      auto start = now();
      Tile acc = zeros({c.B}, f32);
      for (auto k : range(0, X.dim(1), c.B)) acc += X.load({r, k}, {c.B});
      Y.store({r}, reshape(sum(acc), {1}));
      auto end = now();
      auto sm = inline_asm("mov.u32 $0, %smid;", "=r", u32, {.pure = false}, [] { return cast(Tile(0), u32); });
      T.store({r, 0}, reshape(cat(reshape(end - start, {1}), reshape(cast(sm, u64), {1})), {1, 2}));
    }).grid([](const RowCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r4("asm_clock", [](Env& e) {
  const int M = e.big ? 8192 : 21, N = e.big ? 16384 : 1000;
  auto x = random<float>(e, size_t(M) * N), y = constant<float>(e, M, NAN);
  auto t = filled<uint64_t>(e, size_t(M) * 2, [](size_t) { return ~uint64_t{0}; });
  Job j;
  j.mbytes = 4e-6 * M * N;
  j.add(clock_sum, RowCfg{e.field("B", e.big ? 4096 : 256), 4}, x.view(M, N), y.view(M), t.view(M, 2));
  j.check = [=]() -> std::string {
    std::vector<double> want(M);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) want[m] += x[size_t(m) * N + n];
    for (uint64_t v : t.now())
      if (v > 1'000'000'000) return "a time or a place that cannot be: " + std::to_string(v);
    return agree(y.now(), want, 1e-3, 1e-5);
  };
  return j;
});

}  // namespace assemblies
}  // namespace users
