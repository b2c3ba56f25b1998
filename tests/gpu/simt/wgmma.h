// wgmma.h - the asynchronous products of one warpgroup. A thread's accumulator registers hold, while a product is on
// its way, a marker in place of the value: it names the product and the register. Only a later product of the same
// chain or a wgmma.wait_group that has the registers as in-outs may take it; anything else computes with a NaN.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/gpu/simt/machine.h"
#include "tests/gpu/simt/numbers.h"

namespace tile::testing {

struct Accumulator {
  int n = 0;
  bool integer = false;
  std::vector<float> values;  ///< 64 x n, row-major
  std::vector<int32_t> integers;
  uint32_t marker = 0;  ///< of the registers that stand for it now
  int unread = 0;       ///< registers of all threads that did not get their values yet
  uint64_t lastProduct = 0;
};

struct Product {
  uint64_t number = 0;  ///< 1, 2, ... in order of issue
  bool done = false, released = false;
  std::vector<std::pair<uint32_t, uint32_t>> sources;  ///< [address, end) it reads
};

struct Warpgroup {
  explicit Warpgroup(int threads) {
    meeting.size = threads;
    meeting.posted.resize(static_cast<size_t>(threads));
  }
  Meeting meeting;
  int registers = 0;  ///< per thread, now
  // products
  std::vector<std::shared_ptr<Product>> products;
  std::vector<uint64_t> groups;  ///< last product of each committed group
  uint64_t queue = 0;            ///< its products happen in order
  uint32_t nextMarker = 0;
  std::map<uint32_t, std::shared_ptr<Accumulator>> accumulators;  ///< by marker
};

inline Warpgroup& warpgroup() { return *program().groups[static_cast<size_t>(self().thread / 128)]; }

/// Where the matrix descriptors of wgmma point, by the hardware's rules.
struct MatrixDescriptor {
  uint32_t start = 0, leading = 0, stride = 0;  ///< bytes
  int swizzle = 0;                              ///< bytes of a swizzled row: 0, 32, 64, 128
  /// Throws when bits outside the fields are set.
  explicit MatrixDescriptor(uint64_t bits);
  /// Shared address of an element `mn` rows along M or N and `k` along K. `transposed`: M or N is the contiguous one.
  uint32_t address(int mn, int k, int bytes, bool transposed) const;
};

}  // namespace tile::testing
