// launch.h - what every launch checks before a device sees it: the grid and the flattened arguments (slots, see abi.h).
// A kernel never reads an argument that fails here, so a bad pointer or stride is an Error, not a fault on the device.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "abi.h"
#include "error.h"

namespace tile {

/// Programs in each direction; program_id(0) runs fastest. 64 bit so that a product computed by the user can be checked
/// here instead of wrapping before it arrives.
struct Grid {
  int64_t x = 1, y = 1, z = 1;
  bool empty() const { return x == 0 || y == 0 || z == 0; }
  /// The most that 64 bits hold where they are more: launches refuse such grids.
  int64_t programs() const {
    int64_t product = 0;
    if (empty()) return 0;
    const bool wraps = __builtin_mul_overflow(x, y, &product) || __builtin_mul_overflow(product, z, &product);
    return wraps ? INT64_MAX : product;
  }
};

/// The largest grid a device takes per dimension.
struct GridLimits {
  int64_t x = 2147483647, y = 2147483647, z = 2147483647;
};

/// Negative sizes and sizes over the device's limits are user errors that name the dimension and both numbers. A zero
/// is fine: such a launch has no programs and does nothing.
Status check_grid(const Grid& grid, const GridLimits& limits, std::string_view kernel);

/// The same for a persistent kernel, whose grid is walked by the programs and bounds no launch: any sizes whose product
/// is below 2^31.
Status check_persistent_grid(const Grid& grid, const KernelBinary& kernel);

/// What the kernel says about its hidden parameters (abi.h): tensor maps of views it has and within the hardware's
/// limits, tickets only with a work loop.
Status check_hidden(const KernelBinary& kernel);

/// `slots` against the kernel's parameters: the slot count, null pointers, the element's own alignment, negative
/// dimensions, views whose furthest element lies beyond 2^63 bytes, views to be written with two elements at one
/// address, and whatever else the code was compiled to rely on (alignment, unit strides, multiples). Costs a few
/// nanoseconds per parameter; allocates only to build an error.
Status check_arguments(const KernelBinary& kernel, const uint64_t* slots, size_t n);

/// The kernel's name as messages show it (host code carries a prefix of its own).
std::string_view display_name(const KernelBinary& kernel);

}  // namespace tile
