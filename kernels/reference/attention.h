// attention.h - reference of the attention forward pass, materialised one row of scores at a time.
#pragma once
#include <span>

#include "kernels/reference/host_tensor.h"
#include "kernels/reference/number.h"

namespace tile::reference {

struct AttentionSpec {
  bool causal = false;  ///< query i sees key j where j <= i + Sk - Sq (the last query sees every key)
  double scale = 1;
};

struct AttentionRow {
  std::vector<double> o;  ///< Dv values; 0 when no key is visible
  double lse;             ///< ln sum_j e^{scale q.k_j}; -inf when no key is visible
};

/// The chosen query rows of one head. q is [B,Hq,Sq,D], k is [B,Hkv,Sk,D], v is [B,Hkv,Sk,Dv], Hq a multiple of Hkv;
/// query head h reads key head h / (Hq/Hkv). With `working` arithmetic scores and probabilities are rounded to the
/// storage type, which is what an implementation that writes them to memory does.
std::vector<AttentionRow> attention_rows(const AttentionSpec& spec, const HostTensor& q, const HostTensor& k,
                                         const HostTensor& v, int64_t batch, int64_t head,
                                         std::span<const int64_t> rows, Arithmetic how);

/// Visible (query, key) pairs of one head: what the FLOP count multiplies.
int64_t visible_pairs(int64_t sq, int64_t sk, bool causal);

}  // namespace tile::reference
