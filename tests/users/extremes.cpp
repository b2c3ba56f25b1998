// extremes.cpp - numbers at the ends of their ranges where loops begin and end: windows of rows that are empty because
// their least and largest place were never set; and zeros that have a sign, chosen by sums.
#include <limits>

#include "tests/users/use.h"
namespace users {
namespace {

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

}  // namespace
}  // namespace users
