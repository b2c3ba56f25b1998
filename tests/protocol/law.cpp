// law.cpp - the value level as a plain program.
#include "tests/protocol/law.h"

namespace tile::ir::protocol {
using namespace mlir;

std::string productName(MmaOp mma, const std::function<std::string(Value)>& nameOf) {
  std::string a = isa<SmemType>(mma.getA().getType()) ? nameOf(mma.getA()) : "registers";
  return a + " * " + nameOf(mma.getB());
}

bool onlyMoves(SmemLoadOp load) {
  std::vector<Operation*> users(load->getUsers().begin(), load->getUsers().end());
  for (size_t i = 0; i < users.size(); ++i) {
    if (isa<ConvertOp>(users[i]))
      users.insert(users.end(), users[i]->getUsers().begin(), users[i]->getUsers().end());
    else if (!isa<ShareOp, SmemStoreOp>(users[i]))
      return false;
  }
  return !users.empty();
}

std::string shareName(const Val& source) { return source.content.empty() ? "a share" : source.content; }

std::vector<Reads> lawOf(func::FuncOp func, const Inputs& inputs) {
  std::vector<Reads> law;
  for (int64_t item = 0; item < inputs.items(); ++item) {
    Reads reads;
    auto nameOf = [](const Walker& walker, Value smem) {
      const Val& val = walker.get(smem);
      return val.content + (val.isTransposed ? " transposed" : "");
    };
    auto execute = [&](Operation* op, Walker& walker) {
      auto smemResult = [&](std::string content) { walker.set(op->getResult(0), Val(std::move(content))); };
      if (auto id = dyn_cast<ProgramIdOp>(op)) {
        walker.set(id.getResult(), Val{inputs.position(item)[id.getAxis()]});
      } else if (auto load = dyn_cast<LoadSharedOp>(op)) {
        smemResult(boxName(walker, load.getView(), load.getIndices(), load.getResult().getType()));
      } else if (isa<ShareOp>(op)) {
        smemResult(shareName(walker.get(op->getOperand(0))));
      } else if (auto gather = dyn_cast<GatherSharedOp>(op)) {
        smemResult(gatherName(walker, gather.getPtr(), gather.getOffsets(), gather.getMask()));
      } else if (auto trans = dyn_cast<SmemTransOp>(op)) {
        Val val = walker.get(trans.getSource());
        val.isTransposed = !val.isTransposed;
        walker.set(trans.getResult(), val);
      } else if (auto mma = dyn_cast<MmaOp>(op)) {
        reads.push_back(productName(mma, [&](Value v) { return nameOf(walker, v); }));
      } else if (auto load = dyn_cast<SmemLoadOp>(op)) {
        if (!onlyMoves(load)) reads.push_back("read " + nameOf(walker, load.getSource()));
        walker.set(load.getResult(), Val(nameOf(walker, load.getSource())));
      }
      return true;
    };
    Walker walker(func.getBody().front(), arguments(func, inputs), inputs, execute, nullptr);
    while (walker.step() != Walker::State::finished) {
    }
    law.push_back(std::move(reads));
  }
  return law;
}

}  // namespace tile::ir::protocol
