// Answers that are kept for a context: takes and conversions that differ in one thing have answers of their own, the same
// that contexts give which keep none.
#include "compiler/analysis/memo.h"

#include <gtest/gtest.h>

#include "compiler/analysis/known_values.h"
#include "compiler/compiler.h"
#include "compiler/gpu/forms/moves.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace tile::ir {
namespace {

/// Takes from a tile whose 64 elements lie in two registers of 32 lanes, at places made of indices and constants.
constexpr const char* kText = R"(
#l = #tile.layout<64 regs [0:2*1] lanes [0:32*2] warps []>
func.func @k(%x: tensor<64xf32, #l>, %n: i32) {
  %i = tile.iota {start = 0 : i64} : tensor<64xi32, #l>
  %j = tile.iota {start = 1 : i64} : tensor<64xi32, #l>
  %one = arith.constant dense<1> : tensor<64xi32, #l>
  %two = arith.constant dense<2> : tensor<64xi32, #l>
  %s = tile.splat %n : i32 -> tensor<64xi32, #l>
  %next = arith.xori %i, %one : tensor<64xi32, #l>
  %lane = arith.xori %i, %two : tensor<64xi32, #l>
  %twice = arith.xori %next, %next : tensor<64xi32, #l>
  %mixed = arith.xori %next, %two : tensor<64xi32, #l>
  %free = arith.xori %i, %s : tensor<64xi32, #l>
  %a = tile.take %x, %i axis 0 : tensor<64xf32, #l>, tensor<64xi32, #l> -> tensor<64xf32, #l>
  %b = tile.take %x, %j axis 0 : tensor<64xf32, #l>, tensor<64xi32, #l> -> tensor<64xf32, #l>
  %c = tile.take %x, %next axis 0 : tensor<64xf32, #l>, tensor<64xi32, #l> -> tensor<64xf32, #l>
  %d = tile.take %x, %lane axis 0 : tensor<64xf32, #l>, tensor<64xi32, #l> -> tensor<64xf32, #l>
  %e = tile.take %x, %twice axis 0 : tensor<64xf32, #l>, tensor<64xi32, #l> -> tensor<64xf32, #l>
  %f = tile.take %x, %mixed axis 0 : tensor<64xf32, #l>, tensor<64xi32, #l> -> tensor<64xf32, #l>
  %g = tile.take %x, %free axis 0 : tensor<64xf32, #l>, tensor<64xi32, #l> -> tensor<64xf32, #l>
  return
}
)";

struct Parsed {
  explicit Parsed(bool keeps) : context(registered(), mlir::MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
    if (!keeps) context.enableMultithreading();
    module = mlir::parseSourceString<mlir::ModuleOp>(kText, &context);
  }
  static mlir::DialectRegistry registered() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }
  std::vector<TakeOp> takes() {
    std::vector<TakeOp> found;
    module->walk([&](TakeOp take) { found.push_back(take); });
    return found;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

std::string text(const std::optional<TakeMove>& move) {
  if (!move) return "shared memory";
  std::string out;
  for (size_t i = 0; i < move->map.size(); ++i)
    out += " " + std::to_string(move->map[i]) + "^" + std::to_string(move->flips[i]) + "+" +
           std::to_string(move->handovers[i].size());
  return out;
}

TEST(Memo, TakesAtOtherPlacesMoveOtherwise) {
  Parsed keeping(true), forgetful(false);
  ASSERT_TRUE(keeping.module && forgetful.module);
  const auto kept = keeping.takes(), plain = forgetful.takes();
  ASSERT_EQ(kept.size(), 7u);
  std::vector<std::string> answers;
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < kept.size(); ++i) {
      answers.push_back(text(planMove(kept[i])));
      EXPECT_EQ(answers.back(), text(planMove(plain[i]))) << "take " << i << ", round " << round;
    }
  EXPECT_EQ(answers[0], " 0^0+0 1^0+0");  // its own elements
  EXPECT_EQ(answers[2], " 1^0+0 0^0+0");  // the other register
  EXPECT_EQ(answers[3], " 0^1+0 1^1+0");  // the neighbouring lane
  EXPECT_EQ(answers[5], " 1^1+0 0^1+0");  // both
  EXPECT_EQ(answers[6], "shared memory");
}

TEST(Memo, DescriptionsTellGraphsApart) {
  Parsed parsed(true);
  ASSERT_TRUE(parsed.module);
  const auto takes = parsed.takes();
  std::vector<MemoKey> keys;
  for (TakeOp take : takes) {
    MemoKey key;
    const bool known = describeValues(take.getIndices(), key);
    EXPECT_EQ(known, knownValues(take.getIndices()).has_value());
    if (known) keys.push_back(key);
  }
  ASSERT_EQ(keys.size(), 6u);
  for (size_t i = 0; i < keys.size(); ++i)
    for (size_t j = 0; j < keys.size(); ++j) EXPECT_EQ(keys[i] == keys[j], i == j) << i << ", " << j;
}

TEST(Memo, AnswersAreComputedOnceForAContext) {
  Parsed keeping(true), forgetful(false);
  int computed = 0;
  auto ask = [&](Parsed& parsed, int64_t what) {
    return Memo<int>::get(&parsed.context, MemoKey().add(what), [&] { return ++computed, static_cast<int>(10 * what); });
  };
  EXPECT_EQ(ask(keeping, 1), 10);
  EXPECT_EQ(ask(keeping, 1), 10);
  EXPECT_EQ(ask(keeping, 2), 20);
  EXPECT_EQ(computed, 2);
  EXPECT_EQ(ask(forgetful, 1), 10);
  EXPECT_EQ(ask(forgetful, 1), 10);
  EXPECT_EQ(computed, 4);
}

}  // namespace
}  // namespace tile::ir
