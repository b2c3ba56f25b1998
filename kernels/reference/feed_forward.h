// feed_forward.h - references of products as models use them: gated, with quantised weights, by experts; and of the
// convolution, which is a product over patches.
#pragma once
#include <functional>
#include <span>

#include "kernels/reference/host_tensor.h"
#include "kernels/reference/number.h"

namespace tile::reference {

/// The chosen rows of gate(A G) * (A U); A is [M, K], G and U are [K, N].
std::vector<std::vector<double>> gated_rows(const HostTensor& a, const HostTensor& g, const HostTensor& u,
                                            const std::function<double(double)>& gate, std::span<const int64_t> rows,
                                            Arithmetic how);

/// The number of row k, column n: of i8 [K, N], or of u8 [K / 2, N] with two 4-bit numbers plus 8 in every byte, the
/// even row in the lower half.
double quantized_weight(const HostTensor& weights, bool packed, int64_t k, int64_t n);

/// The chosen rows of A (w * S), S being [K / group, N].
std::vector<std::vector<double>> quantized_rows(const HostTensor& a, const HostTensor& weights, bool packed,
                                                const HostTensor& scales, int64_t group, std::span<const int64_t> rows,
                                                Arithmetic how);

/// scale X[token] W[expert]; W is [experts, K, N].
std::vector<double> expert_row(const HostTensor& x, int64_t token, const HostTensor& w, int64_t expert, double scale,
                               Arithmetic how);

/// All channels of output pixel (image, p, q); X is [N, H, W, C], F is [R, S, C, K].
std::vector<double> convolution_pixel(const HostTensor& x, const HostTensor& f, int64_t image, int64_t p, int64_t q,
                                      int64_t stride, int64_t pad, int64_t dilation, Arithmetic how);

/// softmax(scale q K^T) V over `length` tokens whose pages `table` names; q and the result have D values, K and V are
/// [pages, page, heads, D].
std::vector<double> paged_attention_row(const std::vector<double>& q, const HostTensor& k, const HostTensor& v,
                                        std::span<const int64_t> table, int64_t length, int64_t head, double scale,
                                        Arithmetic how);

}  // namespace tile::reference
