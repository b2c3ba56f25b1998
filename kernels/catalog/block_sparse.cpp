// block_sparse.cpp - catalog row of block_sparse_matmul.h. Blocks the masks drop hold NaN: touching one shows.
#include "kernels/block_sparse_matmul.h"
#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/reference/gemm.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;
using reference::Placement;

struct Sizes {
  int64_t m, n, k, bm, bn, bk, density;
  explicit Sizes(const Fields& f)
      : m(f["M"]),
        n(f["N"]),
        k(f["K"]),
        bm(f.get("bm", 64)),
        bn(f.get("bn", 64)),
        bk(f.get("bk", 64)),
        density(f.get("density", 50)) {}
};

/// 1 with probability `percent`, decided per entry from a uniform number.
HostTensor random_mask(Placement place, int64_t percent, uint64_t seed) {
  HostTensor draw(DType::f32, place.shape), mask(DType::i32, std::move(place));
  draw.fill_uniform(seed, 0, 100);
  reference::for_each_index(
      mask.shape(), [&](std::span<const int64_t> i) { mask.set(i, draw.at(i) < static_cast<double>(percent)); });
  return mask;
}

template <class T>
class BlockSparseCase : public OutputCase {
 public:
  BlockSparseCase(const Problem& p, const ConfigWords& words)
      : s_(p.sizes),
        transposed_masks_(p.sizes["mask_t"] != 0),
        config_(block_sparse_matmul_kernel<T>().from_words(words)) {}

  Status create(std::shared_ptr<Device> device) {
    HostTensor a(dtype_of<T>(), {s_.m, s_.k}), b(dtype_of<T>(), {s_.k, s_.n});
    a.fill_normal(1), b.fill_normal(2);
    auto mask_place = [&](int64_t rows, int64_t columns) {
      return Placement::ordered({rows, columns}, transposed_masks_ ? std::vector<int>{1, 0} : std::vector<int>{0, 1},
                                transposed_masks_ ? 3 : 0);
    };
    HostTensor mask_a = random_mask(mask_place(cdiv(s_.m, s_.bm), cdiv(s_.k, s_.bk)), s_.density, 3);
    HostTensor mask_b = random_mask(mask_place(cdiv(s_.k, s_.bk), cdiv(s_.n, s_.bn)), s_.density, 4);
    poison_dropped(a, mask_a, s_.bm, s_.bk);
    poison_dropped(b, mask_b, s_.bk, s_.bn);
    pairs_ = reference::block_pairs(mask_a, mask_b);
    Steps s;
    s(a_.create(device, std::move(a)))(b_.create(device, std::move(b)))(
        c_.create(device, HostTensor(dtype_of<T>(), {s_.m, s_.n})));
    s(mask_a_.create(device, std::move(mask_a)))(mask_b_.create(device, std::move(mask_b)));
    return s.status();
  }
  Status launch(Stream& stream) override {
    return block_sparse_matmul<T>(stream, a_.view<const T, 2>(), b_.view<const T, 2>(), c_.view<T, 2>(),
                                  mask_a_.view<const int32_t, 2>(), mask_b_.view<const int32_t, 2>(), config_);
  }
  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (Status ran = run_poisoned(stream); !ran) return ran.error();
    Arithmetic working = Arithmetic::working(dtype_of<T>());
    working.tf32 = config_.tf32;
    std::vector<int64_t> rows = sample(s_.m, static_cast<int64_t>(budget / (4.0 * static_cast<double>(s_.n * s_.k))));
    auto rows_of = [&](Arithmetic how) {
      return block_sparse_rows(a_.host, b_.host, mask_a_.host, mask_b_.host, s_.bm, s_.bn, s_.bk, rows, how);
    };
    auto exact = rows_of(Arithmetic::exact()), base = rows_of(working);
    Gathered g;
    for (size_t r = 0; r < rows.size(); ++r) g.add(c_.host.row({rows[r]}), exact[r], base[r]);
    return std::vector<Check>{
        with_gaps("C", g.compare(reference::tolerance(dtype_of<T>(), s_.k, config_.tf32)), c_.host)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"a", &a_.host}, {"b", &b_.host}, {"c", &c_.host}, {"mask_a", &mask_a_.host}, {"mask_b", &mask_b_.host}};
  }
  Work work() const override {
    double elements = static_cast<double>(s_.density) / 100 * static_cast<double>(s_.m * s_.k + s_.k * s_.n) +
                      static_cast<double>(s_.m * s_.n);
    return {2.0 * static_cast<double>(pairs_ * s_.bm * s_.bn * s_.bk), sizeof(T) * elements};
  }

 private:
  std::vector<DeviceTensor*> outputs() override { return {&c_}; }

  static void poison_dropped(HostTensor& t, const HostTensor& mask, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < mask.dim(0); ++i)
      for (int64_t j = 0; j < mask.dim(1); ++j) {
        if (mask.at({i, j}) != 0) continue;
        for (int64_t r = i * rows; r < std::min((i + 1) * rows, t.dim(0)); ++r)
          for (int64_t c = j * columns; c < std::min((j + 1) * columns, t.dim(1)); ++c) t.set({r, c}, NAN);
      }
  }

  Sizes s_;
  bool transposed_masks_;
  BlockSparseConfig config_;
  int64_t pairs_ = 0;
  DeviceTensor a_, b_, c_, mask_a_, mask_b_;
};

}  // namespace

CatalogRow block_sparse_row() {
  CatalogRow row;
  row.name = "block_sparse_matmul";
  row.summary = "C = A B, skipping blocks that the masks of A or B declare zero";
  row.peers = "torch BSR, cuBLAS dense";
  row.dtypes = {"f16", "bf16", "f32", "tf32"};
  row.sizes = {"M",
               "N",
               "K",
               "bm, bn, bk: block sizes (64)",
               "density: percent of blocks present in each mask (50)",
               "mask_t: masks are stored transposed, with gaps"};
  for (const std::string& d : row.dtypes) {
    for (int64_t density : {0, 30, 100})
      row.problems.push_back({d, {{"M", 128}, {"N", 192}, {"K", 256}, {"density", density}}});
    row.problems.push_back({d, {{"M", 128}, {"N", 96}, {"K", 160}, {"bm", 32}, {"bn", 32}, {"bk", 32}}});
    row.problems.push_back(
        {d, {{"M", 131}, {"N", 75}, {"K", 145}, {"bm", 32}, {"bn", 32}, {"bk", 32}}, Purpose::edge});  // E36
    row.problems.push_back({d, {{"M", 100}, {"N", 130}, {"K", 90}, {"mask_t", 1}}, Purpose::edge});
  }
  // fp32, blocks of 32, half of the blocks of each operand present: the sizes the kernel is usually shown with.
  row.problems.push_back(
      {"f32", {{"M", 1024}, {"N", 1024}, {"K", 1024}, {"bm", 32}, {"bn", 32}, {"bk", 32}}, Purpose::edge});
  row.problems.push_back(
      {"f32", {{"M", 1024}, {"N", 1024}, {"K", 1024}, {"bm", 32}, {"bn", 32}, {"bk", 32}}, Purpose::bench});
  row.problems.push_back(
      {"f32", {{"M", 1024}, {"N", 1024}, {"K", 1024}, {"bm", 32}, {"bn", 32}, {"bk", 32}}, Purpose::bench_host});
  for (int64_t density : {100, 50, 25, 10})
    row.problems.push_back({"f16", {{"M", 4096}, {"N", 4096}, {"K", 4096}, {"density", density}}, Purpose::bench});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &block_sparse_matmul_kernel<decltype(t)>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    Sizes s(p.sizes);
    return block_sparse_matmul_kernel<float>().words(
        default_block_sparse_config(storage_of(p.dtype), static_cast<int>(s.bm), static_cast<int>(s.bn),
                                    static_cast<int>(s.bk), p.dtype == "tf32", machine));
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype, [&](auto t) { return make_case<BlockSparseCase<decltype(t)>>(device, p, c); });
  };
  return row;
}

}  // namespace tile::kernels
