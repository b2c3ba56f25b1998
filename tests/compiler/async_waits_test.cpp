// async_waits_test.cpp - the check behind async_waits: programs that read an unfinished product must be refused.
#include <gtest/gtest.h>

#include <random>

#include "compiler/compiler.h"
#include "compiler/gpu/forms/async_products.h"
#include "compiler/gpu/gpu_passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace tile::ir {
namespace {

/// The error that the check reports for a kernel with this body; empty: it passes.
std::string check(const std::string& body) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
    if (message.empty()) message = diagnostic.str();
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @k(%q: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>, %c: i1, %n: i32) {\n"
      "  %c0 = arith.constant 0 : i32\n  %c1 = arith.constant 1 : i32\n" +
          body + "  return\n}\n",
      &context);
  if (!module) return "does not parse: " + message;
  auto func = *module->getOps<mlir::func::FuncOp>().begin();
  bool passes = mlir::succeeded(checkAsyncWaits(func));
  EXPECT_EQ(passes, message.empty());
  return message;
}

std::string product(const std::string& name, const std::string& acc) {
  return "  %" + name + " = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %q, %" + acc +
         " : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>\n";
}
const std::string kUse = "  %u = arith.addf %x, %x : tensor<64x64xf32>\n";
const char* const kUnfinished = "reads the result of an asynchronous product that no tile.mma_wait has finished";

TEST(AsyncWaits, ReadBehindItsWait) {
  EXPECT_EQ(check(product("a", "o") + "  %x = tile.mma_wait 0 of %a : tensor<64x64xf32>\n" + kUse), "");
  EXPECT_EQ(check(product("a", "o") + product("b", "o") + "  %x = tile.mma_wait 1 of %a : tensor<64x64xf32>\n" + kUse +
                  "  %y = tile.mma_wait 0 of %b : tensor<64x64xf32>\n"),
            "");
}

TEST(AsyncWaits, ReadWithoutWait) { EXPECT_EQ(check(product("x", "o") + kUse), kUnfinished); }

TEST(AsyncWaits, ReadAroundTheWait) { EXPECT_EQ(check(product("x", "o") + "  tile.mma_wait 0\n" + kUse), kUnfinished); }

TEST(AsyncWaits, WaitLeavesTheGroupRunning) {
  EXPECT_EQ(check(product("a", "o") + product("b", "o") + "  %x = tile.mma_wait 1 of %b : tensor<64x64xf32>\n"),
            "waits until 1 groups are unfinished, which leaves the group of its operand among them");
}

TEST(AsyncWaits, AccumulatorThatSomebodyElseReads) {
  EXPECT_EQ(check(product("a", "o") + product("b", "a")), "");
  EXPECT_EQ(check(product("x", "o") + product("b", "x") + "  tile.mma_wait 0\n" + kUse), kUnfinished);
}

const std::string kLoop = "  %r = scf.for %i = %c0 to %n step %c1 iter_args(%l = %o) -> (tensor<64x64xf32>) : i32 {\n";

TEST(AsyncWaits, RoundALoop) {
  const std::string body = product("d", "l") + "  tile.mma_wait 1\n  scf.yield %d : tensor<64x64xf32>\n  }\n";
  EXPECT_EQ(check(kLoop + body + "  %x = tile.mma_wait 0 of %r : tensor<64x64xf32>\n" + kUse), "");
  EXPECT_EQ(check(kLoop + body + "  %x = arith.addf %r, %r : tensor<64x64xf32>\n"), kUnfinished);
  EXPECT_EQ(check(kLoop + "  %x = arith.addf %l, %l : tensor<64x64xf32>\n" + body), kUnfinished);
}

TEST(AsyncWaits, OutOfABranch) {
  EXPECT_EQ(check("  %r = scf.if %c -> (tensor<64x64xf32>) {\n" + product("d", "o") +
                  "  scf.yield %d : tensor<64x64xf32>\n  } else {\n  scf.yield %o : tensor<64x64xf32>\n  }\n"),
            kUnfinished);
}

TEST(AsyncWaits, StageOfARunningProduct) {
  const std::string head =
      "  %stages = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 3>\n"
      "  %ring = tile.ring_alloc arrivals 1 : !tile.ring<3>\n  %i = tile.ring_acquire %ring : !tile.ring<3>\n"
      "  %s = tile.smem_slot %stages[%i] : !tile.smem<64x64xf16, minor = 1, stages = 3> -> !tile.smem<64x64xf16, minor "
      "= 1>\n"
      "  %a = tile.mma wgmma_f16 k 64 warps(4, 1) %q, %s, %o : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, "
      "minor "
      "= 1> -> tensor<64x64xf32>\n";
  const std::string release = "  tile.ring_release %ring : !tile.ring<3>\n";
  EXPECT_EQ(check(head + product("b", "o") + "  tile.mma_wait 1\n" + release + "  tile.mma_wait 0\n"), "");
  EXPECT_EQ(check(head + product("b", "o") + release + "  tile.mma_wait 0\n"),
            "releases a stage that an unfinished asynchronous product reads");
}

// ---- programs nobody wrote

/// Random programs of products, elementwise work, stages, buffers, branches and loops.
class Programs {
 public:
  explicit Programs(uint32_t seed) : random_(seed) {}

  std::string next() {
    text_ =
        "func.func @k(%q: !tile.smem<64x64xf16, minor = 1>, %o: tensor<64x64xf32>, %h: tensor<64x64xf16>, %c: i1, %n: "
        "i32, "
        "%v: !tile.view<2xf32>) {\n  %c0 = arith.constant 0 : i32\n  %c1 = arith.constant 1 : i32\n"
        "  %zero = arith.constant dense<0.0> : tensor<64x64xf32>\n"
        "  %buf = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1>\n"
        "  %stages = tile.smem_alloc : !tile.smem<64x64xf16, minor = 1, stages = 3>\n"
        "  %ring = tile.ring_alloc arrivals 1 : !tile.ring<3>\n";
    Names names{{"%o", "%zero"}, {"%h"}};
    block(names, 2);
    for (const std::string& wide : names.wide)
      text_ += "tile.store " + wide + ", %v[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>\n";
    return text_ + "return\n}\n";
  }

 private:
  struct Names {
    std::vector<std::string> wide, narrow;  ///< f32 and f16 tiles
  };
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  std::string fresh() { return "%x" + std::to_string(count_++); }
  /// Recent names are more likely: chains of products and of work on their results.
  const std::string& pick(const std::vector<std::string>& names) {
    int last = static_cast<int>(names.size()) - 1;
    return names[static_cast<size_t>(below(2) ? last : below(last + 1))];
  }

  void multiply(Names& names, const std::string& shared) {
    std::string name = fresh();
    bool inRegisters = below(3) == 0;
    text_ += name + " = tile.mma wgmma_f16 k 64 warps(4, 1) " + (inRegisters ? pick(names.narrow) : shared) + ", " +
             shared + ", " + (below(2) ? "%zero" : pick(names.wide)) + " : " +
             (inRegisters ? "tensor<64x64xf16>" : "!tile.smem<64x64xf16, minor = 1>") +
             ", !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>\n";
    names.wide.push_back(name);
  }

  void statement(Names& names, int depth) {
    std::string name;
    switch (below(depth > 0 ? 9 : 7)) {
      case 0:
      case 1:
        return multiply(names, below(2) ? "%q" : "%buf");
      case 2: {  // a stage, read by a product or two
        std::string slot = fresh(), tile = fresh();
        text_ += slot + " = tile.ring_acquire %ring : !tile.ring<3>\n" + tile + " = tile.smem_slot %stages[" + slot +
                 "] : !tile.smem<64x64xf16, minor = 1, stages = 3> -> !tile.smem<64x64xf16, minor = 1>\n";
        for (int i = below(3); i >= 0; --i) multiply(names, tile);
        text_ += "tile.ring_release %ring : !tile.ring<3>\n";
        return;
      }
      case 3:
      case 4:
        name = fresh();
        text_ += name + " = arith.addf " + pick(names.wide) + ", " + pick(names.wide) + " : tensor<64x64xf32>\n";
        names.wide.push_back(name);
        return;
      case 5:
        name = fresh();
        text_ += name + " = arith.truncf " + pick(names.wide) + " : tensor<64x64xf32> to tensor<64x64xf16>\n";
        names.narrow.push_back(name);
        return;
      case 6:
        text_ +=
            "tile.smem_store " + pick(names.narrow) + ", %buf : tensor<64x64xf16>, !tile.smem<64x64xf16, minor = 1>\n";
        return;
      case 7: {
        name = fresh();
        text_ += name + " = scf.if %c -> (tensor<64x64xf32>) {\n";
        for (int branch = 0; branch < 2; ++branch) {
          Names inner = names;
          block(inner, depth - 1);
          text_ += "scf.yield " + pick(inner.wide) + " : tensor<64x64xf32>\n" + (branch ? "}\n" : "} else {\n");
        }
        names.wide.push_back(name);
        return;
      }
      default: {
        name = fresh();
        std::string a = fresh(), b = fresh(), p = fresh(), i = fresh();
        text_ += name + ":3 = scf.for " + i + " = %c0 to %n step %c1 iter_args(" + a + " = " + pick(names.wide) + ", " +
                 b + " = " + pick(names.wide) + ", " + p + " = " + pick(names.narrow) +
                 ") -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf16>) : i32 {\n";
        Names inner = names;
        inner.wide.insert(inner.wide.end(), {a, b});
        inner.narrow.push_back(p);
        block(inner, depth - 1);
        text_ += "scf.yield " + pick(inner.wide) + ", " + pick(inner.wide) + ", " + pick(inner.narrow) +
                 " : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf16>\n}\n";
        names.wide.insert(names.wide.end(), {name + "#0", name + "#1"});
        names.narrow.push_back(name + "#2");
      }
    }
  }
  void block(Names& names, int depth) {
    for (int i = 2 + below(6); i > 0; --i) statement(names, depth);
  }

  std::mt19937 random_;
  std::string text_;
  int count_ = 0;
};

TEST(AsyncWaits, RandomProgramsPassTheCheck) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry);
  int waits = 0, running = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const std::string text = Programs(seed).next();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    mlir::PassManager passes(&context);
    passes.addNestedPass<mlir::func::FuncOp>(createAsyncWaitsPass());
    ASSERT_TRUE(mlir::succeeded(passes.run(*module))) << "seed " << seed << "\n" << text;
    ASSERT_TRUE(mlir::succeeded(mlir::verify(*module))) << "seed " << seed << "\n" << text;
    module->walk([&](MmaWaitOp wait) { ++(wait.getPending() ? running : waits); });
  }
  EXPECT_GT(waits, 3000);
  EXPECT_GT(running, 300);  // some leave later products running
}

}  // namespace
}  // namespace tile::ir
