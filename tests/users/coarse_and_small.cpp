// coarse_and_small.cpp - the unknowns of a sparse matrix put into groups for algebraic multigrid: strong couplings, an
// independent set of roots in rounds, everyone else to the strongest root; and Hermitian 6 x 6 blocks of a lattice
// inverted a site a lane.
#include <complex>

#include "tests/users/use.h"
namespace users {
namespace coarse_and_small {

// --- aggregation: rows of a sparse matrix by W lanes each. A coupling is strong where a_ij^2 > theta^2 a_ii a_jj. Of
// the undecided the one with the largest key among its strong neighbours becomes a root, its neighbours do not; rounds
// go on until nobody is undecided
struct GroupCfg {
  int B = 64, W = 8, warps = 4;
};
struct Sparse {
  Ptr<const int32_t> begins, columns;
};
/// Calls body(place [B, W], mask) for the elements of B rows, W at a time.
template <class Body>
void each_element(const GroupCfg& c, const Sparse& m, const Tile& rows, Expr n, Body body) {
  auto inside = rows < n;
  auto begin = load(m.begins + rows, {.mask = inside}).col(), end = load(m.begins + rows + 1, {.mask = inside}).col();
  for (auto i : range(0, max(end - begin), c.W)) {
    auto at = begin + i + arange(0, c.W).row();
    body(at, at < end);
  }
}
Tile key_of(Tile i) {  // any order of the unknowns that has nothing to do with their neighbourhood
  auto h = cast(i, u32) * 2654435761u;
  h = (h ^ (h >> 15)) * 0x2c1b3c6du;
  return cast(h ^ (h >> 12), u64) << 32 | cast(i, u64);
}
enum State : int8_t { undecided, root, member };

auto strength =
    kernel("user_strength", [](const GroupCfg& c, Ptr<const int32_t> begins, Ptr<const int32_t> columns,
                               Ptr<const double> values, Ptr<const double> diagonal, Ptr<uint8_t> strong, F64 theta,
                               I32 n) {
      num_warps(c.warps);
      auto rows = program_id(0) * c.B + arange(0, c.B);
      auto own = load(diagonal + rows, {.mask = rows < n}).col();
      each_element(c, {begins, columns}, rows, n, [&](Tile at, Tile there) {
        auto j = load(columns + at, {.mask = there});
        auto a = load(values + at, {.mask = there});
        auto limit = theta * theta * own * load(diagonal + j, {.mask = there});
        store(strong + at, cast((a * a > limit) & (j != rows.col()), u8), {.mask = there});
      });
    }).grid([](const GroupCfg& c, auto, auto, auto, auto, auto, double, int n) { return Grid{cdiv(n, c.B)}; });
auto choose_roots =
    kernel("user_choose_roots", [](const GroupCfg& c, Ptr<const int32_t> begins, Ptr<const int32_t> columns,
                                   Ptr<const uint8_t> strong, Ptr<int8_t> state, Ptr<const int32_t> left, I32 round,
                                   I32 n) {
      // A neighbour that others make a root meanwhile had the larger key: it stops us either way.
      num_warps(c.warps);
      return_if(load(left + round) == 0);
      auto rows = program_id(0) * c.B + arange(0, c.B);
      auto key = key_of(rows).col();
      auto begin = load(begins + rows, {.mask = rows < n}).col(),
           end = load(begins + rows + 1, {.mask = rows < n}).col();
      Tile first = load(state + rows, {.mask = rows < n, .other = member}) == undecided;
      Tile at = begin + arange(0, c.W).row();
      while_([&] { return any((at < end) & first.col()); },
             [&] {
               auto there = (at < end) & first.col();
               auto j = load(columns + at, {.mask = there});
               auto near = there & (load(strong + at, {.mask = there}) != 0);
               auto s = load(state + j, {.mask = near, .other = member});
               auto stops = (s == root) | ((s == undecided) & (key_of(j) > key));
               first = first & ~squeeze(any(stops & near, axis(1)), 1);
               at += c.W;
             });
      store(state + rows, full({c.B}, root, i8), {.mask = first});
    }).grid([](const GroupCfg& c, auto, auto, auto, auto, auto, int, int n) { return Grid{cdiv(n, c.B)}; });
auto choose_members =
    kernel("user_choose_members", [](const GroupCfg& c, Ptr<const int32_t> begins, Ptr<const int32_t> columns,
                                     Ptr<const uint8_t> strong, Ptr<int8_t> state, Ptr<int32_t> left, I32 round,
                                     I32 n) {
      num_warps(c.warps);
      return_if(load(left + round) == 0);
      auto rows = program_id(0) * c.B + arange(0, c.B);
      auto open = load(state + rows, {.mask = rows < n, .other = member}) == undecided;
      Tile found = zeros({c.B}, i1);
      each_element(c, {begins, columns}, rows, n, [&](Tile at, Tile there) {
        auto j = load(columns + at, {.mask = there});
        auto near = there & (load(strong + at, {.mask = there}) != 0);
        found = found | squeeze(any(load(state + j, {.mask = near, .other = member}) == root, axis(1)), 1);
      });
      store(state + rows, full({c.B}, member, i8), {.mask = open & found});
      atomic_add(left + round + 1, sum(cast(open & ~found, i32)), {.order = Order::relaxed});
    }).grid([](const GroupCfg& c, auto, auto, auto, auto, auto, int, int n) { return Grid{cdiv(n, c.B)}; });
auto number_roots = kernel("user_number_roots", [](const GroupCfg& c, Ptr<const int8_t> state, Ptr<int32_t> group,
                                                   Ptr<int32_t> count, I32 n) {
                      num_warps(c.warps);
                      auto rows = program_id(0) * c.B + arange(0, c.B);
                      auto is_root = load(state + rows, {.mask = rows < n, .other = member}) == root;
                      auto before = cumsum(is_root, axis(0));
                      auto base = atomic_add(count, sum(is_root));
                      store(group + rows, base + before - 1, {.mask = is_root});
                    }).grid([](const GroupCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto join_groups =
    kernel("user_join_groups", [](const GroupCfg& c, Ptr<const int32_t> begins, Ptr<const int32_t> columns,
                                  Ptr<const double> values, Ptr<const uint8_t> strong, Ptr<const int8_t> state,
                                  Ptr<int32_t> group, I32 n) {
      num_warps(c.warps);
      auto rows = program_id(0) * c.B + arange(0, c.B);
      auto joins = load(state + rows, {.mask = rows < n, .other = root}) == member;
      Tile best = zeros({c.B, 1}, f64), to = full({c.B, 1}, -1, i32);
      each_element(c, {begins, columns}, rows, n, [&](Tile at, Tile there) {
        auto j = load(columns + at, {.mask = there});
        auto near = there & (load(strong + at, {.mask = there}) != 0);
        auto candidate = near & (load(state + j, {.mask = near, .other = member}) == root);
        auto weight = abs(load(values + at, {.mask = candidate}));
        auto [w, who] = reduce({weight, where(candidate, j, -1)}, axis(1), [](Tile w0, Tile j0, Tile w1, Tile j1) {
          auto second = (w1 > w0) | ((w1 == w0) & (j1 > j0));
          return std::tuple(where(second, w1, w0), where(second, j1, j0));
        });
        auto better = w > best;
        best = where(better, w, best), to = where(better, who, to);
      });
      auto mine = joins & (squeeze(to, 1) >= 0);
      store(group + rows, load(group + squeeze(to, 1), {.mask = mine}), {.mask = mine});
    }).grid([](const GroupCfg& c, auto, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("aggregates", [](Env& e) {
  GroupCfg c;
  if (!e.big) c = {16, 4, 2};
  c.B = e.field("B", c.B), c.W = e.field("W", c.W), c.warps = e.field("warps", c.warps);
  const int side = e.big ? 1024 : 23, n = side * side, rounds = e.big ? 12 : 9;
  std::vector<int32_t> begins{0}, columns;
  std::vector<double> values, diagonal;
  auto link = [&](int i, int j) {  // the same both ways
    const uint32_t h = uint32_t(std::min(i, j)) * 2246822519u ^ uint32_t(std::max(i, j)) * 3266489917u;
    return double((h ^ h >> 13) % 1000 + 1) * 1e-3;
  };
  for (int i = 0; i < n; ++i) {
    double total = .01;
    const size_t own = columns.size();
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        const int y = i / side + dy, x = i % side + dx, j = y * side + x;
        if (y < 0 || x < 0 || y >= side || x >= side) continue;
        columns.push_back(j);
        const double a = i == j ? 0 : -link(i, j) * (dx == 0 ? 1 : dy == 0 ? .3 : .05);
        values.push_back(a), total -= a;
      }
    for (size_t k = own; k < columns.size(); ++k)
      if (columns[k] == i) values[k] = total;
    begins.push_back(int32_t(columns.size())), diagonal.push_back(total);
  }
  auto b = repeated<int32_t>(e, begins.size(), begins), col = repeated<int32_t>(e, columns.size(), columns);
  auto v = repeated<double>(e, values.size(), values), d = repeated<double>(e, diagonal.size(), diagonal);
  auto strong = constant<uint8_t>(e, values.size(), 7);
  auto state = constant<int8_t>(e, n, undecided);
  auto left = filled<int32_t>(e, rounds + 1, [&](size_t i) { return i == 0; });
  auto group = constant<int32_t>(e, n, -1);
  auto count = constant<int32_t>(e, 1, 0);
  const double theta = .08;
  Job j;
  j.mbytes = 1e-6 * (13. * double(values.size()) * 2 + 20. * n);
  j.inTurn = true;
  restore(e, j, state, left, count);
  j.add(strength, c, b.p, col.p, v.p, d.p, strong.p, theta, n);
  for (int r = 0; r < rounds; ++r) {
    j.add(choose_roots, c, b.p, col.p, strong.p, state.p, left.p, r, n);
    j.add(choose_members, c, b.p, col.p, strong.p, state.p, left.p, r, n);
  }
  j.add(number_roots, c, state.p, group.p, count.p, n);
  j.add(join_groups, c, b.p, col.p, v.p, strong.p, state.p, group.p, n);
  j.check = [=]() -> std::string {
    // Keys that are fixed make the set that one gets by taking the unknowns from the largest key down.
    std::vector<uint8_t> flags(values.size());
    for (int i = 0; i < n; ++i)
      for (int k = begins[i]; k < begins[i + 1]; ++k)
        flags[k] = columns[k] != i && values[k] * values[k] > theta * theta * diagonal[i] * diagonal[columns[k]];
    if (strong.now() != flags) return "strong couplings";
    auto key = [](int i) {
      uint32_t h = uint32_t(i) * 2654435761u;
      h = (h ^ h >> 15) * 0x2c1b3c6du;
      return uint64_t(h ^ h >> 12) << 32 | uint32_t(i);
    };
    std::vector<int> order(n), kind(n, undecided);
    for (int i = 0; i < n; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](int x, int y) { return key(x) > key(y); });
    int roots = 0;
    for (int i : order) {
      if (kind[i] != undecided) continue;
      kind[i] = root, ++roots;
      for (int k = begins[i]; k < begins[i + 1]; ++k)
        if (flags[k]) kind[columns[k]] = member;
    }
    const auto got = state.now();
    const auto groups = group.now();
    if (left.now().back() != 0) return "rounds are too few";
    if (count.now()[0] != roots) return "number of roots";
    std::vector<bool> used(roots);
    for (int i = 0; i < n; ++i) {
      if (got[i] != kind[i]) return "state of " + std::to_string(i);
      if (groups[i] < 0 || groups[i] >= roots) return "group of " + std::to_string(i);
      int to = i;
      double best = 0;
      for (int k = begins[i]; kind[i] == member && k < begins[i + 1]; ++k)
        if (flags[k] && kind[columns[k]] == root && std::abs(values[k]) > best)
          best = std::abs(values[k]), to = columns[k];
      if (to == i && used[groups[i]]) return "two roots with one number";
      if (to == i) used[groups[i]] = true;
      if (groups[i] != groups[to]) return "group of member " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- lattice QCD: the clover term of a site is two Hermitian blocks of 6 x 6, kept as 6 real numbers and 15 complex
// ones below the diagonal. Their inverses by L D L^H, and the sum of the logarithms of their determinants
struct CloverCfg {
  int B = 128, warps = 4;
};
struct Complex {
  Tile re, im;
};
Complex times(const Complex& a, const Complex& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Complex conjugate(const Complex& a) { return {a.re, -a.im}; }
constexpr int below(int i, int j) { return i * (i - 1) / 2 + j; }
auto clover_invert =
    kernel("user_clover_invert", [](const CloverCfg& c, Tensor<const float, 3> A, Tensor<float, 3> inverse,
                                    Ptr<double> log_det) {
      // A, inverse [2, 36, sites]: diagonals, then (re, im) of what lies below them, row by row; log_det [2]
      num_warps(c.warps);
      auto s = program_id(0) * c.B, block = program_id(1);
      auto element = [&](int k) { return A.load({block, k, s}, {c.B}); };
      std::array<Tile, 6> d, inverse_d;
      std::array<Complex, 15> l, m;
      for (int i = 0; i < 6; ++i) d[i] = element(i);
      for (int k = 0; k < 15; ++k) l[k] = {element(6 + 2 * k), element(7 + 2 * k)};
      auto live = s + arange(0, c.B) < A.dim(2);
      Tile logs = zeros({c.B}, f32);
      for (int j = 0; j < 6; ++j) {
        for (int k = 0; k < j; ++k) {
          const Complex& x = l[below(j, k)];
          d[j] -= (x.re * x.re + x.im * x.im) * d[k];
        }
        d[j] = where(live, d[j], 1.f);
        inverse_d[j] = 1.f / d[j], logs += log(d[j]);
        for (int i = j + 1; i < 6; ++i) {
          Complex& x = l[below(i, j)];
          for (int k = 0; k < j; ++k) {
            auto y = times(l[below(i, k)], conjugate(l[below(j, k)]));
            x.re -= y.re * d[k], x.im -= y.im * d[k];
          }
          x = {x.re * inverse_d[j], x.im * inverse_d[j]};
        }
      }
      for (int j = 0; j < 6; ++j)  // L^-1
        for (int i = j + 1; i < 6; ++i) {
          Complex x{-l[below(i, j)].re, -l[below(i, j)].im};
          for (int k = j + 1; k < i; ++k) {
            auto y = times(l[below(i, k)], m[below(k, j)]);
            x.re -= y.re, x.im -= y.im;
          }
          m[below(i, j)] = x;
        }
      for (int i = 0; i < 6; ++i)
        for (int j = 0; j <= i; ++j) {
          Complex x{zeros({c.B}, f32), zeros({c.B}, f32)};
          for (int k = i; k < 6; ++k) {
            Complex y{inverse_d[k], zeros({c.B}, f32)};
            if (k > i) y = times(y, conjugate(m[below(k, i)]));
            if (k > j) y = times(y, m[below(k, j)]);
            x.re += y.re, x.im += y.im;
          }
          if (i == j)
            inverse.store({block, i, s}, x.re);
          else
            inverse.store({block, 6 + 2 * below(i, j), s}, x.re), inverse.store({block, 7 + 2 * below(i, j), s}, x.im);
        }
      atomic_add(log_det + block, sum(cast(logs, f64)), {.order = Order::relaxed});
    }).grid([](const CloverCfg& c, const auto& a, const auto&...) {
      return Grid{cdiv(a.shape[2], c.B), 2};
    });
Register r2("clover_invert", [](Env& e) {
  CloverCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int V = e.big ? 1 << 20 : 75;
  auto a = filled<float>(e, size_t(72) * V,
                         [&](size_t i) { return float(i / V % 36 < 6 ? 2 + e.uniform() : .5 * (e.uniform() - .5)); });
  auto out = constant<float>(e, a.n, NAN);
  auto log_det = constant<double>(e, 2, 0);
  Job j;
  j.mbytes = 8e-6 * double(a.n);
  j.inTurn = true;
  restore(e, j, log_det);
  j.add(clover_invert, c, a.view(2, 36, V), out.view(2, 36, V), log_det.p);
  j.check = [=] {
    using Z = std::complex<double>;
    std::vector<double> want(a.n), logs(2);
    for (int p = 0; p < 2 * V; ++p) {
      const int block = p / V, s = p % V;
      auto place = [&](int k) { return (size_t(block) * 36 + k) * V + s; };
      Z m[6][12] = {};  // Gauss and Jordan, the unit matrix beside
      for (int i = 0; i < 6; ++i) {
        m[i][i] = a[place(i)], m[i][6 + i] = 1;
        for (int k = 0; k < i; ++k) {
          m[i][k] = Z(a[place(6 + 2 * below(i, k))], a[place(7 + 2 * below(i, k))]);
          m[k][i] = std::conj(m[i][k]);
        }
      }
      for (int i = 0; i < 6; ++i) {
        const Z pivot = m[i][i];
        logs[block] += std::log(pivot.real());
        for (Z& x : m[i]) x /= pivot;
        for (int r = 0; r < 6; ++r) {
          const Z f = m[r][i];
          for (int k = 0; r != i && k < 12; ++k) m[r][k] -= f * m[i][k];
        }
      }
      for (int i = 0; i < 6; ++i) {
        want[place(i)] = m[i][6 + i].real();
        for (int k = 0; k < i; ++k)
          want[place(6 + 2 * below(i, k))] = m[i][6 + k].real(), want[place(7 + 2 * below(i, k))] = m[i][6 + k].imag();
      }
    }
    if (auto wrong = agree(log_det.now(), logs, 1e-3, 1e-5); !wrong.empty()) return "determinants: " + wrong;
    return agree(out.now(), want, 1e-5, 1e-4);
  };
  return j;
});

}  // namespace coarse_and_small
}  // namespace users
