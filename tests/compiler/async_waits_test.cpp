// async_waits_test.cpp - the check behind async_waits: programs that read an unfinished product must be refused.
#include <gtest/gtest.h>

#include "compiler/compiler.h"
#include "compiler/gpu/async_products.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

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

TEST(AsyncWaits, ReadAroundTheWait) {
  EXPECT_EQ(check(product("x", "o") + "  tile.mma_wait 0\n" + kUse), kUnfinished);
}

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

}  // namespace
}  // namespace tile::ir
