// Items of the project's checklist that one catalog problem, the text of a kernel or a count can show, by their ids, on
// every device present. Items with tests of their own: test_attention*, test_block_*, test_gla.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/attention.h"
#include "kernels/attention_backward.h"
#include "kernels/catalog.h"
#include "kernels/gemm.h"
#include "kernels/softmax.h"

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
    {"S3_10_WindowsOfDecays", "gla_decay_cumsum", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S3_11_DecayedQueriesAndKeys", "gla_prepare", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S3_12_StateOnChipOverChunks", "gla_inter_chunk", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S3_13_ScoresInsideAChunk", "gla_inner_scores", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S3_14_Combine", "gla_combine", "f32", "B=1 H=2 L=70 K=40 V=24"},
    {"S4_2_S4_3_OutputUnscaledUntilTheEnd", "attention_forward", "bf16", "B=1 Hq=2 Sq=200 Sk=300 D=64"},
    {"S4_7_KeysOutsideQueriesAdded", "attention_backward", "f16", "B=1 Hq=2 Sq=200 Sk=150 D=64"},
    {"S4_10_GroupedHeadsForward", "attention_forward", "f16", "B=1 Hq=6 Hkv=2 Sq=100 D=64 causal=1"},
    {"S4_10_GroupedHeadsBackward", "attention_backward", "f16", "B=1 Hq=6 Hkv=2 Sq=100 D=64 causal=1"},
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
                           std::string name = fmt::format("{}_{}", std::get<0>(info.param).name, std::get<1>(info.param));
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
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
INSTANTIATE_TEST_SUITE_P(All, OnEveryDevice, testing::ValuesIn(device_names()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

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

/// A kernel that did not exist when this program was built: its constant comes from the command of the moment.
TEST_P(OnEveryDevice, S0_12_KernelsAreCompiledWhileTheProgramRuns) {
  const int factor = static_cast<int>(std::random_device{}() % 1000) + 2;
  struct Cfg {
    int BLOCK = 64, FACTOR = 1;
  };
  const auto scaled = kernel("scaled", [](const Cfg& c, Tensor<const float, 1> X, Tensor<float, 1> Y) {
    const Tile at = program_id(0) * c.BLOCK;
    Y.store({at}, X.load({at}, {c.BLOCK}) * static_cast<float>(c.FACTOR));
  });
  auto x = random(200, 1), y = empty(200);
  ok(scaled.try_launch(stream(), {64, factor}, Grid{4}, TensorView<const float, 1>(x.view(200)), y.view(200)));
  const auto in = x.to_host().value_or_throw(), out = y.to_host().value_or_throw();
  for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], in[i] * static_cast<float>(factor)) << i;
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

/// Loads and stores of a row's elements by the three forms that walk a row in blocks.
TEST(ChecklistText, S0_2_S0_3_S0_4_LoadsAndStoresOfTheSoftmaxForms) {
  struct Counts {
    SoftmaxForm form;
    int loads, stores;
  };
  for (auto [form, loads, stores] : {Counts{SoftmaxForm::naive, 2, 1}, {SoftmaxForm::safe, 3, 1},
                                     {SoftmaxForm::online, 2, 1}, {SoftmaxForm::resident, 1, 1}}) {
    const auto& k = softmax_kernel<float>();
    const Traced traced = k.trace(SoftmaxConfig{form, 1, 256, 4});
    ASSERT_TRUE(traced.ok()) << traced.error().to_string();
    auto count = [text = traced.text()](std::string_view op) {
      int n = 0;
      for (size_t at = text.find(op); at != std::string::npos; at = text.find(op, at + 1)) ++n;
      return n;
    };
    EXPECT_EQ(count("tile.load "), loads) << static_cast<int>(form);
    EXPECT_EQ(count("tile.store "), stores) << static_cast<int>(form);
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
  EXPECT_GE(cdiv<int64_t>(32768, c.BM), 132);
}

/// Every warp has rows of its own: what a query's softmax needs never leaves its warp.
TEST(ChecklistText, S4_6_WarpsShareOutQueries) {
  for (bool warpgroups : {false, true})
    for (int64_t d : {64, 128}) {
      const Machine gpu{.gpu = true, .shared_bytes = 166912, .multiprocessors = 108, .warpgroups = warpgroups};
      const AttentionConfig c = default_attention_config(DType::f16, 4096, d, d, true, 0.1f, gpu);
      EXPECT_EQ(c.BM % (16 * c.warps), 0) << c.BM << " rows, " << c.warps << " warps";
    }
}

/// Densities a time against density curve needs are timed, for both of the usual block sizes.
TEST(ChecklistText, S2_13_DensitiesOfTheCurve) {
  const CatalogRow* row = find_kernel("block_sparse_dense").value_or_throw();
  for (int64_t block : {64, 128})
    for (int64_t density : {50, 25, 10, 5, 1})
      EXPECT_TRUE(std::any_of(row->problems.begin(), row->problems.end(), [&](const Problem& p) {
        return p.purpose == Purpose::bench && p.sizes["M"] == 8192 && p.sizes["bm"] == block &&
               p.sizes["density"] == density;
      })) << block << " at " << density << " %";
}

/// S2.14: nothing runs on one kind of device only.
TEST(ChecklistText, S2_14_EveryRowRunsOnTheHost) {
  for (const CatalogRow& row : catalog()) {
    const Problem p{row.dtypes.front(), row.problems.front().sizes};
    const ConfigWords c = row.default_config(p, Machine{});
    if (!row.compilable()) continue;
    const AnyKernel* k = row.kernel(p.dtype);
    ASSERT_NE(k, nullptr) << row.name;
    EXPECT_TRUE(k->trace(c).ok()) << row.name << ": " << k->trace(c).error().to_string();
  }
}

}  // namespace
}  // namespace tile::kernels
