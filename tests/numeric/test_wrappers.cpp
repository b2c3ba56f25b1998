// What the kernels' wrappers refuse, with the message a user sees; and properties that need several launches.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/attention.h"
#include "kernels/block_sparse_matmul.h"
#include "kernels/gated_linear_attention.h"
#include "kernels/gemm.h"
#include "kernels/norms.h"
#include "kernels/reductions.h"
#include "kernels/softmax.h"
#include "kernels/vector_add.h"

namespace tile::kernels {
namespace {

std::shared_ptr<Device> host() { return open_device("host").value_or_throw(); }

void expect_refused(const Status& s, const std::string& words) {
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().kind, ErrorKind::user);
  EXPECT_NE(s.error().message.find(words), std::string::npos) << s.error().message;
  bool placed = false;  // at the call of the wrapper, not somewhere inside
  for (const Diagnostic& d : s.error().diagnostics) placed |= d.message == "launched here" && d.file == __FILE__ && d.line;
  EXPECT_TRUE(placed) << s.error().to_string();
}

/// A view of a shape over memory nobody may touch: refused calls must not launch.
template <class T, class... I>
TensorView<T, sizeof...(I)> shape(I... sizes) {
  return TensorView<T, sizeof...(I)>(reinterpret_cast<T*>(256), {static_cast<int64_t>(sizes)...});
}

TEST(Wrappers, S2_4_WrongShapesAreNamed) {
  Stream& s = host()->default_stream();
  expect_refused(vector_add<float>(s, shape<float>(4), shape<float>(5), shape<float>(4)),
                 "vector_add: y must have shape [n] = [4], found [5]");
  expect_refused(softmax_rows<float>(s, shape<float>(4, 8), shape<float>(4, 9)),
                 "Y must have shape that of X = [4, 8], found [4, 9]");
  expect_refused(softmax_rows<float>(s, shape<float>(4, 100), shape<float>(4, 100), {SoftmaxForm::resident, 1, 64, 4}),
                 "BN = 64");
  expect_refused(reduce_rows<float>(s, shape<float>(4, 8), shape<float>(3), {}), "[4], found [3]");
  expect_refused(reduce_rows<float>(s, shape<float>(4, 8), shape<float>(4), {RowReduction::argmax}), "i32 output");
  expect_refused(arg_rows<float>(s, shape<float>(4, 8), shape<int32_t>(4), {RowReduction::sum}), "argmax");
  expect_refused(reduce_rows<float>(s, shape<float>(4, 0), shape<float>(4), {}), "no columns");
  expect_refused(rms_norm<float>(s, shape<float>(4, 8), shape<float>(9), shape<float>(4, 8), shape<float>(4)),
                 "W must have shape [columns] = [8]");
  expect_refused(gemm<float, float>(s, shape<const float>(4, 8), shape<const float>(7, 5), shape<float>(4, 5)),
                 "B must have shape [K, N] = [8, 5], found [7, 5]");
  GemmConfig c;
  expect_refused(run_gemm(gemm_kernel<float, float>(), s, shape<const float>(4, 8), shape<const float>(8, 5),
                          shape<const float>(4, 5), shape<float>(4, 5), 2.f, 0.f, c),
                 "alpha = 2 needs config.use_alpha");
  auto q = shape<half>(1, 6, 10, 64);
  expect_refused(attention_forward<half>(s, q, shape<half>(1, 4, 10, 64), shape<half>(1, 4, 10, 64), q,
                                         shape<float>(1, 6, 10), 1.f, false),
                 "6 query heads must be a multiple of the 4 key heads");
  expect_refused(attention_forward<half>(s, q, shape<half>(1, 6, 10, 32), shape<half>(1, 6, 10, 64), q,
                                         shape<float>(1, 6, 10), 1.f, false),
                 "K must have shape [B, Hkv, Sk, D] = [1, -1, -1, 64], found [1, 6, 10, 32]");
  AttentionConfig narrow;
  narrow.D = 32;
  expect_refused(attention_forward<half>(s, q, q, q, q, shape<float>(1, 6, 10), 1.f, narrow), "must cover head dims");
  expect_refused(
      block_sparse_matmul<float>(s, shape<float>(64, 64), shape<float>(64, 64), shape<float>(64, 64),
                                 shape<const int32_t>(2, 2), shape<const int32_t>(1, 1), BlockSparseConfig{}),
      "MASK_A must have shape [ceil(M/BM), ceil(K/BK)] = [1, 1], found [2, 2]");
  auto x = shape<float>(1, 1, 8, 16);
  expect_refused(gla_recurrent<float>(s, x, shape<float>(1, 1, 9, 16), x, x, x, x, x, 1.f, GlaConfig{}),
                 "K must have shape [B, H, L, K]");
}

TEST(Wrappers, S0_2_NaiveSoftmaxOverflowsAndTheOthersDoNot) {
  auto device = host();
  std::vector<float> x = {89.f, 0.f, 1.f, 2.f};  // e^89 is larger than any float
  auto in = Buffer<float>::from(device, std::span<const float>(x)).value_or_throw();
  auto out = Buffer<float>::allocate(device, 4).value_or_throw();
  for (SoftmaxForm form :
       {SoftmaxForm::naive, SoftmaxForm::safe, SoftmaxForm::online, SoftmaxForm::pairs, SoftmaxForm::resident}) {
    Status s = softmax_rows<float>(device->default_stream(), in.view(1, 4), out.view(1, 4), {form, 1, 16, 1});
    ASSERT_TRUE(s.ok()) << s.error().to_string();
    float first = out.to_host().value_or_throw()[0];
    if (form == SoftmaxForm::naive)
      EXPECT_TRUE(std::isnan(first)) << first;
    else
      EXPECT_NEAR(first, 1.f, 1e-6f) << static_cast<int>(form);
  }
}

TEST(Wrappers, EmptyProblemsDoNothing) {
  Stream& s = host()->default_stream();
  EXPECT_TRUE(vector_add<float>(s, shape<float>(0), shape<float>(0), shape<float>(0)).ok());
  EXPECT_TRUE((gemm<float, float>(s, shape<const float>(0, 8), shape<const float>(8, 5), shape<float>(0, 5)).ok()));
}

/// Runs attention on the host over random inputs and returns O.
std::vector<float> attention_output(const std::vector<float>& q, const std::vector<float>& k,
                                    const std::vector<float>& v, int64_t s, int64_t d) {
  auto device = host();
  auto upload = [&](const std::vector<float>& x) {
    return Buffer<float>::from(device, std::span<const float>(x)).value_or_throw();
  };
  auto bq = upload(q), bk = upload(k), bv = upload(v), bo = Buffer<float>::allocate(device, q.size()).value_or_throw(),
       lse = Buffer<float>::allocate(device, static_cast<size_t>(s)).value_or_throw();
  Status status = attention_forward<float>(device->default_stream(), bq.view(1, 1, s, d), bk.view(1, 1, s, d),
                                           bv.view(1, 1, s, d), bo.view(1, 1, s, d), lse.view(1, 1, s), 0.25f, false);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().to_string());
  return bo.to_host().value_or_throw();
}

TEST(Wrappers, OrderOfKeysDoesNotMatter) {
  constexpr int64_t s = 150, d = 16;
  std::vector<float> q(s * d), k(s * d), v(s * d), k2(s * d), v2(s * d);
  for (size_t i = 0; i < q.size(); ++i) {
    q[i] = std::sin(0.7f * static_cast<float>(i)), k[i] = std::sin(1.3f * static_cast<float>(i)),
    v[i] = std::cos(0.9f * static_cast<float>(i));
  }
  for (int64_t j = 0; j < s; ++j)  // reversed
    for (int64_t c = 0; c < d; ++c) k2[j * d + c] = k[(s - 1 - j) * d + c], v2[j * d + c] = v[(s - 1 - j) * d + c];
  auto a = attention_output(q, k, v, s, d), b = attention_output(q, k2, v2, s, d);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << i;
}

TEST(Wrappers, GemmOfDoublesScalesInDouble) {
  Stream& s = host()->default_stream();
  double a = 3, b = 7, c = 5, d = 0;
  GemmConfig config = default_gemm_config(f64, false, 1, 1, Machine::of(s));
  config.use_alpha = config.use_c = true;
  const auto one = [](double& x) { return TensorView<const double, 2>::contiguous(&x, {1, 1}); };
  run_gemm(gemm_kernel<double, double>(), s, one(a), one(b), one(c), TensorView<double, 2>::contiguous(&d, {1, 1}), 0.1,
           0.3, config)
      .value_or_throw();
  s.synchronize().value_or_throw();
  EXPECT_DOUBLE_EQ(d, 0.1 * 21 + 0.3 * 5);
}

}  // namespace
}  // namespace tile::kernels
