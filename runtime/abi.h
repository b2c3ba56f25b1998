// abi.h - what a compiled kernel is: the one record compiler and runtime share. Plain C++, no LLVM.
//
// Calling convention (version kAbiVersion). Every parameter of a kernel is flattened into 8-byte little-endian slots:
//   pointer   1 slot: the device address
//   scalar    1 slot: the value in the low bytes (i1 as 0/1; smaller integers extended; f16/bf16/f32/f64 by bits)
//   view      1 + 2*rank slots: device address, shape[0..rank) as i64, strides[0..rank) in elements as i64
// If uses_debug_ring, one more pointer slot follows: the DebugRing of this launch.
// If persistent, hidden slots follow: the grid's x, y, z as three i32, and with uses_tickets a pointer to the launch's
// TicketCounter. Last come the tensor maps, each a 128-byte .param aligned to 64.
// A CUDA kernel has one .param per slot, of the slot's own type (pointer and i64: 64 bit, scalars: their own width).
// A host kernel is  void entry(const uint64_t* slots, const HostProgram* program, void* arena)  and runs ONE program
// instance; `arena` is arena_bytes of scratch, 64-byte aligned, private to the calling thread, content undefined.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dtype.h"

namespace tile {

inline constexpr uint32_t kAbiVersion = 6;

enum class BinaryFormat : uint8_t { cubin, ptx, host_object };

inline constexpr int kMaxRank = 8;

struct ParamInfo {
  enum Kind : uint8_t { pointer, scalar, view } kind = pointer;
  DType dtype = DType::f32;  ///< pointee, scalar or view element type
  uint8_t rank = 0;          ///< views only, at most kMaxRank
  bool nullable = false;     ///< a null pointer is allowed (the kernel checks by itself)
  bool stored = false;       ///< views: boxes are stored through it, so no two of its elements may share an address
  // What the code relies on; every launch checks it. 0 (and -1 for the dimension): nothing.
  uint32_t align = 0;        ///< bytes the address is a multiple of, a power of two
  uint32_t multiple_of = 0;  ///< integer scalars
  bool one = false;          ///< integer scalars: the value is 1
  bool positive = false;     ///< integer scalars: above 0, or bulk copies cannot be made
  int8_t unit_stride = -1;   ///< the dimension whose stride is 1
  std::array<uint32_t, kMaxRank> stride_multiple_of{}, dim_multiple_of{};  ///< strides in elements
  std::string name;          ///< for messages; may be empty
  uint32_t slots() const { return kind == view ? 1u + 2u * rank : 1u; }
};

/// What ptxas (or the host code generator) said about the code.
struct Resources {
  int registers = 0;           ///< per thread; 0: not known
  int spill_store_bytes = 0, spill_load_bytes = 0, stack_bytes = 0;
  uint32_t static_shared_bytes = 0;
  std::string log;             ///< the assembler's own words
};

/// One shared-memory buffer (or host arena buffer): for reports and over-budget messages.
struct BufferInfo {
  std::string what;  ///< e.g. "ring of 3 x 128x64xf16", "scratch of reduce"
  std::string file;  ///< the user's line that needs it
  uint32_t line = 0;
  uint32_t offset = 0, bytes = 0;
};

/// A device_print or device_assert of the kernel; records in the ring refer to it by index.
struct DebugSite {
  enum Kind : uint8_t { print, assertion } kind = print;
  std::string message;
  DType dtype = DType::f32;
  std::vector<int> shape;  ///< empty: scalar
  std::string file;
  uint32_t line = 0;
};

/// Ring buffer of prints and failed assertions, in memory both sides can reach. The device appends with one atomic add on
/// `next`; records past `capacity` are dropped and counted by next - capacity. Value bits are zero-extended to 64.
struct DebugRecord {
  uint32_t site;       ///< index into KernelBinary::debug_sites
  uint32_t program[3];
  uint32_t element;    ///< row-major index inside the tile; 0 for scalars
  uint32_t pad;
  uint64_t bits;
};
struct DebugRing {
  uint32_t next;       ///< records wanted so far
  uint32_t capacity;
  uint64_t pad;
  // DebugRecord records[capacity] follows at offset 16
};
static_assert(sizeof(DebugRecord) == 32 && sizeof(DebugRing) == 16);

/// Passed to a host kernel: which program of which grid.
struct HostProgram {
  int32_t id[3];
  int32_t grid[3];
};
using HostEntry = void (*)(const uint64_t* slots, const HostProgram* program, void* arena);

/// A number made of a launch's slots: a constant and products of slots (integers read as signed, in 64 bits that wrap),
/// or `most`, where the sum is above it.
struct SlotSum {
  struct Term {
    int64_t factor = 1;
    std::vector<uint32_t> slots;  ///< numbers of the launch's slots
    bool operator==(const Term&) const = default;
  };
  int64_t constant = 0;
  std::vector<Term> terms;
  int64_t most = INT64_MAX;
  bool operator==(const SlotSum&) const = default;
};

/// A tensor map (the descriptor of bulk tensor copies) the launcher encodes from a view argument, or from a view that
/// the kernel makes of nothing but its arguments.
struct TensorMapInfo {
  uint32_t param = 0;      ///< index of the view among the kernel's parameters; of a made view's pointer
  DType dtype = DType::f32;
  uint8_t rank = 0;                 ///< 1 to 5, at most the view's
  std::array<int8_t, 5> dims{};     ///< view dim of each dim of the map; dims[0] is the one with stride 1
  std::array<uint16_t, 5> box{};    ///< elements per copy along each dim of the map
  uint8_t swizzle = 0;     ///< bytes: 0, 32, 64, 128
  bool written = false;    ///< copies go through it to the view; else only from the view
  bool tf32 = false;       ///< f32 arrives rounded to tf32 (the lower 13 bits zero): all that its readers look at
  /// Of dims[1], copies have what boxes leave at the end of the view: its size modulo box[1], or box[1] if nothing.
  bool remainder = false;
  /// Made views: the address in bytes, `rank` sizes, `rank` strides in elements (`dims` are the view's). Else empty.
  std::vector<SlotSum> made{};
  bool operator==(const TensorMapInfo&) const = default;
};

inline constexpr uint32_t kMaxTensorMaps = 16;  ///< of one kernel
inline constexpr size_t kMaxSumTerms = 16, kMaxTermSlots = 8;  ///< of a SlotSum
inline constexpr uint32_t kTensorMapBytes = 128, kTensorMapAlign = 64;

/// Who takes which position of the grid, in device memory, zero before and after every launch: programs draw `next`; the
/// last of `programs` to finish puts both back to zero.
struct TicketCounter {
  uint32_t next;
  uint32_t done;
};

struct KernelBinary {
  uint32_t abi_version = kAbiVersion;
  BinaryFormat format = BinaryFormat::cubin;
  std::string target;  ///< "sm_80", "sm_90a", "host"
  std::string entry;   ///< symbol name
  std::string bytes;   ///< cubin, PTX text or a relocatable object
  std::vector<ParamInfo> params;
  uint32_t threads = 1;       ///< threads per program (CUDA block size); 1 on the host
  uint32_t shared_bytes = 0;  ///< dynamic shared memory to ask for
  uint32_t arena_bytes = 0;   ///< host only
  bool uses_debug_ring = false;
  bool persistent = false;    ///< launch as many programs as run at a time (at most the grid); see the hidden slots above
  bool uses_tickets = false;
  bool varies_with_grid = false;  ///< for few programs (at most one per multiprocessor) it may be other code than for many
  uint32_t cluster = 1;  ///< programs along x that run in one cluster (compiled in): launches and the grid's x are multiples
  std::vector<TensorMapInfo> tensor_maps;
  std::vector<DebugSite> debug_sites;
  std::vector<BufferInfo> buffers;
  Resources resources;
};

}  // namespace tile
