// block_lists.cpp - catalog rows of block_sparse.h and block_lists.h: products with listed blocks, and the lists.
#include "kernels/block_lists.h"

#include "kernels/block_sparse.h"
#include "kernels/catalog/case.h"
#include "kernels/catalog/rows.h"
#include "kernels/reference/gemm.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::HostTensor;
using reference::Placement;

enum class Product { sparse_dense, dense_sparse, sampled };

struct Sizes {
  int64_t m, n, k, bm, bk, density, skew, at, split;
  explicit Sizes(const Fields& f)
      : m(f["M"]),
        n(f["N"]),
        k(f["K"]),
        bm(f.get("bm", 64)),
        bk(f.get("bk", 64)),
        density(f.get("density", 50)),
        skew(f["skew"]),
        at(f["at"]),
        split(f["split"]) {}
};

/// The lists of one operand as a host knows them.
struct HostLists {
  std::vector<int32_t> offsets{0}, columns, rows, positions;
};

/// Which blocks of a rows x columns grid are present: each with probability `density` percent; with `skew`, row 1 has
/// all and row 2 none.
std::vector<char> random_blocks(int64_t rows, int64_t columns, int64_t density, bool skew, uint64_t seed) {
  HostTensor draw(DType::f32, {rows, columns});
  draw.fill_uniform(seed, 0, 100);
  std::vector<char> present(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      present[static_cast<size_t>(i * columns + j)] =
          skew && i == 1 ? 1 : skew && i == 2 ? 0 : draw.at({i, j}) < static_cast<double>(density);
  return present;
}

/// Lists by row, or by column (`columns` then holds rows); positions count the present blocks row by row.
HostLists lists_of(const std::vector<char>& present, int64_t rows, int64_t columns, bool by_column) {
  std::vector<int32_t> position(present.size());
  int32_t count = 0;
  for (size_t i = 0; i < present.size(); ++i) position[i] = present[i] ? count++ : -1;
  HostLists out;
  for (int64_t a = 0; a < (by_column ? columns : rows); ++a) {
    for (int64_t b = 0; b < (by_column ? rows : columns); ++b) {
      size_t at = static_cast<size_t>(by_column ? b * columns + a : a * columns + b);
      if (!present[at]) continue;
      out.columns.push_back(static_cast<int32_t>(b)), out.rows.push_back(static_cast<int32_t>(a));
      out.positions.push_back(position[at]);
    }
    out.offsets.push_back(static_cast<int32_t>(out.columns.size()));
  }
  return out;
}

HostTensor tensor_of(const std::vector<int32_t>& v) {
  HostTensor t(DType::i32, {static_cast<int64_t>(v.size())});
  for (size_t i = 0; i < v.size(); ++i) t.set({static_cast<int64_t>(i)}, v[i]);
  return t;
}

template <class T, Product kProduct>
const AnyKernel& kernel_of() {
  if constexpr (kProduct == Product::sparse_dense)
    return block_sparse_dense_kernel<T>();
  else if constexpr (kProduct == Product::dense_sparse)
    return dense_block_sparse_kernel<T>();
  else
    return sampled_dense_kernel<T>();
}

/// D = alpha op(S) B + beta C, or D = alpha A op(S) + beta C, or the blocks of alpha A B + beta S. The stored matrix is
/// `rows_` x `columns_` elements; with `at` the product takes its transpose, found through lists by column.
template <class T, Product kProduct>
class BlockListCase : public OutputCase {
 public:
  BlockListCase(const Problem& p, const ConfigWords& words)
      : s_(p.sizes),
        alpha_(p.sizes.get("alpha", 1)),
        beta_(p.sizes["beta"]),
        config_(block_sparse_dense_kernel<T>().from_words(words)) {
    // Of the sparse operand as the product sees it: m x k (sparse_dense), k x n (dense_sparse), m x n (sampled).
    rows_ = kProduct == Product::dense_sparse ? s_.k : s_.m;
    columns_ = kProduct == Product::sparse_dense ? s_.k : s_.n;
    if (s_.at) std::swap(rows_, columns_);
  }

  Status create(std::shared_ptr<Device> device) {
    const int64_t block_rows = cdiv(rows_, s_.bm), block_columns = cdiv(columns_, s_.bk);
    present_ = random_blocks(block_rows, block_columns, s_.density, s_.skew != 0, 3);
    // The product walks rows of op(S) (sparse_dense, sampled) or columns (dense_sparse).
    const bool by_column = (kProduct == Product::dense_sparse) != (s_.at != 0);
    lists_ = lists_of(present_, block_rows, block_columns, by_column);
    const auto entries = static_cast<int64_t>(lists_.columns.size());
    HostTensor values(dtype_of<T>(), {entries, s_.bm, s_.bk});
    values.fill_normal(1);
    clear_padding(values, lists_of(present_, block_rows, block_columns, false));
    HostTensor a(dtype_of<T>(), {s_.m, s_.k}), b(dtype_of<T>(), {s_.k, s_.n}), c(dtype_of<T>(), {s_.m, s_.n});
    a.fill_normal(4), b.fill_normal(5);
    if (beta_) c.fill_normal(6);
    if (kProduct == Product::sampled && beta_) initial_ = values;
    Steps s;
    s(values_.create(device, std::move(values)))(offsets_.create(device, tensor_of(lists_.offsets)));
    s(columns_list_.create(device, tensor_of(lists_.columns)))(rows_list_.create(device, tensor_of(lists_.rows)));
    s(positions_.create(device, tensor_of(lists_.positions)));
    s(a_.create(device, std::move(a)))(b_.create(device, std::move(b)))(c_.create(device, std::move(c)));
    s(d_.create(device, HostTensor(dtype_of<T>(), {s_.m, s_.n})));
    if (s_.split && s.ok()) {
      auto made = BlockSegments::create(device, lists_.offsets, s_.split,
                                        static_cast<int>(config_.transposed ? s_.bk : s_.bm), s_.n);
      if (!made) return made.error();
      segments_ = std::move(*made);
    }
    return s.status();
  }

  Status launch(Stream& stream) override {
    const auto alpha = static_cast<float>(alpha_), beta = static_cast<float>(beta_);
    BlockList<const T> list{values_.view<const T, 3>(), offsets_.view<const int32_t, 1>(),
                            columns_list_.view<const int32_t, 1>(), positions_.view<const int32_t, 1>()};
    if constexpr (kProduct == Product::sparse_dense)
      return block_sparse_dense<T>(stream, list, b_.view<const T, 2>(), c_.view<const T, 2>(), d_.view<T, 2>(), alpha,
                                   beta, config_, segments_ ? &*segments_ : nullptr);
    else if constexpr (kProduct == Product::dense_sparse)
      return dense_block_sparse<T>(stream, a_.view<const T, 2>(), list, c_.view<const T, 2>(), d_.view<T, 2>(), alpha,
                                   beta, config_);
    else
      return sampled_dense<T>(stream, a_.view<const T, 2>(), b_.view<const T, 2>(), rows_list_.view<const int32_t, 1>(),
                              columns_list_.view<const int32_t, 1>(), values_.view<T, 3>(), alpha, beta, config_);
  }

  Result<std::vector<Check>> check(Stream& stream, double budget) override {
    if (kProduct == Product::sampled && initial_) {  // updated in place: it must start from the same values
      values_.host = *initial_;
      Steps s;
      s(values_.upload());
      if (s.ok()) s(launch(stream));
      if (s.ok()) s(stream.synchronize());
      if (s.ok()) s(values_.download());
      if (!s.ok()) return s.error();
    } else if (Status ran = run_poisoned(stream); !ran) {
      return ran.error();
    }
    Arithmetic working = Arithmetic::working(dtype_of<T>());
    working.tf32 = config_.tf32;
    const HostTensor sparse = kProduct == Product::sampled ? HostTensor() : dense_of_values();
    const HostTensor& left = kProduct == Product::sparse_dense ? sparse : a_.host;
    const HostTensor& right = kProduct == Product::dense_sparse ? sparse : b_.host;
    reference::GemmSpec spec{kProduct == Product::sparse_dense && s_.at != 0,
                             kProduct == Product::dense_sparse && s_.at != 0,
                             static_cast<double>(alpha_),
                             kProduct == Product::sampled ? 0.0 : static_cast<double>(beta_),
                             {},
                             0};
    std::vector<int64_t> rows = sample(s_.m, static_cast<int64_t>(budget / (2.0 * static_cast<double>(s_.n * s_.k))));
    auto exact = gemm_rows(spec, left, right, &c_.host, rows, Arithmetic::exact());
    auto base = gemm_rows(spec, left, right, &c_.host, rows, working);
    Gathered g;
    for (size_t r = 0; r < rows.size(); ++r) {
      if (kProduct != Product::sampled) {
        g.add(d_.host.row({rows[r]}), exact[r], base[r]);
        continue;
      }
      add_sampled_row(g, rows[r], exact[r], base[r], working);
    }
    const HostTensor& out = kProduct == Product::sampled ? values_.host : d_.host;
    return std::vector<Check>{with_gaps(kProduct == Product::sampled ? "values" : "D",
                                        g.compare(reference::tolerance(dtype_of<T>(), s_.k, config_.tf32)), out)};
  }
  std::vector<NamedTensor> tensors() const override {
    return {{"values", &values_.host},
            {"offsets", &offsets_.host},
            {"columns", &columns_list_.host},
            {"rows", &rows_list_.host},
            {"positions", &positions_.host},
            {"a", &a_.host},
            {"b", &b_.host},
            {"d", &d_.host}};
  }
  Work work() const override {
    const double blocks = static_cast<double>(lists_.columns.size()), block = static_cast<double>(s_.bm * s_.bk);
    const double other = static_cast<double>(kProduct == Product::sparse_dense   ? s_.n
                                             : kProduct == Product::dense_sparse ? s_.m
                                                                                 : s_.k);
    const double dense = static_cast<double>(kProduct == Product::sparse_dense   ? s_.k * s_.n + s_.m * s_.n
                                             : kProduct == Product::dense_sparse ? s_.m * s_.k + s_.m * s_.n
                                                                                 : s_.m * s_.k + s_.k * s_.n);
    return {2 * blocks * block * other, sizeof(T) * (blocks * block + dense)};
  }

 private:
  std::vector<DeviceTensor*> outputs() override {
    if (kProduct == Product::sampled) return {&values_};
    return {&d_};
  }

  /// What a block has beyond the matrix's edge must be zero: it meets the padding of the other operand.
  void clear_padding(HostTensor& values, const HostLists& by_row) const {
    for (size_t e = 0; e < by_row.columns.size(); ++e)
      for (int64_t i = 0; i < s_.bm; ++i)
        for (int64_t j = 0; j < s_.bk; ++j)
          if (by_row.rows[e] * s_.bm + i >= rows_ || by_row.columns[e] * s_.bk + j >= columns_)
            values.set({static_cast<int64_t>(e), i, j}, 0);
  }

  HostTensor dense_of_values() const {
    HostTensor dense(dtype_of<T>(), {rows_, columns_});
    dense.fill(0);
    HostLists by_row = lists_of(present_, cdiv(rows_, s_.bm), cdiv(columns_, s_.bk), false);
    for (size_t e = 0; e < by_row.columns.size(); ++e)
      for (int64_t i = 0; i < s_.bm; ++i)
        for (int64_t j = 0; j < s_.bk; ++j) {
          int64_t row = by_row.rows[e] * s_.bm + i, column = by_row.columns[e] * s_.bk + j;
          if (row < rows_ && column < columns_)
            dense.set({row, column}, values_.host.at({static_cast<int64_t>(e), i, j}));
        }
    return dense;
  }

  void add_sampled_row(Gathered& g, int64_t row, const std::vector<double>& exact, const std::vector<double>& base,
                       const Arithmetic& working) const {
    const int64_t i = row / s_.bm;
    std::vector<double> actual, e, b;
    for (int32_t at = lists_.offsets[static_cast<size_t>(i)]; at < lists_.offsets[static_cast<size_t>(i) + 1]; ++at)
      for (int64_t j = 0; j < s_.bk; ++j) {
        int64_t column = lists_.columns[static_cast<size_t>(at)] * s_.bk + j;
        if (column >= s_.n) continue;
        double before = beta_ ? static_cast<double>(beta_) * initial_->at({at, row - i * s_.bm, j}) : 0;
        actual.push_back(values_.host.at({at, row - i * s_.bm, j}));
        e.push_back(exact[static_cast<size_t>(column)] + before);
        b.push_back(working.store(working.op(base[static_cast<size_t>(column)] + before)));
      }
    g.add(actual, e, b);
  }

  Sizes s_;
  int64_t alpha_, beta_, rows_ = 0, columns_ = 0;
  BlockListConfig config_;
  std::vector<char> present_;
  HostLists lists_;
  std::optional<HostTensor> initial_;
  std::optional<BlockSegments> segments_;
  DeviceTensor values_, offsets_, columns_list_, rows_list_, positions_, a_, b_, c_, d_;
};

template <Product kProduct>
CatalogRow product_row(const char* name, const char* summary) {
  CatalogRow row;
  row.name = name, row.summary = summary;
  row.peers = "torch BSR";
  row.dtypes = {"f16", "bf16", "f32", "tf32"};
  row.sizes = {"M",
               "N",
               "K",
               "bm, bk: size of a stored block (64)",
               "density: percent of blocks present (50)",
               "skew: block row 1 is full, block row 2 empty",
               "at: the product takes the transpose of what is stored",
               "split: longest segment of a block row, in entries (0: no segments)",
               "alpha: integer factor",
               "beta: integer factor of C"};
  for (const std::string& d : row.dtypes) {
    for (int64_t density : {0, 40})
      row.problems.push_back({d, {{"M", 256}, {"N", 136}, {"K", 192}, {"density", density}, {"skew", density != 0}}});
    row.problems.push_back(
        {d, {{"M", 130}, {"N", 75}, {"K", 145}, {"bm", 32}, {"bk", 32}, {"alpha", 2}, {"beta", -1}}, Purpose::edge});
  }
  for (int64_t block : {16, 128})  // S2.10
    row.problems.push_back({"f16", {{"M", 2 * block}, {"N", 144}, {"K", 3 * block}, {"bm", block}, {"bk", block}}});
  if (kProduct != Product::sampled) {
    for (const char* d : {"f16", "f32"})
      row.problems.push_back({d, {{"M", 192}, {"N", 100}, {"K", 128}, {"bm", 32}, {"bk", 64}, {"at", 1}}});
  }
  if (kProduct == Product::sparse_dense)
    for (const char* d : {"f16", "f32"})  // S2.11
      row.problems.push_back({d,
                              {{"M", 200},
                               {"N", 150},
                               {"K", 512},
                               {"bm", 32},
                               {"bk", 32},
                               {"density", 20},
                               {"skew", 1},
                               {"split", 5},
                               {"beta", 2}}});
  if (kProduct == Product::sparse_dense)  // wide enough for two warpgroups side by side
    row.problems.push_back({"f16", {{"M", 136}, {"N", 4104}, {"K", 192}, {"density", 60}}, Purpose::edge});
  for (int64_t block : {64, 128})
    for (int64_t density : {100, 50, 25, 10, 5, 1})
      row.problems.push_back(
          {"f16",
           {{"M", 8192}, {"N", 8192}, {"K", 8192}, {"bm", block}, {"bk", block}, {"density", density}},
           Purpose::bench});
  row.problems.push_back({"f16", {{"M", 1024}, {"N", 1024}, {"K", 1024}, {"density", 25}}, Purpose::bench_host});
  row.kernel = [](std::string_view d) -> const AnyKernel* {
    return with_float_type(d, [](auto t) -> const AnyKernel* { return &kernel_of<decltype(t), kProduct>(); });
  };
  row.default_config = [](const Problem& p, const Machine& machine) {
    Sizes s(p.sizes);
    const double per_row = static_cast<double>(cdiv(s.k, s.bk) * s.density) / 100;
    BlockListConfig c = default_block_list_config(storage_of(p.dtype), static_cast<int>(s.bm), static_cast<int>(s.bk),
                                                  p.dtype == "tf32", machine,
                                                  kProduct == Product::sparse_dense ? per_row : 0, s.n);
    c.transposed = s.at != 0, c.indirect = (kProduct == Product::dense_sparse) != (s.at != 0);
    c.segmented = s.split != 0;
    c.use_alpha = p.sizes.get("alpha", 1) != 1, c.use_c = p.sizes["beta"] != 0;
    return block_sparse_dense_kernel<float>().words(c);
  };
  row.prepare = [](std::shared_ptr<Device> device, const Problem& p, const ConfigWords& c) {
    return with_float_type(p.dtype,
                           [&](auto t) { return make_case<BlockListCase<decltype(t), kProduct>>(device, p, c); });
  };
  return row;
}

}  // namespace

CatalogRow block_sparse_dense_row() {
  return product_row<Product::sparse_dense>("block_sparse_dense", "D = alpha S B + beta C, S given by lists of blocks");
}
CatalogRow dense_block_sparse_row() {
  return product_row<Product::dense_sparse>("dense_block_sparse", "D = alpha A S + beta C, S given by lists of blocks");
}
CatalogRow sampled_dense_row() {
  return product_row<Product::sampled>("sampled_dense", "listed blocks of alpha A B + beta S");
}

}  // namespace tile::kernels
