// narrow_indices.cpp - see the header.
//   1. From every address (offsets of boxes, offsets of pointers) back through sums, products with constants, and
//      changes of shape and width: an upper bound that is linear in the program's ids, where there is one.
//   2. A sum or product of 32 bits with such a bound is a limit for grids. What depends on anything else has none: the
//      parts of it that have one are limits of their own, also those that quotients and remainders are taken of. As no
//      launch lets these wrap, they say so (nsw): what they divide into is known to begin at 0. So does what a loop
//      counts from, where the counter is divided (pages of a part of a sequence).
//   3. Sizes of parameters that are truncated to 32 bits.
#include "dsl/tracing/narrow_indices.h"

#include <fmt/format.h>

#include <optional>

#include "compiler/dialect/dialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

namespace tile::detail {
using namespace mlir;

class NarrowIndices::Finder {
 public:
  explicit Finder(NarrowIndices& found) : found_(found) {}

  void visit(Operation* op) {
    if (auto load = dyn_cast<ir::LoadOp>(op)) return all(load.getIndices());
    if (auto store = dyn_cast<ir::StoreOp>(op)) return all(store.getIndices());
    if (auto add = dyn_cast<ir::AccumulateOp>(op)) return all(add.getIndices());
    if (auto add = dyn_cast<ir::PtrAddOp>(op)) return (void)bound(add.getOffset());
    if (auto narrow = dyn_cast<arith::TruncIOp>(op)) size(narrow);
  }

 private:
  using Bound = std::optional<Index>;

  static Place placeOf(Operation* op) {
    Place p;
    op->getLoc()->walk([&](Location l) {
      auto file = dyn_cast<FileLineColLoc>(l);
      if (!file) return WalkResult::advance();
      p = {file.getFilename().str(), file.getLine(), file.getColumn()};
      return WalkResult::interrupt();
    });
    return p;
  }

  void all(OperandRange indices) {
    for (mlir::Value v : indices) bound(v);
  }

  Bound bound(mlir::Value v) {
    if (depth_ > kDeepest) return {};
    auto [it, fresh] = known_.try_emplace(v);
    if (!fresh) return it->second;
    ++depth_;
    Bound b = compute(v);
    --depth_;
    Operation* op = v.getDefiningOp();
    const bool narrow = getElementTypeOrSelf(v.getType()).isInteger(32);
    if (b && narrow && isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) && b->step != Index{}.step) {
      b->place = placeOf(op);
      limit(*b);
    }
    return known_[v] = b;
  }

  Bound compute(mlir::Value v) {
    Operation* op = v.getDefiningOp();
    if (!op) return {};
    Index b;
    if (DenseIntElementsAttr splat; matchPattern(v, m_Constant(&splat))) {
      if (!splat.isSplat()) return {};
      b.rest = splat.getSplatValue<APInt>().getSExtValue();
      return b;
    }
    if (APInt c; matchPattern(v, m_ConstantInt(&c))) {
      if (c.getBitWidth() > 64) return {};
      b.rest = c.getSExtValue();
      return b;
    }
    if (auto id = dyn_cast<ir::ProgramIdOp>(op)) {
      b.step[id.getAxis()] = 1;
      return b;
    }
    if (auto iota = dyn_cast<ir::IotaOp>(op)) {
      b.rest = static_cast<int64_t>(iota.getStart()) + cast<RankedTensorType>(v.getType()).getNumElements() - 1;
      return b;
    }
    if (isa<ir::SplatOp, ir::BroadcastOp, ir::ReshapeOp, ir::TransOp, arith::ExtSIOp, ir::AssumeOp>(op))
      return bound(op->getOperand(0));
    if (isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(op)) {
      if (bound(op->getOperand(0)))
        neverWraps(op->getOperand(0));
      else
        loopsNeverWrap(op->getOperand(0));
      bound(op->getOperand(1));
      return {};
    }
    if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) return {};
    const Bound x = bound(op->getOperand(0)), y = bound(op->getOperand(1));
    if (!x || !y) return {};
    auto isConstant = [](const Index& i) { return i.step == Index{}.step; };
    if (isa<arith::MulIOp>(op)) {
      const Index &c = isConstant(*x) ? *x : *y, &of = isConstant(*x) ? *y : *x;
      mlir::Value factor = op->getOperand(isConstant(*x) ? 0 : 1);
      if (!isConstant(c) || !isExact(factor) || c.rest < 0) return {};
      return combined(of, c.rest, Index{}, 0);
    }
    if (isa<arith::AddIOp>(op)) return combined(*x, 1, *y, 1);
    return isConstant(*y) && isExact(op->getOperand(1)) ? combined(*x, 1, *y, -1) : Bound();
  }

  /// Writes into the sums and products of an index with a bound that they are those of the numbers.
  void neverWraps(mlir::Value v) {
    Operation* op = v.getDefiningOp();
    if (!op || !getElementTypeOrSelf(v.getType()).isInteger(32) || !promised_.insert(v).second) return;
    if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
      op->setAttr(flags.getIntegerOverflowAttrName(),
                  arith::IntegerOverflowFlagsAttr::get(op->getContext(), arith::IntegerOverflowFlags::nsw));
    for (mlir::Value operand : op->getOperands()) neverWraps(operand);
  }

  /// The same of where upward loops begin that count what an index is made of: their counters are not below it.
  void loopsNeverWrap(mlir::Value v) {
    if (!followed_.insert(v).second) return;
    if (auto counter = dyn_cast<BlockArgument>(v)) {
      auto loop = dyn_cast<scf::ForOp>(counter.getOwner()->getParentOp());
      APInt step;
      if (!loop || counter != loop.getInductionVar() || !matchPattern(loop.getStep(), m_ConstantInt(&step)) ||
          !step.isStrictlyPositive())
        return;
      if (bound(loop.getLowerBound())) neverWraps(loop.getLowerBound());
      return;
    }
    Operation* op = v.getDefiningOp();
    if (isa<arith::AddIOp, arith::MulIOp, ir::SplatOp, ir::BroadcastOp, ir::ReshapeOp, arith::ExtSIOp>(op))
      for (mlir::Value operand : op->getOperands()) loopsNeverWrap(operand);
  }

  /// Whether the value is its bound: a constant, everywhere the same.
  static bool isExact(mlir::Value v) {
    while (Operation* op = v.getDefiningOp()) {
      if (isa<arith::ConstantOp>(op)) return true;
      if (!isa<ir::SplatOp, ir::BroadcastOp, ir::ReshapeOp, arith::ExtSIOp>(op)) return false;
      v = op->getOperand(0);
    }
    return false;
  }

  static Bound combined(const Index& x, int64_t times, const Index& y, int64_t yTimes) {
    Index r;
    bool over = false;
    auto sum = [&](int64_t a, int64_t b) {
      int64_t p = 0, q = 0, s = 0;
      over |= __builtin_mul_overflow(a, times, &p) || __builtin_mul_overflow(b, yTimes, &q) ||
              __builtin_add_overflow(p, q, &s);
      return s;
    };
    for (int axis = 0; axis < 3; ++axis) r.step[axis] = sum(x.step[axis], y.step[axis]);
    r.rest = sum(x.rest, y.rest);
    return over ? Bound() : Bound(r);
  }

  void limit(const Index& index) {
    auto within = [](const Index& a, const Index& b) {
      return a.rest <= b.rest && a.step[0] <= b.step[0] && a.step[1] <= b.step[1] && a.step[2] <= b.step[2];
    };
    for (const Index& other : found_.indices_)
      if (within(index, other)) return;
    std::erase_if(found_.indices_, [&](const Index& other) { return within(other, index); });
    found_.indices_.push_back(index);
  }

  void size(arith::TruncIOp narrow) {
    auto dim = narrow.getIn().getDefiningOp<ir::ViewDimOp>();
    auto view = dim ? dyn_cast<BlockArgument>(dim.getView()) : BlockArgument();
    if (!view || narrow->use_empty() || !narrow.getType().isInteger(32)) return;
    auto kernel = dyn_cast<func::FuncOp>(view.getOwner()->getParentOp());
    if (!kernel) return;
    size_t slot = 1 + dim.getDim();
    for (unsigned i = 0; i < view.getArgNumber(); ++i) {
      auto before = dyn_cast<ir::ViewType>(kernel.getArgument(i).getType());
      slot += before ? 1 + 2 * static_cast<size_t>(before.getRank()) : 1;
    }
    for (const Size& s : found_.sizes_)
      if (s.slot == slot) return;
    found_.sizes_.push_back({slot, view.getArgNumber(), static_cast<uint32_t>(dim.getDim()), placeOf(narrow)});
  }

  static constexpr int kDeepest = 256;  // sums longer than that are left alone
  int depth_ = 0;
  NarrowIndices& found_;
  llvm::DenseMap<mlir::Value, Bound> known_;
  llvm::DenseSet<mlir::Value> promised_, followed_;  ///< by neverWraps, loopsNeverWrap: sums of sums are met often
};

NarrowIndices::NarrowIndices(ModuleOp module) {
  Finder finder(*this);
  module.walk([&](Operation* op) { finder.visit(op); });
}

Error NarrowIndices::problem(const std::string& kernel, const Grid& grid, std::span<const uint64_t> slots) const {
  auto error = [&](std::string what, const Place& place, std::string here) {
    Error e = user_error(fmt::format("kernel '{}': {}", kernel, what));
    e.diagnostics.push_back({Severity::error, std::move(here), place.file, place.line, place.column, {}});
    return e;
  };
  for (const Size& s : sizes_)
    if (s.slot < slots.size() && static_cast<int64_t>(slots[s.slot]) > INT32_MAX)
      return error(fmt::format("argument {}: dimension {} is {}, which the kernel reads as i32", s.param, s.dim,
                               static_cast<int64_t>(slots[s.slot])),
                   s.place, fmt::format("dim({0}) is an i32; dim64({0}) holds every size", s.dim));
  for (const Index& i : indices_)
    if (i.wraps(grid))
      return error(fmt::format("with a grid of ({}, {}, {}) an index computed in i32 reaches {:.0f} and wraps", grid.x,
                               grid.y, grid.z, i.last(grid)),
                   i.place, "computed from program_id, an i32; compute with cast(program_id(0), i64)");
  return user_error(fmt::format("kernel '{}': no index leaves 32 bits", kernel));
}

}  // namespace tile::detail
