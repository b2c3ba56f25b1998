// Items of the project's checklist that one catalog problem, the text of a kernel, a count or a few launches can show,
// by their ids, on every device present. Other items: test_attention*, test_block_*, test_gla, test_wrappers, and the
// demos and commands of CMakeLists.txt.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/attention.h"
#include "kernels/attention_backward.h"
#include "kernels/block_sparse.h"
#include "kernels/catalog.h"
#include "kernels/gemm.h"
#include "kernels/softmax.h"
#include "tests/test_names.h"

namespace tile::kernels {
namespace {

// ---- items a problem of the catalog shows, checked against its f64 reference

struct Item {
  const char *name, *kernel, *dtype, *sizes;
};
constexpr Item kItems[] = {
    {"S0_3_SafeSoftmax", "softmax", "f32", "M=3 N=1100 form=1 amp=200"},
    {"S0_4_OnlineSoftmax", "softmax", "f32", "M=3 N=9000 form=2 amp=200"},
    {"S0_5_PairsReduceAsATree", "softmax", "f32", "M=3 N=1000 form=3 amp=200"},
    {"S0_8_AnyStridesHeadsInside", "attention_forward", "f16", "B=2 Hq=3 Sq=70 Sk=90 D=64 layout=1"},
    {"S0_8_AnyStridesBatchInside", "attention_forward", "f16", "B=2 Hq=3 Sq=70 Sk=90 D=64 layout=2"},
    {"S0_8_AnyStridesChannelsOutside", "attention_forward", "f16", "B=1 Hq=2 Sq=70 Sk=90 D=64 layout=3"},
    {"S0_9_NotCausal", "attention_forward", "f16", "B=1 Hq=2 Sq=150 D=32 causal=0"},
    {"S0_9_Causal", "attention_forward", "f16", "B=1 Hq=2 Sq=150 D=32 causal=1"},
    {"S0_10_RowLogSumExp", "attention_forward", "f32", "B=1 Hq=2 Sq=100 Sk=130 D=32 causal=1 amp=20"},
    {"S0_11_GradientsFromTheSavedLse", "attention_backward", "f16", "B=1 Hq=2 Sq=130 D=64 causal=1"},
    {"S2_1_BothBlockMasks", "block_sparse_matmul", "f32", "M=128 N=96 K=160 bm=32 bn=32 bk=32 density=50"},
    {"S2_1_MasksOfAnyStrides", "block_sparse_matmul", "f32", "M=100 N=130 K=90 mask_t=1"},
    // Blocks a mask hides hold NaN in every problem of this row: one load of them would show.
    {"S2_2_HiddenBlocksAreNotLoaded", "block_sparse_matmul", "f16", "M=128 N=192 K=256 density=25"},
    {"S2_3_RaggedEdges", "block_sparse_matmul", "f32", "M=131 N=75 K=145 bm=32 bn=32 bk=32"},
    {"S2_4_BlocksOfCThatMeetNothingAreZero", "block_sparse_matmul", "f16", "M=128 N=192 K=256 density=0"},
    {"S2_10_ValuesByRowAndColumn", "sampled_dense", "f32", "M=130 N=75 K=145 bm=32 bk=32"},
    {"S2_11_LongRowsInSegments", "block_sparse_dense", "f16",
     "M=200 N=150 K=512 bm=32 bk=32 density=20 skew=1 split=5 beta=2"},
    {"S3_2_FeatureMapAndNormaliser", "linear_attention", "f32", "H=2 L=100 K=60 V=33 map=1 normalize=1"},
    {"S3_2_NoMapNoNormaliser", "linear_attention", "f32", "B=2 H=2 L=100 K=32 V=64"},
    {"S3_6_Recurrence", "gla_recurrent", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S3_8_Layer", "gla_layer", "f32", "L=37 D=72 H=3 K=20 V=24 R=8"},
    {"S3_8_OutputGateAndNorm", "gla_output_gate", "f32", "M=7 V=50"},
    {"S3_9_HeadsFirstInWindowsOf16", "gla_chunk_forward", "f32", "B=2 H=2 L=64 K=128 V=128 BT=16 layout=0"},
    {"S3_10_WindowsOfDecays", "gla_decay_cumsum", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S3_11_DecayedQueriesAndKeys", "gla_prepare", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S3_12_StateOnChipOverChunks", "gla_inter_chunk", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S3_13_ScoresInsideAChunk", "gla_inner_scores", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S3_14_Combine", "gla_combine", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S3_15_OneTokenFromStateToState", "gla_decode", "f32", "B=1 H=2 K=60 V=33"},
    {"S3_16_Gradients", "gla_backward", "f16", "B=2 H=2 L=80 K=64 V=64 state=3"},
    {"S3_16_LengthsBetweenWindows", "gla_backward", "f32", "H=1 L=17 K=32 V=16 BT=64 state=3"},
    {"S4_2_S4_3_QueriesOutsideKeysInside", "attention_forward", "bf16", "B=1 Hq=2 Sq=200 Sk=300 D=64"},
    {"S4_7_KeysOutsideQueriesAdded", "attention_backward", "f16", "B=1 Hq=2 Sq=200 Sk=150 D=64"},
    {"S4_10_GroupedHeadsForward", "attention_forward", "f16", "B=1 Hq=6 Hkv=2 Sq=100 D=64 causal=1"},
    {"S4_10_GroupedHeadsBackward", "attention_backward", "f16", "B=1 Hq=6 Hkv=2 Sq=100 D=64 causal=1"},
    {"S4_11_PartsOfAllKeysCombined", "paged_attention", "f16", "B=2 Hkv=1 G=16 S=129 D=128 splits=5"},
};

class Checklist : public testing::TestWithParam<std::tuple<Item, std::string>> {};

TEST_P(Checklist, AgreesWithReference) {
  const auto& [item, device_name] = GetParam();
  const CatalogRow* row = find_kernel(item.kernel).value_or_throw();
  const Problem problem = parse_problem(*row, item.dtype, item.sizes).value_or_throw();
  auto device = open_device(device_name).value_or_throw();
  auto run = row->prepare(device, problem, row->default_config(problem, Machine::of(device->properties())));
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  auto checks = (*run)->check(device->default_stream());
  ASSERT_TRUE(checks.ok()) << checks.error().to_string();
  ASSERT_FALSE(checks->empty());
  for (const Check& c : *checks) EXPECT_TRUE(c.comparison.pass) << c.output << ": " << c.comparison.why;
}
INSTANTIATE_TEST_SUITE_P(All, Checklist,
                         testing::Combine(testing::ValuesIn(kItems), testing::ValuesIn(device_names())),
                         [](const auto& info) {
                           return test_name_of(
                               fmt::format("{}_{}", std::get<0>(info.param).name, std::get<1>(info.param)));
                         });

// ---- items that need several launches

class OnEveryDevice : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { device = open_device(GetParam()).value_or_throw(); }
  Stream& stream() { return device->default_stream(); }
  Buffer<float> random(size_t count, uint32_t seed) {
    std::vector<float> x(count);
    std::mt19937 draw(seed);
    std::normal_distribution<float> normal;
    for (float& v : x) v = normal(draw);
    return Buffer<float>::from(device, std::span<const float>(x)).value_or_throw();
  }
  Buffer<float> empty(size_t count) { return Buffer<float>::allocate(device, count).value_or_throw(); }
  static void ok(const Status& s) { ASSERT_TRUE(s.ok()) << s.error().to_string(); }
  std::shared_ptr<Device> device;
};
INSTANTIATE_TEST_SUITE_P(All, OnEveryDevice, testing::ValuesIn(device_names()),
                         [](const auto& info) { return test_name_of(info.param); });

/// The operator as it is written down: all scores in memory, a softmax of its own, a second product.
TEST_P(OnEveryDevice, S0_1_FusedAttentionIsTheMaterializedOperator) {
  constexpr int64_t s = 150, n = 203, d = 32;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  auto q = random(s * d, 1), k = random(n * d, 2), v = random(n * d, 3);
  auto scores = empty(s * n), weights = empty(s * n), plain = empty(s * d), fused = empty(s * d), lse = empty(s);
  const TensorView<const float, 2> K = k.view(n, d);
  const Machine machine = Machine::of(stream());
  auto product = [&](Input<float, 2> a, Input<float, 2> b, TensorView<float, 2> out, float alpha) {
    GemmConfig c = default_gemm_config(DType::f32, false, out.shape[0], out.shape[1], machine);
    c.use_alpha = true;
    ok(run_gemm(gemm_kernel<float, float>(), stream(), TensorView<const float, 2>(a), TensorView<const float, 2>(b),
                TensorView<const float, 2>(out), out, alpha, 0.f, c));
  };
  product(q.view(s, d), K.transposed(), scores.view(s, n), scale);
  ok(softmax_rows<float>(stream(), scores.view(s, n), weights.view(s, n)));
  product(weights.view(s, n), v.view(n, d), plain.view(s, d), 1.f);
  ok(attention_forward<float>(stream(), q.view(1, 1, s, d), k.view(1, 1, n, d), v.view(1, 1, n, d),
                              fused.view(1, 1, s, d), lse.view(1, 1, s), scale, false));
  const auto a = plain.to_host().value_or_throw(), b = fused.to_host().value_or_throw();
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5) << i;
}

/// A kernel that did not exist when this program was built: its constant is drawn while the program runs.
TEST_P(OnEveryDevice, S0_12_KernelsAreCompiledWhileTheProgramRuns) {
  const int factor = static_cast<int>(std::random_device{}() % 1000000) + 2;
  struct Cfg {
    int BLOCK = 64, FACTOR = 1;
  };
  const auto scaled = kernel("scaled", [](const Cfg& c, Tensor<const float, 1> X, Tensor<float, 1> Y) {
    const Tile at = program_id(0) * c.BLOCK;
    Y.store({at}, X.load({at}, {c.BLOCK}) * static_cast<float>(c.FACTOR));
  });
  auto x = random(200, 1), y = empty(200);
  const JitStats before = jit_stats();
  ok(scaled.try_launch(stream(), {64, factor}, Grid{4}, TensorView<const float, 1>(x.view(200)), y.view(200)));
  const JitStats after = jit_stats();
  EXPECT_EQ(after.traces, before.traces + 1);
  EXPECT_EQ(after.compiles + after.disk_hits, before.compiles + before.disk_hits + 1);  // another run drew the same
  const auto in = x.to_host().value_or_throw(), out = y.to_host().value_or_throw();
  for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], in[i] * static_cast<float>(factor)) << i;
}

/// Scores and all, in float64, of the elements at(b, h, row, channel).
template <class Q, class K, class V>
std::vector<double> attend(int64_t sq, int64_t sk, int64_t d, double scale, const Q& q, const K& k, const V& v) {
  std::vector<double> out;
  for (int64_t i = 0; i < sq; ++i) {
    std::vector<double> p(static_cast<size_t>(sk));
    double sum = 0;
    for (int64_t j = 0; j < sk; ++j) {
      double s = 0;
      for (int64_t c = 0; c < d; ++c) s += q(i, c) * k(j, c);
      sum += p[static_cast<size_t>(j)] = std::exp(s * scale);
    }
    for (int64_t c = 0; c < d; ++c) {
      double o = 0;
      for (int64_t j = 0; j < sk; ++j) o += p[static_cast<size_t>(j)] * v(j, c);
      out.push_back(o / sum);
    }
  }
  return out;
}

/// The seed's own layouts: K lies [B, H, D, N], the others in three further orders; and one compiled kernel takes any
/// batch, heads and lengths.
TEST_P(OnEveryDevice, S0_8_EveryTensorHasItsOwnStridesAndSizesComeAtLaunch) {
  constexpr int64_t d = 32;
  const AttentionConfig c = default_attention_config(DType::f32, 64, d, d, false, 0.2f, Machine::of(stream()));
  uint64_t compiles = 0;
  for (auto [b, h, sq, sk] : {std::array<int64_t, 4>{1, 1, 48, 80}, {2, 3, 64, 32}, {3, 2, 16, 112}}) {
    auto q = random(b * h * sq * d, 1), k = random(b * h * sk * d, 2), v = random(b * h * sk * d, 3);
    auto o = empty(b * h * sq * d), lse = empty(b * h * sq);
    const TensorView<const float, 4> Q(q.data(), {b, h, sq, d}, {h * sq * d, sq * d, d, 1}),
        K(k.data(), {b, h, sk, d}, {h * sk * d, sk * d, 1, sk}), V(v.data(), {b, h, sk, d}, {h * sk * d, d, h * d, 1});
    const TensorView<float, 4> O(o.data(), {b, h, sq, d}, {d, b * d, b * h * d, 1});
    ok(attention_forward<float>(stream(), Q, K, V, O, lse.view(b, h, sq), 0.2f, c));
    const JitStats now = jit_stats();
    if (compiles) {
      EXPECT_EQ(now.compiles + now.disk_hits, compiles) << "sizes made a new kernel";
    }
    compiles = now.compiles + now.disk_hits;
    const auto x = q.to_host().value_or_throw(), y = k.to_host().value_or_throw(), z = v.to_host().value_or_throw(),
               found = o.to_host().value_or_throw();
    auto at = [](const std::vector<float>& of, const auto& view, int64_t i0, int64_t i1) {
      return [&of, view, i0, i1](int64_t row, int64_t channel) -> double {
        return of[static_cast<size_t>(i0 * view.strides[0] + i1 * view.strides[1] + row * view.strides[2] +
                                      channel * view.strides[3])];
      };
    };
    for (int64_t i0 = 0; i0 < b; ++i0)
      for (int64_t i1 = 0; i1 < h; ++i1) {
        const auto want = attend(sq, sk, d, 0.2, at(x, Q, i0, i1), at(y, K, i0, i1), at(z, V, i0, i1));
        const auto got = at(found, O, i0, i1);
        for (int64_t i = 0; i < sq * d; ++i) ASSERT_NEAR(got(i / d, i % d), want[static_cast<size_t>(i)], 1e-5) << i;
      }
  }
}

/// Weights are e^{t - LSE}: an LSE that is larger by ln 2 halves them, and with them dV.
TEST_P(OnEveryDevice, S0_10_BackwardReadsTheSavedLse) {
  constexpr int64_t s = 70, d = 32;
  auto q = random(s * d, 1), k = random(s * d, 2), v = random(s * d, 3), d_o = random(s * d, 4);
  auto o = empty(s * d), lse = empty(s), dq = empty(s * d), dk = empty(s * d), dv = empty(s * d);
  const int64_t floats = attention_backward_workspace(1, 1, s, d, true);
  auto scratch = empty(static_cast<size_t>(floats));
  auto view = [&](auto& x) { return x.view(1, 1, s, d); };
  AttentionOptions<> options;
  options.scale = 0.2f;
  ok(attention_forward<float>(stream(), view(q), view(k), view(v), view(o), lse.view(1, 1, s), options));
  auto values = [&] {
    ok(attention_backward<float>(stream(), view(q), view(k), view(v), view(o), view(d_o), lse.view(1, 1, s), view(dq),
                                 view(dk), view(dv), scratch.view(floats), options, /*deterministic=*/true));
    return dv.to_host().value_or_throw();
  };
  const std::vector<float> before = values();
  std::vector<float> saved = lse.to_host().value_or_throw();
  for (float& x : saved) x += std::log(2.f);
  lse.copy_from(std::span<const float>(saved)).value_or_throw();
  const std::vector<float> after = values();
  for (size_t i = 0; i < before.size(); ++i) ASSERT_NEAR(after[i], before[i] / 2, 1e-5) << i;
}

/// Softmax attention as a recurrence: token t alone, against the keys so far, is row t of the full form.
TEST_P(OnEveryDevice, S3_2_RecurrentSoftmaxIsTheFullForm) {
  constexpr int64_t s = 37, d = 32;
  auto q = random(s * d, 1), k = random(s * d, 2), v = random(s * d, 3), full = empty(s * d), lse = empty(s);
  auto row = empty(d), one = empty(1);
  auto view = [&](auto& x) { return x.view(1, 1, s, d); };
  ok(attention_forward<float>(stream(), view(q), view(k), view(v), view(full), lse.view(1, 1, s), 0.2f, true));
  const auto want = full.to_host().value_or_throw();
  for (int64_t t = 0; t < s; ++t) {
    const int64_t keys = t + 1;
    const TensorView<const float, 4> K(k.data(), {1, 1, keys, d}), V(v.data(), {1, 1, keys, d}),
        Q(q.data() + t * d, {1, 1, 1, d});
    ok(attention_forward<float>(stream(), Q, K, V, row.view(1, 1, 1, d), one.view(1, 1, 1), 0.2f, false));
    const auto found = row.to_host().value_or_throw();
    for (int64_t c = 0; c < d; ++c)
      ASSERT_NEAR(found[static_cast<size_t>(c)], want[static_cast<size_t>(t * d + c)], 1e-5) << t << " " << c;
  }
}

/// The primitives the seed names: masked load with `other`, masked store, dot, where, arange, zeros, program ids and
/// constants, put together by pointers as there: C = max(A B, 0), a last column of B read as 2.
TEST_P(OnEveryDevice, S2_15_NamedPrimitives) {
  struct Cfg {
    int BM = 32, BN = 32, BK = 16;
  };
  const auto product = kernel("primitives", [](const Cfg& c, Ptr<const float> A, Ptr<const float> B, Ptr<float> C,
                                               I32 M, I32 N, I32 K) {
    const Tile m = (program_id(0) * c.BM + arange(0, c.BM)).col(), n = (program_id(1) * c.BN + arange(0, c.BN)).row();
    Tile acc = zeros({c.BM, c.BN}, f32);
    for (auto k0 : range(0, K, c.BK)) {
      const Tile k = k0 + arange(0, c.BK);
      const Tile a = load(A + (m * K + k.row()), {.mask = (m < M) & (k.row() < K), .other = 0.f});
      const Tile b = load(B + (k.col() * N + n), {.mask = (k.col() < K) & (n < N - 1), .other = 2.f});
      acc = dot(a, b, acc);
    }
    store(C + (m * N + n), where(acc > 0.f, acc, 0.f), {.mask = (m < M) & (n < N)});
  });
  constexpr int M = 45, N = 50, K = 48;  // M and N end inside a block
  auto a = random(M * K, 1), b = random(K * N, 2), c = random(M * N + 64, 3);
  const auto guard = c.to_host().value_or_throw();
  ok(product.try_launch(stream(), {}, Grid{2, 2}, a.data(), b.data(), c.data(), M, N, K));
  const auto x = a.to_host().value_or_throw(), y = b.to_host().value_or_throw(), found = c.to_host().value_or_throw();
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      double sum = 0;
      for (int k = 0; k < K; ++k) sum += double(x[m * K + k]) * (n + 1 < N ? double(y[k * N + n]) : 2.);
      ASSERT_NEAR(found[m * N + n], std::max(sum, 0.), 1e-4) << m << " " << n;
    }
  for (int i = M * N; i < M * N + 64; ++i) ASSERT_EQ(found[i], guard[i]) << "written past the end";
}

/// f32 as it is, and half of the blocks of each operand: the tolerance the kernel is usually shown with, which products
/// of ten mantissa bits miss.
TEST_P(OnEveryDevice, S2_5_ThousandthsAtDepth1024) {
  const CatalogRow* row = find_kernel("block_sparse_matmul").value_or_throw();
  const Problem p = parse_problem(*row, "f32", "M=1024 N=1024 K=1024 bm=32 bn=32 bk=32 density=50").value_or_throw();
  auto run = row->prepare(device, p, row->default_config(p, Machine::of(device->properties()))).value_or_throw();
  for (const Check& c : run->check(stream()).value_or_throw()) {
    EXPECT_TRUE(c.comparison.pass) << c.comparison.why;
    EXPECT_LT(c.comparison.max_error, 1e-3);
  }
}

// ---- items about a kernel's text or its sizes

size_t occurrences(const std::string& text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// Loads and stores of a row's elements by the three forms that walk a row in blocks.
TEST(ChecklistText, S0_2_S0_3_S0_4_LoadsAndStoresOfTheSoftmaxForms) {
  struct Counts {
    SoftmaxForm form;
    size_t loads, stores;
  };
  for (auto [form, loads, stores] : {Counts{SoftmaxForm::naive, 2, 1}, {SoftmaxForm::safe, 3, 1},
                                     {SoftmaxForm::online, 2, 1}, {SoftmaxForm::resident, 1, 1}}) {
    const auto& k = softmax_kernel<float>();
    const Traced traced = k.trace(SoftmaxConfig{form, 1, 256, 4});
    ASSERT_TRUE(traced.ok()) << traced.error().to_string();
    EXPECT_EQ(occurrences(traced.text(), "tile.load "), loads) << static_cast<int>(form);
    EXPECT_EQ(occurrences(traced.text(), "tile.store "), stores) << static_cast<int>(form);
  }
}

std::string attention_text(bool causal) {
  AttentionConfig c;
  c.causal = causal;
  return attention_kernel<half>().trace(c).text();
}

/// One source, two programs: what causal needs is not in the other one.
TEST(ChecklistText, S0_9_CausalIsASpecialisation) {
  const std::string full = attention_text(false), causal = attention_text(true);
  EXPECT_EQ(occurrences(full, "scf.for"), 2u);    // with and without the end of the keys
  EXPECT_EQ(occurrences(causal, "scf.for"), 2u);  // with and without a mask
  EXPECT_LT(occurrences(full, "arith.cmpi"), occurrences(causal, "arith.cmpi"));
}

/// What backward keeps beside its results grows with the queries and not with pairs.
TEST(ChecklistText, S0_11_ScratchMemoryGrowsWithQueries) {
  for (bool deterministic : {false, true}) {
    const int64_t one = attention_backward_workspace(2, 3, 1000, 64, deterministic);
    EXPECT_EQ(attention_backward_workspace(2, 3, 2000, 64, deterministic), 2 * one);
    EXPECT_LE(one, 2 * 3 * 1000 * (2 + 64));
  }
}

/// The division stands once, behind the loops; O and one number per row leave.
TEST(ChecklistText, S4_2_S4_3_OneDivisionBehindTheLoopsAndOAndLseAreStored) {
  for (bool causal : {false, true}) {
    const std::string text = attention_text(causal);
    EXPECT_EQ(occurrences(text, "arith.divf"), 1u);
    EXPECT_GT(text.find("arith.divf"), text.rfind("scf.yield"));
    EXPECT_EQ(occurrences(text, "tile.store"), 2u);
    EXPECT_GT(text.find("tile.store"), text.rfind("scf.yield"));
    EXPECT_LT(text.find("tile.load"), text.find("scf.for"));  // the queries: once, outside
  }
}

/// A program for each block of keys; it alone writes dK and dV, and adds its part to dQ.
TEST(ChecklistText, S4_7_BackwardIsParallelOverKeysAndAddsToDq) {
  AttentionConfig c;
  c.accumulate = true;
  const std::string text = attention_backward_kernels<half>().keys.trace(c).text();
  EXPECT_EQ(occurrences(text, "tile.store"), 2u);
  EXPECT_GT(text.find("tile.store"), text.rfind("scf.yield"));
  EXPECT_GT(occurrences(text, "tile.accumulate"), 0u);
  EXPECT_LT(text.find("tile.accumulate"), text.rfind("scf.yield"));
  c.accumulate = false;
  EXPECT_EQ(occurrences(attention_backward_kernels<half>().keys.trace(c).text(), "tile.accumulate"), 0u);
}

/// Scores and weights of the materialised operator are what its memory goes into: ten times less without them at 2048
/// rows, twenty times at 4096.
TEST(ChecklistText, S4_1_MemoryAgainstTheMaterializedOperator) {
  const CatalogRow *first = find_kernel("attention_v1").value_or_throw(),
                   *ours = find_kernel("attention_forward").value_or_throw();
  for (const CatalogRow* row : {first, ours})  // both are timed
    EXPECT_TRUE(std::any_of(row->problems.begin(), row->problems.end(),
                            [](const Problem& p) { return p.purpose == Purpose::bench; }))
        << row->name;
  for (auto [s, times] : {std::pair<int64_t, int64_t>{2048, 10}, {4096, 20}}) {
    const Problem p{"f16", {{"Hq", 1}, {"Sq", s}, {"D", 64}}};
    const auto host = open_device("host").value_or_throw();
    const auto run = ours->prepare(host, p, ours->default_config(p, Machine{})).value_or_throw();
    const double bytes = run->work().bytes, scores = 2.0 * static_cast<double>(s * s) * 2;  // f16, before and after
    EXPECT_GE(scores + bytes, static_cast<double>(times) * bytes) << s;
  }
}

TEST(ChecklistText, S0_13_S0_14_S0_15_TheBenchmarkShapeIsTimedAndFitsInAGibibyte) {
  for (const char* name : {"attention_forward", "attention_backward"}) {
    const CatalogRow* row = find_kernel(name).value_or_throw();
    int timed = 0;
    for (const Problem& p : row->problems)
      timed += p.purpose == Purpose::bench && p.sizes["B"] == 4 && p.sizes["Hq"] == 48 && p.sizes["Sq"] == 4096 &&
               p.sizes["D"] == 32;
    EXPECT_EQ(timed, 2) << name << ": causal and not";
  }
  const int64_t rows = int64_t{4} * 48 * 4096, tensor = rows * 32 * 2;  // f16
  const int64_t bytes = 8 * tensor + 4 * rows +                         // Q K V O, their gradients, LSE
                        4 * attention_backward_workspace(4, 48, 4096, 32, /*deterministic=*/false);
  EXPECT_LT(bytes, int64_t{1} << 30);
}

/// 66 programs for one head of one sequence would leave half of a 132-multiprocessor machine idle.
TEST(ChecklistText, S4_5_ProgramsAlongTheSequence) {
  const Machine h200{.gpu = true, .shared_bytes = 232448, .multiprocessors = 132, .warpgroups = true};
  const AttentionConfig c = default_attention_config(DType::f16, 32768, 128, 128, false, 0.1f, h200);
  const Grid grid = attention_grid(c, {1, 1, 32768, 128}, 1, 32768);
  EXPECT_GE(grid.x, 132);
  const Grid more = attention_grid(c, {3, 5, 32768, 128}, 3, 32768);
  EXPECT_EQ(std::tuple(more.x, more.y, more.z), std::tuple(grid.x, 5, 3));
}

/// Every warp has rows of its own: what a query's softmax needs never leaves its warp. Four or eight of them, or whole
/// warpgroups.
TEST(ChecklistText, S4_6_S4_10_WarpsShareOutQueries) {
  for (bool warpgroups : {false, true})
    for (int64_t d : {64, 128}) {
      const Machine gpu{.gpu = true, .shared_bytes = 166912, .multiprocessors = 108, .warpgroups = warpgroups};
      const AttentionConfig c = default_attention_config(DType::f16, 4096, d, d, true, 0.1f, gpu);
      EXPECT_EQ(c.BM % (16 * c.warps), 0) << c.BM << " rows, " << c.warps << " warps";
      EXPECT_EQ(c.warps % 4, 0);
      if (!warpgroups) {
        EXPECT_TRUE(c.warps == 4 || c.warps == 8) << c.warps;
      }
    }
}

/// Densities a time against density curve needs are timed, for both of the usual block sizes.
TEST(ChecklistText, S2_13_DensitiesOfTheCurve) {
  const CatalogRow* row = find_kernel("block_sparse_dense").value_or_throw();
  for (int64_t block : {64, 128})
    for (int64_t density : {100, 50, 25, 10, 5, 1})
      EXPECT_TRUE(std::any_of(row->problems.begin(), row->problems.end(), [&](const Problem& p) {
        return p.purpose == Purpose::bench && p.sizes["M"] == 8192 && p.sizes["bm"] == block &&
               p.sizes["density"] == density;
      })) << block << " at " << density << " %";
}

/// Work follows the blocks that are present: nothing is done for the others.
TEST(ChecklistText, S2_13_WorkFollowsDensity) {
  const CatalogRow* row = find_kernel("block_sparse_dense").value_or_throw();
  const auto host = open_device("host").value_or_throw();
  auto flops = [&](int64_t density) {
    const Problem p{"f16", {{"M", 2048}, {"N", 64}, {"K", 2048}, {"bm", 64}, {"bk", 64}, {"density", density}}};
    return row->prepare(host, p, row->default_config(p, Machine{})).value_or_throw()->work().flops;
  };
  const double all = flops(100);
  EXPECT_EQ(all, 2.0 * 2048 * 64 * 2048);
  for (int64_t density : {50, 25, 10, 5, 1})
    EXPECT_NEAR(flops(density) / all, static_cast<double>(density) / 100, 0.03) << density;
}

/// Blocks are fetched by asynchronous copies of 16 bytes, tensor copies where the machine has them, and rows of blocks
/// are walked in groups that share their operands.
TEST(ChecklistText, S2_8_AsynchronousVectorCopies) {
  const auto& k = block_sparse_dense_kernel<half>();
  KernelOptions options;
  options.ptxas = "none";  // PTX stays as it is
  for (auto [target, warpgroups, copy] : {std::tuple{"sm_80", false, "cp.async.cg.shared.global"},
                                          {"sm_90a", true, "cp.async.bulk.tensor"}}) {
    const Machine machine{.gpu = true, .shared_bytes = 166912, .multiprocessors = 108, .warpgroups = warpgroups};
    const BlockListConfig c = default_block_list_config(DType::f16, 64, 64, false, machine);
    EXPECT_GT(c.GROUP, 1);
    const auto binary = k.compile_for(target, k.words(c), dense_specialization(k), options);
    ASSERT_TRUE(binary.ok()) << binary.error().to_string();
    const std::string ptx(reinterpret_cast<const char*>(binary->bytes.data()), binary->bytes.size());
    EXPECT_GT(occurrences(ptx, copy), 0u) << target;
    EXPECT_EQ(occurrences(ptx, "cp.async.ca.shared.global"), 0u) << target << ": copies of less than 16 bytes";
  }
}

/// Nothing runs on one kind of device only: the smallest problem of every row, by the source that GPUs get, against the
/// reference. (That the same source is built for GPUs is the gate's.)
TEST(ChecklistText, S2_14_EveryRowRunsOnTheHost) {
  const auto host = open_device("host").value_or_throw();
  for (const CatalogRow& row : catalog()) {
    const Problem* smallest = nullptr;
    auto volume = [](const Problem& p) {
      double v = 1;
      for (const auto& [name, value] : p.sizes) v *= static_cast<double>(std::max<int64_t>(std::abs(value), 1));
      return v;
    };
    for (Purpose purpose : {Purpose::test, Purpose::edge})  // parts of larger algorithms have special cases only
      for (const Problem& p : row.problems)
        if (p.purpose == purpose && (!smallest || (purpose == smallest->purpose && volume(p) < volume(*smallest))))
          smallest = &p;
    ASSERT_NE(smallest, nullptr) << row.name;
    SCOPED_TRACE(row.name + " " + smallest->to_string());
    auto run = row.prepare(host, *smallest, row.default_config(*smallest, Machine::of(host->properties())));
    ASSERT_TRUE(run.ok()) << run.error().to_string();
    auto checks = (*run)->check(host->default_stream(), 1e6);
    ASSERT_TRUE(checks.ok()) << checks.error().to_string();
    for (const Check& c : *checks) EXPECT_TRUE(c.comparison.pass) << c.output << ": " << c.comparison.why;
  }
}

}  // namespace
}  // namespace tile::kernels
