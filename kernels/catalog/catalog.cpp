// catalog.cpp - the list itself.
#include "kernels/catalog.h"

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
      gemm_row(),
      gemm_epilogue_row(),
      attention_row(),
      attention_backward_row(),
      attention_backward_deterministic_row(),
      attention_v1_row(),
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
      gla_backward_row(),
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
