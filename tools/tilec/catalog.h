// catalog.h - tilec's side of the kernel catalog.
#pragma once
#include "tools/tilec/commands.h"

namespace tilec {

/// Traces the row `choice.kernel` with its default configuration for the target, changed by the fields.
tile::Result<Source> catalogSource(const KernelChoice& choice, const std::string& target, bool* usageError);
/// Names of all rows.
std::vector<std::string> catalogNames();

}  // namespace tilec
