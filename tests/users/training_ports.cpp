// training_ports.cpp - kernels of training libraries in the form of their sources: the total variation distance of
// distributions with its gradient, margins of triplets with swapped anchors, a recurrence that corrects its memory by
// a key of its own.
#include "tests/users/use.h"
namespace users {
namespace training_ports {

// --- total variation distance of rows; ignored labels have neither loss nor gradient; the loss per element or per row
struct TvdCfg {
  int B = 1024;
  bool labels = true, per_element = false;
};
auto tvd = kernel("user_tvd", [](const TvdCfg& c, Ptr<const float> p, I64 p_stride, Ptr<const float> q, I64 q_stride,
                                 Ptr<float> loss, I64 loss_stride, Ptr<float> gradient, I64 gradient_stride,
                                 Ptr<const int32_t> label, I32 ignore, I32 columns, F32 scale) {
  auto pid = cast(program_id(0), i64);
  p += pid * p_stride;
  q += pid * q_stride;
  loss += pid * loss_stride;
  gradient += pid * gradient_stride;
  auto lane = arange(0, c.B);
  Tile counted = full({}, true, i1);
  if (c.labels) {
    counted = load(label + pid) != ignore;
    if_(~counted, [&] {
      for (auto i : range(0, columns, c.B)) {
        store(gradient + i + lane, 0, {.mask = i + lane < columns});
        if (c.per_element) store(loss + i + lane, 0, {.mask = i + lane < columns});
      }
      if (!c.per_element) store(loss, 0);
    });
  }
  return_if(~counted);
  Tile total = zeros({}, f32);
  for (auto i : range(0, columns, c.B)) {
    auto at = i + lane;
    auto mask = at < columns;
    auto a = load(p + at, {.mask = mask, .other = 0}), b = load(q + at, {.mask = mask, .other = 0});
    auto one = 0.5f * abs(a - b);
    store(gradient + at, where(a > b, 0.5f, -0.5f) * scale, {.mask = mask});
    if (c.per_element)
      store(loss + at, one, {.mask = mask});
    else
      total += sum(one);
  }
  if (!c.per_element) store(loss, total * scale);
});

Job distance(Env& e, TvdCfg c) {
  if (!e.big) c.B = 32;
  const int R = e.big ? 8192 : 7, V = e.big ? 32000 : 75;
  const int ignore = -100;
  auto p = random<float>(e, size_t(R) * V, 0, 1), q = random<float>(e, size_t(R) * V, 0, 1);
  auto label = filled<int32_t>(e, R, [&](size_t i) { return i % 3 == 1 ? ignore : int(i); });
  auto gradient = constant<float>(e, p.n, NAN);
  auto loss = constant<float>(e, c.per_element ? p.n : R, NAN);
  const float scale = 1.f / float(R);
  Job j;
  j.mbytes = 12e-6 * R * V;
  j.add(tvd.grid([=](const TvdCfg&, const auto&...) { return Grid{R}; }), c, p.p, V, q.p, V, loss.p,
        c.per_element ? V : 1, gradient.p, V, c.labels ? label.p : nullptr, ignore, V, scale);
  j.check = [=] {
    std::vector<double> sums(loss.n), want(p.n);
    for (size_t i = 0; i < p.n; ++i) {
      if (c.labels && label.at(i / V) == ignore) continue;
      const double d = 0.5 * std::abs(p[i] - q[i]);
      (c.per_element ? sums[i] : sums[i / V]) += c.per_element ? d : d * scale;
      want[i] = (p[i] > q[i] ? .5 : -.5) * scale;
    }
    const auto wrong = agree(gradient.now(), want, 1e-9, 1e-5);
    return wrong.empty() ? agree(loss.now(), sums, 1e-6, 1e-5) : wrong;
  };
  return j;
}
Register r1("tvd", [](Env& e) { return distance(e, {}); });
Register r2("tvd_elements", [](Env& e) { return distance(e, {1024, false, true}); });

// --- margins of triplets: the negative is compared with the nearer one of anchor and positive
struct TripletCfg {
  int BM = 16, BD = 128, warps = 4;
  bool swap = true;
};
/// Distances of rows that a loop over columns puts together.
struct Distance {
  Tile total;
  explicit Distance(int rows) : total(zeros({rows, 1}, f32)) {}
  void add(const Tile& a, const Tile& b, const Tile& there, const Tile& eps) {
    auto d = cast(a, f32) - cast(b, f32) + eps;
    total += sum(where(there, d * d, 0.f), axis(1));
  }
  Tile root() const { return sqrt(total); }
};
auto triplet =
    kernel("user_triplet", [](const TripletCfg& c, Tensor<const half, 2> anchor, Tensor<const half, 2> positive,
                              Tensor<const half, 2> negative, Tensor<float, 1> loss, F32 margin, F32 eps) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      Distance ap(c.BM), an(c.BM), pn(c.BM);
      for (auto d : range(0, anchor.dim(1), c.BD)) {
        auto there = (d + arange(0, c.BD) < anchor.dim(1)).row();
        auto a = anchor.load({m, d}, {c.BM, c.BD}), p = positive.load({m, d}, {c.BM, c.BD});
        auto n = negative.load({m, d}, {c.BM, c.BD});
        ap.add(a, p, there, eps);
        an.add(a, n, there, eps);
        if (c.swap) pn.add(p, n, there, eps);
      }
      auto far = c.swap ? min(an.root(), pn.root()) : an.root();
      loss.store({m}, squeeze(max(ap.root() - far + margin, 0.f), 1));
    }).grid([](const TripletCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.BM)}; });
Job triplets(Env& e, bool swap) {
  const TripletCfg c =
      e.big ? TripletCfg{e.field("BM", 16), e.field("BD", 128), e.field("warps", 4), swap} : TripletCfg{4, 16, 4, swap};
  const int N = e.big ? 131072 : 11, D = e.big ? 1000 : 37;
  auto a = random<half>(e, size_t(N) * D), p = random<half>(e, size_t(N) * D), n = random<half>(e, size_t(N) * D);
  auto loss = constant<float>(e, N, NAN);
  Job j;
  j.mbytes = 6e-6 * N * D;
  j.add(triplet, c, a.view(N, D), p.view(N, D), n.view(N, D), loss.view(N), 0.3f, 1e-6f);
  j.check = [=] {
    std::vector<double> want(N);
    for (int i = 0; i < N; ++i) {
      auto far = [&](const auto& x, const auto& y) {
        double s = 0;
        for (size_t k = size_t(i) * D; k < size_t(i + 1) * D; ++k) s += std::pow(x[k] - y[k] + 1e-6, 2);
        return std::sqrt(s);
      };
      const double an = far(a, n);
      want[i] = std::max(far(a, p) - (swap ? std::min(an, far(p, n)) : an) + .3f, 0.);
    }
    return agree(loss.now(), want, 1e-4, 1e-4);
  };
  return j;
}
Register r3("triplet_swap", [](Env& e) { return triplets(e, true); });
Register r4("triplet_plain", [](Env& e) { return triplets(e, false); });

// --- a memory of keys and values that is read with one key and written with another, token by token
struct CombaCfg {
  int K = 128, BK = 128, BV = 8, warps = 1;
  bool start = true, finish = true, normalise = true;
};
auto comba = kernel(
    "user_comba", [](const CombaCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                     Ptr<const bfloat16> p, Ptr<const float> g, Ptr<const bfloat16> beta, Ptr<bfloat16> o,
                     Ptr<const float> h0, Ptr<float> ht, Ptr<const int64_t> offsets, F32 scale, I32 H, I32 HV, I32 V) {
      num_warps(c.warps);
      auto i_v = program_id(0), i_nh = program_id(1);
      auto i_n = i_nh / HV, i_hv = i_nh % HV, i_h = i_hv / (HV / H);
      auto bos = load(offsets + i_n), eos = load(offsets + i_n + 1);
      auto o_k = arange(0, c.BK), o_v = i_v * c.BV + arange(0, c.BV);
      auto mask_k = o_k < c.K, mask_v = o_v < V;
      auto mask_h = mask_k.col() & mask_v.row();
      Tile p_q = q + (bos * H + i_h) * c.K + o_k, p_k = k + (bos * H + i_h) * c.K + o_k;
      Tile p_p = p + (bos * H + i_h) * c.K + o_k, p_v = v + (bos * HV + i_hv) * V + o_v;
      Tile p_o = o + (bos * HV + i_hv) * V + o_v, p_g = g + bos * HV + i_hv, p_beta = beta + bos * HV + i_hv;
      auto state = cast(i_nh, i64) * c.K * V + (o_k.col() * V + o_v.row());
      Tile h = zeros({c.BK, c.BV}, f32);
      if (c.start) h += load(h0 + state, {.mask = mask_h, .other = 0});
      auto unit = [&](const Tile& x) { return c.normalise ? x / sqrt(sum(x * x) + 1e-6f) : x; };
      for (auto t : range(bos, eos)) {
        (void)t;
        auto b_q = unit(cast(load(p_q, {.mask = mask_k, .other = 0}), f32)) * scale;
        auto b_k = unit(cast(load(p_k, {.mask = mask_k, .other = 0}), f32));
        auto b_p = unit(cast(load(p_p, {.mask = mask_k, .other = 0}), f32));
        auto b_v = cast(load(p_v, {.mask = mask_v, .other = 0}), f32);
        auto b_beta = cast(load(p_beta), f32);
        auto error = (b_v - squeeze(sum(h * b_p.col(), axis(0)), 0)) * b_beta;
        h = h * exp(load(p_g)) + b_k.col() * error.row();
        store(p_o, cast(squeeze(sum(h * b_q.col(), axis(0)), 0), bf16), {.mask = mask_v});
        p_q += H * c.K, p_k += H * c.K, p_p += H * c.K;
        p_v += HV * V, p_o += HV * V, p_g += HV, p_beta += HV;
      }
      if (c.finish) store(ht + state, h, {.mask = mask_h});
    });
Job memory(Env& e, CombaCfg c, int B, int T, int H, int HV, int V) {
  std::vector<int64_t> off(B + 1);
  for (int b = 0; b < B; ++b) off[b + 1] = b == 1 ? off[b] : int64_t(T) * (b + 1) / B;
  const int K = c.K;
  const size_t S = size_t(B) * HV * K * V;
  auto q = random<bfloat16>(e, size_t(T) * H * K), k = random<bfloat16>(e, q.n), p = random<bfloat16>(e, q.n);
  auto v = random<bfloat16>(e, size_t(T) * HV * V), beta = random<bfloat16>(e, size_t(T) * HV, 0, 1);
  auto g = random<float>(e, size_t(T) * HV, -.3, 0), h0 = random<float>(e, S), ht = constant<float>(e, S, NAN);
  auto o = constant<bfloat16>(e, v.n, NAN);
  auto offsets = repeated(e, B + 1, off);
  const float scale = 1 / std::sqrt(float(K));
  Job j;
  j.gflop = 6e-9 * T * HV * double(K) * V;
  j.add(comba.grid([=](const CombaCfg& x, const auto&...) {
    return Grid{cdiv(V, x.BV), B * HV};
  }),
        c, q.p, k.p, v.p, p.p, g.p, beta.p, o.p, c.start ? h0.p : nullptr, c.finish ? ht.p : nullptr, offsets.p, scale,
        H, HV, V);
  j.check = [=] {
    std::vector<double> want(v.n), last(S);
    for (int n = 0; n < B * HV; ++n) {
      std::vector<double> h(size_t(K) * V);
      for (size_t i = 0; i < h.size() && c.start; ++i) h[i] = h0[n * h.size() + i];
      const int hv = n % HV, head = hv / (HV / H);
      for (int64_t t = off[n / HV]; t < off[n / HV + 1]; ++t) {
        auto unit = [&](const Array<bfloat16>& x) {
          std::vector<double> r(K);
          double s = 1e-6;
          for (int d = 0; d < K; ++d) r[d] = x[(t * H + head) * K + d], s += r[d] * r[d];
          for (double& d : r) d /= c.normalise ? std::sqrt(s) : 1;
          return r;
        };
        const auto a = unit(q), b = unit(k), f = unit(p);
        for (int w = 0; w < V; ++w) {
          double read = 0, out = 0;
          for (int d = 0; d < K; ++d) read += h[size_t(d) * V + w] * f[d];
          const double error = (v[(t * HV + hv) * V + w] - read) * beta[t * HV + hv];
          for (int d = 0; d < K; ++d) {
            double& cell = h[size_t(d) * V + w];
            cell = cell * std::exp(g[t * HV + hv]) + b[d] * error;
            out += cell * a[d] * scale;
          }
          want[(t * HV + hv) * V + w] = out;
        }
      }
      std::copy(h.begin(), h.end(), last.begin() + n * h.size());
    }
    const auto wrong = agree(o.now(), want, 2e-3, 1e-2);
    return wrong.empty() && c.finish ? agree(ht.now(), last, 2e-4, 2e-3) : wrong;
  };
  return j;
}
Register r5("comba", [](Env& e) {
  CombaCfg c;
  c.BV = e.field("BV", 8), c.warps = e.field("warps", 1);
  if (!e.big) c.K = 24, c.BK = 32;
  return e.big ? memory(e, c, 4, 8192, 8, 16, 128) : memory(e, c, 3, 13, 2, 4, 19);
});
Register r6("comba_plain", [](Env& e) {
  CombaCfg c{128, 128, e.field("BV", 8), e.field("warps", 1), false, false, false};
  if (!e.big) c.K = 16, c.BK = 16;
  return e.big ? memory(e, c, 4, 8192, 8, 8, 128) : memory(e, c, 3, 7, 2, 2, 16);
});

}  // namespace training_ports
}  // namespace users
