// own_paces.cpp - elements that go on at their own pace: factors of 64-bit numbers, quadrature with a stack per
// integral, draws from gamma distributions by rejection, page replacement by a clock, approximate matches in bytes.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace own_paces {

// --- factors by Pollard's rho: products modulo n in Montgomery's form, a greatest common divisor every few steps
struct RhoCfg {
  int B = 128, steps = 16, warps = 4;
};
struct Modulus {
  Tile n, inverse;  // n odd and below 2^63, n * inverse = 1 modulo 2^64
  explicit Modulus(const Tile& m) : n(m), inverse(m) {
    for (int i = 0; i < 5; ++i) inverse = inverse * (2 - n * inverse);
  }
  Tile times(const Tile& a, const Tile& b) const {
    auto high = mulhi(a, b), taken = mulhi(a * b * inverse, n);
    return where(high < taken, high + n - taken, high - taken);
  }
};
Tile common_divisor(Tile a, Tile b) {  // b odd
  while_([&] { return any(a != 0); },
         [&] {
           a = a >> min(countr_zero(a), 63);
           auto smaller = where(a == 0, b, min(a, b)), difference = where(a == 0, 0, max(a, b) - min(a, b));
           b = smaller, a = difference;
         });
  return b;
}
auto rho = kernel("user_pollard", [](const RhoCfg& c, Ptr<const uint64_t> numbers, Ptr<uint64_t> factors, I32 count) {
             num_warps(c.warps);
             auto i = program_id(0) * c.B + arange(0, c.B);
             Modulus m(load(numbers + i, {.mask = i < count, .other = 9}));
             Tile x = full({c.B}, 2, u64), y = x, constant = full({c.B}, 1, u64), found = zeros({c.B}, u64);
             auto next = [&](const Tile& v) {
               auto s = m.times(v, v) + constant;
               return where(s >= m.n, s - m.n, s);
             };
             Tile active = i < count;
             while_([&] { return any(active); },
                    [&] {
                      Tile together = full({c.B}, 1, u64);
                      for (auto step : range(c.steps)) {
                        x = next(x);
                        y = next(next(y));
                        together = m.times(together, where(x > y, x - y, y - x));
                      }
                      auto g = common_divisor(together, m.n);
                      found = where(active & (g > 1) & (g < m.n), g, found);
                      auto failed = active & (g == m.n);  // both factors at once: another sequence
                      constant = where(failed, constant + 1, constant);
                      x = where(failed, constant, x), y = where(failed, x, y);
                      active = active & (found == 0);
                    });
             store(factors + i, found, {.mask = i < count});
           }).grid([](const RhoCfg& c, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("pollard", [](Env& e) {
  const int n = e.big ? 1 << 20 : 200;
  auto prime = [&](int bits) {
    for (;;) {
      const uint64_t half = uint64_t(1) << (bits - 1), p = half + (uint64_t(e.uniform() * double(half)) | 1);
      bool is = true;
      for (uint64_t d = 3; d * d <= p && is; d += 2) is = p % d != 0;
      if (is) return p;
    }
  };
  const int bits = e.big ? 20 : 12;
  std::vector<uint64_t> composites;
  for (int i = 0; i < std::min(n, 4096); ++i) composites.push_back(prime(bits) * prime(i % 5 ? bits : bits + 4));
  auto numbers = repeated<uint64_t>(e, n, composites);
  auto factors = constant<uint64_t>(e, n, 0);
  Job j;
  j.mbytes = 16e-6 * n;
  j.add(rho, RhoCfg{}, numbers.p, factors.p, n);
  j.check = [=] {
    const auto f = factors.now();
    for (int i = 0; i < n; ++i)
      if (f[i] < 2 || f[i] >= numbers.at(i) || numbers.at(i) % f[i])
        return std::to_string(f[i]) + " is no factor of " + std::to_string(numbers.at(i));
    return std::string();
  };
  return j;
});

// --- Simpson's rule on halves and halves of halves until both agree: intervals that wait lie on a stack per integral
struct SimpsonCfg {
  int B = 64, depth = 24, warps = 2;
};
auto simpson =
    kernel("user_simpson_stack", [](const SimpsonCfg& c, Ptr<const double> center, Ptr<const double> width,
                                    Ptr<double> integral, Ptr<int> pieces, F64 tolerance, I32 n) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto p = load(center + i, {.mask = i < n}).col(), w = load(width + i, {.mask = i < n, .other = 1.0}).col();
      auto f = [&](const Tile& x) { return 1.0 / ((x - p) * (x - p) + w * w); };
      auto slot = arange(0, c.depth).row();
      Tile left = zeros({c.B, c.depth}, f64), size = ones({c.B, c.depth}, f64);
      Tile top = ones({c.B, 1}, i32), sum = zeros({c.B, 1}, f64), used = zeros({c.B, 1}, i32);
      while_([&] { return any(top > 0); },
             [&] {
               auto active = top > 0;
               auto at = max(top - 1, 0);
               Tile a = take(left, at, 1), h = take(size, at, 1);
               auto fa = f(a), fm = f(a + h / 2), fb = f(a + h);
               auto whole = h / 6 * (fa + 4 * fm + fb);
               auto halves = h / 12 * (fa + 4 * f(a + h / 4) + 2 * fm + 4 * f(a + 3 * h / 4) + fb);
               auto close = (abs(halves - whole) < tolerance * h) | (top >= c.depth);
               sum = where(active & close, sum + halves + (halves - whole) / 15, sum);
               used += cast(active & close, i32);
               auto split = active & ~close;  // the left half stays where the interval was, the right one comes above
               size = where(split & ((slot == at) | (slot == top)), h / 2, size);
               left = where(split & (slot == top), a + h / 2, left);
               top = where(active, where(close, top - 1, top + 1), top);
             });
      store(integral + i, squeeze(sum, 1), {.mask = i < n});
      store(pieces + i, squeeze(used, 1), {.mask = i < n});
    }).grid([](const SimpsonCfg& c, auto, auto, auto, auto, double, int n) { return Grid{cdiv(n, c.B)}; });
Register r2("simpson_stack", [](Env& e) {
  const int n = e.big ? 1 << 20 : 150;
  auto center = random<double>(e, n, -0.5, 1.5), width = random<double>(e, n, 0.02, 0.6);
  auto integral = constant<double>(e, n, NAN);
  auto pieces = constant<int>(e, n, -1);
  Job j;
  j.mbytes = 28e-6 * n;
  j.add(simpson, SimpsonCfg{}, center.p, width.p, integral.p, pieces.p, 1e-8, n);
  j.check = [=] {
    std::vector<double> want(n), number(n);
    for (int i = 0; i < n; ++i) {
      want[i] = (std::atan((1 - center[i]) / width[i]) + std::atan(center[i] / width[i])) / width[i];
      std::function<int(double, double)> count = [&](double a, double h) -> int {
        auto f = [&](double x) { return 1 / ((x - center[i]) * (x - center[i]) + width[i] * width[i]); };
        const double whole = h / 6 * (f(a) + 4 * f(a + h / 2) + f(a + h));
        const double halves = h / 12 * (f(a) + 4 * f(a + h / 4) + 2 * f(a + h / 2) + 4 * f(a + 3 * h / 4) + f(a + h));
        return std::abs(halves - whole) < 1e-8 * h ? 1 : count(a, h / 2) + count(a + h / 2, h / 2);
      };
      number[i] = count(0, 1);
    }
    const auto wrong = agree(integral.now(), want, 1e-8, 0);
    return wrong.empty() ? agree(pieces.now(), number, 1.5, 0) : wrong;  // a difference may lie at the tolerance
  };
  return j;
});

// --- gamma variables (Marsaglia and Tsang): a normal and a uniform variable an attempt, until one is accepted
struct GammaCfg {
  int B = 1024, warps = 16;
};
auto gamma_draws =
    kernel("user_gamma_draws", [](const GammaCfg& c, Tensor<const double, 1> shape, Tensor<double, 1> out,
                                  Tensor<uint8_t, 1> attempts, U64 seed) {
      num_warps(c.warps);
      auto first = program_id(0) * c.B;
      auto i = cast(first + arange(0, c.B), i64);
      auto d = shape.load({first}, {c.B}, {.pad = 1}) - 1.0 / 3, slope = 1 / sqrt(9 * d);
      auto unit = [](const Tile& word) { return (cast(word, f64) + 0.5) * 0x1p-32; };
      Tile tries = zeros({c.B}, i32), result = zeros({c.B}, f64), waiting = tries == 0;
      while_([&] { return any(waiting); },
             [&] {
               auto words = randint4(seed, i * 64 + cast(tries, i64));
               auto x = sqrt(-2 * log(unit(words[0]))) * cospi(2 * unit(words[1]));
               auto root = 1 + slope * x, v = root * root * root;
               auto good = (v > 0) & (log(unit(words[2])) < x * x / 2 + d * (1 - v + log(where(v > 0, v, 1))));
               result = where(waiting & good, d * v, result);
               tries = where(waiting, tries + 1, tries);
               waiting = waiting & ~good;
             });
      out.store({first}, result);
      attempts.store({first}, saturate(cast(tries, u32), u8));
    }).grid([](const GammaCfg& c, const auto& s, const auto&...) { return Grid{cdiv(s.shape[0], c.B)}; });
Register r3("gamma_draws", [](Env& e) {
  const int n = e.big ? 1 << 22 : 2500;
  auto shape = random<double>(e, n, 1, 9);
  auto out = constant<double>(e, n, NAN);
  auto attempts = constant<uint8_t>(e, n, 0);
  const uint64_t seed = 0x123456789abcdefull;
  Job j;
  j.mbytes = 17e-6 * n;
  j.add(gamma_draws, GammaCfg{}, shape.view(n), out.view(n), attempts.view(n), seed);
  j.check = [=] {
    std::vector<double> want(n), tries(n);
    for (int i = 0; i < n; ++i)
      for (double d = shape[i] - 1. / 3;;) {
        const auto w = reference_philox(seed, uint64_t(i) * 64 + uint64_t(tries[i]));
        auto unit = [&](int k) { return (w[k] + 0.5) * 0x1p-32; };
        const double x = std::sqrt(-2 * std::log(unit(0))) * std::cos(2 * M_PI * unit(1));
        const double v = std::pow(1 + x / std::sqrt(9 * d), 3);
        tries[i] += 1, want[i] = d * v;
        if (v > 0 && std::log(unit(2)) < x * x / 2 + d * (1 - v + std::log(v))) break;
      }
    const auto wrong = agree(out.now(), want, 1e-12, 1e-11);
    return wrong.empty() ? agree(attempts.now(), tries, 0.1, 0) : wrong;
  };
  return j;
});

// --- page replacement by a clock: a hand goes round 48 frames, takes marks away and the first frame without one
struct ClockCfg {
  int S = 4, W = 48, warps = 4;
};
auto clock_hand = kernel("user_clock_hand", [](const ClockCfg& c, Tensor<const uint16_t, 2> pages,
                                               Tensor<int, 1> misses, Tensor<int, 2> frames) {
                    num_warps(c.warps);
                    auto s = program_id(0) * c.S;
                    auto frame = arange(0, c.W).row();
                    Tile held = full({c.S, c.W}, -1, i32), marked = held == 0;
                    Tile hand = zeros({c.S, 1}, i32), missed = zeros({c.S, 1}, i32);
                    for (auto t : range(pages.dim(1))) {
                      auto page = cast(pages.load({s, t}, {c.S, 1}), i32);
                      auto hit = any(held == page, axis(1));
                      auto distance = floor_mod(frame - hand, c.W);
                      auto [after, victim] = min_with_index(where(marked, distance + c.W, distance), axis(1));
                      auto passed = ~hit & (distance < after);
                      auto taken = ~hit & (frame == victim);
                      held = where(taken, page, held);
                      marked = (marked & ~passed) | (hit & (held == page)) | taken;
                      hand = where(hit, hand, floor_mod(victim + 1, c.W));
                      missed += cast(~hit, i32);
                    }
                    misses.store({s}, squeeze(missed, 1));
                    frames.store({s, 0}, held);
                  }).grid([](const ClockCfg& c, const auto& p, const auto&...) { return Grid{cdiv(p.shape[0], c.S)}; });
Register r4("clock_hand", [](Env& e) {
  const int S = e.big ? 4096 : 6, T = e.big ? 4096 : 300, W = 48;
  auto pages = drawn<uint16_t>(e, size_t(S) * T, [&] { return uint16_t(std::pow(e.uniform(), 2.5) * 120); });
  auto misses = constant<int>(e, S, -1), frames = constant<int>(e, size_t(S) * W, -2);
  Job j;
  j.mbytes = 2e-6 * S * T;
  j.add(clock_hand, ClockCfg{}, pages.view(S, T), misses.view(S), frames.view(S, W));
  j.check = [=] {
    std::vector<double> missed(S), held(size_t(S) * W, -1.);
    for (int s = 0; s < S; ++s) {
      std::vector<bool> marked(W);
      double* own = &held[size_t(s) * W];
      for (int t = 0, hand = 0; t < T; ++t) {
        const double page = pages[size_t(s) * T + t];
        int at = int(std::find(own, own + W, page) - own);
        if (at == W) {
          while (marked[hand]) marked[hand] = false, hand = (hand + 1) % W;
          at = hand, hand = (hand + 1) % W, own[at] = page, missed[s] += 1;
        }
        marked[at] = true;
      }
    }
    const auto wrong = agree(misses.now(), missed, 0.1, 0);
    return wrong.empty() ? agree(frames.now(), held, 0.1, 0) : wrong;
  };
  return j;
});

// --- a pattern in text with up to two errors (Wu and Manber): a bit for every prefix, a word for every number of
// errors. Every element goes through its 64 bytes, eight in a word, after as many as a match may begin before
struct BitapCfg {
  int B = 256, words = 8, before = 2, warps = 8;
};
auto bitap =
    kernel("user_bitap", [](const BitapCfg& c, Ptr<const uint64_t> text, Ptr<const uint64_t> masks, I32 length,
                            Tensor<uint8_t, 2> ends, I32 words) {
      num_warps(c.warps);
      auto segment = program_id(0) * c.B + arange(0, c.B);
      Tile state[3], count[3];
      for (int k = 0; k < 3; ++k) state[k] = full({c.B}, (1 << k) - 1, u64), count[k] = zeros({c.B}, u32);
      auto last = full({c.B}, 1, u64) << (length - 1);
      for (auto w : range(-c.before, c.words)) {
        auto at = segment * c.words + w;
        auto in = (at >= 0) & (at < words), counted = in & (w >= 0);
        Tile bytes = load(text + at, {.mask = in});
        for (int b = 0; b < 8; ++b) {
          auto mask = load(masks + (bytes & 255));
          bytes = bytes >> 8;
          Tile before = state[0], now = ((before << 1) | 1) & mask;
          state[0] = now;
          for (int k = 1; k < 3; ++k) {
            auto next = (((state[k] << 1) | 1) & mask) | before | (before << 1) | (now << 1) | 1;
            before = state[k], now = next, state[k] = next;
          }
          for (int k = 0; k < 3; ++k) count[k] += cast(((state[k] & last) != 0) & counted, u32);
        }
      }
      auto column = [&](int k) { return saturate(count[k], u8).col(); };
      ends.store({program_id(0) * c.B, 0}, cat(cat(column(0), column(1), 1), column(2), 1));
    }).grid([](const BitapCfg& c, auto, auto, int, const auto& ends, int) { return Grid{cdiv(ends.shape[0], c.B)}; });
Register r5("bitap", [](Env& e) {
  const std::string pattern = "abcabdacbab";  // 13 bytes with two more in between: within two words
  const int m = int(pattern.size()), n = e.big ? 1 << 28 : 64 * 300 - 24, segments = (n + 63) / 64;
  auto text = drawn<uint8_t>(e, n, [&, left = 0]() mutable {  // the pattern, now and then, with letters changed
    if (left == 0 && e.uniform() < 0.04) left = m;
    const uint8_t other = uint8_t('a' + int(e.uniform() * 4));
    if (left > 0 && e.uniform() < 0.1) return other;
    return left > 0 ? uint8_t(pattern[m - left--]) : other;
  });
  std::vector<uint64_t> table(256);
  for (int i = 0; i < m; ++i) table[uint8_t(pattern[i])] |= uint64_t(1) << i;
  auto masks = repeated<uint64_t>(e, 256, table);
  auto ends = constant<uint8_t>(e, size_t(segments) * 3, 200);
  Job j;
  j.mbytes = 1e-6 * n;
  j.add(bitap, BitapCfg{}, reinterpret_cast<const uint64_t*>(text.p), masks.p, m, ends.view(segments, 3), n / 8);
  j.check = [=] {
    std::vector<double> want(size_t(segments) * 3);
    std::vector<int> d(m + 1), above(m + 1);  // errors of the best match of every prefix that ends here (Sellers)
    std::iota(d.begin(), d.end(), 0);
    for (int i = 0; i < n; ++i) {
      above.swap(d);
      for (int p = 1; p <= m; ++p)
        d[p] = std::min({above[p - 1] + (text.at(i) != uint8_t(pattern[p - 1])), above[p] + 1, d[p - 1] + 1});
      for (int k = 0; k < 3; ++k) want[size_t(i / 64) * 3 + k] += d[m] <= k;
    }
    return agree(ends.now(), want, 0.1, 0);
  };
  return j;
});

}  // namespace own_paces
}  // namespace users
