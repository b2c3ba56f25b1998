// math_test.cpp - the shared functions of compiler/lowering against libm: JIT-compiled for scalars and vectors, swept over
// the whole range of f32, error in units of the last place.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <iomanip>
#include <vector>

#include "compiler/lowering/fp8.h"
#include "compiler/lowering/math_functions.h"
#include "tests/math/sweep.h"

namespace {
using namespace tile::ir;
using namespace tile::ir::test;

double ulpOf(double exact) {
  float f = std::fabs(static_cast<float>(exact));
  if (!std::isfinite(f)) f = std::numeric_limits<float>::max();
  return std::max<double>(std::nextafter(f, INFINITY) - f, std::numeric_limits<float>::denorm_min());
}

/// Largest error in ulp over a sweep of all exponents (every `step`-th float of both signs) plus special values.
template <class Op>
double worst(double (*exact)(double), uint32_t step, double limit = INFINITY, const Emit& emit = mathOp<Op>(1)) {
  Compiled f(f32, f32, 1, emit);
  double worstError = 0;
  std::vector<float> batch;
  float in[kLanes], out[kLanes];
  auto flush = [&] {
    while (batch.size() % kLanes) batch.push_back(0.5f);
    for (size_t i = 0; i < batch.size(); i += kLanes) {
      std::memcpy(in, &batch[i], sizeof in);
      f(in, in, out);
      for (int l = 0; l < kLanes; ++l) {
        double want = exact(in[l]);
        float rounded = static_cast<float>(want);
        if (std::isnan(rounded) || std::isinf(rounded)) {
          bool same = std::isnan(rounded) ? std::isnan(out[l]) : out[l] == rounded;
          // One ulp below overflow may round either way.
          if (!same && std::fabs(want) < INFINITY && std::fabs(out[l]) >= 3.4e38f) same = true;
          EXPECT_TRUE(same) << "f(" << in[l] << ") is " << out[l] << ", expected " << rounded;
          continue;
        }
        double error = std::fabs(out[l] - want) / ulpOf(want);
        EXPECT_FALSE(std::isnan(out[l])) << "f(" << in[l] << ") is NaN, expected " << want;
        worstError = std::max(worstError, error);
      }
    }
    batch.clear();
  };
  for (float special : {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 1e-45f, 88.8f, -87.4f, -103.9f, 127.99f, 128.0f, -149.5f})
    if (!(std::fabs(special) > limit)) batch.push_back(special);
  flush();
  for (uint64_t bits = 0; bits < (1ull << 32); bits += step) {
    float x;
    uint32_t low = static_cast<uint32_t>(bits);
    std::memcpy(&x, &low, 4);
    if (std::isnan(x) || std::fabs(x) > limit) continue;
    batch.push_back(x);
    if (batch.size() >= 4096) flush();
  }
  flush();
  ::testing::Test::RecordProperty("worst_ulp", std::to_string(worstError));
  return worstError;
}


constexpr uint32_t kStep = 10007;

TEST(Math, Exp) { EXPECT_LT(worst<mlir::math::ExpOp>([](double x) { return std::exp(x); }, kStep), 2); }
TEST(Math, Exp2) { EXPECT_LT(worst<mlir::math::Exp2Op>([](double x) { return std::exp2(x); }, kStep), 2); }
TEST(Math, Log) { EXPECT_LT(worst<mlir::math::LogOp>([](double x) { return std::log(x); }, kStep), 2); }
TEST(Math, Log2) { EXPECT_LT(worst<mlir::math::Log2Op>([](double x) { return std::log2(x); }, kStep), 2); }
TEST(Math, Log10) { EXPECT_LT(worst<mlir::math::Log10Op>([](double x) { return std::log10(x); }, kStep), 3); }
TEST(Math, Log1p) { EXPECT_LT(worst<mlir::math::Log1pOp>([](double x) { return std::log1p(x); }, kStep), 2); }
/// A module with one f32, for operations of which only their emission is wanted.
struct OneFloat {
  mlir::MLIRContext ctx;
  mlir::OpBuilder builder{&ctx};
  mlir::Location loc = builder.getUnknownLoc();
  mlir::OwningOpRef<mlir::ModuleOp> module = [&] {
    ctx.loadDialect<mlir::arith::ArithDialect, mlir::math::MathDialect>();
    return mlir::ModuleOp::create(loc);
  }();
  mlir::Value x = [&] {
    builder.setInsertionPointToStart(module->getBody());
    return mlir::arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0)).getResult();
  }();
};
// Of what is never negative, as the operation that made it says.
TEST(Math, Log1pOfPositive) {
  auto ofMagnitude = [](llvm::IRBuilder<>& b, std::vector<llvm::Value*> args) {
    OneFloat one;
    auto& [ctx, builder, loc, module, x] = one;
    auto magnitude = mlir::math::AbsFOp::create(builder, loc, x);
    auto op = mlir::math::Log1pOp::create(builder, loc, magnitude);
    return emitElementwise(b, op, {b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0])}, Plain())[0];
  };
  EXPECT_LT(worst<mlir::math::Log1pOp>([](double x) { return std::log1p(std::fabs(x)); }, kStep, INFINITY, ofMagnitude), 2);
}
TEST(Math, NegativeZero) {
  for (const Emit& emit : {mathOp<mlir::math::Log1pOp>(1), mathOp<mlir::math::ExpM1Op>(1)}) {
    Compiled f(f32, f32, 1, emit);
    float in[kLanes] = {-0.0f, 0.0f}, out[kLanes];
    f(in, in, out);
    EXPECT_TRUE(out[0] == 0 && std::signbit(out[0]));
    EXPECT_TRUE(out[1] == 0 && !std::signbit(out[1]));
  }
}
TEST(Math64, NegativeZeroOfExpm1) {
  Compiled f(f64, f64, 1, mathOp<mlir::math::ExpM1Op>(1, true));
  double in[kLanes] = {-0.0, 0.0}, out[kLanes];
  f(in, in, out);
  EXPECT_TRUE(out[0] == 0 && std::signbit(out[0]));
  EXPECT_TRUE(out[1] == 0 && !std::signbit(out[1]));
}
TEST(Math, Expm1) { EXPECT_LT(worst<mlir::math::ExpM1Op>([](double x) { return std::expm1(x); }, kStep), 2); }
TEST(Math, Tanh) { EXPECT_LT(worst<mlir::math::TanhOp>([](double x) { return std::tanh(x); }, kStep), 2); }
TEST(Math, Erfc) { EXPECT_LT(worst<mlir::math::ErfcOp>([](double x) { return std::erfc(x); }, kStep), 6); }
TEST(Math, Cbrt) { EXPECT_LT(worst<mlir::math::CbrtOp>([](double x) { return std::cbrt(x); }, kStep), 2); }
TEST(Math, Erf) { EXPECT_LT(worst<mlir::math::ErfOp>([](double x) { return std::erf(x); }, kStep), 2); }
TEST(Math, Sin) { EXPECT_LT(worst<mlir::math::SinOp>([](double x) { return std::sin(x); }, kStep, 0x1p40), 2); }
TEST(Math, Cos) { EXPECT_LT(worst<mlir::math::CosOp>([](double x) { return std::cos(x); }, kStep, 0x1p40), 2); }
TEST(Math, Tan) { EXPECT_LT(worst<mlir::math::TanOp>([](double x) { return std::tan(x); }, kStep, 0x1p40), 4); }
// Of arguments that are known to be small the quadrant is found with f32.
template <class Op>
double worstNear(double (*exact)(double)) {
  return worst<Op>(exact, kStep, kNearAngle, mathOp<Op>(1, false, kNear));
}
TEST(Math, SinNear) { EXPECT_LT(worstNear<mlir::math::SinOp>([](double x) { return std::sin(x); }), 2); }
TEST(Math, CosNear) { EXPECT_LT(worstNear<mlir::math::CosOp>([](double x) { return std::cos(x); }), 2); }
TEST(Math, TanNear) { EXPECT_LT(worstNear<mlir::math::TanOp>([](double x) { return std::tan(x); }), 4); }

TEST(Math, Asin) { EXPECT_LT(worst<mlir::math::AsinOp>([](double x) { return std::asin(x); }, kStep), 2); }
TEST(Math, Acos) { EXPECT_LT(worst<mlir::math::AcosOp>([](double x) { return std::acos(x); }, kStep), 2); }
TEST(Math, Atan) { EXPECT_LT(worst<mlir::math::AtanOp>([](double x) { return std::atan(x); }, kStep), 3); }
TEST(Math, Sinh) { EXPECT_LT(worst<mlir::math::SinhOp>([](double x) { return std::sinh(x); }, kStep), 2); }
TEST(Math, Cosh) { EXPECT_LT(worst<mlir::math::CoshOp>([](double x) { return std::cosh(x); }, kStep), 2); }
TEST(Math, Asinh) { EXPECT_LT(worst<mlir::math::AsinhOp>([](double x) { return std::asinh(x); }, kStep), 4); }
TEST(Math, Acosh) { EXPECT_LT(worst<mlir::math::AcoshOp>([](double x) { return std::acosh(x); }, kStep), 4); }
TEST(Math, Atanh) { EXPECT_LT(worst<mlir::math::AtanhOp>([](double x) { return std::atanh(x); }, kStep), 4); }

/// Angles of points with coordinates of any size, zeros and infinities of both signs among them.
template <class T, class Hooks = Plain>
double worstAngle(llvm::Type* (*type)(llvm::LLVMContext&), double tolerance) {
  Compiled f(type, type, 2, mathOp<mlir::math::Atan2Op, Hooks>(2, sizeof(T) == 8));
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{T(0), T(-0.0), T(1), T(-1), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                        Limits::max(), -Limits::max(), Limits::min(), Limits::denorm_min(), T(1e-3), T(-3e5)};
  uint64_t state = 1;
  auto random = [&] { return state = state * 6364136223846793005ull + 1442695040888963407ull; };
  for (int i = 0; i < 400; ++i) {
    const double mantissa = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
    const int exponent = static_cast<int>(random() >> 40) % (i % 3 == 0 ? 240 : 8) - (i % 3 == 0 ? 120 : 4);
    values.push_back(static_cast<T>(std::ldexp(random() >> 63 ? -mantissa : mantissa, exponent)));
  }
  double worst = 0;
  for (T y : values)
    for (size_t i = 0; i < values.size(); i += kLanes) {
      T ys[kLanes], xs[kLanes], out[kLanes];
      for (size_t l = 0; l < kLanes; ++l) ys[l] = y, xs[l] = values[std::min(i + l, values.size() - 1)];
      f(ys, xs, out);
      for (size_t l = 0; l < kLanes; ++l) {
        const long double want = std::atan2(static_cast<long double>(y), static_cast<long double>(xs[l]));
        EXPECT_EQ(std::isnan(out[l]), std::isnan(want)) << y << ", " << xs[l];
        if (std::isnan(want)) continue;
        EXPECT_EQ(std::signbit(out[l]), std::signbit(want)) << y << ", " << xs[l];
        const T rounded = static_cast<T>(std::fabs(want));
        const long double ulp = std::max<long double>(std::nextafter(rounded, Limits::infinity()) - rounded, Limits::denorm_min());
        const double error = static_cast<double>(std::fabs(out[l] - want) / ulp);
        EXPECT_LT(error, tolerance) << y << ", " << xs[l] << " gave " << out[l];
        worst = std::max(worst, error);
      }
    }
  return worst;
}
TEST(Math, Atan2) { EXPECT_LT(worstAngle<float>(f32, 3), 3); }

TEST(Math, PowFollowsC) {
  Compiled f(f32, f32, 2, mathOp<mlir::math::PowFOp>(2));
  std::vector<float> values = {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.0f, 0.5f, -0.5f, 3.0f, -3.0f, 10.0f, 1e-40f, 1e30f, -1e30f, 2.5f, -7.0f, INFINITY, -INFINITY, NAN, 0.999999f, 1.000001f, 100.5f, 16777217.0f};
  double worstError = 0;
  for (float x : values)
    for (float y : values) {
      float in[kLanes], exponent[kLanes], out[kLanes];
      std::fill_n(in, kLanes, x);
      std::fill_n(exponent, kLanes, y);
      f(in, exponent, out);
      double want = std::pow(static_cast<double>(x), static_cast<double>(y));
      float rounded = static_cast<float>(want);
      if (std::isnan(rounded)) EXPECT_TRUE(std::isnan(out[0])) << x << " ^ " << y << " is " << out[0];
      else if (std::isinf(rounded) || rounded == 0) EXPECT_EQ(out[0], rounded) << x << " ^ " << y;
      else worstError = std::max(worstError, std::fabs(out[0] - want) / ulpOf(want));
    }
  EXPECT_LT(worstError, 4);
}

// Large exponents of bases near 1, where the logarithm needs all its digits, and powers over the whole range.
TEST(Math, PowOverTheWholeRange) {
  Compiled f(f32, f32, 2, mathOp<mlir::math::PowFOp>(2));
  uint64_t state = 1;
  auto uniform = [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<double>(state >> 40) * 0x1p-24;
  };
  double worstError = 0, worstX = 0, worstY = 0;
  for (int i = 0; i < 100000; ++i) {
    float x[kLanes], y[kLanes], out[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      const double most = i % 3 == 0 ? 1e-3 : i % 3 == 1 ? 1 : 120;
      x[lane] = static_cast<float>(std::exp2((2 * uniform() - 1) * most));
      const double log = std::log2(static_cast<double>(x[lane]));
      y[lane] = static_cast<float>((2 * uniform() - 1) * 126 / std::max(std::fabs(log), 1e-6));
    }
    f(x, y, out);
    for (int lane = 0; lane < kLanes; ++lane) {
      const double want = std::pow(static_cast<double>(x[lane]), static_cast<double>(y[lane]));
      const double error = std::fabs(out[lane] - want) / ulpOf(want);
      if (!(error <= worstError))
        worstError = std::isnan(error) ? INFINITY : error, worstX = x[lane], worstY = y[lane];
    }
  }
  EXPECT_LT(worstError, 4) << worstX << " ^ " << worstY;
  RecordProperty("worst", std::to_string(worstError));
}

/// Parts as exact as the C library's, for what is made of a machine's instructions.
struct ExactParts : QuickParts {
  using Value = llvm::Value*;
  Value exp2(llvm::IRBuilderBase& b, Value x) const override {
    return b.CreateUnaryIntrinsic(llvm::Intrinsic::exp2, x);
  }
  Value log2(llvm::IRBuilderBase& b, Value x) const override {
    return b.CreateUnaryIntrinsic(llvm::Intrinsic::log2, x);
  }
  Value reciprocal(llvm::IRBuilderBase& b, Value x) const override {
    return b.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), x);
  }
  Value quotient(llvm::IRBuilderBase& b, Value x, Value y) const override { return b.CreateFDiv(x, y); }
  Value sqrt(llvm::IRBuilderBase& b, Value x) const override {
    return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
  }
};
/// Of every lane by itself, with such parts.
template <class Op>
Emit ofLanes(const std::function<std::vector<llvm::Value*>(llvm::Value*)>& operands) {
  return [operands](llvm::IRBuilder<>& b, std::vector<llvm::Value*> args) {
    OneFloat one;
    auto& [ctx, builder, loc, module, x] = one;
    mlir::Operation* op;
    if constexpr (requires { Op::create(builder, loc, x, x); }) op = Op::create(builder, loc, x, x);
    else op = Op::create(builder, loc, x);
    const ExactParts parts;
    llvm::Value* r = llvm::PoisonValue::get(args[0]->getType());
    for (uint64_t i = 0; i < kLanes; ++i) {
      llvm::Value* y =
          emitTranscendental(b, op, operands(b.CreateExtractElement(args[0], i)), /*hasLibm=*/false, &parts);
      r = b.CreateInsertElement(r, y, i);
    }
    return r;
  };
}
TEST(Math, CbrtOfQuickParts) {
  const Emit emit = ofLanes<mlir::math::CbrtOp>([](llvm::Value* x) { return std::vector{x}; });
  EXPECT_LT(worst<mlir::math::CbrtOp>([](double x) { return std::cbrt(x); }, kStep, INFINITY, emit), 2);
}
template <int numerator, int denominator>
void checkPowersOf() {
  constexpr float kBase = static_cast<float>(numerator) / denominator;
  const Emit emit = ofLanes<mlir::math::PowFOp>([](llvm::Value* y) {
    return std::vector<llvm::Value*>{llvm::ConstantFP::get(y->getType(), kBase), y};
  });
  EXPECT_LT(worst<mlir::math::PowFOp>([](double y) { return std::pow(double(kBase), y); }, kStep, INFINITY, emit), 2)
      << kBase;
}
TEST(Math, PowersOfConstants) {
  checkPowersOf<2, 1>(), checkPowersOf<10, 1>(), checkPowersOf<10000, 1>(), checkPowersOf<1, 2>();
  checkPowersOf<9, 10>();
  checkPowersOf<1000001, 1000000>(), checkPowersOf<1, 1000000000>(), checkPowersOf<3, 1>(), checkPowersOf<1, 1>();
}

// ---- f64, against the C library in long double


double errorOf(double got, Long want, const std::string& what) {
  const double rounded = static_cast<double>(want);
  if (std::isnan(rounded) || std::isinf(rounded)) {
    const bool same = std::isnan(rounded) ? std::isnan(got) : got == rounded || (std::isfinite(want) && got > 1.79e308);
    EXPECT_TRUE(same) << what << " is " << got << ", expected " << rounded;
    return 0;
  }
  EXPECT_FALSE(std::isnan(got)) << what << " is NaN, expected " << rounded;
  const double a = std::fabs(rounded), ulp = std::nextafter(a, INFINITY) - a;
  return static_cast<double>(std::fabs(got - want) / std::max(ulp, std::numeric_limits<double>::denorm_min()));
}

/// Largest error in ulp over doubles of all exponents with random mantissas, both signs, and special values, with and
/// without a machine's own first digits of reciprocals.
template <class Op, class Hooks = Plain>
double worst64(Long (*exact)(Long), double limit = INFINITY) {
  Compiled f(f64, f64, 1, mathOp<Op, Hooks>(1, true));
  std::vector<double> x{0.0, -0.0, 1.0, -1.0, 0.5, INFINITY, -INFINITY, NAN, 5e-324, 709.9, -745.2, 1024.0, -1074.5, M_PI, M_PI_2};
  uint64_t state = 1;
  auto random = [&] { return state = state * 6364136223846793005ull + 1442695040888963407ull; };
  for (int i = 0; i < 200000; ++i) {
    const double mantissa = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
    const int exponent = i % 2 ? static_cast<int>(random() >> 40) % 2046 - 1022 : static_cast<int>(random() >> 40) % 24 - 12;
    x.push_back(std::ldexp(random() >> 63 ? -mantissa : mantissa, exponent));
  }
  std::erase_if(x, [&](double v) { return std::fabs(v) > limit; });
  while (x.size() % kLanes) x.push_back(0.5);
  double worst = 0;
  for (size_t i = 0; i < x.size(); i += kLanes) {
    double out[kLanes];
    f(&x[i], &x[i], out);
    for (int l = 0; l < kLanes; ++l)
      worst = std::max(worst, errorOf(out[l], exact(x[i + l]), "f(" + std::to_string(x[i + l]) + ")"));
  }
  if constexpr (std::is_same_v<Hooks, Plain>) worst = std::max(worst, worst64<Op, Rough>(exact, limit));
  ::testing::Test::RecordProperty("worst_ulp", std::to_string(worst));
  return worst;
}

TEST(Math64, Rsqrt) {
  auto exact = [](Long x) { return 1 / std::sqrt(x); };
  EXPECT_LT((worst64<mlir::math::RsqrtOp, Rough>(exact)), 1);
  EXPECT_LT(worst64<mlir::math::RsqrtOp>(exact), 2);  // two roundings
}
TEST(Math64, Exp) { EXPECT_LT(worst64<mlir::math::ExpOp>([](Long x) { return std::exp(x); }), 2); }
TEST(Math64, Exp2) { EXPECT_LT(worst64<mlir::math::Exp2Op>([](Long x) { return std::exp2(x); }), 2); }
TEST(Math64, Log) { EXPECT_LT(worst64<mlir::math::LogOp>([](Long x) { return std::log(x); }), 2); }
TEST(Math64, Log2) { EXPECT_LT(worst64<mlir::math::Log2Op>([](Long x) { return std::log2(x); }), 2); }
TEST(Math64, Log10) { EXPECT_LT(worst64<mlir::math::Log10Op>([](Long x) { return std::log10(x); }), 2); }
TEST(Math64, Tanh) { EXPECT_LT(worst64<mlir::math::TanhOp>([](Long x) { return std::tanh(x); }), 4); }
TEST(Math64, Sin) { EXPECT_LT(worst64<mlir::math::SinOp>([](Long x) { return std::sin(x); }, 0x1p30), 2); }
TEST(Math64, Cos) { EXPECT_LT(worst64<mlir::math::CosOp>([](Long x) { return std::cos(x); }, 0x1p30), 2); }
TEST(Math64, Tan) { EXPECT_LT(worst64<mlir::math::TanOp>([](Long x) { return std::tan(x); }, 0x1p30), 4); }

TEST(Math64, Erf) { EXPECT_LT(worst64<mlir::math::ErfOp>([](Long x) { return std::erf(x); }), 2); }
TEST(Math64, Erfc) { EXPECT_LT(worst64<mlir::math::ErfcOp>([](Long x) { return std::erfc(x); }), 6); }
TEST(Math64, Cbrt) { EXPECT_LT(worst64<mlir::math::CbrtOp>([](Long x) { return std::cbrt(x); }), 1); }
TEST(Math64, Expm1) { EXPECT_LT(worst64<mlir::math::ExpM1Op>([](Long x) { return std::expm1(x); }), 2); }
TEST(Math64, Log1p) { EXPECT_LT(worst64<mlir::math::Log1pOp>([](Long x) { return std::log1p(x); }), 4); }
TEST(Math64, Asin) { EXPECT_LT(worst64<mlir::math::AsinOp>([](Long x) { return std::asin(x); }), 2); }
TEST(Math64, Acos) { EXPECT_LT(worst64<mlir::math::AcosOp>([](Long x) { return std::acos(x); }), 2); }
TEST(Math64, Atan) { EXPECT_LT(worst64<mlir::math::AtanOp>([](Long x) { return std::atan(x); }), 3); }
TEST(Math64, Atan2) {
  EXPECT_LT(worstAngle<double>(f64, 3), 3);
  EXPECT_LT((worstAngle<double, Rough>(f64, 3)), 3);
}
TEST(Math64, Sinh) { EXPECT_LT(worst64<mlir::math::SinhOp>([](Long x) { return std::sinh(x); }), 2); }
TEST(Math64, Cosh) { EXPECT_LT(worst64<mlir::math::CoshOp>([](Long x) { return std::cosh(x); }), 2); }
TEST(Math64, Asinh) { EXPECT_LT(worst64<mlir::math::AsinhOp>([](Long x) { return std::asinh(x); }), 4); }
TEST(Math64, Acosh) { EXPECT_LT(worst64<mlir::math::AcoshOp>([](Long x) { return std::acosh(x); }), 4); }
TEST(Math64, Atanh) { EXPECT_LT(worst64<mlir::math::AtanhOp>([](Long x) { return std::atanh(x); }), 4); }

template <class Hooks>
void checkPow64() {
  Compiled f(f64, f64, 2, mathOp<mlir::math::PowFOp, Hooks>(2, true));
  std::vector<double> values{0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 10.0, 1e-310, 1e300, -1e300, 2.5, -7.0,
                             INFINITY, -INFINITY, NAN, 0.99999999999, 1.00000000001, 100.5, 700.25, -300.75, 9007199254740993.0};
  for (double x : values)
    for (double y : values) {
      double in[kLanes], exponent[kLanes], out[kLanes];
      std::fill_n(in, kLanes, x);
      std::fill_n(exponent, kLanes, y);
      f(in, exponent, out);
      const Long want = std::pow(static_cast<Long>(x), static_cast<Long>(y));
      const std::string what = std::to_string(x) + " ^ " + std::to_string(y);
      EXPECT_LT(errorOf(out[0], want, what), 8) << what << " is " << out[0];
    }
}
TEST(Math64, PowFollowsC) {
  checkPow64<Plain>();
  checkPow64<Rough>();
}

/// Quotients of every size, near whole numbers, subnormals among the operands; the remainder is exact.
template <class T>
void checkRemainder(llvm::Type* (*type)(llvm::LLVMContext&), int range) {
  Compiled f(type, type, 2, mathOp<mlir::arith::RemFOp>(2, sizeof(T) == 8));
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{T(0),           T(-0.0),       T(1),           T(0.1),         T(-3),
                        Limits::max(),  Limits::min(), Limits::denorm_min(), Limits::infinity(), Limits::quiet_NaN()};
  uint64_t state = 1;
  auto random = [&] { return state = state * 6364136223846793005ull + 1442695040888963407ull; };
  while (values.size() < 600) {
    const T v = static_cast<T>(std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52,
                                          static_cast<int>(random() >> 40) % range - range / 2));
    const T whole = v * static_cast<T>(random() >> 52);
    for (T x : {v, whole, std::nextafter(whole, T(0)), -std::nextafter(whole, Limits::max())}) values.push_back(x);
  }
  for (T y : values)
    for (size_t i = 0; i < values.size(); i += kLanes) {
      T xs[kLanes], ys[kLanes], out[kLanes];
      for (size_t l = 0; l < kLanes; ++l) xs[l] = values[std::min(i + l, values.size() - 1)], ys[l] = y;
      f(xs, ys, out);
      for (size_t l = 0; l < kLanes; ++l) {
        const T want = std::fmod(xs[l], y);
        const bool same = out[l] == want && std::signbit(out[l]) == std::signbit(want);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(out[l]) : same)
            << xs[l] << " % " << y << " gave " << out[l] << ", expected " << want;
      }
    }
}
TEST(Math, RemainderIsExact) {
  checkRemainder<float>(f32, 40);
  checkRemainder<float>(f32, 250);
}
TEST(Math64, RemainderIsExact) {
  checkRemainder<double>(f64, 60);
  checkRemainder<double>(f64, 2000);
}

// By constants that are powers of two there is no loop.
template <class T>
void checkRemainderOf(llvm::Type* (*type)(llvm::LLVMContext&), double divisor) {
  Compiled f(type, type, 1, [&](llvm::IRBuilder<>& b, std::vector<llvm::Value*> a) {
    return mathOp<mlir::arith::RemFOp>(2, sizeof(T) == 8)(b, {a[0], llvm::ConstantFP::get(a[0]->getType(), divisor)});
  });
  using Limits = std::numeric_limits<T>;
  std::vector<T> x{T(0), T(-0.0), Limits::infinity(), Limits::quiet_NaN(), Limits::max(), -Limits::max(), Limits::min(),
                   -Limits::denorm_min()};
  for (int i = -40; i < 40; ++i)
    for (T off : {T(0), T(0.3), T(1e-6)}) x.push_back(static_cast<T>(divisor * i / 4) + off);
  for (int e = -120; e < 120; ++e) x.push_back(std::ldexp(T(e % 2 ? -1.2345678 : 1.7654321), e));
  for (size_t i = 0; i + kLanes <= x.size(); i += kLanes) {
    T out[kLanes];
    f(&x[i], &x[i], out);
    for (size_t l = 0; l < kLanes; ++l) {
      const T want = std::fmod(x[i + l], static_cast<T>(divisor));
      const bool same = out[l] == want && std::signbit(out[l]) == std::signbit(want);
      EXPECT_TRUE(std::isnan(want) ? std::isnan(out[l]) : same) << x[i + l] << " % " << divisor << " gave " << out[l];
    }
  }
}
TEST(Math, RemainderOfPowersOfTwo) {
  for (double divisor : {1.0, -2.0, 4.0, 0.5, 3.0, 0x1p23, 0x1p100, 0x1p101}) {
    checkRemainderOf<float>(f32, divisor);
    checkRemainderOf<double>(f64, divisor);
  }
}

TEST(Fp8, ConversionsAgreeWithTheFormats) {
  for (auto kind : {Fp8::e4m3, Fp8::e5m2}) {
    Compiled widen(i8, f32, 1, [kind](llvm::IRBuilder<>& b, std::vector<llvm::Value*> a) { return fp8ToF32(b, a[0], kind); });
    Compiled narrow(f32, i8, 1, [kind](llvm::IRBuilder<>& b, std::vector<llvm::Value*> a) { return f32ToFp8(b, a[0], kind); });
    int mantissa = kind == Fp8::e4m3 ? 3 : 2, bias = kind == Fp8::e4m3 ? 7 : 15;
    auto decode = [&](uint8_t v) -> double {
      int e = (v & 0x7f) >> mantissa, m = v & ((1 << mantissa) - 1);
      bool top = e == (1 << (7 - mantissa)) - 1;
      if (kind == Fp8::e4m3 && (v & 0x7f) == 0x7f) return NAN;
      if (kind == Fp8::e5m2 && top) return m ? NAN : ((v & 0x80) ? -INFINITY : INFINITY);
      double r = e ? std::ldexp(1.0 + m / double(1 << mantissa), e - bias) : std::ldexp(m / double(1 << mantissa), 1 - bias);
      return (v & 0x80) ? -r : r;
    };
    std::vector<double> finite;  // non-negative, ascending: code order
    for (int v = 0; v < 128; ++v)
      if (std::isfinite(decode(v))) finite.push_back(decode(v));
    for (int v = 0; v < 256; ++v) {
      uint8_t in[kLanes];
      float wide[kLanes];
      std::fill_n(in, kLanes, static_cast<uint8_t>(v));
      widen(in, in, wide);
      double want = decode(v);
      if (std::isnan(want)) EXPECT_TRUE(std::isnan(wide[0])) << v;
      else EXPECT_EQ(wide[0], want) << v;
    }
    for (uint64_t bits = 0; bits < (1ull << 31); bits += 65521) {
      float x;
      uint32_t low = static_cast<uint32_t>(bits);
      std::memcpy(&x, &low, 4);
      if (std::isnan(x)) continue;
      float in[kLanes];
      uint8_t out[kLanes];
      std::fill_n(in, kLanes, x);
      narrow(in, in, out);
      // Nearest code, ties to the even one; beyond the largest: the largest.
      size_t best = std::lower_bound(finite.begin(), finite.end(), static_cast<double>(x)) - finite.begin();
      if (best == finite.size()) best = finite.size() - 1;
      else if (best > 0) {
        double up = finite[best] - x, down = x - finite[best - 1];
        if (down < up || (down == up && (best - 1) % 2 == 0)) --best;
      }
      ASSERT_EQ(out[0], best) << x;
    }
  }
}

}  // namespace
