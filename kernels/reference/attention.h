// attention.h - reference of attention, forward and backward, materialised one row of scores at a time.
#pragma once
#include <functional>
#include <span>

#include "kernels/reference/host_tensor.h"
#include "kernels/reference/number.h"

namespace tile::reference {

/// t = scale q.k, then softcap, alibi, bias and score_mod; a pair counts where the band, the mask and mask_mod allow
/// it.
struct AttentionSpec {
  bool causal = false;  ///< query i sees key j where j <= i + Sk - Sq (the last query sees every key)
  double scale = 1;
  bool top_left = false;               ///< the band is around j = i instead
  int64_t left = -1, right = -1;       ///< window around j = i + Sk - Sq; -1: no limit on that side
  double softcap = 0;                  ///< t = softcap tanh(t / softcap)
  const HostTensor* slopes = nullptr;  ///< [B, Hq]: t -= slope |i + Sk - Sq - j|
  const HostTensor* bias = nullptr;    ///< [B, Hq, Sq, Sk] added to t; of u8: pairs where it is 0 do not count
  std::function<double(double t, int64_t b, int64_t h, int64_t i, int64_t j)> score_mod, score_gradient;
  std::function<bool(int64_t b, int64_t h, int64_t i, int64_t j)> mask_mod;
  /// Packed sequences: tensors are [1, H, total, D], sequence b has the rows cu[b] .. cu[b + 1] - 1.
  std::vector<int64_t> cu_q, cu_k;
  const HostTensor *q_scale = nullptr, *k_scale = nullptr, *v_scale = nullptr;  ///< [B, H] factors of the elements
  float dropout = 0;                                                            ///< probability of a weight to become 0
  uint64_t seed = 0, offset = 0;
};

/// The probability in steps of 1/256 that weights are dropped with.
double dropout_probability(const AttentionSpec& spec);
/// Whether the weight of a pair stays: byte 2 (i / 8 % 2) + j / 8 % 2 (0: the lowest) of word 2 (i % 2) + j % 2 of Philox
/// 4x32-7 for the counter (i without bits 0 and 3, j without them, b Hq + h, offset mod 2^32) and the key (seed mod 2^32,
/// seed / 2^32 xor offset / 2^32) is at least 256 dropout_probability. Bits above those left out move down.
bool dropout_keeps(const AttentionSpec& spec, int64_t b, int64_t hq, int64_t h, int64_t i, int64_t j);

struct AttentionRow {
  std::vector<double> o;  ///< Dv values; 0 when no key is visible
  double lse;             ///< ln of the sum of e^t; -inf when no key is visible
};

/// The chosen query rows of one head. q is [B,Hq,Sq,D], k is [B,Hkv,Sk,D], v is [B,Hkv,Sk,Dv], Hq a multiple of Hkv;
/// query head h reads key head h / (Hq/Hkv). With `working` arithmetic scores and probabilities are rounded to the
/// storage type, which is what an implementation that writes them to memory does. `batch` and `rows` count sequences
/// and rows of a sequence where they are packed.
std::vector<AttentionRow> attention_rows(const AttentionSpec& spec, const HostTensor& q, const HostTensor& k,
                                         const HostTensor& v, int64_t batch, int64_t head,
                                         std::span<const int64_t> rows, Arithmetic how);

/// Per query of one head: ln of the sum of e^t, and dO . O.
struct AttentionStats {
  std::vector<double> lse, delta;
};
AttentionStats attention_stats(const AttentionSpec& spec, const HostTensor& q, const HostTensor& k, const HostTensor& v,
                               const HostTensor& d_o, int64_t batch, int64_t head, Arithmetic how);

/// dQ of the chosen rows of one head.
std::vector<std::vector<double>> attention_query_gradients(const AttentionSpec& spec, const HostTensor& q,
                                                           const HostTensor& k, const HostTensor& v,
                                                           const HostTensor& d_o, int64_t batch, int64_t head,
                                                           std::span<const int64_t> rows, const AttentionStats& stats,
                                                           Arithmetic how);

/// dK and dV of the chosen keys of one key head, summed over the query heads that read it; one AttentionStats for each.
struct KeyGradients {
  std::vector<std::vector<double>> dk, dv;
};
KeyGradients attention_key_gradients(const AttentionSpec& spec, const HostTensor& q, const HostTensor& k,
                                     const HostTensor& v, const HostTensor& d_o, int64_t batch, int64_t kv_head,
                                     std::span<const int64_t> keys, std::span<const AttentionStats> stats,
                                     Arithmetic how);

/// Whether the band of the spec lets query i see key j.
bool in_band(const AttentionSpec& spec, int64_t i, int64_t j, int64_t sq, int64_t sk);
/// Pairs of one head inside the band: what the FLOP count multiplies.
int64_t visible_pairs(const AttentionSpec& spec, int64_t sq, int64_t sk);
inline int64_t visible_pairs(int64_t sq, int64_t sk, bool causal) {
  AttentionSpec spec;
  spec.causal = causal;
  return visible_pairs(spec, sq, sk);
}

}  // namespace tile::reference
