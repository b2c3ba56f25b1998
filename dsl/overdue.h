// overdue.h - says when a call takes longer than it should, while it goes on: what runs on a host cannot be stopped.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tile {

class Overdue {
 public:
  explicit Overdue(double seconds) : patience_(std::chrono::duration_cast<Clock::duration>(Seconds(seconds))) {}
  ~Overdue();
  Overdue(const Overdue&) = delete;
  Overdue& operator=(const Overdue&) = delete;
  /// From here until end(): `tell` is called, once and in another thread, when the time is up.
  void begin(std::function<void()> tell);
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  void watch();
  const Clock::duration patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> tell_;  ///< empty: nothing runs, or it was told
  Clock::time_point deadline_{};
  bool over_ = false;
  std::thread watcher_;  ///< started by the first begin()
};

}  // namespace tile
