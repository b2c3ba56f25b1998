// bands.cpp - a batched product whose grid has rows along x, columns along y and matrices along z. Programs that take
// one position after another may take them in another order than the grid's: each must be taken once, whatever the
// extents.
#include "tests/users/use.h"
namespace users {
namespace bands {

struct BandCfg {
  int BM = 64, BN = 16, BK = 32;
};
// The sum over k in two halves: how long the inner loop is follows from the outer one.
auto banded = kernel("user_banded", [](const BandCfg& c, Tensor<const half, 3> A, Tensor<const half, 3> B,
                                       Tensor<float, 3> C, Ptr<int32_t> visits) {
                auto m = program_id(0) * c.BM, n = program_id(1) * c.BN, z = program_id(2);
                Tile acc = zeros({c.BM, c.BN}, f32);
                auto half_k = A.dim(2) / 2;
                for (auto h : range(0, 2))
                  for (auto k : range(h * half_k, (h + 1) * half_k, c.BK))
                    acc = dot(squeeze(A.load({z, m, k}, {1, c.BM, c.BK}), 0),
                              squeeze(B.load({z, k, n}, {1, c.BK, c.BN}), 0), acc);
                C.store({z, m, n}, reshape(acc, {1, c.BM, c.BN}));
                auto position = (z * num_programs(1) + program_id(1)) * num_programs(0) + program_id(0);
                atomic_add(visits + position, num_programs(2), {.order = Order::relaxed});
              }).grid([](const BandCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(a.shape[1], c.BM), cdiv(b.shape[2], c.BN), a.shape[0]};
});

struct Banded {
  int Z, M, N, K;
  Array<half> a, b;
  Array<float> c;
  Array<int32_t> visits;

  std::string wrong() const {
    const auto now = c.now();
    const size_t plane = size_t(M) * N;
    for (int z = 0; z < Z; ++z) {
      const auto want = product(M, N, K, matrix(a, K, size_t(z) * M * K), matrix(b, N, size_t(z) * K * N));
      const std::vector<float> got(now.begin() + z * plane, now.begin() + (z + 1) * plane);
      if (auto found = agree(got, want, 5e-3, 5e-3); !found.empty()) return found;
    }
    for (int visit : visits.now())  // each adds Z
      if (visit != Z) return "visits of a position add up to " + std::to_string(visit) + ", not " + std::to_string(Z);
    return {};
  }
};

Register r1("bands", [](Env& e) {
  const BandCfg c = e.big ? BandCfg{128, 128, 64} : BandCfg{};
  const std::vector<std::array<int, 3>> extents =
      e.big ? std::vector<std::array<int, 3>>{{65, 63, 1}, {23, 29, 3}}
            : std::vector<std::array<int, 3>>{{1, 23, 1}, {23, 1, 1}, {17, 3, 2}, {37, 2, 1}, {13, 13, 1}, {7, 5, 3}};
  std::vector<Banded> all;
  Job j;
  for (auto [x, y, Z] : extents) {
    const int M = x * c.BM - 5, N = y * c.BN - 8, K = e.big ? 1024 : 128;
    all.push_back({Z, M, N, K, random<half>(e, size_t(Z) * M * K), random<half>(e, size_t(Z) * K * N),
                   constant<float>(e, size_t(Z) * M * N, NAN), constant<int32_t>(e, size_t(x) * y * Z, 0)});
    const Banded& one = all.back();
    j.gflop += 2e-9 * M * N * K * Z;
    j.add(banded, c, one.a.view(Z, M, K), one.b.view(Z, K, N), one.c.view(Z, M, N), one.visits.p);
  }
  j.check = [=]() -> std::string {
    for (const Banded& one : all)
      if (auto found = one.wrong(); !found.empty()) return found;
    return {};
  };
  return j;
});

}  // namespace bands
}  // namespace users
