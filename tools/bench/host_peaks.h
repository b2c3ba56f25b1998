// host_peaks.h - what one core can do: the yardsticks of the host figures.
#pragma once

namespace tile::bench {

/// f32 FLOP/s of fused multiply-adds in registers on one thread, with the widest vectors of this CPU.
double host_fma_peak();
/// Bytes/s (read + written) of copying between two large buffers, a part on each thread.
double host_copy_peak(int threads = 1);

}  // namespace tile::bench
