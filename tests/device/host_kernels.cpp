// host_kernels.cpp - see host_kernels.h; test_kernels.ptx.h has the same kernels for the GPU.
#include "tests/device/host_kernels.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/debug.h"

namespace tile::testing_kernels {
namespace {

template <class T>
T* pointer(uint64_t slot) {
  return reinterpret_cast<T*>(slot);
}

void iota(const uint64_t* s, const HostProgram* p, void*) {
  const int n = static_cast<int>(s[1]), begin = p->id[0] * kThreads;
  for (int i = begin; i < std::min(n, begin + kThreads); ++i) pointer<int32_t>(s[0])[i] = i;
}

void axpy(const uint64_t* s, const HostProgram* p, void*) {
  const auto n = static_cast<int64_t>(s[4]), begin = int64_t{p->id[0]} * kThreads;
  const float a = std::bit_cast<float>(static_cast<uint32_t>(s[6]));
  for (int64_t i = begin; i < std::min(n, begin + kThreads); ++i)
    pointer<float>(s[3])[i * static_cast<int64_t>(s[5])] += a * pointer<float>(s[0])[i * static_cast<int64_t>(s[2])];
}

void ids(const uint64_t* s, const HostProgram* p, void*) {
  const int64_t linear = (int64_t{p->id[2]} * p->grid[1] + p->id[1]) * p->grid[0] + p->id[0];
  pointer<int32_t>(s[0])[linear] = p->id[0] + 100 * p->id[1] + 10000 * p->id[2];
}

void delayed(const uint64_t* s, const HostProgram*, void*) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(s[2]));
  int32_t& out = *pointer<int32_t>(s[0]);
  out = 2 * out + static_cast<int32_t>(s[1]);
}

void write_record(DebugRing* ring, const HostProgram* p, uint32_t element, uint32_t bits) {
  const uint32_t at = std::atomic_ref<uint32_t>(ring->next).fetch_add(1);
  if (at >= ring->capacity) return;
  const auto id = [&](int d) { return static_cast<uint32_t>(p->id[d]); };
  records_of(ring)[at] = {0, {id(0), id(1), id(2)}, element, 0, bits};
}

void debug_print(const uint64_t* s, const HostProgram* p, void*) {
  const int n = static_cast<int>(s[1]), begin = p->id[0] * kThreads;
  for (int i = begin; i < std::min(n, begin + kThreads); ++i)
    write_record(pointer<DebugRing>(s[2]), p, static_cast<uint32_t>(i - begin),
                 static_cast<uint32_t>(pointer<int32_t>(s[0])[i]));
}

void debug_assert(const uint64_t* s, const HostProgram* p, void*) {
  const int n = static_cast<int>(s[1]), limit = static_cast<int>(s[2]), begin = p->id[0] * kThreads;
  bool failed = false;
  for (int i = begin; i < std::min(n, begin + kThreads); ++i) {
    const int32_t x = pointer<int32_t>(s[0])[i];
    if (x < limit) continue;
    failed = true;
    write_record(pointer<DebugRing>(s[4]), p, static_cast<uint32_t>(i - begin), static_cast<uint32_t>(x));
  }
  if (failed && s[3] != 0 && t_die) t_die(719);  // the launch failed
}

void fault(const uint64_t*, const HostProgram*, void*) {
  if (t_die) t_die(700);  // illegal address
}

void shared_end(const uint64_t* s, const HostProgram*, void*) { *pointer<int32_t>(s[0]) = 77; }
void nothing(const uint64_t*, const HostProgram*, void*) {}

// 1000 bytes of the arena, filled and read back: two programs in one arena at a time would show.
void use_arena(const uint64_t* s, const HostProgram* p, void* arena) {
  std::memset(arena, p->id[0] & 0xff, 1000);
  std::this_thread::yield();
  int wrong = reinterpret_cast<uintptr_t>(arena) % 64 != 0;
  for (int i = 0; i < 1000; ++i) wrong += static_cast<unsigned char*>(arena)[i] != (p->id[0] & 0xff);
  pointer<int32_t>(s[0])[p->id[0]] = wrong;
}

// out[position] = its coordinates; programs[i] counts program i's runs. Program p takes p, p + programs, ...
void work_ids(const uint64_t* s, const HostProgram* p, void*) {
  const auto x = static_cast<int64_t>(s[2]), y = static_cast<int64_t>(s[3]), z = static_cast<int64_t>(s[4]);
  ++pointer<int32_t>(s[1])[p->id[0]];
  for (int64_t at = p->id[0]; at < x * y * z; at += p->grid[0])
    pointer<int32_t>(s[0])[at] = static_cast<int32_t>(at % x + 100 * (at / x % y) + 10000 * (at / (x * y)));
}

// out[position] += 1, positions drawn from the counter.
void work_tickets(const uint64_t* s, const HostProgram* p, void*) {
  auto* counter = pointer<TicketCounter>(s[4]);
  const uint64_t total = s[1] * s[2] * s[3];
  while (true) {
    const uint32_t at = counter->next++;
    if (at >= total) break;
    ++pointer<int32_t>(s[0])[at];
  }
  if (++counter->done == static_cast<uint32_t>(p->grid[0])) *counter = {0, 0};
}

// Program (i, j) copies the box at column 32 i, row 8 j of x to the same place of y.
void copy_boxes(const uint64_t* s, const HostProgram* p, void*) {
  const auto* from = pointer<FakeTensorMap>(s[10]);
  const auto* to = pointer<FakeTensorMap>(s[11]);
  for (int64_t r = 0; r < from->box[1]; ++r)
    for (int64_t c = 0; c < from->box[0]; ++c) {
      const int64_t at[] = {p->id[0] * kBoxCols + c, p->id[1] * kBoxRows + r};
      const auto* in = static_cast<const float*>(from->find(at));
      if (auto* out = static_cast<float*>(to->find(at))) *out = in ? *in : 0.0f;
    }
}

// The reader of cycles.cpp: program i is multiprocessor i, whose clock makes a cycle in a nanosecond.
void read_clocks(const uint64_t* s, const HostProgram* p, void*) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  pointer<uint64_t>(s[0])[p->id[0]] =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

constexpr HostKernel kKernels[] = {
    {"iota", iota, 2},
    {"axpy", axpy, 7},
    {"ids", ids, 1},
    {"delayed", delayed, 3},
    {"debug_print", debug_print, 3},
    {"debug_assert", debug_assert, 5},
    {"fault", fault, 1},
    {"shared_end", shared_end, 2},
    {"narrow", nothing, 1},
    {"nothing", nothing, 0},
    {"nothing5", nothing, 5},
    {"use_arena", use_arena, 1},
    {"work_ids", work_ids, 2, true},
    {"work_tickets", work_tickets, 1, true, true},
    {"copy_boxes", copy_boxes, 10, false, false, 2},
    {"tile_read_clocks", read_clocks, 1},
};

}  // namespace

const HostKernel* find_host_kernel(const char* name) {
  for (const HostKernel& k : kKernels)
    if (std::strcmp(k.name, name) == 0) return &k;
  return nullptr;
}

}  // namespace tile::testing_kernels
