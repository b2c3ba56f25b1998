// tile_access.cpp - boxes of views with their bounds, and scalar bases with tiles of offsets.
#include "compiler/gpu/lowering/tile_access.h"

#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "compiler/analysis/axis_facts.h"
#include "compiler/analysis/diagonals.h"
#include "compiler/dialect/boxes.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/alike.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/Support/MathExtras.h"

namespace tile::ir {
using namespace mlir;

std::vector<std::vector<int>> Access::runs(int vector, bool unique) const {
  std::vector<std::vector<int>> result;
  if (layout.rank() == 0) return {{0}};
  std::set<layout::Coord> seen;
  for (auto& run : layout.runs(std::max(width.dim, 0), vector)) {
    if (layout.isRegPadding(run[0])) continue;
    if (unique && !seen.insert(layout.regCoord(run[0])).second) continue;
    result.push_back(std::move(run));
  }
  return result;
}

namespace {

// A box of a view. Tile dims are the last view dims.
class BoxAccess : public Access {
 public:
  BoxAccess(Emitter& e, const layout::Layout& layout, Value viewValue, ValueRange indexValues, int elementBytes,
            int64_t vector = 0)
      : Access(e, layout),
        view_(knownView(e, viewValue)),
        lead_(static_cast<int>(indexValues.size()) - layout.rank()),
        groups_(layout) {
    const Facts& facts = e.facts();
    llvm::IRBuilder<>& b = e.b;
    int rank = static_cast<int>(indexValues.size());
    llvm::Value* start = nullptr;
    width = widthUnder(boxWidth(facts, viewValue, indexValues, layout.shape(), elementBytes, vector > 0), layout);
    for (int d = 0; d < rank; ++d) {
      llvm::Value* index = e.scalar(indexValues[d]);
      if (vector && d == width.dim + lead_) {
        shift = b.CreateAnd(index, e.i32(vector - 1));
        index = b.CreateAnd(index, e.i32(-vector));
        const int64_t least = facts.rangeOf(indexValues[d]).min;
        whole_.push_back(index), narrow_.push_back(index), by_.push_back(0);
        least_.push_back(least - vector), leastBase_.push_back(least - vector);
        index_.push_back(b.CreateSExt(index, b.getInt64Ty()));
        llvm::Value* offset = b.CreateMul(index_[d], view_.strides[d]);
        start = start ? b.CreateAdd(start, offset) : offset;
        continue;
      }
      whole_.push_back(index->getType()->isIntegerTy(32) ? index : nullptr);
      // A single element has no others beside it.
      auto [base, by] = layout.rank() ? withoutConstant(indexValues[d]) : std::pair(indexValues[d], int64_t{0});
      narrow_.push_back(whole_[d] ? e.scalar(base) : nullptr);
      by_.push_back(by);
      least_.push_back(facts.rangeOf(indexValues[d]).min);
      leastBase_.push_back(facts.rangeOf(base).min);
      index_.push_back(b.CreateSExt(narrow_[d] ? narrow_[d] : index, b.getInt64Ty()));
      llvm::Value* offset = b.CreateMul(index_[d], view_.strides[d]);
      if (by) index_[d] = b.CreateAdd(index_[d], e.i64(by));
      start = start ? b.CreateAdd(start, offset) : offset;
    }
    bytes_ = elementBytes;
    base_ = b.CreatePtrAdd(view_.ptr, b.CreateMul(start, e.i64(bytes_)));

    threadBase_ = base_;
    for (int d = 0; d < layout.rank(); ++d) {
      if (layout.maxThreadCoord(d) == 0) continue;
      llvm::Value* offset = b.CreateZExt(e.threadCoord(layout, d), b.getInt64Ty());
      if (d != width.dim) offset = b.CreateMul(offset, view_.strides[d + lead_]);
      threadBase_ = b.CreatePtrAdd(threadBase_, b.CreateMul(offset, e.i64(bytes_)));
    }
  }

  int64_t besideAligned(int64_t vector) const override { return llvm::mod(by_[width.dim + lead_], vector); }

  /// Where a dim's size, the box's place in it and its extent are multiples of some number, groups of so many elements
  /// are inside or outside together: one comparison for many registers, or one for all threads.
  void compareGroups(Value view, ValueRange indices) {
    constexpr size_t kMany = 4;  // fewer comparisons are no burden
    const Facts& facts = e.facts();
    for (int d = 0; d < layout.rank(); ++d) {
      const Value index = indices[d + lead_];
      int64_t step = powerOfTwoIn(std::gcd(facts.dimDivisibility(view, d + lead_), layout.shape()[d]));
      step = std::gcd(step, facts.divisibility(index));
      auto groups = step > 1 ? groups_.groupsAlong(d, step) : std::nullopt;
      if (!groups) continue;
      auto places = [&](const layout::Layout& of) {
        std::set<int64_t> all;
        for (const auto& run : runs(width.masked, /*unique=*/true)) all.insert(of.regCoord(run[0])[d]);
        return all.size();
      };
      const size_t own = places(layout), left = groups->maxThreadCoord(d) == 0 ? 0 : places(*groups);
      if (own >= left + kMany) groups_ = std::move(*groups);
    }
  }

  /// Addresses are computed here, though a load of the same box had them: they would stay in registers meanwhile.
  void addressAnew() {
    llvm::Type* bits = e.b.getInt64Ty();
    llvm::Value* here = e.inlineAsm(bits, "mov.b64 $0, $1;", "=l,l", {e.b.CreatePtrToInt(threadBase_, bits)});
    threadBase_ = e.b.CreateIntToPtr(here, threadBase_->getType());
  }

  // Constants in the indices are added to the registers' own, last: boxes beside each other share what is in front.
  llvm::Value* address(int reg) override {
    llvm::IRBuilder<>& b = e.b;
    layout::Coord coord(by_.begin(), by_.end());
    const layout::Coord own = layout.regCoord(reg);
    for (int d = 0; d < layout.rank(); ++d) coord[d + lead_] += own[d];
    int64_t along = 0;
    if (width.dim >= 0) along = std::exchange(coord[width.dim + lead_], 0) + ahead;
    llvm::Value*& row = rows_[coord];
    if (!row) {
      row = threadBase_;
      llvm::Value* offset = nullptr;
      for (size_t d = 0; d < coord.size(); ++d) {
        if (coord[d] == 0) continue;
        llvm::Value* part = b.CreateMul(view_.strides[d], e.i64(coord[d] * bytes_));
        offset = offset ? b.CreateAdd(offset, part) : part;
      }
      if (offset) row = b.CreatePtrAdd(row, offset);
    }
    return along ? b.CreatePtrAdd(row, e.i64(along * bytes_)) : row;
  }

  /// The box is known to be inside of the view: nothing is compared but who has elements of the tile.
  void isInside() { isInside_ = true, width.masked = width.aligned; }

  llvm::Value* predicate(int reg) override {
    if (isInside_) return hasElement(reg);
    prepareBounds();
    layout::Coord coord = groups_.regCoord(reg);
    if (width.dim >= 0) coord[width.dim] += ahead;
    llvm::Value* all = uniform_;
    for (int d = 0; d < layout.rank(); ++d) {
      if (!span_[d]) continue;
      llvm::Value*& inside = inside_[{d, coord[d]}];
      if (!inside) inside = e.b.CreateICmpULT(e.b.CreateAdd(relative_[d], e.i32(coord[d] + beside_[d])), span_[d]);
      all = all ? e.b.CreateAnd(all, inside) : inside;
      if (llvm::Value* own = padded_[d] ? isOfTile(groups_, coord, d) : nullptr) all = e.b.CreateAnd(all, own);
    }
    return all;
  }

  llvm::Value* allInside() override {
    llvm::IRBuilder<>& b = e.b;
    llvm::Value* all = nullptr;
    for (size_t d = 0; d < index_.size(); ++d) {
      int64_t extent = static_cast<int>(d) < lead_ ? 1 : layout.shape()[d - lead_];
      llvm::Value* fits = nullptr;
      if (whole_[d]) {
        fits = isBelow(d, b.CreateSub(view_.dims[d], e.i64(extent - 1)));
      } else {
        fits = b.CreateICmpSLE(index_[d], b.CreateSub(view_.dims[d], e.i64(extent)));
        if (least_[d] < 0) fits = b.CreateAnd(fits, b.CreateICmpSGE(index_[d], e.i64(0)));
      }
      all = all ? b.CreateAnd(all, fits) : fits;
    }
    return all;
  }

 private:
  /// Whether the thread's element at a place along dim d is one of the tile; null: every thread's is.
  llvm::Value* isOfTile(const layout::Layout& of, const layout::Coord& coord, int d) {
    if (coord[d] + of.maxThreadCoord(d) < layout.shape()[d]) return nullptr;
    return e.b.CreateICmpULT(e.b.CreateAdd(e.threadCoord(of, d), e.i32(coord[d])), e.i32(layout.shape()[d]));
  }
  llvm::Value* hasElement(int reg) {
    const layout::Coord coord = layout.regCoord(reg);
    llvm::Value* all = nullptr;
    for (int d = 0; d < layout.rank(); ++d)
      if (llvm::Value* own = isOfTile(layout, coord, d)) all = all ? e.b.CreateAnd(all, own) : own;
    return all;
  }

  /// Whether the index is one of so many places, which may be below zero: none then. Of 32 bits it is compared as such,
  /// with 2^31 at most, so that negative ones are none of them; the number is the same for all iterations.
  llvm::Value* isBelow(size_t d, llvm::Value* places) {
    llvm::IRBuilder<>& b = e.b;
    places = max(places, e.i64(0));
    if (!whole_[d]) return b.CreateICmpULT(index_[d], places);
    // Less a constant, a very negative one must not wrap to a large one: its address does not.
    llvm::Value* index = whole_[d];
    if (by_[d] < 0 && leastBase_[d] + by_[d] < INT32_MIN) index = b.CreateAdd(max(narrow_[d], e.i32(0)), e.i32(by_[d]));
    return b.CreateICmpULT(index, b.CreateTrunc(min(places, e.i64(int64_t{1} << 31)), b.getInt32Ty()));
  }

  llvm::Value* max(llvm::Value* x, llvm::Value* y) { return e.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y); }
  llvm::Value* min(llvm::Value* x, llvm::Value* y) { return e.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y); }

  // Bounds as comparisons of 32 bits without a sign: an element's `relative_` place (and `beside_`) against `span_`. Of
  // an index of 32 bits that is the place in the view: far below it is as good as two tiles below, so that what is
  // negative lies above every size, which is the same for all iterations. A constant in the index is added to the
  // registers' own: boxes beside each other compare the same places. Threads that the tile has no elements for
  // (`padded_`) are left out by themselves, alike for all boxes. Of other indices it is the place in the part of the
  // tile's extent that is inside the view.
  void prepareBounds() {
    if (prepared_) return;
    prepared_ = true;
    llvm::IRBuilder<>& b = e.b;
    span_.assign(layout.rank(), nullptr);
    relative_.assign(layout.rank(), nullptr);
    beside_.assign(layout.rank(), 0);
    padded_.assign(layout.rank(), false);
    for (size_t d = 0; d < index_.size(); ++d) {
      int tileDim = static_cast<int>(d) - lead_;
      if (tileDim < 0 || layout.cover(tileDim) == 1) {
        llvm::Value* inside = isBelow(d, view_.dims[d]);
        uniform_ = uniform_ ? b.CreateAnd(uniform_, inside) : inside;
        continue;
      }
      const int64_t size = layout.shape()[tileDim];
      if (narrow_[d]) {
        padded_[tileDim] = layout.cover(tileDim) != size;
        llvm::Value* index = narrow_[d];
        // The same for boxes beside each other.
        const int64_t most = std::max(size, std::abs(by_[d])), reach = size + most;
        if (leastBase_[d] < -reach) index = max(index, e.i32(-reach));
        beside_[tileDim] = by_[d];
        span_[tileDim] = b.CreateTrunc(min(view_.dims[d], e.i64((int64_t{1} << 32) - reach - most)), b.getInt32Ty());
        relative_[tileDim] = b.CreateAdd(e.threadCoord(groups_, tileDim), index);
        continue;
      }
      llvm::Value *extent = e.i64(size), *zero = e.i64(0);
      llvm::Value *index = index_[d], *low = nullptr;
      if (least_[d] < 0) {
        index = max(index, b.CreateNeg(extent));  // far below the view is as good as one tile below
        low = b.CreateTrunc(max(b.CreateNeg(index), zero), b.getInt32Ty());
      }
      llvm::Value* limit = b.CreateTrunc(max(min(b.CreateSub(view_.dims[d], index), extent), zero), b.getInt32Ty());
      relative_[tileDim] = e.threadCoord(groups_, tileDim);
      span_[tileDim] = limit;
      if (low) {
        relative_[tileDim] = b.CreateSub(relative_[tileDim], low);
        span_[tileDim] = b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, limit, low);
      }
    }
  }

  // The view with the stride that is known to be 1 as a constant.
  static ViewValue knownView(Emitter& e, Value value) {
    ViewValue view = e.view(value);
    if (int unit = e.facts().unitStrideDim(value); unit >= 0) view.strides[unit] = e.i64(1);
    return view;
  }

  ViewValue view_;
  int lead_, bytes_ = 0;
  layout::Layout groups_;  ///< which element decides whether one is inside
  /// As 64 bits; as the 32 bits it has, null if it has more; the same without the constant `by_`.
  llvm::SmallVector<llvm::Value*, 4> index_, whole_, narrow_;
  llvm::SmallVector<int64_t, 4> by_, least_,
      leastBase_;  ///< that an index is known not to be below, without `by_`, too
  llvm::SmallVector<int64_t, 4> beside_;
  llvm::SmallVector<bool, 4> padded_;
  llvm::Value *base_ = nullptr, *threadBase_ = nullptr, *uniform_ = nullptr;
  bool prepared_ = false, isInside_ = false;
  std::vector<llvm::Value*> span_, relative_;
  std::map<layout::Coord, llvm::Value*> rows_;
  std::map<std::pair<int, int64_t>, llvm::Value*> inside_;
};

// Scalar base + offset tile, optional mask tile.
class OffsetAccess : public Access {
 public:
  OffsetAccess(Emitter& e, const layout::Layout& layout, Value ptr, Value offsets, Value mask, int elementBytes)
      : Access(e, layout), ptr_(e.scalar(ptr)), bytes_(elementBytes) {
    if (offsets) offsets_ = e.regs(offsets);
    if (mask) mask_ = e.regs(mask);
    width = widthUnder(offsetWidth(e.facts(), ptr, offsets, mask, bytes_), layout);
    isSpotted = mask && isMadeOfMemory(mask);
    if (offsets && !offsets_.empty() && offsets_[0]->getType()->isIntegerTy(64) && !splitInvariant(ptr, offsets))
      splitShared(offsets);
    if (offsets && isa<RankedTensorType>(offsets.getType())) findSame(offsets, mask);
  }

  llvm::Value* address(int reg) override {
    if (offsets_.empty()) return ptr_;
    llvm::Value* address = ptr_;
    if (!invariant_.empty()) address = at(address, invariant_[reg]);
    return at(address, offsets_[reg]);
  }
  llvm::Value* predicate(int reg) override {
    return e.andAll({mask_.empty() ? nullptr : mask_[mask_.size() == 1 ? 0 : reg], e.inTile(layout, reg)});
  }
  llvm::Value* predicateOfPlace(int reg) override { return allOf(ofPlace_, reg); }
  llvm::Value* ownPredicate(int reg) override {
    if (ofPlace_.empty()) return predicate(reg);
    return e.andAll({allOf(own_, reg), e.inTile(layout, reg)});
  }
  llvm::Value* allInside() override {
    // A tree, so that many masks do not become one long chain.
    llvm::SmallVector<llvm::Value*> all;
    for (int reg = 0; reg < layout.numRegs(); ++reg)
      if (!layout.isRegPadding(reg))
        if (llvm::Value* p = predicate(reg)) all.push_back(p);
    while (all.size() > 1) {
      for (size_t i = 0; i + 1 < all.size(); i += 2) all[i / 2] = e.b.CreateAnd(all[i], all[i + 1]);
      if (all.size() % 2) all[all.size() / 2] = all.back();
      all.resize((all.size() + 1) / 2);
    }
    return all.empty() ? nullptr : all[0];
  }

 private:
  llvm::Value* at(llvm::Value* base, llvm::Value* elements) {
    return e.b.CreatePtrAdd(base, e.b.CreateMul(e.b.CreateSExt(elements, e.b.getInt64Ty()), e.i64(bytes_)));
  }

  llvm::Value* allOf(llvm::ArrayRef<Regs> conditions, int reg) {
    llvm::Value* all = nullptr;
    for (const Regs& condition : conditions) all = e.andAll({all, condition[condition.size() == 1 ? 0 : reg]});
    return all;
  }

  // Words of flags, factors of groups: what several registers of a thread want is asked for once.
  void findSame(Value offsets, Value mask) {
    const AxisFacts offsetFacts = e.facts().of(offsets);
    const AxisFacts maskFacts = mask ? e.facts().of(mask) : AxisFacts();
    llvm::SmallVector<int64_t> alike;
    for (int d = 0; d < layout.rank(); ++d)
      alike.push_back(mask ? std::gcd(offsetFacts.constancy[d], maskFacts.constancy[d]) : offsetFacts.constancy[d]);
    firstAlike = firstOfEqual(alike, layout);
    alikeInRuns = width.dim >= 0 && alike[width.dim] > 1;
    if (width.aligned == 1) findDiagonals(offsets, mask);
  }

  // Blocks of rows and columns: elements on one diagonal lie at one place.
  void findDiagonals(Value offsets, Value mask) {
    const auto diagonals = diagonalsOf(offsets);
    if (!diagonals || *diagonals == Diagonals{0, 0}) return;
    std::map<int64_t, size_t> seen;
    llvm::SmallVector<size_t> first;
    for (int reg = 0; reg < layout.numRegs(); ++reg) {
      const layout::Coord at = layout.regCoord(reg);
      const int64_t place = at[0] * (*diagonals)[0] + at[1] * (*diagonals)[1];
      first.push_back(layout.isRegPadding(reg) ? size_t(reg) : seen.try_emplace(place, reg).first->second);
    }
    if (seen.size() >= std::set<size_t>(firstAlike.begin(), firstAlike.end()).size()) return;
    if (!layout.isPadded() && (!mask || isAlongDiagonals(mask, *diagonals))) {
      firstAlike = std::move(first);
      return;
    }
    firstPlace = std::move(first);
    if (!mask) return;
    const auto conditions = conditionsOf(mask);
    if (llvm::any_of(conditions, [&](Value condition) { return e.layoutOf(condition) != layout; })) return;
    for (Value condition : conditions)
      (isAlongDiagonals(condition, *diagonals) ? ofPlace_ : own_).push_back(Regs(e.regs(condition)));
  }

  // Made of what was loaded, and of places only as far as those hold for whole runs: what a place bounds ends there,
  // and an access must not go past it for the sake of a neighbour.
  bool isMadeOfMemory(Value mask) const {
    if (width.dim < 0 || width.aligned == 1) return false;
    bool isLoaded = false;
    llvm::SetVector<Value> pending;
    pending.insert(mask);
    for (size_t i = 0; i < pending.size(); ++i) {
      const Value value = pending[i];
      if (e.facts().of(value).constancy[width.dim] % width.aligned == 0) continue;
      Operation* op = value.getDefiningOp();
      if (auto arg = dyn_cast<BlockArgument>(value)) {  // loaded an iteration early
        auto loop = dyn_cast_or_null<scf::ForOp>(arg.getOwner()->getParentOp());
        if (!loop || arg == loop.getInductionVar()) return false;
        pending.insert(loop.getTiedLoopInit(arg)->get());
        pending.insert(loop.getTiedLoopYieldedValue(arg)->get());
        continue;
      }
      auto gather = dyn_cast_or_null<GatherOp>(op);
      isLoaded |= gather != nullptr;
      if (gather && gather.getMask()) pending.insert(gather.getMask());
      if (gather) continue;
      if (!op || !isElementwise(op)) return false;
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType())) pending.insert(operand);
    }
    return isLoaded;
  }

  // Inside a loop: what stays the same (a thread's columns) joins the pointer, outside, and only the rest is added to
  // it.
  bool splitInvariant(Value ptr, Value offsets) {
    auto add = offsets.getDefiningOp<arith::AddIOp>();
    auto loop = add ? add->getParentOfType<LoopLikeOpInterface>() : LoopLikeOpInterface();
    if (!loop || !isInvariant(ptr, loop)) return false;
    const bool first = isInvariant(add.getLhs(), loop), second = isInvariant(add.getRhs(), loop);
    if (first == second) return false;
    invariant_ = e.regs(first ? add.getLhs() : add.getRhs());
    offsets_ = e.regs(first ? add.getRhs() : add.getLhs());
    return true;
  }
  // Rows and columns: the pointer to a row, which several accesses share, is made once, and a column is added to it in
  // one instruction; their sum in 64 bits would take four for each element.
  void splitShared(Value offsets) {
    auto add = offsets.getDefiningOp<arith::AddIOp>();
    if (!add) return;
    auto first = e.regs(add.getLhs()), second = e.regs(add.getRhs());
    const auto accesses = runs(width.aligned, /*unique=*/true);
    auto distinct = [&](llvm::ArrayRef<llvm::Value*> parts) {
      llvm::SmallPtrSet<llvm::Value*, 32> all;
      for (const auto& run : accesses) all.insert(parts[run[0]]);
      return all.size();
    };
    const size_t rows = distinct(first), columns = distinct(second);
    if (std::min(rows, columns) >= accesses.size()) return;
    const bool isFirst = rows != columns ? rows < columns : !isWidened(add.getLhs());
    invariant_ = isFirst ? first : second;
    offsets_ = isFirst ? second : first;
  }
  // Places of 32 bits, in 64.
  static bool isWidened(Value offsets) {
    while (isa_and_nonnull<BroadcastOp, ReshapeOp, TransOp, ConvertOp>(offsets.getDefiningOp()))
      offsets = offsets.getDefiningOp()->getOperand(0);
    return isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(offsets.getDefiningOp());
  }
  static bool isInvariant(Value value, LoopLikeOpInterface loop) {
    llvm::DenseSet<Value> seen;
    return isInvariant(value, loop, seen);
  }
  /// What was `seen` before is looked at no more: anything else ends the search.
  static bool isInvariant(Value value, LoopLikeOpInterface loop, llvm::DenseSet<Value>& seen) {
    if (loop.isDefinedOutsideOfLoop(value) || !seen.insert(value).second) return true;
    Operation* op = value.getDefiningOp();
    return op && isMemoryEffectFree(op) && !op->getNumRegions() &&
           llvm::all_of(op->getOperands(), [&](Value v) { return isInvariant(v, loop, seen); });
  }

  llvm::Value* ptr_;
  int bytes_;
  llvm::ArrayRef<llvm::Value*> invariant_, offsets_, mask_;
  llvm::SmallVector<Regs> ofPlace_, own_;  ///< conditions of the mask, where elements share places (firstPlace)
};

/// What is written was read in front of a loop that lies between.
bool updatesAcrossLoop(StoreOp store) {
  bool loops = false;
  for (Operation* before = store->getPrevNode(); before; before = before->getPrevNode()) {
    loops |= isa<LoopLikeOpInterface>(before);
    auto load = dyn_cast<LoadOp>(before);
    if (loops && load && load.getView() == store.getView() && load.getIndices() == store.getIndices()) return true;
  }
  return false;
}

/// The access to a box. What is compared and computed for one that is read in front of a loop and written behind it is
/// the same twice, and would stay in registers meanwhile.
template <class Op>
std::unique_ptr<BoxAccess> makeBoxAccess(Emitter& e, Op op, const layout::Layout& layout, int bytes) {
  auto access = std::make_unique<BoxAccess>(e, layout, op.getView(), op.getIndices(), bytes);
  if (op->hasAttr(kInsideAttr)) access->isInside();
  auto isUpdate = [&](Operation* user) {
    auto store = dyn_cast<StoreOp>(user);
    return store && store.getView() == op.getView() && store.getIndices() == op.getIndices() &&
           updatesAcrossLoop(store);
  };
  if (layout.rank() == 0 || !llvm::any_of(op.getView().getUsers(), isUpdate)) return access;
  access->compareGroups(op.getView(), op.getIndices());
  if (isa<StoreOp>(op)) access->addressAnew();
  return access;
}

}  // namespace

std::unique_ptr<Access> boxAccess(Emitter& e, LoadOp op, const layout::Layout& layout, int elementBytes) {
  return makeBoxAccess(e, op, layout, elementBytes);
}
std::unique_ptr<Access> turnedBoxAccess(Emitter& e, LoadOp op, const layout::Layout& layout, int elementBytes,
                                        int vector) {
  return std::make_unique<BoxAccess>(e, layout, op.getView(), op.getIndices(), elementBytes, vector);
}
std::unique_ptr<Access> boxAccess(Emitter& e, StoreOp op, const layout::Layout& layout, int elementBytes) {
  return makeBoxAccess(e, op, layout, elementBytes);
}
std::unique_ptr<Access> boxAccess(Emitter& e, AccumulateOp op, const layout::Layout& layout, int elementBytes) {
  return makeBoxAccess(e, op, layout, elementBytes);
}
std::unique_ptr<Access> offsetAccess(Emitter& e, const layout::Layout& layout, Value ptr, Value offsets, Value mask,
                                     int elementBytes) {
  return std::make_unique<OffsetAccess>(e, layout, ptr, offsets, mask, elementBytes);
}

}  // namespace tile::ir
