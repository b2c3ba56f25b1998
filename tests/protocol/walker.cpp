// walker.cpp - control flow with an explicit stack, integer arithmetic.
#include "tests/protocol/walker.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tile::ir::protocol {
using namespace mlir;

namespace {

constexpr int64_t kAddressStep = int64_t{1} << 40;  ///< between arguments

std::string textOf(Operation* op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  op->print(out, OpPrintingFlags().skipRegions().useLocalScope());
  return text;
}

/// As many low bits as the type has, signed; i1 is 0 or 1.
int64_t wrapped(int64_t value, Type type) {
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (bits == 1) return value & 1;
  if (bits >= 64) return value;
  return static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - bits)) >> (64 - bits);
}
uint64_t unsignedOf(int64_t value, Type type) {
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return bits >= 64 ? static_cast<uint64_t>(value) : static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
}

int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Integer arithmetic on known operands; nullopt: another op, or a division by zero.
std::optional<int64_t> evaluate(Operation* op, ArrayRef<int64_t> in) {
  Type type = op->getNumOperands() ? op->getOperand(op->getNumOperands() - 1).getType() : Type();
  auto u = [&](int i) { return unsignedOf(in[static_cast<size_t>(i)], type); };
  auto word = [&](size_t i) {
    const unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    return llvm::APInt(64, static_cast<uint64_t>(in[i]), /*isSigned=*/true).trunc(bits);
  };
  using Result = std::optional<int64_t>;
  return llvm::TypeSwitch<Operation*, Result>(op)
      .Case<arith::AddIOp>(
          [&](auto) { return static_cast<int64_t>(static_cast<uint64_t>(in[0]) + static_cast<uint64_t>(in[1])); })
      .Case<arith::SubIOp>(
          [&](auto) { return static_cast<int64_t>(static_cast<uint64_t>(in[0]) - static_cast<uint64_t>(in[1])); })
      .Case<arith::MulIOp>(
          [&](auto) { return static_cast<int64_t>(static_cast<uint64_t>(in[0]) * static_cast<uint64_t>(in[1])); })
      .Case<arith::DivSIOp>([&](auto) { return in[1] ? Result(in[0] / in[1]) : Result(); })
      .Case<arith::RemSIOp>([&](auto) { return in[1] ? Result(in[0] % in[1]) : Result(); })
      .Case<arith::DivUIOp>([&](auto) { return in[1] ? Result(u(0) / u(1)) : Result(); })
      .Case<arith::RemUIOp>([&](auto) { return in[1] ? Result(u(0) % u(1)) : Result(); })
      .Case<arith::FloorDivSIOp>([&](auto) { return in[1] ? Result(floorDiv(in[0], in[1])) : Result(); })
      .Case<arith::CeilDivSIOp>([&](auto) { return in[1] ? Result(-floorDiv(-in[0], in[1])) : Result(); })
      .Case<arith::CeilDivUIOp>([&](auto) { return in[1] ? Result((u(0) + u(1) - 1) / u(1)) : Result(); })
      .Case<arith::MinSIOp>([&](auto) { return std::min(in[0], in[1]); })
      .Case<arith::MaxSIOp>([&](auto) { return std::max(in[0], in[1]); })
      .Case<arith::MinUIOp>([&](auto) { return u(0) < u(1) ? in[0] : in[1]; })
      .Case<arith::MaxUIOp>([&](auto) { return u(0) > u(1) ? in[0] : in[1]; })
      .Case<arith::AndIOp>([&](auto) { return in[0] & in[1]; })
      .Case<arith::OrIOp>([&](auto) { return in[0] | in[1]; })
      .Case<arith::XOrIOp>([&](auto) { return in[0] ^ in[1]; })
      .Case<arith::ShLIOp>([&](auto) { return static_cast<int64_t>(static_cast<uint64_t>(in[0]) << in[1]); })
      .Case<arith::ShRSIOp>([&](auto) { return in[0] >> in[1]; })
      .Case<arith::ShRUIOp>([&](auto) { return u(0) >> in[1]; })
      .Case<arith::CmpIOp>([&](auto o) { return arith::applyCmpPredicate(o.getPredicate(), word(0), word(1)); })
      .Case<arith::SelectOp>([&](auto) { return in[0] ? in[1] : in[2]; })
      .Case<arith::ExtSIOp>([&](auto) { return type.isInteger(1) ? -in[0] : in[0]; })
      .Case<arith::ExtUIOp>([&](auto) { return u(0); })
      .Case<arith::TruncIOp, arith::IndexCastOp>([&](auto) { return in[0]; })
      .Case<math::CtPopOp>([&](auto) { return static_cast<int64_t>(llvm::popcount(u(0))); })
      .Case<math::CountTrailingZerosOp>([&](auto) {
        return std::min<int64_t>(llvm::countr_zero(u(0)), type.getIntOrFloatBitWidth());
      })
      .Case<AssumeOp>([&](auto) { return in[0]; })
      .Case<PtrAddOp>([&](auto) { return in[0] + in[1]; })
      .Default([](Operation*) { return Result(); });
}

bool isScalarNumber(Type type) { return type.isIntOrIndex() || isa<PtrType, ViewType>(type); }

}  // namespace

Env arguments(func::FuncOp func, const Inputs& inputs) {
  Env env;
  for (BlockArgument arg : func.getArguments()) {
    Val val;
    auto scalar = inputs.scalars.find(arg.getArgNumber());
    if (isa<PtrType, ViewType>(arg.getType()))
      val.number = (arg.getArgNumber() + 1) * kAddressStep;
    else if (arg.getType().isIntOrIndex())
      val.number = scalar == inputs.scalars.end() ? 0 : scalar->second;
    env[arg] = val;
  }
  return env;
}

std::string boxName(const Walker& walker, Value view, ValueRange indices, SmemType type) {
  int64_t address = walker.number(view);
  std::string name = "argument " + std::to_string(address / kAddressStep - 1) + " at [";
  for (auto [i, index] : llvm::enumerate(indices)) name += (i ? ", " : "") + std::to_string(walker.number(index));
  return name + "], " + std::to_string(type.getShape()[0]) + "x" + std::to_string(type.getShape()[1]);
}

namespace {

std::string formulaOf(const Walker& walker, Value value) {
  if (!isa<RankedTensorType>(value.getType())) return std::to_string(walker.number(value));
  Operation* op = value.getDefiningOp();
  if (!op) throw Fault{"a tile of offsets carried by a loop"};
  std::string text = op->getName().stripDialect().str();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    llvm::raw_string_ostream out(text);
    cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>().print(out);  // the type may have a layout
  }
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) text += (i ? ", " : "(") + formulaOf(walker, operand);
  return op->getNumOperands() ? text + ")" : text;
}

}  // namespace

std::string gatherName(const Walker& walker, Value ptr, Value offsets, Value mask) {
  std::string name = "address " + std::to_string(walker.number(ptr)) + " at " + formulaOf(walker, offsets);
  return mask ? name + " where " + formulaOf(walker, mask) : name;
}

const Val& Walker::get(Value value) const {
  static const Val nothing;
  auto it = env.find(value);
  return it == env.end() ? nothing : it->second;
}
int64_t Walker::number(Value value) const {
  const Val& val = get(value);
  if (val.number) return *val.number;
  throw Fault{"a number this interpreter does not know: " +
              (value.getDefiningOp() ? textOf(value.getDefiningOp()) : "an argument")};
}

void Walker::copy(ValueRange from, ValueRange to) {
  std::vector<Val> values;
  for (Value v : from) values.push_back(get(v));
  for (auto [v, val] : llvm::zip(to, values)) env[v] = val;
}

Operation* Walker::at() const {
  const Frame& top = stack_.back();
  return top.next == top.block->end() ? top.owner : &*top.next;
}

Walker::State Walker::step() {
  if (stack_.empty()) return State::finished;
  Frame& top = stack_.back();
  if (top.next == top.block->end()) return endOfBlock();
  Operation* op = &*top.next;
  if (op->hasTrait<OpTrait::IsTerminator>()) return terminator(op);
  if (isa<WorkLoopOp>(op)) {
    ++top.next;
    enter(op, cast<WorkLoopOp>(op).getBody().front());
    stack_.back().next = stack_.back().block->end();  // the first item is drawn like the others
    return State::ran;
  }
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op)) {
    ++top.next;
    control(op);
    return State::ran;
  }
  if (!scalar(op) && !execute_(op, *this)) return State::blocked;
  ++top.next;
  return State::ran;
}

bool Walker::control(Operation* op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    int64_t low = number(loop.getLowerBound()), high = number(loop.getUpperBound());
    if (low >= high) return copy(loop.getInitArgs(), loop.getResults()), true;
    copy(loop.getInitArgs(), loop.getRegionIterArgs());
    enter(op, *loop.getBody());
    Frame& frame = stack_.back();
    frame.counter = low, frame.upper = high, frame.step = number(loop.getStep());
    if (frame.step <= 0) throw Fault{"a loop with step " + std::to_string(frame.step)};
    env[loop.getInductionVar()] = Val{frame.counter};
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    Region& region = number(branch.getCondition()) ? branch.getThenRegion() : branch.getElseRegion();
    if (!region.empty()) enter(op, region.front());
  } else {
    auto loop = cast<scf::WhileOp>(op);
    copy(loop.getInits(), loop.getBeforeArguments());
    enter(op, *loop.getBeforeBody());
  }
  return true;
}

Walker::State Walker::terminator(Operation* op) {
  Frame& top = stack_.back();
  if (auto loop = dyn_cast_or_null<scf::ForOp>(top.owner)) {
    top.counter += top.step;
    if (top.counter < top.upper) {
      copy(op->getOperands(), loop.getRegionIterArgs());
      env[loop.getInductionVar()] = Val{top.counter};
      top.next = top.block->begin();
      return State::ran;
    }
    copy(op->getOperands(), loop.getResults());
  } else if (auto branch = dyn_cast_or_null<scf::IfOp>(top.owner)) {
    copy(op->getOperands(), branch.getResults());
  } else if (auto loop = dyn_cast_or_null<scf::WhileOp>(top.owner)) {
    if (auto condition = dyn_cast<scf::ConditionOp>(op)) {
      if (number(condition.getCondition())) {
        copy(condition.getArgs(), loop.getAfterArguments());
        top.block = loop.getAfterBody(), top.next = top.block->begin();
        return State::ran;
      }
      copy(condition.getArgs(), loop.getResults());
    } else {
      copy(op->getOperands(), loop.getBeforeArguments());
      top.block = loop.getBeforeBody(), top.next = top.block->begin();
      return State::ran;
    }
  }
  stack_.pop_back();
  return stack_.empty() ? State::finished : State::ran;
}

Walker::State Walker::endOfBlock() {
  Frame& top = stack_.back();
  if (auto loop = dyn_cast_or_null<WorkLoopOp>(top.owner)) {
    std::optional<std::array<int64_t, 3>> item;
    if (!nextItem_(loop, item)) return State::blocked;
    if (item) {
      for (int axis = 0; axis < 3; ++axis)
        env[loop.getBody().getArgument(static_cast<unsigned>(axis))] = Val{(*item)[static_cast<size_t>(axis)]};
      top.next = top.block->begin();
      return State::ran;
    }
  }
  stack_.pop_back();
  return stack_.empty() ? State::finished : State::ran;
}

/// Scalars, known or not; false: the owner's.
bool Walker::scalar(Operation* op) {
  if (auto ballot = dyn_cast<BallotOp>(op)) {
    Block& asked = ballot.getSteps().front();
    uint32_t bits = 0;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      env[asked.getArgument(0)] = Val{lane};
      for (Operation& inner : asked.without_terminator())
        if (!scalar(&inner)) throw Fault{"a ballot this interpreter does not know: " + textOf(&inner)};
      bits |= static_cast<uint32_t>(number(asked.getTerminator()->getOperand(0)) & 1) << lane;
    }
    env[ballot.getBits()] = Val{static_cast<int32_t>(bits)};
    return true;
  }
  if (isa<ProgramIdOp>(op) || op->getNumResults() != 1 || !isScalarNumber(op->getResult(0).getType()) ||
      op->getNumRegions() || isa<RingReserveOp, RingAcquireOp, TakeOverOp>(op))
    return false;
  Value result = op->getResult(0);
  Val val;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    val.number = cast<IntegerAttr>(constant.getValue()).getValue().getSExtValue();
  } else if (auto dim = dyn_cast<ViewDimOp>(op)) {
    auto it = inputs_.dims.find(static_cast<unsigned>(number(dim.getView()) / kAddressStep - 1));
    val.number = it == inputs_.dims.end() ? inputs_.otherDims : it->second.at(dim.getDim());
  } else if (auto stride = dyn_cast<ViewStrideOp>(op)) {
    val.number = 1;
  } else if (auto programs = dyn_cast<NumProgramsOp>(op)) {
    val.number = inputs_.grid[programs.getAxis()];
  } else if (auto view = dyn_cast<MakeViewOp>(op)) {
    val = get(view.getPtr());
  } else if (auto ptr = dyn_cast<ViewPtrOp>(op)) {
    val = get(ptr.getView());
  } else if (auto load = dyn_cast<LoadOp>(op)) {
    std::vector<int64_t> indices;
    for (Value index : load.getIndices()) indices.push_back(number(index));
    val.number = inputs_.memory(number(load.getView()), indices);
  } else if (auto gather = dyn_cast<GatherOp>(op)) {
    val.number = inputs_.memory(number(gather.getPtr()), {});
  } else {
    SmallVector<int64_t> in;
    bool known = true;
    for (Value operand : op->getOperands()) {
      known &= get(operand).number.has_value();
      in.push_back(get(operand).number.value_or(0));
    }
    if (known) val.number = evaluate(op, in);
  }
  if (val.number && result.getType().isIntOrIndex()) val.number = wrapped(*val.number, result.getType());
  env[result] = val;
  return true;
}

}  // namespace tile::ir::protocol
