// gemm.h - references of the matrix products, dense and block sparse.
#pragma once
#include <functional>
#include <span>

#include "kernels/reference/host_tensor.h"
#include "kernels/reference/number.h"

namespace tile::reference {

struct GemmSpec {
  bool trans_a = false, trans_b = false;  ///< A is stored [K,M], B is stored [N,K]
  double alpha = 1, beta = 0;             ///< D = epilogue(alpha op(A) op(B) + beta C); C is not read when beta is 0
  std::function<double(double)> epilogue;
  int64_t batch = 0;  ///< which matrices of [batch, rows, columns] tensors; not used with 2-D ones
};

/// The chosen rows of D, N values each. Tensors have 2 dims, or a batch dim in front. i8 x i8 into i32 is exact in
/// double up to K = 2^39.
std::vector<std::vector<double>> gemm_rows(const GemmSpec& spec, const HostTensor& a, const HostTensor& b,
                                           const HostTensor* c, std::span<const int64_t> rows, Arithmetic how);

/// Rows of C = A B where block (i,k) of A counts only if mask_a[i,k] != 0 and block (k,j) of B only if mask_b[k,j] !=
/// 0; blocks are bm x bk and bk x bn. Elements of dropped blocks are not looked at: they may be NaN.
std::vector<std::vector<double>> block_sparse_rows(const HostTensor& a, const HostTensor& b, const HostTensor& mask_a,
                                                   const HostTensor& mask_b, int64_t bm, int64_t bn, int64_t bk,
                                                   std::span<const int64_t> rows, Arithmetic how);

/// Number of (i,k,j) block triples that block_sparse_rows multiplies.
int64_t block_pairs(const HostTensor& mask_a, const HostTensor& mask_b);

}  // namespace tile::reference
