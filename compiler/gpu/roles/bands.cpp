// bands.cpp - see bands.h.
#include "compiler/gpu/roles/bands.h"

#include <cmath>

#include "compiler/analysis/definitions.h"
#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kMultiprocessors = 128;  ///< about as many as GPUs with roles have
constexpr int kNarrowest = 4, kWidest = 64;
constexpr int64_t kCached = int64_t{36} << 20;  ///< bytes of operands that a second-level cache of 50 MB holds

/// Whether programs may learn from memory, or tell others by it, which of them run first.
bool showsOrder(func::FuncOp func) {
  return func
      .walk([](Operation* op) {
        auto update = dyn_cast<AtomicRmwOp>(op);
        const bool shows = isa<AtomicCasOp, InlineAsmOp>(op) || (update && !update.getResult().use_empty()) ||
                           (isa<LoadOp, GatherOp>(op) && isVolatile(op)) || isAcquire(op) || isRelease(op);
        return shows ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

struct Axes {
  bool x = false, y = false;
};
/// Which program ids the copy's place depends on; nullopt: also on memory.
std::optional<Axes> axesOf(LoadSharedOp copy) {
  SmallVector<Value> place(copy.getIndices());
  place.push_back(copy.getView());
  Axes axes;
  for (Operation* op : definitionsBehind(place)) {
    if (auto id = dyn_cast<ProgramIdOp>(op)) {
      axes.x |= id.getAxis() == 0;
      axes.y |= id.getAxis() == 1;
    } else if (op->getNumRegions() || !isMemoryEffectFree(op)) {
      return std::nullopt;
    }
  }
  return axes;
}

/// Computes a scalar of the launch once more where the builder is; null: it is none.
Value again(OpBuilder& builder, Value value, IRMapping& done, int depth = 0) {
  constexpr int kDeepest = 32;
  if (Value known = done.lookupOrNull(value)) return known;
  if (isa<BlockArgument>(value)) return argumentOfKernel(value);
  Operation* op = value.getDefiningOp();
  if (depth == kDeepest || op->getNumRegions() || !isMemoryEffectFree(op) || isa<ProgramIdOp>(op)) return {};
  for (Value operand : op->getOperands()) {
    if (isa<ShapedType>(operand.getType())) return {};
    Value same = again(builder, operand, done, depth + 1);
    if (!same) return {};
    done.map(operand, same);
  }
  builder.clone(*op, done);
  return done.lookup(value);
}

/// Iterations of the loop, as 64 bits; null: not known when the kernel begins.
Value iterations(OpBuilder& builder, scf::ForOp loop, IRMapping& done) {
  const auto step = getConstantIntValue(loop.getStep());
  Value low = again(builder, loop.getLowerBound(), done), high = again(builder, loop.getUpperBound(), done);
  if (!step || *step <= 0 || !low || !high) return {};
  const Location loc = loop.getLoc();
  auto wide = [&](Value v) -> Value {
    return v.getType().isInteger(64) ? v : arith::ExtSIOp::create(builder, loc, builder.getI64Type(), v).getResult();
  };
  if (!low.getType().isInteger() || !high.getType().isInteger()) return {};
  Value length = arith::SubIOp::create(builder, loc, wide(high), wide(low));
  Value by = arith::ConstantIntOp::create(builder, loc, builder.getI64Type(), *step);
  return arith::DivSIOp::create(builder, loc, length, by);
}

}  // namespace

Bands bandsOf(func::FuncOp func, const std::vector<LoadGroup>& groups, const RoleSlice& slice, int programs) {
  auto cluster = func->getAttrOfType<IntegerAttr>(kClusterAttr);
  if ((cluster && cluster.getInt() > 1) || slice.isUneven() || showsOrder(func)) return {};
  Bands bands;
  int64_t ofX = 0, ofY = 0;
  for (const LoadGroup& group : groups) {
    Bands::Copies copies;
    for (Operation* up = group.first->getParentOp(); up != func; up = up->getParentOp())
      if (auto loop = dyn_cast<scf::ForOp>(up)) copies.loops.push_back(loop);
    if (copies.loops.empty()) continue;
    for (Operation* op : group.loads) {
      auto copy = dyn_cast<LoadSharedOp>(op);
      const std::optional<Axes> axes = copy ? axesOf(copy) : std::nullopt;
      if (!axes) return {};
      const SmemType type = copiedType(op);
      const int64_t bytes = type.getShape()[0] * type.getShape()[1] * type.elementBytes();
      if (axes->x && !axes->y) copies.ofX += bytes;
      if (axes->y && !axes->x) copies.ofY += bytes;
    }
    ofX += copies.ofX, ofY += copies.ofY;
    bands.copies.push_back(std::move(copies));
  }
  if (!ofX || !ofY) return {};
  // Of w x h programs at a time w ofX + h ofY bytes are read: the least where both are the same.
  const double width =
      std::sqrt(double{kMultiprocessors} * programs * static_cast<double>(ofY) / static_cast<double>(ofX));
  bands.width = std::clamp(static_cast<int>(std::lround(width)), kNarrowest, kWidest);
  return bands;
}

Value widthOfLaunch(OpBuilder& builder, Location loc, const Bands& bands) {
  if (!bands.width) return {};
  auto number = [&](Type type, int64_t x) -> Value { return arith::ConstantIntOp::create(builder, loc, type, x); };
  const Type i64 = builder.getI64Type();
  const Value width = number(builder.getI32Type(), bands.width);
  IRMapping done;
  Value all = number(i64, 0);
  auto extent = [&](uint32_t axis) -> Value {
    return arith::ExtUIOp::create(builder, loc, i64, NumProgramsOp::create(builder, loc, axis));
  };
  const Value x = extent(0), y = extent(1);
  for (const Bands::Copies& copies : bands.copies) {
    Value bytes = arith::AddIOp::create(builder, loc, arith::MulIOp::create(builder, loc, x, number(i64, copies.ofX)),
                                        arith::MulIOp::create(builder, loc, y, number(i64, copies.ofY)));
    for (scf::ForOp loop : copies.loops) {
      Value times = iterations(builder, loop, done);
      if (!times) return width;
      bytes = arith::MulIOp::create(builder, loc, bytes, times);
    }
    all = arith::AddIOp::create(builder, loc, all, bytes);
  }
  Value isLarge = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, all, number(i64, kCached));
  return arith::SelectOp::create(builder, loc, isLarge, width, number(builder.getI32Type(), INT32_MAX));
}

}  // namespace tile::ir
