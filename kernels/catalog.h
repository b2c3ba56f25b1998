// catalog.h - the list of kernels of this library. tilec, bench, the demo and the numeric tests read it; a kernel is added
// with its header, its float64 reference (reference/) and one row (catalog/*.cpp).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/parts/machine.h"
#include "kernels/reference/compare.h"
#include "runtime/abi.h"
#include "runtime/device.h"
#include "runtime/error.h"

namespace tile::kernels {

/// Ordered name = value pairs: problem sizes, config fields. "M=128 N=64".
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

/// What a problem is for. `gate` problems are traced and compiled offline for every GPU target.
enum class Purpose : uint8_t { test, edge, bench, demo };

/// One thing to compute: element type ("f16", "tf32", "i8", ...) and sizes; names of sizes as in the kernel's header.
struct Problem {
  std::string dtype;
  Fields sizes;
  Purpose purpose = Purpose::test;
  std::string to_string() const { return dtype + " " + sizes.to_string(); }
};

struct Work {
  double flops = 0;  ///< as every paper counts them (design formulas: causal attention counts visible pairs only)
  double bytes = 0;  ///< minimum traffic: every input read once, every output written once
};

/// One output compared with the float64 reference.
struct Check {
  std::string output;
  reference::Comparison comparison;
};

/// A problem with its data on a device, ready to run again and again.
class Case {
 public:
  virtual ~Case() = default;
  /// Queues one run; the first one compiles (or takes the kernel from a cache).
  virtual Status launch(Stream& stream) = 0;
  /// Runs once on poisoned outputs and compares. Problems too large to compare whole are sampled: about `budget` multiply-adds
  /// of reference work. Fails also when memory around an output was written.
  virtual Result<std::vector<Check>> check(Stream& stream, double budget = 2e9) = 0;
  virtual Work work() const = 0;
  /// The config in use, overrides included.
  virtual Fields config() const = 0;
};

/// A kernel in one (element type, config), not compiled yet.
struct Build {
  std::string dtype;
  Fields config;  ///< overrides of the defaults; unknown names are errors with the nearest spelling
  std::optional<Fields> sizes;  ///< problem the default config is chosen for; absent: the row's first problem
};

struct CatalogRow {
  std::string name, summary;
  std::vector<std::string> dtypes;
  std::vector<Problem> problems;
  /// Config fields with the values a build would use, overrides applied.
  std::function<Result<Fields>(const Build&, const Machine&)> config;
  /// Tile IR as text, with the user's locations.
  std::function<Result<std::string>(const Build&, const Machine&)> trace;
  /// Allocates, fills and uploads. `overrides` replaces fields of the default config.
  std::function<Result<std::unique_ptr<Case>>(std::shared_ptr<Device>, const Problem&, const Fields& overrides)> prepare;
};

/// Every kernel, in the order of the documentation.
const std::vector<CatalogRow>& catalog();
/// By name; unknown names give a user error with the nearest spelling and the list.
Result<const CatalogRow*> find_kernel(std::string_view name);

}  // namespace tile::kernels
