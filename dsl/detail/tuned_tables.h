// tuned_tables.h - the tuning tables built into the library; the build makes their list from kernels/tuned/*.txt.
#pragma once
#include <span>

namespace tile::detail {

struct TunedTable {
  const char* file;
  const char* text;
};
std::span<const TunedTable> tuned_tables();

}  // namespace tile::detail
