// rows_in_place.cpp - arrays that a program updates while it reads them: rows that depend on those just written,
// upwards, downwards, at a distance that is known at launch, beside each other, through pointers and by number.
#include "tests/users/use.h"
namespace users {
namespace rows_in_place {
struct LineCfg {
  int B = 128, warps = 4;
};
// mode 0: p - 1, p counting up; 1: p + 1, counting down; 2: p - k; 3: neighbours of the row before (other threads')
template <int mode>
auto line(const char* name) {
  return kernel(name,
                [](const LineCfg& c, Tensor<float, 2> X, I32 k) {
                  num_warps(c.warps);
                  auto l = program_id(0) * c.B;
                  auto row = [&](const Tile& p, int shift) { return X.load({p, l + shift}, {c.B}); };
                  auto n = X.dim(0);
                  auto step = [&](const Tile& p) {
                    Tile before = mode == 0   ? row(p - 1, 0)
                                  : mode == 1 ? row(p + 1, 0)
                                  : mode == 2 ? row(p - k, 0)
                                              : row(p - 1, 1) + row(p - 1, -1);
                    X.store({p, l}, (row(p, 0) + 0.5f * before).row());
                  };
                  if (mode == 1) {
                    for (auto p : range(n - 2, -1, -1)) step(p);
                  } else {
                    for (auto p : range(mode == 2 ? k : full({}, 1, i32), n)) step(p);
                  }
                })
      .grid([](const LineCfg& c, const auto& x, int) { return Grid{mode == 3 ? 1 : cdiv(x.shape[1], c.B)}; });
}
auto line0 = line<0>("user_line_up"), line1 = line<1>("user_line_down"), line2 = line<2>("user_line_back"),
     line3 = line<3>("user_line_beside");
template <class K>
Register lines(const char* name, int mode, K k) {
  return Register(name, [=](Env& e) {
    const int n = e.big ? 512 : 45, L = mode == 3 ? (e.big ? 128 : 101) : e.big ? 65536 : 301, by = 3;
    auto x = random<float>(e, size_t(n) * L);
    Job j;
    restore(e, j, x);
    j.inTurn = true;
    j.mbytes = 8e-6 * n * L;
    j.add(k, LineCfg{}, x.view(n, L), by);
    j.check = [=] {
      std::vector<double> want(size_t(n) * L);
      for (size_t i = 0; i < want.size(); ++i) want[i] = x[i];
      auto at = [&](int p, int l) -> double { return l < 0 || l >= L ? 0 : want[size_t(p) * L + l]; };
      for (int q = 0; q < n; ++q) {
        const int p = mode == 1 ? n - 1 - q : q;
        for (int l = 0; l < L; ++l) {
          double before = 0;
          if (mode == 0 && p > 0) before = at(p - 1, l);
          if (mode == 1 && p < n - 1) before = at(p + 1, l);
          if (mode == 2 && p >= by) before = at(p - by, l);
          if (mode == 3 && p > 0) before = at(p - 1, l + 1) + at(p - 1, l - 1);
          want[size_t(p) * L + l] += .5 * before;
        }
      }
      return agree(x.now(), want, 1e-5, 1e-5);
    };
    return j;
  });
}
Register r0 = lines("line_up", 0, line0), r1 = lines("line_down", 1, line1), r2 = lines("line_back", 2, line2),
         r3 = lines("line_beside", 3, line3);

// --- the same through pointers: a row of Pascal's triangle modulo a prime, in place, from its end
auto pascal = kernel("user_pascal", [](const LineCfg& c, Ptr<uint32_t> row, I32 n) {
                num_warps(c.warps);
                auto i = arange(0, c.B);
                auto at = program_id(0) * c.B + i;
                for (auto k : range(n)) {
                  auto left = load(row + (at - 1), {.mask = i > 0});
                  auto own = load(row + at);
                  store(row + at, (own + left) % 65521u);
                }
              }).grid([](const LineCfg&, uint32_t*, int) { return Grid{64}; });
Register r4("pascal", [](Env& e) {
  const int B = 128, n = e.big ? 1000 : 60;
  auto row = filled<uint32_t>(e, 64 * B, [&](size_t i) { return uint32_t(i % B == 0); });
  Job j;
  restore(e, j, row);
  j.inTurn = true;
  j.add(pascal, LineCfg{}, row.p, n);
  j.check = [=] {
    std::vector<uint32_t> r(B);
    r[0] = 1;
    for (int k = 0; k < n; ++k)
      for (int i = B - 1; i > 0; --i) r[i] = (r[i] + r[i - 1]) % 65521u;
    std::vector<double> want;
    for (int p = 0; p < 64; ++p) want.insert(want.end(), r.begin(), r.end());
    return agree(row.now(), want, .1, 0);
  };
  return j;
});

// --- rows by number, in place: row[next] += row[from], where both come from a list in memory
auto chain = kernel("user_chain_rows", [](const LineCfg& c, Tensor<float, 2> X, Ptr<const int32_t> from,
                                          Ptr<const int32_t> to, I32 n) {
               num_warps(c.warps);
               auto l = program_id(0) * c.B;
               for (auto k : range(n)) {
                 auto a = load(from + k), b = load(to + k);
                 X.store({b, l}, (X.load({b, l}, {c.B}) * 0.5f + X.load({a, l}, {c.B})).row());
               }
             }).grid([](const LineCfg& c, const auto& x, const int32_t*, const int32_t*, int) {
  return Grid{cdiv(x.shape[1], c.B)};
});
Register r5("chain_rows", [](Env& e) {
  const int R = 40, L = e.big ? 65536 : 200, n = e.big ? 512 : 99;
  auto x = random<float>(e, size_t(R) * L);
  auto from = integers<int32_t>(e, n, 0, R), to = integers<int32_t>(e, n, 0, R);
  Job j;
  restore(e, j, x);
  j.inTurn = true;
  j.add(chain, LineCfg{}, x.view(R, L), from.p, to.p, n);
  j.check = [=] {
    std::vector<double> want;
    for (size_t i = 0; i < x.n; ++i) want.push_back(x[i]);
    for (int k = 0; k < n; ++k)
      for (int l = 0; l < L; ++l)
        want[size_t(to.h[k]) * L + l] = want[size_t(to.h[k]) * L + l] * .5 + want[size_t(from.h[k]) * L + l];
    return agree(x.now(), want, 1e-3, 1e-4);
  };
  return j;
});

}  // namespace rows_in_place
}  // namespace users
