// catalog.cpp - the list itself.
#include "kernels/catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "kernels/catalog/rows.h"
#include "runtime/spelling.h"

namespace tile::kernels {

const std::vector<CatalogRow>& catalog() {
  static const std::vector<CatalogRow> rows = {
      vector_add_row(),
      softmax_row(),
      row_reduction_row(),
      row_arg_row(),
      rms_norm_row(),
      layer_norm_row(),
      cross_entropy_row(),
      cross_entropy_backward_row(),
      gemm_row(),
      gemm_epilogue_row(),
      gated_gemm_row(),
      gemm_w8_row(),
      gemm_w4_row(),
      expert_gemm_row(),
      convolution_row(),
      attention_row(),
      attention_backward_row(),
      attention_backward_deterministic_row(),
      attention_v1_row(),
      paged_attention_row(),
      block_sparse_attention_row(),
      block_sparse_attention_backward_row(),
      block_sparse_attention_backward_deterministic_row(),
      block_sparse_row(),
      block_sparse_dense_row(),
      dense_block_sparse_row(),
      sampled_dense_row(),
      gla_recurrent_row(),
      gla_decay_cumsum_row(),
      gla_prepare_row(),
      gla_inter_chunk_row(),
      gla_inner_scores_row(),
      gla_combine_row(),
      gla_chunk_row(),
      gla_forward_row(),
      gla_prepare_chunks_row(),
      gla_state_pass_row(),
      gla_segment_scan_row(),
      gla_scan_output_row(),
      gla_chunk_output_row(),
      gla_fused_row(),
      gla_segment_effects_row(),
      gla_backward_row(),
      gla_fused_states_row(),
      gla_fused_values_row(),
      gla_gradient_scores_row(),
      gla_gradient_values_row(),
      gla_gradient_keys_row(),
      gla_parallel_row(),
      gla_decode_row(),
      linear_attention_row(),
      gla_layer_row(),
      gla_output_gate_row(),
  };
  return rows;
}

Result<const CatalogRow*> find_kernel(std::string_view name) {
  std::vector<std::string> names;
  for (const CatalogRow& row : catalog()) {
    if (row.name == name) return &row;
    names.push_back(row.name);
  }
  return Error{ErrorKind::user, unknown_name("kernel", name, names), {}};
}

constexpr long long kMostExtent = 1ll << 31;

Result<Problem> parse_problem(const CatalogRow& row, const std::string& dtype, const std::string& sizes) {
  auto refuse = [](std::string message) { return Error{ErrorKind::user, std::move(message), {}}; };
  if (std::find(row.dtypes.begin(), row.dtypes.end(), dtype) == row.dtypes.end())
    return refuse(fmt::format("{} has no element type '{}'; known: {}", row.name, dtype, fmt::join(row.dtypes, ", ")));
  Problem problem{dtype, {}};
  std::istringstream words(sizes);
  for (std::string word; words >> word;) {
    const size_t eq = word.find('=');
    char* end = nullptr;
    const long long value = eq == word.npos ? 0 : std::strtoll(word.c_str() + eq + 1, &end, 10);
    if (eq == word.npos || eq == 0 || *end || end == word.c_str() + eq + 1)
      return refuse(fmt::format("'{}' is not NAME=INTEGER", word));
    const std::string name = word.substr(0, eq);
    const bool is_name = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!is_name) return refuse(fmt::format("'{}' is no name of a size", name));
    // Capitals are extents; others say how (a window of -1 is none).
    if (std::isupper(static_cast<unsigned char>(name[0])) && (value < 0 || value > kMostExtent))
      return refuse(fmt::format("size '{}' must be between 0 and {}, found {}", name, kMostExtent, word.substr(eq + 1)));
    const bool known = std::any_of(row.sizes.begin(), row.sizes.end(), [&](const std::string& s) {
      return std::regex_search(s, std::regex("\\b" + name + "\\b.*"));
    });
    if (!known)
      return refuse(fmt::format("{} has no size '{}'; sizes are {}", row.name, name, fmt::join(row.sizes, "; ")));
    problem.sizes.set(name, value);
  }
  return problem;
}

Specialization dense_specialization(const AnyKernel& kernel) {
  Specialization words;
  for (const ParamInfo& p : kernel.params()) {
    if (p.kind != ParamInfo::view) {
      words.push_back(p.kind == ParamInfo::pointer);
      continue;
    }
    // Encoding of dsl/kernel.h: aligned base, stride 1 in the last dim, all other strides and all sizes multiples
    // of 16.
    uint64_t word = 1 | static_cast<uint64_t>(p.rank) << 1;
    for (int d = 0; d < p.rank; ++d) word |= static_cast<uint64_t>((d + 1 < p.rank ? 2 : 0) | 4) << (5 + 3 * d);
    words.push_back(word);
  }
  return words;
}

}  // namespace tile::kernels
