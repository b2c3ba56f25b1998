// losses.h - references of loss functions along rows.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/reference/number.h"

namespace tile::reference {

struct CrossEntropy {
  double loss = 0, lse = 0;
};

/// lse = log(sum_j e^{x_j}), loss = lse - x_label; 0 when `ignored`. An impossible label counts as x_label = 0.
CrossEntropy cross_entropy(const std::vector<double>& x, int64_t label, bool ignored, Arithmetic how);

/// d loss / d x_j times `upstream`: (e^{x_j - lse} - [j = label]) upstream; 0 when `ignored`.
std::vector<double> cross_entropy_gradient(const std::vector<double>& x, int64_t label, bool ignored, double lse,
                                           double upstream, Arithmetic how);

}  // namespace tile::reference
