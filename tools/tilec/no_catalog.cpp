// no_catalog.cpp - tilec without the kernel library: only files.
#include <cstdio>

#include "tools/tilec/catalog.h"
#include "tools/tilec/roofline.h"

namespace tilec {

std::vector<std::string> catalogNames() { return {}; }

tile::Result<Source> catalogSource(const KernelChoice& choice, const std::string&, bool* usageError) {
  *usageError = true;
  return tile::user_error("unknown kernel '" + choice.kernel + "'; this build has no catalog: give a FILE.mlir or -");
}

tile::Result<Roofline> rooflineOf(const KernelChoice&, const std::string&, const ReportRequest&, bool* usageError) {
  *usageError = true;
  return tile::user_error("--problem needs a kernel of the catalog; this build has none");
}

int list(bool) {
  std::puts("no catalog in this build");
  return kOk;
}

}  // namespace tilec
