// expert_gemm.h - Y[r] = scale_r X[r / top] W[expert of r]: the products of a mixture of experts, rows gathered by
// token and grouped by expert without copying them.
#pragma once
#include <span>
#include <vector>

#include "parts/expert_tiles.h"
#include "parts/shapes.h"

namespace tile::kernels {

struct ExpertGemmConfig {
  int BM = 128, BN = 128, BK = 64;
  int stages = 3;
  int warps = 8;
  bool producer = false;  ///< warps of their own gather rows (GPUs with bulk tensor copies): no copies between products
};

/// Rows in blocks of one expert each, as the kernel takes them: block b computes the rows ids[b * BM ..] with the
/// weights of experts[b]. Ids from `rows` on are padding.
struct ExpertBlocks {
  std::vector<int32_t> ids, experts;
};
/// The blocks of BM rows for expert_of[row]; experts without rows get none.
inline ExpertBlocks expert_blocks(std::span<const int32_t> expert_of, int experts, int BM) {
  std::vector<std::vector<int32_t>> lists(static_cast<size_t>(experts));
  for (size_t r = 0; r < expert_of.size(); ++r)
    lists[static_cast<size_t>(expert_of[r])].push_back(static_cast<int32_t>(r));
  ExpertBlocks out;
  for (size_t e = 0; e < lists.size(); ++e) {
    out.ids.insert(out.ids.end(), lists[e].begin(), lists[e].end());
    while (out.ids.size() % static_cast<size_t>(BM)) out.ids.push_back(static_cast<int32_t>(expert_of.size()));
    out.experts.resize(out.ids.size() / static_cast<size_t>(BM), static_cast<int32_t>(e));
  }
  return out;
}

/// X is [tokens, K], W is [experts, K, N], IDS [blocks * BM], EXPERTS [blocks], SCALE [rows] f32, Y [rows, N], where
/// row r belongs to token r / top. Grid {blocks, ceil(N / BN)}.
template <class T>
void expert_gemm_program(const ExpertGemmConfig& c, Tensor<const T, 2> X, Tensor<const T, 3> W,
                         Tensor<const int32_t, 1> IDS, Tensor<const int32_t, 1> EXPERTS, Ptr<const float> SCALE,
                         Tensor<T, 2> Y, I32 top) {
  num_warps(c.warps);
  auto block = program_id(0), n = program_id(1) * c.BN;
  auto depth = X.dim(1);
  auto rows = IDS.load({block * c.BM}, {c.BM});
  auto real = rows < Y.dim(0);
  auto expert = EXPERTS.load({block});
  auto source = cast(rows / top, i64).col() * X.stride(0);
  Tile acc = zeros({c.BM, c.BN}, f32);
  const Choice specialize = c.producer ? Choice::always : Choice::automatic;
  for (auto k : range(0, depth, c.BK, {.stages = c.stages, .specialize = specialize})) {
    auto columns = k + arange(0, c.BK);
    auto x = load(X.ptr() + source + (cast(columns, i64) * X.stride(1)).row(),
                  {.mask = real.col() & (columns < depth).row()});
    acc = dot(x, W.load({expert, k, n}, {c.BK, c.BN}), acc);
  }
  acc *= load(SCALE + rows, {.mask = real}).col();
  auto columns = n + arange(0, c.BN);
  store(Y.ptr() + cast(rows, i64).col() * Y.stride(0) + (cast(columns, i64) * Y.stride(1)).row(),
        cast(acc, dtype_of<T>()), {.mask = real.col() & (columns < Y.dim(1)).row()});
}

template <class T>
const auto& expert_gemm_kernel() {
  static const auto k = kernel(typed_name("expert_gemm", dtype_of<T>()), expert_gemm_program<T>)
                            .grid([](const ExpertGemmConfig& c, const auto&, const auto& w, const auto&,
                                     const auto& experts, const auto&...) {
                              return Grid{experts.shape[0], cdiv(w.shape[2], c.BN)};
                            });
  return k;
}

/// `rows` per expert on average decide how high blocks are: padding costs up to a block for every expert. `columns`: N,
/// `depth`: K, 0: not known.
inline ExpertGemmConfig default_expert_gemm_config(int64_t rows, int64_t experts, int64_t columns,
                                                   const Machine& machine, int64_t depth = 0) {
  ExpertGemmConfig c;
  if (machine.warpgroups) {
    const ExpertTile t = expert_tile({rows, experts, columns, depth}, machine);
    return {t.bm, t.bn, t.bk, t.stages, t.warps, /*producer=*/true};
  }
  if (!machine.gpu) c.BK = 128, c.stages = 1, c.warps = 1;
  const int64_t each = rows / std::max<int64_t>(experts, 1);
  if (each < 64) c.BM = 64, c.warps = machine.gpu ? 4 : 1;
  if (each < 16) c.BM = 16;
  if (machine.short_of_shared()) c.stages = 2;
  return c;
}

/// Shapes as above; IDS and EXPERTS are expert_blocks(.., config.BM) in device memory. dtypes f16, bf16.
template <class T>
Status expert_gemm(StreamAt stream, Input<T, 2> X, Input<T, 3> W, TensorView<const int32_t, 1> IDS,
                   TensorView<const int32_t, 1> EXPERTS, TensorView<const float, 1> SCALE, TensorView<T, 2> Y, int top,
                   const ExpertGemmConfig& config) {
  ShapeCheck check("expert_gemm");
  check.require(top > 0, "top must be positive, found {}", top)
      .shape("W", W, {-1, X.shape[1], Y.shape[1]}, "[experts, K, N]")
      .shape("IDS", IDS, {EXPERTS.shape[0] * config.BM}, "[blocks * BM]")
      .shape("SCALE", SCALE, {Y.shape[0]}, "[rows]")
      .require(SCALE.strides[0] == 1 || SCALE.shape[0] < 2, "SCALE must be dense")
      .require(Y.shape[0] <= X.shape[0] * top, "Y has {} rows, {} tokens have {}", Y.shape[0], X.shape[0],
               X.shape[0] * top);
  if (!check.ok()) return stream.refuse(check.error());
  return expert_gemm_kernel<T>().try_call(stream, config, X, W, IDS, EXPERTS, SCALE.data, Y, top);
}

}  // namespace tile::kernels
