// catalog.h - the list of kernels of this library. tilec, bench, the demo and the numeric tests read it; a kernel is
// added with its header, its float64 reference (reference/) and one row (catalog/*.cpp).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/jit.h"
#include "dsl/tuning_table.h"
#include "kernels/parts/machine.h"
#include "kernels/reference/compare.h"
#include "runtime/device.h"
#include "runtime/error.h"

namespace tile::reference {
class HostTensor;
}

namespace tile::kernels {

/// Ordered name = value pairs: the sizes of a problem. "M=128 N=64".
class Fields {
 public:
  Fields() = default;
  Fields(std::initializer_list<std::pair<std::string, int64_t>> items) : items_(items) {}
  int64_t operator[](std::string_view name) const;  ///< 0 when absent
  int64_t get(std::string_view name, int64_t absent) const;
  bool has(std::string_view name) const;
  Fields& set(std::string_view name, int64_t value);
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool empty() const { return items_.empty(); }
  std::string to_string() const;

 private:
  std::vector<std::pair<std::string, int64_t>> items_;
};

/// What a problem is for: ordinary and special cases of the numeric tests, timing on a GPU, timing on the host.
enum class Purpose : uint8_t {
  test,
  edge,
  bench,
  bench_host,
  build  ///< of a size that has another configuration: the gate compiles it, nobody runs it
};

/// One thing to compute: element type ("f16", "tf32", "i8", ...) and sizes; absent sizes have the row's defaults.
struct Problem {
  std::string dtype;
  Fields sizes;
  Purpose purpose = Purpose::test;
  std::string to_string() const { return dtype + " " + sizes.to_string(); }
};

struct Work {
  double flops = 0;  ///< as papers count them: multiply-adds twice, causal attention only its visible pairs
  double bytes = 0;  ///< minimum traffic: every input read once, every output written once
};

/// One output compared with the float64 reference.
struct Check {
  std::string output;
  reference::Comparison comparison;
};

/// A tensor of a case by the name it has in the formula: "q", "lse".
struct NamedTensor {
  std::string name;
  const reference::HostTensor* tensor;
};

/// A problem with its data on a device, ready to run again and again.
class Case {
 public:
  virtual ~Case() = default;
  /// Queues one run; the first one compiles (or takes the kernel from a cache).
  virtual Status launch(Stream& stream) = 0;
  /// Runs once on poisoned outputs and compares. Problems too large to compare whole are sampled, with about `budget`
  /// multiply-adds of reference work. Fails also when memory around an output was written.
  virtual Result<std::vector<Check>> check(Stream& stream, double budget = 2e9) = 0;
  /// Runs `times` more times on the same inputs; how many runs gave other bits than the first (0 for a deterministic
  /// kernel).
  virtual Result<int> differing_runs(Stream& stream, int times) = 0;
  virtual Work work() const = 0;
  /// The data as the host holds it: inputs, and outputs once run_to_host() ran. Empty for a case that shows none.
  virtual std::vector<NamedTensor> tensors() const { return {}; }
  /// Runs once on poisoned outputs and brings them to the host.
  virtual Status run_to_host(Stream& stream) = 0;
  /// Later launches use this config; false where a case must be prepared anew for that.
  virtual bool set_config(const ConfigWords&) { return false; }
};

/// How a row's configurations are tuned.
struct Tuning {
  std::string table;  ///< the name default configurations ask the tuning tables by
  TuningKey key;
  std::vector<ConfigWords> space;  ///< the first is what is used without a table
};

struct CatalogRow {
  std::string name, summary;
  std::vector<std::string> dtypes;
  std::vector<std::string> sizes;  ///< names a problem may set, with their meaning: "Sq: queries"
  std::vector<Problem> problems;
  /// The kernel for an element type of `dtypes`; null for a row that launches the kernels of other rows (`parts`).
  const AnyKernel* (*kernel)(std::string_view dtype) = nullptr;
  std::vector<std::string> parts;
  bool deterministic = true;  ///< the same launch gives the same bits every time
  std::string peers;          ///< what tools/compare.py times beside it
  /// What a launch without a config would use for this problem on this machine.
  ConfigWords (*default_config)(const Problem&, const Machine&) = nullptr;
  /// What to measure for this problem, an empty space: nothing; null for rows without a space.
  Tuning (*tuning)(const Problem&, const Machine&) = nullptr;
  /// Allocates, fills and uploads.
  Result<std::unique_ptr<Case>> (*prepare)(std::shared_ptr<Device>, const Problem&, const ConfigWords&) = nullptr;

  bool compilable() const { return kernel != nullptr; }
};

/// Every kernel, in the order of the documentation.
const std::vector<CatalogRow>& catalog();
/// By name; unknown names give a user error with the nearest spelling and the list.
Result<const CatalogRow*> find_kernel(std::string_view name);
/// "M=128 N=128 K=64" as a problem of the row; unknown element types and sizes are user errors with the list.
Result<Problem> parse_problem(const CatalogRow& row, const std::string& dtype, const std::string& sizes);
/// For tools that compile without arguments at hand: tensors are dense, 16-byte aligned, with sizes divisible by 16.
Specialization dense_specialization(const AnyKernel& kernel);

}  // namespace tile::kernels
