// layers_in_memory.cpp - layers one after another in one program, through memory that the kernel itself wrote.
#include "tests/users/use.h"
namespace users {
namespace layers_in_memory {
struct AlCfg {
  int BM = 64, BN = 64, BK = 32, stages = 3, warps = 4, how = 0;
};
auto layers =
    kernel("user_layers", [](const AlCfg& c, Tensor<bfloat16, 2> X, Tensor<const bfloat16, 3> W, I32 L) {
      // X [(L + 1) * rows, C]; rows of a program: BM of every layer; W [L, C, C]
      num_warps(c.warps);
      auto C = X.dim(1), rows = X.dim(0) / (L + 1);
      auto m = program_id(0) * c.BM;
      auto i = arange(0, c.BM), jn = arange(0, c.BN), jk = arange(0, c.BK);
      for (auto l : range(0, L)) {
        for (auto n : range(0, C, c.BN)) {
          Tile acc = zeros({c.BM, c.BN}, f32);
          for (auto k : range(0, C, c.BK, {.stages = c.stages})) {
            auto w = W.load({l, k, n}, {c.BK, c.BN});
            Tile x;
            if (c.how == 0) x = X.load({l * rows + m, k}, {c.BM, c.BK});
            if (c.how == 1)
              x = load(X.ptr() + ((l * rows + m + i).col() * C + (k + jk).row()), {.mask = (k + jk < C).row()});
            if (c.how == 2)
              x = make_view<const bfloat16>(X.ptr() + l * rows * C, {rows, C}, {C, 1}).load({m, k}, {c.BM, c.BK});
            if (c.how == 3) x = X.gather(l * rows + m + i, k, c.BK);
            if (c.how >= 4) x = X.load({l * rows + m, k}, {c.BM, c.BK});
            acc = dot(x, w, acc);
          }
          auto y = cast(max(acc, -0.5f), bf16);
          if (c.how <= 3) X.store({(l + 1) * rows + m, n}, y);
          if (c.how == 4)
            store(X.ptr() + (((l + 1) * rows + m + i).col() * C + (n + jn).row()), y, {.mask = (n + jn < C).row()});
          if (c.how == 5) X.scatter((l + 1) * rows + m + i, n, y);
          if (c.how == 6) X.atomic_add({(l + 1) * rows + m, n}, y);
          if (c.how == 7) make_view<bfloat16>(X.ptr() + (l + 1) * rows * C, {rows, C}, {C, 1}).store({m, n}, y);
        }
      }
    }).grid([](const AlCfg& c, const auto& x, const auto&, int L) { return Grid{x.shape[0] / (L + 1) / c.BM}; });
struct All {
  All() {
    for (int how = 0; how < 8; ++how)
      cases().push_back({"layers" + std::to_string(how), [how](Env& e) {
                           AlCfg c = e.big ? AlCfg{128, 128, 64, 3, 8, how} : AlCfg{64, 32, 16, 3, 4, how};
                           c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
                           c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
                           const int L = 4, R = c.BM * (e.big ? 132 : 2), C = e.field("C", e.big ? 512 : 80);
                           auto x = filled<bfloat16>(e, e.big ? 0 : size_t(L + 1) * R * C, [&](size_t i) {
                             return bfloat16(i < size_t(R) * C ? float(e.uniform() * 2 - 1) : 0.f);
                           });
                           if (e.big) x = constant<bfloat16>(e, size_t(L + 1) * R * C, 0);
                           auto w = random<bfloat16>(e, size_t(L) * C * C, -.15, .15);
                           Job j;
                           restore(e, j, x);
                           j.gflop = 2e-9 * L * R * double(C) * C;
                           j.add(layers, c, x.view((L + 1) * R, C), w.view(L, C, C), L);
                           j.check = [=] {
                             std::vector<double> want(x.n);
                             for (size_t i = 0; i < size_t(R) * C; ++i) want[i] = x[i];
                             for (int l = 0; l < L; ++l)
                               for (int r = 0; r < R; ++r)
                                 for (int n = 0; n < C; ++n) {
                                   double s = 0;
                                   for (int k = 0; k < C; ++k)
                                     s += want[(size_t(l) * R + r) * C + k] * w[(size_t(l) * C + k) * C + n];
                                   want[(size_t(l + 1) * R + r) * C + n] =
                                       double(float(bfloat16(float(std::max(s, -.5)))));
                                 }
                             return agree(x.now(), want, 2e-2, 2e-2);
                           };
                           return j;
                         }});
  }
} all;
}  // namespace layers_in_memory
}  // namespace users
