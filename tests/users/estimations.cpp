// estimations.cpp - models against data: likelihoods of trees (Felsenstein), homographies by consensus (RANSAC),
// resampling of particle filters, control by random rollouts (MPPI), linear-quadratic control of many small systems.
#include "tests/users/use.h"
namespace users {
namespace estimations {

// --- a phylogeny's likelihood: conditional likelihoods of four bases go up a tree, sites side by side
struct PhylogenyCfg {
  int B = 256, warps = 4;
};
auto phylogeny =
    kernel("user_phylogeny", [](const PhylogenyCfg& c, Tensor<const uint8_t, 2> bases, Ptr<const int32_t> children,
                                Tensor<const float, 3> P, Tensor<float, 3> partial, Tensor<float, 2> logs, I32 leaves,
                                I32 nodes) {
      // bases [leaves, sites] of 0..3, children [nodes - leaves, 2], P [nodes, 4, 4]: to the parent,
      // partial [nodes, 4, sites] scratch, logs [1, sites]
      num_warps(c.warps);
      auto s = program_id(0) * c.B;
      Tile scaled = zeros({1, c.B}, f32);
      for (auto n : range(leaves, nodes)) {
        std::array<Tile, 4> here;
        for (int side = 0; side < 2; ++side) {
          auto child = load(children + ((n - leaves) * 2 + side));
          std::array<Tile, 4> below;
          for (int b = 0; b < 4; ++b) below[b] = zeros({1, c.B}, f32);
          if_(
              child < leaves,
              [&] {
                auto base = bases.load({child, s}, {1, c.B});
                for (int b = 0; b < 4; ++b) below[b] = where(base == b, ones({1, c.B}, f32), 0.f);
              },
              [&] {
                for (int b = 0; b < 4; ++b) below[b] = squeeze(partial.load({child, b, s}, {1, 1, c.B}), 0);
              });
          for (int a = 0; a < 4; ++a) {
            Tile sum = P.load({child, a, 0}) * below[0];
            for (int b = 1; b < 4; ++b) sum += P.load({child, a, b}) * below[b];
            here[a] = side ? here[a] * sum : sum;
          }
        }
        auto most = max(max(here[0], here[1]), max(here[2], here[3]));
        scaled += log2(most);
        for (int a = 0; a < 4; ++a) partial.store({n, a, s}, expand_dims(here[a] / most, 0));
      }
      Tile all = zeros({1, c.B}, f32);
      for (int a = 0; a < 4; ++a) all += squeeze(partial.load({nodes - 1, a, s}, {1, 1, c.B}), 0) * .25f;
      logs.store({0, s}, (log2(all) + scaled) * .6931471805599453f);
    }).grid([](const PhylogenyCfg& c, const auto& bases, auto...) { return Grid{cdiv(bases.shape[1], c.B)}; });
Register r1("phylogeny", [](Env& e) {
  PhylogenyCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int leaves = e.big ? 64 : 7, nodes = 2 * leaves - 1, sites = e.big ? 1 << 17 : 75;
  auto bases = integers<uint8_t>(e, size_t(leaves) * sites, 0, 4);
  std::vector<int> open, tree;
  for (int i = 0; i < leaves; ++i) open.push_back(i);
  for (int n = leaves; n < nodes; ++n) {
    for (int side = 0; side < 2; ++side) {
      const size_t at = size_t(e.uniform() * double(open.size()));
      tree.push_back(open[at]), open.erase(open.begin() + std::ptrdiff_t(at));
    }
    open.push_back(n);
  }
  auto children = filled<int32_t>(e, tree.size(), [&](size_t i) { return tree[i]; });
  auto p = filled<float>(e, size_t(nodes) * 16, [](size_t i) {
    const double stay = .5 + .4 * double(i / 16 % 5) / 5;
    return float(i % 16 / 4 == i % 4 ? stay : (1 - stay) / 3);
  });
  auto partial = constant<float>(e, size_t(nodes) * 4 * sites, NAN), logs = constant<float>(e, sites, NAN);
  Job j;
  j.mbytes = 1e-6 * (double(leaves) * sites + 32. * (leaves - 1) * sites);
  j.add(phylogeny, c, bases.view(leaves, sites), children.p, p.view(nodes, 4, 4), partial.view(nodes, 4, sites),
        logs.view(1, sites), leaves, nodes);
  j.check = [=] {
    std::vector<double> want;
    for (int s = 0; s < sites; ++s) {
      std::vector<std::array<double, 4>> at(nodes);
      for (int n = 0; n < nodes; ++n)
        for (int a = 0; a < 4; ++a) {
          at[n][a] = 1;
          if (n < leaves) at[n][a] = bases.at(size_t(n) * sites + s) == a;
          for (int side = 0; n >= leaves && side < 2; ++side) {
            const int child = tree[size_t(n - leaves) * 2 + side];
            double sum = 0;
            for (int b = 0; b < 4; ++b) sum += p[size_t(child) * 16 + a * 4 + b] * at[child][b];
            at[n][a] *= sum;
          }
        }
      want.push_back(std::log((at.back()[0] + at.back()[1] + at.back()[2] + at.back()[3]) / 4));
    }
    return agree(logs.now(), want, 1e-4, 1e-5);
  };
  return j;
});

// --- consensus: every hypothesis (a homography) counts the pairs of points that it maps to within a pixel or two
struct ConsensusCfg {
  int BH = 64, BP = 128, warps = 4;
};
auto consensus =
    kernel("user_consensus", [](const ConsensusCfg& c, Tensor<const float, 2> H, Tensor<const float, 2> pairs,
                                Tensor<int32_t, 1> votes, Ptr<int64_t> best, F32 limit) {
      // H [9, n], pairs [4, points]: x, y, u, v, votes [n], best: votes above hypothesis
      num_warps(c.warps);
      auto h = program_id(0) * c.BH;
      std::array<Tile, 9> m;
      for (int i = 0; i < 9; ++i) m[i] = trans(H.load({i, h}, {1, c.BH}));
      Tile count = zeros({c.BH, 1}, i32);
      for (auto p : range(0, pairs.dim(1), c.BP)) {
        std::array<Tile, 4> at;
        for (int i = 0; i < 4; ++i) at[i] = pairs.load({i, p}, {1, c.BP});
        auto w = 1.f / (m[6] * at[0] + m[7] * at[1] + m[8]);
        auto dx = (m[0] * at[0] + m[1] * at[1] + m[2]) * w - at[2];
        auto dy = (m[3] * at[0] + m[4] * at[1] + m[5]) * w - at[3];
        auto inside = (p + arange(0, c.BP)).row() < pairs.dim(1);
        count += sum(cast((dx * dx + dy * dy < limit * limit) & inside, i32), axis(1));
      }
      auto total = squeeze(count, 1);
      votes.store({h}, total);
      auto [most, who] = max_with_index(where(h + arange(0, c.BH) < votes.dim(0), total, -1), axis(0));
      atomic_max(best, cast(to_scalar(most), i64) << 32 | cast(h + to_scalar(who), i64));
    }).grid([](const ConsensusCfg& c, const auto& h, const auto&...) { return Grid{cdiv(h.shape[1], c.BH)}; });
Register r2("consensus", [](Env& e) {
  ConsensusCfg c;
  if (!e.big) c = {16, 32, 2};
  c.BH = e.field("BH", c.BH), c.BP = e.field("BP", c.BP), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 65536 : 37, points = e.big ? 4096 : 77;
  auto h = filled<float>(e, size_t(n) * 9, [&](size_t i) {
    const size_t k = i / size_t(n);
    return float((k % 4 == 0 ? 1 : 0) + (k == 2 || k == 5 ? 8
                                         : k < 6          ? .05
                                         : k < 8          ? 1e-4
                                                          : 0) *
                                            (2 * e.uniform() - 1));
  });
  auto pairs = filled<float>(e, size_t(points) * 4, [&](size_t i) {
    return float(100 * std::sin(double(i % size_t(points)) * (i / size_t(points) % 2 ? 3.1 : 1.7)) + 4 * e.uniform());
  });
  auto votes = constant<int32_t>(e, n, -7);
  auto best = constant<int64_t>(e, 1, 0);
  Job j;
  j.gflop = 20e-9 * double(n) * points;
  j.add(consensus, c, h.view(9, n), pairs.view(4, points), votes.view(n), best.p, 5.f);
  j.check = [=]() -> std::string {
    const auto got = votes.now();
    int64_t top = 0;
    for (int i = 0; i < n; ++i) {
      int low = 0, high = 0;
      auto m = [&](int k) { return h[size_t(k) * n + i]; };
      for (int p = 0; p < points; ++p) {
        auto at = [&](int k) { return pairs[size_t(k) * points + p]; };
        const double w = m(6) * at(0) + m(7) * at(1) + m(8);
        const double dx = (m(0) * at(0) + m(1) * at(1) + m(2)) / w - at(2),
                     dy = (m(3) * at(0) + m(4) * at(1) + m(5)) / w - at(3);
        low += dx * dx + dy * dy < 24.99, high += dx * dx + dy * dy < 25.01;
      }
      if (got[i] < low || got[i] > high) return "hypothesis " + std::to_string(i);
      top = std::max(top, int64_t(got[i]) << 32 | i);
    }
    return best.now()[0] >> 32 == top >> 32 && got[best.now()[0] & 0xffffffff] == top >> 32 ? "" : "the best";
  };
  return j;
});

// --- systematic resampling: N even steps through the running sum of a filter's weights choose the particles that go on
struct ResampleCfg {
  int N = 2048, D = 4, warps = 8;
};
auto resample =
    kernel("user_resample", [](const ResampleCfg& c, Tensor<const float, 2> weights, Tensor<const float, 3> X,
                               Tensor<float, 3> Y, Tensor<float, 2> sums, U32 seed) {
      // weights, sums (scratch) [filters, N], X, Y [filters, D, N]
      num_warps(c.warps);
      auto f = program_id(0);
      auto running = cumsum(squeeze(weights.load({f, 0}, {1, c.N}), 0), axis(0));
      sums.store({f, 0}, running.row());
      auto all = max(running);
      auto at = arange(0, c.N);
      auto mark = (cast(at, f32) + rand(seed, f)) * (all / float(c.N));
      Tile from = zeros({c.N}, i32);  // how many sums are at or below the mark, by bisection
      for (int step = c.N / 2; step; step /= 2)
        from += where(load(sums.ptr() + f * c.N + from + (step - 1)) <= mark, step + zeros({c.N}, i32), 0);
      from = min(from, c.N - 1);
      for (int d = 0; d < c.D; ++d) {
        auto x = load(X.ptr() + (f * c.D + d) * c.N + from);
        Y.store({f, d, 0}, reshape(x, {1, 1, c.N}));
      }
    }).grid([](const ResampleCfg&, const auto& w, const auto&...) { return Grid{w.shape[0]}; });
Register r3("resample", [](Env& e) {
  ResampleCfg c;
  if (!e.big) c = {64, 3, 2};
  c.warps = e.field("warps", c.warps);
  const int filters = e.big ? 4096 : 5, N = c.N, D = c.D;
  auto w = random<float>(e, size_t(filters) * N, 0, 1), x = random<float>(e, size_t(filters) * D * N);
  auto y = constant<float>(e, x.n, NAN), sums = constant<float>(e, w.n, NAN);
  Job j;
  j.mbytes = 4e-6 * filters * double(N) * (2 * D + 2);
  j.add(resample, c, w.view(filters, N), x.view(filters, D, N), y.view(filters, D, N), sums.view(filters, N), 5u);
  j.check = [=]() -> std::string {
    const auto got = y.now();
    for (int f = 0; f < filters; ++f) {
      std::vector<double> running(N + 1);
      for (int i = 0; i < N; ++i) running[i + 1] = running[i] + w[size_t(f) * N + i];
      const double u = double(reference_philox(5, f)[0] >> 8) * 0x1p-24;
      for (int i = 0; i < N; ++i) {
        const double mark = (i + u) * running[N] / N;
        bool right = false;  // one of the particles whose share is at the mark, f32 sums allowed
        for (int k = 0; k < N; ++k)
          if (running[k] <= mark + 1e-4 && mark - 1e-4 < running[k + 1]) {
            bool same = true;
            for (int d = 0; d < D; ++d)
              same &= got[(size_t(f) * D + d) * N + i] == float(x[(size_t(f) * D + d) * N + k]);
            right |= same;
          }
        if (!right) return "particle " + std::to_string(i) + " of filter " + std::to_string(f);
      }
    }
    return "";
  };
  return j;
});

// --- control by rollouts (MPPI): noisy controls drive a pendulum, costs weigh the noise; the last program sums up
struct RolloutCfg {
  int B = 128, T = 64, warps = 4, programs = 64;
};
auto rollouts =
    kernel("user_rollouts", [](const RolloutCfg& c, Tensor<const float, 2> plans, Tensor<const float, 2> states,
                               Tensor<float, 2> costs, Ptr<float> sums, U32 seed) {
      // plans [robots, T], states [robots, 2], costs [robots, programs * B], sums [robots, T + 1] zeroed
      num_warps(c.warps);
      auto part = program_id(0), robot = program_id(1);
      auto k = part * c.B + arange(0, c.B);
      auto stream = cast(robot * (c.B * c.programs) + k, u32) * uint32_t(c.T);
      Tile angle = zeros({c.B}, f32) + states.load({robot, 0}), speed = zeros({c.B}, f32) + states.load({robot, 1});
      Tile cost = zeros({c.B}, f32);
      for (auto t : range(0, c.T, 4)) {
        auto noise = randn4(seed, stream + cast(t, u32));
        for (int i = 0; i < 4; ++i) {
          auto push = clamp(plans.load({robot, t + i}) + noise[i] * .5f, -2.f, 2.f);
          speed = clamp(speed + (15.f * sin(angle) + 3.f * push) * .02f, -8.f, 8.f);
          angle = angle + speed * .02f;
          cost += (1.f - cos(angle)) + .01f * speed * speed + .001f * push * push;
        }
      }
      costs.store({robot, part * c.B}, cost.row());
      auto weight = exp2(cost * -.1f);
      atomic_add(sums + robot * (c.T + 1) + c.T, sum(weight), {.order = Order::relaxed});
      for (auto t : range(0, c.T, 4)) {
        auto noise = randn4(seed, stream + cast(t, u32));
        for (int i = 0; i < 4; ++i)
          atomic_add(sums + robot * (c.T + 1) + t + i, sum(weight * noise[i] * .5f), {.order = Order::relaxed});
      }
    }).grid([](const RolloutCfg& c, const auto& plans, const auto&...) {
      return Grid{c.programs, plans.shape[0]};
    });
Register r4("rollouts", [](Env& e) {
  RolloutCfg c;
  if (!e.big) c = {32, 8, 1, 3};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int robots = e.big ? 64 : 3, K = c.B * c.programs, T = c.T;
  auto plans = random<float>(e, size_t(robots) * T), states = random<float>(e, size_t(robots) * 2);
  auto costs = constant<float>(e, size_t(robots) * K, NAN), sums = constant<float>(e, size_t(robots) * (T + 1), 0);
  Job j;
  j.gflop = 1e-9 * double(robots) * K * T * 100;
  j.add(rollouts, c, plans.view(robots, T), states.view(robots, 2), costs.view(robots, K), sums.p, 3u);
  j.check = [=] {
    std::vector<double> cost(costs.n), sum(sums.n);
    for (int r = 0; r < robots; ++r)
      for (int k = 0; k < K; ++k) {
        double angle = states[size_t(r) * 2], speed = states[size_t(r) * 2 + 1], total = 0;
        std::vector<double> noise;
        for (int t = 0; t < T; t += 4) {
          const auto w = reference_philox(3, (uint64_t(r) * K + k) * T + t);
          for (int i = 0; i < 4; i += 2) {
            const double u = 1 - double(w[i] >> 8) * 0x1p-24, v = double(w[i + 1] >> 8) * 0x1p-24;
            const double radius = std::sqrt(-2 * std::log(u)), turn = 6.283185307179586 * v;
            noise.push_back(radius * std::cos(turn)), noise.push_back(radius * std::sin(turn));
          }
        }
        for (int t = 0; t < T; ++t) {
          const double push = std::clamp(plans[size_t(r) * T + t] + noise[t] * .5, -2., 2.);
          speed = std::clamp(speed + (15 * std::sin(angle) + 3 * push) * .02, -8., 8.);
          angle += speed * .02;
          total += 1 - std::cos(angle) + .01 * speed * speed + .001 * push * push;
        }
        const double weight = std::exp2(-.1 * total);
        cost[size_t(r) * K + k] = total, sum[size_t(r) * (T + 1) + T] += weight;
        for (int t = 0; t < T; ++t) sum[size_t(r) * (T + 1) + t] += weight * noise[t] * .5;
      }
    if (std::string wrong = agree(costs.now(), cost, 1e-3, 1e-3); !wrong.empty()) return "costs: " + wrong;
    return agree(sums.now(), sum, 1e-2, 2e-3);
  };
  return j;
});

}  // namespace estimations
}  // namespace users
