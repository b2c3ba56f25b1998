// odd_pairs.cpp - operators on types and sizes that seldom meet: frames of chains of joints as a scan of twelve tiles,
// wide keys in order with flags beside them, running sums that end early, box sums of bytes in tiles of five dims.
#include "tests/users/use.h"
namespace users {
namespace odd_pairs {

// --- where the joints of chains are: the products of all turns and shifts before them
struct ChainCfg {
  int B = 16, L = 40, warps = 16;
};
auto joints =
    kernel("user_joint_frames", [](const ChainCfg& c, Tensor<const float, 2> angle, Tensor<const float, 2> twist,
                                   Tensor<const float, 2> length, Tensor<float, 3> position) {
      num_warps(c.warps);
      auto b = program_id(0) * c.B;
      auto at = [&](const auto& T) { return T.load({b, 0}, {c.B, c.L}); };
      Tile a = at(angle), w = at(twist), r = at(length);
      Tile ca = cos(a), sa = sin(a), cw = cos(w), sw = sin(w), zero = zeros({c.B, c.L}, f32);
      auto m = scan({ca, -(sa * cw), sa * sw, sa, ca * cw, -(ca * sw), zero, sw, cw, r * ca, r * sa, zero}, axis(1),
                    [](Tile a0, Tile a1, Tile a2, Tile a3, Tile a4, Tile a5, Tile a6, Tile a7, Tile a8, Tile a9,
                       Tile a10, Tile a11, Tile b0, Tile b1, Tile b2, Tile b3, Tile b4, Tile b5, Tile b6, Tile b7,
                       Tile b8, Tile b9, Tile b10, Tile b11) {
                      Tile p[12] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11};
                      Tile q[12] = {b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11};
                      auto turn = [&](int i, int j) {
                        return p[3 * i] * q[j] + p[3 * i + 1] * q[3 + j] + p[3 * i + 2] * q[6 + j];
                      };
                      auto shift = [&](int i) {
                        return p[3 * i] * q[9] + p[3 * i + 1] * q[10] + p[3 * i + 2] * q[11] + p[9 + i];
                      };
                      return std::tuple(turn(0, 0), turn(0, 1), turn(0, 2), turn(1, 0), turn(1, 1), turn(1, 2),
                                        turn(2, 0), turn(2, 1), turn(2, 2), shift(0), shift(1), shift(2));
                    });
      for (int d = 0; d < 3; ++d) position.store({b, d, 0}, expand_dims(m[9 + d], 1));
    }).grid([](const ChainCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r1("joint_frames", [](Env& e) {
  const int n = e.big ? 1 << 17 : 21, L = 40;
  auto angle = random<float>(e, size_t(n) * L, -3, 3), twist = random<float>(e, size_t(n) * L, -2, 2);
  auto length = random<float>(e, size_t(n) * L, 0, 1), position = constant<float>(e, size_t(n) * L * 3, NAN);
  Job j;
  j.mbytes = 24e-6 * n * L;
  j.add(joints, ChainCfg{}, angle.view(n, L), twist.view(n, L), length.view(n, L), position.view(n, 3, L));
  j.check = [=] {
    std::vector<double> want(position.n);
    for (int b = 0; b < n; ++b) {
      double m[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, p[3] = {0, 0, 0};
      for (int l = 0; l < L; ++l) {
        const size_t at = size_t(b) * L + l;
        const double c = std::cos(angle[at]), s = std::sin(angle[at]), d = std::cos(twist[at]), t = std::sin(twist[at]);
        const double q[3][3] = {{c, -s * d, s * t}, {s, c * d, -c * t}, {0, t, d}};
        for (int i = 0; i < 3; ++i) {
          p[i] += length[at] * (m[i][0] * c + m[i][1] * s);
          const double row[3] = {m[i][0], m[i][1], m[i][2]};
          for (int k = 0; k < 3; ++k) m[i][k] = row[0] * q[0][k] + row[1] * q[1][k] + row[2] * q[2][k];
          want[(size_t(b) * 3 + i) * L + l] = p[i];
        }
      }
    }
    return agree(position.now(), want, 2e-5, 1e-5);
  };
  return j;
});

// --- rows of 48 keys of 64 bits in order, with the flags that belong to them; what is flagged comes out first
struct OrderCfg {
  int B = 8, N = 48, warps = 2;
};
auto flags_first =
    kernel("user_flags_first", [](const OrderCfg& c, Tensor<const uint64_t, 2> keys, Tensor<const bool, 2> flags,
                                  Tensor<uint64_t, 2> sorted, Tensor<uint8_t, 2> from, Tensor<int16_t, 1> flagged) {
      num_warps(c.warps);
      auto b = program_id(0) * c.B;
      Tile k = keys.load({b, 0}, {c.B, c.N}), f = flags.load({b, 0}, {c.B, c.N});
      Tile order = argsort(k, axis(1), {.descending = true});
      k = take(k, order, 1), f = take(f, order, 1);
      auto before = cumsum(f, axis(1)), all = sum(f, axis(1));
      auto place = where(f, before - 1, all + arange(0, c.N).row() - before);
      // The inverse of `place`: the position whose place this is.
      Tile at = argsort(place, axis(1));
      sorted.store({b, 0}, take(k, at, 1));
      from.store({b, 0}, cast(take(order, at, 1), u8));
      flagged.store({b}, cast(squeeze(all, 1), i16));
    }).grid([](const OrderCfg& c, const auto& k, const auto&...) { return Grid{cdiv(k.shape[0], c.B)}; });
Register r2("flags_first", [](Env& e) {
  const int n = e.big ? 1 << 18 : 37, N = 48;
  auto keys = drawn<uint64_t>(e, size_t(n) * N, [&] {
    e.uniform();
    return e.state ^ e.state >> 29;
  });
  auto flags = integers<uint8_t>(e, size_t(n) * N, 0, 2);
  auto sorted = constant<uint64_t>(e, size_t(n) * N, 0);
  auto from = constant<uint8_t>(e, size_t(n) * N, 99);
  auto flagged = constant<int16_t>(e, n, -1);
  Job j;
  j.mbytes = 18e-6 * n * N;
  j.add(flags_first, OrderCfg{}, keys.view(n, N), TensorView<const bool, 2>(reinterpret_cast<bool*>(flags.p), {n, N}),
        sorted.view(n, N), from.view(n, N), flagged.view(n));
  j.check = [=] {
    std::vector<double> order, count;
    std::vector<uint64_t> want;
    for (int b = 0; b < n; ++b) {
      std::vector<int> at(N);
      for (int i = 0; i < N; ++i) at[i] = i;
      const size_t row = size_t(b) * N;
      std::stable_sort(at.begin(), at.end(), [&](int x, int y) {
        const bool fx = flags.at(row + x), fy = flags.at(row + y);
        return fx != fy ? fx : keys.at(row + x) > keys.at(row + y);
      });
      count.push_back(0);
      for (int i : at) want.push_back(keys.at(row + i)), order.push_back(i), count.back() += flags.at(row + i);
    }
    if (sorted.now() != want) return std::string("keys are not in order");
    const auto wrong = agree(from.now(), order, 0.1, 0);
    return wrong.empty() ? agree(flagged.now(), count, 0.1, 0) : wrong;
  };
  return j;
});

// --- where the running sum of a list first passes its limit: lists of any length, given up as soon as it has
struct BreachCfg {
  int B = 96, warps = 1;
};
auto breach = kernel("user_first_breach", [](const BreachCfg& c, Ptr<const half> values, Ptr<const int64_t> starts,
                                             Ptr<const double> limits, Ptr<int64_t> places, Ptr<double> sums, I32) {
                num_warps(c.warps);
                auto l = program_id(0);
                Tile begin = load(starts + l), end = load(starts + l + 1), limit = load(limits + l);
                Tile place = cast(-1, i64), total = cast(0.0, f64);
                for (auto i : range(begin, end, c.B)) {
                  auto at = i + cast(arange(0, c.B), i64);
                  auto running = total + cumsum(cast(load(values + at, {.mask = at < end}), f64), axis(0));
                  auto past = (running > limit) & (at < end);
                  if_(
                      any(past),
                      [&] {
                        auto first = to_scalar(argmax(cast(past, i32), axis(0)));
                        place = i + cast(first, i64) - begin;
                        total = sum(where(arange(0, c.B) == first, running, 0.0));
                      },
                      [&] { total = max(where(at == min(i + c.B, end) - 1, running, -INFINITY)); });
                  break_if(place >= 0);
                }
                store(places + l, place);
                store(sums + l, total);
              }).grid([](const BreachCfg&, auto, auto, auto, auto, auto, int lists) { return Grid{lists}; });
Register r3("first_breach", [](Env& e) {
  const int lists = e.big ? 1 << 16 : 23;
  std::vector<int64_t> lengths(lists + 1);
  for (int l = 0; l < lists; ++l) lengths[l + 1] = lengths[l] + (l % 7 == 3 ? 0 : int64_t(e.uniform() * 1000));
  auto values = random<half>(e, size_t(lengths[lists]) + 1, -0.2, 1);
  auto starts = repeated<int64_t>(e, lists + 1, lengths);
  auto limits = random<double>(e, lists, 1, 400);
  auto places = constant<int64_t>(e, lists, -9);
  auto sums = constant<double>(e, lists, NAN);
  Job j;
  j.mbytes = 2e-6 * double(lengths[lists]);
  j.add(breach, BreachCfg{}, values.p, starts.p, limits.p, places.p, sums.p, lists);
  j.check = [=] {
    std::vector<double> place(lists, -1.), total(lists);
    for (int l = 0; l < lists; ++l)
      for (int64_t i = starts.at(l); i < starts.at(l + 1) && place[l] < 0; ++i)
        if ((total[l] += values[size_t(i)]) > limits[l]) place[l] = double(i - starts.at(l));
    const auto wrong = agree(places.now(), place, 0.1, 0);
    return wrong.empty() ? agree(sums.now(), total, 1e-9, 0) : wrong;
  };
  return j;
});

// --- sums of boxes of bytes in five dims: two dims summed, one summed from the end, and which boxes have any at all
struct FiveCfg {
  int A = 2, B = 3, C = 4, D = 5, E = 12, warps = 2;
};
auto five_sums = kernel("user_five_sums", [](const FiveCfg& c, Tensor<const uint8_t, 5> X, Tensor<uint64_t, 3> tails,
                                             Tensor<bool, 2> present) {
                   num_warps(c.warps);
                   auto a = program_id(0) * c.A;
                   Tile x = X.load({a, 0, 0, 0, 0}, {c.A, c.B, c.C, c.D, c.E});
                   auto part = squeeze(squeeze(sum(sum(cast(x, u64), axis(3)), axis(1)), 3), 1);  // [A, C, E]
                   auto tail = cumsum(part, axis(1), {.reverse = true});
                   tails.store({0, 0, a}, permute(tail, {2, 1, 0}));
                   auto other = permute(x > 250, {3, 0, 4, 2, 1});  // [D, A, E, C, B]
                   auto has = squeeze(squeeze(squeeze(any(any(any(other, axis(0)), axis(3)), axis(4)), 4), 3), 0);
                   present.store({a, 0}, has);  // [A, E]
                 }).grid([](const FiveCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.A)}; });
Register r4("five_sums", [](Env& e) {
  const int A = e.big ? 200000 : 7, B = 3, C = 4, D = 5, E = 12;
  auto x = integers<uint8_t>(e, size_t(A) * B * C * D * E, 0, 256);
  auto tails = constant<uint64_t>(e, size_t(A) * C * E, 0);
  auto present = constant<uint8_t>(e, size_t(A) * E, 7);
  Job j;
  j.mbytes = 1e-6 * A * (720 + 8 * 48 + 12);
  j.add(five_sums, FiveCfg{}, x.view(A, B, C, D, E), tails.view(E, C, A),
        TensorView<bool, 2>(reinterpret_cast<bool*>(present.p), {A, E}));
  j.check = [=] {
    std::vector<double> tail(tails.n), is(present.n);
    for (size_t i = 0; i < x.n; ++i) {
      const size_t v = i % E, c = i / E / D % C, a = i / E / D / C / B;
      for (size_t k = 0; k <= c; ++k) tail[(v * C + k) * A + a] += x[i];
      if (x[i] > 250) is[a * E + v] = 1;
    }
    const auto wrong = agree(tails.now(), tail, 0.1, 0);
    return wrong.empty() ? agree(present.now(), is, 0.1, 0) : wrong;
  };
  return j;
});

}  // namespace odd_pairs
}  // namespace users
