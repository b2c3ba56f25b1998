// doubled_inverse.cpp - the inverse of 1 + A of a chunk (delta rule) by doubling, with products of tf32 of small tiles.
#include "tests/users/use.h"
namespace users {
namespace doubled_inverse {

struct LaCfg {
  int BT = 64, warps = 4;
};
auto inverse = kernel("user_doubled_inverse", [](const LaCfg& c, Ptr<const float> A, Ptr<float> R, I32 T) {
                 num_warps(c.warps);
                 auto t = program_id(0) * c.BT + arange(0, c.BT), s = arange(0, c.BT);
                 auto p = A + cast(program_id(1), i64) * T * c.BT + (t.col() * c.BT + s.row());
                 Tile a = load(p, {.mask = (t.col() < T) & (s.col() > s.row())});
                 Tile r = cast(s.col() == s.row(), f32) - a, q = a;
                 for (int n = 2; n < c.BT; n *= 2) {  // (1 - a)(1 + a^2)(1 + a^4) ...
                   q = dot(q, q, zeros({c.BT, c.BT}, f32), Prec::tf32);
                   r = dot(r, q, r, Prec::tf32);
                 }
                 store(R + cast(program_id(1), i64) * T * c.BT + (t.col() * c.BT + s.row()), r, {.mask = t.col() < T});
               }).grid([](const LaCfg& c, auto, auto, int T) {
  return Grid{cdiv(T, c.BT), 3};
});
Register r0("doubled_inverse", [](Env& e) {
  LaCfg c;
  c.BT = e.field("BT", e.big ? 64 : 32), c.warps = e.field("warps", 4);
  const int T = e.big ? 65536 : 83, H = 3, BT = c.BT;
  auto a = random<float>(e, size_t(T) * H * BT, -.2, .2);
  auto r = constant<float>(e, size_t(T) * H * BT, NAN);
  Job j;
  j.add(inverse, c, a.p, r.p, T);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * BT);
    for (int h = 0; h < H; ++h)
      for (int t0 = 0; t0 < T; t0 += BT)
        for (int i = 0; i < BT && t0 + i < T; ++i) {
          double* w = &want[(size_t(h) * T + t0) * BT];
          w[i * BT + i] = 1;
          for (int k = 0; k < i; ++k)
            for (int s = 0; s <= k; ++s) w[i * BT + s] -= a[(size_t(h) * T + t0 + i) * BT + k] * w[k * BT + s];
        }
    return agree(r.now(), want, 5e-3, 5e-3);
  };
  return j;
});

}  // namespace doubled_inverse
}  // namespace users
