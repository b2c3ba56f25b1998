// single_elements.cpp - what each element does by itself, as threads of other languages do: iterations that end at
// different times, arrays that every element has for itself, tables, records, numbers that are counted and tried.
#include "tests/users/use.h"
namespace users {
namespace single_elements {

// --- Kepler's equation E - e sin E = M by Newton's method, for as many steps as each orbit needs
struct OrbitCfg {
  int B = 256, warps = 8;
};
auto orbits = kernel("user_orbits", [](const OrbitCfg& c, Ptr<const float> mean, Ptr<const float> eccentricity,
                                       Ptr<float> position, Ptr<int32_t> steps, I32 n) {
                // position [n, 2]: in the plane of the orbit, in units of its larger half axis
                num_warps(c.warps);
                auto i = program_id(0) * c.B + arange(0, c.B);
                auto mask = i < n;
                auto M = load(mean + i, {.mask = mask}), e = load(eccentricity + i, {.mask = mask});
                Tile E = M + e * sin(M), count = zeros({c.B}, i32), active = mask;
                while_([&] { return any(active); },
                       [&] {
                         auto change = (E - e * sin(E) - M) / (1.f - e * cos(E));
                         E = where(active, E - change, E);
                         count += cast(active, i32);
                         active = active & (abs(change) > 1e-6f * max(abs(E), 1.f)) & (count < 50);
                       });
                store(position + i * 2, cos(E) - e, {.mask = mask});
                store(position + i * 2 + 1, sqrt(1.f - e * e) * sin(E), {.mask = mask});
                store(steps + i, count, {.mask = mask});
              }).grid([](const OrbitCfg& c, const float*, const float*, float*, int32_t*, int n) {
  return Grid{cdiv(n, c.B)};
});
Register r1("orbits", [](Env& e) {
  const int n = e.big ? 1 << 22 : 700;
  auto mean = random<float>(e, n, .1, 6), ecc = random<float>(e, n, 0, .9);
  auto position = constant<float>(e, 2 * size_t(n), NAN);
  auto steps = constant<int32_t>(e, n, -1);
  Job j;
  j.mbytes = 20e-6 * n;
  j.add(orbits, OrbitCfg{}, mean.p, ecc.p, position.p, steps.p, n);
  j.check = [=]() -> std::string {
    std::vector<double> want(2 * size_t(n));
    for (int i = 0; i < n; ++i) {
      double low = 0, high = 7;  // E - e sin E grows with E
      for (int k = 0; k < 60; ++k) {
        const double middle = (low + high) / 2;
        (middle - ecc[i] * std::sin(middle) < mean[i] ? low : high) = middle;
      }
      want[2 * i] = std::cos(low) - ecc[i], want[2 * i + 1] = std::sqrt(1 - ecc[i] * ecc[i]) * std::sin(low);
    }
    for (int32_t count : steps.now())
      if (count < 1 || count >= 50) return std::to_string(count) + " steps";
    return agree(position.now(), want, 2e-5, 2e-5);
  };
  return j;
});

// --- the ways to pay an amount with coins of some kinds: a search with a stack of its own for every amount
struct PayCfg {
  int B = 128, kinds = 6, warps = 4;
};
auto payments = kernel("user_payments", [](const PayCfg& c, Tensor<const int32_t, 1> coins, Ptr<const int32_t> amounts,
                                           Ptr<int32_t> ways, I32 n) {
                  // coins: smallest first, the smallest is 1
                  num_warps(c.warps);
                  auto i = program_id(0) * c.B + arange(0, c.B);
                  auto mask = i < n;
                  auto kind = arange(0, c.kinds).row();
                  auto worth = coins.load({0}, {c.kinds}).row();
                  Tile left = load(amounts + i, {.mask = mask});  // what is not paid yet
                  Tile used = zeros({c.B, c.kinds}, i32);         // coins of each kind: the stack
                  Tile at = full({c.B}, c.kinds - 1, i32), found = zeros({c.B}, i32), active = mask;
                  auto of = [&](const Tile& line, const Tile& k) {
                    return squeeze(take(line, max(k, 0).col(), 1), 1);
                  };
                  auto values = broadcast_to(worth, {c.B, c.kinds});
                  while_([&] { return any(active); },
                         [&] {
                           auto value = of(values, at);
                           auto most = left / value;
                           auto down = active & (at > 0);
                           // As many of this kind as there can be, or (of the smallest) all that is left: one way.
                           found += cast(active & (at == 0), i32);
                           used = where((kind == at.col()) & down.col(), most.col(), used);
                           left = where(down, left - most * value, left);
                           // Back to the kind that has a coin to give up; forward from there.
                           auto back = active & (at == 0);
                           auto has = (used > 0) & (kind > 0);
                           auto last = squeeze(min(where(has, kind, c.kinds), axis(1)), 1);
                           auto again = back & (last < c.kinds);
                           left = where(again, left + of(values, last), left);
                           used = where((kind == last.col()) & again.col(), used - 1, used);
                           at = where(again, last - 1, where(down, at - 1, at));
                           active = active & (down | again);
                         });
                  store(ways + i, found, {.mask = mask});
                }).grid([](const PayCfg& c, const auto&, const int32_t*, int32_t*, int n) {
  return Grid{cdiv(n, c.B)};
});
Register r2("payments", [](Env& e) {
  PayCfg c;
  const int n = e.big ? 1 << 17 : 300;
  auto coins = filled<int32_t>(e, c.kinds, [](size_t k) { return std::array{1, 5, 10, 20, 50, 100}[k]; });
  auto amounts = integers<int32_t>(e, n, 0, e.big ? 100 : 60);
  auto ways = constant<int32_t>(e, n, -1);
  Job j;
  j.add(payments, c, coins.view(c.kinds), amounts.p, ways.p, n);
  j.check = [=] {
    std::vector<double> of(101), want(n);
    of[0] = 1;
    for (int coin : coins.h)
      for (int a = coin; a <= 100; ++a) of[a] += of[a - coin];
    for (int i = 0; i < n; ++i) want[i] = of[amounts.at(i)];
    return agree(ways.now(), want, .1, 0);
  };
  return j;
});

// --- an automaton reads messages: the next state stands in a table, 16 states for 16 kinds of bytes
struct ReadCfg {
  int B = 256, warps = 4;
};
auto automaton = kernel("user_automaton", [](const ReadCfg& c, Tensor<const uint8_t, 1> kinds,
                                             Tensor<const uint8_t, 1> next, Ptr<const uint32_t> text, Ptr<uint8_t> last,
                                             Ptr<int32_t> accepted, I32 n, I32 words) {
                   // text [words, n]: four bytes in a word; accepted: how often state 15 was reached
                   num_warps(c.warps);
                   auto i = program_id(0) * c.B + arange(0, c.B);
                   auto mask = i < n;
                   auto kind = cast(kinds.load({0}, {256}), i32), table = cast(next.load({0}, {256}), i32);
                   Tile state = zeros({c.B}, i32), count = zeros({c.B}, i32);
                   for (auto w : range(words)) {
                     auto word = load(text + w * n + i, {.mask = mask});
                     for (int b = 0; b < 32; b += 8) {
                       auto byte = cast(word >> b & 255, i32);
                       state = take(table, state * 16 + take(kind, byte, 0), 0);
                       count += cast(state == 15, i32);
                     }
                   }
                   store(last + i, cast(state, u8), {.mask = mask});
                   store(accepted + i, count, {.mask = mask});
                 }).grid([](const ReadCfg& c, const auto&, const auto&, const uint32_t*, uint8_t*, int32_t*, int n,
                            int) {
  return Grid{cdiv(n, c.B)};
});
Register r3("automaton", [](Env& e) {
  const int n = e.big ? 1 << 19 : 500, words = e.big ? 64 : 9;
  auto kinds = integers<uint8_t>(e, 256, 0, 16), next = integers<uint8_t>(e, 256, 0, 16);
  auto text = drawn<uint32_t>(e, size_t(n) * words, [&] { return uint32_t(e.uniform() * 0x1p32); });
  auto last = constant<uint8_t>(e, n, 255);
  auto accepted = constant<int32_t>(e, n, -1);
  Job j;
  j.mbytes = 4e-6 * double(n) * words;
  j.add(automaton, ReadCfg{}, kinds.view(256), next.view(256), text.p, last.p, accepted.p, n, words);
  j.check = [=] {
    std::vector<double> state(n), count(n);
    for (int i = 0; i < n; ++i)
      for (int w = 0; w < words; ++w)
        for (int b = 0; b < 32; b += 8) {
          state[i] = next.h[size_t(state[i]) * 16 + kinds.h[text.at(size_t(w) * n + i) >> b & 255]];
          count[i] += state[i] == 15;
        }
    const std::string wrong = agree(last.now(), state, .1, 0);
    return wrong.empty() ? agree(accepted.now(), count, .1, 0) : wrong;
  };
  return j;
});

// --- forces of Morse bonds on atoms that are records of four floats, by lists of neighbours
struct BondCfg {
  int B = 256, warps = 8;
};
auto bonds = kernel("user_bonds", [](const BondCfg& c, Ptr<const float> atoms, Ptr<const int32_t> list,
                                     Ptr<float> force, I32 n, I32 most, F32 depth, F32 width, F32 reach) {
               num_warps(c.warps);  // atoms [n, 4]: place and charge; list [most, n]; force [n, 4]: and energy
               auto i = program_id(0) * c.B + arange(0, c.B);
               auto mask = i < n;
               std::array<Tile, 3> at, f;
               for (int d = 0; d < 3; ++d) at[d] = load(atoms + i * 4 + d, {.mask = mask}), f[d] = zeros({c.B}, f32);
               Tile energy = zeros({c.B}, f32);
               for (auto k : range(most)) {
                 auto other = load(list + k * n + i, {.mask = mask});
                 std::array<Tile, 3> u;
                 Tile r2 = zeros({c.B}, f32);
                 for (int d = 0; d < 3; ++d) u[d] = load(atoms + other * 4 + d) - at[d], r2 += u[d] * u[d];
                 auto inv = rsqrt(max(r2, 1e-6f)), x = exp(-width * (r2 * inv - 1.f));
                 auto near = r2 < reach * reach;
                 auto pull = where(near, 2.f * depth * width * x * (1.f - x) * inv, 0.f);
                 for (int d = 0; d < 3; ++d) f[d] += pull * u[d];
                 energy += where(near, depth * x * (x - 2.f), 0.f);
               }
               for (int d = 0; d < 3; ++d) store(force + i * 4 + d, f[d], {.mask = mask});
               store(force + i * 4 + 3, .5f * energy, {.mask = mask});
             }).grid([](const BondCfg& c, const float*, const int32_t*, float*, int n, int, float, float, float) {
  return Grid{cdiv(n, c.B)};
});
Register r4("bonds", [](Env& e) {
  const int n = e.big ? 1 << 20 : 600, most = e.big ? 64 : 12;
  const double depth = .5, width = 1.5, reach = 3;
  auto atoms = random<float>(e, 4 * size_t(n), 0, 4);
  auto list = drawn<int32_t>(e, size_t(n) * most, [&] { return int32_t(e.uniform() * n); });
  auto force = constant<float>(e, 4 * size_t(n), NAN);
  Job j;
  j.mbytes = 4e-6 * double(n) * (most + 8);
  j.add(bonds, BondCfg{}, atoms.p, list.p, force.p, n, most, float(depth), float(width), float(reach));
  j.check = [=] {
    std::vector<double> want(4 * size_t(n));
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < most; ++k) {
        double u[3], r = 1e-30;
        const size_t other = list.h[size_t(k) * n + i];
        for (int d = 0; d < 3; ++d) u[d] = atoms[4 * other + d] - atoms[4 * size_t(i) + d], r += u[d] * u[d];
        r = std::sqrt(r);
        if (r >= reach) continue;
        const double x = std::exp(-width * (r - 1));
        for (int d = 0; d < 3; ++d)
          want[4 * size_t(i) + d] += other == size_t(i) ? 0 : 2 * depth * width * x * (1 - x) / r * u[d];
        want[4 * size_t(i) + 3] += depth * x * (x - 2) / 2;
      }
    return agree(force.now(), want, 2e-3, 1e-3);
  };
  return j;
});

// --- the counted key whose mixed bits end in most zeros: every element tries some, one after the other
struct MineCfg {
  int B = 256, warps = 4;
};
auto mine = kernel("user_mine", [](const MineCfg& c, Ptr<const uint32_t> header, Ptr<uint64_t> best, I32 each) {
  num_warps(c.warps);  // header [4]; best: zeros << 32 | key, the largest of all
  auto first = (program_id(0) * c.B + arange(0, c.B)) * each;
  std::array<Tile, 4> h;
  for (int k = 0; k < 4; ++k) h[k] = load(header + k);
  Tile key = cast(first, u32), most = zeros({c.B}, i32), which = key;
  for (auto _ : range(each)) {
    Tile a = h[0] + key, b = h[1] ^ key, x = h[2] + zeros({c.B}, u32), d = h[3] + key * 3u;
    for (int round = 0; round < 10; ++round) {
      a += b, d = rotl(d ^ a, 16), x += d, b = rotl(b ^ x, 12);
      a += b + uint32_t(round), d = rotl(d ^ a, 8), x += d, b = rotl(b ^ x, 7);
    }
    auto zeros_here = cast(countr_zero(a ^ d), i32);
    which = where(zeros_here > most, key, which), most = max(zeros_here, most);
    key += 1u;
  }
  atomic_max(best, max(cast(most, u64) << 32 | cast(which, u64)), {.order = Order::relaxed});
});
Register r5("mine", [](Env& e) {
  MineCfg c;
  const int programs = e.big ? 4096 : 3, each = e.big ? 64 : 7;
  auto header = filled<uint32_t>(e, 4, [](size_t k) { return uint32_t(0x243F6A88u * (2 * k + 1)); });
  auto best = constant<uint64_t>(e, 1, 0);
  Job j;
  j.gflop = 80e-9 * programs * c.B * double(each);
  j.add(mine.grid([=](const auto&...) { return Grid{programs}; }), c, header.p, best.p, each);
  j.check = [=]() -> std::string {
    auto turn = [](uint32_t v, int s) { return v << s | v >> (32 - s); };
    auto zeros_of = [&](uint32_t key) {
      uint32_t a = header.h[0] + key, b = header.h[1] ^ key, x = header.h[2], d = header.h[3] + key * 3;
      for (uint32_t round = 0; round < 10; ++round) {
        a += b, d = turn(d ^ a, 16), x += d, b = turn(b ^ x, 12);
        a += b + round, d = turn(d ^ a, 8), x += d, b = turn(b ^ x, 7);
      }
      return a == d ? 32 : __builtin_ctz(a ^ d);
    };
    int most = 0;
    const uint32_t keys = programs * c.B * each;
    for (uint32_t key = 0; key < keys; ++key) most = std::max(most, zeros_of(key));
    const uint64_t got = best.now()[0];
    const auto key = uint32_t(got);
    return int(got >> 32) == most && key < keys && zeros_of(key) == most ? "" : "another key is better";
  };
  return j;
});

// --- how well short codes fit at every place of long ones, byte by byte, and where first
struct FitCfg {
  int B = 256, warps = 8;
};
auto best_fit = kernel("user_best_fit", [](const FitCfg& c, Ptr<const uint8_t> text, Ptr<const uint8_t> codes,
                                           Ptr<int32_t> fit, I32 n, I32 length, I32 count) {
                  // codes [count, length]; fit [n]: the fewest differing bytes of all, * 256 + which code
                  num_warps(c.warps);
                  auto i = program_id(0) * c.B + arange(0, c.B);
                  auto mask = i < n;
                  Tile best = full({c.B}, 1 << 30, i32);
                  for (auto k : range(count)) {
                    Tile differ = zeros({c.B}, i32);
                    for (auto b : range(length))
                      differ += cast(load(text + b + i, {.mask = mask}) != load(codes + k * length + b), i32);
                    best = min(best, differ * 256 + k);
                  }
                  store(fit + i, best, {.mask = mask});
                }).grid([](const FitCfg& c, const uint8_t*, const uint8_t*, int32_t*, int n, int, int) {
  return Grid{cdiv(n, c.B)};
});
Register r6("best_fit", [](Env& e) {
  const int n = e.big ? 1 << 20 : 700, length = e.big ? 24 : 11, count = e.big ? 32 : 5;
  auto text = integers<uint8_t>(e, n + length, 0, 4), codes = integers<uint8_t>(e, size_t(count) * length, 0, 4);
  auto fit = constant<int32_t>(e, n, -1);
  Job j;
  j.gflop = 1e-9 * n * double(length) * count;
  j.add(best_fit, FitCfg{}, text.p, codes.p, fit.p, n, length, count);
  j.check = [=] {
    std::vector<double> want(n, 1 << 30);
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < count; ++k) {
        int differ = 0;
        for (int b = 0; b < length; ++b) differ += text.at(i + b) != codes.at(size_t(k) * length + b);
        want[i] = std::min(want[i], differ * 256. + k);
      }
    return agree(fit.now(), want, .1, 0);
  };
  return j;
});

}  // namespace single_elements
}  // namespace users
