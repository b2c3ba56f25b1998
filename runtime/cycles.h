// cycles.h - what work cost a GPU in cycles of its multiprocessors. A chip at its power limit changes its clock from one
// millisecond to the next; cycles of code that computes do not change with it, so they rank variants where time cannot.
//
//   auto counter = CycleCounter::create(stream).value_or_throw();
//   counter.begin(stream), kernel(stream, ...), counter.end(stream);
//   stream.synchronize();
//   double cycles = counter.cycles().value_or_throw();
#pragma once
#include <memory>
#include <span>

#include "buffer.h"

namespace tile {

/// Counts between two points of one stream: a small kernel at each of them reads the running counters of all
/// multiprocessors. Other work on the device at that time counts, too.
class CycleCounter {
 public:
  /// Measures what it costs itself, which cycles() then leaves out. An error where the device cannot count (the host).
  static Result<CycleCounter> create(Stream& stream);
  Status begin(Stream& stream) { return read(stream, 0); }
  Status end(Stream& stream) { return read(stream, 1); }
  /// Between the last begin and end, both done: the median over the multiprocessors, at least 1.
  Result<double> cycles() const;

 private:
  Status read(Stream& stream, size_t which);
  Result<double> raw_cycles() const;
  std::shared_ptr<Module> reader_;
  Buffer<uint64_t> clocks_;  ///< a row of begin, a row of end; by number of the multiprocessor
  double own_ = 0;           ///< of an empty interval
};

/// The median of end - begin over the multiprocessors that were read at both points (0: was not read); 0 where fewer
/// than half of `multiprocessors` were.
double median_cycles(std::span<const uint64_t> begin, std::span<const uint64_t> end, int multiprocessors);

}  // namespace tile
