// chains_of_steps.cpp - one step after the other in registers: seams of a picture, LDPC codes by min-sum, backward
// Riccati recursions of many small systems, gates of a quantum computer, word vectors with negative samples.
#include "tests/users/use.h"
namespace users {
namespace chains_of_steps {

// --- seams: the cheapest way from the top to every pixel, from the three above it; a picture a program
struct SeamCfg {
  int W = 1024, warps = 4;
};
auto seams = kernel("user_seams", [](const SeamCfg& c, Tensor<const float, 3> energy, Tensor<float, 3> cost,
                                     Tensor<int8_t, 3> from) {
               // energy, cost, from [images, rows, W]
               num_warps(c.warps);
               auto image = program_id(0);
               auto x = arange(0, c.W);
               Tile above = squeeze(squeeze(energy.load({image, 0, 0}, {1, 1, c.W}), 0), 0);
               cost.store({image, 0, 0}, reshape(above, {1, 1, c.W}));
               for (auto y : range(1, energy.dim(1))) {
                 auto left = where(x > 0, take(above, max(x - 1, 0), 0), INFINITY);
                 auto right = where(x < c.W - 1, take(above, min(x + 1, c.W - 1), 0), INFINITY);
                 auto best = min(min(left, above), right);
                 auto step = where(above <= best, 0, where(left <= best, -1, 1));
                 above = best + energy.load({image, y, 0}, {c.W});
                 cost.store({image, y, 0}, reshape(above, {1, 1, c.W}));
                 from.store({image, y, 0}, reshape(cast(step, i8), {1, 1, c.W}));
               }
             }).grid([](const SeamCfg&, const auto& e, const auto&...) { return Grid{e.shape[0]}; });
Register r1("seams", [](Env& e) {
  SeamCfg c;
  if (!e.big) c = {64, 2};
  c.warps = e.field("warps", c.warps);
  const int images = e.big ? 128 : 3, rows = e.big ? 512 : 9, W = c.W;
  auto en = random<float>(e, size_t(images) * rows * W, 0, 1);
  auto cost = constant<float>(e, en.n, NAN);
  auto from = constant<int8_t>(e, en.n, 0);
  Job j;
  j.mbytes = 9e-6 * double(en.n);
  j.add(seams, c, en.view(images, rows, W), cost.view(images, rows, W), from.view(images, rows, W));
  j.check = [=]() -> std::string {
    std::vector<double> want(en.n);
    const auto way = from.now();
    for (size_t i = 0; i < en.n; ++i) {
      const int x = int(i % W), y = int(i / W) % rows;
      double best = y ? want[i - W] : 0;
      if (y && x) best = std::min(best, want[i - W - 1]);
      if (y && x < W - 1) best = std::min(best, want[i - W + 1]);
      want[i] = en[i] + best;
      if (y && (x + way[i] < 0 || x + way[i] >= W || want[i - W + way[i]] > best + 1e-5))
        return "way " + std::to_string(i);
    }
    return agree(cost.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- LDPC, quasi-cyclic, layered min-sum: rows of the base graph name columns and shifts; a code word a program
struct LdpcCfg {
  int Z = 128, columns = 12, rows = 6, degree = 6, rounds = 8, warps = 4;
};
int base_column(const LdpcCfg& c, int row, int k) { return (row * 5 + k * (row % 2 ? 7 : 1)) % c.columns; }
int base_shift(const LdpcCfg& c, int row, int k) { return (row * 37 + k * 53 + 11) % c.Z; }
auto ldpc = kernel("user_ldpc", [](const LdpcCfg& c, Tensor<const float, 3> channel, Tensor<uint8_t, 3> bits) {
              // channel [words, columns, Z]: log likelihoods, bits likewise
              num_warps(c.warps);
              auto word = program_id(0);
              auto z = arange(0, c.Z);
              std::vector<Tile> L, R(c.rows * c.degree, zeros({c.Z}, f32));
              for (int n = 0; n < c.columns; ++n)
                L.push_back(squeeze(squeeze(channel.load({word, n, 0}, {1, 1, c.Z}), 0), 0));
              for (auto round : range(c.rounds)) {
                for (int row = 0; row < c.rows; ++row) {
                  std::vector<Tile> q;
                  Tile least = full({c.Z}, INFINITY, f32), second = full({c.Z}, INFINITY, f32), sign = ones({c.Z}, f32);
                  for (int k = 0; k < c.degree; ++k) {
                    auto turned = take(L[base_column(c, row, k)], (z + base_shift(c, row, k)) % c.Z, 0);
                    auto v = turned - R[row * c.degree + k];
                    auto a = abs(v);
                    second = min(second, max(least, a)), least = min(least, a);
                    sign = where(v < 0, -sign, sign);
                    q.push_back(v);
                  }
                  for (int k = 0; k < c.degree; ++k) {
                    auto size = where(abs(q[k]) <= least, second, least) * .75f;
                    auto r = size * where(q[k] < 0, -sign, sign);
                    R[row * c.degree + k] = r;
                    L[base_column(c, row, k)] = take(q[k] + r, (z + (c.Z - base_shift(c, row, k))) % c.Z, 0);
                  }
                }
              }
              for (int n = 0; n < c.columns; ++n) bits.store({word, n, 0}, reshape(cast(L[n] < 0, u8), {1, 1, c.Z}));
            }).grid([](const LdpcCfg&, const auto& x, const auto&) { return Grid{x.shape[0]}; });
Register r2("ldpc", [](Env& e) {
  LdpcCfg c;
  if (!e.big) c = {32, 12, 6, 6, 3, 1};
  c.warps = e.field("warps", c.warps);
  const int words = e.big ? 8192 : 3, Z = c.Z, N = c.columns;
  auto x = random<float>(e, size_t(words) * N * Z, -1, 3);
  auto bits = constant<uint8_t>(e, x.n, 9);
  Job j;
  j.mbytes = 5e-6 * double(x.n);
  j.add(ldpc, c, x.view(words, N, Z), bits.view(words, N, Z));
  j.check = [=]() -> std::string {
    const auto got = bits.now();
    for (int w = 0; w < words; ++w) {
      std::vector<double> L(size_t(N) * Z), R(size_t(c.rows) * c.degree * Z);
      for (size_t i = 0; i < L.size(); ++i) L[i] = x[size_t(w) * L.size() + i];
      for (int round = 0; round < c.rounds; ++round)
        for (int row = 0; row < c.rows; ++row)
          for (int z = 0; z < Z; ++z) {
            double least = INFINITY, second = INFINITY, sign = 1;
            std::vector<double> q;
            auto at = [&](int k) -> double& {
              return L[size_t(base_column(c, row, k)) * Z + (z + base_shift(c, row, k)) % Z];
            };
            for (int k = 0; k < c.degree; ++k) {
              q.push_back(at(k) - R[(size_t(row) * c.degree + k) * Z + z]);
              const double a = std::abs(q[k]);
              second = std::min(second, std::max(least, a)), least = std::min(least, a), sign = q[k] < 0 ? -sign : sign;
            }
            for (int k = 0; k < c.degree; ++k) {
              const double r = (std::abs(q[k]) <= least ? second : least) * .75 * (q[k] < 0 ? -sign : sign);
              R[(size_t(row) * c.degree + k) * Z + z] = r, at(k) = q[k] + r;
            }
          }
      for (size_t i = 0; i < L.size(); ++i)
        if (std::abs(L[i]) > 1e-3 && got[size_t(w) * L.size() + i] != (L[i] < 0)) return "bit " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- linear-quadratic control: P <- Q + A^T P (A - B K), K = (R + B^T P B)^-1 B^T P A, states of 8, controls of 2
struct RiccatiCfg {
  int S = 8, B = 8, warps = 4;
};
auto riccati =
    kernel("user_riccati", [](const RiccatiCfg& c, Tensor<const float, 3> A, Tensor<const float, 3> Bm,
                              Tensor<float, 4> gains, F32 weight) {
      // A [n, S, S], Bm [n, S, 2], gains [steps, n, 2, S]; Q = I, R = weight I
      num_warps(c.warps);
      auto n = program_id(0) * c.B;
      auto a = A.load({n, 0, 0}, {c.B, c.S, c.S}), b = Bm.load({n, 0, 0}, {c.B, c.S, 2});
      auto bt = permute(b, {0, 2, 1}), at = permute(a, {0, 2, 1});
      auto row = arange(0, c.S);
      auto eye = expand_dims(cast(row.col() == row.row(), f32), 0) + zeros({c.B, 1, 1}, f32);
      Tile P = eye;
      for (auto t : range(gains.dim(0))) {
        auto pa = dot(P, a);          // [B, S, S]
        auto right = dot(bt, pa);     // [B, 2, S]
        auto m = dot(bt, dot(P, b));  // [B, 2, 2]
        auto cell = [&](int i, int k) { return extract(m, {0, i, k}, {c.B, 1, 1}) + (i == k ? 1.f : 0.f) * weight; };
        auto u = cell(0, 0), v = cell(0, 1), w = cell(1, 0), x = cell(1, 1);
        auto inverse = 1.f / (u * x - v * w);
        auto first = extract(right, {0, 0, 0}, {c.B, 1, c.S}), second = extract(right, {0, 1, 0}, {c.B, 1, c.S});
        auto K = cat((x * first - v * second) * inverse, (u * second - w * first) * inverse, 1);
        gains.store({gains.dim(0) - 1 - t, n, 0, 0}, expand_dims(K, 0));
        auto next = eye + dot(at, pa - dot(P, dot(b, K)));
        P = (next + permute(next, {0, 2, 1})) * .5f;
      }
    }).grid([](const RiccatiCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r3("riccati", [](Env& e) {
  RiccatiCfg c;
  if (!e.big) c = {8, 4, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 16384 : 13, steps = e.big ? 20 : 3, S = c.S;
  auto a = random<float>(e, size_t(n) * S * S, -.4, .4), b = random<float>(e, size_t(n) * S * 2);
  auto gains = constant<float>(e, size_t(steps) * n * 2 * S, NAN);
  Job j;
  j.gflop = 2e-9 * double(n) * steps * (3. * S * S * S + 6. * S * S * 2);
  j.add(riccati, c, a.view(n, S, S), b.view(n, S, 2), gains.view(steps, n, 2, S), .5f);
  j.check = [=] {
    std::vector<double> want(gains.n);
    for (int i = 0; i < n; ++i) {
      auto A = [&](int r, int k) { return a[(size_t(i) * S + r) * S + k]; };
      auto B = [&](int r, int k) { return b[(size_t(i) * S + r) * 2 + k]; };
      std::vector<double> P(S * S);
      for (int r = 0; r < S; ++r) P[r * S + r] = 1;
      for (int t = steps - 1; t >= 0; --t) {
        auto p = [&](int r, int k) { return P[r * S + k]; };
        const auto pa = product(S, S, S, p, A), pb = product(S, 2, S, p, B);
        const auto right = product(
            2, S, S, [&](int r, int k) { return B(k, r); }, [&](int r, int k) { return pa[r * S + k]; });
        auto m = product(
            2, 2, S, [&](int r, int k) { return B(k, r); }, [&](int r, int k) { return pb[r * 2 + k]; });
        m[0] += .5, m[3] += .5;
        const double d = m[0] * m[3] - m[1] * m[2];
        std::vector<double> K(2 * S), next(S * S);
        for (int k = 0; k < S; ++k) {
          K[k] = (m[3] * right[k] - m[1] * right[S + k]) / d, K[S + k] = (m[0] * right[S + k] - m[2] * right[k]) / d;
          want[((size_t(t) * n + i) * 2) * S + k] = K[k], want[((size_t(t) * n + i) * 2 + 1) * S + k] = K[S + k];
        }
        for (int r = 0; r < S; ++r)
          for (int k = 0; k < S; ++k) {
            double sum = r == k;
            for (int x = 0; x < S; ++x) sum += A(x, r) * (pa[x * S + k] - pb[x * 2] * K[k] - pb[x * 2 + 1] * K[S + k]);
            next[r * S + k] = sum;
          }
        P = next;
      }
    }
    return agree(gains.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- a gate on four qubits of a state of 2^n amplitudes: 16 x 16 complex numbers times amplitudes 2^q apart
struct GateCfg {
  int B = 128, warps = 4;
};
auto gate = kernel("user_gate", [](const GateCfg& c, Tensor<float, 4> state, Tensor<const float, 3> U) {
              // state [high, 16, low, 2] in place: real and imaginary parts, U [2, 16, 16]
              num_warps(c.warps);
              auto low = program_id(0) * c.B, high = program_id(1);
              auto [re, im] = split(squeeze(state.load({high, 0, low, 0}, {1, 16, c.B, 2}), 0));
              auto ur = squeeze(U.load({0, 0, 0}, {1, 16, 16}), 0), ui = squeeze(U.load({1, 0, 0}, {1, 16, 16}), 0);
              auto newRe = dot(ur, re) - dot(ui, im), newIm = dot(ui, re, dot(ur, im));
              state.store({high, 0, low, 0}, expand_dims(join(newRe, newIm), 0));
            }).grid([](const GateCfg& c, const auto& s, const auto&) {
  return Grid{cdiv(s.shape[2], c.B), s.shape[0]};
});
Register r4("gate", [](Env& e) {
  GateCfg c;
  if (!e.big) c = {32, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int high = e.big ? 256 : 3, low = e.big ? 4096 : 64;
  auto s = random<float>(e, size_t(high) * 16 * low * 2), u = random<float>(e, 512);
  Job j;
  j.mbytes = 8e-6 * double(s.n);
  j.inTurn = true;
  j.add(gate, c, s.view(high, 16, low, 2), u.view(2, 16, 16));
  j.check = [=] {
    std::vector<double> want(s.n);
    for (int h = 0; h < high; ++h)
      for (int r = 0; r < 16; ++r)
        for (int l = 0; l < low; ++l)
          for (int k = 0; k < 16; ++k) {
            const size_t to = ((size_t(h) * 16 + r) * low + l) * 2, from = ((size_t(h) * 16 + k) * low + l) * 2;
            const double re = u[size_t(r) * 16 + k], im = u[256 + size_t(r) * 16 + k];
            want[to] += re * s[from] - im * s[from + 1], want[to + 1] += re * s[from + 1] + im * s[from];
          }
    return agree(s.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- word vectors: a centre, its neighbour and 5 words that are none; gradients go to both tables by atomics
struct WordsCfg {
  int B = 16, N = 6, D = 128, warps = 4;
};
auto word_vectors =
    kernel("user_word_vectors", [](const WordsCfg& c, Tensor<const float, 2> In, Tensor<const float, 2> Out,
                                   Ptr<float> dIn, Ptr<float> dOut, Ptr<const int32_t> centres,
                                   Tensor<const int32_t, 2> words, Tensor<float, 1> loss, I32 n) {
      // In, Out, dIn, dOut [vocabulary, D], centres [n], words [n, N]: the first is the neighbour
      num_warps(c.warps);
      auto p = program_id(0) * c.B + arange(0, c.B), d = arange(0, c.D);
      auto inside = p < n;
      auto centre = load(centres + p, {.mask = inside});
      auto x = In.gather(centre, 0, c.D);
      Tile dx = zeros({c.B, c.D}, f32), all = zeros({c.B}, f32);
      for (int k = 0; k < c.N; ++k) {
        auto word = squeeze(words.load({program_id(0) * c.B, k}, {c.B, 1}), 1);
        auto y = Out.gather(word, 0, c.D);
        auto score = squeeze(sum(x * y, axis(1)), 1);
        all += log1p(exp(k ? score : -score));
        auto g = where(inside, sigmoid(score) - (k ? 0.f : 1.f), 0.f).col();
        dx += g * y;
        atomic_add(dOut + word.col() * c.D + d.row(), g * x, {.mask = inside.col(), .order = Order::relaxed});
      }
      atomic_add(dIn + centre.col() * c.D + d.row(), dx, {.mask = inside.col(), .order = Order::relaxed});
      loss.store({program_id(0) * c.B}, all);
    }).grid([](const WordsCfg& c, const auto&, const auto&, auto, auto, auto, const auto&, const auto&, int n) {
      return Grid{cdiv(n, c.B)};
    });
Register r5("word_vectors", [](Env& e) {
  WordsCfg c;
  if (!e.big) c = {8, 3, 16, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int V = e.big ? 100000 : 11, n = e.big ? 1 << 17 : 29, D = c.D, N = c.N;
  auto in = random<float>(e, size_t(V) * D), out = random<float>(e, size_t(V) * D);
  auto din = constant<float>(e, in.n, 0), dout = constant<float>(e, in.n, 0), loss = constant<float>(e, n, NAN);
  auto centres = integers<int32_t>(e, n, 0, V), words = integers<int32_t>(e, size_t(n) * N, 0, V);
  Job j;
  j.mbytes = 4e-6 * n * double(D) * (3 * N + 3);
  j.add(word_vectors, c, in.view(V, D), out.view(V, D), din.p, dout.p, centres.p, words.view(n, N), loss.view(n), n);
  j.check = [=] {
    std::vector<double> wi(in.n), wo(in.n), wl(n);
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < N; ++k) {
        const size_t a = size_t(centres.at(i)) * D, b = size_t(words.at(size_t(i) * N + k)) * D;
        double s = 0;
        for (int d = 0; d < D; ++d) s += in[a + d] * out[b + d];
        wl[i] += std::log1p(std::exp(k ? s : -s));
        const double g = 1 / (1 + std::exp(-s)) - (k == 0);
        for (int d = 0; d < D; ++d) wi[a + d] += g * out[b + d], wo[b + d] += g * in[a + d];
      }
    for (const auto& wrong : {agree(loss.now(), wl, 1e-4, 1e-4), agree(din.now(), wi, 1e-3, 1e-3)})
      if (!wrong.empty()) return wrong;
    return agree(dout.now(), wo, 1e-3, 1e-3);
  };
  return j;
});

}  // namespace chains_of_steps
}  // namespace users
