// tensor_maps.cpp - see tensor_maps.h.
#include "runtime/cuda/tensor_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/launch.h"
#include "runtime/made_views.h"

namespace tile::cu {
namespace {

constexpr uint64_t kMaxExtent = uint64_t{1} << 32;  ///< inclusive
constexpr uint64_t kMaxStride = uint64_t{1} << 40;  ///< exclusive, bytes
constexpr uint64_t kAlign = 16;                     ///< of the address and the strides, bytes

CUtensorMapDataType type_of(const TensorMapInfo& m) {
  if (m.tf32) return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  switch (m.dtype) {
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::f32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::f64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case DType::i64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case DType::i32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::i16:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  }
}

CUtensorMapSwizzle swizzle_of(uint8_t bytes) {
  return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
         : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
         : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                       : CU_TENSOR_MAP_SWIZZLE_NONE;
}

/// The arguments of cuTensorMapEncodeTiled for a view.
struct Region {
  uint64_t address = 0;
  uint64_t dims[5]{}, strides[4]{};  ///< strides in bytes, of dims 1 and up
};

/// Empty: described. Else what stands in the way.
std::string describe(const TensorMapInfo& m, uint8_t view_rank, const uint64_t* view, const EmptyViews& empty,
                     Region& r) {
  const auto shape = [&](size_t d) { return static_cast<int64_t>(view[1 + static_cast<size_t>(m.dims[d])]); };
  const auto stride = [&](size_t d) {
    return static_cast<int64_t>(view[1 + view_rank + static_cast<size_t>(m.dims[d])]);
  };
  const bool no_elements = std::find(view + 1, view + 1 + view_rank, uint64_t{0}) != view + 1 + view_rank;
  if (no_elements) {
    r.address = m.written ? empty.sink : empty.zeros;
    std::fill_n(r.dims, m.rank, uint64_t{1});
    std::fill_n(r.strides, m.rank - 1, kAlign);
    return {};
  }
  r.address = view[0];
  if (r.address % kAlign != 0) return fmt::format("address {:#x} is not a multiple of {} bytes", r.address, kAlign);
  const auto element = static_cast<int64_t>(size_of(m.dtype));
  for (size_t d = 0; d < m.rank; ++d) {
    const int64_t extent = shape(d);
    if (static_cast<uint64_t>(extent) > kMaxExtent)
      return fmt::format("dimension {} has {} elements, more than 2^32", m.dims[d], extent);
    r.dims[d] = static_cast<uint64_t>(extent);
    if (d == 0) {
      if (extent > 1 && stride(d) != 1) return fmt::format("stride {} of dimension {} is not 1", stride(d), m.dims[d]);
      // Copies to memory write whole units of 16 bytes (seen on an H200): the last one would reach past the edge.
      if (m.written && extent * element % int64_t{kAlign} != 0)
        return fmt::format("dimension {} is written and has {} bytes, not a multiple of {}", m.dims[d],
                           extent * element, kAlign);
      continue;
    }
    if (extent == 1) {  // only index 0 is inside: any stride says the same
      r.strides[d - 1] = kAlign;
      continue;
    }
    int64_t bytes = 0;
    if (stride(d) <= 0 || __builtin_mul_overflow(stride(d), element, &bytes) ||
        static_cast<uint64_t>(bytes) >= kMaxStride || static_cast<uint64_t>(bytes) % kAlign != 0)
      return fmt::format(
          "stride {} of dimension {} ({} bytes per element) is not a multiple of {} bytes between 1 and 2^40",
          stride(d), m.dims[d], element, kAlign);
    r.strides[d - 1] = static_cast<uint64_t>(bytes);
  }
  return {};
}

}  // namespace

TensorMaps::TensorMaps(const Driver& driver, const KernelBinary& kernel, EmptyViews empty)
    : driver_(driver), kernel_(kernel), empty_(empty), bits_(slot_bits(kernel)) {
  for (const TensorMapInfo& m : kernel.tensor_maps) {
    Slot slot;
    for (uint32_t p = 0; p < m.param; ++p) slot.first_slot += kernel.params[p].slots();
    slot.key_words = m.made.empty() ? kernel.params[m.param].slots() : m.made.size();
    slot.entries.reserve(kEntries);
    maps_.push_back(std::move(slot));
  }
}

Status TensorMaps::encode(const uint64_t* slots, TensorMap* out) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < maps_.size(); ++i) {
    Slot& slot = maps_[i];
    const uint64_t* key = slots + slot.first_slot;
    Key made;
    if (const TensorMapInfo& m = kernel_.tensor_maps[i]; !m.made.empty()) {
      made_view(m, bits_, slots, /*is_null=*/*key == 0, made.data());
      key = made.data();
    }
    const Entry* entry = find(slot, key);
    if (entry == nullptr) [[unlikely]]
      if (Status added = add(i, key, entry); !added) return added;
    if (entry->refused != CUDA_SUCCESS) [[unlikely]]
      return refusal(i, fmt::format("cuTensorMapEncodeTiled: {}", driver_.describe(entry->refused)));
    out[i] = entry->map;
  }
  return ok();
}

const TensorMaps::Entry* TensorMaps::find(Slot& slot, const uint64_t* key) const {
  const auto same = [&](size_t at) {
    return slot.address[at] == key[0] && std::memcmp(slot.entries[at].key.data(), key, slot.key_words * 8) == 0;
  };
  const size_t used = slot.entries.size();
  if (slot.last_hit < used && same(slot.last_hit)) return &slot.entries[slot.last_hit];
  for (size_t at = 0; at < used; ++at)
    if (same(at)) return &slot.entries[slot.last_hit = at];
  return nullptr;
}

Status TensorMaps::add(size_t index, const uint64_t* key, const Entry*& out) {
  const TensorMapInfo& m = kernel_.tensor_maps[index];
  Region region;
  const uint8_t view_rank = m.made.empty() ? kernel_.params[m.param].rank : m.rank;
  if (const std::string why = describe(m, view_rank, key, empty_, region); !why.empty()) return refusal(index, why);
  uint32_t box[5], ones[5];
  for (size_t d = 0; d < m.rank; ++d) box[d] = m.box[d], ones[d] = 1;
  // Of the view's own rows, which the kernel goes by: those of a view without elements are not the map's.
  const uint64_t left = m.remainder ? key[1 + static_cast<size_t>(m.dims[1])] % box[1] : 0;
  if (left != 0) box[1] = static_cast<uint32_t>(left);
  Entry entry;
  entry.refused = driver_.cuTensorMapEncodeTiled(&entry.map, type_of(m), m.rank,
                                                 reinterpret_cast<void*>(region.address), region.dims, region.strides,
                                                 box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(m.swizzle),
                                                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  Slot& slot = maps_[index];
  std::copy_n(key, slot.key_words, entry.key.begin());
  size_t at = slot.entries.size();
  if (at < kEntries) {
    slot.entries.push_back(entry);
  } else {
    at = slot.next_victim;
    slot.next_victim = (at + 1) % kEntries;
    slot.entries[at] = entry;
  }
  slot.address[at] = key[0];
  slot.last_hit = at;
  out = &slot.entries[at];
  return ok();
}

Status TensorMaps::refusal(size_t index, const std::string& why) const {
  const uint32_t param = kernel_.tensor_maps[index].param;
  const std::string& name = kernel_.params[param].name;
  Error e = user_error(
      fmt::format("kernel '{}', argument {}{}: bulk copies cannot address {} view: {}; compile the kernel without them "
                  "(KernelOptions::tma = false)",
                  display_name(kernel_), param, name.empty() ? "" : fmt::format(" '{}'", name),
                  kernel_.tensor_maps[index].made.empty() ? "this" : "a", why));
  e.needs_plain_copies = true;
  return e;
}

}  // namespace tile::cu
