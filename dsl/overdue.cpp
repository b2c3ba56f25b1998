// overdue.cpp - see overdue.h.
#include "dsl/overdue.h"

#include <utility>

namespace tile {

Overdue::~Overdue() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  if (watcher_.joinable()) watcher_.join();
}

void Overdue::begin(std::function<void()> tell) {
  {
    std::lock_guard lock(mutex_);
    tell_ = std::move(tell);
    deadline_ = Clock::now() + patience_;
    if (!watcher_.joinable()) watcher_ = std::thread([this] { watch(); });
  }
  changed_.notify_one();
}

// Locked: once it returns nothing is told any more.
void Overdue::end() {
  std::lock_guard lock(mutex_);
  tell_ = nullptr;
}

void Overdue::watch() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (!tell_) {
      changed_.wait(lock);
    } else if (Clock::now() < deadline_) {
      changed_.wait_until(lock, deadline_);
    } else {
      std::exchange(tell_, nullptr)();
    }
  }
}

}  // namespace tile
