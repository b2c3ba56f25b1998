// kept_lists.cpp - results that find their own places: segments of contours, a hash table that is the same whatever the
// order, runs of bytes. And fields whose edges need branches or modes: a lid-driven flow, textures with levels.
#include "tests/users/use.h"
namespace users {
namespace kept_lists {

// --- contours of a field (marching squares): none, one or two segments a cell, in one list
struct IsoCfg {
  int BM = 8, BN = 48, warps = 4;
};
/// The edges that segments of a cell go from and to, four bits each, 15 for none; saddles as if the middle were below.
constexpr uint16_t kEdges[16] = {0xffff, 0xff03, 0xff10, 0xff13, 0xff21, 0x2103, 0xff20, 0xff23,
                                 0xff32, 0xff02, 0x3210, 0xff12, 0xff31, 0xff01, 0xff30, 0xffff};
auto isolines = kernel("user_isolines", [](const IsoCfg& c, Tensor<const float, 2> field, Ptr<const uint16_t> edges,
                                           F32 level, Ptr<float> segments, Ptr<int> count) {
                  num_warps(c.warps);
                  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                  auto corner = [&](int i, int j) { return field.load({m + i, n + j}, {c.BM, c.BN}) - level; };
                  Tile f00 = corner(0, 0), f01 = corner(0, 1), f11 = corner(1, 1), f10 = corner(1, 0);
                  auto bit = [&](const Tile& f, int b) { return cast(f > 0, i32) << b; };
                  auto code = bit(f00, 0) | bit(f01, 1) | bit(f11, 2) | bit(f10, 3);
                  auto row = (m + arange(0, c.BM)).col(), column = (n + arange(0, c.BN)).row();
                  auto inside = (row < field.dim(0) - 1) & (column < field.dim(1) - 1);
                  auto entry = cast(load(edges + code, {.mask = inside, .other = 65535}), i32);
                  auto flat = [&](const Tile& x) { return ravel(x); };
                  // Where the level crosses edge 0 (first row), 1 (last column), 2 (last row), 3 (first column).
                  auto part = [](const Tile& a, const Tile& b) { return a / (a - b); };
                  Tile x = cast(column, f32) + zeros({c.BM, c.BN}, f32), y = cast(row, f32) + zeros({c.BM, c.BN}, f32);
                  Tile xs[4] = {x + part(f00, f01), x + 1, x + part(f10, f11), x};
                  Tile ys[4] = {y, y + part(f01, f11), y + 1, y + part(f00, f10)};
                  auto at = [&](const Tile(&v)[4], const Tile& e) {
                    return flat(where(e == 0, v[0], where(e == 1, v[1], where(e == 2, v[2], v[3]))));
                  };
                  auto number = flat(cast((entry & 255) != 255, i32) + cast((entry >> 8) != 255, i32));
                  auto before = cumsum(number, axis(0)) - number;
                  auto base = atomic_add(count, sum(number));
                  for (int s = 0; s < 2; ++s) {
                    auto from = (entry >> (8 * s + 4)) & 15, to = (entry >> (8 * s)) & 15;
                    auto ends =
                        join(join(at(xs, from), at(xs, to)), join(at(ys, from), at(ys, to)));  // [cell, end, axis]
                    auto place = (base + before + s).col() * 4 + arange(0, 4).row();
                    store(segments + place, reshape(ends, {c.BM * c.BN, 4}), {.mask = (number > s).col()});
                  }
                }).grid([](const IsoCfg& c, const auto& f, auto, float, auto, auto) {
  return Grid{cdiv(f.shape[0], c.BM), cdiv(f.shape[1], c.BN)};
});
Register r1("isolines", [](Env& e) {
  const int H = e.big ? 8192 : 45, W = e.big ? 8192 : 110;
  auto field = filled<float>(e, size_t(H) * W, [&](size_t i) {
    const double y = double(i / W), x = double(i % W);
    return float(std::sin(x * 0.5) * std::cos(y * 0.4) + 0.6 * e.uniform());
  });
  auto edges = repeated<uint16_t>(e, 16, {kEdges, kEdges + 16});
  auto segments = constant<float>(e, size_t(H) * W * 8, NAN);
  auto count = constant<int>(e, 1, 0);
  Job j;
  j.mbytes = 8e-6 * H * W;
  restore(e, j, count);
  j.inTurn = true;
  j.add(isolines, IsoCfg{}, field.view(H, W), edges.p, 0.4f, segments.p, count.p);
  j.check = [=] {
    using Segment = std::array<double, 4>;
    std::vector<Segment> want;
    for (int y = 0; y + 1 < H; ++y)
      for (int x = 0; x + 1 < W; ++x) {
        auto f = [&](int i, int k) { return double(float(field[size_t(y + i) * W + x + k]) - 0.4f); };
        const double f00 = f(0, 0), f01 = f(0, 1), f11 = f(1, 1), f10 = f(1, 0);
        const double xs[4] = {x + f00 / (f00 - f01), x + 1., x + f10 / (f10 - f11), x + 0.};
        const double ys[4] = {y + 0., y + f01 / (f01 - f11), y + 1., y + f00 / (f00 - f10)};
        const int code = (f00 > 0) + 2 * (f01 > 0) + 4 * (f11 > 0) + 8 * (f10 > 0);
        for (int s = 0; s < 2; ++s)
          if (const int p = kEdges[code] >> (8 * s) & 255; p != 255)
            want.push_back({xs[p >> 4], ys[p >> 4], xs[p & 15], ys[p & 15]});
      }
    const auto number = size_t(count.now()[0]);
    if (number != want.size()) return std::to_string(number) + " segments, not " + std::to_string(want.size());
    const auto all = segments.now();
    std::vector<Segment> got(number);
    for (size_t i = 0; i < number * 4; ++i) got[i / 4][i % 4] = all[i];
    auto key = [](const Segment& s) {  // a cell has its segments at different edges
      return std::array<double, 5>{std::floor((s[1] + s[3]) / 2), std::floor((s[0] + s[2]) / 2), s[0], s[1], s[2]};
    };
    auto order = [&](const Segment& a, const Segment& b) { return key(a) < key(b); };
    std::sort(got.begin(), got.end(), order), std::sort(want.begin(), want.end(), order);
    std::vector<double> g, w;
    for (size_t i = 0; i < number; ++i)
      g.insert(g.end(), got[i].begin(), got[i].end()), w.insert(w.end(), want[i].begin(), want[i].end());
    return agree(g, w, 1e-4, 1e-6);
  };
  return j;
});

// --- a hash table whose contents do not depend on the order of insertion (Blelloch and Shun): smaller words displace
// larger ones, which go on to the next slot. Lookups end at the first larger word
struct HashCfg {
  int B = 256, warps = 4;
};
Tile home(const Tile& key, const Tile& slots) { return mulhi(key * 0x9E3779B97F4A7C15ull, slots); }
auto ordered_insert = kernel("user_ordered_insert", [](const HashCfg& c, Ptr<const uint64_t> words, Ptr<uint64_t> table,
                                                       U64 slots, I32 n) {
                        num_warps(c.warps);
                        auto i = program_id(0) * c.B + arange(0, c.B);
                        Tile active = i < n;
                        Tile word = load(words + i, {.mask = active}), slot = home(word >> 16, slots);
                        while_([&] { return any(active); },
                               [&] {
                                 auto old = atomic_min(table + slot, word, {.mask = active, .order = Order::relaxed});
                                 active = active & (old != ~0ull);
                                 word = where(active, max(old, word), word);
                                 slot = where(slot + 1 == slots, 0, slot + 1);
                               });
                      }).grid([](const HashCfg& c, auto, auto, uint64_t, int n) { return Grid{cdiv(n, c.B)}; });
auto ordered_find =
    kernel("user_ordered_find", [](const HashCfg& c, Ptr<const uint64_t> keys, Ptr<const uint64_t> table,
                                   Ptr<uint16_t> payloads, Ptr<bool> found, U64 slots, I32 n) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      Tile key = load(keys + i, {.mask = i < n}), slot = home(key, slots);
      Tile payload = zeros({c.B}, u16), hit = zeros({c.B}, i1), active = i < n;
      while_([&] { return any(active); },
             [&] {
               auto word = load(table + slot, {.mask = active, .other = ~0ull});
               auto is = active & ((word >> 16) == key);
               payload = where(is, cast(word, u16), payload), hit = hit | is;
               active = active & ((word >> 16) < key);
               slot = where(slot + 1 == slots, 0, slot + 1);
             });
      store(payloads + i, payload, {.mask = i < n});
      store(found + i, hit, {.mask = i < n});
    }).grid([](const HashCfg& c, auto, auto, auto, auto, uint64_t, int n) { return Grid{cdiv(n, c.B)}; });
Register r2("ordered_hash", [](Env& e) {
  const int n = e.big ? 1 << 22 : 900;
  const uint64_t slots = uint64_t(n) * 5 / 4;
  std::vector<uint64_t> different;  // keys, a third of them shares its home with others
  for (int i = 0; i < (e.big && !e.device ? 1 : n); ++i)
    different.push_back((uint64_t(i) * 2654435761u % (1ull << 40)) << 16 | uint64_t(e.uniform() * 65536));
  auto words = repeated<uint64_t>(e, n, different);
  auto table = repeated<uint64_t>(e, slots, {~0ull});
  auto keys = filled<uint64_t>(e, n, [&](size_t i) { return i % 3 ? words.at(i) >> 16 : (words.at(i) >> 16) + 1; });
  auto payloads = constant<uint16_t>(e, n, 7);
  auto found = constant<uint8_t>(e, n, 1);
  Job j;
  j.mbytes = 35e-6 * n;
  restore(e, j, table);
  j.inTurn = true;
  j.add(ordered_insert, HashCfg{}, words.p, table.p, slots, n);
  j.add(ordered_find, HashCfg{}, keys.p, table.p, payloads.p, reinterpret_cast<bool*>(found.p), slots, n);
  j.check = [=] {
    std::vector<uint64_t> t(slots, ~0ull);
    auto first = [&](uint64_t key) { return size_t((unsigned __int128)(key * 0x9E3779B97F4A7C15ull) * slots >> 64); };
    for (int i = n - 1; i >= 0; --i) {
      uint64_t word = words.at(i);
      for (size_t s = first(word >> 16); word != ~0ull; s = s + 1 == t.size() ? 0 : s + 1)
        if (word < t[s]) std::swap(word, t[s]);
    }
    if (table.now() != t) return std::string("the table is another one");
    std::map<uint64_t, uint64_t> all;
    for (int i = 0; i < n; ++i) all[words.at(i) >> 16] = words.at(i) & 65535;
    std::vector<double> payload(n), hit(n);
    for (int i = 0; i < n; ++i)
      if (auto it = all.find(keys.at(i)); it != all.end()) payload[i] = double(it->second), hit[i] = 1;
    const auto wrong = agree(payloads.now(), payload, 0.1, 0);
    return wrong.empty() ? agree(found.now(), hit, 0.1, 0) : wrong;
  };
  return j;
});

// --- runs of bytes, row by row: values and lengths of at most 255
struct RunCfg {
  int B = 512, warps = 4;
};
auto run_lengths =
    kernel("user_run_lengths", [](const RunCfg& c, Tensor<const uint8_t, 2> bytes, Tensor<uint8_t, 2> values,
                                  Tensor<uint8_t, 2> lengths, Tensor<int, 1> counts) {
      num_warps(c.warps);
      auto row = program_id(0);
      auto n = bytes.dim(1);
      Tile count = 0, began = 0;
      for (auto j : range(0, n, c.B)) {
        auto i = j + arange(0, c.B);
        auto at = [&](int d) { return bytes.load({row, j + d}, {c.B}); };
        Tile x = at(0), differs = (x != at(-1)) | (i == 0);
        auto since = max(scan(where(differs, i, 0), axis(0), [](Tile a, Tile b) { return max(a, b); }), began);
        auto inside = (i - since) % 255;
        auto head = (inside == 0) & (i < n), tail = (x != at(1)) | (i == n - 1) | (inside == 254);
        auto place = cast(row, i64) * values.stride(0) + cast(count + cumsum(cast(head, i32), axis(0)) - 1, i64);
        store(values.ptr() + place, x, {.mask = head});
        store(lengths.ptr() + place, cast(inside + 1, u8), {.mask = tail & (i < n)});
        count += sum(cast(head, i32));
        began = max(since);
      }
      counts.store({row}, count);
    }).grid([](const RunCfg&, const auto& b, const auto&...) { return Grid{b.shape[0]}; });
Register r3("run_lengths", [](Env& e) {
  const int M = e.big ? 8192 : 5, N = e.big ? 16384 : 1900;
  auto bytes = drawn<uint8_t>(e, size_t(M) * N, [&, left = 0, value = 0]() mutable {
    if (left-- <= 0) value = int(e.uniform() * 4), left = int(std::pow(e.uniform(), 6) * 700);
    return uint8_t(value);
  });
  auto values = constant<uint8_t>(e, size_t(M) * N, 9), lengths = constant<uint8_t>(e, size_t(M) * N, 0);
  auto counts = constant<int>(e, M, -1);
  Job j;
  j.mbytes = 1.2e-6 * M * N;
  j.add(run_lengths, RunCfg{}, bytes.view(M, N), values.view(M, N), lengths.view(M, N), counts.view(M));
  j.check = [=] {
    std::vector<double> v(size_t(M) * N, 9.), l(size_t(M) * N), number(M);
    for (int r = 0; r < M; ++r)
      for (int i = 0; i < N; ++number[r]) {
        const size_t at = size_t(r) * N + size_t(number[r]);
        int k = i;
        while (k < N && k - i < 255 && bytes.at(size_t(r) * N + k) == bytes.at(size_t(r) * N + i)) ++k;
        v[at] = bytes[size_t(r) * N + i], l[at] = k - i, i = k;
      }
    auto wrong = agree(counts.now(), number, 0.1, 0);
    if (wrong.empty()) wrong = agree(values.now(), v, 0.1, 0);
    return wrong.empty() ? agree(lengths.now(), l, 0.1, 0) : wrong;
  };
  return j;
});

}  // namespace kept_lists
}  // namespace users
