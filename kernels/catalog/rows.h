// rows.h - the functions that make the rows; catalog.cpp lists them.
#pragma once
#include "kernels/catalog.h"

namespace tile::kernels {

/// Rows of products that between them have all tiles of parts/product_tiles.h.
inline constexpr int64_t kRowsOfAllTiles[] = {
    17,  24,  40,  64,  72,  80,  96,  104, 112,  120,  128,  144,  152,  160,  176,  192,  208,  224,  240,  256, 300,
    336, 400, 456, 512, 600, 700, 800, 900, 1000, 1040, 1200, 1300, 1500, 1700, 2000, 2400, 3000, 4096, 5120, 8192};

CatalogRow vector_add_row();
CatalogRow softmax_row();
CatalogRow row_reduction_row();
CatalogRow row_arg_row();
CatalogRow rms_norm_row();
CatalogRow layer_norm_row();
CatalogRow cross_entropy_row();
CatalogRow cross_entropy_backward_row();
CatalogRow gemm_row();
CatalogRow gemm_epilogue_row();
CatalogRow gated_gemm_row();
CatalogRow gemm_w8_row();
CatalogRow gemm_w4_row();
CatalogRow expert_gemm_row();
CatalogRow convolution_row();
CatalogRow attention_row();
CatalogRow attention_backward_row();
CatalogRow attention_backward_deterministic_row();
CatalogRow attention_v1_row();
CatalogRow paged_attention_row();
CatalogRow block_sparse_attention_row();
CatalogRow block_sparse_attention_backward_row();
CatalogRow block_sparse_attention_backward_deterministic_row();
CatalogRow block_sparse_row();
CatalogRow block_sparse_dense_row();
CatalogRow dense_block_sparse_row();
CatalogRow sampled_dense_row();
CatalogRow gla_recurrent_row();
CatalogRow gla_decay_cumsum_row();
CatalogRow gla_prepare_row();
CatalogRow gla_inter_chunk_row();
CatalogRow gla_inner_scores_row();
CatalogRow gla_combine_row();
CatalogRow gla_chunk_row();
CatalogRow gla_forward_row();
CatalogRow gla_prepare_chunks_row();
CatalogRow gla_state_pass_row();
CatalogRow gla_segment_scan_row();
CatalogRow gla_scan_output_row();
CatalogRow gla_chunk_output_row();
CatalogRow gla_fused_row();
CatalogRow gla_segment_effects_row();
CatalogRow gla_backward_row();
CatalogRow gla_fused_states_row();
CatalogRow gla_fused_values_row();
CatalogRow gla_gradient_scores_row();
CatalogRow gla_gradient_values_row();
CatalogRow gla_gradient_keys_row();
CatalogRow gla_parallel_row();
CatalogRow gla_decode_row();
CatalogRow linear_attention_row();
CatalogRow gla_layer_row();
CatalogRow gla_output_gate_row();

}  // namespace tile::kernels
