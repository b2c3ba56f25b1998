// host_peaks.h - what one core can do: the yardsticks of the host figures.
#pragma once
#include <cstdint>
#include <vector>

namespace tile::bench {

/// f32 FLOP/s of fused multiply-adds in registers on one thread, with the widest vectors of this CPU.
double host_fma_peak();
/// Bytes/s (read + written) of copying between two large buffers on one thread.
double host_copy_peak();

/// O = softmax(scale Q K^T) V as plain loops over [heads, s, d] (no tiling, no intrinsics; compiled at -O3): the naive
/// baseline.
void naive_attention(const float* q, const float* k, const float* v, float* o, int64_t heads, int64_t s, int64_t d,
                     float scale, bool causal);
/// C = A B as the plain triple loop, row times column.
void naive_gemm(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k);

}  // namespace tile::bench
