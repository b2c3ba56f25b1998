// reduce_lanes.cpp - the steps of a reduction between lanes of a warp.
#include <map>
#include <optional>
#include <set>

#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/lowering/combine.h"
#include "compiler/gpu/lowering/halving.h"
#include "compiler/gpu/lowering/reduction.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;
using layout::Coord;
using layout::Digit;
using layout::Layout;

std::optional<llvm::Intrinsic::ID> Reduction::warpInstruction() {
  return coversLanes(source_, axis_) ? warpInstruction(source_.laneReplicas() == 1) : std::nullopt;
}

/// What combines one value of every lane of the warp by itself. `once`: no two lanes hold the same one.
std::optional<llvm::Intrinsic::ID> Reduction::warpInstruction(bool once) {
  using namespace llvm::Intrinsic;
  Operation* sole = op_.getNumResults() == 1 ? soleOperation(op_, 0) : nullptr;
  if (!sole) return std::nullopt;
  const Type type = getElementTypeOrSelf(op_.getSources()[0].getType());
  if (type.isInteger(1))
    return llvm::TypeSwitch<Operation*, std::optional<ID>>(sole)
        .Case<arith::AndIOp>([](auto) { return nvvm_vote_all_sync; })
        .Case<arith::OrIOp>([](auto) { return nvvm_vote_any_sync; })
        .Default([](Operation*) { return std::nullopt; });
  if (!type.isInteger(8) && !type.isInteger(16) && !type.isInteger(32)) return std::nullopt;
  // Lanes that hold the same would be counted more than once.
  return llvm::TypeSwitch<Operation*, std::optional<ID>>(sole)
      .Case<arith::AddIOp>([&](auto) { return once ? std::optional(ID{nvvm_redux_sync_add}) : std::nullopt; })
      .Case<arith::XOrIOp>([&](auto) { return once ? std::optional(ID{nvvm_redux_sync_xor}) : std::nullopt; })
      .Case<arith::MinSIOp>([](auto) { return nvvm_redux_sync_min; })
      .Case<arith::MaxSIOp>([](auto) { return nvvm_redux_sync_max; })
      .Case<arith::MinUIOp>([](auto) { return nvvm_redux_sync_umin; })
      .Case<arith::MaxUIOp>([](auto) { return nvvm_redux_sync_umax; })
      .Case<arith::AndIOp>([](auto) { return nvvm_redux_sync_and; })
      .Case<arith::OrIOp>([](auto) { return nvvm_redux_sync_or; })
      .Default([](Operation*) { return std::nullopt; });
}

/// Whether one instruction finds the largest or smallest of one such value of every lane, as an integer.
bool Reduction::isOrdered(llvm::Value* value) {
  Operation* sole = op_.getNumResults() == 1 ? soleOperation(op_, 0) : nullptr;
  return isa_and_nonnull<arith::MaxNumFOp, arith::MinNumFOp>(sole) && value->getType()->isFloatTy();
}

bool Reduction::isOneOrdered(const std::vector<Tuple>& partial) {
  return partial.size() == 1 && coversLanes(source_, axis_) && isOrdered(partial[0][0]);
}

/// The largest or smallest of one f32 of every lane, compared as integers in the same order: one instruction instead
/// of five rounds of shuffles that wait for each other. A NaN, which any number beats, becomes the key that every
/// other key beats.
llvm::Value* Reduction::asOrderedIntegers(llvm::Value* value) {
  const bool isMax = isa<arith::MaxNumFOp>(soleOperation(op_, 0));
  constexpr int64_t kAllButSign = 0x7fffffff;
  auto turned = [&](llvm::Value* bits) {  // there and back: negative numbers are ordered the other way round
    return e.b.CreateXor(bits, e.b.CreateAnd(e.b.CreateAShr(bits, 31), e.i32(kAllButSign)));
  };
  llvm::Value* last = isMax ? e.b.CreateNot(e.i32(kAllButSign)) : e.i32(kAllButSign);
  llvm::Value* key =
      e.b.CreateSelect(e.b.CreateFCmpUNO(value, value), last, turned(e.b.CreateBitCast(value, e.b.getInt32Ty())));
  key = e.b.CreateIntrinsic(isMax ? llvm::Intrinsic::nvvm_redux_sync_max : llvm::Intrinsic::nvvm_redux_sync_min,
                            {key, e.i32(-1)});
  return e.b.CreateBitCast(turned(key), e.b.getFloatTy());
}

llvm::Value* Reduction::byInstruction(llvm::Intrinsic::ID instruction, llvm::Value* value) {
  llvm::Type* type = value->getType();
  if (type->isIntegerTy(1)) return e.b.CreateIntrinsic(instruction, {e.i32(-1), value});
  const bool withSign =
      instruction == llvm::Intrinsic::nvvm_redux_sync_min || instruction == llvm::Intrinsic::nvvm_redux_sync_max;
  llvm::Value* whole = e.b.CreateIntCast(value, e.b.getInt32Ty(), withSign);
  return e.b.CreateIntCast(e.b.CreateIntrinsic(instruction, {whole, e.i32(-1)}), type, withSign);
}

void Reduction::acrossLanes(std::vector<Tuple>& partial) {
  if (isOneOrdered(partial)) {
    partial[0][0] = asOrderedIntegers(partial[0][0]);
    return;
  }
  if (auto instruction = warpInstruction()) {
    for (Tuple& tuple : partial) tuple[0] = byInstruction(*instruction, tuple[0]);
    return;
  }
  if (voteByGroups(partial) || halveByLanes(partial)) return;
  int step = 1;
  for (const Digit& digit : source_.lanes()) {
    for (int distance = 1; digit.dim == axis_ && distance < digit.count; distance *= 2)
      butterfly(partial, step, digit, distance);
    step *= digit.count;
  }
}

/// Flags that groups of at least four lanes reduce: one ballot of the warp, of which each lane tests its group's bits.
bool Reduction::voteByGroups(std::vector<Tuple>& partial) {
  Operation* sole = op_.getNumResults() == 1 ? soleOperation(op_, 0) : nullptr;
  if (!isa_and_nonnull<arith::AndIOp, arith::OrIOp>(sole) || source_.isPadded(axis_) ||
      !getElementTypeOrSelf(op_.getSources()[0].getType()).isInteger(1))
    return false;
  uint32_t inGroup = 0, first = 1;  // bits of the lane's number; the lanes of the group of lane 0, a bit each
  int step = 1;
  for (const Digit& digit : source_.lanes()) {
    for (int bit = step; digit.dim == axis_ && bit < step * digit.count; bit *= 2)
      inGroup |= bit, first |= first << bit;
    step *= digit.count;
  }
  if (llvm::popcount(inGroup) < 2) return false;
  llvm::Value* group = e.b.CreateShl(e.i32(static_cast<int32_t>(first)), e.b.CreateAnd(e.lane(), e.i32(~inGroup)));
  for (Tuple& tuple : partial) {
    llvm::Value* votes = e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {e.i32(-1), tuple[0]});
    llvm::Value* own = e.b.CreateAnd(votes, group);
    tuple[0] = isa<arith::AndIOp>(sole) ? e.b.CreateICmpEQ(own, group) : e.b.CreateICmpNE(own, e.i32(0));
  }
  return true;
}

/// Lanes share the work where there are several registers (halving.h). Elements that are padding could not be told
/// from others then.
bool Reduction::halveByLanes(std::vector<Tuple>& partial) {
  if (!eitherWay_ || source_.isPadded(axis_)) return false;
  std::vector<int> partners;  // bits of the lane's number
  int step = 1;
  for (const Digit& digit : source_.lanes()) {
    if (digit.dim == axis_ && !llvm::isPowerOf2_32(digit.count)) return false;
    for (int bit = step; digit.dim == axis_ && bit < step * digit.count; bit *= 2) partners.push_back(bit);
    step *= digit.count;
  }
  std::map<Coord, size_t> places;  // replicas are reduced once
  std::vector<size_t> placeOf;
  std::vector<Tuple> values;
  for (auto [reg, tuple] : llvm::enumerate(partial)) {
    const auto [at, isNew] = places.try_emplace(result_.regCoord(static_cast<int>(reg)), values.size());
    if (isNew) values.push_back(tuple);
    placeOf.push_back(at->second);
  }
  const auto reduced =
      reduceByHalves(e, combine_, values, partners,
                     [&](const Tuple& own, const Tuple& other, int partner) { return together(own, other, partner); });
  if (reduced.empty()) return false;
  for (auto [reg, tuple] : llvm::enumerate(partial)) tuple = reduced[placeOf[reg]];
  return true;
}

/// Lanes whose digits differ by `distance` combine; `step` is the digit's weight in the lane number.
void Reduction::butterfly(std::vector<Tuple>& partial, int step, const Digit& digit, int distance) {
  llvm::Value *highValid = nullptr, *isLow = nullptr;
  if (source_.isPadded(axis_)) {
    // The upper half of the pair starts `distance` steps above this digit's rounded-down value. All that was combined
    // before starts at the lower digits' zero.
    llvm::Value* value = e.b.CreateURem(e.b.CreateUDiv(e.lane(), e.i32(step)), e.i32(digit.count));
    llvm::Value* inside = e.b.CreateAnd(value, e.i32(2 * distance - 1));
    llvm::Value* coord = e.b.CreateSub(remainingCoord(step), e.b.CreateMul(inside, e.i32(digit.stride)));
    coord = e.b.CreateAdd(coord, e.i32(int64_t{distance} * digit.stride));
    highValid = e.b.CreateICmpULT(coord, e.i32(extent()));
    isLow = e.b.CreateICmpULT(inside, e.i32(distance));
  }
  for (Tuple& tuple : partial) {
    Tuple other = combine_.map(tuple, [&](llvm::Value* v) { return e.shuffleXor(v, step * distance); });
    Tuple both = together(tuple, other, step * distance);
    // Without an upper half, both lanes keep the lower one's value.
    tuple = highValid ? combine_.select(highValid, both, combine_.select(isLow, tuple, other)) : both;
  }
}

/// Both lanes must get the same bits: what is reduced counts as one value, on which all lanes branch alike.
Tuple Reduction::together(const Tuple& own, const Tuple& other, int partner) {
  if (!eitherWay_) {
    llvm::Value* isFirst = e.b.CreateICmpEQ(e.b.CreateAnd(e.lane(), e.i32(partner)), e.i32(0));
    return combine_(combine_.select(isFirst, own, other), combine_.select(isFirst, other, own));
  }
  Tuple both = combine_(own, other);
  for (auto [i, sum] : llvm::enumerate(both))
    if (isRoundedSum(op_, static_cast<unsigned>(i)))
      sum = e.b.CreateIntrinsic(
          own[i]->getType()->isDoubleTy() ? llvm::Intrinsic::nvvm_add_rn_d : llvm::Intrinsic::nvvm_add_rn_f,
          {own[i], other[i]});
  return both;
}

/// The thread's coordinate along the axis with the lane digits below `step` (combined already) at zero.
llvm::Value* Reduction::remainingCoord(int step) {
  std::vector<Digit> lanes;
  int weight = 1;
  for (Digit digit : source_.lanes()) {
    lanes.push_back(weight < step ? Digit{layout::kReplicated, digit.count, 0} : digit);
    weight *= digit.count;
  }
  llvm::Value *fromLane = e.digitSum(lanes, e.lane(), axis_), *fromWarp = e.digitSum(source_.warps(), e.warp(), axis_);
  if (fromLane && fromWarp) return e.b.CreateAdd(fromLane, fromWarp);
  return fromLane ? fromLane : fromWarp ? fromWarp : e.i32(0);
}

/// Lanes along the axis combine, and share the registers among them as far as they come in pairs at one distance.
Reduction::Shared Reduction::shareAcrossLanes(std::vector<Tuple>& partial, const PartsTable& table) {
  Shared shared;
  std::set<Coord> seen;
  for (int reg = 0; reg < slice_.numRegs(); ++reg)  // replicas count once
    if (seen.insert(slice_.regCoord(reg)).second) shared.regs.push_back(reg);
  std::vector<Tuple> values;
  for (int reg : shared.regs) values.push_back(partial[reg]);
  partial = std::move(values);
  if (warpInstruction() || isOneOrdered(partial)) {
    acrossLanes(partial);
    return shared;
  }
  auto place = [&](int reg) {
    const Coord coord = slice_.regCoord(reg);
    int64_t at = 0;
    for (int dim = 0; dim < slice_.rank(); ++dim) at += coord[dim] * table.strides[dim];
    return at;
  };
  auto distanceOfPairs = [&]() -> std::optional<int64_t> {
    std::optional<int64_t> distance;
    for (size_t i = 0; i + 1 < shared.regs.size(); i += 2) {
      const int64_t here = place(shared.regs[i + 1]) - place(shared.regs[i]);
      if (distance && *distance != here) return std::nullopt;
      distance = here;
    }
    return shared.regs.size() % 2 ? std::nullopt : distance;
  };
  int step = 1;
  for (const Digit& digit : source_.lanes()) {
    for (int distance = 1; digit.dim == axis_ && distance < digit.count; distance *= 2) {
      const std::optional<int64_t> apart = distanceOfPairs();
      if (!apart || !eitherWay_ || source_.isPadded(axis_) || !llvm::isPowerOf2_32(digit.count)) {
        butterfly(partial, step, digit, distance);
        continue;
      }
      const int partner = step * distance;
      partial = keepHalf(e, combine_, partial, partner);
      std::vector<int> regs;
      for (size_t i = 0; i < shared.regs.size(); i += 2) regs.push_back(shared.regs[i]);
      shared.regs = std::move(regs);
      shared.offset.emplace_back(partner, *apart);
    }
    step *= digit.count;
  }
  return shared;
}

}  // namespace tile::ir
