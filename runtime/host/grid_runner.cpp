// grid_runner.cpp - see grid_runner.h.
#include "runtime/host/grid_runner.h"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/debug.h"

namespace tile {

struct GridRunner::Threads {
  // oneTBB has no more workers than cores unless told: a larger TILE_NUM_THREADS is meant as said. (Such a control only
  // ever raises the limit here; one at or below the number of cores would hold back the user's own oneTBB.)
  explicit Threads(int n) : arena(n) {
    if (n > tbb::this_task_arena::max_concurrency())
      workers.emplace(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(n));
  }
  std::optional<tbb::global_control> workers;
  tbb::task_arena arena;
};

namespace {

constexpr size_t kScratchAlign = 64;

// Scratch memory of one thread, kept between kernels and grown when one needs more.
struct ThreadScratch {
  void* memory = nullptr;
  size_t size = 0;
  void release() {
    std::free(memory);
    *this = {};
  }
  void* at_least(size_t bytes) {
    // Launches of static objects' destructors come after this thread's end: they find nothing here and allocate anew.
    static thread_local struct End {
      ThreadScratch* scratch = nullptr;
      ~End() {
        if (scratch) scratch->release();
      }
    } end;
    if (bytes > size) {
      release();
      end.scratch = this;
      size = (bytes + kScratchAlign - 1) / kScratchAlign * kScratchAlign;
      memory = std::aligned_alloc(kScratchAlign, size);
      if (memory == nullptr) size = 0;
    }
    return memory;
  }
};
constinit thread_local ThreadScratch t_scratch;

struct Work {
  HostEntry entry;
  const uint64_t* slots;
  Grid grid;
  uint32_t arena_bytes;
  const KernelBinary* kernel;
  DebugRing* ring;  ///< null unless the kernel can fail an assertion
  std::atomic<bool> stop{false};
  std::atomic<bool> out_of_memory{false};

  void run(int64_t begin, int64_t end) {
    void* scratch = nullptr;
    if (arena_bytes > 0 && (scratch = t_scratch.at_least(arena_bytes)) == nullptr) {
      out_of_memory = stop = true;
      return;
    }
    HostProgram program;
    program.grid[0] = static_cast<int32_t>(grid.x);
    program.grid[1] = static_cast<int32_t>(grid.y);
    program.grid[2] = static_cast<int32_t>(grid.z);
    int64_t x = begin % grid.x, y = begin / grid.x % grid.y, z = begin / grid.x / grid.y;
    for (int64_t i = begin; i < end; ++i) {
      if (stop.load(std::memory_order_relaxed)) break;
      program.id[0] = static_cast<int32_t>(x);
      program.id[1] = static_cast<int32_t>(y);
      program.id[2] = static_cast<int32_t>(z);
      const uint32_t before = ring ? records_wanted() : 0;
      entry(slots, &program, scratch);
      if (ring && failed_assertion(before, program)) stop.store(true, std::memory_order_relaxed);
      if (++x == grid.x) {
        x = 0;
        if (++y == grid.y) y = 0, ++z;
      }
    }
#if defined(__x86_64__)
    _mm_sfence();  // large outputs are stored around the caches, in no order
#endif
  }

  uint32_t records_wanted() const { return std::atomic_ref<uint32_t>(ring->next).load(std::memory_order_relaxed); }
  // Whether this program, which has just returned, wrote an assertion. Others write records of theirs meanwhile: those
  // are told apart by their program; one that is not written yet has a site that does not exist (clear_debug_ring).
  bool failed_assertion(uint32_t from, const HostProgram& program) const {
    const uint32_t to = std::min(records_wanted(), ring->capacity);
    for (uint32_t i = from; i < to; ++i) {
      DebugRecord& r = records_of(ring)[i];
      bool mine = true;
      for (int d = 0; d < 3; ++d)
        mine &= std::atomic_ref<uint32_t>(r.program[d]).load(std::memory_order_relaxed) ==
                static_cast<uint32_t>(program.id[d]);
      const uint32_t site = std::atomic_ref<uint32_t>(r.site).load(std::memory_order_relaxed);
      if (mine && site < kernel->debug_sites.size() && kernel->debug_sites[site].kind == DebugSite::assertion)
        return true;
    }
    return false;
  }
};

}  // namespace

GridRunner::GridRunner(int threads) : threads_(std::max(1, threads)) {
  if (threads_ > 1) arena_ = std::make_unique<Threads>(threads_);
}
GridRunner::~GridRunner() = default;

bool GridRunner::run(HostEntry entry, const uint64_t* slots, const Grid& grid, uint32_t arena_bytes,
                     const KernelBinary& kernel, DebugRing* ring) {
  bool asserts = false;
  for (const DebugSite& site : kernel.debug_sites) asserts |= site.kind == DebugSite::assertion;
  Work work{entry, slots, grid, arena_bytes, &kernel, asserts ? ring : nullptr};
  const int64_t programs = grid.programs();
  if (threads_ == 1 || programs == 1) {
    work.run(0, programs);
  } else {
    // Isolated: the caller may itself be a oneTBB task, and must not pick up another of its tasks while it waits here.
    arena_->arena.execute([&] {
      tbb::this_task_arena::isolate([&] {
        tbb::parallel_for(tbb::blocked_range<int64_t>(0, programs),
                          [&](const tbb::blocked_range<int64_t>& r) { work.run(r.begin(), r.end()); });
      });
    });
  }
  return !work.out_of_memory;
}

}  // namespace tile
