// operator_ports.cpp - operators of an array library as their kernels are written elsewhere: Kronecker products, inner
// products of complex vectors in two launches, a scatter to the places of a mask in three, gradients of average
// pooling.
#include <complex>

#include "tests/users/use.h"
namespace users {
namespace operator_ports {

// --- Kronecker products of batches of matrices: a block of the output divides its rows and columns
struct KronCfg {
  int BM = 32, BN = 64, warps = 4;
};
auto kron = kernel("user_kron",
                   [](const KronCfg& c, Ptr<const half> a, Ptr<const half> b, Ptr<half> out, I32 M, I32 N, I32 b_rows,
                      I32 b_columns, I64 a_batch, I64 a_row, I64 b_row, I32 batches) {
                     num_warps(c.warps);
                     auto across = cdiv(N, c.BN);
                     auto pid = program_id(0), batch = program_id(1);
                     auto m = pid / across * c.BM + arange(0, c.BM), n = pid % across * c.BN + arange(0, c.BN);
                     auto inside = (m < M).col() & (n < N).row();
                     auto first = a + cast(batch, i64) * a_batch;
                     auto x = load(first + (cast(m / b_rows, i64) * a_row).col() + (n / b_columns).row(),
                                   {.mask = inside, .other = 0});
                     auto y = load(b + (cast(m % b_rows, i64) * b_row).col() + (n % b_columns).row(),
                                   {.mask = inside, .other = 0});
                     store(out + cast(batch, i64) * M * N + (cast(m, i64) * cast(N, i64)).col() + n.row(), x * y,
                           {.mask = inside});
                   })
                .grid([](const KronCfg& c, const half*, const half*, half*, int M, int N, int, int, int64_t, int64_t,
                         int64_t, int batches) {
                  return Grid{cdiv(M, c.BM) * cdiv(N, c.BN), batches};
                });
Register r1("kron", [](Env& e) {
  KronCfg c;
  if (!e.big) c = {8, 16, 4};
  const int R = e.big ? 64 : 5, C = e.big ? 48 : 7, P = e.big ? 96 : 3, Q = e.big ? 128 : 6, M = R * P, N = C * Q;
  auto a = random<half>(e, size_t(2) * R * C), b = random<half>(e, size_t(P) * Q);
  auto out = constant<half>(e, size_t(2) * M * N, NAN);
  Job j;
  j.mbytes = 4e-6 * M * N;
  j.add(kron, c, a.p, b.p, out.p, M, N, P, Q, int64_t(R) * C, C, Q, 2);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (size_t i = 0; i < want.size(); ++i) {
      const int z = i / (size_t(M) * N), m = i / N % M, n = i % N;
      want[i] = a[(size_t(z) * R + m / P) * C + n / Q] * b[size_t(m % P) * Q + n % Q];
    }
    return agree(out.now(), want, 1e-4, 1e-3);
  };
  return j;
});

// --- inner products of complex vectors with strides: one part a program, then one program for the parts
struct VdotCfg {
  int B = 1024, parts = 256;
  bool conj = true;
};
Tile real_of(const Tile& x) { return std::get<0>(split(x)); }
Tile imag_of(const Tile& x) { return std::get<1>(split(x)); }
auto vdot_parts = kernel("user_vdot_parts", [](const VdotCfg& c, Ptr<const float> x, Ptr<const float> y,
                                               Ptr<float> middle, I64 n, I32 x_stride, I32 y_stride) {
                    auto pid = program_id(0);
                    Tile re = zeros({c.B}, f32), im = zeros({c.B}, f32);
                    auto both = arange(0, 2).row();
                    for (auto at : range(cast(pid, i64) * c.B, n, cast(num_programs(0), i64) * c.B)) {
                      auto i = at + cast(arange(0, c.B), i64);
                      auto mask = (i < n).col();
                      Tile a = load(x + (i * x_stride * 2).col() + both, {.mask = mask, .other = 0});
                      Tile b = load(y + (i * y_stride * 2).col() + both, {.mask = mask, .other = 0});
                      auto sign = c.conj ? 1.f : -1.f;
                      re += real_of(a) * real_of(b) + sign * (imag_of(a) * imag_of(b));
                      im += real_of(a) * imag_of(b) - sign * (imag_of(a) * real_of(b));
                    }
                    store(middle + 2 * pid, sum(re));
                    store(middle + 2 * pid + 1, sum(im));
                  }).grid([](const VdotCfg& c, const float*, const float*, float*, int64_t n, int, int) {
  return Grid{std::max<int64_t>(1, std::min<int64_t>(c.parts, cdiv(n, int64_t(c.B))))};
});
auto vdot_sum = kernel("user_vdot_sum", [](const VdotCfg& c, Ptr<const float> middle, Ptr<float> out, I32 parts) {
                  auto i = arange(0, c.parts);
                  auto mask = i < parts;
                  store(out, sum(load(middle + 2 * i, {.mask = mask, .other = 0})));
                  store(out + 1, sum(load(middle + 2 * i + 1, {.mask = mask, .other = 0})));
                }).grid([](const VdotCfg&, const float*, float*, int) { return Grid{1}; });
Job inner(Env& e, int64_t n, int x_stride, int y_stride, bool conj) {
  VdotCfg c{e.big ? 1024 : 32, e.big ? 256 : 8, conj};
  auto x = random<float>(e, 2 * n * x_stride + 2), y = random<float>(e, 2 * n * y_stride + 2);
  auto middle = constant<float>(e, 2 * c.parts, NAN), out = constant<float>(e, 2, NAN);
  Job j;
  j.mbytes = 16e-6 * n;
  j.add(vdot_parts, c, x.p, y.p, middle.p, n, x_stride, y_stride);
  j.add(vdot_sum, c, middle.p, out.p, int(std::max<int64_t>(1, std::min<int64_t>(c.parts, cdiv(n, int64_t(c.B))))));
  j.check = [=] {
    std::complex<double> total = 0;
    for (int64_t i = 0; i < n; ++i) {
      const size_t a = 2 * i * x_stride, b = 2 * i * y_stride;
      const std::complex<double> u(x[a], x[a + 1]), v(y[b], y[b + 1]);
      total += (conj ? std::conj(u) : u) * v;
    }
    return agree(out.now(), {total.real(), total.imag()}, 1e-4, 1e-4);
  };
  return j;
}
Register r2("vdot", [](Env& e) { return inner(e, e.big ? 20'000'000 : 777, 1, 1, true); });
Register r3("vdot_strided", [](Env& e) { return inner(e, e.big ? 5'000'001 : 301, 3, 2, false); });
Register r4("vdot_empty", [](Env& e) { return inner(e, e.big ? 1 : 0, 1, 1, true); });

// --- values go, one after the other, to the places of a mask: counts of blocks, their sums, then the places
struct PlaceCfg {
  int B = 1024, blocks = 4096;
};
auto mask_counts = kernel("user_mask_counts", [](const PlaceCfg& c, Ptr<const bool> mask, Ptr<int32_t> counts, I32 n) {
                     auto i = program_id(0) * c.B + arange(0, c.B);
                     store(counts + program_id(0), sum(cast(load(mask + i, {.mask = i < n, .other = false}), i32)));
                   }).grid([](const PlaceCfg& c, const bool*, int32_t*, int n) { return Grid{cdiv(n, c.B)}; });
auto mask_sums = kernel("user_mask_sums", [](const PlaceCfg& c, Ptr<int32_t> counts, I32 blocks) {
                   auto i = arange(0, c.blocks);
                   auto x = load(counts + i, {.mask = i < blocks, .other = 0});
                   store(counts + i, cumsum(x, axis(0)) - x, {.mask = i < blocks});
                 }).grid([](const PlaceCfg&, int32_t*, int) { return Grid{1}; });
auto mask_places = kernel("user_mask_places", [](const PlaceCfg& c, Ptr<float> out, Ptr<const bool> mask,
                                                 Ptr<const float> values, Ptr<const int32_t> before, I32 n) {
                     auto i = program_id(0) * c.B + arange(0, c.B);
                     auto chosen = load(mask + i, {.mask = i < n, .other = false});
                     auto k = cast(chosen, i32);
                     auto at = load(before + program_id(0)) + cumsum(k, axis(0)) - k;
                     store(out + i, load(values + at, {.mask = chosen}), {.mask = chosen});
                   }).grid([](const PlaceCfg& c, float*, const bool*, const float*, const int32_t*, int n) {
  return Grid{cdiv(n, c.B)};
});
Register r5("masked_scatter", [](Env& e) {
  PlaceCfg c;
  if (!e.big) c = {48, 24};
  const int n = e.big ? 4'000'001 : 1001, blocks = cdiv(n, c.B);
  auto bytes = integers<uint8_t>(e, n, 0, 2);
  const bool* mask = reinterpret_cast<const bool*>(bytes.p);
  auto values = random<float>(e, n), out = constant<float>(e, n, 7);
  auto counts = constant<int32_t>(e, blocks, -1);
  Job j;
  j.inTurn = true;
  j.mbytes = 7e-6 * n;
  j.add(mask_counts, c, mask, counts.p, n);
  j.add(mask_sums, c, counts.p, blocks);
  j.add(mask_places, c, out.p, mask, values.p, counts.p, n);
  j.check = [=] {
    std::vector<double> want(n);
    for (int i = 0, at = 0; i < n; ++i) want[i] = bytes.at(i) ? values[at++] : 7;
    return agree(out.now(), want, 0, 1e-7);
  };
  return j;
});

// --- gradients of average pooling as fusing compilers write them: each pixel visits the windows that it may lie in
struct PoolCfg {
  int B = 512, K = 3, stride = 2, pad = 1;
  bool count_pad = false;
};
auto avg_pool_bwd =
    kernel("user_avg_pool_bwd",
           [](const PoolCfg& c, Ptr<const bfloat16> gradient, Ptr<bfloat16> out, I32 H, I32 W, I32 OH, I32 OW, I32 n) {
             auto i = program_id(0) * c.B + arange(0, c.B);
             auto inside = i < n;
             auto w = i % W, h = i / W % H, plane = i / (W * H);
             auto first = [&](const Tile& x) {
               return max(0, (max(x + c.pad - c.K, -c.stride) + c.stride) / c.stride);
             };
             auto oh = first(h), ow = first(w);
             auto oh_end = min(OH, (h + c.pad) / c.stride + 1), ow_end = min(OW, (w + c.pad) / c.stride + 1);
             Tile total = zeros({c.B}, f32);
             const int most = cdiv(c.K, c.stride);
             for (int dh = 0; dh < most; ++dh)
               for (int dw = 0; dw < most; ++dw) {
                 auto y = oh + dh, x = ow + dw;
                 auto there = inside & (y < oh_end) & (x < ow_end);
                 auto span = [&](const Tile& o, const Tile& size) {
                   auto begin = o * c.stride - c.pad, end = min(begin + c.K, size + c.pad);
                   return c.count_pad ? end - begin : min(end, size) - max(begin, 0);
                 };
                 auto area = cast(span(y, H) * span(x, W), f32);
                 auto g =
                     load(gradient + (min(x, ow_end - 1) + OW * min(y, oh_end - 1) + OW * OH * plane), {.mask = there});
                 total = where(there, total + cast(g, f32) / area, total);
               }
             store(out + i, cast(total, bf16), {.mask = inside});
           })
        .grid([](const PoolCfg& c, const auto&, const auto&, const auto&, const auto&, const auto&, const auto&,
                 const auto& n) { return Grid{cdiv(n, c.B)}; });
Job pooled(Env& e, PoolCfg c, int planes, int H, int W) {
  const int OH = (H + 2 * c.pad - c.K) / c.stride + 1, OW = (W + 2 * c.pad - c.K) / c.stride + 1, n = planes * H * W;
  auto g = random<bfloat16>(e, size_t(planes) * OH * OW), out = constant<bfloat16>(e, n, NAN);
  Job j;
  j.mbytes = 2e-6 * (n + double(g.n));
  j.add(avg_pool_bwd, c, g.p, out.p, H, W, OH, OW, n);
  j.check = [=] {
    std::vector<double> want(n);
    for (int p = 0; p < planes; ++p)
      for (int y = 0; y < OH; ++y)
        for (int x = 0; x < OW; ++x) {
          const int h = y * c.stride - c.pad, w = x * c.stride - c.pad;
          const int bottom = std::min(h + c.K, H + c.pad), right = std::min(w + c.K, W + c.pad);
          const int h0 = std::max(h, 0), w0 = std::max(w, 0), h1 = std::min(bottom, H), w1 = std::min(right, W);
          const double area = c.count_pad ? double(bottom - h) * (right - w) : double(h1 - h0) * (w1 - w0);
          for (int a = h0; a < h1; ++a)
            for (int b = w0; b < w1; ++b) want[(size_t(p) * H + a) * W + b] += g[(size_t(p) * OH + y) * OW + x] / area;
        }
    return agree(out.now(), want, 1e-4, 8e-3);
  };
  return j;
}
Register r6("avg_pool_bwd", [](Env& e) {
  return e.big ? pooled(e, {}, 32 * 64, 112, 112) : pooled(e, {64, 3, 2, 1, false}, 3, 9, 8);
});
Register r7("avg_pool_bwd5", [](Env& e) {
  return e.big ? pooled(e, {512, 5, 2, 2, true}, 32 * 64, 56, 57) : pooled(e, {48, 5, 2, 2, true}, 2, 11, 7);
});

}  // namespace operator_ports
}  // namespace users
