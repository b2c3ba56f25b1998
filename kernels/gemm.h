// gemm.h - D = epilogue(alpha op(A) op(B) + beta C), dense, ragged sizes included.
#pragma once
#include <optional>

#include "parts/product_tiles.h"
#include "parts/resident_tiles.h"
#include "parts/shapes.h"
#include "parts/split_k.h"
#include "parts/tile_order.h"

namespace tile::kernels {

struct GemmConfig {
  int BM = 128, BN = 128, BK = 32;
  int GROUP = 16;  ///< tile rows walked together (L2 reuse)
  int stages = 3;
  int warps = 4;
  int splits = 1;        ///< parts of K that have programs of their own, of tiles that fill no round (split_k.h)
  int cluster = 1;       ///< programs of 2, 4 or 8 tile rows copy tiles of B together (GPUs with clusters; no splits)
  int cluster_n = 1;     ///< the same of tile columns, which copy tiles of A together; not both
  bool trans_a = false;  ///< A is stored [K, M]
  bool trans_b = false;  ///< B is stored [N, K]
  bool use_alpha = false;
  bool use_c = false;  ///< else C is not read (and beta not used)
  bool tf32 = false;   ///< f32 only: products of 10-bit mantissas on tensor cores instead of IEEE f32
  /// f32 only: products of 21-bit mantissas, each as three of tf32: large ones take less time than IEEE f32. Sums are
  /// those of tensor cores for each BK of K; where single warps multiply (tiles below 128 x 128 or of more than 96
  /// elements a thread, GPUs without warpgroups), for all of K (dsl/README.md).
  bool tf32x3 = false;
};

/// Epilogue that changes nothing. An epilogue is any callable Tile -> Tile on the f32 (i32 for i8, f64 for f64)
/// accumulator; it is traced into the kernel.
struct NoEpilogue {
  Tile operator()(const Tile& x) const { return x; }
};

/// What products of TIn are summed in.
template <class TIn>
using GemmSum = std::conditional_t<std::is_integral_v<TIn>, int32_t,
                                   std::conditional_t<std::is_same_v<TIn, double>, double, float>>;
/// What alpha and beta are.
template <class TIn>
using GemmScale = std::conditional_t<std::is_same_v<TIn, double>, double, float>;

/// D = epilogue(alpha acc + beta C) for one tile of one batch.
template <class TOut, class Scale, class Epilogue>
void gemm_finish(const GemmConfig& c, const Epilogue& epilogue, Tile acc, const Tensor<const TOut, 3>& C,
                 const Tensor<TOut, 3>& D, const Tile& batch, const Tile& m0, const Tile& n0, Scalar<Scale> alpha,
                 Scalar<Scale> beta) {
  if (c.use_alpha) acc *= alpha;
  if (c.use_c) {
    auto old = cast(C.load({batch, m0, n0}, {c.BM, c.BN}), dtype_of<Scale>());
    acc = fma(reshape(old, {c.BM, c.BN}), beta, acc);
  }
  D.store({batch, m0, n0}, cast(epilogue(acc), dtype_of<TOut>()));
}

/// Where a tile begins, counted over all batches.
struct GemmCorner {
  Tile m0, n0, batch;
};
inline GemmCorner gemm_corner(const GemmConfig& c, const Tile& tile, const Tile& num_m, const Tile& num_n) {
  const Tile per_batch = num_m * num_n;
  const TileIndex at = grouped_order(tile % per_batch, num_m, num_n, c.GROUP);
  return {at.m * c.BM, at.n * c.BN, tile / per_batch};
}

/// A is [batch, M, K], B is [batch, K, N] (or stored transposed, see the config), C and D are [batch, M, N]. i8
/// operands accumulate in i32, f64 in f64, all others in f32. With config.splits > 1 PARTS [slot, at most BM, BN] gets
/// the parts of the tiles that are split, and `whole` tiles are not (split_k.h). Grid {ceil(M / BM) * ceil(N / BN),
/// batch}; with splits {whole + splits * (all tiles - whole)}; with config.cluster {cluster, ceil(M / BM / cluster) *
/// ceil(N / BN), batch}, the cluster's programs on tile rows side by side; with config.cluster_n on tile columns.
template <class TIn, class TOut, class Epilogue>
void gemm_program(const GemmConfig& c, const Epilogue& epilogue, Tensor<const TIn, 3> A, Tensor<const TIn, 3> B,
                  Tensor<const TOut, 3> C, Tensor<TOut, 3> D, Tensor<GemmSum<TIn>, 3> PARTS,
                  I32 whole, Scalar<GemmScale<TIn>> alpha, Scalar<GemmScale<TIn>> beta) {
  num_warps(c.warps);
  auto num_m = cdiv(D.dim(1), c.BM), num_n = cdiv(D.dim(2), c.BN);
  auto depth = A.dim(c.trans_a ? 1 : 2);
  programs_per_cluster(std::max(c.cluster, c.cluster_n));
  static_check(c.cluster == 1 || c.cluster_n == 1, "a cluster has tiles of one row or of one column");
  static_check((c.cluster == 1 && c.cluster_n == 1) || c.splits == 1,
               "programs of a cluster have whole products, found splits");
  Tile m0, n0, batch, begin = Tile(0), end = Tile(depth);
  std::optional<SplitPart> own;
  if (c.cluster_n > 1) {
    TileIndex at = grouped_order(program_id(1), num_m, cdiv(num_n, c.cluster_n), c.GROUP);
    m0 = at.m * c.BM, n0 = (at.n * c.cluster_n + program_id(0)) * c.BN, batch = program_id(2);
  } else if (c.cluster > 1) {
    TileIndex at = grouped_order(program_id(1), cdiv(num_m, c.cluster), num_n, std::max(1, c.GROUP / c.cluster));
    m0 = (at.m * c.cluster + program_id(0)) * c.BM, n0 = at.n * c.BN, batch = program_id(2);
  } else if (c.splits > 1) {
    own = split_part(c.splits, whole);
    const GemmCorner corner = gemm_corner(c, own->tile, num_m, num_n);
    m0 = corner.m0, n0 = corner.n0, batch = corner.batch;
    const SplitPart::Range share = own->range(c.splits, depth, c.BK);
    begin = share.begin, end = share.end;
  } else {
    TileIndex at = grouped_order(program_id(0), num_m, num_n, c.GROUP);
    m0 = at.m * c.BM, n0 = at.n * c.BN, batch = program_id(1);
  }

  Tile acc = zeros({c.BM, c.BN}, dtype_of<GemmSum<TIn>>());
  for (auto k0 : range(begin, end, c.BK, {.stages = c.stages})) {
    auto a = c.trans_a ? trans(A.load({batch, k0, m0}, {c.BK, c.BM})) : A.load({batch, m0, k0}, {c.BM, c.BK});
    auto b = c.trans_b ? trans(B.load({batch, n0, k0}, {c.BN, c.BK})) : B.load({batch, k0, n0}, {c.BK, c.BN});
    acc = dot(a, b, acc, c.tf32 ? Prec::tf32 : c.tf32x3 ? Prec::tf32x3 : Prec::ieee);
  }
  auto finish = [&](const Tile& sum) { gemm_finish(c, epilogue, sum, C, D, batch, m0, n0, alpha, beta); };
  if (own)
    if_(own->is_whole, [&] { finish(acc); }, [&] { PARTS.store({own->slot, 0, 0}, acc); });
  else
    finish(acc);
}

/// Adds the parts of the tiles that were split, in order, and finishes them. Grid {split tiles * SplitBlock::per_tile}.
template <class TIn, class TOut, class Epilogue>
void gemm_combine_program(const GemmConfig& c, const Epilogue& epilogue, Tensor<const GemmSum<TIn>, 3> PARTS,
                          Tensor<const TOut, 3> C, Tensor<TOut, 3> D, I32 whole, Scalar<GemmScale<TIn>> alpha,
                          Scalar<GemmScale<TIn>> beta) {
  num_warps(4);
  const SplitBlock block(c.BM, c.BN);
  const SplitBlock::At own = block.at();
  const GemmCorner corner = gemm_corner(c, whole + own.tile, cdiv(D.dim(1), c.BM), cdiv(D.dim(2), c.BN));
  GemmConfig of_block = c;
  of_block.BM = block.rows, of_block.BN = block.columns;
  gemm_finish(of_block, epilogue, block.sum(own, c.splits, PARTS), C, D, corner.batch, corner.m0 + own.row,
              corner.n0 + own.column, alpha, beta);
}

/// The two kernels of a GEMM.
template <class Product, class Combine>
struct GemmKernels {
  Product product;
  Combine combine;  ///< runs where tiles were split
};

/// A GEMM with an epilogue of the caller's: keep the result (it holds the compiled code) and launch it with run_gemm.
/// (TIn, TOut): (f16, f16), (bf16, bf16), (f32, f32), (f64, f64), (i8, i32), (f8, f16 or bf16), or any pair a cast from
/// the accumulator reaches.
template <class TIn, class TOut, class Epilogue>
auto make_gemm_kernel(const char* name, Epilogue epilogue) {
  using Sum = GemmSum<TIn>;
  using Scale = Scalar<GemmScale<TIn>>;
  auto product =
      kernel(typed_name(name, dtype_of<TIn>()),
             [epilogue](const GemmConfig& c, Tensor<const TIn, 3> A, Tensor<const TIn, 3> B, Tensor<const TOut, 3> C,
                        Tensor<TOut, 3> D, Tensor<Sum, 3> PARTS, I32 whole, Scale alpha, Scale beta) {
               gemm_program(c, epilogue, A, B, C, D, PARTS, whole, alpha, beta);
             })
          .grid([](const GemmConfig& c, const auto&, const auto&, const auto&, const auto& d, const auto& parts,
                   int whole, const auto&...) {
            const int64_t rows = cdiv(d.shape[1], c.BM), columns = cdiv(d.shape[2], c.BN);
            if (c.cluster > 1) return Grid{c.cluster, cdiv<int64_t>(rows, c.cluster) * columns, d.shape[0]};
            if (c.cluster_n > 1) return Grid{c.cluster_n, rows * cdiv<int64_t>(columns, c.cluster_n), d.shape[0]};
            return c.splits > 1 ? Grid{whole + parts.shape[0]} : Grid{rows * columns, d.shape[0]};
          });
  auto combine = kernel(typed_name((std::string(name) + "_combine").c_str(), dtype_of<TIn>()),
                        [epilogue](const GemmConfig& c, Tensor<const Sum, 3> PARTS, Tensor<const TOut, 3> C,
                                   Tensor<TOut, 3> D, I32 whole, Scale alpha, Scale beta) {
                          gemm_combine_program<TIn>(c, epilogue, PARTS, C, D, whole, alpha, beta);
                        })
                     .grid([](const GemmConfig& c, const auto& parts, const auto&...) {
                       return Grid{parts.shape[0] / c.splits * SplitBlock(c.BM, c.BN).per_tile};
                     });
  return GemmKernels<decltype(product), decltype(combine)>{std::move(product), std::move(combine)};
}
template <class TIn, class TOut>
const auto& gemm_kernel() {
  static const auto k = make_gemm_kernel<TIn, TOut>("gemm", NoEpilogue{});
  return k;
}

namespace detail {
/// Whether product_tiles.h knows such products.
inline bool has_warpgroup_tiles(DType in, bool tf32, bool along_k, const Machine& machine) {
  if (!machine.warpgroups || in == DType::f64) return false;
  return in == DType::f32 ? tf32 : !is_f8(in) || along_k;
}
/// Whether resident_tiles.h does.
inline bool has_resident_tiles(DType in, bool tf32) { return in == DType::f64 || (in == DType::f32 && !tf32); }

inline GemmConfig gemm_config_by_size(DType in, bool tf32, ProductSizes sizes, bool along_k, const Machine& machine) {
  const int64_t m = sizes.m, n = sizes.n;
  const int64_t k = sizes.may_split ? sizes.k : 0;  // of which there may be parts
  GemmConfig c;
  c.tf32 = tf32, c.tf32x3 = sizes.tf32x3;
  if (!machine.gpu) {
    // Operand tiles that fit the second-level cache together.
    auto side = [](int64_t size) { return std::min(128, round_up(std::max<int64_t>(size, 1), 16)); };
    c.BM = m >= 1024 ? 256 : side(m), c.BN = side(n);
    c.BK = static_cast<int>(512 / std::min<int64_t>(size_of(in), 4)), c.GROUP = 1, c.stages = 1, c.warps = 1;
    return c;
  }
  auto programs = [&](int bm, int bn) { return sizes.batch * cdiv(m, bm) * cdiv(n, bn); };
  // Where a few parts of K give every multiprocessor work, tiles stay large: they read less for each multiplication.
  // Eight parts of f8 took 1.4 times the time of two parts of small tiles.
  constexpr int64_t most_parts = 3;
  auto too_few = [&](int bm, int bn) {
    const int64_t tiles = programs(bm, bn), parts = machine.multiprocessors / std::max<int64_t>(tiles, 1);
    return tiles < machine.multiprocessors && (k < 1024 || parts < 2 || parts > most_parts);
  };
  sizes.in = in, sizes.along_k = along_k;
  if (has_resident_tiles(in, tf32)) {
    const ResidentTile t = resident_tile(sizes, machine);
    c.BM = t.bm, c.BN = t.bn, c.BK = t.bk, c.warps = t.warps, c.stages = t.stages, c.splits = t.splits;
    return c;
  }
  const int row = static_cast<int>(128 / size_of(in));  // elements in 128 bytes: whole lines of shared memory
  c.BK = row, c.warps = 4;
  if (has_warpgroup_tiles(in, tf32, along_k, machine)) {
    const ProductTile t = warpgroup_tile(sizes, machine);
    c.BM = t.bm, c.BN = t.bn, c.warps = t.warps, c.stages = t.stages;
    c.splits = t.splits, c.cluster = t.cluster, c.cluster_n = t.cluster_n;
    return c;
  }
  if (is_float(in) && size_of(in) == 1 && !machine.warpgroups) {
    c.BK = 64, c.warps = 8, c.stages = 2;  // f8 is widened to f16 on its way: room for it in registers
    return c;
  }
  // Without warpgroups, measured on an H200 (f16, 4096): 128x256 with 4 stages 443 TFLOP/s, 128x128 with two programs
  // per multiprocessor 436. Warpgroups gain more from the larger tile: it may leave a quarter of the multiprocessors
  // idle.
  const int64_t wide = programs(128, 256);
  if (machine.warpgroups ? 4 * wide >= 3 * machine.multiprocessors : size_of(in) >= 2 && wide >= machine.multiprocessors)
    c.BN = 256, c.warps = 8;
  if (machine.warpgroups) {
    // Two warpgroups of 64 rows each. Staging of the output takes its share of the shared memory.
    c.warps = 8;
    if (c.BN != 256 && programs(128, 128) < machine.multiprocessors / 2 && too_few(128, 128))
      c.BM = 64, c.BN = 64, c.warps = 4;
    c.stages = 4;
    return c;
  }
  if (too_few(c.BM, c.BN)) c.BM = 64, c.BN = 64, c.warps = 4;
  // As many stages as fit, up to 4, beside 8 KB for the compiler's own needs; with 4 warps two programs share the
  // memory.
  int64_t stage_bytes = static_cast<int64_t>(c.BM + c.BN) * c.BK * static_cast<int64_t>(size_of(in));
  int64_t room = static_cast<int64_t>(machine.shared_bytes) / (c.warps == 4 ? 2 : 1) - 8192;
  c.stages = static_cast<int>(std::clamp<int64_t>(room / stage_bytes, 2, 4));
  return c;
}
}  // namespace detail

/// What tuned tiles are kept by (table "gemm").
inline TuningKey gemm_tuning_key(DType in, bool tf32, int64_t m, int64_t n, bool tf32x3 = false) {
  TuningKey key = TuningKey().fact("dtype", in).fact("tf32", tf32);
  if (tf32x3) key.fact("tf32x3", true);  // lines that were kept before name no such fact
  return key.size("M", m).size("N", n);
}

/// Tiles for a problem of this size, tuned ones if there are; flags that describe the problem (transposes, C, alpha)
/// are left for the caller to set. `along_k`: A is [M, K] and B [N, K]; 8-bit floats have other tiles then. `k` = 0:
/// not known.
inline GemmConfig default_gemm_config(DType in, bool tf32, int64_t m, int64_t n, const Machine& machine,
                                      bool along_k = false, int64_t k = 0) {
  return tuned("gemm", machine.model, gemm_tuning_key(in, tf32, m, n),
               detail::gemm_config_by_size(in, tf32, {1, m, n, k}, along_k, machine));
}

/// The same for callers with a workspace (of gemm_workspace_bytes): K is split where too few tiles would leave
/// multiprocessors idle.
inline GemmConfig split_gemm_config(DType in, bool tf32, int64_t batch, int64_t m, int64_t n, int64_t k,
                                    const Machine& machine, bool along_k = false) {
  GemmConfig c = tuned("gemm", machine.model, gemm_tuning_key(in, tf32, m, n),
                       detail::gemm_config_by_size(in, tf32, {batch, m, n, k, /*may_split=*/true}, along_k, machine));
  const int64_t tiles = batch * cdiv(m, c.BM) * cdiv(n, c.BN);
  // With and without parts.
  const bool modelled =
      detail::has_resident_tiles(in, tf32) || (detail::has_warpgroup_tiles(in, tf32, along_k, machine) && c.BM > 16);
  if (!machine.gpu || modelled || c.splits > 1 || tiles == 0 || 2 * tiles > machine.multiprocessors) return c;
  // Few rows with wide tiles: half as many programs ask for all the memory brings, and leave fewer parts to add.
  const int64_t programs = machine.multiprocessors / (machine.warpgroups && m <= 64 && c.BN >= 128 ? 2 : 1);
  // At least 512 elements of K each (of i8, whose products take a quarter of the time, more): less is dominated by
  // writing and adding the parts.
  c.splits =
      static_cast<int>(std::clamp<int64_t>(std::min(programs / tiles, k / (in == DType::i8 ? 2048 : 512)), 1, 16));
  return c;
}

/// The same for products of f32 in tf32x3.
inline GemmConfig tf32x3_gemm_config(int64_t batch, int64_t m, int64_t n, int64_t k, const Machine& machine) {
  const ProductSizes sizes{.batch = batch, .m = m, .n = n, .k = k, .may_split = true, .tf32x3 = true};
  return tuned("gemm", machine.model, gemm_tuning_key(DType::f32, false, m, n, true),
               detail::gemm_config_by_size(DType::f32, /*tf32=*/false, sizes, /*along_k=*/false, machine));
}

namespace detail {
inline std::vector<GemmConfig> tiles_of_gemm_space(const GemmConfig& base, DType in, const Machine& machine) {
  Space<GemmConfig> space(base);
  if (!machine.gpu)
    return space.vary(&GemmConfig::BM, {64, 128, 256})
        .vary(&GemmConfig::BN, {64, 128, 256})
        .vary(&GemmConfig::BK, {64, 128, 256});
  const auto bytes = static_cast<int64_t>(size_of(in));
  const int row = static_cast<int>(128 / bytes);
  auto stages_that_fit = [&](const GemmConfig& c) {
    return (static_cast<int64_t>(machine.shared_bytes) - 4096) / (static_cast<int64_t>(c.BM + c.BN) * c.BK * bytes);
  };
  const bool is_ieee = in == DType::f32 && !base.tf32 && !base.tf32x3;
  if (is_ieee)
    space.vary(&GemmConfig::BM, {32, 64, 96, 128}).vary(&GemmConfig::BN, {64, 128}).vary(&GemmConfig::BK, {16, 32});
  else if (in == DType::f64)
    space.vary(&GemmConfig::BM, {32, 64, 96, 128})
        .vary(&GemmConfig::BN, {64, 96, 128})
        .vary(&GemmConfig::BK, {row, 2 * row});
  else if (machine.warpgroups)
    space.vary(&GemmConfig::BM, {64, 128, 192, 256})
        .vary(&GemmConfig::BN, {64, 96, 128, 160, 176, 192, 256})
        .vary(&GemmConfig::BK, {row, 2 * row});
  else
    space.vary(&GemmConfig::BM, {64, 128, 256})
        .vary(&GemmConfig::BN, {64, 128, 256})
        .vary(&GemmConfig::BK, {row / 2, row});
  // Accumulators of a thread leave it registers for the rest: three consuming warpgroups have 160 each.
  space.vary(&GemmConfig::warps, {4, 8, 12, 16}).where([&](const GemmConfig& c) {
    const int accumulators = c.BM * c.BN / (32 * c.warps);
    if (in == DType::f64) return c.warps != 12 && accumulators >= 16 && accumulators <= 64;
    if (!machine.warpgroups || is_ieee) return c.warps != 12 && accumulators >= 32 && accumulators <= 128;
    return c.warps <= 12 && c.BM % (16 * c.warps) == 0 && accumulators >= 32 &&
           accumulators <= (c.warps == 12 ? 96 : 192);
  });
  return space.vary(&GemmConfig::stages, {2, 3, 4, 5, 6})
      .where([&](const GemmConfig& c) {
        // As many as fit, or nearly: for one program of a multiprocessor, or for two.
        const int64_t most = stages_that_fit(c);
        return c.stages <= most &&
               (c.stages + 2 > std::min<int64_t>(most, 6) || (c.stages <= most / 2 && c.stages + 2 > most / 2));
      })
      .vary(&GemmConfig::GROUP, {8, 16});
}
}  // namespace detail

/// Tiles worth measuring, `base` first.
inline std::vector<GemmConfig> gemm_space(const GemmConfig& base, DType in, const Machine& machine) {
  GemmConfig alone = base;
  alone.cluster = alone.cluster_n = 1;  // a default's cluster belongs to its tile
  std::vector<GemmConfig> space = detail::tiles_of_gemm_space(alone, in, machine);
  if (base.cluster > 1 || base.cluster_n > 1) space.insert(space.begin(), base);
  return space;
}

/// How many tiles of a product are computed whole and how many in parts.
inline SplitCounts gemm_split_counts(const GemmConfig& c, int64_t batch, int64_t m, int64_t n, const Machine& machine) {
  return SplitCounts(batch * cdiv(m, c.BM) * cdiv(n, c.BN), c.splits, machine.multiprocessors);
}
/// Rows of a part in the workspace: those of a tile that D has.
inline int64_t gemm_part_rows(const GemmConfig& c, int64_t m) { return std::min<int64_t>(c.BM, m); }
/// Bytes of the workspace that config.splits needs with operands of `in`; 0: none.
inline size_t gemm_workspace_bytes(const GemmConfig& c, int64_t batch, int64_t m, int64_t n, const Machine& machine,
                                   DType in = DType::f32) {
  const int64_t parts = gemm_split_counts(c, batch, m, n, machine).split * c.splits;
  return static_cast<size_t>(parts * gemm_part_rows(c, m) * c.BN) * (in == DType::f64 ? 8 : 4);
}

/// Launches `k` (from make_gemm_kernel) after checking shapes: A [batch, M, K], B [batch, K, N], C and D [batch, M, N].
/// Views of A, B and C may be of const elements. C is read only with config.use_c; pass D's view otherwise. `workspace`
/// is device memory of gemm_workspace_bytes, needed where those are not 0, in use until the launch has finished.
template <class K, class A_, class TOut, class TIn = std::remove_const_t<A_>>
Status run_batched_gemm(const K& k, StreamAt stream, TensorView<A_, 3> A, Input<std::remove_const_t<A_>, 3> B,
                        Input<TOut, 3> C, TensorView<TOut, 3> D, GemmScale<std::remove_const_t<A_>> alpha,
                        GemmScale<std::remove_const_t<A_>> beta, const GemmConfig& config, void* workspace = nullptr) {
  int64_t batch = D.shape[0], m = D.shape[1], n = D.shape[2], depth = A.shape[config.trans_a ? 1 : 2];
  const Machine machine = Machine::of(stream);
  ShapeCheck check("gemm");
  config.trans_a ? check.shape("A", A, {batch, -1, m}, "[batch, K, M]")
                 : check.shape("A", A, {batch, m, -1}, "[batch, M, K]");
  config.trans_b ? check.shape("B", B, {batch, n, depth}, "[batch, N, K]")
                 : check.shape("B", B, {batch, depth, n}, "[batch, K, N]");
  if (config.use_c) check.shape("C", C, {batch, m, n}, "[batch, M, N]");
  check.require(config.use_alpha || alpha == 1, "alpha = {} needs config.use_alpha", alpha)
      .require(config.use_c || beta == 0, "beta = {} needs config.use_c", beta)
      .require(!std::is_integral_v<TIn> || (!config.use_alpha && !config.use_c),
               "integer products take no alpha, beta or C")
      .require(!config.tf32 || !config.tf32x3, "config.tf32 and config.tf32x3 exclude each other")
      .require(config.splits >= 1, "config.splits must be at least 1, found {}", config.splits);
  if (!check.ok()) return stream.refuse(check.error());
  const size_t bytes = gemm_workspace_bytes(config, batch, m, n, machine, dtype_of<TIn>());
  check.require(bytes == 0 || workspace, "config.splits = {} needs a workspace of {} bytes", config.splits, bytes);
  if (!check.ok()) return stream.refuse(check.error());
  const SplitCounts counts = gemm_split_counts(config, batch, m, n, machine);
  using Sum = GemmSum<TIn>;
  auto parts = TensorView<Sum, 3>::contiguous(static_cast<Sum*>(counts.split ? workspace : nullptr),
                                              {counts.split * config.splits, gemm_part_rows(config, m), config.BN});
  const auto whole = static_cast<int>(counts.whole);
  Status done = k.product.try_call(stream, config, A, B, C, D, parts, whole, alpha, beta);
  if (!done || counts.split == 0) return done;
  return k.combine.try_call(stream, config, TensorView<const Sum, 3>(parts), C, D, whole, alpha, beta);
}

namespace detail {
template <class T>
TensorView<T, 3> as_batch(const TensorView<T, 2>& v) {
  return TensorView<T, 3>(v.data, {1, v.shape[0], v.shape[1]}, {0, v.strides[0], v.strides[1]});
}
}  // namespace detail

/// The same for one matrix: A [M, K], B [K, N], C and D [M, N].
template <class K, class A_, class TOut>
Status run_gemm(const K& k, StreamAt stream, TensorView<A_, 2> A, Input<std::remove_const_t<A_>, 2> B, Input<TOut, 2> C,
                TensorView<TOut, 2> D, GemmScale<std::remove_const_t<A_>> alpha,
                GemmScale<std::remove_const_t<A_>> beta, const GemmConfig& config, void* workspace = nullptr) {
  int64_t m = D.shape[0], n = D.shape[1], depth = A.shape[config.trans_a ? 0 : 1];
  ShapeCheck check("gemm");
  config.trans_a ? check.shape("A", A, {-1, m}, "[K, M]") : check.shape("A", A, {m, -1}, "[M, K]");
  config.trans_b ? check.shape("B", B, {n, depth}, "[N, K]") : check.shape("B", B, {depth, n}, "[K, N]");
  if (config.use_c) check.shape("C", C, {m, n}, "[M, N]");
  if (!check.ok()) return stream.refuse(check.error());
  return run_batched_gemm(k, stream, detail::as_batch(A), detail::as_batch(B), detail::as_batch(C), detail::as_batch(D),
                          alpha, beta, config, workspace);
}

/// D = A B: f16, bf16, f32 (IEEE), f64, i8 into i32, f8 into f16 or bf16.
template <class TIn, class TOut>
Status gemm(StreamAt stream, TensorView<const TIn, 2> A, Input<TIn, 2> B, TensorView<TOut, 2> D) {
  GemmConfig c = default_gemm_config(dtype_of<TIn>(), false, D.shape[0], D.shape[1], Machine::of(stream),
                                     /*along_k=*/false, A.shape[1]);
  return run_gemm(gemm_kernel<TIn, TOut>(), stream, A, B, TensorView<const TOut, 2>(D), D, 1.f, 0.f, c);
}
template <class TIn, class TOut>
requires(!std::is_const_v<TIn>) Status
    gemm(StreamAt stream, TensorView<TIn, 2> A, Input<TIn, 2> B, TensorView<TOut, 2> D) {
  return gemm<TIn, TOut>(stream, TensorView<const TIn, 2>(A), B, D);
}

}  // namespace tile::kernels
