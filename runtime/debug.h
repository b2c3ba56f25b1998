// debug.h - turns the records kernels left in a DebugRing into text and errors.
// Prints are put together again as tiles: one message per (site, program), whatever order the device wrote the elements
// in.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "abi.h"
#include "error.h"

namespace tile {

/// Where device_print goes: called with one complete message (no trailing newline). Empty restores stderr. Thread safe.
using PrintSink = std::function<void(const std::string&)>;
void set_print_sink(PrintSink sink);

struct DebugReport {
  std::vector<std::string> prints;
  std::vector<Diagnostic> failed_assertions;  ///< one per (site, program), in the order they were written
};
/// Reads a ring nobody writes any more.
DebugReport read_debug_ring(const KernelBinary& kernel, const DebugRing& ring);
/// Sends the prints to the sink; the assertions become an Error{device}.
Status deliver(const KernelBinary& kernel, const DebugReport& report);

/// Makes a ring ready for its next launch. Records are overwritten by a site that does not exist: one that is counted
/// but was never completed (its kernel died) must not look like a record of an earlier launch.
void clear_debug_ring(DebugRing& ring);
/// The same for the memory of a new ring.
void init_debug_ring(DebugRing& ring, uint32_t capacity);

inline DebugRecord* records_of(DebugRing* ring) { return reinterpret_cast<DebugRecord*>(ring + 1); }
inline const DebugRecord* records_of(const DebugRing* ring) { return reinterpret_cast<const DebugRecord*>(ring + 1); }

}  // namespace tile
