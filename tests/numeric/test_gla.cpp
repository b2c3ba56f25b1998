// Properties of gated linear attention that need several launches or kernels; names carry the ids of the family's
// checklist. What one launch shows is in the catalog: S3.2 linear_attention, S3.6 gla_recurrent, S3.8 gla_layer, S3.10
// to S3.14 gla_decay_cumsum, gla_prepare, gla_inter_chunk, gla_inner_scores and gla_combine, S3.15 gla_decode, S3.16
// gla_backward.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/attention.h"
#include "kernels/gla_backward.h"
#include "kernels/gla_decode.h"
#include "kernels/gla_layer.h"
#include "kernels/gla_parallel.h"
#include "kernels/linear_attention.h"
#include "kernels/reference/linear_attention.h"

namespace tile::kernels {
namespace {

std::shared_ptr<Device> host() { return open_device("host").value_or_throw(); }
Stream& stream() { return host()->default_stream(); }

std::vector<float> normal(int64_t count, unsigned seed, float scale = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> draw(0, scale);
  std::vector<float> x(static_cast<size_t>(count));
  for (float& value : x) value = draw(engine);
  return x;
}

/// f32 tensors of one problem on the host device, [B, H, L, D], and what a plan makes of them.
struct Problem {
  int64_t b, h, l, k, v;
  std::vector<float> q, key, value, g, h0;
  float scale = 0.25f;

  Problem(int64_t b, int64_t h, int64_t l, int64_t k, int64_t v, float gates = 0.1f)
      : b(b),
        h(h),
        l(l),
        k(k),
        v(v),
        q(normal(b * h * l * k, 1)),
        key(normal(b * h * l * k, 2)),
        value(normal(b * h * l * v, 3)),
        g(normal(b * h * l * k, 4, gates)) {
    for (float& x : g) x = -std::fabs(x);
  }
  GlaSizes sizes() const { return {b, h, l, k, v, b, l}; }
  GlaPlan plan() const { return gla_plan(f32, sizes(), Machine::of(stream())); }
};

struct Outcome {
  std::vector<float> o, state;
};

Buffer<float> upload(const std::vector<float>& x) {
  return Buffer<float>::from(host(), std::span<const float>(x)).value_or_throw();
}

/// gla_forward, with the final state, from p.h0 if there is one.
Outcome forward(const Problem& p, const GlaPlan& plan, const std::vector<int32_t>& cu_seqlens = {}) {
  auto q = upload(p.q), k = upload(p.key), v = upload(p.value), g = upload(p.g), h0 = upload(p.h0);
  auto cu = Buffer<int32_t>::from(host(), std::span<const int32_t>(cu_seqlens)).value_or_throw();
  GlaInputs<float> in{q.view(p.b, p.h, p.l, p.k), k.view(p.b, p.h, p.l, p.k), v.view(p.b, p.h, p.l, p.v),
                      g.view(p.b, p.h, p.l, p.k), p.scale};
  int64_t sequences = p.b;
  if (!cu_seqlens.empty()) {
    sequences = static_cast<int64_t>(cu_seqlens.size()) - 1;
    in.cu_seqlens = cu.view(sequences + 1), in.longest = p.l;
  }
  if (!p.h0.empty()) in.H0 = h0.view(sequences, p.h, p.k, p.v);
  auto o = Buffer<float>::allocate(host(), p.value.size()).value_or_throw();
  auto ht = Buffer<float>::allocate(host(), static_cast<size_t>(sequences * p.h * p.k * p.v)).value_or_throw();
  auto space = GlaChunkWorkspace<float>::create(host(), in.sizes(), plan).value_or_throw();
  Status done =
      gla_forward<float>(stream(), in, o.view(p.b, p.h, p.l, p.v), ht.view(sequences, p.h, p.k, p.v), space, plan);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
  return {o.to_host().value_or_throw(), ht.to_host().value_or_throw()};
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, float tolerance, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::fabs(b[i]))) << what << " " << i;
}

/// Rows [first, first + count) of every head.
std::vector<float> rows(const std::vector<float>& x, int64_t heads, int64_t length, int64_t first, int64_t count) {
  std::vector<float> part;
  auto width = static_cast<int64_t>(x.size()) / (heads * length);
  for (int64_t i = 0; i < heads; ++i)
    part.insert(part.end(), x.begin() + (i * length + first) * width, x.begin() + (i * length + first + count) * width);
  return part;
}
Problem cut(const Problem& p, int64_t first, int64_t count) {
  Problem part = p;
  part.l = count;
  int64_t heads = p.b * p.h;
  part.q = rows(p.q, heads, p.l, first, count), part.key = rows(p.key, heads, p.l, first, count);
  part.value = rows(p.value, heads, p.l, first, count), part.g = rows(p.g, heads, p.l, first, count);
  return part;
}

GlaPlan with_chunks(GlaPlan plan, int bt) {
  plan.prepare.BT = plan.pass.BT = plan.output.BT = bt;
  if (plan.states == GlaStates::by_row) plan.states = GlaStates::on_chip, plan.output.segment = 0;
  return plan;
}

TEST(GlaS3_03, WithoutDecayItIsLinearAttention) {
  Problem p(1, 2, 75, 24, 16);
  std::fill(p.g.begin(), p.g.end(), 0.f);
  Outcome gla = forward(p, p.plan());
  auto q = upload(p.q), k = upload(p.key), v = upload(p.value);
  auto o = Buffer<float>::allocate(host(), p.value.size()).value_or_throw();
  LinearAttentionConfig c = default_linear_attention_config(f32, p.k, p.v, Machine::of(stream()));
  Status done = linear_attention<float>(stream(), q.view(1, 2, 75, 24), k.view(1, 2, 75, 24), v.view(1, 2, 75, 16),
                                        o.view(1, 2, 75, 16), {}, {}, {}, {}, p.scale, c);
  ASSERT_TRUE(done.ok()) << done.error().to_string();
  expect_near(gla.o, o.to_host().value_or_throw(), 1e-5f, "O");
}

TEST(GlaS3_04, ChunkLengthDoesNotMatter) {
  Problem p(1, 1, 200, 32, 16);
  Outcome first = forward(p, with_chunks(p.plan(), 16));
  for (int bt : {32, 64, 128}) expect_near(forward(p, with_chunks(p.plan(), bt)).o, first.o, 1e-5f, "O");
}

TEST(GlaS3_05, TheFourWaysToTheStatesAgree) {
  Problem p(2, 1, 150, 32, 40);
  p.h0 = normal(2 * 32 * 40, 5);
  GlaPlan plan = p.plan();
  plan.states = GlaStates::on_chip, plan.output.segment = 0;
  Outcome on_chip = forward(p, plan);
  for (int segment : {1, 2, 5}) {
    plan.states = GlaStates::segments, plan.output.segment = segment;
    Outcome cut = forward(p, plan);
    expect_near(cut.o, on_chip.o, 1e-5f, "O");
    expect_near(cut.state, on_chip.state, 1e-5f, "HT");
  }
  plan.states = GlaStates::in_memory, plan.output.segment = 0;
  Outcome in_memory = forward(p, plan);
  expect_near(in_memory.o, on_chip.o, 1e-5f, "O");
  expect_near(in_memory.state, on_chip.state, 1e-5f, "HT");
  plan.states = GlaStates::by_row;
  plan.recurrence = default_gla_recurrent_config(p.k, p.v, Machine::of(stream()));
  Outcome by_row = forward(p, plan);
  expect_near(by_row.o, on_chip.o, 1e-5f, "O");
  expect_near(by_row.state, on_chip.state, 1e-5f, "HT");
}

TEST(GlaS3_05, HostsWalkRowByRowWhereEveryThreadHasAHead) {
  Machine machine = Machine::of(stream());
  machine.multiprocessors = 4;
  EXPECT_EQ(gla_plan(f32, {1, 4, 100, 64, 64, 1, 100}, machine).states, GlaStates::by_row);
  EXPECT_NE(gla_plan(f32, {1, 3, 100, 64, 64, 1, 100}, machine).states, GlaStates::by_row);
  EXPECT_EQ(gla_plan(f32, {1, 4, 100, 320, 64, 1, 100}, machine).states, GlaStates::in_memory);
}

TEST(GlaS3_05, TheFinalStateOfOneHalfStartsTheOther) {
  Problem p(1, 2, 101, 16, 16);
  Outcome whole = forward(p, p.plan());
  Problem first = cut(p, 0, 60), second = cut(p, 60, 41);
  Outcome head = forward(first, p.plan());
  second.h0 = head.state;
  Outcome tail = forward(second, p.plan());
  expect_near(head.o, rows(whole.o, 2, 101, 0, 60), 1e-5f, "first rows");
  expect_near(tail.o, rows(whole.o, 2, 101, 60, 41), 1e-5f, "last rows");
  expect_near(tail.state, whole.state, 1e-5f, "HT");
}

TEST(GlaS3_05, PackedSequencesAreSeparateRunsAndEmptyOnesKeepTheirState) {
  Problem p(1, 2, 90, 16, 32);
  std::vector<int32_t> at{0, 0, 17, 17, 81, 90};
  p.h0 = normal(5 * 2 * 16 * 32, 5);
  GlaSizes sizes{1, p.h, p.l, p.k, p.v, 5, p.l, true};
  Outcome packed = forward(p, gla_plan(f32, sizes, Machine::of(stream())), at);
  for (size_t n = 0; n + 1 < at.size(); ++n) {
    std::vector<float> start(p.h0.begin() + static_cast<int64_t>(n) * 1024,
                             p.h0.begin() + static_cast<int64_t>(n + 1) * 1024);
    std::vector<float> end(packed.state.begin() + static_cast<int64_t>(n) * 1024,
                           packed.state.begin() + static_cast<int64_t>(n + 1) * 1024);
    int64_t count = at[n + 1] - at[n];
    if (count == 0) {
      EXPECT_EQ(start, end) << n;
      continue;
    }
    Problem alone = cut(p, at[n], count);
    alone.h0 = start;
    Outcome run = forward(alone, p.plan());
    expect_near(rows(packed.o, 2, 90, at[n], count), run.o, 1e-5f, "O");
    expect_near(end, run.state, 1e-5f, "HT");
  }
}

TEST(GlaS3_06, TheLastRowCounts) {
  Problem p(1, 1, 33, 16, 16);
  Outcome before = forward(p, p.plan());
  for (int64_t i = 32 * 16; i < 33 * 16; ++i) p.key[static_cast<size_t>(i)] += 1;
  Outcome after = forward(p, p.plan());
  expect_near(rows(after.o, 1, 33, 0, 32), rows(before.o, 1, 33, 0, 32), 0.f, "earlier rows");
  float change = 0;
  for (int64_t i = 32 * 16; i < 33 * 16; ++i)
    change = std::max(change, std::fabs(after.o[static_cast<size_t>(i)] - before.o[static_cast<size_t>(i)]));
  EXPECT_GT(change, 1e-3f);
}

// O = ((Q o B) (K / B)^T o M) V as it is written in the paper, in one tile.
void factored_program(Tensor<const float, 2> Q, Tensor<const float, 2> K, Tensor<const float, 2> V,
                      Tensor<const float, 2> G, Tensor<float, 2> O, F32 scale) {
  auto b = exp(cumsum(G.load({0, 0}, {64, 16}), axis(0)));
  auto scores = dot(Q.load({0, 0}, {64, 16}) * b, trans(K.load({0, 0}, {64, 16}) / b)) * scale;
  auto causal = arange(0, 64).row() <= arange(0, 64).col();
  O.store({0, 0}, dot(where(causal, scores, 0.f), V.load({0, 0}, {64, 16})));
}

TEST(GlaS3_07, TheFactoredParallelFormOverflowsAndOursDoesNot) {
  const auto factored = kernel("gla_factored_parallel_form", factored_program);
  for (float gates : {0.1f, 4.f}) {
    Problem p(1, 1, 64, 16, 16, gates);
    auto q = upload(p.q), k = upload(p.key), v = upload(p.value), g = upload(p.g);
    auto o = Buffer<float>::allocate(host(), 64 * 16).value_or_throw();
    factored.launch(stream(), {}, Grid{1}, q.view(64, 16), k.view(64, 16), v.view(64, 16), g.view(64, 16),
                    o.view(64, 16), p.scale);
    std::vector<float> unsafe = o.to_host().value_or_throw();
    bool finite = std::all_of(unsafe.begin(), unsafe.end(), [](float x) { return std::isfinite(x); });
    EXPECT_EQ(finite, gates < 1) << "sums of the gates reach " << gates * 64 * 0.8f;

    GlaPlan plan = with_chunks(p.plan(), 16);
    plan.output.segment = 0, plan.states = GlaStates::on_chip;
    auto space = GlaChunkWorkspace<float>::create(host(), p.sizes(), plan).value_or_throw();
    GlaInputs<float> in{q.view(1, 1, 64, 16), k.view(1, 1, 64, 16), v.view(1, 1, 64, 16), g.view(1, 1, 64, 16),
                        p.scale};
    Status done = gla_parallel<float>(stream(), in, o.view(1, 1, 64, 16), space, plan);
    ASSERT_TRUE(done.ok()) << done.error().to_string();
    std::vector<float> safe = o.to_host().value_or_throw();
    expect_near(safe, forward(p, p.plan()).o, 1e-5f, "O");
    if (gates < 1) expect_near(unsafe, safe, 1e-4f, "factored O");

    plan.states = GlaStates::fused;  // whose workspace has no chunks
    auto none = GlaChunkWorkspace<float>::create(host(), p.sizes(), plan).value_or_throw();
    Status refused = gla_parallel<float>(stream(), in, o.view(1, 1, 64, 16), none, plan);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().to_string().find("gla_prepared_plan"), std::string::npos);
  }
}

TEST(GlaS3_07, GatesOfMinusInfinityForgetEverything) {
  Problem p(1, 1, 40, 16, 16);
  std::fill(p.g.begin(), p.g.end(), -INFINITY);
  Outcome run = forward(p, p.plan());
  for (int64_t t = 0; t < 40; ++t) {
    double score = 0;
    for (int64_t c = 0; c < 16; ++c)
      score += static_cast<double>(p.q[static_cast<size_t>(t * 16 + c)]) * p.key[static_cast<size_t>(t * 16 + c)];
    for (int64_t d = 0; d < 16; ++d) {
      auto i = static_cast<size_t>(t * 16 + d);
      EXPECT_NEAR(run.o[i], p.scale * score * p.value[i], 1e-5) << t;
    }
  }
}

TEST(GlaS3_09, WidestChannels) {
  Problem p(1, 1, 19, 2048, 2048);
  p.scale = 1.f / std::sqrt(2048.f);
  Outcome run = forward(p, p.plan());
  reference::Matrix q(p.l, p.k), k(p.l, p.k), v(p.l, p.v), g(p.l, p.k);
  std::copy(p.q.begin(), p.q.end(), q.values.begin()), std::copy(p.key.begin(), p.key.end(), k.values.begin());
  std::copy(p.value.begin(), p.value.end(), v.values.begin()), std::copy(p.g.begin(), p.g.end(), g.values.begin());
  // Few rows: the parallel form is the short way to the exact result.
  reference::Matrix exact = gla_parallel(q, k, v, g, p.scale, false, reference::Arithmetic::exact());
  for (size_t i = 0; i < run.o.size(); ++i) ASSERT_NEAR(run.o[i], exact.values[i], 2e-5) << i;
}

TEST(GlaS3_15, DecodingContinuesTheForwardPass) {
  // The state is updated in place. Where its blocks lie as tiles do (64 values), hosts read them where they are.
  for (auto [channels, values] : {std::pair<int64_t, int64_t>{24, 40}, {64, 64}}) {
    Problem p(1, 2, 30, channels, values);
    Outcome whole = forward(p, p.plan());
    Outcome prompt = forward(cut(p, 0, 25), p.plan());
    auto state = upload(prompt.state), o = Buffer<float>::allocate(host(), 2 * values).value_or_throw();
    const TensorView<float, 4> in_place = state.view(1, 2, channels, values);
    for (int64_t t = 25; t < 30; ++t) {
      Problem token = cut(p, t, 1);
      auto q = upload(token.q), k = upload(token.key), v = upload(token.value), g = upload(token.g);
      Status done = gla_decode<float>(stream(), q.view(1, 2, channels), k.view(1, 2, channels), v.view(1, 2, values),
                                      g.view(1, 2, channels), in_place, in_place, o.view(1, 2, values), p.scale);
      ASSERT_TRUE(done.ok()) << done.error().to_string();
      expect_near(o.to_host().value_or_throw(), rows(whole.o, 2, 30, t, 1), 1e-5f, "token");
    }
    expect_near(state.to_host().value_or_throw(), whole.state, 1e-5f, "state");
  }
}

TEST(GlaS3_16, GradientsAreFiniteWhateverTheGates) {
  for (float gate : {0.f, -20.f, -1e4f, -INFINITY}) {
    Problem p(1, 1, 70, 16, 16);
    std::fill(p.g.begin(), p.g.end(), gate);
    auto q = upload(p.q), k = upload(p.key), v = upload(p.value), g = upload(p.g), d_o = upload(p.value);
    auto make = [&] { return Buffer<float>::from(host(), std::span<const float>(p.q)).value_or_throw(); };
    auto dq = make(), dk = make(), dv = make(), dg = make();
    auto view = [](auto& x) { return x.view(1, 1, 70, 16); };
    GlaInputs<float> in{view(q), view(k), view(v), view(g), p.scale};
    GlaBackwardPlan plan = gla_backward_plan(f32, p.sizes(), Machine::of(stream()));
    auto space = GlaBackwardWorkspace<float>::create(host(), p.sizes(), plan).value_or_throw();
    Status done = gla_backward<float>(stream(), in, view(d_o), {},
                                      GlaGradients<float>{view(dq), view(dk), view(dv), view(dg)}, space, plan);
    ASSERT_TRUE(done.ok()) << done.error().to_string();
    for (auto* x : {&dq, &dk, &dv, &dg})
      for (float value : x->to_host().value_or_throw()) ASSERT_TRUE(std::isfinite(value)) << gate;
  }
}

TEST(GlaWrappers, SayWhatIsWrong) {
  Problem p(1, 1, 20, 16, 16);
  auto x = upload(p.q);
  auto view = x.view(1, 1, 20, 16);
  GlaInputs<float> in{view, view, view, view, 1.f};
  GlaPlan plan = p.plan();
  auto space = GlaChunkWorkspace<float>::create(host(), p.sizes(), plan).value_or_throw();
  auto refused = [&](const GlaInputs<float>& inputs, const GlaPlan& with, const char* words) {
    Status s = gla_forward<float>(stream(), inputs, view, {}, space, with);
    ASSERT_FALSE(s.ok()) << words;
    EXPECT_EQ(s.error().kind, ErrorKind::user);
    EXPECT_NE(s.error().message.find(words), std::string::npos) << s.error().message;
  };
  GlaInputs<float> bad = in;
  bad.K = x.view(1, 1, 16, 20);
  refused(bad, plan, "K must have shape [B, H, L, K] = [1, 1, 20, 16], found [1, 1, 16, 20]");
  bad = in, bad.H0 = view;
  refused(bad, plan, "H0 must have shape [sequences, H, K, V] = [1, 1, 16, 16]");
  GlaPlan narrow = plan;
  narrow.output.BK = 8;
  refused(in, narrow, "a state on chip holds all of K: BK = 8 is less than K = 16");
  GlaPlan packed = plan;
  packed.output.varlen = true;
  refused(in, packed, "made for packed sequences");
  GlaPlan mixed = plan;
  mixed.output.BT = 2 * plan.prepare.BT;
  refused(in, mixed, "one BT");
  LinearAttentionConfig c;
  c.BK = 8;
  Status s = linear_attention<float>(stream(), view, view, view, view, {}, {}, {}, {}, 1.f, c);
  ASSERT_FALSE(s.ok());
  EXPECT_NE(s.error().message.find("BK = 8 is less than K = 16"), std::string::npos) << s.error().message;
}

}  // namespace
}  // namespace tile::kernels
