// sky_and_states.cpp - telescopes and quantum circuits: dispersed pulses summed along trial delays (dedispersion of
// filterbanks), rotations by strings of Pauli operators and their expectations on state vectors.
#include <complex>

#include "tests/users/use.h"
namespace users {
namespace sky_and_states {

// --- brute-force dedispersion: for every trial and moment the sum over channels, each as late as the trial says; 8-bit
// samples [channels, T], unwanted channels are left out by a mask
struct DedisperseCfg {
  int BT = 512, BD = 8, warps = 4, unroll = 4;
};
auto dedisperse =
    kernel("user_dedisperse", [](const DedisperseCfg& c, Ptr<const uint8_t> samples, Ptr<const int32_t> delays,
                                 Ptr<const uint8_t> kill, Ptr<float> out, I32 channels, I64 T, I32 trials,
                                 I64 outputs) {
      num_warps(c.warps);
      auto t = cast(program_id(0), i64) * c.BT + arange(0, c.BT);
      auto d = program_id(1) * c.BD + arange(0, c.BD);
      Tile acc = zeros({c.BD, c.BT}, i32);
      for (auto ch : range(0, channels, 1, {.unroll = c.unroll})) {
        for (auto _ : when(load(kill + ch) == 0)) {
          auto late = load(delays + cast(d, i64) * channels + ch, {.mask = d < trials});
          auto at = t.row() + cast(late, i64).col();
          acc += cast(load(samples + ch * T + at, {.mask = at < T}), i32);
        }
      }
      store(out + cast(d, i64).col() * outputs + t.row(), cast(acc, f32),
            {.mask = (d < trials).col() & (t < outputs).row()});
    }).grid([](const DedisperseCfg& c, auto, auto, auto, auto, int, int64_t, int trials, int64_t outputs) {
      return Grid{cdiv(outputs, c.BT), cdiv(trials, c.BD)};
    });
Register r1("dedisperse", [](Env& e) {
  DedisperseCfg c;
  if (!e.big) c = {40, 3, 1, 0};
  c.BT = e.field("BT", c.BT), c.BD = e.field("BD", c.BD), c.warps = e.field("warps", c.warps),
  c.unroll = e.field("unroll", c.unroll);
  const int C = e.big ? 1024 : 19, D = e.big ? 256 : 7;
  const int64_t T = e.big ? 1 << 17 : 211, outputs = e.big ? T - 4096 : 173;
  auto samples = integers<uint8_t>(e, C * T, 0, 256);
  // nu^-2 between 1.2 and 1.5 GHz; small problems also reach past the end of the samples
  const int most = e.big ? 4096 : 60;
  auto delays = filled<int32_t>(e, size_t(C) * D, [&](size_t i) {
    const double nu = 1.5 - .3 * double(i % C) / C;
    return int32_t(most * double(i / C) / D * (1 / (nu * nu) - 1 / 2.25) / (1 / 1.44 - 1 / 2.25));
  });
  auto kill = filled<uint8_t>(e, C, [&](size_t i) { return uint8_t(i % 7 == 3); });
  auto out = constant<float>(e, size_t(D) * outputs, NAN);
  Job j;
  j.gflop = 1e-9 * C * double(D) * double(outputs);
  j.add(dedisperse, c, samples.p, delays.p, kill.p, out.p, C, T, D, outputs);
  j.check = [=] {
    std::vector<double> want(size_t(D) * outputs);
    for (int d = 0; d < D; ++d)
      for (int64_t t = 0; t < outputs; ++t)
        for (int ch = 0; ch < C; ++ch) {
          const int64_t at = t + delays.at(size_t(d) * C + ch);
          if (!kill.at(ch) && at < T) want[d * outputs + t] += samples.at(ch * T + at);
        }
    return agree(out.now(), want, .5, 0);
  };
  return j;
});

// --- exp(-i angle / 2 P) for a string of Pauli operators P = i^ys X^x Z^z on a state vector: pairs of amplitudes that
// differ in the bits of x; then <state| sum of c P |state>, string after string
struct PauliCfg {
  int B = 1024, warps = 4;
};
struct Amplitude {
  Tile re, im;
};
Amplitude amplitude(Ptr<const float> state, Tile at, Tile in) {
  return {load(state + at * 2, {.mask = in}), load(state + at * 2 + 1, {.mask = in})};
}
auto odd(const Tile& bits) { return (popcount(bits) & int64_t(1)) != 0; }
/// i^k times a
Amplitude turned(const Amplitude& a, Tile k) {
  auto half = (k & 2) != 0, quarter = (k & 1) != 0;
  auto re = where(quarter, -a.im, a.re), im = where(quarter, a.re, a.im);
  return {where(half, -re, re), where(half, -im, im)};
}
auto pauli_turn =
    kernel("user_pauli_turn", [](const PauliCfg& c, Ptr<float> state, I64 x, I64 z, F32 angle, I64 pairs) {
      num_warps(c.warps);
      auto n = cast(program_id(0), i64) * c.B + arange(0, c.B);
      auto in = n < pairs;
      auto top = int64_t(63) - cast(countl_zero(x), i64);  // of each pair the one without this bit
      auto low = (Tile(full({}, int64_t(1), i64)) << top) - int64_t(1);
      auto i = ((n & ~low) << 1) | (n & low), k = i ^ x;
      auto co = cos(angle * .5f), si = sin(angle * .5f);
      auto ys = cast(popcount(x & z), i32);
      auto a = amplitude(state, i, in), b = amplitude(state, k, in);
      // (P b)_i = i^ys (-1)^|k & z| b_k
      auto pa = turned(b, ys + cast(odd(k & z), i32) * 2), pb = turned(a, ys + cast(odd(i & z), i32) * 2);
      store(state + i * 2, co * a.re + si * pa.im, {.mask = in});
      store(state + i * 2 + 1, co * a.im - si * pa.re, {.mask = in});
      store(state + k * 2, co * b.re + si * pb.im, {.mask = in});
      store(state + k * 2 + 1, co * b.im - si * pb.re, {.mask = in});
    }).grid([](const PauliCfg& c, auto, int64_t, int64_t, float, int64_t pairs) { return Grid{cdiv(pairs, c.B)}; });
auto pauli_mean =
    kernel("user_pauli_mean", [](const PauliCfg& c, Ptr<const float> state, Ptr<const int64_t> xs,
                                 Ptr<const int64_t> zs, Ptr<const double> weights, I32 terms, I64 n,
                                 Ptr<double> energy) {
      num_warps(c.warps);
      auto i = cast(program_id(0), i64) * c.B + arange(0, c.B);
      auto in = i < n;
      auto a = amplitude(state, i, in);
      Tile total = zeros({c.B}, f64);
      for (auto t : range(terms)) {
        auto x = load(xs + t), z = load(zs + t);
        auto b = amplitude(state, i ^ x, in);
        auto p = turned(b, cast(popcount(x & z), i32) + cast(odd((i ^ x) & z), i32) * 2);
        total += load(weights + t) * cast(a.re * p.re + a.im * p.im, f64);
      }
      atomic_add(energy, sum(total));
    }).grid([](const PauliCfg& c, auto, auto, auto, auto, int, int64_t n, auto) { return Grid{cdiv(n, c.B)}; });
Register r2("pauli", [](Env& e) {
  PauliCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int qubits = e.big ? 24 : 7, terms = e.big ? 24 : 9;
  const int64_t n = int64_t(1) << qubits;
  auto state = random<float>(e, size_t(n) * 2);
  auto xs = integers<int64_t>(e, terms, 0, n), zs = integers<int64_t>(e, terms, 0, n);
  auto weights = random<double>(e, terms);
  auto energy = constant<double>(e, 1, 0);
  // X on the lowest, Y Z on two, all bits, the highest alone
  struct Turn {
    int64_t x, z;
    float angle;
  };
  const std::vector<Turn> turns{{1, 0, .7f}, {2, 6, -.3f}, {n - 1, n / 3, 1.1f}, {n / 2, n - 1, 2.5f}};
  Job j;
  j.inTurn = true;
  j.mbytes = 1e-6 * 16 * double(n);
  for (const Turn& t : turns) j.add(pauli_turn, c, state.p, t.x, t.z, t.angle, n / 2);
  j.add(pauli_mean, c, state.p, xs.p, zs.p, weights.p, terms, n, energy.p);
  j.check = [=] {
    using C = std::complex<double>;
    std::vector<C> a(n);
    for (int64_t i = 0; i < n; ++i) a[i] = C(state[2 * i], state[2 * i + 1]);
    auto image = [&](int64_t x, int64_t z) {  // P a
      std::vector<C> p(n);
      for (int64_t i = 0; i < n; ++i)
        p[i ^ x] = a[i] * std::pow(C(0, 1), __builtin_popcountll(x & z)) * (__builtin_popcountll(i & z) % 2 ? -1. : 1.);
      return p;
    };
    for (const Turn& t : turns) {
      const auto p = image(t.x, t.z);
      for (int64_t i = 0; i < n; ++i) a[i] = std::cos(t.angle / 2.) * a[i] - C(0, std::sin(t.angle / 2.)) * p[i];
    }
    std::vector<double> want;
    for (const C& v : a) want.push_back(v.real()), want.push_back(v.imag());
    std::string wrong = agree(state.now(), want, 1e-5, 1e-5);
    double mean = 0;
    for (int t = 0; t < terms; ++t) {
      const auto p = image(xs.at(t), zs.at(t));
      for (int64_t i = 0; i < n; ++i) mean += weights[t] * (std::conj(a[i]) * p[i]).real();
    }
    return wrong + agree(energy.now(), {mean}, 1e-4, 1e-5);
  };
  return j;
});

}  // namespace sky_and_states
}  // namespace users
