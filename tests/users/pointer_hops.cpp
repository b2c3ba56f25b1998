// pointer_hops.cpp - indices that are read from the table they lead into, several steps one behind the other: parents
// of parents, ranks of lists by doubling, roots of unrolled walks; with masks, in i32 and i64.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace pointer_hops {

struct Hops {
  int B = 128, hops = 2;
};
template <class T>
auto make_hops(const char* name) {
  return kernel(name,
                [](const Hops& c, Ptr<const T> parent, Ptr<T> out, I32 n) {
                  Tile at = program_id(0) * c.B + arange(0, c.B), i = cast(at, dtype_of<T>());
                  auto m = at < n;
                  for (int k = 0; k < c.hops; ++k) i = load(parent + i, {.mask = m});
                  store(out + at, i, {.mask = m});
                })
      .grid([](const Hops& c, const T*, T*, int n) { return Grid{cdiv(n, c.B)}; });
}
auto hops32 = make_hops<int32_t>("user_hops_i32");
auto hops64 = make_hops<int64_t>("user_hops_i64");
template <class T, class K>
Job hops_of(Env& e, const K& k) {
  const int n = e.big ? 1 << 22 : 301;
  auto parent = integers<T>(e, n, 0, n);
  Job j;
  std::vector<Array<T>> outs;
  for (int hops : {1, 2, 5}) {
    if (e.big && hops != 2) continue;
    outs.push_back(constant<T>(e, n, -1));
    j.add(k, Hops{e.field("B", 128), e.field("hops", hops)}, parent.p, outs.back().p, n);
  }
  j.mbytes = n * sizeof(T) * 2e-6;
  j.check = [=]() -> std::string {
    for (size_t o = 0; o < outs.size(); ++o) {
      std::vector<double> want;
      for (int i = 0; i < n; ++i) {
        int64_t at = i;
        for (int h = 0; h < std::array{1, 2, 5}[o]; ++h) at = parent.h[at];
        want.push_back(double(at));
      }
      if (auto s = agree(outs[o].now(), want, 0.1, 0); !s.empty()) return std::to_string(o) + ": " + s;
    }
    return "";
  };
  return j;
}
Register h1("hops_i32", [](Env& e) { return hops_of<int32_t>(e, hops32); });
Register h2("hops_i64", [](Env& e) { return hops_of<int64_t>(e, hops64); });

// --- ranks of linked lists: in every pass distances and successors of the successor are taken over, twice in a launch
struct Ranks {
  int B = 64;
};
auto list_ranks = kernel("user_list_ranks", [](const Ranks& c, Ptr<const int32_t> next, Ptr<const int32_t> far,
                                               Ptr<int32_t> next2, Ptr<int32_t> far2, I32 n) {
                    auto at = program_id(0) * c.B + arange(0, c.B);
                    auto m = at < n;
                    Tile one = load(next + at, {.mask = m}), two = load(next + one, {.mask = m}),
                         three = load(next + two, {.mask = m});
                    Tile d = load(far + at, {.mask = m}) + load(far + one, {.mask = m}) + load(far + two, {.mask = m});
                    store(next2 + at, three, {.mask = m}), store(far2 + at, d, {.mask = m});
                  }).grid([](const Ranks& c, const int32_t*, const int32_t*, int32_t*, int32_t*, int n) {
  return Grid{cdiv(n, c.B)};
});
Register h3("list_ranks", [](Env& e) {
  const int n = e.big ? 1 << 22 : 243, passes = e.big ? 1 : 5;
  std::vector<int32_t> order(n), next(n), far(n, 1);
  std::iota(order.begin(), order.end(), 0);
  for (int i = n - 1; i > 0; --i) std::swap(order[i], order[size_t(e.uniform() * i)]);
  for (int i = 0; i < n; ++i) next[order[i]] = order[std::min(i + 1, n - 1)];
  far[order[n - 1]] = 0;
  auto na = repeated<int32_t>(e, n, next), fa = repeated<int32_t>(e, n, far);
  auto nb = constant<int32_t>(e, n, 0), fb = constant<int32_t>(e, n, 0);
  Job j;
  j.inTurn = true;
  restore(e, j, na, fa);
  for (int p = 0; p < passes; ++p) {
    auto [n0, f0, n1, f1] = p % 2 ? std::tuple(nb.p, fb.p, na.p, fa.p) : std::tuple(na.p, fa.p, nb.p, fb.p);
    j.add(list_ranks, Ranks{}, n0, f0, n1, f1, n);
  }
  j.check = [=] {
    std::vector<double> want(n);
    for (int i = 0; i < n; ++i) want[order[i]] = n - 1 - i;
    return agree(fb.now(), want, 0.1, 0);
  };
  return j;
});

}  // namespace pointer_hops
}  // namespace users
