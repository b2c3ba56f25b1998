// paged_attention.h - attention of one new token per sequence over keys and values kept in pages: a table names the
// pages of every sequence. Long sequences are split over programs and put together again (flash decoding).
#pragma once
#include <limits>

#include "parts/shapes.h"

namespace tile::kernels {

struct PagedAttentionConfig {
  int BN = 64;    ///< keys at a time
  int D = 128;    ///< head dim
  int GROUP = 8;  ///< query heads that share a head of keys, at most 16
  int PAGE = 16;  ///< tokens of a page
  int stages = 2;
  int warps = 4;
  int splits = 1;  ///< programs for a sequence and head of keys
};

/// For every part of a sequence: softmax(scale q K^T) V of its keys, and the base-2 logarithm of the sum of
/// exponentials. Q is [batch, Hkv * GROUP, D], K and V are [pages, PAGE, Hkv, D], TABLE [batch, pages of the longest
/// sequence], LENGTH [batch], O [batch, H, splits, D] f32, LSE [batch, H, splits] f32 (-inf for an empty part). Grid
/// {batch, Hkv, splits}.
template <class T>
void paged_attention_program(const PagedAttentionConfig& c, Tensor<const T, 3> Q, Tensor<const T, 4> K,
                             Tensor<const T, 4> V, Tensor<const int32_t, 2> TABLE, Tensor<const int32_t, 1> LENGTH,
                             Tensor<float, 4> O, Tensor<float, 3> LSE, F32 scale) {
  constexpr int kRows = 16;  // queries of a group, filled up to the rows of a tensor core
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  static_check(c.GROUP <= kRows, "GROUP must be at most 16");
  num_warps(c.warps);
  auto b = program_id(0), head = program_id(1), part = program_id(2);
  auto length = LENGTH.load({b});
  auto each = cdiv(cdiv(length, c.BN), c.splits) * c.BN;
  auto begin = part * each, end = min(begin + each, length);
  auto dims = arange(0, c.D);
  auto query = arange(0, kRows);
  auto mine = query < c.GROUP;
  auto head_query = head * c.GROUP + query;
  auto q = load(Q.ptr() + (cast(b, i64) * Q.stride(0) + cast(head_query, i64) * Q.stride(1)).col() +
                    (cast(dims, i64) * Q.stride(2)).row(),
                {.mask = mine.col()});
  auto log2_scale = scale * 1.4426950408889634f;
  Tile acc = zeros({kRows, c.D}, f32), m = full({kRows, 1}, -kInfinity, f32), l = zeros({kRows, 1}, f32);
  for (auto n : range(begin, end, c.BN, {.stages = c.stages})) {
    auto token = n + arange(0, c.BN);
    auto live = token < end;
    auto page = cast(load(TABLE.ptr() + cast(b, i64) * TABLE.stride(0) + cast(token / c.PAGE, i64) * TABLE.stride(1),
                          {.mask = live}),
                     i64);
    auto slot = cast(token % c.PAGE, i64);
    auto box = [&](const Tensor<const T, 4>& cache) {
      auto row = page * cache.stride(0) + slot * cache.stride(1) + cast(head, i64) * cache.stride(2);
      return load(cache.ptr() + row.col() + (cast(dims, i64) * cache.stride(3)).row(), {.mask = live.col()});
    };
    auto s = where(live.row(), dot(q, trans(box(K))) * log2_scale, -kInfinity);
    auto highest = max(m, max(s, axis(1)));
    auto p = exp2(s - highest), alpha = exp2(m - highest);
    l = l * alpha + sum(p, axis(1));
    acc = dot(cast(p, dtype_of<T>()), box(V), acc * alpha);
    m = highest;
  }
  auto empty = l == 0.f;
  auto rows = cast(b, i64) * O.stride(0) + cast(head_query, i64) * O.stride(1) + cast(part, i64) * O.stride(2);
  store(O.ptr() + rows.col() + dims.row(), acc / where(empty, 1.f, l), {.mask = mine.col()});
  auto places = cast(b, i64) * LSE.stride(0) + cast(head_query, i64) * LSE.stride(1) + part;
  store(LSE.ptr() + places, squeeze(where(empty, -kInfinity, m + log2(l)), 1), {.mask = mine});
}

/// Y = sum over parts of O 2^LSE / sum 2^LSE; 0 for a sequence without keys. Y is [batch, H, D]. Grid {batch, H}.
template <class T>
void paged_attention_combine_program(const PagedAttentionConfig& c, Tensor<const float, 4> O,
                                     Tensor<const float, 3> LSE, Tensor<T, 3> Y) {
  num_warps(1);
  auto b = program_id(0), h = program_id(1);
  Tile m = std::numeric_limits<float>::lowest(), l = 0.f, acc = zeros({c.D}, f32);
  for (auto part : range(0, LSE.dim(2))) {
    auto lse = LSE.load({b, h, part});
    auto highest = max(m, lse);
    auto old = exp2(m - highest), weight = exp2(lse - highest);
    acc = fma(acc, old, O.load({b, h, part, 0}, {c.D}) * weight);
    l = fma(l, old, weight);
    m = highest;
  }
  Y.store({b, h, 0}, cast(acc / where(l == 0.f, 1.f, l), dtype_of<T>()));
}

template <class T>
const auto& paged_attention_kernel() {
  static const auto k = kernel(typed_name("paged_attention", dtype_of<T>()), paged_attention_program<T>)
                            .grid([](const PagedAttentionConfig& c, const auto& q, const auto& keys, const auto&...) {
                              return Grid{q.shape[0], keys.shape[2], c.splits};
                            });
  return k;
}
template <class T>
const auto& paged_attention_combine_kernel() {
  static const auto k = kernel(typed_name("paged_attention_combine", dtype_of<T>()), paged_attention_combine_program<T>)
                            .grid([](const PagedAttentionConfig&, const auto&, const auto&, const auto& y) {
                              return Grid{y.shape[0], y.shape[1]};
                            });
  return k;
}

/// Parts enough for about four programs on every multiprocessor, of at least 256 keys each.
inline PagedAttentionConfig default_paged_attention_config(int64_t batch, int64_t heads, int64_t longest, int D,
                                                           int group, int page, const Machine& machine) {
  PagedAttentionConfig c;
  c.D = D, c.GROUP = group, c.PAGE = page;
  if (!machine.gpu) {
    c.stages = 1, c.warps = 1;
    return c;
  }
  const int64_t wanted = 4 * machine.multiprocessors / std::max<int64_t>(batch * heads, 1);
  c.splits = static_cast<int>(std::clamp<int64_t>(wanted, 1, std::clamp<int64_t>(longest / 256, 1, 64)));
  return c;
}

/// Y is [batch, H, D]; the others as above. O and LSE are workspace, read by the second kernel. dtypes f16, bf16.
template <class T>
Status paged_attention(StreamAt stream, Input<T, 3> Q, Input<T, 4> K, Input<T, 4> V, TensorView<const int32_t, 2> TABLE,
                       TensorView<const int32_t, 1> LENGTH, TensorView<float, 4> O, TensorView<float, 3> LSE,
                       TensorView<T, 3> Y, float scale, const PagedAttentionConfig& c) {
  const int64_t batch = Q.shape[0], heads = K.shape[2] * c.GROUP;
  ShapeCheck check("paged_attention");
  check.shape("Q", Q, {batch, heads, c.D}, "[batch, Hkv * GROUP, D]")
      .shape("K", K, {-1, c.PAGE, -1, c.D}, "[pages, PAGE, Hkv, D]")
      .shape("V", V, {K.shape[0], c.PAGE, K.shape[2], c.D}, "that of K")
      .shape("TABLE", TABLE, {batch, -1}, "[batch, pages of a sequence]")
      .shape("LENGTH", LENGTH, {batch}, "[batch]")
      .shape("O", O, {batch, heads, c.splits, c.D}, "[batch, H, splits, D]")
      .shape("LSE", LSE, {batch, heads, c.splits}, "[batch, H, splits]")
      .require(O.is_contiguous() && LSE.is_contiguous(), "O and LSE must be dense")
      .shape("Y", Y, {batch, heads, c.D}, "that of Q");
  if (!check.ok()) return stream.refuse(check.error());
  if (Status s = paged_attention_kernel<T>().try_call(stream, c, Q, K, V, TABLE, LENGTH, O, LSE, scale); !s) return s;
  return paged_attention_combine_kernel<T>().try_call(stream, c, O, LSE, Y);
}

}  // namespace tile::kernels
