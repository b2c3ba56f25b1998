// bessel_functions.h - Bessel functions of orders 0 and 1, in f64.
#pragma once
#include <cmath>
#include <vector>

#include "llvm/IR/IRBuilder.h"

namespace tile::ir {

/// Below 8 each piece of the line has one zero z at most: the difference of x from z, in two steps as z has two parts,
/// times a fit of what is left, so that values near zeros keep their digits. Functions of the second kind are
///   (2 / pi) log(x / z) J(x) + (x^2 - z^2) S(x^2)   (order 1: the last term / x)
/// up to their first zero z and somewhat beyond. From 8 on both kinds are made of
///   sqrt(2 / (pi x)) (P(u) cos angle - Q(u) / x sin angle), u = 64 / x^2, angle = x - (2 order + 1) pi / 4
/// (second kind: P sin + Q / x cos), whose error is one of the angle: about 1e-16 times the root. Angles above 2^40 are
/// not known. Fits: 1e-17 (Q: 3e-16).
///
/// Self has a builder `b`; constant, infinity, abs, sqrt, polynomial, log(x, base; 0: e), Trig and trig.
template <class Self>
class BesselFunctions {
 protected:
  using Value = llvm::Value;

 public:
  Value* j0(Value* x) {
    Value *a = me().abs(x), *near = below8(a);
    Value* second = mul(from(near, kJ0Zero2), fit(near, 7.0, j0Second()));
    return joined(a, choose(less(near, 4.0), j0Below4(near), second), Far(*this, a, 0).ofFirstKind());
  }
  Value* j1(Value* x) {
    Value *a = me().abs(x), *near = below8(a);
    Value* second = mul(from(near, kJ1Zero2), fit(near, 6.5, j1Second()));
    Value* y = joined(a, choose(less(near, 5.0), j1Below5(near), second), Far(*this, a, 1).ofFirstKind());
    return choose(less(x, 0.0), b().CreateFNeg(y), y);
  }
  Value* y0(Value* x) {
    Value *near = below8(x), *d = from(near, kY0Zero1);
    Value* first = mul(mul(d, add(near, constant(kY0Zero1.high))), fit(mul(near, near), 4.84, y0First()));
    first = add(mul(mul(logOfRatio(near, d, kY0Zero1), constant(M_2_PI)), j0Below4(near)), first);
    Value* second = mul(from(near, kY0Zero2), fit(near, 4.0, y0Second()));
    Value* third = mul(from(near, kY0Zero3), fit(near, 7.0, y0Third()));
    Value* y = choose(less(near, 2.2), first, choose(less(near, 5.5), second, third));
    return ofSecondKind(x, y, Far(*this, x, 0).ofSecondKind());
  }
  Value* y1(Value* x) {
    Value *near = below8(x), *d = from(near, kY1Zero1);
    Value* first = mul(mul(d, add(near, constant(kY1Zero1.high))), fit(mul(near, near), 16.0, y1First()));
    first = b().CreateFDiv(first, near);
    first = add(mul(mul(logOfRatio(near, d, kY1Zero1), constant(M_2_PI)), j1Below5(near)), first);
    Value* second = mul(from(near, kY1Zero2), fit(near, 7.25, y1Second()));
    return ofSecondKind(x, choose(less(near, 4.0), first, second), Far(*this, x, 1).ofSecondKind());
  }

 private:
  struct Zero {
    double high, low;
  };
  static constexpr Zero kJ0Zero1{0x1.33d152e971b40p+1, -0x1.0f539d7da258ep-53};
  static constexpr Zero kJ0Zero2{0x1.6148f5b2c2e45p+2, 0x1.75054cd60a517p-54};
  static constexpr Zero kJ1Zero1{0x1.ea75575af6f09p+1, -0x1.60155a9d1b256p-53};
  static constexpr Zero kJ1Zero2{0x1.c0ff5f3b47250p+2, -0x1.b226d9d243827p-54};
  static constexpr Zero kY0Zero1{0x1.c982eb8d417eap-1, 0x1.ea9d270347f83p-56};
  static constexpr Zero kY0Zero2{0x1.fa9534d98569cp+1, -0x1.f06ae7804384ep-54};
  static constexpr Zero kY0Zero3{0x1.c581dc4e72103p+2, -0x1.9774a495f56cfp-54};
  static constexpr Zero kY1Zero1{0x1.193bed4dff243p+1, -0x1.bd1e50d219bfdp-55};
  static constexpr Zero kY1Zero2{0x1.5b7fe4e87b02ep+2, 0x1.dfe7bac228e8cp-52};

  // ---- below 8

  Value* below8(Value* a) { return choose(less(a, 8.0), a, constant(8.0)); }
  Value* from(Value* x, Zero zero) { return sub(sub(x, constant(zero.high)), constant(zero.low)); }
  Value* fit(Value* x, double about, const std::vector<double>& c) {
    return me().polynomial(sub(x, constant(about)), c);
  }
  Value* j0Below4(Value* x) {
    Value* difference = mul(from(x, kJ0Zero1), add(x, constant(kJ0Zero1.high)));
    return mul(difference, fit(mul(x, x), 16.0, j0First()));
  }
  Value* j1Below5(Value* x) {
    Value* difference = mul(from(x, kJ1Zero1), add(x, constant(kJ1Zero1.high)));
    return mul(mul(difference, fit(mul(x, x), 25.0, j1First())), x);
  }
  /// log(x / z), d = x - z: near z that of u = 1 + d / z, with what u lacks put back (as in log1p).
  Value* logOfRatio(Value* x, Value* d, Zero z) {
    Value *t = mul(d, constant(1 / z.high)), *u = add(constant(1.0), t), *taken = sub(u, constant(1.0));
    Value* isNear = b().CreateNot(less(x, z.high / 2));
    Value* y = me().log(choose(isNear, u, x), 0);
    Value* ofSum = choose(b().CreateFCmpOEQ(taken, constant(0.0)), t, mul(y, b().CreateFDiv(t, taken)));
    return choose(isNear, ofSum, sub(y, constant(std::log(z.high))));
  }

  // ---- from 8 on

  class Far {
   public:
    Far(BesselFunctions& f, Value* x, int order) : f_(f), order_(order) {
      Value* a = f.choose(f.less(x, 8.0), f.constant(8.0), x);
      Value *eighth = f.b().CreateFDiv(f.constant(8.0), a), *u = f.mul(eighth, eighth);
      root_ = f.b().CreateFDiv(f.constant(0.56418958354775628695), f.me().sqrt(a));  // 1 / sqrt(pi a)
      p_ = f.me().polynomial(u, order ? p1() : p0());
      q_ = f.mul(f.me().polynomial(u, order ? q1() : q0()), f.mul(eighth, f.constant(0.125)));
      // The angle of numbers without any is that of one that has: their root is small enough.
      a = f.choose(f.b().CreateFCmpOGT(a, f.constant(0x1p40)), f.constant(0x1p40), a);
      Value *sine = f.me().trig(a, Self::Trig::sin), *cosine = f.me().trig(a, Self::Trig::cos);
      sum_ = f.add(sine, cosine);
      difference_ = f.sub(sine, cosine);
    }
    // sqrt(2) times the sine and the cosine of the angle are, in order 0, difference and sum; in order 1, -sum and
    // difference.
    Value* ofFirstKind() const { return order_ ? with(difference_, sum_, 1) : with(sum_, difference_, -1); }
    Value* ofSecondKind() const {
      return order_ ? with(f_.b().CreateFNeg(sum_), difference_, 1) : with(difference_, sum_, 1);
    }

   private:
    Value* with(Value* forP, Value* forQ, int sign) const {
      Value *p = f_.mul(p_, forP), *q = f_.mul(q_, forQ);
      return f_.mul(root_, sign > 0 ? f_.add(p, q) : f_.sub(p, q));
    }
    BesselFunctions& f_;
    int order_;
    Value *root_, *p_, *q_, *sum_, *difference_;
  };

  /// `below` or `above` 8; 0 at infinity.
  Value* joined(Value* a, Value* below, Value* above) {
    above = choose(b().CreateFCmpOEQ(a, me().infinity()), constant(0.0), above);
    return choose(less(a, 8.0), below, above);
  }
  /// -inf at 0, NaN below.
  Value* ofSecondKind(Value* x, Value* below, Value* above) {
    Value *y = joined(x, below, above), *zero = constant(0.0);
    y = choose(b().CreateFCmpOEQ(x, zero), llvm::ConstantFP::getInfinity(x->getType(), /*Negative=*/true), y);
    return choose(b().CreateFCmpOLT(x, zero), llvm::ConstantFP::getNaN(x->getType()), y);
  }

  Self& me() { return static_cast<Self&>(*this); }
  llvm::IRBuilderBase& b() { return me().b; }
  llvm::Constant* constant(double v) { return me().constant(v); }
  Value* add(Value* x, Value* y) { return b().CreateFAdd(x, y); }
  Value* sub(Value* x, Value* y) { return b().CreateFSub(x, y); }
  Value* mul(Value* x, Value* y) { return b().CreateFMul(x, y); }
  Value* less(Value* x, double bound) { return b().CreateFCmpOLT(x, constant(bound)); }
  Value* choose(Value* condition, Value* x, Value* y) { return b().CreateSelect(condition, x, y); }

  // ---- fits

  static std::vector<double> j0First() {  // J0 / (x^2 - z^2) in x^2 - 16
    return {-0x1.3e70dd71fe1bdp-5, 0x1.2e4d13f29ef2ep-8, -0x1.6ae856c8c2ea7p-13, 0x1.b1c1955096075p-19,
            -0x1.38b75900332f4p-25, 0x1.2ecab5893103ap-32, -0x1.a5dace148cfebp-40, 0x1.bbb6e4a1e1ab8p-48,
            -0x1.6d20060d622e0p-56, 0x1.e38f88b5f1c91p-65, -0x1.03be37a1d83b8p-73, 0x1.14844882680bfp-82};
  }
  static std::vector<double> j0Second() {  // J0 / (x - z) in x - 7
    return {0x1.9f444966cdc8dp-3, -0x1.121ebe425e244p-3, -0x1.6dec58ef19150p-7, 0x1.84e1359d481eep-7,
            -0x1.b781c8c42e2a7p-15, -0x1.7f24e6b181443p-12, 0x1.1c72ce4c8ed20p-17, 0x1.8cbac79c410b9p-18,
            -0x1.6c3336cee1d0ap-23, -0x1.00822091f6610p-24, 0x1.ec7cfff55f71cp-30, 0x1.c811f96e7f086p-32,
            -0x1.b1dbc8a3cba85p-37, -0x1.288e1476e2797p-39, 0x1.13e36d1f810d6p-44, 0x1.2ed8b131b9caap-47,
            -0x1.afa66fa2cc1a3p-53, -0x1.bfb0b6915c2a0p-56};
  }
  static std::vector<double> j1First() {  // J1 / (x (x^2 - z^2)) in x^2 - 25
    return {-0x1.a0215f4797fbfp-8, 0x1.13523a4eb582ep-11, -0x1.04a7301e7249bp-16, 0x1.03a5a1dd90679p-22,
            -0x1.4252e6137174fp-29, 0x1.129f2859490cbp-36, -0x1.560c9ab76e4b8p-44, 0x1.459014a86b82fp-52,
            -0x1.e98f75f5f38c8p-61, 0x1.2a503e0649636p-69, -0x1.2d550dd37c9e0p-78, 0x1.f2ce770c7e14fp-88,
            -0x1.c284b8709f938p-97};
  }
  static std::vector<double> j1Second() {  // J1 / (x - z) in x - 6.5
    return {0x1.318ace8aae254p-2, 0x1.d08a4092f3ab2p-6, -0x1.8bedb81f6736dp-5, -0x1.73a59e34c2ed6p-10,
            0x1.25bfadb1283aep-9, 0x1.7a11529a32d36p-16, -0x1.9cbaeed616dadp-15, -0x1.ec064dc6cd5b3p-24,
            0x1.53d2ad8d1b695p-21, -0x1.bbc8d1c39765fp-31, -0x1.70bb582bd581fp-28, 0x1.23c746562eea2p-36,
            0x1.1bfacb73f0f65p-35, -0x1.2504fbf0902b0p-43, -0x1.46bcb58d9fa96p-43, 0x1.6cb170f948c4bp-51,
            0x1.1c418f7875daep-51};
  }
  static std::vector<double> y0First() {  // S in x^2 - 4.84
    return {0x1.cfa63d67fd4e4p-4, -0x1.87bed08d6716ep-7, 0x1.c567ff5b26155p-12, -0x1.0bf31f2bb044fp-17,
            0x1.821b95c8beec9p-24, -0x1.7778e3f757c43p-31, 0x1.07570fef9f7a6p-38, -0x1.173a40e358b7ap-46,
            0x1.ceda52df2923cp-55, -0x1.45ebd518eaa4fp-63};
  }
  static std::vector<double> y0Second() {  // Y0 / (x - z) in x - 4
    return {-0x1.99e4979e09865p-2, 0x1.c8e28281e5a23p-5, 0x1.d81bdc6027bf1p-5, -0x1.d9148e1aae51ep-8,
            -0x1.189ac769efcd9p-9, 0x1.b43d291317807p-13, 0x1.9ee31c53b6e82p-15, -0x1.4f23df98722d2p-18,
            -0x1.427a56efd5a19p-22, -0x1.e7960252783d5p-27, 0x1.296d5c1061e79p-26, -0x1.c47341eb3acddp-29,
            0x1.711f0a3c6406ap-31, -0x1.6365affeb3cfep-33, 0x1.524c812c5418ep-35, -0x1.3c57e58265b0ep-37,
            0x1.28b437f6fba43p-39, -0x1.2b45173e394fap-41, 0x1.25bacbf3cb852p-43, -0x1.368b6c2627276p-46,
            0x1.28b48fc6ed07fp-48, -0x1.5b7e8e2175010p-48, 0x1.b376625bb388cp-51, 0x1.f7f6de8f0fa55p-52,
            0x1.986b707ad20b2p-57, -0x1.adc8d1c2d4256p-55};
  }
  static std::vector<double> y0Third() {  // Y0 / (x - z) in x - 7
    return {0x1.34ccb641fbc8dp-2, -0x1.a4cf031da27d6p-7, -0x1.8fa1bd6222ec6p-5, 0x1.4f7c111c7833bp-9,
            0x1.247693fca67efp-9, -0x1.e88b92c2079eap-14, -0x1.8e1ad1cf11316p-15, 0x1.3463a448cfa1bp-19,
            0x1.40b13ef1d9ce7p-21, -0x1.cd08a79145fa7p-26, -0x1.522e4bdeab469p-28, 0x1.b899d8a08f826p-33,
            0x1.04f4074c2f79cp-35, -0x1.4639ac5b2d3c5p-40, -0x1.153a6d968f9e8p-43, 0x1.1fada28ab5092p-51};
  }
  static std::vector<double> y1First() {  // S in x^2 - 16
    return {0x1.363d3164a8469p-3, -0x1.cf26637248334p-8, -0x1.bcabe4b3ce104p-13, 0x1.d074390b972e8p-17,
            -0x1.28808893a7f6ap-22, 0x1.a3e038163bacdp-29, -0x1.85b04124d7d4ep-36, 0x1.023ca661d7755p-43,
            -0x1.01f6d09b8ba37p-51, 0x1.937dc1fc19ef8p-60, -0x1.fcc499e87e260p-69, 0x1.04620864302dfp-77,
            -0x1.0ab1ad9b205f2p-86};
  }
  static std::vector<double> y1Second() {  // Y1 / (x - z) in x - 7.25
    return {-0x1.4589f78731e3ep-3, 0x1.16379c38aef45p-3, -0x1.567f01b7adb32p-17, -0x1.6a9c671bcef47p-7,
            0x1.21189c0e3b979p-11, 0x1.56d887ac4ec0dp-12, -0x1.383b4833e6800p-16, -0x1.5cc79fd5344efp-18,
            0x1.3ee58847a46ffp-22, 0x1.b92df3fce9da4p-25, -0x1.7fb639bbb6bc5p-29, -0x1.8aaf3f9ca5a5cp-32,
            0x1.508171972a988p-36, 0x1.e1aa14719f66cp-40, -0x1.65f60b79ce3d5p-44, -0x1.e163fa39c7fc1p-46,
            -0x1.e4997ac726287p-47, -0x1.bfb66f936011cp-48, -0x1.f5c4b3482380ap-50, -0x1.69d00fd1c7129p-52,
            -0x1.30eed51116047p-55, -0x1.e16f94eb9e737p-60};
  }
  static std::vector<double> p0() {  // in u, as all that follow
    return {0x1.0000000000000p+0, -0x1.1ffffffff85e4p-10, 0x1.cb5fffa33ef62p-16, -0x1.251eafdb745bcp-19,
            0x1.84ab2bdf28058p-22, -0x1.b65442e133a3ep-24, 0x1.6d7848fb54237p-25, -0x1.7d68fe7da3bd6p-26,
            0x1.9354193c5e446p-27, -0x1.5e2a2ba4d9907p-28, 0x1.9574ab829b27cp-30, -0x1.c069f735e546bp-33};
  }
  static std::vector<double> q0() {  // Q
    return {-0x1.ffffffffffffdp-4, 0x1.2bfffffff1ae2p-10, -0x1.d11dff99bdda2p-15, 0x1.ba4c1087d2f4fp-18,
            -0x1.8608d6e0123ddp-20, 0x1.12de5741fb7adp-21, -0x1.155e2692aee0ep-22, 0x1.5ef5a80c8308ap-23,
            -0x1.d39db8567c07ap-24, 0x1.12e9806e38a74p-24, -0x1.e8aae3a2cdcbep-26, 0x1.15e8ffa1561d5p-27,
            -0x1.28620b17b9cccp-30};
  }
  static std::vector<double> p1() {  // P
    return {0x1.0000000000000p+0, 0x1.dffffffff7e80p-10, -0x1.274fffced21f8p-15, 0x1.5a6a1c796bbb2p-19,
            -0x1.b87f0af3a6ea7p-22, 0x1.e48c6af145aebp-24, -0x1.8da65f72efb0fp-25, 0x1.9afe8b006409cp-26,
            -0x1.b04182e5ea7b0p-27, 0x1.762c462d6f6aep-28, -0x1.b08a31231c0aep-30, 0x1.dde5dde7cb9e7p-33};
  }
  static std::vector<double> q1() {  // Q
    return {0x1.7ffffffffffffp-2, -0x1.a3fffffff0e37p-10, 0x1.1c3cffca0c5fdp-14, -0x1.fe57cb8339423p-18,
            0x1.b3eca103fbb00p-20, -0x1.2d143b67f9bf6p-21, 0x1.2bc344983abe6p-22, -0x1.780a19ab1a6c9p-23,
            0x1.f27d88f5bf3fdp-24, -0x1.243a04356ccf4p-24, 0x1.034cc26d10254p-25, -0x1.26a542d5e8ca1p-27,
            0x1.3a095187deeccp-30};
  }
};

}  // namespace tile::ir
