// host_peaks.cpp - measured, not looked up: clocks of virtual machines are not what /proc/cpuinfo says. Compiled at
// -O3.
#include "tools/bench/host_peaks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "tools/bench/timing.h"

namespace tile::bench {
namespace {

double best_rate(double units, void (*fn)()) {
  double best = 0;
  for (int i = 0; i < 20; ++i) best = std::max(best, units / (1e-3 * thread_ms(fn)));
  return best;
}

volatile float g_sink;
constexpr int64_t kSteps = 2'000'000;
constexpr int kChains = 12;  // more than latency x ports of any current core

template <class Vector>
__attribute__((always_inline)) inline void multiply_add(Vector& acc, const Vector& factor, const Vector& add) {
  if constexpr (sizeof(Vector) >= 32)
    asm volatile("vfmadd213ps %2, %1, %0" : "+x"(acc) : "x"(factor), "x"(add));
  else
    asm volatile("mulps %1, %0\n\taddps %2, %0" : "+x"(acc) : "x"(factor), "x"(add));
}

// Independent multiply-add chains. Assembler and named variables, because GCC splits vector arithmetic of an inlined
// template into baseline vectors before it reaches the function that may use wider ones, and keeps an array of them in
// memory.
template <class Vector>
__attribute__((always_inline)) inline void fma_chains() {
  Vector a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{}, i{}, j{}, k{}, l{};
  Vector factor = Vector{} + 0.999f, add = Vector{} + g_sink * 0 + 0.001f;
  for (int64_t step = 0; step < kSteps; ++step) {
    multiply_add(a, factor, add), multiply_add(b, factor, add), multiply_add(c, factor, add),
        multiply_add(d, factor, add);
    multiply_add(e, factor, add), multiply_add(f, factor, add), multiply_add(g, factor, add),
        multiply_add(h, factor, add);
    multiply_add(i, factor, add), multiply_add(j, factor, add), multiply_add(k, factor, add),
        multiply_add(l, factor, add);
  }
  g_sink = a[0] + b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i[0] + j[0] + k[0] + l[0];
}

typedef float Vec16 __attribute__((vector_size(64)));
typedef float Vec8 __attribute__((vector_size(32)));
typedef float Vec4 __attribute__((vector_size(16)));
#if defined(__x86_64__)
__attribute__((target("avx512f"))) void chains_avx512() { fma_chains<Vec16>(); }
__attribute__((target("avx2,fma"))) void chains_avx2() { fma_chains<Vec8>(); }
#endif
void chains_baseline() { fma_chains<Vec4>(); }

}  // namespace

double host_fma_peak() {
  double flops_per_lane = 2.0 * kSteps * kChains, best = best_rate(flops_per_lane * 4, chains_baseline);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    best = std::max(best, best_rate(flops_per_lane * 8, chains_avx2));
  if (__builtin_cpu_supports("avx512f")) best = std::max(best, best_rate(flops_per_lane * 16, chains_avx512));
#endif
  return best;
}

double host_copy_peak(int threads) {
  const size_t bytes = 256u << 20, part = bytes / static_cast<size_t>(threads);
  std::vector<char> from(bytes, 1), to(bytes, 2);
  auto copy = [&](int i) {
    const size_t first = part * static_cast<size_t>(i);
    std::memcpy(to.data() + first, from.data() + first, part);
  };
  double best = 0;
  for (int round = 0; round < 20; ++round) {
    const double ms = threads == 1 ? thread_ms([&] { copy(0); }) : wall_ms([&] {
      std::vector<std::thread> others;
      for (int i = 1; i < threads; ++i) others.emplace_back(copy, i);
      copy(0);
      for (std::thread& t : others) t.join();
    });
    best = std::max(best, 2e3 * static_cast<double>(part) * threads / ms);
  }
  return best;
}

}  // namespace tile::bench
