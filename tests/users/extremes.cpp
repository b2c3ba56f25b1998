// extremes.cpp - numbers at the ends of their ranges where loops begin and end: windows of rows that are empty because
// their least and largest place were never set; and zeros that have a sign, chosen by sums.
#include <limits>

#include "tests/users/use.h"
namespace users {
namespace extremes {

// --- decayed sums over a window of each sequence, as a pass before left it: [least, largest + 1), where a sequence
// without any place still has what both began with
struct Windows {
  int D = 128;
};
auto windows = kernel("user_windows", [](const Windows& c, Tensor<const float, 2> x, Ptr<const int32_t> first,
                                         Ptr<const int32_t> last, Tensor<float, 2> y, Ptr<int32_t> count) {
                 auto b = program_id(0);
                 Tile low = load(first + b), high = load(last + b);
                 Tile state = zeros({c.D}, f32), steps = zeros({}, i32);
                 for (auto t : range(low, high)) {
                   state = state * 0.5f + x.load({t, 0}, {c.D});
                   steps += 1;
                 }
                 Tile coarse = zeros({c.D}, f32);  // every eighth row, from the end
                 for (auto t : range(high - 1, low - 1, -8)) coarse += x.load({t, 0}, {c.D});
                 y.store({b, 0}, state), y.store({b, c.D}, coarse);
                 store(count + b, steps);
               }).grid([](const Windows&, const auto&, const int32_t*, const int32_t*, const auto& y, int32_t*) {
  return Grid{y.shape[0]};
});
Register w1("windows", [](Env& e) {
  const int B = e.big ? 128 : 4, T = e.big ? 8192 : 60, D = 128;
  constexpr int kNone = std::numeric_limits<int>::max() / 2;  // of a window without places: [kNone, -kNone)
  auto x = random<float>(e, size_t(T) * D);
  auto first = filled<int32_t>(e, B, [&](size_t b) { return b % 4 == 1 ? kNone + 77 : int(b % 4 * 5); });
  auto last = filled<int32_t>(e, B, [&](size_t b) { return b % 4 == 1 ? -kNone : b % 4 == 2 ? 3 : T - int(b % 4); });
  auto y = constant<float>(e, size_t(B) * 2 * D, 9);
  auto count = constant<int32_t>(e, B, 9);
  Job j;
  j.add(windows, Windows{D}, x.view(T, D), first.p, last.p, y.view(B, 2 * D), count.p);
  j.mbytes = 1e-6 * B * T * D * 4 / 2;
  j.check = [=]() -> std::string {
    std::vector<double> want, steps;
    for (int b = 0; b < B; ++b) {
      std::vector<double> state(D), coarse(D);
      for (int64_t t = first.h[b]; t < last.h[b]; ++t)
        for (int d = 0; d < D; ++d) state[d] = state[d] * 0.5 + x[t * D + d];
      for (int64_t t = int64_t(last.h[b]) - 1; t > int64_t(first.h[b]) - 1; t -= 8)
        for (int d = 0; d < D; ++d) coarse[d] += x[t * D + d];
      steps.push_back(last.h[b] > first.h[b] ? last.h[b] - first.h[b] : 0);
      want.insert(want.end(), state.begin(), state.end());
      want.insert(want.end(), coarse.begin(), coarse.end());
    }
    if (auto s = agree(count.now(), steps, 0.1, 0); !s.empty()) return "steps: " + s;
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- one over the element that each step picks: of -0 beside zeros the sum is 0, and the quotient above everything
struct Picks {
  int N = 128;
};
auto picks = kernel("user_picks", [](const Picks& c, Ptr<const float> x, Ptr<const int32_t> order, Ptr<float> y,
                                     Ptr<float> z, I32 steps) {
               auto b = program_id(0);
               Tile i = arange(0, c.N), v = load(x + (b * c.N + i));
               for (auto s : range(0, steps)) {
                 Tile at = load(order + (b * steps + s));
                 store(y + (b * steps + s), div_rn(Tile(1.f), sum(where(i == at, v, 0.f))));
                 store(z + (b * steps + s), div_rn(Tile(1.f), sum(where(i == at, v, -0.f))));
               }
             }).grid([](const Picks& c, const float*, const int32_t*, float*, float*, int) { return Grid{6}; });
Register w2("picks", [](Env& e) {
  const int B = 6, N = 128, S = e.big ? 4096 : 40;
  auto x = filled<float>(e, size_t(B) * N, [](size_t i) { return i % 3 == 0 ? -0.f : i % 3 == 1 ? 0.f : float(i % 7) - 3; });
  auto order = integers<int32_t>(e, size_t(B) * S, 0, N + 5);  // some are behind the last element
  auto y = constant<float>(e, size_t(B) * S, 9), z = constant<float>(e, size_t(B) * S, 9);
  Job j;
  j.add(picks, Picks{N}, x.p, order.p, y.p, z.p, S);
  j.check = [=]() -> std::string {
    std::vector<double> one, other;
    for (int b = 0; b < B; ++b)
      for (int s = 0; s < S; ++s) {
        const int at = order.h[b * S + s];
        one.push_back(1 / (at < N ? x[b * N + at] + 0. : 0.));
        other.push_back(1 / (at < N ? x[b * N + at] : -0.));
      }
    if (auto s = agree(y.now(), one, 0, 1e-6); !s.empty()) return "beside 0: " + s;
    return agree(z.now(), other, 0, 1e-6);
  };
  return j;
});

// --- what is left of each row behind a start that may be past its end, in blocks: rows of which nothing is left have
// none, however far the start is
struct Left {
  int BLOCK = 64;
};
auto left_over = kernel("user_left_over", [](const Left& c, Tensor<const float, 2> x, Ptr<const int32_t> starts,
                                             Ptr<const int32_t> ends, Ptr<float> sums, Ptr<int32_t> blocks) {
                   auto b = program_id(0);
                   Tile start = load(starts + b), end = load(ends + b);
                   Tile sum_of = zeros({c.BLOCK}, f32), count = zeros({}, i32);
                   for (auto k : range(0, cdiv(end - start, c.BLOCK))) {
                     auto at = start + k * c.BLOCK + arange(0, c.BLOCK);
                     sum_of += where(at < end, x.load({b, start + k * c.BLOCK}, {c.BLOCK}), 0.f);
                     count += 1;
                   }
                   store(sums + b, sum(sum_of)), store(blocks + b, count);
                 }).grid([](const Left&, const auto& x, const int32_t*, const int32_t*, float*, int32_t*) {
  return Grid{x.shape[0]};
});
Register w3("left_over", [](Env& e) {
  const int B = e.big ? 4096 : 7, T = e.big ? 4096 : 200;
  auto x = random<float>(e, size_t(B) * T);
  auto starts = filled<int32_t>(e, B, [&](size_t b) { return b % 3 == 1 ? T + int(b) * 100003 : int(b * 37 % T); });
  auto ends = filled<int32_t>(e, B, [&](size_t b) { return b % 5 == 4 ? 0 : T - int(b % 9); });
  auto sums = constant<float>(e, B, 9);
  auto blocks = constant<int32_t>(e, B, 9);
  Job j;
  j.add(left_over, Left{64}, x.view(B, T), starts.p, ends.p, sums.p, blocks.p);
  j.mbytes = 1e-6 * B * T * 4 / 3;
  j.check = [=]() -> std::string {
    std::vector<double> want, counts;
    for (int b = 0; b < B; ++b) {
      double all = 0;
      for (int64_t t = starts.h[b]; t < ends.h[b]; ++t) all += x[size_t(b) * T + t];
      want.push_back(all), counts.push_back(std::max(0, (ends.h[b] - starts.h[b] + 63) / 64));
    }
    if (auto s = agree(blocks.now(), counts, 0.1, 0); !s.empty()) return "blocks: " + s;
    return agree(sums.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- filters over what each place has around it, with lags counted without a sign: the first ones lie so far past the
// end that they are nowhere, and no neighbour's lag is one more than theirs
struct Around {
  int R = 128, K = 64;
};
auto around = kernel("user_around", [](const Around& c, Ptr<const float> x, Ptr<const float> h, Ptr<float> y, I64 n) {
                auto b = program_id(0);
                Tile lags = cast(cast(arange(-5, c.R - 5), u32), u64);
                Tile k = arange(0, c.K);
                Tile at = bitcast(lags, i64).col() + cast(k, i64).row();
                Tile v = load(x + at, {.mask = (at >= 0) & (at < n)});
                store(y + (b * c.R + arange(0, c.R)), squeeze(sum(v * load(h + (b * c.K + k)).row(), axis(1)), 1));
              }).grid([](const Around&, const float*, const float*, float*, int64_t) { return Grid{5}; });
Register w4("around", [](Env& e) {
  const int B = 5, R = 128, K = 64, n = R + K / 2;
  auto x = random<float>(e, n), h = random<float>(e, size_t(B) * K);
  auto y = constant<float>(e, size_t(B) * R, 9);
  Job j;
  j.add(around, Around{R, K}, x.p, h.p, y.p, n);
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(B) * R);
    for (int b = 0; b < B; ++b)
      for (int r = 0; r < R; ++r)
        for (int k = 0; k < K; ++k)
          if (const int64_t at = int64_t(uint32_t(r - 5)) + k; at < n) want[b * R + r] += x[at] * h[b * K + k];
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- counts of steps from before the first one, in a loop of one iteration and by steps of 1 (folded while compiling)
struct Before {
  int STEP = 1, ROUNDS = 1;
};
auto before = kernel("user_before", [](const Before& c, Ptr<const int32_t> places, Ptr<int32_t> y, I32 first) {
                auto b = program_id(0);
                for (auto i : range(0, c.ROUNDS)) {
                  store(y + (b * 3 + 0), cdiv(load(places + b) - first, c.STEP));
                  store(y + (b * 3 + 1), cdiv(i - 2, 3));
                  store(y + (b * 3 + 2), sum(cdiv(arange(0, 16) - 9, c.STEP)));
                }
              }).grid([](const Before&, const int32_t*, int32_t*, int) { return Grid{4}; });
Register w5("before", [](Env& e) {
  const int first = 12;
  auto places = repeated<int32_t>(e, 4, {3, 12, 20, 60});
  auto y = constant<int32_t>(e, 12, 99), y2 = constant<int32_t>(e, 12, 99);
  Job j;
  j.add(before, Before{1}, places.p, y.p, first);
  j.add(before, Before{5}, places.p, y2.p, first);
  j.check = [=]() -> std::string {
    for (int step : {1, 5}) {
      auto count = [&](int left) { return left > 0 ? (left + step - 1) / step : 0; };
      std::vector<double> want;
      for (int b = 0; b < 4; ++b) {
        int all = 0;
        for (int i = 0; i < 16; ++i) all += count(i - 9);
        want.insert(want.end(), {double(count(places.h[b] - first)), 0., double(all)});
      }
      if (auto s = agree((step == 1 ? y : y2).now(), want, 0.1, 0); !s.empty()) return "steps: " + s;
    }
    return "";
  };
  return j;
});

}  // namespace extremes
}  // namespace users
