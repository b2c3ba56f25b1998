// tune.h - `bench --tune FILE`: the configurations of catalog problems, measured; winners into a tuning table.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "dsl/tuner.h"
#include "kernels/catalog.h"

namespace tile::bench {

struct TuneRequest {
  std::string file;  ///< read first if it exists, written after every problem
  TuneOptions options;
  int shown = 3;              ///< candidates printed per problem
  double least_gain = 0.01;   ///< over the untuned configuration, of a line worth keeping
  int confirming_rounds = 5;  ///< windows of each of the two
};

/// Of several runs of two configurations in turns, by how much the second is faster: the median of its gains in time,
/// or in cycles where those are known (above 0) and say less. Time alone follows the clock, cycles alone do not see
/// that small tiles draw more power and so lower it.
double confirmed_gain(const std::vector<TuneSample>& first, const std::vector<TuneSample>& second);

class CatalogTuner {
 public:
  /// Refuses a file with lines that cannot be read: writing it would lose them.
  static Result<CatalogTuner> open(std::shared_ptr<Device> device, TuneRequest request);

  /// Measures the row's space on this problem. The winner is the fastest whose results agree with the reference; it is
  /// kept if it also beats the untuned configuration in windows of launches, in turns with it. False when nothing ran or
  /// agreed; rows without a space and problems of a key already measured are passed over.
  bool tune(const kernels::CatalogRow& row, const kernels::Problem& problem);

 private:
  CatalogTuner(std::shared_ptr<Device> device, TuneRequest request)
      : device_(std::move(device)), request_(std::move(request)) {}
  Status keep(const TuningEntry& entry);
  Status forget(const TuningEntry& entry);

  std::shared_ptr<Device> device_;
  TuneRequest request_;
  TuningTable table_;
  std::set<std::string> done_;
};

}  // namespace tile::bench
