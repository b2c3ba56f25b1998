// differences.cpp - one run against the law.
#include "tests/protocol/differences.h"

namespace tile::ir::protocol {

std::string differences(mlir::func::FuncOp func, const Inputs& inputs, const std::vector<Reads>& law,
                        const MachineOptions& options) {
  Run run = runMachine(func, inputs, options);
  if (run.fault) return *run.fault;
  const size_t consumers = static_cast<size_t>(func->getAttrOfType<mlir::IntegerAttr>("tile.num_warps").getInt()) / 4;
  for (size_t item = 0; item < law.size(); ++item) {
    const std::vector<Reads>& taken = run.reads[static_cast<int64_t>(item)];
    if (taken.size() != consumers)
      return "position " + std::to_string(item) + " was taken by " + std::to_string(taken.size()) + " consumers";
    for (const Reads& reads : taken) {
      if (reads == law[item]) continue;
      for (size_t i = 0; i < std::max(reads.size(), law[item].size()); ++i) {
        std::string found = i < reads.size() ? reads[i] : "nothing",
                    expected = i < law[item].size() ? law[item][i] : "nothing";
        if (found != expected)
          return "position " + std::to_string(item) + ", read " + std::to_string(i) + ": found " + found +
                 ", expected " + expected;
      }
    }
  }
  return "";
}

}  // namespace tile::ir::protocol
