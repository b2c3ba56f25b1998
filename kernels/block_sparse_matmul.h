// block_sparse_matmul.h - C = A B where whole blocks of A and B are known to be zero and are never touched.
#pragma once
#include "parts/shapes.h"

namespace tile::kernels {

struct BlockSparseConfig {
  int BM = 64, BN = 64, BK = 64;  ///< size of the blocks the masks speak of, and of the tiles
  bool tf32 = false;              ///< f32 only
  bool bits = false;  ///< masks are packed along K: bit k % 32 of word k / 32 of MASK_A [ceil(M/BM), words] and of
                      ///< MASK_B [ceil(N/BN), words]
  int stages = 2;
  int warps = 4;
};

/// A is [M, K], B is [K, N], C is [M, N]; MASK_A is [ceil(M/BM), ceil(K/BK)] and MASK_B is [ceil(K/BK), ceil(N/BN)],
/// i32, 0 where the block is zero. Elements of such blocks are not read. Sizes need not be multiples of the blocks.
/// Grid {ceil(M/BM), ceil(N/BN)}.
template <class T>
void block_sparse_matmul_program(const BlockSparseConfig& c, Tensor<const T, 2> A, Tensor<const T, 2> B, Tensor<T, 2> C,
                                 Tensor<const int32_t, 2> MASK_A, Tensor<const int32_t, 2> MASK_B) {
  num_warps(c.warps);
  auto i = program_id(0), j = program_id(1);
  auto m0 = i * c.BM, n0 = j * c.BN;
  Tile acc = zeros({c.BM, c.BN}, f32);
  auto blocks = c.bits ? cdiv(A.dim(1), c.BK) : MASK_A.dim(1);
  for (auto k : range(0, blocks, 1, {.stages = c.stages})) {
    auto present = c.bits ? ((MASK_A.load({i, k / 32}) & MASK_B.load({j, k / 32})) >> (k % 32) & 1) != 0
                          : (MASK_A.load({i, k}) != 0) & (MASK_B.load({k, j}) != 0);
    continue_if(~present);
    auto k0 = k * c.BK;
    acc = dot(A.load({m0, k0}, {c.BM, c.BK}), B.load({k0, n0}, {c.BK, c.BN}), acc, c.tf32 ? Prec::tf32 : Prec::ieee);
  }
  C.store({m0, n0}, cast(acc, dtype_of<T>()));
}

/// The same from lists of the k that both masks have, one list for each block of C, j fastest (block_lists.h with
/// config.meeting): no test and no branch per block. Grid {ceil(M/BM), ceil(N/BN)}.
template <class T>
void block_sparse_lists_program(const BlockSparseConfig& c, Tensor<const T, 2> A, Tensor<const T, 2> B, Tensor<T, 2> C,
                                Tensor<const int32_t, 1> offsets, Tensor<const int32_t, 1> list) {
  num_warps(c.warps);
  auto i = program_id(0), j = program_id(1);
  auto at = i * num_programs(1) + j;
  auto m0 = i * c.BM, n0 = j * c.BN;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto e : range(offsets.load({at}), offsets.load({at + 1}), 1, {.stages = c.stages})) {
    auto k0 = list.load({e}) * c.BK;
    acc = dot(A.load({m0, k0}, {c.BM, c.BK}), B.load({k0, n0}, {c.BK, c.BN}), acc, c.tf32 ? Prec::tf32 : Prec::ieee);
  }
  C.store({m0, n0}, cast(acc, dtype_of<T>()));
}
template <class T>
const auto& block_sparse_lists_kernel() {
  static const auto k = kernel(typed_name("block_sparse_lists", dtype_of<T>()), block_sparse_lists_program<T>)
                            .grid([](const BlockSparseConfig& c, const auto&, const auto&, const auto& C,
                                     const auto&...) { return Grid{cdiv(C.shape[0], c.BM), cdiv(C.shape[1], c.BN)}; });
  return k;
}

/// MASK [R, C] packed 32 columns to a word: WORDS [R, ceil(C / 32)]. Grid {R}.
inline void pack_mask_program(const BlockSparseConfig& c, Tensor<const int32_t, 2> MASK, Tensor<int32_t, 2> WORDS) {
  num_warps(1);
  (void)c;
  auto row = program_id(0);
  for (auto word : range(0, WORDS.dim(1))) {
    auto set = MASK.load({row, word * 32}, {1, 32}) != 0;
    WORDS.store({row, word}, sum(where(set, 1 << arange(0, 32).row(), 0), axis(1)));
  }
}
inline const auto& pack_mask_kernel() {
  static const auto k = kernel("pack_mask", pack_mask_program)
                            .grid([](const BlockSparseConfig&, const auto& mask, const auto&) {
                              return Grid{mask.shape[0]};
                            });
  return k;
}

template <class T>
const auto& block_sparse_matmul_kernel() {
  static const auto k =
      kernel(typed_name("block_sparse_matmul", dtype_of<T>()), block_sparse_matmul_program<T>)
          .grid([](const BlockSparseConfig& c, const auto&, const auto&, const auto& C, const auto&...) {
            return Grid{cdiv(C.shape[0], c.BM), cdiv(C.shape[1], c.BN)};
          });
  return k;
}

inline BlockSparseConfig default_block_sparse_config(DType dtype, int bm, int bn, int bk, bool tf32,
                                                     const Machine& machine) {
  if (!machine.gpu) return {bm, bn, bk, tf32, false, 1, 1};
  int warps = bm * bn >= 128 * 128 ? 8 : bm * bn <= 32 * 32 ? 2 : 4;
  if (dtype == DType::f32 && !tf32)
    warps = std::min(8, 2 * warps);  // multiply-adds from registers: more threads, fewer each
  return {bm, bn, bk, tf32, false, 2, warps};
}

/// The config's BM, BN, BK are the block sizes the masks are made for; dtypes f16, bf16, f32.
template <class T>
Status block_sparse_matmul(StreamAt stream, Input<T, 2> A, Input<T, 2> B, TensorView<T, 2> C,
                           TensorView<const int32_t, 2> MASK_A, TensorView<const int32_t, 2> MASK_B,
                           const BlockSparseConfig& config) {
  int64_t m = A.shape[0], depth = A.shape[1], n = B.shape[1];
  int64_t mb = cdiv(m, config.BM), kb = cdiv(depth, config.BK), nb = cdiv(n, config.BN);
  ShapeCheck check("block_sparse_matmul");
  check.shape("B", B, {depth, -1}, "[K, N]")
      .shape("C", C, {m, n}, "[M, N]");
  if (config.bits)
    check.shape("MASK_A", MASK_A, {mb, cdiv(kb, 32)}, "[ceil(M/BM), ceil(K/BK/32)]")
        .shape("MASK_B", MASK_B, {nb, cdiv(kb, 32)}, "[ceil(N/BN), ceil(K/BK/32)]");
  else
    check.shape("MASK_A", MASK_A, {mb, kb}, "[ceil(M/BM), ceil(K/BK)]")
        .shape("MASK_B", MASK_B, {kb, nb}, "[ceil(K/BK), ceil(N/BN)]");
  if (!check.ok()) return stream.refuse(check.error());
  return block_sparse_matmul_kernel<T>().try_call(stream, config, A, B, C, MASK_A, MASK_B);
}
/// `offsets` [ceil(M/BM) * ceil(N/BN) + 1] and `list` as block_lists.h makes them from both masks.
template <class T>
Status block_sparse_matmul_lists(StreamAt stream, Input<T, 2> A, Input<T, 2> B, TensorView<T, 2> C,
                                 TensorView<const int32_t, 1> offsets, TensorView<const int32_t, 1> list,
                                 const BlockSparseConfig& config) {
  int64_t m = A.shape[0], depth = A.shape[1], n = B.shape[1];
  ShapeCheck check("block_sparse_matmul_lists");
  check.shape("B", B, {depth, -1}, "[K, N]")
      .shape("C", C, {m, n}, "[M, N]")
      .shape("offsets", offsets, {cdiv(m, config.BM) * cdiv(n, config.BN) + 1}, "[ceil(M/BM) * ceil(N/BN) + 1]");
  if (!check.ok()) return stream.refuse(check.error());
  return block_sparse_lists_kernel<T>().try_call(stream, config, A, B, C, offsets, list);
}

}  // namespace tile::kernels
