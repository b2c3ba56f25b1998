// What meets narrow, and what does not: constants that widening would not give back, and those that are no number.
#include "compiler/targets/narrow_phis.h"

#include <gtest/gtest.h>

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace tile::ir {
namespace {

/// A function in which `%x` of type `narrow`, widened by `cast`, meets `constant`; the line of its phi behind the pass.
std::string meeting(const std::string& narrow, const std::string& cast, const std::string& wide,
                    const std::string& constant) {
  const std::string text = "define " + wide + " @f(i1 %c, " + narrow + " %x) {\n  br i1 %c, label %a, label %b\na:\n  %w = " +
                           cast + " " + narrow + " %x to " + wide + "\n  br label %b\nb:\n  %p = phi " + wide +
                           " [ %w, %a ], [ " + constant + ", %0 ]\n  ret " + wide + " %p\n}\n";
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
  if (!module) return problem.getMessage().str();
  llvm::FunctionAnalysisManager analyses;
  NarrowPhis().run(*module->begin(), analyses);
  std::string out;
  llvm::raw_string_ostream os(out);
  if (llvm::verifyModule(*module, &os)) return out;
  module->print(os, nullptr);
  const size_t from = out.find("phi ") + 4;
  return out.substr(from, out.find('\n', from) - from);
}

TEST(NarrowPhis, NumbersThatFitMeetNarrow) {
  EXPECT_EQ(meeting("i32", "sext", "i64", "-7"), "i32 [ %x, %a ], [ -7, %0 ]");
  EXPECT_EQ(meeting("i32", "zext", "i64", "4294967295"), "i32 [ %x, %a ], [ -1, %0 ]");
  EXPECT_EQ(meeting("float", "fpext", "double", "-0.0"), "float [ %x, %a ], [ -0.000000e+00, %0 ]");
}

TEST(NarrowPhis, NumbersThatDoNotFitStay) {
  EXPECT_EQ(meeting("i32", "sext", "i64", "2147483648"), "i64 [ %w, %a ], [ 2147483648, %0 ]");
  EXPECT_EQ(meeting("i32", "zext", "i64", "-1"), "i64 [ %w, %a ], [ -1, %0 ]");
  EXPECT_EQ(meeting("float", "fpext", "double", "1.0e-1"), "double [ %w, %a ], [ 1.000000e-01, %0 ]");
  EXPECT_EQ(meeting("float", "fpext", "double", "0x7FF8000000000001"), "double [ %w, %a ], [ 0x7FF8000000000001, %0 ]");
}

// Some number is less than no number at all: what depends on poison may be anything.
TEST(NarrowPhis, SomeNumberStaysANumber) {
  EXPECT_EQ(meeting("i32", "sext", "i64", "undef"), "i32 [ %x, %a ], [ undef, %0 ]");
  EXPECT_EQ(meeting("i32", "sext", "i64", "poison"), "i32 [ %x, %a ], [ poison, %0 ]");
}

}  // namespace
}  // namespace tile::ir
