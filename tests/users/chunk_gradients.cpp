// chunk_gradients.cpp - training steps of layers that keep a state per head, and rows on their way into 8 bits: the two
// passes behind retention, statistics of a policy from logits that nobody stores, norms with factors packed four in a
// word, and the length of all gradients of a model whose tensors lie anywhere.
#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace chunk_gradients {

// --- retention o_t = sum over s <= t of decay^(t - s) (q_t k_s) v_s: the gradient of q goes forward over chunks, those of k and
// v go backward; a state of D x D is carried in floats
struct RetentionCfg {
  int C = 64, D = 64;
};
struct Decays {  // within a chunk, by powers of the head's own
  Tile pairs, to_end, from_start, whole;
};
Decays decays_of(const RetentionCfg& c, const Expr& log_decay) {
  auto i = arange(0, c.C), f = cast(i, f32);
  auto apart = cast(i.col() - i.row(), f32);
  return {where(apart >= 0.f, exp2(max(apart, 0.f) * log_decay), 0.f), exp2((float(c.C - 1) - f) * log_decay).col(),
          exp2((f + 1.f) * log_decay).col(), exp2(float(c.C) * log_decay)};
}
auto retention_dq = kernel("user_retention_dq", [](const RetentionCfg& c, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
                                                   Tensor<const bfloat16, 3> dO, Ptr<const float> log_decays, Tensor<bfloat16, 3> dQ) {
  auto h = program_id(0);
  const Decays d = decays_of(c, load(log_decays + h));
  auto box = [&](const Tensor<const bfloat16, 3>& x, const Tile& t) { return reshape(x.load({t, h, 0}, {c.C, 1, c.D}), {c.C, c.D}); };
  Tile state = zeros({c.D, c.D}, f32);  // of v and k
  for (auto t : range(0, K.dim(0), c.C)) {
    auto k = box(K, t), v = box(V, t), g = box(dO, t);
    auto a = dot(g, trans(v)) * d.pairs;
    auto dq = dot(cast(a, bf16), k) + dot(g, cast(state, bf16)) * d.from_start;
    dQ.store({t, h, 0}, reshape(cast(dq, bf16), {c.C, 1, c.D}));
    state = dot(trans(v), cast(cast(k, f32) * d.to_end, bf16), state * d.whole);
  }
}).grid([](const RetentionCfg&, const auto& k, const auto&...) { return Grid{k.shape[1]}; });
auto retention_dkv = kernel("user_retention_dkv", [](const RetentionCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                                     Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> dO,
                                                     Ptr<const float> log_decays, Tensor<bfloat16, 3> dK, Tensor<bfloat16, 3> dV) {
  auto h = program_id(0);
  const Decays d = decays_of(c, load(log_decays + h));
  auto box = [&](const Tensor<const bfloat16, 3>& x, const Tile& t) { return reshape(x.load({t, h, 0}, {c.C, 1, c.D}), {c.C, c.D}); };
  auto put = [&](const Tensor<bfloat16, 3>& x, const Tile& t, const Tile& v) { x.store({t, h, 0}, reshape(cast(v, bf16), {c.C, 1, c.D})); };
  Tile state = zeros({c.D, c.D}, f32);  // of q and the gradient, from the end on
  for (auto t : range((cdiv(Q.dim(0), c.C) - 1) * c.C, -1, -c.C)) {
    auto q = box(Q, t), k = box(K, t), v = box(V, t), g = box(dO, t);
    auto p = dot(q, trans(k)) * d.pairs, a = dot(g, trans(v)) * d.pairs;
    auto s = cast(state, bf16);
    auto dk = dot(trans(cast(a, bf16)), q) + dot(v, trans(s)) * d.to_end;
    auto dv = dot(trans(cast(p, bf16)), g) + dot(k, s) * d.to_end;
    put(dK, t, dk);
    put(dV, t, dv);
    state = dot(trans(q), cast(cast(g, f32) * d.from_start, bf16), state * d.whole);
  }
}).grid([](const RetentionCfg&, const auto& q, const auto&...) { return Grid{q.shape[1]}; });
Register r1("retention_bwd", [](Env& e) {
  RetentionCfg c = e.big ? RetentionCfg{64, 64} : RetentionCfg{16, 32};
  c.C = e.field("C", c.C), c.D = e.field("D", c.D);
  const int T = e.big ? 8192 : 75, H = e.big ? 128 : 2, D = c.D;
  const size_t size = size_t(T) * H * D;
  auto q = random<bfloat16>(e, size), k = random<bfloat16>(e, size, -.3, .3), v = random<bfloat16>(e, size), g = random<bfloat16>(e, size);
  auto decays = filled<float>(e, H, [](size_t h) { return std::log2(1 - std::exp2(-float(3 + h % 4))); });
  auto dq = constant<bfloat16>(e, size, NAN), dk = constant<bfloat16>(e, size, NAN), dv = constant<bfloat16>(e, size, NAN);
  Job j;
  j.gflop = 2e-9 * T * H * D * (9. * c.C);
  auto view = [&](const Array<bfloat16>& x) { return x.view(T, H, D); };
  j.add(retention_dq, c, view(k), view(v), view(g), decays.p, view(dq));
  j.add(retention_dkv, c, view(q), view(k), view(v), view(g), decays.p, view(dk), view(dv));
  j.check = [=] {
    std::vector<double> wq(size, 0), wk(size, 0), wv(size, 0);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t)
        for (int s = 0; s <= t; ++s) {
          const size_t at = (size_t(t) * H + h) * D, as = (size_t(s) * H + h) * D;
          const double decay = std::exp2(double(decays[h]) * (t - s));
          double qk = 0, gv = 0;
          for (int d = 0; d < D; ++d) qk += q[at + d] * k[as + d], gv += g[at + d] * v[as + d];
          for (int d = 0; d < D; ++d)
            wq[at + d] += decay * gv * k[as + d], wk[as + d] += decay * gv * q[at + d], wv[as + d] += decay * qk * g[at + d];
        }
    auto wrong = agree(dq.now(), wq, 5e-2, 2e-2);
    if (wrong.empty()) wrong = agree(dk.now(), wk, 2e-1, 2e-2);
    return wrong.empty() ? agree(dv.now(), wv, 2e-1, 2e-2) : wrong;
  };
  return j;
});

// --- h W' over a whole vocabulary for BM tokens, never stored: log-probability of the token, entropy, and the best word
struct PolicyCfg {
  int BM = 128, BV = 128, BK = 64;
};
auto policy_stats = kernel("user_policy_stats", [](const PolicyCfg& c, Tensor<const bfloat16, 2> H, Tensor<const bfloat16, 2> W,
                                                   Ptr<const int64_t> tokens, Ptr<float> logp, Ptr<float> entropy, Ptr<int32_t> best,
                                                   F32 inverse_temperature) {
  auto m = program_id(0) * c.BM, row = m + arange(0, c.BM);
  auto token = load(tokens + row, {.mask = row < H.dim(0), .other = int64_t(-1)}).col();
  auto V = W.dim(0);
  Tile top = full({c.BM, 1}, -INFINITY, f32), total = zeros({c.BM, 1}, f32), weighted = zeros({c.BM, 1}, f32);
  Tile picked = zeros({c.BM, 1}, f32), at = zeros({c.BM, 1}, i32);
  for (auto v : range(0, V, c.BV)) {
    Tile s = zeros({c.BM, c.BV}, f32);
    for (auto k : range(0, H.dim(1), c.BK)) s = dot(H.load({m, k}, {c.BM, c.BK}), trans(W.load({v, k}, {c.BV, c.BK})), s);
    s *= inverse_temperature;
    auto word = (v + arange(0, c.BV)).row();
    picked += sum(where(cast(word, i64) == token, s, 0.f), axis(1));
    s = where(word < V, s, -INFINITY);
    auto [high, place] = max_with_index(s, axis(1));
    at = where(high > top, v + place, at);
    auto now = max(top, high);
    auto keep = exp(top - now), p = exp(s - now);
    total = total * keep + sum(p, axis(1));
    weighted = weighted * keep + sum(where(word < V, p * s, 0.f), axis(1));
    top = now;
  }
  auto lse = top + log(total);
  store(logp + row, squeeze(picked - lse, 1), {.mask = row < H.dim(0)});
  store(entropy + row, squeeze(lse - weighted / total, 1), {.mask = row < H.dim(0)});
  store(best + row, squeeze(at, 1), {.mask = row < H.dim(0)});
}).grid([](const PolicyCfg& c, const auto& h, const auto&...) { return Grid{cdiv(h.shape[0], c.BM)}; });
Register r2("policy_stats", [](Env& e) {
  PolicyCfg c = e.big ? PolicyCfg{} : PolicyCfg{32, 32, 16};
  c = {e.field("BM", c.BM), e.field("BV", c.BV), e.field("BK", c.BK)};
  const int M = e.big ? 16384 : 45, V = e.big ? 32000 : 101, K = e.big ? 1024 : 40;
  auto h = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(V) * K, -.5, .5);
  auto tokens = integers<int64_t>(e, M, 0, V);
  auto logp = constant<float>(e, M, NAN), entropy = constant<float>(e, M, NAN);
  auto best = constant<int32_t>(e, M, -1);
  Job j;
  j.gflop = 2e-9 * M * double(V) * K;
  j.add(policy_stats, c, h.view(M, K), w.view(V, K), tokens.p, logp.p, entropy.p, best.p, .7f);
  j.check = [=] {
    auto s = product(M, V, K, matrix(h, K), [&](int k, int v) { return w[v * K + k]; }, [](double x, int, int) { return x * .7f; });
    std::vector<double> wl(M), we(M);
    const auto got = best.now();
    for (int m = 0; m < M; ++m) {
      const double* x = &s[size_t(m) * V];
      const double top = *std::max_element(x, x + V);
      double total = 0, weighted = 0;
      for (int v = 0; v < V; ++v) total += std::exp(x[v] - top), weighted += std::exp(x[v] - top) * x[v];
      wl[m] = x[tokens.h[m]] - top - std::log(total), we[m] = top + std::log(total) - weighted / total;
      if (got[m] < 0 || got[m] >= V || x[got[m]] < top - 1e-4) return "best word of " + std::to_string(m) + ": " + std::to_string(got[m]);
    }
    auto wrong = agree(logp.now(), wl, 1e-3, 1e-3);
    return wrong.empty() ? agree(entropy.now(), we, 1e-3, 1e-3) : wrong;
  };
  return j;
});

// --- norm, gate, and 8 bits with a power of two per 128 numbers; factors of four groups lie in one word, words in columns
struct PackedCfg {
  int B = 1024, rows = 1;
};
auto packed_scales = kernel("user_packed_scales", [](const PackedCfg& c, Ptr<const bfloat16> x, Ptr<const bfloat16> gate,
                                                     Ptr<const bfloat16> weight, Ptr<fp8_e4m3> y, Ptr<uint32_t> scales, I32 N, I32 rows) {
  auto row = cast(program_id(0), i64);
  auto i = arange(0, c.B);
  Tile squares = zeros({c.B}, f32);
  auto value = [&](const Tile& n) {
    auto v = cast(load(x + row * N + n, {.mask = n < N}), f32), g = cast(load(gate + row * N + n, {.mask = n < N}), f32);
    return v * g * sigmoid(g);
  };
  for (auto j : range(0, N, c.B)) {
    auto v = value(j + i);
    squares += v * v;
  }
  auto scale = rsqrt(sum(squares) / cast(N, f32) + 1e-6f);
  for (auto j : range(0, N, c.B)) {
    auto n = j + i;
    auto v = reshape(value(n) * scale * cast(load(weight + n, {.mask = n < N}), f32), {c.B / 128, 128});
    auto amax = max(max(abs(v), axis(1)), 1e-4f);
    auto bits = bitcast(amax * (1.f / 448), u32);
    auto power = (bits >> 23u) + cast((bits & 0x7fffffu) != 0u, u32);  // rounded up
    auto factor = bitcast((254u - power) << 23u, f32);
    store(y + row * N + n, cast(reshape(clamp(v * factor, -448.f, 448.f), {c.B}), f8e4m3), {.mask = n < N});
    auto words = sum(reshape(power, {c.B / 512, 4}) << (arange(0, 4) * 8).row(), axis(1));
    auto word = j / 512 + arange(0, c.B / 512);
    store(scales + cast(word, i64) * rows + row, squeeze(words, 1), {.mask = word * 512 < N});
  }
}).grid([](const PackedCfg&, auto, auto, auto, auto, auto, int, int rows) { return Grid{rows}; });
Register r3("packed_scales", [](Env& e) {
  PackedCfg c;
  c.B = e.field("B", e.big ? 2048 : 512);
  const int R = e.big ? 16384 : 5, N = e.big ? 7168 : 1408, words = cdiv(N, 512);
  auto x = random<bfloat16>(e, size_t(R) * N, -4, 4), gate = random<bfloat16>(e, size_t(R) * N, -4, 4), weight = random<bfloat16>(e, N);
  auto y = constant<fp8_e4m3>(e, size_t(R) * N, 0);
  auto scales = constant<uint32_t>(e, size_t(words) * R, 0);
  Job j;
  j.mbytes = 1e-6 * R * N * 7;
  j.add(packed_scales, c, x.p, gate.p, weight.p, y.p, scales.p, N, R);
  if (!e.big) j.add(packed_scales, c, x.p, gate.p, weight.p, y.p, scales.p, N, 0);
  j.check = [=] {
    std::vector<double> want(R * N);
    std::vector<float> got(R * N);
    const auto bytes = y.now();
    const auto factors = scales.now();
    for (int r = 0; r < R; ++r) {
      double s = 0;
      for (int n = 0; n < N; ++n) {
        const double g = gate[r * N + n], v = x[r * N + n] * g / (1 + std::exp(-g));
        want[r * N + n] = v, s += v * v;
      }
      for (int n = 0; n < N; ++n) want[r * N + n] *= weight[n] / std::sqrt(s / N + 1e-6);
      for (int g = 0; g < N / 128; ++g) {
        double amax = 1e-4;
        for (int n = 0; n < 128; ++n) amax = std::max(amax, std::abs(want[r * N + g * 128 + n]));
        const int power = int(factors[(g / 4) * R + r] >> (8 * (g % 4)) & 255) - 127;
        if (std::abs(power - std::ceil(std::log2(amax / 448))) > (std::abs(std::remainder(std::log2(amax / 448), 1)) < 1e-4))
          return "power " + std::to_string(power) + " of row " + std::to_string(r) + ", group " + std::to_string(g);
        for (int n = 0; n < 128; ++n)
          got[r * N + g * 128 + n] = float(std::ldexp(double(float(bytes[r * N + g * 128 + n])), power));
      }
    }
    return agree(got, want, 1e-3, 7e-2);
  };
  return j;
});

// --- the length of a list of gradients, tensors of two types at addresses of their own; a program finds its tensor in the
// running sums of blocks by bisection, and the last program to finish makes the factor that clips
struct ListCfg {
  int B = 1024, each = 8;  // elements a program takes at a time, and how often
};
template <class T>
Tile square_sum(const ListCfg& c, const Tile& address, const Tile& first, const Tile& size) {
  Tile squares = zeros({c.B}, f32);
  for (auto k : range(0, c.each)) {
    auto i = first + (k * c.B + arange(0, c.B));
    auto x = cast(load(pointer_to<const T>(address) + i, {.mask = i < size}), f32);
    squares += x * x;
  }
  return sum(squares);
}
auto list_length = kernel("user_list_length", [](const ListCfg& c, Ptr<const int64_t> table, Ptr<const int64_t> sizes,
                                                 Ptr<const int32_t> ends, Ptr<const uint8_t> halves, Ptr<double> total,
                                                 Ptr<uint32_t> ticket, Ptr<float> factor, I32 tensors, F32 most) {
  auto me = program_id(0);
  Tile low = me * 0, high = tensors - 1;
  while_([&] { return low < high; }, [&] {
    auto middle = (low + high) / 2;
    auto before = load(ends + middle) <= me;
    low = where(before, middle + 1, low);
    high = where(before, high, middle);
  });
  Tile begin = low * 0;
  if_(low > 0, [&] { begin = load(ends + low - 1); });
  auto first = cast(me - begin, i64) * int64_t(c.B * c.each);
  auto address = load(table + low), size = load(sizes + low);
  Tile s = full({}, 0.f, f32);
  if_(load(halves + low) != uint8_t(0), [&] { s = square_sum<half>(c, address, first, size); },
      [&] { s = square_sum<float>(c, address, first, size); });
  atomic_add(total, cast(s, f64));
  auto drawn = atomic_add(ticket, 1u);
  return_if(drawn != cast(num_programs(0), u32) - 1u);
  auto length = sqrt(atomic_add(total, 0.));
  store(factor, cast(min(1., cast(most, f64) / (length + 1e-6)), f32));
  store(ticket, 0u);
}).grid([](const ListCfg&, auto...) { return Grid{1}; });
Register r4("list_length", [](Env& e) {
  const ListCfg c = e.big ? ListCfg{2048, 16} : ListCfg{64, 2};
  const int n = e.big ? 300 : 7;
  std::vector<Array<half>> narrow;
  std::vector<Array<float>> wide;
  std::vector<int64_t> addresses, sizes;
  std::vector<int32_t> ends;
  std::vector<uint8_t> halves;
  double all = 0;
  for (int t = 0; t < n; ++t) {
    const size_t size = t == 3 ? 0 : e.big ? (t % 3 == 0 ? 4096 * 2048 : t % 3 == 1 ? 4096 : 1024 * 777 + 1) : 90 + 101 * t;
    if (halves.emplace_back(t % 2)) {
      narrow.push_back(random<half>(e, size + 1));
      addresses.push_back(int64_t(narrow.back().p + (t % 3 == 1)));  // some begin between words
      for (size_t i = 0; !e.big && i < size; ++i) all += std::pow(narrow.back()[i + (t % 3 == 1)], 2);
    } else {
      wide.push_back(random<float>(e, size));
      addresses.push_back(int64_t(wide.back().p));
      for (size_t i = 0; !e.big && i < size; ++i) all += std::pow(wide.back()[i], 2);
    }
    sizes.push_back(int64_t(size));
    ends.push_back((ends.empty() ? 0 : ends.back()) + int32_t(cdiv(int64_t(size), int64_t(c.B * c.each))));
  }
  auto table = filled<int64_t>(e, n, [&](size_t i) { return addresses[i]; }), counts = filled<int64_t>(e, n, [&](size_t i) { return sizes[i]; });
  auto last = filled<int32_t>(e, n, [&](size_t i) { return ends[i]; });
  auto types = filled<uint8_t>(e, n, [&](size_t i) { return halves[i]; });
  auto total = constant<double>(e, 1, 0);
  auto ticket = constant<uint32_t>(e, 1, 0);
  auto factor = constant<float>(e, 1, NAN);
  Job j;
  const int programs = ends.back();
  for (int t = 0; t < n; ++t) j.mbytes += 1e-6 * double(sizes[t]) * (halves[t] ? 2 : 4);
  j.add(list_length.grid([=](const auto&...) { return Grid{programs}; }), c, table.p, counts.p, last.p, types.p, total.p, ticket.p,
        factor.p, n, 1.f);
  j.check = [=, keep = narrow, more = wide] {
    auto wrong = agree(total.now(), {all}, 1e-5, 1e-5);
    return wrong.empty() ? agree(factor.now(), {1 / (std::sqrt(all) + 1e-6)}, 0, 1e-5) : wrong;
  };
  return j;
});

}  // namespace chunk_gradients
}  // namespace users
