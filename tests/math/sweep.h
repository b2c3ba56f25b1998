// sweep.h - emitted functions, compiled for this machine, and their largest error over many arguments.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iomanip>
#include <limits>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/lowering/elementwise.h"
#include "compiler/lowering/math_functions_f64.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/MLIRContext.h"

namespace tile::ir::test {

inline constexpr int kLanes = 8;
using Emit = std::function<llvm::Value*(llvm::IRBuilder<>&, std::vector<llvm::Value*>)>;

/// void f(const in* a, const in* b, out* r): one vector of eight lanes, compiled for this machine.
class Compiled {
 public:
  using TypeOf = llvm::function_ref<llvm::Type*(llvm::LLVMContext&)>;
  Compiled(TypeOf in, TypeOf out, int arity, const Emit& emit) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto ctx = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("m", *ctx);
    auto* ptr = llvm::PointerType::get(*ctx, 0);
    auto* f = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(*ctx), {ptr, ptr, ptr}, false),
                                     llvm::Function::ExternalLinkage, "f", module.get());
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(*ctx, "entry", f));
    auto* vec = llvm::FixedVectorType::get(in(*ctx), kLanes);
    std::vector<llvm::Value*> args;
    for (int i = 0; i < arity; ++i) args.push_back(b.CreateAlignedLoad(vec, f->getArg(i), llvm::Align(1)));
    llvm::Value* r = emit(b, args);
    r = b.CreateBitCast(r, llvm::FixedVectorType::get(out(*ctx), kLanes));
    b.CreateAlignedStore(r, f->getArg(2), llvm::Align(1));
    b.CreateRetVoid();
    jit_ = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    llvm::cantFail(jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(ctx))));
    entry_ = llvm::cantFail(jit_->lookup("f")).toPtr<void(const void*, const void*, void*)>();
  }
  void operator()(const void* a, const void* b, void* r) const { entry_(a, b, r); }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  void (*entry_)(const void*, const void*, void*) = nullptr;
};

inline llvm::Type* f32(llvm::LLVMContext& c) { return llvm::Type::getFloatTy(c); }
inline llvm::Type* f64(llvm::LLVMContext& c) { return llvm::Type::getDoubleTy(c); }
inline llvm::Type* i8(llvm::LLVMContext& c) { return llvm::Type::getInt8Ty(c); }

struct Plain : MathHooks {};
/// First digits of f64 reciprocals, as a GPU has them: those of the upper word, the lower word 0, subnormals 0.
struct UpperWords : RoughReciprocals {
  llvm::Value* upper(llvm::IRBuilderBase& b, llvm::Value* x) const {
    llvm::Type* word = withElement(x->getType(), b.getInt64Ty());
    llvm::Value* bits = b.CreateBitCast(x, word);
    llvm::Value* normal = b.CreateBitCast(b.CreateAnd(bits, 0xffffffff00000000ull), x->getType());
    llvm::Value* zero = b.CreateBitCast(b.CreateAnd(bits, 1ull << 63), x->getType());
    llvm::Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    return b.CreateSelect(b.CreateFCmpOLT(size, llvm::ConstantFP::get(x->getType(), 0x1p-1022)), zero, normal);
  }
  llvm::Value* reciprocal(llvm::IRBuilderBase& b, llvm::Value* x) const override {
    return upper(b, b.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), upper(b, x)));
  }
  llvm::Value* rsqrt(llvm::IRBuilderBase& b, llvm::Value* x) const override {
    llvm::Value* root = b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, upper(b, x));
    return upper(b, b.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), root));
  }
};
struct Rough : MathHooks {
  Rough() { rough = &upperWords; }
  UpperWords upperWords;
};

/// Emits one op of the math dialect by building it on detached constants, with an attribute of this name if there is one.
template <class Op, class Hooks = Plain>
Emit mathOp(int arity, bool wide = false, llvm::StringRef attribute = {}) {
  return [arity, wide, attribute](llvm::IRBuilder<>& b, std::vector<llvm::Value*> args) {
    mlir::MLIRContext ctx;
    ctx.loadDialect<mlir::arith::ArithDialect, mlir::math::MathDialect, tile::ir::TileDialect>();
    mlir::OpBuilder builder(&ctx);
    auto loc = builder.getUnknownLoc();
    mlir::OwningOpRef<mlir::ModuleOp> module(mlir::ModuleOp::create(loc));
    builder.setInsertionPointToStart(module->getBody());
    auto zero = wide ? builder.getF64FloatAttr(0) : builder.getF32FloatAttr(0);
    mlir::Value x = mlir::arith::ConstantOp::create(builder, loc, zero);
    mlir::Operation* op;
    if constexpr (requires { Op::create(builder, loc, x, x); }) op = Op::create(builder, loc, x, x);
    else op = Op::create(builder, loc, x);
    if (!attribute.empty()) op->setAttr(attribute, builder.getUnitAttr());
    return emitElementwise(b, op, args, Hooks())[0];
  };
}

using Long = long double;

/// Largest error in units of the last place of the result, or of `scale(x)` where that is larger.
template <class Op, class Hooks = Plain, class T>
double worstAt(std::vector<T> x, Long (*exact)(Long), Long (*scale)(Long) = [](Long) -> Long { return 0; }) {
  auto type = sizeof(T) == 8 ? f64 : f32;
  Compiled f(type, type, 1, mathOp<Op, Hooks>(1, sizeof(T) == 8));
  while (x.size() % kLanes) x.push_back(T(0.5));
  double worst = 0;
  T at = 0;
  using Limits = std::numeric_limits<T>;
  for (size_t i = 0; i < x.size(); i += kLanes) {
    T out[kLanes];
    f(&x[i], &x[i], out);
    for (int l = 0; l < kLanes; ++l) {
      const Long want = exact(x[i + l]);
      const T rounded = static_cast<T>(want), got = out[l];
      if (!std::isfinite(rounded)) {
        const bool isLarge = got == rounded || std::fabs(got) > Limits::max() * T(0.999999);
        EXPECT_TRUE(std::isnan(rounded) ? std::isnan(got) : isLarge) << "f(" << x[i + l] << ") is " << got << ", expected " << rounded;
        continue;
      }
      EXPECT_TRUE(std::signbit(got) == std::signbit(rounded) || std::fabs(want) < 1e-6)
          << "f(" << x[i + l] << ") is " << got;
      const T size = static_cast<T>(std::max(std::fabs(want), scale(x[i + l])));
      const Long ulp = std::max<Long>(std::nextafter(size, Limits::infinity()) - size, Limits::denorm_min());
      const Long unit = std::isfinite(ulp) ? ulp : Limits::max() * Limits::epsilon();
      const double error = static_cast<double>(std::fabs(got - want) / unit);
      EXPECT_FALSE(std::isnan(error)) << "f(" << x[i + l] << ") is " << got << ", expected " << rounded;
      if (error > worst) worst = error, at = x[i + l];
    }
  }
  if constexpr (sizeof(T) == 8 && std::is_same_v<Hooks, Plain>)
    worst = std::max(worst, worstAt<Op, Rough>(x, exact, scale));
  ::testing::Test::RecordProperty("worst_ulp", std::to_string(worst));
  ::testing::Test::RecordProperty("worst_at", (std::ostringstream() << std::setprecision(17) << at).str());
  return worst;
}

}  // namespace tile::ir::test
