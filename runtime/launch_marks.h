// launch_marks.h - what a kernel's code tells the CUDA runtime about launching it: symbols its module defines.
#pragma once

namespace tile {

/// A global of this name: every thread of the kernel executes griddepcontrol.wait before it touches memory, so the kernel
/// may be launched while the one in front of it in its stream ends. CUDA C++ of users may define it, too.
inline constexpr const char* kWaitsForStreamMark = "tile_waits_for_stream";

/// A global of this name beside it: programs of the kernel are short, few instructions without loops
/// (cuda/early_launch.h).
inline constexpr const char* kShortMark = "tile_short";

}  // namespace tile
