// settings.h - how much the tests of random programs run, from the environment.
#pragma once
#include <cstdlib>

namespace tile::testing {

inline int setting(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

}  // namespace tile::testing
