// launch.h - what tests of launches share: a kernel, the host device, a cache directory of their own.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <random>

#include "traced.h"

namespace tile::testing {

struct VecCfg {
  int BLOCK = 64;
};
inline auto make_vector_add(const char* name) {
  return kernel(name,
                [](const VecCfg& c, Ptr<const float> x, Ptr<const float> y, Ptr<float> out, I32 n) {
                  auto i = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
                  auto m = i < n;
                  store(out + i, load(x + i, {.mask = m}) + load(y + i, {.mask = m}), {.mask = m});
                })
      .grid([](const VecCfg& c, const float*, const float*, float*, int n) {
        return Grid{cdiv(n, std::max(c.BLOCK, 1))};
      });
}
inline std::shared_ptr<Device> host() { return open_device("host").value_or_throw(); }

/// A temporary cache directory; the standard cache reads its place once per process, so set before any use.
inline const std::string& cache_directory() {
  static const std::string dir = [] {
    std::string d = ::testing::TempDir() + "tile_dsl_cache_" + std::to_string(std::random_device{}());
    setenv("TILE_CACHE_DIR", d.c_str(), 1);
    return d;
  }();
  return dir;
}
struct Launch : ::testing::Test {
  static void SetUpTestSuite() { cache_directory(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_directory()); }
  void TearDown() override { set_jit_policy({}); }
  std::vector<float> x = std::vector<float>(1000), y = std::vector<float>(1000, 2.f),
                     out = std::vector<float>(1001, -1.f);
  void SetUp() override { std::iota(x.begin(), x.end(), 0.f); }
};

}  // namespace tile::testing
