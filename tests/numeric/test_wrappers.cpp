// What the kernels' wrappers refuse, with the message a user sees; and properties that need several launches.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/attention.h"
#include "kernels/block_sparse_matmul.h"
#include "kernels/cross_entropy.h"
#include "kernels/gated_linear_attention.h"
#include "kernels/gemm.h"
#include "kernels/norms.h"
#include "kernels/quantized_gemm.h"
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
  EXPECT_TRUE(softmax_rows<float>(s, shape<float>(3, 0), shape<float>(3, 0)).ok());
  EXPECT_TRUE(vector_add<float>(s, shape<float>(0), shape<float>(0), shape<float>(0)).ok());
  EXPECT_TRUE((gemm<float, float>(s, shape<const float>(0, 8), shape<const float>(8, 5), shape<float>(0, 5)).ok()));
}

// Views of buffers are of elements that are not const: the element type is found all the same.
TEST(Wrappers, InputsNeedNotBeConst) {
  auto device = host();
  Stream& s = device->default_stream();
  auto a = Buffer<float>::from(device, std::vector<float>{1, 2, 3, 4}).value_or_throw(),
       d = Buffer<float>::allocate(device, 4).value_or_throw();
  EXPECT_TRUE(gemm(s, a.view(2, 2), a.view(2, 2), d.view(2, 2)).ok());
  EXPECT_EQ(d.to_host().value_or_throw(), (std::vector<float>{7, 10, 15, 22}));
  const TensorView<const float, 2> constant = a.view(2, 2);
  EXPECT_TRUE((gemm(s, constant, a.view(2, 2), d.view(2, 2)).ok()));
  EXPECT_TRUE(run_gemm(gemm_kernel<float, float>(), s, a.view(2, 2), a.view(2, 2), d.view(2, 2), d.view(2, 2), 1.f, 0.f,
                       default_gemm_config(f32, false, 2, 2, Machine::of(s)))
                  .ok());
  auto best = Buffer<int32_t>::allocate(device, 2).value_or_throw();
  RowReductionConfig largest;
  largest.op = RowReduction::argmax;
  EXPECT_TRUE(arg_rows(s, a.view(2, 2), best.view(2), largest).ok());
  EXPECT_EQ(best.to_host().value_or_throw(), (std::vector<int32_t>{1, 1}));
  auto labels = Buffer<int64_t>::from(device, std::vector<int64_t>{0, 1}).value_or_throw();
  EXPECT_TRUE(cross_entropy(s, a.view(2, 2), labels.view(2), d.view(2), d.view(2)).ok());
  expect_refused(cross_entropy(s, shape<float>(2, 0), labels.view(2), d.view(2), d.view(2)), "X has no classes");
}

// Groups of any size that has a block: all rows of one, or several; 8 and 4 bits.
TEST(Wrappers, GroupsOfQuantizedWeights) {
  auto device = host();
  Stream& s = device->default_stream();
  constexpr int m = 3, n = 20;
  for (const int group : {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128}) {
    const int k = group * (group < 16 ? 26 : 3);  // no whole number of blocks
    std::vector<float> a(m * k), scale((k / group) * n);
    std::vector<int8_t> w8(k * n);
    std::vector<uint8_t> w4(k / 2 * n);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
    for (size_t i = 0; i < scale.size(); ++i) scale[i] = static_cast<float>(1 + i % 5) / 8;
    for (size_t i = 0; i < w8.size(); ++i) w8[i] = static_cast<int8_t>(i * 37 % 251 - 125);
    for (size_t i = 0; i < w4.size(); ++i) w4[i] = static_cast<uint8_t>(i * 29 % 256);
    const auto expected = [&](bool packed, int row, int column) {
      double sum = 0;
      for (int i = 0; i < k; ++i) {
        const uint8_t byte = packed ? w4[i / 2 * n + column] : 0;
        const double w = packed ? (i % 2 ? byte >> 4 : byte & 15) - 8 : w8[i * n + column];
        sum += a[row * k + i] * w * scale[i / group * n + column];
      }
      return sum;
    };
    const auto to_half = [&](const std::vector<float>& x) {
      return Buffer<half>::from(device, std::vector<half>(x.begin(), x.end())).value_or_throw();
    };
    auto da = to_half(a), ds = to_half(scale);
    auto d8 = Buffer<int8_t>::from(device, w8).value_or_throw();
    auto d4 = Buffer<uint8_t>::from(device, w4).value_or_throw();
    auto out = Buffer<half>::allocate(device, m * n).value_or_throw();
    const auto scales = ds.view(k / group, n);
    for (const bool packed : {false, true}) {
      if (packed && k % 2) continue;
      const Status done =
          packed ? quantized_gemm<half, uint8_t>(s, da.view(m, k), d4.view(k / 2, n), scales, out.view(m, n))
                 : quantized_gemm<half, int8_t>(s, da.view(m, k), d8.view(k, n), scales, out.view(m, n));
      ASSERT_TRUE(done.ok()) << done.error().to_string();
      const auto found = out.to_host().value_or_throw();
      for (int r = 0; r < m; ++r)
        for (int c = 0; c < n; ++c)
          EXPECT_NEAR(float(found[r * n + c]), expected(packed, r, c), 0.01 * std::abs(expected(packed, r, c)) + 1)
              << "group " << group << (packed ? ", 4 bits" : ", 8 bits");
    }
  }
  QuantizedGemmConfig c;
  c.GROUP = 40;
  expect_refused((quantized_gemm<half, int8_t>(s, shape<half>(4, 80), shape<const int8_t>(80, 8), shape<half>(2, 8),
                                               shape<half>(4, 8), c)),
                 "of config.GROUP and config.BK one must be a multiple of the other, found 40 and 64");
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
