// naive.cpp - the list that joins rows of the catalog with their loops, and how a loop is run.
#include "tools/bench/naive.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/reference/host_tensor.h"
#include "tools/bench/timing.h"

namespace tile::bench {

using reference::HostTensor;

const std::vector<NaiveLoop>& naive_loops() {
  static const std::vector<NaiveLoop> loops = {
      {"vector_add", naive_vector_add},
      {"softmax", naive_softmax},
      {"row_reduction", naive_row_reduction},
      {"row_arg", naive_row_arg},
      {"rms_norm", naive_rms_norm},
      {"layer_norm", naive_layer_norm},
      {"cross_entropy", naive_cross_entropy},
      {"cross_entropy_backward", naive_cross_entropy_backward},
      {"gemm", naive_gemm},
      {"gemm_leaky_relu", naive_gemm_leaky_relu},
      {"gated_gemm", naive_gated_gemm},
      {"gemm_w8", naive_gemm_w8},
      {"gemm_w4", naive_gemm_w4},
      {"expert_gemm", naive_expert_gemm},
      {"convolution", naive_convolution},
      {"attention_forward", naive_attention},
      {"attention_backward", naive_attention_backward},
      {"attention_backward_deterministic", naive_attention_backward},
      {"attention_v1", naive_attention},
      {"paged_attention", naive_paged_attention},
      {"block_sparse_attention", naive_attention},
      {"block_sparse_attention_backward", naive_attention_backward},
      {"block_sparse_attention_backward_deterministic", naive_attention_backward},
      {"block_sparse_matmul", naive_block_sparse_matmul},
      {"block_sparse_dense", naive_block_sparse_dense},
      {"dense_block_sparse", naive_dense_block_sparse},
      {"sampled_dense", naive_sampled_dense},
      {"gla_recurrent", naive_gla},
      {"gla_decay_cumsum", naive_gla_decay_cumsum},
      {"gla_prepare", naive_gla_prepare},
      {"gla_inter_chunk", naive_gla_inter_chunk},
      {"gla_inner_scores", naive_gla_inner_scores},
      {"gla_combine", naive_gla_combine},
      {"gla_chunk_forward", naive_gla},
      // Rows of kernels that are parts of a pass run the whole pass.
      {"gla_forward", naive_gla},
      {"gla_prepare_chunks", naive_gla},
      {"gla_state_pass", naive_gla},
      {"gla_segment_scan", naive_gla},
      {"gla_scan_output", naive_gla},
      {"gla_chunk_output", naive_gla},
      {"gla_fused", naive_gla},
      {"gla_segment_effects", naive_gla},
      {"gla_backward", naive_gla_backward},
      {"gla_fused_states", naive_gla_backward},
      {"gla_fused_values", naive_gla_backward},
      {"gla_gradient_scores", naive_gla_backward},
      {"gla_gradient_values", naive_gla_backward},
      {"gla_gradient_keys", naive_gla_backward},
      {"gla_parallel", naive_gla_parallel},
      {"gla_decode", naive_gla_decode},
      {"linear_attention", naive_linear_attention},
      {"gla_layer", naive_gla_layer},
      {"gla_output_gate", naive_gla_output_gate},
  };
  return loops;
}

const NaiveLoop* find_naive(std::string_view row) {
  for (const NaiveLoop& loop : naive_loops())
    if (loop.row == row) return &loop;
  return nullptr;
}

namespace {

template <class T>
std::vector<T> elements(const HostTensor& tensor) {
  std::vector<T> values;
  values.reserve(static_cast<size_t>(tensor.count()));
  reference::for_each_index(tensor.shape(),
                            [&](std::span<const int64_t> i) { values.push_back(static_cast<T>(tensor.at(i))); });
  return values;
}

double rms_ratio(const std::vector<float>& actual, const std::vector<float>& expected) {
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i]) && actual[i] == expected[i]) continue;
    const double difference = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    error += difference * difference, size += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return error == 0 ? 0 : std::sqrt(error / size);  // NaN stays NaN
}

}  // namespace

NaiveData::NaiveData(const kernels::Problem& problem, const std::vector<kernels::NamedTensor>& tensors)
    : problem_(problem), tensors_(tensors) {}

const HostTensor& NaiveData::tensor(std::string_view name) const {
  for (const kernels::NamedTensor& t : tensors_)
    if (t.name == name) return *t.tensor;
  throw std::runtime_error("the case has no tensor '" + std::string(name) + "'");
}

const float* NaiveData::in(std::string_view name) {
  auto [it, fresh] = inputs_.try_emplace(std::string(name));
  if (fresh) it->second = elements<float>(tensor(name));
  return it->second.data();
}

const int32_t* NaiveData::ints(std::string_view name) {
  auto [it, fresh] = integers_.try_emplace(std::string(name));
  if (fresh) it->second = elements<int32_t>(tensor(name));
  return it->second.data();
}

float* NaiveData::out(std::string_view name) {
  auto [it, fresh] = outputs_.try_emplace(std::string(name));
  if (fresh) it->second.resize(static_cast<size_t>(tensor(name).count()));
  return it->second.data();
}

int64_t NaiveData::dim(std::string_view name, int d) const { return tensor(name).dim(static_cast<size_t>(d)); }

Result<NaiveResult> run_naive(const NaiveLoop& loop, const kernels::Problem& problem, kernels::Case& run,
                              Stream& stream, double budget_ms) {
  const std::vector<kernels::NamedTensor> tensors = run.tensors();
  NaiveData data(problem, tensors);
  NaiveResult result;
  auto once = [&] { return thread_ms([&] { loop.run(data); }); };
  const double first = once();  // converts the data as well
  double spent = 0;
  for (int i = 0; i < 20 && (i == 0 || spent + result.ms < budget_ms); ++i) {
    const double ms = once();
    result.ms = i == 0 ? ms : std::min(result.ms, ms), spent += ms;
    if (i == 0 && first > 4 * budget_ms) break;
  }
  if (Status ran = run.run_to_host(stream); !ran) return ran.error();
  for (const auto& [name, expected] : data.outputs()) {
    const auto tensor = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
    const double error = rms_ratio(elements<float>(*tensor->tensor), expected);
    if (result.output.empty() || !(error <= result.error)) result.error = error, result.output = name;
  }
  return result;
}

double naive_tolerance(std::string_view dtype) {
  if (dtype == "f32") return 1e-4;
  return dtype == "bf16" ? 2e-2 : 3e-3;
}

}  // namespace tile::bench
