// linear_attention.h - references of causal linear attention with a feature map (Katharopoulos et al. 2020) for one
// (batch, head), of one token of gated linear attention, and of the parallel form in both ways of writing it.
#pragma once
#include "kernels/reference/gated_linear_attention.h"

namespace tile::reference {

enum class Feature { identity, elu_plus_one, relu, exp };

/// o_t = phi(q_t) S_t / phi(q_t) z_t (`normalize`) or scale phi(q_t) S_t, where S and z start from `state` and `z`
/// (zero when empty) and return the last ones. Rows whose normaliser is 0 are 0.
Matrix linear_attention(const Matrix& q, const Matrix& k, const Matrix& v, Feature map, bool normalize, double scale,
                        Matrix& state, std::vector<double>& z, Arithmetic how);

/// Parallel form, P_tu = scale sum_k q_t k_u e^{B_t - B_u}: the difference first, or (`factored`) as products of
/// q e^B and k e^{-B}, which overflows in f32 when the gates of a sequence add up to less than -88.
Matrix gla_parallel(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& g, double scale, bool factored,
                    Arithmetic how);

}  // namespace tile::reference
