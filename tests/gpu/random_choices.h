// random_choices.h - what makers of random kernels share: choices that all follow from one number.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <random>

#include "dsl/tile.h"

namespace tile::testing {

/// Chooses the program; all of it follows from the number.
struct RandomSeed {
  int seed = 1;
};

class Choices {
 public:
  explicit Choices(int seed) : random_(static_cast<uint32_t>(seed) * 2654435761u) {}
  int number(int64_t below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  bool one_in(int n) { return number(n) == 0; }
  int pick_of(std::initializer_list<int> list) { return list.begin()[number(static_cast<int64_t>(list.size()))]; }
  template <class List>
  void shuffle(List& list) {
    std::shuffle(list.begin(), list.end(), random_);
  }
  /// What a kernel may ask of a loop: nothing, mostly; else rather to do it than not.
  Choice choice() { return one_in(2) ? Choice::automatic : one_in(4) ? Choice::never : Choice::always; }
  LoopOptions loop_options() {
    LoopOptions o;
    o.stages = number(5);
    o.specialize = choice(), o.overlap = choice(), o.pingpong = choice();
    if (one_in(10)) o.unroll = 1 + number(3);
    return o;
  }

 private:
  std::mt19937 random_;
};

}  // namespace tile::testing
