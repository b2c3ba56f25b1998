// The copy protocol of staged loops, executed. An interpreter runs a kernel twice: with tiles in shared memory as values
// (after place_operands), and staged into rings. Both must feed the same boxes to the same products. The second run also
// keeps the books of the asynchronous copies: a product may only read a buffer whose copy was waited for before a barrier,
// and a copy may only start into a buffer that nobody has read since the last barrier and no other copy still fills.
// One thread's view is enough: every thread runs the same sequence, and what barriers order is counted in epochs.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/dialect/dialect.h"
#include "compiler/gpu/dot_passes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace tile::ir {
namespace {

using mlir::Operation;
using mlir::Value;

struct Buffer {
  std::string content = "nothing";
  bool inFlight = false;
  int64_t group = -1;        ///< of the last copy into it
  int64_t landedEpoch = -1;  ///< barriers passed when the copy was known to have landed
  int64_t readEpoch = -1;    ///< barriers passed at the last read
};

class Interpreter {
 public:
  std::vector<std::string> products;  ///< what each product read, in order
  std::vector<std::string> errors;
  std::vector<int64_t> table;  ///< contents of every rank-1 view

  void run(mlir::func::FuncOp func, int64_t n) {
    for (mlir::BlockArgument arg : func.getArguments()) {
      if (arg.getType().isInteger(32)) ints_[arg] = n;
      names_[arg] = "arg" + std::to_string(arg.getArgNumber());
      if (mlir::isa<SmemType>(arg.getType())) buffers_[newBuffer(arg, 1)].content = names_[arg], landed(arg);
    }
    block(func.getBody().front());
    for (auto& [key, buffer] : buffers_)
      if (buffer.inFlight) error("a copy of " + buffer.content + " is still in flight at the end");
  }

 private:
  using Key = std::pair<int64_t, int64_t>;  ///< allocation, slot

  Key newBuffer(Value v, int64_t stages) {
    Key key{++allocations_, 0};
    for (int64_t i = 0; i < stages; ++i) buffers_[{key.first, i}] = {};
    smem_[v] = key;
    return key;
  }
  void landed(Value v) { buffers_[smem_[v]].landedEpoch = -1, buffers_[smem_[v]].inFlight = false; }
  void error(const std::string& what) { errors.push_back(what); }
  int64_t value(Value v) {
    auto it = ints_.find(v);
    if (it == ints_.end()) return error("an integer is not known"), 0;
    return it->second;
  }

  llvm::APInt word(Value v) { return {64, static_cast<uint64_t>(value(v)), /*isSigned=*/true}; }

  void copyValue(Value to, Value from) {
    if (auto it = ints_.find(from); it != ints_.end()) ints_[to] = it->second;
    if (auto it = smem_.find(from); it != smem_.end()) smem_[to] = it->second;
    if (auto it = tags_.find(from); it != tags_.end()) tags_[to] = it->second;
    if (auto it = names_.find(from); it != names_.end()) names_[to] = it->second;
  }

  /// Runs a block; its terminator is left to the caller.
  void block(mlir::Block& b) {
    for (Operation& op : b) execute(&op);
  }

  std::string boxOf(Value view, mlir::OperandRange indices) {
    std::string tag = names_[view] + "[";
    for (Value i : indices) tag += std::to_string(value(i)) + " ";
    return tag + "]";
  }

  void startCopy(Value target, const std::string& tag) {
    Buffer& buffer = buffers_[smem_[target]];
    if (buffer.inFlight) error("copy of " + tag + " into a buffer that the copy of " + buffer.content + " still fills");
    if (buffer.readEpoch >= epoch_) error("copy of " + tag + " into a buffer read since the last barrier");
    buffer.content = tag;
    buffer.inFlight = true;
    buffer.group = openGroup_;
  }

  std::string read(Value smem) {
    if (auto it = tags_.find(smem); it != tags_.end()) return it->second;  // value level
    Buffer& buffer = buffers_[smem_[smem]];
    if (buffer.inFlight)
      error("read of " + buffer.content + " while its copy is in flight");
    else if (buffer.landedEpoch >= epoch_)
      error("read of " + buffer.content + " without a barrier after its wait");
    buffer.readEpoch = epoch_;
    return buffer.content;
  }

  void execute(Operation* op) {
    mlir::TypeSwitch<Operation*>(op)
        .Case([&](mlir::arith::ConstantOp o) {
          if (auto i = mlir::dyn_cast<mlir::IntegerAttr>(o.getValue())) ints_[o] = i.getValue().getSExtValue();
        })
        .Case([&](mlir::arith::AddIOp o) { binary(o, [](int64_t a, int64_t b) { return a + b; }); })
        .Case([&](mlir::arith::MulIOp o) { binary(o, [](int64_t a, int64_t b) { return a * b; }); })
        .Case([&](mlir::arith::ExtSIOp o) { copyValue(o, o.getIn()); })
        .Case([&](mlir::arith::CmpIOp o) {
          if (mlir::isa<mlir::RankedTensorType>(o.getType())) return;
          ints_[o] = mlir::arith::applyCmpPredicate(o.getPredicate(), word(o.getLhs()), word(o.getRhs()));
        })
        .Case([&](mlir::arith::SelectOp o) {
          if (!mlir::isa<mlir::RankedTensorType>(o.getType()))
            copyValue(o, value(o.getCondition()) ? o.getTrueValue() : o.getFalseValue());
        })
        .Case([&](LoadOp o) {
          if (mlir::isa<mlir::RankedTensorType>(o.getType())) return;
          int64_t at = value(o.getIndices()[0]);
          if (at < 0 || at >= static_cast<int64_t>(table.size()))
            return error("reads entry " + std::to_string(at) + " of the table");
          ints_[o] = table[at];
        })
        .Case([&](LoadSharedOp o) { tags_[o] = boxOf(o.getView(), o.getIndices()); })
        .Case([&](SmemAllocOp o) { newBuffer(o, o.getType().getStages()); })
        .Case([&](SmemSlotOp o) {
          int64_t slot = value(o.getIndex());
          if (slot < 0 || slot >= o.getRing().getType().getStages())
            error("slot " + std::to_string(slot) + " of the ring");
          smem_[o] = {smem_[o.getRing()].first, slot};
        })
        .Case([&](SmemTransOp o) { copyValue(o, o.getSource()); })
        .Case([&](AsyncCopyOp o) {
          if (!o.getEnable() || value(o.getEnable()))
            return startCopy(o.getTarget(), boxOf(o.getView(), o.getIndices()));
          startCopy(o.getTarget(), "zeros");  // disabled copies still write
        })
        .Case([&](AsyncCommitOp) { ++openGroup_; })
        .Case([&](AsyncWaitOp o) {
          for (auto& [key, buffer] : buffers_)
            if (buffer.inFlight && buffer.group < openGroup_ - o.getPending())
              buffer.inFlight = false, buffer.landedEpoch = epoch_;
        })
        .Case([&](BarrierOp) { ++epoch_; })
        .Case([&](MmaOp o) {
          std::string a = mlir::isa<SmemType>(o.getA().getType()) ? read(o.getA()) : "registers";
          products.push_back(a + " * " + read(o.getB()));
        })
        .Case([&](mlir::scf::ForOp o) {
          for (auto [arg, init] : llvm::zip(o.getRegionIterArgs(), o.getInitArgs())) copyValue(arg, init);
          for (int64_t i = value(o.getLowerBound()); i < value(o.getUpperBound()); i += value(o.getStep())) {
            ints_[o.getInductionVar()] = i;
            block(*o.getBody());
            transfer(o.getBody()->getTerminator()->getOperands(), o.getRegionIterArgs());
          }
          transfer(o.getRegionIterArgs(), o.getResults());
        })
        .Case([&](mlir::scf::IfOp o) {
          mlir::Region& region = value(o.getCondition()) ? o.getThenRegion() : o.getElseRegion();
          if (region.empty()) return;
          block(region.front());
          transfer(region.front().getTerminator()->getOperands(), o.getResults());
        })
        .Default([](Operation*) {});
  }

  /// Parallel assignment: sources may be overwritten by targets.
  void transfer(mlir::ValueRange from, mlir::ValueRange to) {
    Interpreter old;
    for (auto [f, t] : llvm::zip(from, to)) {
      if (auto it = ints_.find(f); it != ints_.end()) old.ints_[t] = it->second;
      if (auto it = smem_.find(f); it != smem_.end()) old.smem_[t] = it->second;
    }
    for (auto& [v, i] : old.ints_) ints_[v] = i;
    for (auto& [v, key] : old.smem_) smem_[v] = key;
  }

  template <class F>
  void binary(Operation* op, F f) {
    if (!mlir::isa<mlir::RankedTensorType>(op->getResult(0).getType()))
      ints_[op->getResult(0)] = f(value(op->getOperand(0)), value(op->getOperand(1)));
  }

  llvm::DenseMap<Value, int64_t> ints_;
  llvm::DenseMap<Value, std::string> names_, tags_;
  llvm::DenseMap<Value, Key> smem_;
  std::map<Key, Buffer> buffers_;
  int64_t allocations_ = 0, openGroup_ = 0, epoch_ = 0;
};

/// A kernel around a loop body; the body reads boxes of %A and %B at its own indices.
std::string kernel(const std::string& loop) {
  return R"(func.func @k(%A: !tile.view<2 x f16>, %B: !tile.view<2 x f16>, %C: !tile.view<2 x f32>, %T: !tile.view<1 x i32>, %n: i32)
      attributes {tile.kernel, tile.num_warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c7 = arith.constant 7 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    )" + loop +
         R"(
    tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2 x f32>
    return
  })";
}
const std::string kLoadA = "%a = tile.load %A[%c0, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>\n";
const std::string kLoadB = "%b = tile.load %B[%i, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<32x64xf16>\n";
const std::string kDot = "%d = tile.dot %a, %b, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>\n";
const std::string kYield = "scf.yield %d : tensor<64x64xf32>\n}";
const std::string kFor =
    "%r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {\n";

struct Kernel {
  const char* name;
  std::string text;
};
std::vector<Kernel> kernels() {
  return {
      {"direct", kernel(kFor + kLoadA + kLoadB + kDot + kYield)},
      {"step", kernel("%r = scf.for %i = %c2 to %n step %c7 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {\n" +
                      kLoadA + kLoadB + kDot + kYield)},
      {"invariant", kernel("%i0 = arith.addi %n, %c1 : i32\n"
                           "%a = tile.load %A[%c0, %i0 : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>\n" +
                           kFor + kLoadB + kDot + kYield)},
      {"ragged", kernel(kFor +
                        "%a = tile.load %A[%c0, %i : i32, i32] : !tile.view<2 x f16> -> tensor<64x20xf16>\n"
                        "%b = tile.load %B[%i, %c0 : i32, i32] : !tile.view<2 x f16> -> tensor<20x64xf16>\n"
                        "%d = tile.dot %a, %b, %acc : tensor<64x20xf16>, tensor<20x64xf16> -> tensor<64x64xf32>\n" +
                        kYield)},
      {"carried", kernel("%r, %last = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero, %i = %c7) -> "
                         "(tensor<64x64xf32>, i32) : i32 {\n" +
                         kLoadA + kLoadB + kDot +
                         "%s = arith.muli %j, %c2 : i32\n%next = arith.addi %i, %s : i32\n"
                         "scf.yield %d, %next : tensor<64x64xf32>, i32\n}")},
      {"indirect",
       kernel("%r = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {\n"
              "%i = tile.load %T[%j : i32] : !tile.view<1 x i32> -> i32\n" +
              kLoadA + kLoadB + kDot + kYield)},
      {"skipping",
       kernel(kFor +
              "%t = tile.load %T[%i : i32] : !tile.view<1 x i32> -> i32\n%keep = arith.cmpi sgt, %t, %c2 : i32\n"
              "%x = scf.if %keep -> tensor<64x64xf32> {\n" +
              kLoadA + kLoadB + kDot + kYield +
              " else {\nscf.yield %acc : tensor<64x64xf32>\n}\nscf.yield %x : tensor<64x64xf32>\n}")},
      {"moving only when kept",
       kernel("%r, %last = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %zero, %i = %c0) -> (tensor<64x64xf32>, "
              "i32) : i32 {\n"
              "%t = tile.load %T[%j : i32] : !tile.view<1 x i32> -> i32\n%keep = arith.cmpi sgt, %t, %c2 : i32\n"
              "%x, %y = scf.if %keep -> (tensor<64x64xf32>, i32) {\n" +
              kLoadA + kLoadB + kDot +
              "%z = arith.addi %i, %t : i32\nscf.yield %d, %z : tensor<64x64xf32>, i32\n} else {\n"
              "scf.yield %acc, %i : tensor<64x64xf32>, i32\n}\nscf.yield %x, %y : tensor<64x64xf32>, i32\n}")},
      {"nested",
       kernel("%r = scf.for %o = %c0 to %n step %c1 iter_args(%outer = %zero) -> (tensor<64x64xf32>) : i32 {\n"
              "%a = tile.load %A[%o, %o : i32, i32] : !tile.view<2 x f16> -> tensor<64x32xf16>\n"
              "%inner = scf.for %i = %o to %n step %c1 iter_args(%acc = %outer) -> (tensor<64x64xf32>) : i32 {\n" +
              kLoadB + kDot + kYield + "\nscf.yield %inner : tensor<64x64xf32>\n}")},
      {"in place", kernel(kFor + kLoadA + kLoadB + kDot +
                          "tile.store %a, %A[%c0, %i : i32, i32] : tensor<64x32xf16>, !tile.view<2 x f16>\n" + kYield)},
  };
}

TEST(Protocol, EveryTripCountReadsTheRightBoxes) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  auto target = lookupTarget("sm_80");
  ASSERT_TRUE(target);
  for (const Kernel& kernel : kernels()) {
    for (int stages : {0, 1, 2, 3, 4}) {
      for (int64_t n = 0; n <= 2 * std::max(stages, 2) + 1; ++n) {
        SCOPED_TRACE(std::string(kernel.name) + ", stages " + std::to_string(stages) + ", n " + std::to_string(n));
        mlir::MLIRContext context(registry);
        auto module = mlir::parseSourceString<mlir::ModuleOp>(kernel.text, &context);
        ASSERT_TRUE(module);
        CompileOptions options;
        options.defaultStages = stages;
        auto targetOf = [&]() -> const Target& { return *target; };
        auto optionsOf = [&]() -> const CompileOptions& { return options; };
        auto execute = [&](std::unique_ptr<mlir::Pass> pass) {
          mlir::PassManager passes(&context);
          passes.addNestedPass<mlir::func::FuncOp>(std::move(pass));
          EXPECT_TRUE(mlir::succeeded(passes.run(*module)));
          Interpreter interpreter;
          for (int64_t i = 0; i < n; ++i) interpreter.table.push_back(i * 5 % 7);
          interpreter.run(*module->getOps<mlir::func::FuncOp>().begin(), n);
          return interpreter;
        };
        Interpreter values = execute(createPlaceOperandsPass(targetOf, optionsOf));
        Interpreter staged = execute(createStagePass(targetOf, optionsOf));
        EXPECT_TRUE(values.errors.empty()) << values.errors.front();
        EXPECT_TRUE(staged.errors.empty()) << staged.errors.front();
        EXPECT_EQ(staged.products, values.products);
        if (n > 6 && std::string(kernel.name) != "step") {
          EXPECT_GT(values.products.size(), 2u);  // the law is not empty
        }
      }
    }
  }
}

}  // namespace
}  // namespace tile::ir
