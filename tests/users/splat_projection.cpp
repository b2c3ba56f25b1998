// splat_projection.cpp - gradients of projected Gaussians (gsplat): from those of screen positions and inverse
// covariances to those of means, rotations and scales.
#include "tests/users/use.h"
namespace users {
namespace splat_projection {

struct ProjectionCfg {
  int B = 128, warps = 4;
};
/// Small matrices of tiles or scalars, row by row.
template <int R, int C>
struct Matrix {
  std::array<Tile, R * C> m;
  Tile& operator()(int i, int j) { return m[i * C + j]; }
  const Tile& operator()(int i, int j) const { return m[i * C + j]; }
  Matrix<C, R> turned() const {
    Matrix<C, R> t;
    for (int i = 0; i < R; ++i)
      for (int j = 0; j < C; ++j) t(j, i) = (*this)(i, j);
    return t;
  }
};
template <int R, int K, int C>
Matrix<R, C> operator*(const Matrix<R, K>& a, const Matrix<K, C>& b) {
  Matrix<R, C> c;
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < C; ++j) {
      c(i, j) = a(i, 0) * b(0, j);
      for (int k = 1; k < K; ++k) c(i, j) += a(i, k) * b(k, j);
    }
  return c;
}
Matrix<3, 3> rotation(const std::array<Tile, 4>& q) {
  const auto& [w, x, y, z] = q;
  return {{1.f - 2.f * (y * y + z * z), 2.f * (x * y - w * z), 2.f * (x * z + w * y),  //
           2.f * (x * y + w * z), 1.f - 2.f * (x * x + z * z), 2.f * (y * z - w * x),  //
           2.f * (x * z - w * y), 2.f * (y * z + w * x), 1.f - 2.f * (x * x + y * y)}};
}
std::array<Tile, 4> rotation_back(const std::array<Tile, 4>& q, const Matrix<3, 3>& r) {
  const auto& [w, x, y, z] = q;
  return {2.f * (z * (r(1, 0) - r(0, 1)) + y * (r(0, 2) - r(2, 0)) + x * (r(2, 1) - r(1, 2))),
          2.f * (y * (r(0, 1) + r(1, 0)) + z * (r(0, 2) + r(2, 0)) + w * (r(2, 1) - r(1, 2)) -
                 2.f * x * (r(1, 1) + r(2, 2))),
          2.f * (x * (r(0, 1) + r(1, 0)) + z * (r(1, 2) + r(2, 1)) + w * (r(0, 2) - r(2, 0)) -
                 2.f * y * (r(0, 0) + r(2, 2))),
          2.f * (x * (r(0, 2) + r(2, 0)) + y * (r(1, 2) + r(2, 1)) + w * (r(1, 0) - r(0, 1)) -
                 2.f * z * (r(0, 0) + r(1, 1)))};
}
auto projection_bwd =
    kernel("user_projection_bwd", [](const ProjectionCfg& c, Ptr<const float> means, Ptr<const float> quats,
                                     Ptr<const float> scales, Ptr<const float> camera, Ptr<const float> v_means2d,
                                     Ptr<const float> v_conics, Ptr<float> v_means, Ptr<float> v_quats,
                                     Ptr<float> v_scales, I32 n, F32 near_plane) {
      // camera: rows of the world-to-camera matrix [3, 4], then the two focal lengths
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n;
      auto read = [&]<int N>(std::integral_constant<int, N>, Ptr<const float> p) {
        std::array<Tile, N> x;
        for (int d = 0; d < N; ++d) x[d] = load(p + i * N + d, {.mask = in});
        return x;
      };
      constexpr std::integral_constant<int, 2> two;
      constexpr std::integral_constant<int, 3> three;
      constexpr std::integral_constant<int, 4> four;
      auto write = [&](Ptr<float> p, const auto& x, const Tile& seen) {
        const int count = int(x.size());
        for (int d = 0; d < count; ++d) store(p + i * count + d, where(seen, x[d], 0.f), {.mask = in});
      };
      Matrix<3, 3> W;
      Matrix<3, 1> mean{read(three, means)}, t;
      for (int r = 0; r < 3; ++r) {
        for (int k = 0; k < 3; ++k) W(r, k) = load(camera + (r * 4 + k));
        t(r, 0) = load(camera + (r * 4 + 3));
      }
      auto fx = load(camera + 12), fy = load(camera + 13);
      auto p = W * mean;
      auto x = p(0, 0) + t(0, 0), y = p(1, 0) + t(1, 0), z = p(2, 0) + t(2, 0);
      auto seen = z > near_plane;
      z = where(seen, z, 1.f);
      auto over_z = 1.f / z, over_z2 = over_z * over_z;
      auto none = zeros({c.B}, f32);
      Matrix<2, 3> jacobian{{fx * over_z, none, -fx * x * over_z2, none, fy * over_z, -fy * y * over_z2}};
      // the ellipsoid, its image
      auto q = read(four, quats);
      auto size = rsqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] + 1e-20f);
      for (Tile& component : q) component = component * size;
      auto R = rotation(q);
      auto s = read(three, scales);
      auto M = R;
      for (int k = 0; k < 9; ++k) M.m[k] = R.m[k] * s[k % 3];
      auto sigma = M * M.turned();
      auto T = jacobian * W;
      auto cov = T * sigma * T.turned();
      auto A = cov(0, 0) + .3f, B = cov(0, 1), C = cov(1, 1) + .3f, scale = 1.f / (A * C - B * B);
      Matrix<2, 2> conic{{C * scale, -B * scale, -B * scale, A * scale}};
      // and back
      auto vc = read(three, v_conics);
      auto vm = read(two, v_means2d);
      Matrix<2, 2> given{{vc[0], vc[1] * .5f, vc[1] * .5f, vc[2]}};
      auto v_cov = conic * given * conic;
      for (Tile& v : v_cov.m) v = -v;
      auto v_sigma = T.turned() * v_cov * T;
      auto v_j = v_cov * T * sigma * W.turned();  // half of it
      Matrix<3, 1> v_p{{(vm[0] * fx - 2.f * fx * over_z * v_j(0, 2)) * over_z,
                        (vm[1] * fy - 2.f * fy * over_z * v_j(1, 2)) * over_z,
                        over_z2 * (-vm[0] * fx * x - vm[1] * fy * y - 2.f * fx * v_j(0, 0) - 2.f * fy * v_j(1, 1) +
                                   4.f * over_z * (fx * x * v_j(0, 2) + fy * y * v_j(1, 2)))}};
      auto v_M = v_sigma * M;  // half of it
      std::array<Tile, 3> v_s;
      auto v_R = v_M;
      for (int k = 0; k < 3; ++k) {
        v_s[k] = 2.f * (R(0, k) * v_M(0, k) + R(1, k) * v_M(1, k) + R(2, k) * v_M(2, k));
        for (int r = 0; r < 3; ++r) v_R(r, k) = 2.f * v_M(r, k) * s[k];
      }
      auto v_q = rotation_back(q, v_R);
      auto along = q[0] * v_q[0] + q[1] * v_q[1] + q[2] * v_q[2] + q[3] * v_q[3];
      for (int k = 0; k < 4; ++k) v_q[k] = (v_q[k] - q[k] * along) * size;
      write(v_means, (W.turned() * v_p).m, seen);
      write(v_quats, v_q, seen);
      write(v_scales, v_s, seen);
    }).grid([](const ProjectionCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, int n, float) {
      return Grid{cdiv(n, c.B)};
    });

/// The loss whose gradients are wanted, of one Gaussian; means, rotation, scales in `v`.
double loss_of(const std::array<double, 10>& v, const std::vector<float>& camera, const double* given) {
  double p[3], q[4], norm = 0;
  for (int r = 0; r < 3; ++r) {
    p[r] = camera[r * 4 + 3];
    for (int k = 0; k < 3; ++k) p[r] += camera[r * 4 + k] * v[k];
  }
  for (int k = 0; k < 4; ++k) norm += v[3 + k] * v[3 + k];
  for (int k = 0; k < 4; ++k) q[k] = v[3 + k] / std::sqrt(norm);
  double cov[2][2] = {{.3, 0}, {0, .3}};
  const double fx = camera[12], fy = camera[13];
  for (int axis = 0; axis < 3; ++axis) {  // each half axis by itself: rotated, seen, its square
    const double w = q[0];
    double a[3] = {}, u[3], half[3] = {};
    a[axis] = v[7 + axis];
    for (int k = 0; k < 3; ++k) {  // a + 2 w (q x a) + 2 q x (q x a)
      auto cross = [&](const double* b, int d) {
        return q[1 + (d + 1) % 3] * b[(d + 2) % 3] - q[1 + (d + 2) % 3] * b[(d + 1) % 3];
      };
      const double c[3] = {cross(a, 0), cross(a, 1), cross(a, 2)};
      u[k] = a[k] + 2 * w * c[k] + 2 * cross(c, k);
    }
    for (int r = 0; r < 3; ++r)
      for (int k = 0; k < 3; ++k) half[r] += camera[r * 4 + k] * u[k];
    const double e[2] = {fx * (half[0] - p[0] / p[2] * half[2]) / p[2], fy * (half[1] - p[1] / p[2] * half[2]) / p[2]};
    for (int r = 0; r < 2; ++r)
      for (int k = 0; k < 2; ++k) cov[r][k] += e[r] * e[k];
  }
  const double det = cov[0][0] * cov[1][1] - cov[0][1] * cov[1][0];
  return given[0] * fx * p[0] / p[2] + given[1] * fy * p[1] / p[2] + given[2] * cov[1][1] / det -
         given[3] * cov[0][1] / det + given[4] * cov[0][0] / det;
}
Register r1("projection_bwd", [](Env& e) {
  ProjectionCfg c;
  if (!e.big) c = {24, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 20 : 83;
  auto means = random<float>(e, size_t(n) * 3), quats = random<float>(e, size_t(n) * 4);
  auto scales = random<float>(e, size_t(n) * 3, .05, .3);
  auto v_2d = random<float>(e, size_t(n) * 2), v_conics = random<float>(e, size_t(n) * 3, -50, 50);
  // turned a little, some Gaussians behind the near plane
  const std::vector<float> given{.8f, 0, .6f, .1f, 0, 1, 0, -.2f, -.6f, 0, .8f, 1.2f, 40, 45};
  auto camera = repeated(e, given.size(), given);
  auto vm = constant<float>(e, size_t(n) * 3, NAN), vq = constant<float>(e, size_t(n) * 4, NAN);
  auto vs = constant<float>(e, size_t(n) * 3, NAN);
  Job j;
  j.mbytes = 1e-6 * 4 * 25 * double(n);
  j.add(projection_bwd, c, means.p, quats.p, scales.p, camera.p, v_2d.p, v_conics.p, vm.p, vq.p, vs.p, n, .2f);
  j.check = [=] {
    std::vector<double> wm, wq, ws;
    for (int i = 0; i < n; ++i) {
      std::array<double, 10> v;
      for (int k = 0; k < 10; ++k)
        v[k] = k < 3 ? means[i * 3 + k] : k < 7 ? quats[i * 4 + k - 3] : scales[i * 3 + k - 7];
      const double g[5] = {v_2d[i * 2], v_2d[i * 2 + 1], v_conics[i * 3], v_conics[i * 3 + 1], v_conics[i * 3 + 2]};
      const double depth = given[8] * v[0] + given[10] * v[2] + given[11];
      for (int k = 0; k < 10; ++k) {
        double slope = 0;
        if (depth > .2f) {
          const double step = 1e-5;
          auto at = [&](double by) {
            auto moved = v;
            moved[k] += by;
            return loss_of(moved, given, g);
          };
          slope = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
        }
        (k < 3 ? wm : k < 7 ? wq : ws).push_back(slope);
      }
    }
    return agree(vm.now(), wm, 2e-2, 1e-3) + agree(vq.now(), wq, 2e-2, 1e-3) + agree(vs.now(), ws, 2e-2, 1e-3);
  };
  return j;
});

}  // namespace splat_projection
}  // namespace users
