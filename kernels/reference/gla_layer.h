// gla_layer.h - reference of the gated linear attention layer for one sequence, every product and every gate written
// out.
#pragma once
#include "kernels/reference/gated_linear_attention.h"

namespace tile::reference {

/// Weights as [in, out] matrices; `norm` has one element per value channel.
struct GlaLayerMatrices {
  Matrix wq, wk, wv, wr, w1, w2, wo;
  std::vector<double> norm;
};

/// out [L, D] of x [L, D]; `chunk` cuts the attention of a baseline as an implementation would (0: the recurrence).
Matrix gla_layer(const Matrix& x, const GlaLayerMatrices& w, int64_t heads, int64_t chunk, Arithmetic how);

/// Rows normalised by their root mean square, times `norm`, times silu of the gate rows.
Matrix gla_output_gate(const Matrix& o, const Matrix& gate, const std::vector<double>& norm, double eps,
                       Arithmetic how);

}  // namespace tile::reference
