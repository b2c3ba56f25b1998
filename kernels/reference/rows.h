// rows.h - references of the kernels that treat every row by itself: softmax in its three forms, reductions, norms.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/reference/number.h"

namespace tile::reference {

/// y_j = e^{x_j} / sum e^{x}. Overflows where a row has values above log(max of the arithmetic), as the formula does.
std::vector<double> softmax_naive(const std::vector<double>& x, Arithmetic how);

/// y_j = e^{x_j - m} / sum e^{x - m}, m = max x.
std::vector<double> softmax_safe(const std::vector<double>& x, Arithmetic how);

/// The same values by one pass over x for (m, d) and one for y (Milakov and Gimelshein 2018):
/// m_j = max(m_{j-1}, x_j), d_j = d_{j-1} e^{m_{j-1} - m_j} + e^{x_j - m_j}.
std::vector<double> softmax_online(const std::vector<double>& x, Arithmetic how);

enum class Reduction { sum, mean, max, min, prod, argmax, argmin };
Reduction reduction_named(std::string_view name);
std::string_view name(Reduction r);
/// One number per row. argmax and argmin give the first index of the extreme value.
double reduce_row(Reduction r, const std::vector<double>& x, Arithmetic how);

/// y = x / sqrt(mean(x^2) + eps) * w
std::vector<double> rms_norm(const std::vector<double>& x, const std::vector<double>& w, double eps, Arithmetic how,
                             double* rstd = nullptr);

/// y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * w + b
std::vector<double> layer_norm(const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& b,
                               double eps, Arithmetic how, double* mean = nullptr, double* rstd = nullptr);

}  // namespace tile::reference
