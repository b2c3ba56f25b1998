// random_program.h - random structured programs over a few integer variables and small tiles, with two meanings: run
// directly in C++ with real control flow, or traced through the language. The fuzzer compares the two.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "dsl/tile.h"

namespace tile::fuzz {

inline constexpr int kScalars = 4;  ///< i32 variables of the outermost block
inline constexpr int kTiles = 2;    ///< tile<kLanes x i32> variables
inline constexpr int kLanes = 4;
inline constexpr int kResults = kScalars + kTiles * kLanes;

enum class Kind : uint8_t {
  add,
  mul,
  set,
  copy_declared,
  for_range,
  if_then,
  if_else,
  while_loop,
  continue_if,
  break_if,
  swap,
  add_assign,
  assign,
  when,
  late_declared,
  for_bounds,
  return_if,
  tile_add,
  tile_scale,
  tile_where,
  tile_sum,
  tile_swap,
  tile_fill,
  while_each,
  count
};

struct Node {
  Kind kind;
  int a = 0, b = 0, c = 0;
  std::vector<Node> body, other;
};

struct Program {
  uint32_t seed = 0;
  std::vector<Node> nodes;
};
Program random_program(uint32_t seed);

using Memory = std::array<int32_t, kResults>;
/// What memory holds after the program: its variables, or what was there before if it returned early.
Memory run_directly(const Program& p, Memory memory);
/// The same as a kernel that writes to `out`.
void trace_program(const Program& p, const Ptr<int32_t>& out);

}  // namespace tile::fuzz
