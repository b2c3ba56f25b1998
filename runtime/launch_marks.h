// launch_marks.h - what a kernel's code tells the CUDA runtime about launching it: symbols its module defines.
#pragma once

namespace tile {

/// A global of this name: every thread of the kernel executes griddepcontrol.wait before it touches memory, so the kernel
/// may be launched while the one in front of it in its stream ends. CUDA C++ of users may define it, too.
inline constexpr const char* kWaitsForStreamMark = "tile_waits_for_stream";

/// A global of this name beside it: the kernel has no loops, its programs end soon (cuda/early_launch.h).
inline constexpr const char* kStraightMark = "tile_straight";

}  // namespace tile
