// host_peaks.cpp - measured, not looked up: clocks of virtual machines are not what /proc/cpuinfo says. Compiled at
// -O3.
#include "tools/bench/host_peaks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

std::vector<char> g_from, g_to;
void copy_buffers() { std::memcpy(g_to.data(), g_from.data(), g_from.size()); }

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

double host_copy_peak() {
  g_from.assign(256u << 20, 1), g_to.assign(256u << 20, 2);
  double rate = best_rate(2.0 * static_cast<double>(g_from.size()), copy_buffers);
  g_from = {}, g_to = {};
  return rate;
}

void naive_attention(const float* q, const float* k, const float* v, float* o, int64_t heads, int64_t s, int64_t d,
                     float scale, bool causal) {
  std::vector<float> p(s);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < s; ++i) {
      int64_t visible = causal ? i + 1 : s;
      float top = -INFINITY, sum = 0;
      for (int64_t j = 0; j < visible; ++j) {
        float dot = 0;
        for (int64_t c = 0; c < d; ++c) dot += q[(h * s + i) * d + c] * k[(h * s + j) * d + c];
        p[j] = dot * scale;
        top = std::max(top, p[j]);
      }
      for (int64_t j = 0; j < visible; ++j) sum += p[j] = std::exp(p[j] - top);
      for (int64_t c = 0; c < d; ++c) {
        float out = 0;
        for (int64_t j = 0; j < visible; ++j) out += p[j] * v[(h * s + j) * d + c];
        o[(h * s + i) * d + c] = out / sum;
      }
    }
}

void naive_gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      c[i * n + j] = sum;
    }
}

}  // namespace tile::bench
