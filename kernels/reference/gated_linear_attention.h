// gated_linear_attention.h - references of GLA (Yang et al. 2024): the step recurrence and the five steps of the
// chunked form. Tensors of one (batch, head): q, k, g are [L,K], v is [L,V]; g is the natural log of the decay (<= 0).
#pragma once
#include <vector>

#include "kernels/reference/number.h"

namespace tile::reference {

/// Dense row-major matrix of doubles.
struct Matrix {
  Matrix(int64_t rows = 0, int64_t cols = 0) : rows(rows), cols(cols), values(rows * cols, 0.0) {}
  int64_t rows, cols;
  std::vector<double> values;
  double& operator()(int64_t i, int64_t j) { return values[i * cols + j]; }
  double operator()(int64_t i, int64_t j) const { return values[i * cols + j]; }
};

/// h_t = diag(e^{g_t}) h_{t-1} diag(e^{gv_t}) + k_t v_t^T,  o_t = scale q_t^T h_t, h_{-1} = `state` (zero when empty).
/// `state` returns h_{L-1}. Without `gv` value channels do not decay; `reverse` walks from the last row to the first.
Matrix gla_recurrent(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& g, double scale, Matrix& state,
                     Arithmetic how, const Matrix* gv = nullptr, bool reverse = false);

/// Step 1, fwd_decay_cumsum: inclusive sums of g / ln 2 inside windows of `window` rows. Windows are independent.
Matrix gla_decay_cumsum(const Matrix& g, int64_t window, Arithmetic how);

/// Step 2, prepare_qg_kg, from the sums G of step 1: q_g = scale q 2^G, k_g = k 2^{G_last - G}, G_last the window's
/// last row.
void gla_prepare(const Matrix& q, const Matrix& k, const Matrix& cumsum, double scale, int64_t window, Matrix& q_g,
                 Matrix& k_g, Arithmetic how);

/// Step 3, fused_chunk_gla_fwd: per window o = q_g h, then h = diag(2^{G_last}) h + k_g^T v; what earlier windows
/// contribute.
Matrix gla_inter_chunk(const Matrix& q_g, const Matrix& k_g, const Matrix& v, const Matrix& cumsum, int64_t window,
                       Arithmetic how);

/// Step 4, fwd_inner_chunk: A[t,j] = scale sum_k q_t k_j 2^{G_t - G_j} for j <= t of the same window (j local), else 0;
/// [L,window].
Matrix gla_inner_scores(const Matrix& q, const Matrix& k, const Matrix& cumsum, double scale, int64_t window,
                        Arithmetic how);

/// The recurrence in chunks, rounding where an implementation on matrix units in the type `how.storage` rounds: decayed
/// queries and keys (each pair of a chunk relative to the boundary of the largest power of two between them, so that no
/// exponent is positive), scores, and the state as an operand. Same values as gla_recurrent.
Matrix gla_chunked(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& g, double scale, int64_t chunk,
                   Matrix& state, Arithmetic how);

/// Gradients of q, k, v, g and of the state before the first row.
struct GlaGradients {
  Matrix dq, dk, dv, dg, dh0;
};

/// Backward pass of the recurrence from the gradients `d_o` of o and `dht` of the last state (empty: zero); `h0` is the
/// state before the first row (empty: zero). Follows the recurrence backwards, row by row.
GlaGradients gla_backward(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& g, double scale,
                          const Matrix& h0, const Matrix& d_o, const Matrix& dht, Arithmetic how);

/// The same gradients in chunks, rounding where an implementation on matrix units rounds; see gla_chunked.
GlaGradients gla_chunked_backward(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& g, double scale,
                                  int64_t chunk, const Matrix& h0, const Matrix& d_o, const Matrix& dht,
                                  Arithmetic how);

/// Step 5, combine: o + A v inside every window.
Matrix gla_combine(const Matrix& inter, const Matrix& scores, const Matrix& v, int64_t window, Arithmetic how);

}  // namespace tile::reference
