// swept_chunks.h - what kernels of chunked linear attention share: their sizes, and views of the rows of one head,
// which lie the stride of all heads apart. q, k, w [B, T, H, K], v, u, o [B, T, H, V], g (sums inside chunks), beta [B,
// T, H], states [B, NT, H, K, V].
#pragma once
#include "tests/users/use.h"
namespace users {

struct FlaCfg {
  int H = 32, K = 128, V = 128, BT = 64, BK = 64, BV = 64, stages = 3, warps = 4, gate = 1, dw = 0;
};
inline FlaCfg fla_cfg(Env& e, FlaCfg c) {
  if (!e.big) c = {2, 40, 24, 16, 16, 16, 2, 1};
  c.BT = e.field("BT", c.BT), c.BK = e.field("BK", c.BK), c.BV = e.field("BV", c.BV);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  return c;
}
struct Lengths {
  int B, T, NT;
  Lengths(const Env& e, const FlaCfg& c) : B(e.big ? 4 : 2), T(e.big ? 4096 : 56), NT(cdiv(T, c.BT)) {}
};
/// Sums of logarithms of gates inside each chunk.
inline Array<float> gate_sums(Env& e, const FlaCfg& c, const Lengths& l) {
  std::vector<double> sum(c.H);
  return filled<float>(e, size_t(l.B) * l.T * c.H, [&](size_t i) {
    if (i / c.H % l.T % c.BT == 0) sum[i % c.H] = 0;
    return static_cast<float>(sum[i % c.H] -= .1 * e.uniform());
  });
}
/// Rows of head h of sequence b, [T, width] of an array [B, T, H, width]; turned: [width, T].
template <class T>
auto rows_of(const FlaCfg& c, Ptr<T> p, const Tile& b, const Tile& h, I32 t, int width) {
  return make_view<T>(p + (b * t * c.H + h) * width, {t, width}, {c.H * width, 1});
}
template <class T>
auto turned_rows_of(const FlaCfg& c, Ptr<T> p, const Tile& b, const Tile& h, I32 t, int width) {
  return make_view<T>(p + (b * t * c.H + h) * width, {width, t}, {1, c.H * width});
}
/// The state in front of chunk t, [K, V].
template <class T>
auto state_of(const FlaCfg& c, Ptr<T> p, const Tile& b, const Tile& h, const Tile& NT, const Tile& t) {
  return make_view<T>(p + ((b * NT + t) * c.H + h) * (c.K * c.V), {c.K, c.V}, {c.V, 1});
}

template <class T>
auto turned_state_of(const FlaCfg& c, Ptr<T> p, const Tile& b, const Tile& h, const Tile& NT, const Tile& t) {
  return make_view<T>(p + ((b * NT + t) * c.H + h) * (c.K * c.V), {c.V, c.K}, {1, c.V});
}
/// Sums of gates of one head, [T].
template <class T>
auto gates_of(const FlaCfg& c, Ptr<T> g, const Tile& b, const Tile& h, I32 t) {
  return make_view<T>(g + (b * t * c.H + h), {t}, {c.H});
}

}  // namespace users
