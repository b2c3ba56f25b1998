// estimate.cpp - lower bounds of what a configuration needs, read off its trace: what a tuner refuses without
// compiling.
#include <fmt/format.h>

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/warps.h"
#include "dsl/tracing/kernel_core.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile {
namespace {

int64_t bytes_of(mlir::Type type) {
  auto tile = mlir::dyn_cast<mlir::RankedTensorType>(type);
  if (!tile) return 0;
  const int64_t bits = tile.getElementType().getIntOrFloatBitWidth();
  return tile.getNumElements() * std::max<int64_t>(bits / 8, 1);
}

/// The load a product's operand comes from without arithmetic in between; null if there is none.
mlir::Operation* loaded(mlir::Value operand) {
  while (mlir::Operation* op = operand.getDefiningOp()) {
    if (mlir::isa<ir::LoadOp>(op)) return op;
    if (!mlir::isa<ir::TransOp, ir::ReshapeOp>(op)) return nullptr;
    operand = op->getOperand(0);
  }
  return nullptr;
}

}  // namespace

Status AnyKernel::check_budget(const std::string& target, const ConfigWords& config, const Specialization& spec) const {
  Result<ir::Target> t = ir::lookupTarget(target);
  if (!t) return t.error();
  const Traced traced = trace(config, spec);
  if (!traced) return traced.error();
  if (t->backend != ir::Backend::nvptx) return ok();
  int64_t carried = 0, staged = 0;
  int warps = 0;
  traced.state_->module->walk([&](mlir::func::FuncOp f) { warps = ir::warpsOf(f); });
  traced.state_->module->walk([&](mlir::scf::ForOp loop) {
    int64_t bytes = 0;
    for (mlir::Value v : loop.getRegionIterArgs()) bytes += bytes_of(v.getType());
    carried = std::max(carried, bytes);
    llvm::SmallPtrSet<mlir::Operation*, 8> loads;
    int64_t operands = 0;
    loop.walk([&](mlir::Operation* dot) {
      if (!mlir::isa<ir::DotOp, ir::BatchDotOp>(dot)) return;
      for (mlir::Value operand : {dot->getOperand(0), dot->getOperand(1)})
        if (mlir::Operation* load = loaded(operand); load && load->getParentOp() == loop && loads.insert(load).second)
          operands += bytes_of(load->getResult(0).getType());
    });
    staged = std::max(staged, operands);
  });
  if (staged > t->maxSharedBytes)
    return compile_error(
        fmt::format("one stage of the operands of a loop's products takes {} bytes of shared memory, {} has {}", staged,
                    target, t->maxSharedBytes));
  if (warps > 0) {
    const int64_t threads = 32 * warps, registers = carried / (4 * threads);
    const int64_t limit = std::min<int64_t>(255, t->registersPerSm / threads);
    if (registers > limit)
      return compile_error(fmt::format("what a loop carries takes {} registers of each of {} threads, {} has {}",
                                       registers, threads, target, limit));
  }
  return ok();
}

}  // namespace tile
