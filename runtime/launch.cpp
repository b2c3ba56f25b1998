// launch.cpp - the checks of launch.h. The good path is straight-line integer work; everything that builds text is out
// of line and cold.
#include "runtime/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace tile {
namespace {

[[gnu::cold, gnu::noinline]] Status grid_problem(const Grid& grid, const GridLimits& limits, std::string_view kernel) {
  const struct {
    char name;
    int64_t wanted, limit;
  } dims[] = {{'x', grid.x, limits.x}, {'y', grid.y, limits.y}, {'z', grid.z, limits.z}};
  for (const auto& d : dims) {
    if (d.wanted < 0)
      return user_error(
          fmt::format("kernel '{}': grid ({}, {}, {}) is negative in {}", kernel, grid.x, grid.y, grid.z, d.name));
    if (d.wanted > d.limit)
      return user_error(
          fmt::format("kernel '{}': grid ({}, {}, {}) has {} programs in {}, the device takes {}; put the "
                      "largest extent in x and divide it in the kernel",
                      kernel, grid.x, grid.y, grid.z, d.wanted, d.name, d.limit));
  }
  return user_error(
      fmt::format("kernel '{}': grid ({}, {}, {}) has 2^63 or more programs", kernel, grid.x, grid.y, grid.z));
}

std::string argument(const KernelBinary& kernel, size_t index) {
  const std::string& name = kernel.params[index].name;
  return fmt::format("kernel '{}', argument {}{}", display_name(kernel), index,
                     name.empty() ? "" : fmt::format(" '{}'", name));
}

[[gnu::cold, gnu::noinline]] Status slot_count_problem(const KernelBinary& kernel, size_t wanted,
                                                       const uint64_t* slots, size_t given) {
  return user_error(fmt::format("kernel '{}' takes {} argument slots ({} parameters), the launch passes {}",
                                display_name(kernel), wanted, kernel.params.size(),
                                slots || given == 0 ? fmt::format("{}", given) : "a null pointer"));
}

[[gnu::cold, gnu::noinline]] Status pointer_problem(const KernelBinary& kernel, size_t index, uint64_t address) {
  const ParamInfo& p = kernel.params[index];
  if (address == 0)
    return user_error(
        fmt::format("{}: null pointer, and the kernel uses it; an array without elements still needs an address (allocate "
                    "one element, or do not launch)",
                    argument(kernel, index)));
  const uint64_t natural = size_of(p.dtype);
  if (address % natural != 0)
    return user_error(fmt::format("{}: address {:#x} is not aligned for {} ({} bytes)", argument(kernel, index),
                                  address, name(p.dtype), natural));
  return user_error(
      fmt::format("{}: address {:#x} is not a multiple of {} bytes, which this kernel was compiled to rely on",
                  argument(kernel, index), address, p.align));
}

[[gnu::cold, gnu::noinline]] Status dim_problem(const KernelBinary& kernel, size_t index, int dim, int64_t extent) {
  return user_error(fmt::format("{}: dimension {} is negative ({})", argument(kernel, index), dim, extent));
}

std::string listed(const int64_t* numbers, int count) {
  std::string out;
  for (int d = 0; d < count; ++d) out += fmt::format("{}{}", d ? ", " : "", numbers[d]);
  return "[" + out + "]";
}

[[gnu::cold, gnu::noinline]] Status reach_problem(const KernelBinary& kernel, size_t index, const int64_t* shape,
                                                  int rank) {
  return user_error(fmt::format("{}: shape {} with strides {} of {} reaches 2^63 bytes or more from its start",
                                argument(kernel, index), listed(shape, rank), listed(shape + rank, rank),
                                name(kernel.params[index].dtype)));
}

// Whether every dim (of those in `order`, the innermost last) steps over all that lies inside it: then no two elements
// share an address. The reach was checked, so nothing wraps.
template <class Order>
bool nested(const int64_t* shape, const int64_t* strides, int rank, Order order) {
  uint64_t inside = 0;
  for (int i = rank - 1; i >= 0; --i) {
    const int d = order(i);
    if (shape[d] <= 1) continue;
    const uint64_t step = strides[d] < 0 ? -static_cast<uint64_t>(strides[d]) : static_cast<uint64_t>(strides[d]);
    if (step <= inside) return false;
    inside += static_cast<uint64_t>(shape[d] - 1) * step;
  }
  return true;
}

/// Looks for two elements at one address: distances, below the shape and not all 0, whose offsets add up to 0. Only
/// distances are tried that leave a multiple of what the dims inside step by: two dims are settled at once, three by a
/// walk along the outermost. Views that interleave in ways that kSteps tries do not settle pass.
class Collision {
 public:
  Collision(const int64_t* shape, const int64_t* strides, int rank) : shape_(shape), strides_(strides), rank_(rank) {
    std::iota(order_.begin(), order_.begin() + rank, 0);
    std::sort(order_.begin(), order_.begin() + rank, [&](int a, int b) { return step(a) > step(b); });
    for (int i = rank - 1; i >= 0; --i) {
      const Wide size = step(order_[i]), most = shape[order_[i]] - 1;
      within_[i] = within_[i + 1] + size * most;
      common_[i] = most > 0 ? gcd(size, common_[i + 1]) : common_[i + 1];
    }
    found_ = !nested(shape, strides, rank, [&](int i) { return order_[i]; }) && search(0, 0, false);
  }
  bool found() const { return found_; }
  /// One of the two elements.
  std::string element(bool first) const {
    std::array<int64_t, kMaxRank> at{};
    for (int d = 0; d < rank_; ++d) at[d] = std::max<int64_t>(first ? distance_[d] : -distance_[d], 0);
    return listed(at.data(), rank_);
  }

 private:
  using Wide = __int128;
  static constexpr int kSteps = 1 << 14;

  Wide step(int d) const { return strides_[d] < 0 ? -static_cast<Wide>(strides_[d]) : strides_[d]; }

  static Wide gcd(Wide a, Wide b) {
    while (b != 0) a = std::exchange(b, a % b);
    return a;
  }
  static Wide modulo(Wide a, Wide m) { return (a % m + m) % m; }
  /// What a times it is 1 modulo m, for a that shares no factor with m.
  static Wide inverse(Wide a, Wide m) {
    Wide r = modulo(a, m), next = m, x = 1, y = 0;
    while (next != 0) {
      const Wide q = r / next;
      r = std::exchange(next, r - q * next);
      x = std::exchange(y, x - q * y);
    }
    return modulo(x, m);
  }
  static Wide floor_div(Wide a, Wide b) { return a / b - (a % b < 0); }

  // Distances of dims i and after it that bring `offset` back to 0. Of two opposite answers one is looked for.
  bool search(int i, Wide offset, bool moved) {
    if (i == rank_) return moved && offset == 0;
    const int d = order_[i];
    const Wide size = step(d), most = shape_[d] - 1;
    if (size == 0) {
      distance_[d] = most > 0;
      return search(i + 1, offset, moved || most > 0);
    }
    Wide first = std::max(moved ? -most : 0, -floor_div(within_[i + 1] + offset, size));
    const Wide last = std::min(most, floor_div(within_[i + 1] - offset, size));
    // offset + n size must be a multiple of what dims inside step by: every `stride`-th n, if any.
    Wide stride = 1;
    if (const Wide inside = common_[i + 1]; inside != 0) {
      const Wide both = gcd(size, inside);
      stride = inside / both;
      if (offset % both != 0) return false;
      const Wide residue = modulo(modulo(-offset / both, stride) * inverse(size / both, stride), stride);
      first += modulo(residue - first, stride);
    }
    for (Wide n = first; n <= last && ++steps_ <= kSteps; n += stride) {
      distance_[d] = static_cast<int64_t>(strides_[d] < 0 ? -n : n);
      if (search(i + 1, offset + n * size, moved || n != 0)) return true;
    }
    distance_[d] = 0;
    return false;
  }

  const int64_t *shape_, *strides_;
  int rank_, steps_ = 0;
  std::array<int, kMaxRank> order_{};
  std::array<int64_t, kMaxRank> distance_{};
  std::array<Wide, kMaxRank + 1> within_{};  // how far dims i and after it reach
  std::array<Wide, kMaxRank + 1> common_{};  // the greatest common divisor of what they step by
  bool found_ = false;
};

[[gnu::cold, gnu::noinline]] Status check_apart(const KernelBinary& kernel, size_t index, const int64_t* shape) {
  const int rank = kernel.params[index].rank;
  const Collision collision(shape, shape + rank, rank);
  if (!collision.found()) return ok();
  return user_error(
      fmt::format("{}: the kernel writes to it, so its elements need addresses of their own; shape {} with strides {} "
                  "has elements {} and {} at the same one",
                  argument(kernel, index), listed(shape, rank), listed(shape + rank, rank), collision.element(true),
                  collision.element(false)));
}

// The first promise about dimension d (or the scalar, d < 0) that does not hold.
[[gnu::cold, gnu::noinline]] Status promise_problem(const KernelBinary& kernel, size_t index, int dim, const char* what,
                                                    int64_t value, int64_t wanted) {
  const std::string where = dim < 0 ? "" : fmt::format(" of dimension {}", dim);
  return user_error(fmt::format("{}: the {}{} is {}, this kernel was compiled to rely on {} {}",
                                argument(kernel, index), what, where, value,
                                wanted == 1 ? "its being" : "a multiple of", wanted));
}

[[gnu::cold, gnu::noinline]] Status stride_problem(const KernelBinary& kernel, size_t index, int64_t value) {
  Error e = user_error(fmt::format("{}: bulk copies cannot be made with a stride of {}; compile the kernel without them "
                                   "(KernelOptions::tma = false)",
                                   argument(kernel, index), value));
  e.needs_plain_copies = true;
  return e;
}

// Of dimensions with one element only that one is touched, whatever the stride.
Status check_view_promises(const KernelBinary& kernel, size_t index, const int64_t* shape) {
  const ParamInfo& p = kernel.params[index];
  const int64_t* strides = shape + p.rank;
  if (p.unit_stride >= 0 && p.unit_stride < p.rank && strides[p.unit_stride] != 1 && shape[p.unit_stride] > 1)
    return promise_problem(kernel, index, p.unit_stride, "stride", strides[p.unit_stride], 1);
  for (int d = 0; d < p.rank; ++d) {
    const int64_t stride = p.stride_multiple_of[static_cast<size_t>(d)],
                  dim = p.dim_multiple_of[static_cast<size_t>(d)];
    if (stride > 1 && strides[d] % stride != 0 && shape[d] > 1)
      return promise_problem(kernel, index, d, "stride", strides[d], stride);
    if (dim > 1 && shape[d] % dim != 0) return promise_problem(kernel, index, d, "extent", shape[d], dim);
  }
  return ok();
}

// The value of an integer scalar as its type says.
int64_t scalar_value(const ParamInfo& p, uint64_t slot) {
  switch (size_of(p.dtype)) {
    case 1:
      return static_cast<int8_t>(slot);
    case 2:
      return static_cast<int16_t>(slot);
    case 4:
      return static_cast<int32_t>(slot);
    default:
      return static_cast<int64_t>(slot);
  }
}

bool pointer_ok(const ParamInfo& p, uint64_t address) {
  if (address == 0) return p.nullable;
  const uint64_t mask = (size_of(p.dtype) - 1) | (p.align > 1 ? p.align - 1 : 0);  // both are powers of two
  return (address & mask) == 0;
}

// The furthest byte before and after the start, each below 2^63.
bool reach_ok(const int64_t* shape, const int64_t* strides, int rank, int64_t element) {
  int64_t after = 1, before = 0;
  for (int d = 0; d < rank; ++d) {
    int64_t span;
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &span)) return false;
    if (span >= 0 ? __builtin_add_overflow(after, span, &after) : __builtin_add_overflow(before, span, &before))
      return false;
  }
  int64_t bytes;
  return !__builtin_mul_overflow(after, element, &bytes) && !__builtin_mul_overflow(before, element, &bytes);
}

}  // namespace

std::string_view display_name(const KernelBinary& kernel) {
  std::string_view name = kernel.entry;
  if (name.starts_with("tile.")) name.remove_prefix(5);
  return name;
}

Status check_grid(const Grid& grid, const GridLimits& limits, std::string_view kernel) {
  const bool sizes_ok =
      grid.x >= 0 && grid.y >= 0 && grid.z >= 0 && grid.x <= limits.x && grid.y <= limits.y && grid.z <= limits.z;
  int64_t product;
  if (!sizes_ok || __builtin_mul_overflow(grid.x, grid.y, &product) ||
      __builtin_mul_overflow(product, grid.z, &product))
    return grid_problem(grid, limits, kernel);
  return ok();
}

Status check_persistent_grid(const Grid& grid, const KernelBinary& binary) {
  constexpr int64_t kMost = 2147483647;
  constexpr GridLimits kAny{kMost, kMost, kMost};
  const std::string_view kernel = display_name(binary);
  if (Status sizes = check_grid(grid, kAny, kernel); !sizes) [[unlikely]]
    return sizes;
  if (grid.x % binary.cluster != 0) [[unlikely]]
    return user_error(fmt::format("kernel '{}' runs in clusters of {} programs along x, the grid's x is {}", kernel,
                                  binary.cluster, grid.x));
  if (grid.programs() > kMost) [[unlikely]]
    return user_error(
        fmt::format("kernel '{}': grid ({}, {}, {}) has {} positions, a persistent kernel walks at most {}", kernel,
                    grid.x, grid.y, grid.z, grid.programs(), kMost));
  return ok();
}

/// What is wrong with the numbers of a view that the kernel makes; empty: nothing.
static std::string problem_of_made(const KernelBinary& kernel, const TensorMapInfo& m) {
  if (m.made.size() != 1 + 2 * size_t{m.rank})
    return fmt::format("{} numbers of a made view of rank {}", m.made.size(), m.rank);
  size_t slots = 0;
  for (const ParamInfo& p : kernel.params) slots += p.slots();
  for (const SlotSum& sum : m.made) {
    if (sum.terms.size() > kMaxSumTerms) return fmt::format("a sum of {} terms", sum.terms.size());
    for (const SlotSum::Term& term : sum.terms) {
      if (term.slots.size() > kMaxTermSlots) return fmt::format("a product of {} slots", term.slots.size());
      for (uint32_t slot : term.slots)
        if (slot >= slots) return fmt::format("slot {} of {}", slot, slots);
    }
  }
  return {};
}

Status check_hidden(const KernelBinary& kernel) {
  const auto wrong = [&](size_t map, const std::string& what) {
    return internal_error(fmt::format("kernel '{}', tensor map {}: {}", display_name(kernel), map, what));
  };
  if (kernel.uses_tickets && !kernel.persistent)
    return internal_error(fmt::format("kernel '{}' draws tickets but is not persistent", display_name(kernel)));
  if (kernel.cluster < 1 || (kernel.cluster > 1 && (!kernel.persistent || kernel.uses_tickets)))
    return internal_error(fmt::format("kernel '{}' runs in clusters of {}, which needs a work loop without tickets",
                                      display_name(kernel), kernel.cluster));
  if (kernel.tensor_maps.size() > kMaxTensorMaps)
    return compile_error(fmt::format("kernel '{}' has {} tensor maps, a launch takes {}", display_name(kernel),
                                     kernel.tensor_maps.size(), kMaxTensorMaps));
  for (size_t i = 0; i < kernel.tensor_maps.size(); ++i) {
    const TensorMapInfo& m = kernel.tensor_maps[i];
    const bool is_made = !m.made.empty();
    if (m.param >= kernel.params.size() || kernel.params[m.param].kind == ParamInfo::scalar ||
        (!is_made && kernel.params[m.param].kind != ParamInfo::view))
      return wrong(i, fmt::format("parameter {} is not a view", m.param));
    const ParamInfo& view = kernel.params[m.param];
    const uint8_t view_rank = is_made ? m.rank : view.rank;
    if (m.rank < 1 || m.rank > m.dims.size() || m.rank > view_rank)
      return wrong(i, fmt::format("rank {} of a view of rank {}", m.rank, view_rank));
    if (m.dtype == DType::i1 || size_of(m.dtype) != size_of(view.dtype))
      return wrong(i, fmt::format("elements {} of a view of {}", name(m.dtype), name(view.dtype)));
    if (const std::string bad = is_made ? problem_of_made(kernel, m) : ""; !bad.empty()) return wrong(i, bad);
    if (m.tf32 && (m.dtype != DType::f32 || m.written))
      return wrong(i, fmt::format("{} {} as tf32", m.written ? "writes" : "reads", name(m.dtype)));
    if (m.remainder && (m.rank < 2 || m.written))
      return wrong(i, m.written ? "writes what is left of rows" : "what is left of rows, in one dim");
    uint32_t seen = 0;
    for (size_t d = 0; d < m.rank; ++d) {
      if (m.dims[d] < 0 || m.dims[d] >= view_rank || (seen >> m.dims[d] & 1))
        return wrong(i, fmt::format("dim {} is dim {} of the view", d, m.dims[d]));
      seen |= 1u << m.dims[d];
      if (m.box[d] < 1 || m.box[d] > 256) return wrong(i, fmt::format("box of {} elements in dim {}", m.box[d], d));
    }
    const uint64_t row = m.box[0] * size_of(m.dtype);
    if (m.swizzle != 0 && m.swizzle != 32 && m.swizzle != 64 && m.swizzle != 128)
      return wrong(i, fmt::format("swizzle of {} bytes", m.swizzle));
    if (row % 16 != 0 || (m.swizzle != 0 && row > m.swizzle))
      return wrong(i, fmt::format("rows of {} bytes with a swizzle of {}", row, m.swizzle));
  }
  return ok();
}

Status check_arguments(const KernelBinary& kernel, const uint64_t* slots, size_t n) {
  size_t wanted = 0;
  for (const ParamInfo& p : kernel.params) wanted += p.slots();
  if (wanted != n || (slots == nullptr && n > 0)) return slot_count_problem(kernel, wanted, slots, n);
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const ParamInfo& p = kernel.params[i];
    if (p.kind == ParamInfo::pointer) {
      if (!pointer_ok(p, *slots)) return pointer_problem(kernel, i, *slots);
    } else if (p.kind == ParamInfo::view) {
      const int64_t* shape = reinterpret_cast<const int64_t*>(slots + 1);
      bool empty = false;
      for (int d = 0; d < p.rank; ++d) {
        if (shape[d] < 0) return dim_problem(kernel, i, d, shape[d]);
        empty |= shape[d] == 0;
      }
      if (!empty) {  // nothing of an empty view is ever touched, its pointer may be anything
        if (!pointer_ok(p, *slots)) return pointer_problem(kernel, i, *slots);
        if (!reach_ok(shape, shape + p.rank, p.rank, static_cast<int64_t>(size_of(p.dtype))))
          return reach_problem(kernel, i, shape, p.rank);
        if (Status kept = check_view_promises(kernel, i, shape); !kept) return kept;
        if (p.stored && !nested(shape, shape + p.rank, p.rank, [](int d) { return d; })) [[unlikely]]
          if (Status apart = check_apart(kernel, i, shape); !apart) return apart;
      }
    } else if (p.multiple_of > 1 || p.one || p.positive) {
      const int64_t value = scalar_value(p, *slots);
      if (p.positive && value <= 0) return stride_problem(kernel, i, value);
      if (p.one && value != 1) return promise_problem(kernel, i, -1, "value", value, 1);
      if (p.multiple_of > 1 && value % p.multiple_of != 0)
        return promise_problem(kernel, i, -1, "value", value, p.multiple_of);
    }
    slots += p.slots();
  }
  return ok();
}

}  // namespace tile
