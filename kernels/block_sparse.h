// block_sparse.h - products with a block-sparse operand given by lists of its blocks (BSR): sparse x dense, dense x
// sparse, and sampled dense x dense. Only listed blocks are read or computed.
#pragma once
#include "parts/block_segments.h"
#include "parts/shapes.h"
#include "parts/tile_order.h"

namespace tile::kernels {

/// Blocks of a matrix, row by row: the blocks of block row i are entries offsets[i] .. offsets[i + 1] - 1 of `columns`
/// (block columns) and of `values` [entries, BM, BK]. For products with the transposed matrix the lists go by column:
/// `columns` then holds block rows, and positions[e] says where the values of entry e are.
template <class T>
struct BlockList {
  TensorView<T, 3> values;
  TensorView<const int32_t, 1> offsets, columns;
  TensorView<const int32_t, 1> positions;  ///< read only with config.indirect
};

struct BlockListConfig {
  int BM = 64, BK = 64;  ///< size of a stored block
  int TILE = 128;        ///< extent of the output tile along the dense operand
  int DEPTH = 64;        ///< depth of one step, a divisor of the block's (sampled: any)
  int GROUP = 8;         ///< block rows walked together (L2 reuse)
  int stages = 3;
  int warps = 4;
  bool indirect = false;   ///< values are found through positions
  bool transposed = false; ///< the sparse operand is the transpose of what is stored
  bool trans_b = false;    ///< the dense operand is stored transposed
  bool segmented = false;  ///< work comes from a list of segments (see BlockSegments), else one program per block row
  bool use_alpha = false, use_c = false;
  bool tf32 = false;       ///< f32 only
};

namespace detail {
/// Runs body(position of the values, block index, depth inside the block) for entries begin .. end - 1, each in steps of
/// config.DEPTH. Indices are read a step ahead of the copies that need them.
template <class Body>
void for_each_entry(const BlockListConfig& c, const Tile& begin, const Tile& end, int depth,
                    const Tensor<const int32_t, 1>& indices, const Tensor<const int32_t, 1>& positions,
                    const Body& body) {
  const int steps = depth / c.DEPTH;  // of one block
  auto entry = [&](const Tile& t) -> Tile { return steps == 1 ? t : t / steps; };
  auto position = [&](const Tile& e) -> Tile { return c.indirect ? positions.load({e}) : e; };
  Tile next_index = indices.load({begin}), next_position = position(begin);
  for (auto t : range(begin * steps, end * steps, 1, {.stages = c.stages})) {
    const Tile index = next_index, at = next_position;
    const Tile e = entry(t), next = entry(t + 1);
    next_index = indices.load({next}), next_position = position(next);
    body(at, index, steps == 1 ? Tile(0) : (t - e * steps) * c.DEPTH);
  }
}
}  // namespace detail

/// D = alpha S B + beta C for S block sparse [R, K], B [K, N], C and D [R, N]. Grid {segments or block rows * ceil(N /
/// TILE)}. Block rows without entries give beta C (or 0).
template <class T>
void block_sparse_dense_program(const BlockListConfig& c, Tensor<const T, 3> values, Tensor<const int32_t, 1> offsets,
                                Tensor<const int32_t, 1> columns, Tensor<const int32_t, 1> positions,
                                Tensor<const int32_t, 2> segments, Tensor<const T, 2> B, Tensor<const T, 2> C,
                                Tensor<T, 2> D, Tensor<float, 3> partial, F32 alpha, F32 beta) {
  num_warps(c.warps);
  const int rows = c.transposed ? c.BK : c.BM, depth = c.transposed ? c.BM : c.BK;
  auto num_n = cdiv(D.dim(1), c.TILE);
  auto num_m = c.segmented ? segments.dim(0) : offsets.dim(0) - 1;
  TileIndex at = grouped_order(program_id(0), num_m, num_n, c.GROUP);
  auto row = c.segmented ? segments.load({at.m, 0}) : Tile(at.m);
  auto begin = c.segmented ? segments.load({at.m, 1}) : offsets.load({at.m});
  auto end = c.segmented ? segments.load({at.m, 2}) : offsets.load({at.m + 1});
  auto n0 = at.n * c.TILE;

  Tile acc = zeros({rows, c.TILE}, f32);
  auto step = [&](const Tile& p, const Tile& column, const Tile& inside) {
    const Tile k0 = column * depth + inside;
    auto s = c.transposed ? trans(values.load({p, inside, 0}, {c.DEPTH, rows}))
                          : values.load({p, 0, inside}, {rows, c.DEPTH});
    auto b = c.trans_b ? trans(B.load({n0, k0}, {c.TILE, c.DEPTH})) : B.load({k0, n0}, {c.DEPTH, c.TILE});
    acc = dot(s, b, acc, c.tf32 ? Prec::tf32 : Prec::ieee);
  };
  detail::for_each_entry(c, begin, end, depth, columns, positions, step);
  auto m0 = row * rows;
  auto finish = [&] {
    Tile x = acc;
    if (c.use_alpha) x *= alpha;
    if (c.use_c) x = fma(cast(C.load({m0, n0}, {rows, c.TILE}), f32), beta, x);
    D.store({m0, n0}, cast(x, dtype_of<T>()));
  };
  if (!c.segmented) return finish();
  auto slot = segments.load({at.m, 3});
  if_(slot < 0, finish, [&] { partial.store({slot, 0, n0}, acc); });
}

/// D = alpha A S + beta C for A [M, K], S block sparse [K, N] listed by block column, C and D [M, N]. Grid {ceil(M / TILE) *
/// block columns}.
template <class T>
void dense_block_sparse_program(const BlockListConfig& c, Tensor<const T, 2> A, Tensor<const T, 3> values,
                                Tensor<const int32_t, 1> offsets, Tensor<const int32_t, 1> rows,
                                Tensor<const int32_t, 1> positions, Tensor<const T, 2> C, Tensor<T, 2> D, F32 alpha,
                                F32 beta) {
  num_warps(c.warps);
  const int width = c.transposed ? c.BM : c.BK, depth = c.transposed ? c.BK : c.BM;
  auto num_m = cdiv(D.dim(0), c.TILE), num_n = offsets.dim(0) - 1;
  TileIndex at = grouped_order(program_id(0), num_m, num_n, c.GROUP);
  auto m0 = at.m * c.TILE, n0 = at.n * width;
  Tile acc = zeros({c.TILE, width}, f32);
  auto step = [&](const Tile& p, const Tile& row, const Tile& inside) {
    const Tile k0 = row * depth + inside;
    auto a = A.load({m0, k0}, {c.TILE, c.DEPTH});
    auto s = c.transposed ? trans(values.load({p, 0, inside}, {width, c.DEPTH}))
                          : values.load({p, inside, 0}, {c.DEPTH, width});
    acc = dot(a, s, acc, c.tf32 ? Prec::tf32 : Prec::ieee);
  };
  detail::for_each_entry(c, offsets.load({at.n}), offsets.load({at.n + 1}), depth, rows, positions, step);
  if (c.use_alpha) acc *= alpha;
  if (c.use_c) acc = fma(cast(C.load({m0, n0}, {c.TILE, width}), f32), beta, acc);
  D.store({m0, n0}, cast(acc, dtype_of<T>()));
}

/// values[e] = alpha (A B)[block (rows[e], columns[e])] + beta values[e] for A [M, K] and B [K, N], dense. Grid {entries}.
/// The entries may come in any order (COO); one that is listed twice is computed twice.
template <class T>
void sampled_dense_program(const BlockListConfig& c, Tensor<const T, 2> A, Tensor<const T, 2> B,
                           Tensor<const int32_t, 1> rows, Tensor<const int32_t, 1> columns, Tensor<T, 3> values,
                           F32 alpha, F32 beta) {
  num_warps(c.warps);
  auto e = program_id(0);
  auto m0 = rows.load({e}) * c.BM, n0 = columns.load({e}) * c.BK;
  Tile acc = zeros({c.BM, c.BK}, f32);
  for (auto k0 : range(0, A.dim(1), c.DEPTH, {.stages = c.stages})) {
    auto b = c.trans_b ? trans(B.load({n0, k0}, {c.BK, c.DEPTH})) : B.load({k0, n0}, {c.DEPTH, c.BK});
    acc = dot(A.load({m0, k0}, {c.BM, c.DEPTH}), b, acc, c.tf32 ? Prec::tf32 : Prec::ieee);
  }
  if (c.use_alpha) acc *= alpha;
  if (c.use_c) acc = fma(reshape(cast(values.load({e, 0, 0}, {c.BM, c.BK}), f32), {c.BM, c.BK}), beta, acc);
  values.store({e, 0, 0}, cast(acc, dtype_of<T>()));
}

/// Adds the parts of split block rows in order: list [n, 3] of (block row, first slot, count). Grid {n, ceil(N / TILE)}.
template <class T>
void block_segments_combine_program(const BlockListConfig& c, Tensor<const int32_t, 2> list,
                                    Tensor<const float, 3> partial, Tensor<const T, 2> C, Tensor<T, 2> D, F32 alpha,
                                    F32 beta) {
  num_warps(4);
  const int rows = c.transposed ? c.BK : c.BM;
  auto first = list.load({program_id(0), 1}), count = list.load({program_id(0), 2});
  auto m0 = list.load({program_id(0), 0}) * rows, n0 = program_id(1) * c.TILE;
  Tile acc = zeros({rows, c.TILE}, f32);
  for (auto s : range(count)) acc += partial.load({first + s, 0, n0}, {rows, c.TILE});
  if (c.use_alpha) acc *= alpha;
  if (c.use_c) acc = fma(cast(C.load({m0, n0}, {rows, c.TILE}), f32), beta, acc);
  D.store({m0, n0}, cast(acc, dtype_of<T>()));
}

template <class T>
const auto& block_sparse_dense_kernel() {
  static const auto k = kernel(typed_name("block_sparse_dense", dtype_of<T>()), block_sparse_dense_program<T>)
                            .grid([](const BlockListConfig& c, const auto&, const auto& offsets, const auto&,
                                     const auto&, const auto& segments, const auto&, const auto&, const auto& d,
                                     const auto&...) {
                              int64_t items = c.segmented ? segments.shape[0] : offsets.shape[0] - 1;
                              return Grid{items * cdiv(d.shape[1], c.TILE)};
                            });
  return k;
}
template <class T>
const auto& block_segments_combine_kernel() {
  static const auto k =
      kernel(typed_name("block_segments_combine", dtype_of<T>()), block_segments_combine_program<T>)
          .grid([](const BlockListConfig& c, const auto& list, const auto&, const auto&, const auto& d,
                   const auto&...) { return Grid{list.shape[0], cdiv(d.shape[1], c.TILE)}; });
  return k;
}
template <class T>
const auto& dense_block_sparse_kernel() {
  static const auto k = kernel(typed_name("dense_block_sparse", dtype_of<T>()), dense_block_sparse_program<T>)
                            .grid([](const BlockListConfig& c, const auto&, const auto&, const auto& offsets,
                                     const auto&, const auto&, const auto&, const auto& d, const auto&...) {
                              return Grid{cdiv(d.shape[0], c.TILE) * (offsets.shape[0] - 1)};
                            });
  return k;
}
template <class T>
const auto& sampled_dense_kernel() {
  static const auto k =
      kernel(typed_name("sampled_dense", dtype_of<T>()), sampled_dense_program<T>)
          .grid([](const BlockListConfig&, const auto&, const auto&, const auto& rows, const auto&...) {
            return Grid{rows.shape[0]};
          });
  return k;
}

/// Tiles for stored blocks of bm x bk; flags that describe the problem are left for the caller to set. `row_entries`:
/// blocks of an average block row of the left operand where that is the sparse one, `columns`: of the right operand;
/// 0 where nothing is known.
inline BlockListConfig default_block_list_config(DType dtype, int bm, int bk, bool tf32, const Machine& machine,
                                                 double row_entries = 0, int64_t columns = 0) {
  BlockListConfig c;
  c.BM = bm, c.BK = bk, c.tf32 = tf32, c.TILE = 128;
  int smaller = std::min(bm, bk);
  if (!machine.gpu) {
    c.DEPTH = smaller, c.stages = 1, c.warps = 1, c.GROUP = 1;
    return c;
  }
  // Steps of 128 bytes of depth: whole lines of shared memory.
  c.DEPTH = std::min(smaller, static_cast<int>(128 / size_of(dtype)));
  c.warps = smaller >= 128 ? 8 : smaller >= 64 ? 4 : 2;
  if (dtype == DType::f32 && !tf32) c.DEPTH = std::min(smaller, 16), c.warps = std::min(8, 2 * c.warps), c.stages = 2;
  if (machine.warpgroups && size_of(dtype) == 2 && smaller >= 64)
    c.TILE = 256, c.warps = smaller >= 128 ? 8 : 4, c.stages = 4;
  double resident = 16 << 20;
  // Two warpgroups side by side read the same block of S: what the second-level cache hands out bounds these products.
  // Steps of 32, so that enough of them are in flight beside the sums on their way out.
  if (c.TILE == 256 && c.warps == 4 && row_entries > 0 && columns >= 8 * 512)
    c.TILE = 512, c.warps = 8, c.DEPTH = 32, c.stages = 5, resident *= 4;
  if (row_entries > 0) {
    // Block rows whose values stay in a part of the second-level cache while a column of tiles of the dense operand
    // goes by: it comes from memory once for all of them.
    const double bytes = row_entries * bm * bk * size_of(dtype);
    while (c.GROUP < 128 && 2 * c.GROUP * bytes <= resident) c.GROUP *= 2;  // few values: each is a kernel of its own
  }
  return c;
}

namespace detail {
/// Checks of the lists that every product shares.
template <class Check, class T>
Check& check_lists(Check& check, const BlockList<T>& s, const BlockListConfig& c) {
  check.shape("values", s.values, {-1, c.BM, c.BK}, "[entries, BM, BK]")
      .shape("columns", s.columns, {s.values.shape[0]}, "[entries]")
      .require(s.offsets.shape[0] >= 1, "offsets must have one more entry than there are block rows, found none");
  if (c.indirect) check.shape("positions", s.positions, {s.values.shape[0]}, "[entries]");
  int depth = c.transposed ? c.BM : c.BK;
  check.require(c.DEPTH > 0 && depth % c.DEPTH == 0, "config.DEPTH = {} must divide the depth {} of a block", c.DEPTH,
                depth);
  return check;
}
}  // namespace detail

/// D = alpha S B + beta C; S has (offsets - 1) block rows. `plan` (parts/block_segments.h) balances rows of very
/// different lengths: config.segmented must say whether there is one. C is read only with config.use_c; pass D otherwise.
template <class T>
Status block_sparse_dense(StreamAt stream, const BlockList<const T>& s, Input<T, 2> B, Input<T, 2> C,
                          TensorView<T, 2> D, float alpha, float beta, const BlockListConfig& config,
                          const BlockSegments* plan = nullptr) {
  const int rows = config.transposed ? config.BK : config.BM;
  ShapeCheck check("block_sparse_dense");
  detail::check_lists(check, s, config);
  config.trans_b ? check.shape("B", B, {D.shape[1], -1}, "[N, K]") : check.shape("B", B, {-1, D.shape[1]}, "[K, N]");
  if (config.use_c) check.shape("C", C, {D.shape[0], D.shape[1]}, "[R, N]");
  check.require(cdiv(D.shape[0], rows) == s.offsets.shape[0] - 1, "D has {} rows, {} block rows of {}; the lists have {}",
                D.shape[0], cdiv(D.shape[0], rows), rows, s.offsets.shape[0] - 1)
      .require(config.use_alpha || alpha == 1.f, "alpha = {} needs config.use_alpha", alpha)
      .require(config.use_c || beta == 0.f, "beta = {} needs config.use_c", beta)
      .require(config.segmented == (plan != nullptr), "config.segmented is {} but there is {} plan", config.segmented,
               plan ? "a" : "no");
  if (!check.ok()) return stream.refuse(check.error());
  auto segments = plan ? plan->segments() : TensorView<const int32_t, 2>(nullptr, {0, 4});
  auto partial = plan ? plan->partial(rows, D.shape[1]) : Result<TensorView<float, 3>>(TensorView<float, 3>(nullptr, {0, 0, 0}));
  if (!partial) return partial.error();
  Status done = block_sparse_dense_kernel<T>().try_call(stream, config, s.values, s.offsets, s.columns, s.positions,
                                                        segments, B, C, D, *partial, alpha, beta);
  if (!done || !plan || plan->split_rows().shape[0] == 0) return done;
  return block_segments_combine_kernel<T>().try_call(stream, config, plan->split_rows(),
                                                     TensorView<const float, 3>(*partial), C, D, alpha, beta);
}

/// D = alpha A S + beta C; the lists go by block column of S (columns hold block rows).
template <class T>
Status dense_block_sparse(StreamAt stream, Input<T, 2> A, const BlockList<const T>& s, Input<T, 2> C, TensorView<T, 2> D,
                          float alpha, float beta, const BlockListConfig& config) {
  const int width = config.transposed ? config.BM : config.BK;
  ShapeCheck check("dense_block_sparse");
  detail::check_lists(check, s, config);
  check.shape("A", A, {D.shape[0], -1}, "[M, K]");
  if (config.use_c) check.shape("C", C, {D.shape[0], D.shape[1]}, "[M, N]");
  check.require(cdiv(D.shape[1], width) == s.offsets.shape[0] - 1,
                "D has {} columns, {} block columns of {}; the lists have {}", D.shape[1], cdiv(D.shape[1], width), width,
                s.offsets.shape[0] - 1)
      .require(config.use_alpha || alpha == 1.f, "alpha = {} needs config.use_alpha", alpha)
      .require(config.use_c || beta == 0.f, "beta = {} needs config.use_c", beta);
  if (!check.ok()) return stream.refuse(check.error());
  return dense_block_sparse_kernel<T>().try_call(stream, config, A, s.values, s.offsets, s.columns, s.positions, C, D,
                                                 alpha, beta);
}

/// values[e] = alpha (A B)[block (rows[e], columns[e])] + beta values[e], entries in any order.
template <class T>
Status sampled_dense(StreamAt stream, Input<T, 2> A, Input<T, 2> B, TensorView<const int32_t, 1> rows,
                     TensorView<const int32_t, 1> columns, TensorView<T, 3> values, float alpha, float beta,
                     const BlockListConfig& config) {
  ShapeCheck check("sampled_dense");
  check.shape("values", values, {rows.shape[0], config.BM, config.BK}, "[entries, BM, BK]")
      .shape("columns", columns, {rows.shape[0]}, "[entries]")
      .shape("B", B, {config.trans_b ? -1 : A.shape[1], config.trans_b ? A.shape[1] : -1},
             config.trans_b ? "[N, K]" : "[K, N]")
      .require(config.use_alpha || alpha == 1.f, "alpha = {} needs config.use_alpha", alpha)
      .require(config.use_c || beta == 0.f, "beta = {} needs config.use_c", beta);
  if (!check.ok()) return stream.refuse(check.error());
  return sampled_dense_kernel<T>().try_call(stream, config, A, B, rows, columns, values, alpha, beta);
}

/// Gradients of D = S B for S block sparse: those of its stored blocks, dvalues[e] = (dD B^T)[block e] (entries in the
/// order of `s`, whose rows are `rows`), and dB = S^T dD, through the lists by column `by_column` (block_lists.h with
/// config.indexed). `config` is that of the forward product.
template <class T>
Status block_sparse_dense_backward(StreamAt stream, const BlockList<const T>& s, TensorView<const int32_t, 1> rows,
                                   const BlockList<const T>& by_column, Input<T, 2> B, Input<T, 2> dD,
                                   TensorView<T, 3> dvalues, TensorView<T, 2> dB, BlockListConfig config) {
  config.segmented = config.use_alpha = config.use_c = false;
  BlockListConfig sampled = config, transposed = config;
  sampled.trans_b = !config.trans_b;
  sampled.DEPTH = std::min<int>(config.DEPTH, 64);
  if (Status done = sampled_dense<T>(stream, dD, B, rows, s.columns, dvalues, 1.f, 0.f, sampled); !done) return done;
  transposed.transposed = transposed.indirect = true, transposed.trans_b = false;
  transposed.DEPTH = std::min(config.DEPTH, config.BM);
  return block_sparse_dense<T>(stream, by_column, dD, dB, dB, 1.f, 0.f, transposed);
}

}  // namespace tile::kernels
