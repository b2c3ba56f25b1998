// Attention beyond single catalog problems: callables on scores, properties that relate several launches, memory
// proportional to the length, the published first version. Names carry the ids of the project's checklist.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/attention.h"
#include "kernels/attention_backward.h"
#include "kernels/attention_tiled_v1.h"
#include "kernels/catalog.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/compare.h"

namespace tile::kernels {
namespace {

using reference::Arithmetic;
using reference::AttentionSpec;
using reference::HostTensor;

std::shared_ptr<Device> host() { return open_device("host").value_or_throw(); }

/// A dense f32 tensor on the host device, with the same values for the reference.
struct Data {
  HostTensor values;
  Buffer<float> buffer;
  Data(reference::Dims shape, uint64_t seed, double scale = 1) : values(DType::f32, std::move(shape)) {
    values.fill_normal(seed, scale);
    std::vector<float> flat;
    reference::for_each_index(values.shape(), [&](auto at) { flat.push_back(static_cast<float>(values.at(at))); });
    buffer = Buffer<float>::from(host(), std::span<const float>(flat)).value_or_throw();
  }
  template <int R>
  TensorView<float, R> view() const {
    std::array<int64_t, R> shape;
    std::copy_n(values.shape().begin(), R, shape.begin());
    return TensorView<float, R>(buffer.data(), shape);
  }
  std::vector<float> result() const { return buffer.to_host().value_or_throw(); }
};

/// Inputs, outputs and gradients of one problem in f32.
struct Attention {
  int64_t b, hq, hkv, sq, sk, d;
  Data q, k, v, d_o, o, lse, dq, dk, dv;
  Buffer<float> workspace;
  float scale;

  Attention(int64_t b, int64_t hq, int64_t hkv, int64_t sq, int64_t sk, int64_t d)
      : b(b),
        hq(hq),
        hkv(hkv),
        sq(sq),
        sk(sk),
        d(d),
        q({b, hq, sq, d}, 1),
        k({b, hkv, sk, d}, 2),
        v({b, hkv, sk, d}, 3),
        d_o({b, hq, sq, d}, 4),
        o({b, hq, sq, d}, 5),
        lse({b, hq, sq}, 6),
        dq({b, hq, sq, d}, 7),
        dk({b, hkv, sk, d}, 8),
        dv({b, hkv, sk, d}, 9),
        workspace(Buffer<float>::allocate(host(), attention_backward_workspace(b, hq, sq, d, false)).value_or_throw()),
        scale(1 / std::sqrt(static_cast<float>(d))) {}

  template <class K>
  void forward(const K& kernel, AttentionOptions<> options) {
    options.scale = scale;
    run(run_attention(kernel, stream(), const_view(q), const_view(k), const_view(v), o.view<4>(), lse.view<3>(),
                      options, default_attention_config(DType::f32, sq, d, d, false, scale, Machine{})));
  }
  void forward(const AttentionOptions<>& options) { forward(attention_kernel<float>(), options); }
  template <class K>
  void backward(const K& kernels, AttentionOptions<> options, bool deterministic) {
    options.scale = scale;
    run(run_attention_backward(
        kernels, stream(), const_view(q), const_view(k), const_view(v), const_view(o), const_view(d_o),
        TensorView<const float, 3>(lse.view<3>()), dq.view<4>(), dk.view<4>(), dv.view<4>(),
        workspace.view(workspace.size()), options,
        default_attention_backward_config(DType::f32, sq, sk, d, d, false, true, deterministic, Machine{})));
  }
  void backward(const AttentionOptions<>& options, bool deterministic) {
    backward(attention_backward_kernels<float>(), options, deterministic);
  }

  /// Everything against the reference, all heads.
  void expect_forward(AttentionSpec spec) const {
    spec.scale = scale;
    std::vector<double> exact, base, found_o, exact_lse, found_lse;
    auto values = o.result(), lses = lse.result();
    std::vector<int64_t> rows(sq);
    std::iota(rows.begin(), rows.end(), 0);
    for (int64_t n = 0; n < b; ++n)
      for (int64_t h = 0; h < hq; ++h) {
        auto e = attention_rows(spec, q.values, k.values, v.values, n, h, rows, Arithmetic::exact());
        auto w = attention_rows(spec, q.values, k.values, v.values, n, h, rows, Arithmetic::working(DType::f32));
        for (int64_t i = 0; i < sq; ++i) {
          exact.insert(exact.end(), e[i].o.begin(), e[i].o.end()),
              base.insert(base.end(), w[i].o.begin(), w[i].o.end());
          exact_lse.push_back(e[i].lse);
        }
      }
    found_o.assign(values.begin(), values.end()), found_lse.assign(lses.begin(), lses.end());
    expect("O", found_o, exact, base);
    auto c = reference::compare_absolute(found_lse, exact_lse, 1e-4);
    EXPECT_TRUE(c.pass) << "LSE: " << c.why;
  }
  void expect_backward(AttentionSpec spec) const {
    spec.scale = scale;
    std::vector<double> q_exact, q_base, k_exact, k_base, v_exact, v_base;
    std::vector<int64_t> rows(sq), keys(sk);
    std::iota(rows.begin(), rows.end(), 0), std::iota(keys.begin(), keys.end(), 0);
    auto append = [](std::vector<double>& to, const std::vector<std::vector<double>>& from) {
      for (const auto& row : from) to.insert(to.end(), row.begin(), row.end());
    };
    for (Arithmetic how : {Arithmetic::exact(), Arithmetic::working(DType::f32)}) {
      const bool exact = !how.single;
      for (int64_t n = 0; n < b; ++n)
        for (int64_t h = 0; h < hkv; ++h) {
          std::vector<reference::AttentionStats> stats;
          for (int64_t g = 0; g < hq / hkv; ++g) {
            const int64_t head = h * (hq / hkv) + g;
            stats.push_back(attention_stats(spec, q.values, k.values, v.values, d_o.values, n, head, how));
            append(exact ? q_exact : q_base, attention_query_gradients(spec, q.values, k.values, v.values, d_o.values,
                                                                       n, head, rows, stats.back(), how));
          }
          auto grads = attention_key_gradients(spec, q.values, k.values, v.values, d_o.values, n, h, keys, stats, how);
          append(exact ? k_exact : k_base, grads.dk), append(exact ? v_exact : v_base, grads.dv);
        }
    }
    auto found = [](const Data& x) {
      auto r = x.result();
      return std::vector<double>(r.begin(), r.end());
    };
    expect("dQ", found(dq), q_exact, q_base), expect("dK", found(dk), k_exact, k_base);
    expect("dV", found(dv), v_exact, v_base);
  }

 private:
  static TensorView<const float, 4> const_view(const Data& x) { return x.view<4>(); }
  static Stream& stream() { return host()->default_stream(); }
  static void run(const Status& launched) {
    ASSERT_TRUE(launched.ok()) << launched.error().to_string();
    stream().synchronize().value_or_throw();
  }
  void expect(const char* what, const std::vector<double>& found, const std::vector<double>& exact,
              const std::vector<double>& base) const {
    auto c = reference::compare(found, exact, base, reference::tolerance(DType::f32, std::max(sq, sk)));
    EXPECT_TRUE(c.pass) << what << ": " << c.why;
  }
};

// ---- callables

/// t^3 / 16 + a term of positions; and a mask of two diagonals out of three.
struct CubeMod {
  Tile operator()(const Tile& t, const Tile& b, const Tile& h, const Tile& i, const Tile& j) const {
    return fma(t * t * t, 0.0625f, cast((i - j) % 5, f32) * 0.1f + cast(h, f32) * 0.5f);
  }
};
struct CubeGradient {
  Tile operator()(const Tile& t, const Tile&, const Tile&, const Tile&, const Tile&) const { return t * t * 0.1875f; }
};
struct StripeMask {
  Tile operator()(const Tile& b, const Tile& h, const Tile& i, const Tile& j) const { return (i + j * 2 + h) % 3 != 1; }
};
AttentionSpec cube_spec() {
  AttentionSpec spec;
  spec.score_mod = [](double t, int64_t, int64_t h, int64_t i, int64_t j) {
    return t * t * t / 16 + static_cast<double>((i - j) % 5) * 0.1 + static_cast<double>(h) * 0.5;
  };
  spec.score_gradient = [](double t, int64_t, int64_t, int64_t, int64_t) { return t * t * 0.1875; };
  spec.mask_mod = [](int64_t, int64_t h, int64_t i, int64_t j) { return (i + j * 2 + h) % 3 != 1; };
  return spec;
}

TEST(AttentionCallables, ScoreAndMaskModsForward) {
  const auto kernel = make_attention_kernel<float>("attention_cube", CubeMod{}, StripeMask{});
  for (bool causal : {false, true}) {
    Attention a(1, 2, 1, 70, 100, 16);
    AttentionOptions<> o;
    o.causal = causal;
    a.forward(kernel, o);
    AttentionSpec spec = cube_spec();
    spec.causal = causal;
    a.expect_forward(spec);
  }
}

TEST(AttentionCallables, ScoreAndMaskModsBackward) {
  const auto forward = make_attention_kernel<float>("attention_cube", CubeMod{}, StripeMask{});
  const auto kernels =
      make_attention_backward_kernels<float>("attention_cube_backward", CubeMod{}, CubeGradient{}, StripeMask{});
  for (bool deterministic : {false, true}) {
    Attention a(1, 2, 1, 70, 100, 16);
    AttentionOptions<> o;
    o.causal = deterministic;
    AttentionSpec spec = cube_spec();
    spec.causal = deterministic;
    a.forward(forward, o);
    a.backward(kernels, o, deterministic);
    a.expect_backward(spec);
  }
}

TEST(AttentionCallables, MaskModMayHideWholeRowsAndBlocks) {  // E12
  const auto kernel = make_attention_kernel<float>(
      "attention_hole", NoScoreMod{},
      [](const Tile&, const Tile&, const Tile& i, const Tile& j) { return ((j < 64) | (j >= 128)) & (i % 10 != 7); });
  Attention a(1, 1, 1, 80, 200, 16);
  a.forward(kernel, {});
  AttentionSpec spec;
  spec.mask_mod = [](int64_t, int64_t, int64_t i, int64_t j) { return (j < 64 || j >= 128) && i % 10 != 7; };
  a.expect_forward(spec);
}

/// A mask said with a callable, a window, or a tensor is one and the same mask.
TEST(AttentionCallables, E17_HiddenValuesMayBeAnything) {
  // Key 30 is hidden from everybody, key 75 from the queries before it, which share blocks with those that see it.
  auto hides = [](const Tile&, const Tile&, const Tile&, const Tile& j) { return j != 30; };
  const auto kernel = make_attention_kernel<float>("attention_without_a_key", NoScoreMod{}, hides, true);
  AttentionOptions<> options;
  options.causal = options.guard_values = true;
  AttentionSpec spec;
  spec.causal = true;
  for (bool visible : {false, true}) {
    Attention a(1, 2, 1, 150, 150, 16);
    auto set = [&](int64_t key, int64_t channel, float x) {
      a.v.values.set({0, 0, key, channel}, x), a.v.buffer.data()[key * 16 + channel] = x;
    };
    if (visible) {
      set(75, 3, NAN);
      a.forward(guarded_attention_kernel<float>(), options);
    } else {
      set(30, 0, NAN), set(30, 5, INFINITY), set(30, 6, -INFINITY);
      spec.mask_mod = [](int64_t, int64_t, int64_t, int64_t j) { return j != 30; };
      a.forward(kernel, options);
      for (float x : a.o.result()) ASSERT_TRUE(std::isfinite(x));
    }
    a.expect_forward(spec);
    spec.mask_mod = {};
  }
}

TEST(AttentionCallables, P8_WindowEqualsMaskMod) {
  const auto kernel = make_attention_kernel<float>(
      "attention_window_mod", NoScoreMod{},
      [](const Tile&, const Tile&, const Tile& i, const Tile& j) { return (j <= i + 30 + 5) & (j >= i + 30 - 20); });
  Attention a(1, 1, 1, 90, 120, 32), b(1, 1, 1, 90, 120, 32);
  AttentionOptions<> window;
  window.left = 20, window.right = 5;
  a.forward(window);
  b.forward(kernel, {});
  auto x = a.o.result(), y = b.o.result();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-6) << i;
}

// ---- relations between launches

TEST(AttentionProperties, P8_WindowAsWideAsTheKeysIsNoWindow) {
  Attention a(1, 2, 2, 130, 150, 32), b(1, 2, 2, 130, 150, 32);
  AttentionOptions<> wide;
  wide.left = wide.right = 1 << 30;
  a.forward({}), b.forward(wide);
  auto x = a.o.result(), y = b.o.result();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-6) << i;
}

/// One loop that always masks gives what three loops give: the compiler may split where the kernel does not.
TEST(AttentionProperties, OneLoopEqualsSplitLoops) {
  Attention a(1, 2, 1, 150, 170, 32), b(1, 2, 1, 150, 170, 32);
  for (bool split : {true, false}) {
    Attention& x = split ? a : b;
    AttentionOptions<> o;
    o.scale = x.scale, o.causal = true, o.left = 70;
    AttentionConfig c = default_attention_config(DType::f32, 150, 32, 32, true, x.scale, Machine{});
    c.split = split;
    attention_forward<float>(host()->default_stream(), x.q.view<4>(), x.k.view<4>(), x.v.view<4>(), x.o.view<4>(),
                             x.lse.view<3>(), o, c)
        .value_or_throw();
    AttentionBackwardConfig g =
        default_attention_backward_config(DType::f32, 150, 170, 32, 32, true, true, true, Machine{});
    g.keys.split = g.queries.split = split;
    attention_backward<float>(host()->default_stream(), x.q.view<4>(), x.k.view<4>(), x.v.view<4>(), x.o.view<4>(),
                              x.d_o.view<4>(), x.lse.view<3>(), x.dq.view<4>(), x.dk.view<4>(), x.dv.view<4>(),
                              x.workspace.view(x.workspace.size()), o, g)
        .value_or_throw();
    host()->default_stream().synchronize().value_or_throw();
  }
  EXPECT_EQ(a.o.result(), b.o.result());
  EXPECT_EQ(a.lse.result(), b.lse.result());
  EXPECT_EQ(a.dq.result(), b.dq.result());
  EXPECT_EQ(a.dk.result(), b.dk.result());
  EXPECT_EQ(a.dv.result(), b.dv.result());
}

/// Packed sequences give bit for bit what each sequence gives alone.
TEST(AttentionProperties, P8_PackedSequencesEqualSeparateRuns) {
  const std::vector<int32_t> cu = {0, 70, 70, 135, 200};
  const int64_t d = 32;
  Attention packed(1, 2, 1, 200, 200, d);
  auto starts = Buffer<int32_t>::from(host(), std::span<const int32_t>(cu)).value_or_throw();
  AttentionOptions<> o;
  o.causal = true;
  o.cu_q = o.cu_k = TensorView<const int32_t, 1>(starts.data(), {5});
  o.max_sq = o.max_sk = 70;
  packed.forward(o);
  packed.backward(o, true);
  const auto p_o = packed.o.result(), p_dq = packed.dq.result(), p_dk = packed.dk.result();
  for (size_t s = 0; s + 1 < cu.size(); ++s) {
    const int64_t first = cu[s], n = cu[s + 1] - first;
    if (n == 0) continue;
    auto part = [&](const Data& x) { return x.view<4>().sliced(2, first, first + n); };
    Attention one(1, 2, 1, n, n, d);
    AttentionOptions<> alone;
    alone.causal = true, alone.scale = packed.scale;
    Stream& stream = host()->default_stream();
    attention_forward<float>(stream, part(packed.q), part(packed.k), part(packed.v), one.o.view<4>(), one.lse.view<3>(),
                             alone)
        .value_or_throw();
    attention_backward<float>(stream, part(packed.q), part(packed.k), part(packed.v), one.o.view<4>(), part(packed.d_o),
                              one.lse.view<3>(), one.dq.view<4>(), one.dk.view<4>(), one.dv.view<4>(),
                              one.workspace.view(one.workspace.size()), alone, true)
        .value_or_throw();
    stream.synchronize().value_or_throw();
    const auto s_o = one.o.result(), s_dq = one.dq.result(), s_dk = one.dk.result();
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t c = 0; c < d; ++c) {
          ASSERT_EQ(p_o[(h * 200 + first + i) * d + c], s_o[(h * n + i) * d + c]) << s << " " << h << " " << i;
          ASSERT_EQ(p_dq[(h * 200 + first + i) * d + c], s_dq[(h * n + i) * d + c]) << s << " " << h << " " << i;
          ASSERT_EQ(p_dk[(first + i) * d + c], s_dk[i * d + c]) << s << " " << i;
        }
  }
}

TEST(AttentionProperties, P6_DeterministicBackwardRepeatsBitForBit) {
  Attention a(1, 4, 2, 150, 150, 32);
  AttentionOptions<> o;
  o.causal = true;
  a.forward(o);
  a.backward(o, true);
  const auto dq = a.dq.result(), dk = a.dk.result(), dv = a.dv.result();
  for (int i = 0; i < 20; ++i) {
    a.backward(o, true);
    ASSERT_EQ(a.dq.result(), dq);
    ASSERT_EQ(a.dk.result(), dk);
    ASSERT_EQ(a.dv.result(), dv);
  }
  // The fast variant adds the same terms in another order.
  a.backward(o, false);
  const auto fast = a.dq.result();
  for (size_t i = 0; i < fast.size(); ++i) ASSERT_NEAR(fast[i], dq[i], 1e-5) << i;
}

TEST(AttentionProperties, KeysPastTheEndAddNothingWhereScoresAreVeryLow) {
  // e^{0 - LSE} of a key that is not there would be infinite, and infinity times 0 is not a number.
  Attention a(1, 1, 1, 70, 70, 16), b(1, 1, 1, 70, 70, 16);
  Data bias({1, 1, 70, 70}, 1);
  bias.buffer.fill(host()->default_stream(), -300.f).value_or_throw();
  AttentionOptions<> low;
  low.bias = TensorView<const float, 4>(bias.view<4>());
  for (bool deterministic : {false, true}) {
    a.forward(low), a.backward(low, deterministic);
    b.forward({}), b.backward({}, deterministic);  // a constant added to every score changes no gradient
    const auto x = a.dq.result(), y = b.dq.result(), dk = a.dk.result(), dk_plain = b.dk.result();
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-4) << i;
    for (size_t i = 0; i < dk.size(); ++i) ASSERT_NEAR(dk[i], dk_plain[i], 1e-4) << i;
  }
}

TEST(AttentionProperties, S1_6_DeltaIsTheProductOfOutputAndItsGradient) {
  // sum_j P_ij dP_ij = dO_i . O_i: the gradient of a row of scores sums to 0, so dQ does not change when the same
  // vector is added to every key.
  Attention a(1, 1, 1, 40, 60, 16);
  a.forward({}), a.backward({}, true);
  const auto before = a.dq.result();
  std::vector<float> keys = a.k.result();
  for (size_t i = 0; i < keys.size(); ++i) keys[i] += 0.5f * static_cast<float>(i % 16);
  a.k.buffer.copy_from(std::span<const float>(keys)).value_or_throw();
  a.forward({}), a.backward({}, true);
  const auto after = a.dq.result();
  for (size_t i = 0; i < after.size(); ++i) ASSERT_NEAR(after[i], before[i], 2e-5) << i;
}

// ---- lengths

TEST(AttentionMemory, S0_7_S4_9_LongContextsNeedMemoryInProportion) {
  for (int64_t s : {32768, 65536, 100000})
    for (bool deterministic : {false, true}) {
      const int64_t floats = attention_backward_workspace(1, 1, s, 128, deterministic);
      EXPECT_EQ(floats, s * attention_backward_workspace(1, 1, 1, 128, deterministic));
      EXPECT_LE(floats, s * (2 + 128));
    }
  // A workspace of exactly that size is enough, and one float less is refused.
  Attention a(1, 1, 1, 300, 300, 16);
  a.forward({});
  for (bool deterministic : {false, true}) {
    const int64_t floats = attention_backward_workspace(1, 1, 300, 16, deterministic);
    auto exact = Buffer<float>::allocate(host(), floats).value_or_throw();
    auto launch = [&](int64_t size) {
      AttentionOptions<> o;
      o.scale = a.scale;
      Status s = attention_backward<float>(host()->default_stream(), a.q.view<4>(), a.k.view<4>(), a.v.view<4>(),
                                           a.o.view<4>(), a.d_o.view<4>(), a.lse.view<3>(), a.dq.view<4>(),
                                           a.dk.view<4>(), a.dv.view<4>(), exact.view(size), o, deterministic);
      host()->default_stream().synchronize().value_or_throw();
      return s;
    };
    EXPECT_TRUE(launch(floats).ok());
    const Status refused = launch(floats - 1);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find(fmt::format("{} floats", floats)), std::string::npos)
        << refused.error().message;
    a.expect_backward({});
  }
}

/// A whole long context would take minutes here; a window keeps the work small while every index is as large as it
/// gets.
TEST(AttentionMemory, S4_9_LongContextsThroughAWindow) {
  for (int64_t s : {32768, 65536, 100000}) {
    Attention a(1, 1, 1, s, s, 16);
    AttentionOptions<> o;
    o.causal = true, o.left = 15;
    a.forward(o);
    a.backward(o, true);
    AttentionSpec spec;
    spec.causal = true, spec.left = 15, spec.scale = a.scale;
    const std::vector<int64_t> rows = {0, 1, 16, s / 2, s - 1};
    const auto exact = attention_rows(spec, a.q.values, a.k.values, a.v.values, 0, 0, rows, Arithmetic::exact());
    const auto found = a.o.result();
    for (size_t r = 0; r < rows.size(); ++r)
      for (int64_t c = 0; c < 16; ++c) ASSERT_NEAR(found[rows[r] * 16 + c], exact[r].o[c], 1e-5) << s << " " << rows[r];
    const auto dv = a.dv.result();
    double sum = 0, d_o = 0;  // rows of P sum to 1: the columns of dV sum to those of dO
    for (float x : dv) sum += x;
    for (float x : a.d_o.result()) d_o += x;
    EXPECT_NEAR(sum, d_o, 1e-3 * std::sqrt(static_cast<double>(s)));
  }
}

// ---- the first published algorithm

TEST(AttentionV1, S0_6_S1_4_BlocksOfKeysOutsideAgreeWithTheReference) {
  for (auto [sq, sk, d] : std::initializer_list<std::tuple<int64_t, int64_t, int64_t>>{
           {64, 64, 32}, {113, 203, 32}, {203, 113, 16}, {1, 1, 16}, {5, 0, 16}, {130, 70, 59}})
    for (bool causal : {false, true})
      for (int64_t elements : {2048, 12288}) {
        Attention a(1, 2, 2, sq, sk, d);
        Data l({1, 2, sq}, 1), m({1, 2, sq}, 2);
        const AttentionV1Config c = attention_v1_config(elements, d, d, causal, Machine{});
        attention_v1<float>(host()->default_stream(), a.q.view<4>(), a.k.view<4>(), a.v.view<4>(), a.o.view<4>(),
                            l.view<3>(), m.view<3>(), a.scale, c)
            .value_or_throw();
        host()->default_stream().synchronize().value_or_throw();
        std::vector<float> lse = l.result();
        const std::vector<float> maxima = m.result();
        for (size_t i = 0; i < lse.size(); ++i) lse[i] = maxima[i] + std::log(lse[i]);
        if (!lse.empty()) a.lse.buffer.copy_from(std::span<const float>(lse)).value_or_throw();
        AttentionSpec spec;
        spec.causal = causal;
        SCOPED_TRACE(fmt::format("{} x {} x {} causal {} M {}", sq, sk, d, causal, elements));
        a.expect_forward(spec);
      }
}

TEST(AttentionV1, S0_6_BlockSizesOfThePaper) {
  const AttentionV1Config c = attention_v1_config(49152, 64, 64, false, Machine{});  // M / 4d = 192, at most 128 here
  EXPECT_EQ(c.BC, 128);
  EXPECT_EQ(c.BR, 64);  // min(BC, d)
}

/// Two blocks by hand, in double: the update that divides at every step and the one that divides at the end.
TEST(AttentionV1, S4_8_TwoBlocksByHand) {
  const double s[2] = {1.5, 3.0}, v[2] = {2.0, -1.0};
  const double m1 = s[0], l1 = 1, o1 = v[0];
  const double m2 = std::max(m1, s[1]), old = std::exp(m1 - m2), fresh = std::exp(s[1] - m2);
  const double l2 = old * l1 + fresh, divided = (l1 * old * o1 + fresh * v[1]) / l2;
  const double unscaled = o1 * old + fresh * v[1];
  const double expected = (std::exp(1.5) * 2 - std::exp(3.0)) / (std::exp(1.5) + std::exp(3.0));
  EXPECT_NEAR(divided, expected, 1e-15);
  EXPECT_NEAR(unscaled / l2, expected, 1e-15);
  // And by the kernels, a block of 16 keys each of which only one is visible.
  const auto one_key = make_attention_kernel<float>(
      "attention_two_blocks",
      [](const Tile&, const Tile&, const Tile&, const Tile& i, const Tile& j) {
        return cast(where(j < 64, 1.5f, 3.f), f32) + cast(i * 0, f32);
      },
      [](const Tile&, const Tile&, const Tile&, const Tile& j) { return j % 64 == 0; });
  Attention a(1, 1, 1, 16, 128, 16);
  std::vector<float> values(128 * 16, 0.f);
  std::fill_n(values.begin(), 16, 2.f), std::fill_n(values.begin() + 64 * 16, 16, -1.f);
  a.v.buffer.copy_from(std::span<const float>(values)).value_or_throw();
  a.forward(one_key, {});
  for (float x : a.o.result()) ASSERT_NEAR(x, expected, 1e-6);
  for (float x : a.lse.result()) ASSERT_NEAR(x, std::log(std::exp(1.5) + std::exp(3.0)), 1e-6);
}

// ---- what wrappers refuse

TEST(AttentionWrappers, MistakesAreNamed) {
  Attention a(1, 2, 2, 20, 20, 16);
  auto refused = [&](AttentionOptions<> o, const std::string& words) {
    Status s = attention_forward<float>(host()->default_stream(), a.q.view<4>(), a.k.view<4>(), a.v.view<4>(),
                                        a.o.view<4>(), a.lse.view<3>(), o);
    ASSERT_FALSE(s.ok()) << words;
    EXPECT_EQ(s.error().kind, ErrorKind::user);
    EXPECT_NE(s.error().message.find(words), std::string::npos) << s.error().message;
  };
  AttentionOptions<> o;
  o.causal = true, o.right = 3;
  refused(o, "causal is a window of 0 to the right, but right is 3");
  o = {}, o.softcap = -1;
  refused(o, "softcap must not be negative");
  for (float p : {-0.1f, 1.f}) o = {}, o.dropout = p, refused(o, "dropout must be at least 0 and below 1");
  o = {}, o.slopes = TensorView<const float, 2>(a.q.buffer.data(), {1, 3});
  refused(o, "slopes must have shape [B, Hq] = [1, 2], found [1, 3]");
  o = {}, o.bias = TensorView<const float, 4>(a.q.buffer.data(), {1, 1, 20, 19});
  refused(o, "bias must have shape [B, Hq, Sq, Sk] = [1, 2, 20, 20], found [1, 2, 20, 19]");
  o = {}, o.cu_q = TensorView<const int32_t, 1>(reinterpret_cast<const int32_t*>(a.q.buffer.data()), {3});
  refused(o, "cu_q and cu_k are to be given together");
  o.cu_k = o.cu_q;
  refused(o, "packed sequences need max_sq");
}

}  // namespace
}  // namespace tile::kernels
