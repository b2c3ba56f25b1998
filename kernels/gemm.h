// gemm.h - D = epilogue(alpha op(A) op(B) + beta C), dense, ragged sizes included.
#pragma once
#include "kernels/parts/shapes.h"
#include "kernels/parts/tile_order.h"

namespace tile::kernels {

struct GemmConfig {
  int BM = 128, BN = 128, BK = 32;
  int GROUP = 16;  ///< tile rows walked together (L2 reuse)
  int stages = 3;
  int warps = 4;
  bool trans_a = false;  ///< A is stored [K, M]
  bool trans_b = false;  ///< B is stored [N, K]
  bool use_alpha = false;
  bool use_c = false;  ///< else C is not read (and beta not used)
  bool tf32 = false;   ///< f32 only: products of 10-bit mantissas on tensor cores instead of IEEE f32
};

/// Epilogue that changes nothing. An epilogue is any callable Tile -> Tile on the f32 (i32 for i8) accumulator; it is
/// traced into the kernel.
struct NoEpilogue {
  Tile operator()(const Tile& x) const { return x; }
};

/// A is [M, K], B is [K, N] (or stored transposed, see the config), C and D are [M, N]. i8 operands accumulate in i32,
/// all others in f32. Grid {ceil(M / BM) * ceil(N / BN)}.
template <class TIn, class TOut, class Epilogue>
void gemm_program(const GemmConfig& c, const Epilogue& epilogue, Tensor<const TIn, 2> A, Tensor<const TIn, 2> B,
                  Tensor<const TOut, 2> C, Tensor<TOut, 2> D, F32 alpha, F32 beta) {
  num_warps(c.warps);
  constexpr bool integer = std::is_integral_v<TIn>;
  auto num_m = cdiv(D.dim(0), c.BM), num_n = cdiv(D.dim(1), c.BN);
  auto depth = A.dim(c.trans_a ? 0 : 1);
  TileIndex at = grouped_order(program_id(0), num_m, num_n, c.GROUP);
  auto m0 = at.m * c.BM, n0 = at.n * c.BN;

  Tile acc = zeros({c.BM, c.BN}, integer ? i32 : f32);
  for (auto k0 : range(0, depth, c.BK, {.stages = c.stages})) {
    auto a = c.trans_a ? trans(A.load({k0, m0}, {c.BK, c.BM})) : A.load({m0, k0}, {c.BM, c.BK});
    auto b = c.trans_b ? trans(B.load({n0, k0}, {c.BN, c.BK})) : B.load({k0, n0}, {c.BK, c.BN});
    acc = dot(a, b, acc, c.tf32 ? Prec::tf32 : Prec::ieee);
  }
  if (c.use_alpha) acc *= alpha;
  if (c.use_c) acc = fma(cast(C.load({m0, n0}, {c.BM, c.BN}), f32), beta, acc);
  D.store({m0, n0}, cast(epilogue(acc), dtype_of<TOut>()));
}

/// A GEMM with an epilogue of the caller's: keep the result (it holds the compiled code) and launch it with run_gemm.
/// (TIn, TOut): (f16, f16), (bf16, bf16), (f32, f32), (i8, i32), or any pair a cast from the accumulator reaches.
template <class TIn, class TOut, class Epilogue>
auto make_gemm_kernel(const char* name, Epilogue epilogue) {
  return kernel(
             typed_name(name, dtype_of<TIn>()),
             [epilogue](const GemmConfig& c, Tensor<const TIn, 2> A, Tensor<const TIn, 2> B, Tensor<const TOut, 2> C,
                        Tensor<TOut, 2> D, F32 alpha, F32 beta) { gemm_program(c, epilogue, A, B, C, D, alpha, beta); })
      .grid([](const GemmConfig& c, const auto&, const auto&, const auto&, const auto& d, const auto&...) {
        return Grid{cdiv(d.shape[0], c.BM) * cdiv(d.shape[1], c.BN)};
      });
}
template <class TIn, class TOut>
const auto& gemm_kernel() {
  static const auto k = make_gemm_kernel<TIn, TOut>("gemm", NoEpilogue{});
  return k;
}

/// Tiles for a problem of this size; flags that describe the problem (transposes, C, alpha) are left for the caller to
/// set.
inline GemmConfig default_gemm_config(DType in, bool tf32, int64_t m, int64_t n, const Machine& machine) {
  GemmConfig c;
  c.tf32 = tf32;
  if (!machine.gpu) {
    // Operand tiles that fit the second-level cache together.
    c.BM = m >= 1024 ? 256 : 128, c.BN = 128, c.BK = 128, c.GROUP = 1, c.stages = 1, c.warps = 1;
    return c;
  }
  auto programs = [&](int bm, int bn) { return cdiv(m, bm) * cdiv(n, bn); };
  if (in == DType::f32 && !tf32) {
    c.BK = 16, c.warps = 8;  // multiply-adds from registers: 64 accumulators per thread
    if (programs(c.BM, c.BN) < machine.multiprocessors) c.BM = 64, c.BN = 64, c.warps = 4;
    return c;
  }
  int row = static_cast<int>(128 / size_of(in));  // elements in 128 bytes: whole lines of shared memory
  c.BK = row, c.warps = 4;
  // Measured on an H200 (f16, 4096): 128x256 with 4 stages 443 TFLOP/s, 128x128 with two programs per multiprocessor
  // 436.
  if (size_of(in) >= 2 && programs(128, 256) >= machine.multiprocessors) c.BN = 256, c.warps = 8;
  if (programs(c.BM, c.BN) < machine.multiprocessors) c.BM = 64, c.BN = 64, c.warps = 4;
  // As many stages as fit, up to 4, beside 8 KB for the compiler's own needs; with 4 warps two programs share the
  // memory.
  int64_t stage_bytes = static_cast<int64_t>(c.BM + c.BN) * c.BK * static_cast<int64_t>(size_of(in));
  int64_t room = static_cast<int64_t>(machine.shared_bytes) / (c.warps == 4 ? 2 : 1) - 8192;
  c.stages = static_cast<int>(std::clamp<int64_t>(room / stage_bytes, 2, 4));
  return c;
}

/// Launches `k` (from make_gemm_kernel) after checking shapes. C is read only with config.use_c; pass D's view
/// otherwise.
template <class K, class TIn, class TOut>
Status run_gemm(const K& k, Stream& stream, TensorView<const TIn, 2> A, TensorView<const TIn, 2> B,
                TensorView<const TOut, 2> C, TensorView<TOut, 2> D, float alpha, float beta, const GemmConfig& config) {
  int64_t m = D.shape[0], n = D.shape[1], depth = A.shape[config.trans_a ? 0 : 1];
  ShapeCheck check("gemm");
  config.trans_a ? check.shape("A", A, {-1, m}, "[K, M]") : check.shape("A", A, {m, -1}, "[M, K]");
  config.trans_b ? check.shape("B", B, {n, depth}, "[N, K]") : check.shape("B", B, {depth, n}, "[K, N]");
  if (config.use_c) check.shape("C", C, {m, n}, "[M, N]");
  check.require(config.use_alpha || alpha == 1.f, "alpha = {} needs config.use_alpha", alpha)
      .require(config.use_c || beta == 0.f, "beta = {} needs config.use_c", beta)
      .require(!std::is_integral_v<TIn> || (!config.use_alpha && !config.use_c),
               "integer products take no alpha, beta or C");
  if (!check.ok()) return check.error();
  return k.try_call(stream, config, A, B, C, D, alpha, beta);
}

/// D = A B, f16, bf16, f32 (IEEE) or i8 into i32.
template <class TIn, class TOut>
Status gemm(Stream& stream, TensorView<const TIn, 2> A, TensorView<const TIn, 2> B, TensorView<TOut, 2> D) {
  GemmConfig c = default_gemm_config(dtype_of<TIn>(), false, D.shape[0], D.shape[1], Machine::of(stream));
  return run_gemm(gemm_kernel<TIn, TOut>(), stream, A, B, TensorView<const TOut, 2>(D), D, 1.f, 0.f, c);
}

}  // namespace tile::kernels
