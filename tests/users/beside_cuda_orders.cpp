// beside_cuda_orders.cpp - one pass of a radix sort, sums by sorted key, a sparse matrix in slices of rows.
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_orders {

// --- one pass of a radix sort of keys with payloads, eight bits: digits counted by block, offsets, stable scatter
struct RadixCfg {
  int B = 2048, S = 1024;
};
auto radix_count =
    kernel("user_radix_count", [](const RadixCfg& c, Ptr<const uint32_t> key, Ptr<int> count, I32 n, I32 shift) {
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto digit = cast((load(key + i, {.mask = i < n}) >> shift) & 255u, i32);
      auto h = histogram(digit, 256, {.mask = i < n});
      store(count + arange(0, 256) * num_programs(0) + program_id(0), h);
    }).grid([](const RadixCfg& c, auto, auto, int n, int) { return Grid{cdiv(n, c.B)}; });
// Exclusive sums along the blocks of every digit, and the digits' totals.
auto radix_scan = kernel("user_radix_scan", [](const RadixCfg& c, Tensor<int, 2> count, Ptr<int> total) {
                    auto d = program_id(0);
                    Tile before = 0;
                    for (auto b : range(0, count.dim(1), c.S)) {
                      auto x = count.load({d, b}, {c.S});
                      count.store({d, b}, before + cumsum(x, axis(0)) - x);
                      before += sum(x);
                    }
                    store(total + d, before);
                  }).grid([](const RadixCfg&, const auto& count, auto) { return Grid{count.shape[0]}; });
auto radix_scatter =
    kernel("user_radix_scatter", [](const RadixCfg& c, Ptr<const uint32_t> key, Ptr<const int> payload,
                                    Ptr<const int> offset, Ptr<const int> total, Ptr<uint32_t> keys, Ptr<int> payloads,
                                    I32 n, I32 shift) {
      auto lane = arange(0, c.B);
      auto i = program_id(0) * c.B + lane;
      auto in = i < n;
      auto k = load(key + i, {.mask = in});
      auto digit = where(in, cast((k >> shift) & 255u, i32), 256);
      auto order = argsort(digit, axis(0));  // stable
      auto sk = take(k, order, 0), sd = take(digit, order, 0);
      auto h = histogram(digit, 256);
      auto t = load(total + arange(0, 256));
      auto start = load(offset + arange(0, 256) * num_programs(0) + program_id(0)) + (cumsum(t, axis(0)) - t) -
                   (cumsum(h, axis(0)) - h);
      auto there = sd < 256;
      auto to = take(start, min(sd, 255), 0) + lane;
      store(keys + to, sk, {.mask = there});
      store(payloads + to, take(load(payload + i, {.mask = in}), order, 0), {.mask = there});
    }).grid([](const RadixCfg& c, auto, auto, auto, auto, auto, auto, int n, int) { return Grid{cdiv(n, c.B)}; });
Register r1("radix_pairs", [](Env& e) {
  RadixCfg c;
  c.B = e.field("B", e.big ? 2048 : 256), c.S = e.field("S", 1024);
  const int N = e.big ? 1 << 23 : 5003, blocks = cdiv(N, c.B), shift = 8;
  auto k = drawn<uint32_t>(e, N, [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); });
  auto v = filled<int>(e, N, [](size_t i) { return int(i); });
  auto count = constant<int>(e, size_t(blocks) * 256, 0), total = constant<int>(e, 256, 0),
       vs = constant<int>(e, N, -1);
  auto ks = constant<uint32_t>(e, N, 0);
  Job j;
  j.mbytes = 20e-6 * N;
  j.inTurn = true;
  j.add(radix_count, c, k.p, count.p, N, shift);
  j.add(radix_scan, c, count.view(256, blocks), total.p);
  j.add(radix_scatter, c, k.p, v.p, count.p, total.p, ks.p, vs.p, N, shift);
  j.check = [=]() -> std::string {
    std::vector<int> order(N);
    for (int i = 0; i < N; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return (k.at(a) >> 8 & 255) < (k.at(b) >> 8 & 255); });
    const auto gk = ks.now();
    const auto gv = vs.now();
    for (int i = 0; i < N; ++i)
      if (gk[i] != k.at(order[i]) || gv[i] != order[i]) return "element " + std::to_string(i);
    return "";
  };
  return j;
});

// --- sums of half values by sorted key
struct KeyCfg {
  int B = 2048, form = 0;  // form 1: keys beside a key come from its tile; at the ends of a tile none are needed
};
auto keys_zero = kernel("user_keys_zero", [](const KeyCfg& c, Ptr<float> out, I32 n) {
                   auto i = program_id(0) * c.B + arange(0, c.B);
                   store(out + i, zeros({c.B}, f32), {.mask = i < n});
                 }).grid([](const KeyCfg& c, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto keys_sum =
    kernel("user_keys_sum", [](const KeyCfg& c, Ptr<const int> key, Ptr<const half> value, Ptr<float> out, I32 n) {
      auto lane = arange(0, c.B);
      auto i = program_id(0) * c.B + lane;
      auto in = i < n;
      auto k = load(key + i, {.mask = in, .other = -1});
      auto before = c.form ? shift(k, 1, axis(0), {.fill = -1})
                           : load(key + i - 1, {.mask = in & (i > 0), .other = -1});
      auto after = c.form ? shift(k, -1, axis(0), {.fill = -1}) : load(key + i + 1, {.mask = i + 1 < n, .other = -1});
      auto v = cast(load(value + i, {.mask = in}), f32);
      auto [head, s] = scan({cast(k != before, i32), v}, axis(0), [](Tile f0, Tile v0, Tile f1, Tile v1) {
        return std::tuple(f0 | f1, where(f1 != 0, v1, v0 + v1));
      });
      auto last = in & ((k != after) | (lane == c.B - 1));
      atomic_add(out + k, s, {.mask = last});
    }).grid([](const KeyCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r2("reduce_by_key", [](Env& e) {
  const int N = e.big ? 1 << 24 : 10007;
  std::vector<int> k(N);
  int key = 0, left = 3;
  for (int i = 0; i < N; ++i) {
    if (!left--) ++key, left = int(e.uniform() * 40) * (e.uniform() < .02 ? 100 : 1);
    k[i] = key;
  }
  const int K = key + 1;
  auto keys = repeated<int>(e, N, k);
  auto v = random<half>(e, N);
  auto out = constant<float>(e, K, NAN);
  KeyCfg c{e.field("B", 2048), e.field("form", 0)};
  Job j;
  j.mbytes = 6e-6 * N + 8e-6 * K;
  j.inTurn = true;
  j.add(keys_zero, c, out.p, K);
  j.add(keys_sum, c, keys.p, v.p, out.p, N);
  j.check = [=] {
    std::vector<double> want(K);
    for (int i = 0; i < N; ++i) want[k[i]] += v[i];
    return agree(out.now(), want, 1e-3, 1e-4);
  };
  return j;
});
// --- a sparse matrix by a vector, in sliced ELL: slices of 32 rows, column by column, values in half
struct SellCfg {
  int B = 128;
};
auto spmv_sell =
    kernel("user_spmv_sell", [](const SellCfg& c, Ptr<const int> slices, Ptr<const int> column, Ptr<const half> value,
                                Ptr<const float> x, Ptr<float> y, I32 rows) {
      auto r = program_id(0) * c.B + arange(0, c.B);
      auto in = r < rows;
      auto s = r / 32;
      auto base = load(slices + s, {.mask = in});
      auto width = (load(slices + s + 1, {.mask = in}) - base) / 32;
      auto place = base + r % 32;
      Tile acc = zeros({c.B}, f32);
      for (auto k : range(max(width))) {
        auto m = k < width;
        auto col = load(column + place + k * 32, {.mask = m, .other = -1});
        auto have = col >= 0;
        acc += cast(load(value + place + k * 32, {.mask = m}), f32) * load(x + col, {.mask = have});
      }
      store(y + r, acc, {.mask = in});
    }).grid([](const SellCfg& c, auto, auto, auto, auto, auto, int rows) { return Grid{cdiv(rows, c.B)}; });
int row_length(size_t r) {
  return int((r * 2654435761u >> 7) % 41) + 10 + (r % 97 == 0 ? 150 : 0) - (r % 53 == 5 ? 10 : 0);
}
/// A column near the diagonal for most entries, anywhere for some.
int column_of(size_t r, int k, int rows) {
  const uint64_t h = (r * 0x9E3779B97F4A7C15ull + uint64_t(k) * 0xD1B54A32D192ED03ull) >> 20;
  if (k % 4 == 3) return int(h % rows);
  return int((r + h % 2000) % rows);
}
Register r3("spmv_sell", [](Env& e) {
  const int N = e.big ? 500000 : 1003, S = (N + 31) / 32;
  std::vector<int> start{0}, col;
  for (int s = 0; s < S; ++s) {
    int w = 0;
    for (int r = s * 32; r < std::min(N, s * 32 + 32); ++r) w = std::max(w, row_length(r) % 64);
    start.push_back(start.back() + w * 32);
    if (e.device)
      for (int k = 0; k < w; ++k)
        for (int r = s * 32; r < s * 32 + 32; ++r)
          col.push_back(r < N && k < row_length(r) % 64 ? column_of(r, k, N) : -1);
  }
  const size_t nnz = start.back();
  auto f = repeated<int>(e, start.size(), start), c = repeated<int>(e, nnz, col);
  auto v = random<half>(e, nnz);
  auto x = random<float>(e, N);
  auto y = constant<float>(e, N, NAN);
  Job j;
  j.mbytes = 6e-6 * double(nnz) + 12e-6 * N;
  j.add(spmv_sell, SellCfg{e.field("B", 128)}, f.p, c.p, v.p, x.p, y.p, N);
  j.check = [=] {
    std::vector<double> want(N);
    for (int r = 0; r < N; ++r)
      for (int k = start[r / 32] + r % 32; k < start[r / 32 + 1]; k += 32)
        if (col[k] >= 0) want[r] += v[k] * x[col[k]];
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});
}  // namespace beside_cuda_orders
}  // namespace users
