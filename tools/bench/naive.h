// naive.h - the loops a textbook has for every kernel of the catalog: what the host's figures are measured against.
//
// One thread, float, row-major, no tiling, no intrinsics; compiled at -O3 like host_peaks.cpp. A loop reads the data of
// a catalog case as floats whatever the kernel's element type is, so it pays nothing for widening f16, and it must
// arrive at the kernel's result: run_naive compares the two.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/catalog.h"

namespace tile::bench {

/// The tensors of one case as plain arrays.
class NaiveData {
 public:
  NaiveData(const kernels::Problem& problem, const std::vector<kernels::NamedTensor>& tensors);

  /// Elements of an input in the order of its dims. Throws std::runtime_error for a name the case does not have.
  const float* in(std::string_view name);
  /// The same of integers: indices, masks, labels.
  const int32_t* ints(std::string_view name);
  /// Room for an output of that name and shape.
  float* out(std::string_view name);
  int64_t dim(std::string_view name, int d) const;
  /// A size of the problem.
  int64_t size(std::string_view name, int64_t absent = 0) const { return problem_.sizes.get(name, absent); }
  const std::string& dtype() const { return problem_.dtype; }
  const std::map<std::string, std::vector<float>, std::less<>>& outputs() const { return outputs_; }

 private:
  const reference::HostTensor& tensor(std::string_view name) const;

  const kernels::Problem& problem_;
  const std::vector<kernels::NamedTensor>& tensors_;
  std::map<std::string, std::vector<float>, std::less<>> inputs_, outputs_;
  std::map<std::string, std::vector<int32_t>, std::less<>> integers_;
};

/// One row of the catalog and its loop.
struct NaiveLoop {
  std::string_view row;
  void (*run)(NaiveData&);
};

/// Every loop, in the catalog's order.
const std::vector<NaiveLoop>& naive_loops();
/// Null where the catalog's row has none.
const NaiveLoop* find_naive(std::string_view row);

struct NaiveResult {
  double ms = 0;       ///< processor time of the loop, the lowest of a few runs
  double error = 0;    ///< largest over the outputs of rms(ours - naive) / rms(naive)
  std::string output;  ///< where that was
};

/// Times the loop and compares it with what the kernel computes. Runs for about `budget_ms`, at least once.
Result<NaiveResult> run_naive(const NaiveLoop& loop, const kernels::Problem& problem, kernels::Case& run,
                              Stream& stream, double budget_ms = 1000);

/// What rounding to a problem's element type explains of NaiveResult::error.
double naive_tolerance(std::string_view dtype);

// The loops, by family.
void naive_vector_add(NaiveData& d);
void naive_softmax(NaiveData& d);
void naive_row_reduction(NaiveData& d);
void naive_row_arg(NaiveData& d);
void naive_rms_norm(NaiveData& d);
void naive_layer_norm(NaiveData& d);
void naive_cross_entropy(NaiveData& d);
void naive_cross_entropy_backward(NaiveData& d);

void naive_gemm(NaiveData& d);
void naive_gemm_leaky_relu(NaiveData& d);
void naive_gated_gemm(NaiveData& d);
void naive_gemm_w8(NaiveData& d);
void naive_gemm_w4(NaiveData& d);
void naive_expert_gemm(NaiveData& d);
void naive_convolution(NaiveData& d);
void naive_block_sparse_matmul(NaiveData& d);
void naive_block_sparse_dense(NaiveData& d);
void naive_dense_block_sparse(NaiveData& d);
void naive_sampled_dense(NaiveData& d);

void naive_attention(NaiveData& d);
void naive_attention_backward(NaiveData& d);
void naive_paged_attention(NaiveData& d);

void naive_gla(NaiveData& d);
void naive_gla_backward(NaiveData& d);
void naive_gla_decay_cumsum(NaiveData& d);
void naive_gla_prepare(NaiveData& d);
void naive_gla_inter_chunk(NaiveData& d);
void naive_gla_inner_scores(NaiveData& d);
void naive_gla_combine(NaiveData& d);
void naive_gla_parallel(NaiveData& d);
void naive_gla_decode(NaiveData& d);
void naive_linear_attention(NaiveData& d);
void naive_gla_output_gate(NaiveData& d);
void naive_gla_layer(NaiveData& d);

}  // namespace tile::bench
