// jagged_ports.cpp - sequences of many lengths that lie one behind the other: cut into a beginning and a rest (both
// jagged, or one dense), multiplied pair by pair, their rows mixed with the row before, the means of chunks.
#include "tests/users/use.h"
namespace users {
namespace jagged_ports {

/// Offsets of B sequences of up to `most` rows; the second and the last have none.
std::vector<int64_t> offsets_of(Env& e, int B, int most) {
  std::vector<int64_t> o(B + 1);
  for (int b = 0; b < B; ++b) o[b + 1] = o[b] + (b == 1 || b == B - 1 ? 0 : int64_t(e.uniform() * (most + 1)));
  return o;
}

// --- rows of a joint array to two arrays: a program a row, the dense side described by flags
struct CutCfg {
  int D = 128, BD = 128;
  bool dense_a = false;
};
auto split_jagged =
    kernel("user_split_jagged", [](const CutCfg& c, Ptr<const bfloat16> joint, Ptr<const int64_t> offsets,
                                   Ptr<const int64_t> offsets_b, I32 max_a, Ptr<bfloat16> a, Ptr<bfloat16> b) {
      auto z = program_id(1), n = program_id(0);
      auto begin = load(offsets + z);
      auto begin_b = load(offsets_b + z);
      auto length_b = load(offsets_b + z + 1) - begin_b;
      auto length = load(offsets + z + 1) - begin;
      auto length_a = c.dense_a ? cast(max_a, i64) : length - length_b;
      auto begin_a = c.dense_a ? cast(max_a, i64) * z : begin - begin_b;
      return_if(n >= length);
      auto d = arange(0, c.BD);
      auto v = load(joint + (begin + n) * c.D + d, {.mask = d < c.D});
      if_(
          n < length_a, [&] { store(a + (begin_a + n) * c.D + d, v, {.mask = d < c.D}); },
          [&] { store(b + (begin_b + n - length_a) * c.D + d, v, {.mask = d < c.D}); });
    });
Register r1("split_jagged", [](Env& e) {
  const bool big = e.big;
  const int B = big ? 512 : 6, D = big ? 256 : 20, most = big ? 1024 : 9, max_a = big ? 16 : 3;
  auto ob = offsets_of(e, B, most), oa = offsets_of(e, B, most);
  std::vector<int64_t> both(B + 1), dense(B + 1);
  int longest = 0;
  for (int b = 0; b <= B; ++b) both[b] = oa[b] + ob[b], dense[b] = ob[b] + int64_t(b) * max_a;
  for (int b = 0; b < B; ++b)
    longest = std::max(longest, int(std::max(both[b + 1] - both[b], dense[b + 1] - dense[b])));
  auto joint = random<bfloat16>(e, size_t(std::max(both[B], dense[B])) * D);
  auto O = repeated(e, B + 1, both), OD = repeated(e, B + 1, dense), OB = repeated(e, B + 1, ob);
  auto a = constant<bfloat16>(e, oa[B] * D, NAN), b = constant<bfloat16>(e, ob[B] * D, NAN);
  auto da = constant<bfloat16>(e, size_t(B) * max_a * D, NAN), db = constant<bfloat16>(e, ob[B] * D, NAN);
  const int BD = big ? 256 : 32;
  Job j;
  j.mbytes = 4e-6 * both[B] * D;
  auto launch = [&](CutCfg c, const int64_t* o, bfloat16* to_a, bfloat16* to_b) {
    j.add(split_jagged.grid([=](const CutCfg&, const auto&...) {
      return Grid{longest, B};
    }),
          c, joint.p, o, OB.p, max_a, to_a, to_b);
  };
  launch({D, BD, false}, O.p, a.p, b.p);
  launch({D, BD, true}, OD.p, da.p, db.p);
  j.check = [=] {
    for (int v = 0; v < 2; ++v) {
      std::vector<double> wa, wb;
      const auto& o = v ? dense : both;
      for (int z = 0; z < B; ++z) {
        const int64_t cut = o[z + 1] - (ob[z + 1] - ob[z]);
        for (int64_t i = o[z] * D; i < o[z + 1] * D; ++i) (i < cut * D ? wa : wb).push_back(joint[i]);
      }
      auto wrong = agree((v ? da : a).now(), wa, 1e-9, 0);
      if (wrong.empty()) wrong = agree((v ? db : b).now(), wb, 1e-9, 0);
      if (!wrong.empty()) return (v ? "dense: " : "jagged: ") + wrong;
    }
    return std::string();
  };
  return j;
});

// --- transposed products of pairs of sequences: sums over as many rows as a sequence has
struct PairCfg {
  int BM = 64, BN = 64, BK = 32, warps = 4;
};
auto jagged_pairs =
    kernel("user_jagged_pairs", [](const PairCfg& c, Ptr<const half> x, Ptr<const half> y, Ptr<const int64_t> offsets,
                                   Ptr<float> out, I32 M, I32 N, I32 most, I32 batches) {
      num_warps(c.warps);
      auto z = program_id(2);
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
      auto begin = load(offsets + z);
      auto K = min(load(offsets + z + 1) - begin, cast(most, i64));
      auto k = arange(0, c.BK);
      Tile px = x + begin * M + (k.row() * M + m.col()), py = y + begin * N + (k.col() * N + n.row());
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto at : range(0, cast(K, i32), c.BK)) {
        auto there = at + k < cast(K, i32);
        auto a = load(px, {.mask = (m < M).col() & there.row(), .other = 0});
        auto b = load(py, {.mask = there.col() & (n < N).row(), .other = 0});
        acc = dot(a, b, acc);
        px += c.BK * M;
        py += c.BK * N;
      }
      store(out + cast(z, i64) * M * N + (m.col() * N + n.row()), acc, {.mask = (m < M).col() & (n < N).row()});
    }).grid([](const PairCfg& c, const half*, const half*, const int64_t*, float*, int M, int N, int, int batches) {
      return Grid{cdiv(M, c.BM), cdiv(N, c.BN), batches};
    });
Register r2("jagged_pairs", [](Env& e) {
  PairCfg c;
  if (!e.big) c = {16, 16, 16, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 256 : 5, M = e.big ? 128 : 24, N = e.big ? 256 : 19, most = e.big ? 1024 : 40;
  auto o = offsets_of(e, B, most + most / 4);
  auto x = random<half>(e, o[B] * M + 1), y = random<half>(e, o[B] * N + 1);
  auto offsets = repeated(e, B + 1, o);
  auto out = constant<float>(e, size_t(B) * M * N, NAN);
  Job j;
  j.gflop = 2e-9 * o[B] * M * N;
  j.add(jagged_pairs, c, x.p, y.p, offsets.p, out.p, M, N, most, B);
  j.check = [=] {
    std::vector<double> want;
    for (int z = 0; z < B; ++z) {
      const int K = int(std::min<int64_t>(o[z + 1] - o[z], most));
      const auto one = product(
          M, N, K, [&](int m, int k) { return x[(o[z] + k) * M + m]; }, matrix(y, N, o[z] * N));
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(out.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- the difference of a row and the one before it in its sequence, and gradients; the first row has none before it
struct ShiftCfg {
  int BD = 1024;
  bool backward = false;
};
auto token_shift = kernel("user_token_shift", [](const ShiftCfg& c, Ptr<const bfloat16> x, Ptr<const int64_t> offsets,
                                                 Ptr<const int32_t> sequence, Ptr<bfloat16> y, I32 D) {
  auto t = cast(program_id(0), i64);
  auto s = load(sequence + program_id(0));
  auto edge = c.backward ? t == load(offsets + s + 1) - 1 : t == load(offsets + s);
  auto d = arange(0, c.BD);
  auto mask = d < D;
  auto p = x + t * D + d;
  auto own = cast(load(p, {.mask = mask}), f32);
  Tile result = -own;
  if_(~edge, [&] { result = cast(load(c.backward ? p + D : p - D, {.mask = mask}), f32) - own; });
  store(y + t * D + d, cast(result, bf16), {.mask = mask});
});
Register r3("token_shift", [](Env& e) {
  const int B = e.big ? 64 : 6, D = e.big ? 2560 : 37, most = e.big ? 1024 : 8, BD = e.big ? 4096 : 64;
  const auto o = offsets_of(e, B, most);
  const int T = int(o[B]);
  std::vector<int32_t> of;
  for (int b = 0; b < B; ++b) of.insert(of.end(), o[b + 1] - o[b], b);
  auto x = random<bfloat16>(e, size_t(T) * D);
  auto y = constant<bfloat16>(e, x.n, NAN), dx = constant<bfloat16>(e, x.n, NAN);
  auto offsets = repeated(e, B + 1, o);
  auto sequence = repeated(e, T, of);
  Job j;
  j.mbytes = 8e-6 * T * D;
  auto k = token_shift.grid([=](const ShiftCfg&, const auto&...) { return Grid{T}; });
  j.add(k, ShiftCfg{BD, false}, x.p, offsets.p, sequence.p, y.p, D);
  j.add(k, ShiftCfg{BD, true}, x.p, offsets.p, sequence.p, dx.p, D);
  j.check = [=] {
    std::vector<double> want(x.n), back(x.n);
    for (int t = 0; t < T; ++t)
      for (int d = 0; d < D; ++d) {
        const size_t i = size_t(t) * D + d;
        want[i] = (t == o[of[t]] ? 0 : x[i - D]) - x[i];
        back[i] = (t == o[of[t] + 1] - 1 ? 0 : x[i + D]) - x[i];
      }
    const auto wrong = agree(y.now(), want, 1e-6, 8e-3);
    return wrong.empty() ? agree(dx.now(), back, 1e-6, 8e-3) : wrong;
  };
  return j;
});

// --- means of chunks of keys (the last of a sequence is shorter); chunks are named by pairs of a sequence and a number
struct MeanCfg {
  int BT = 64, BD = 64;
};
auto chunk_means = kernel("user_chunk_means", [](const MeanCfg& c, Ptr<const bfloat16> x, Ptr<float> o,
                                                 Ptr<const int64_t> offsets, Ptr<const int32_t> chunks, I32 H, I32 D) {
  auto d = program_id(0), g = program_id(1), h = program_id(2);
  auto s = load(chunks + g * 2), at = load(chunks + g * 2 + 1);
  auto begin = load(offsets + s), T = load(offsets + s + 1) - begin;
  auto X = make_view<const bfloat16>(x + (begin * H + h) * D, {T, D}, {H * D, 1});
  auto rows = cast(X.load({at * c.BT, d * c.BD}, {c.BT, c.BD}), f32);
  auto count = cast(min(cast(c.BT, i64), T - cast(at, i64) * c.BT), f32);
  auto column = d * c.BD + arange(0, c.BD);
  store(o + (cast(g, i64) * H + h) * D + column, squeeze(sum(rows, axis(0)), 0) / count, {.mask = column < D});
});
Register r4("chunk_means", [](Env& e) {
  const MeanCfg c = e.big ? MeanCfg{} : MeanCfg{8, 16};
  const int B = e.big ? 16 : 6, H = e.big ? 8 : 3, D = e.big ? 128 : 21, most = e.big ? 8192 : 30;
  const auto o = offsets_of(e, B, most);
  std::vector<int32_t> pairs;
  for (int b = 0; b < B; ++b)
    for (int i = 0; i < cdiv(int(o[b + 1] - o[b]), c.BT); ++i) pairs.push_back(b), pairs.push_back(i);
  const int G = int(pairs.size() / 2);
  auto x = random<bfloat16>(e, o[B] * H * D);
  auto offsets = repeated(e, B + 1, o);
  auto chunks = repeated(e, pairs.size(), pairs);
  auto out = constant<float>(e, size_t(G) * H * D, NAN);
  Job j;
  j.mbytes = 2e-6 * o[B] * H * D;
  j.add(chunk_means.grid([=](const MeanCfg& k, const auto&...) {
    return Grid{cdiv(D, k.BD), G, H};
  }),
        c, x.p, out.p, offsets.p, chunks.p, H, D);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int g = 0; g < G; ++g)
      for (int i = 0; i < H * D; ++i) {
        const int64_t b = pairs[2 * g], t0 = o[b] + pairs[2 * g + 1] * c.BT, t1 = std::min(t0 + c.BT, o[b + 1]);
        for (int64_t t = t0; t < t1; ++t) want[size_t(g) * H * D + i] += x[t * H * D + i] / double(t1 - t0);
      }
    return agree(out.now(), want, 1e-4, 1e-3);
  };
  return j;
});

}  // namespace jagged_ports
}  // namespace users
