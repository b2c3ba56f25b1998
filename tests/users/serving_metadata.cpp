// serving_metadata.cpp - the small kernels around attention in servers: lists of cache slots of requests, how many
// parts a request's keys are cut into, tables of blocks that are reached through an array of addresses.
#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace serving_metadata {

// --- where the keys of each request lie, one request behind the other: a loop whose length is found in memory
struct SlotCfg {
  int B = 512;
  bool starts = true;
};
auto kv_indices =
    kernel("user_kv_indices",
           [](const SlotCfg& c, Ptr<const int32_t> pool, Ptr<const int64_t> request, Ptr<const int32_t> lengths,
              Ptr<const int32_t> offsets, Ptr<const int32_t> starts, Ptr<int32_t> out, I64 stride, I32 requests) {
             auto pid = program_id(0);
             return_if(pid >= requests);
             auto row = load(request + pid);
             auto to = load(offsets + pid);
             Tile begin = zeros({}, i32), end = load(lengths + pid);
             if (c.starts) {
               begin = load(starts + pid);
               end += begin;
             }
             for (auto k : range(cdiv(end - begin, c.B))) {
               auto i = cast(arange(0, c.B), i64) + cast(k, i64) * c.B;
               auto mask = i < end - begin;
               auto data = load(pool + row * stride + begin + i, {.mask = mask});
               store(out + to + i, data, {.mask = mask});
             }
           })
        .grid([](const SlotCfg&, const int32_t*, const int64_t*, const int32_t*, const int32_t*, const int32_t*,
                 int32_t*, int64_t, int requests) { return Grid{requests}; });
Register r1("kv_indices", [](Env& e) {
  SlotCfg c;
  if (!e.big) c.B = 16;
  const int R = e.big ? 256 : 9, rows = 2 * R, width = e.big ? 32768 : 100, most = e.big ? 16384 : 60;
  auto pool = integers<int32_t>(e, size_t(rows) * width, 0, 1 << 20);
  auto request = integers<int64_t>(e, R, 0, rows);
  auto lengths = integers<int32_t>(e, R, 0, most), starts = integers<int32_t>(e, R, 0, width - most);
  std::vector<int32_t> before(R + 1);
  for (int r = 0; e.device && r < R; ++r) before[r + 1] = before[r] + lengths.at(r);
  auto offsets = repeated(e, R + 1, before);
  auto out = constant<int32_t>(e, e.device ? before[R] + 1 : size_t(R) * most, -5);
  auto plain = constant<int32_t>(e, out.n, -5);
  Job j;
  j.mbytes = 8e-6 * R * most / 2;
  j.add(kv_indices, c, pool.p, request.p, lengths.p, offsets.p, starts.p, out.p, width, R);
  j.add(kv_indices, SlotCfg{c.B, false}, pool.p, request.p, lengths.p, offsets.p, nullptr, plain.p, width, R);
  j.check = [=] {
    for (int v = 0; v < 2; ++v) {
      std::vector<double> want(out.n, -5);
      for (int r = 0; r < R; ++r)
        for (int i = 0; i < lengths.at(r); ++i)
          want[before[r] + i] = pool[request.at(r) * width + (v ? 0 : starts.at(r)) + i];
      const auto wrong = agree((v ? plain : out).now(), want, 0.5, 0);
      if (!wrong.empty()) return (v ? "without starts: " : "with starts: ") + wrong;
    }
    return std::string();
  };
  return j;
});

// --- how many parts the keys of each sequence are cut into: one program, every sequence a lane
struct CutCfg {
  int most_sequences = 1024;
};
auto kv_splits =
    kernel("user_kv_splits", [](const CutCfg& c, Ptr<int32_t> splits, Ptr<const int32_t> lengths, I32 sequences,
                                I32 groups, I32 heads, I32 kv_heads, I32 most_splits, I32 multiprocessors) {
      auto i = arange(0, c.most_sequences);
      auto mask = i < sequences;
      auto length = load(lengths + i, {.mask = mask, .other = 0});
      auto longest = max(length);
      Tile shortest = min(load(lengths + i, {.mask = mask, .other = longest}));
      if_(longest * 8 < shortest * 10, [&] { shortest = longest; });
      auto chunk = cdiv(longest, clamp(cdiv(longest, max(shortest, 1)), 1, most_splits));
      auto wanted = cast(cast(multiprocessors, f32) * max(log2(cast(longest, f32) / 64.f), 1.f), i32);
      Tile programs = sequences * groups;
      if_(
          heads / kv_heads == 1, [&] { programs *= heads; },
          [&] { programs *= cdiv(heads, min(16, heads / kv_heads)); });
      auto chunk2 = cdiv(longest, min(cdiv(wanted, programs), most_splits));
      auto parts = max(cdiv(length, max(chunk, 1)), cdiv(length, max(chunk2, 1)));
      for (auto g : range(groups)) store(splits + i * groups + g, parts, {.mask = mask});
    }).grid([](const CutCfg&, const auto&...) { return Grid{1}; });
Job cut(Env& e, int S, int groups, int heads, int kv_heads, int low, int high) {
  CutCfg c{e.big ? 1024 : 64};
  auto lengths = integers<int32_t>(e, S, low, high);
  auto splits = constant<int32_t>(e, size_t(S) * groups, -1);
  const int most = 16, cores = 132;
  Job j;
  j.mbytes = 1e-6 * 4 * S * (1 + groups);
  j.add(kv_splits, c, splits.p, lengths.p, S, groups, heads, kv_heads, most, cores);
  j.check = [=] {
    int longest = 0, shortest = 1 << 30;
    for (int s = 0; s < S; ++s)
      longest = std::max(longest, lengths.at(s)), shortest = std::min(shortest, lengths.at(s));
    if (longest * 8 < shortest * 10) shortest = longest;
    auto up = [](int a, int b) { return (a + b - 1) / b; };
    const int chunk = up(longest, std::clamp(up(longest, std::max(shortest, 1)), 1, most));
    const int wanted = int(cores * std::max(std::log2(longest / 64.), 1.));
    const int share = heads / kv_heads, programs = S * groups * (share == 1 ? heads : up(heads, std::min(16, share)));
    const int chunk2 = up(longest, std::min(up(wanted, programs), most));
    std::vector<double> want;
    for (int s = 0; s < S; ++s)
      for (int g = 0; g < groups; ++g)
        want.push_back(std::max(up(lengths.at(s), std::max(chunk, 1)), up(lengths.at(s), std::max(chunk2, 1))));
    return agree(splits.now(), want, 0.5, 0);
  };
  return j;
}
Register r2("kv_splits", [](Env& e) { return cut(e, e.big ? 1000 : 37, 2, 32, 4, 5, 7000); });
Register r3("kv_splits_even", [](Env& e) { return cut(e, e.big ? 300 : 5, 1, 8, 8, 6000, 6600); });
Register r4("kv_splits_empty", [](Env& e) { return cut(e, 3, 1, 8, 2, 0, 1); });

// --- tables of blocks of several groups of layers, each reached by an address: rows of a batch put together, and the
// cache slots of its tokens; the last program of a group pads what the captured graph reads behind them
struct TableCfg {
  int B = 1024;
};
Tile table_at(Ptr<const int64_t> addresses, const Tile& group) {
  return pointer_to<const int32_t>(load(addresses + group));
}
auto block_rows =
    kernel("user_table_rows",
           [](const TableCfg& c, Ptr<const int64_t> request, Ptr<const int64_t> from, Ptr<const int64_t> to,
              Ptr<const int64_t> strides, Ptr<const int32_t> counts, I64 counts_stride, I32 batch) {
             auto group = program_id(0), b = program_id(1);
             auto r = load(request + b);
             auto stride = load(strides + group);
             auto count = load(counts + cast(group, i64) * counts_stride + r);
             auto source = table_at(from, group) + r * stride;
             auto target = pointer_to<int32_t>(load(to + group)) + cast(b, i64) * stride;
             Tile i = arange(0, c.B);
             while_([&] { return min(i) < count; },
                    [&] {
                      store(target + i, load(source + i, {.mask = i < count}), {.mask = i < count});
                      i += c.B;
                    });
           })
        .grid([](const TableCfg&, const int64_t*, const int64_t*, const int64_t*, const int64_t*, const int32_t*,
                 int64_t, int batch) {
          return Grid{2, batch};
        });
auto slot_mapping =
    kernel("user_slot_mapping",
           [](const TableCfg& c, Ptr<const int64_t> request, Ptr<const int32_t> starts, Ptr<const int64_t> positions,
              Ptr<const int64_t> tables, Ptr<const int64_t> strides, Ptr<const int32_t> sizes, Ptr<int64_t> slots,
              I64 slots_stride, I32 most_tokens, I32 batch) {
             auto group = program_id(0), b = program_id(1);
             auto out = slots + cast(group, i64) * slots_stride;
             if_(
                 b == batch,
                 [&] {
                   for (auto t : range(load(starts + batch), most_tokens, c.B)) {
                     auto i = t + arange(0, c.B);
                     store(out + i, -1, {.mask = i < most_tokens});
                   }
                 },
                 [&] {
                   auto size = load(sizes + group);
                   auto table = table_at(tables, group) + load(request + b) * load(strides + group);
                   auto end = load(starts + b + 1);
                   for (auto t : range(load(starts + b), end, c.B)) {
                     auto i = t + arange(0, c.B);
                     auto at = load(positions + i, {.mask = i < end, .other = 0});
                     auto number = cast(load(table + at / size, {.mask = i < end}), i64);
                     store(out + i, number * size + at % size, {.mask = i < end});
                   }
                 });
           })
        .grid([](const TableCfg&, const int64_t*, const int32_t*, const int64_t*, const int64_t*, const int64_t*,
                 const int32_t*, int64_t*, int64_t, int, int batch) {
          return Grid{2, batch + 1};
        });
Register r5("block_tables", [](Env& e) {
  TableCfg c;
  if (!e.big) c.B = 16;
  const int G = 2, B = e.big ? 256 : 5, R = 2 * B, tokens = e.big ? 16384 : 83, most = tokens + 21;
  const int width[G] = {e.big ? 8192 : 40, e.big ? 1024 : 12}, size[G] = {4, 16}, longest = width[0] * size[0];
  std::vector<Array<int32_t>> from, to;
  std::vector<int64_t> a, t;
  for (int g = 0; g < G; ++g) {
    from.push_back(integers<int32_t>(e, size_t(R) * width[g], 0, 1 << 20));
    to.push_back(constant<int32_t>(e, size_t(B) * width[g], -7));
    a.push_back(reinterpret_cast<int64_t>(from[g].p)), t.push_back(reinterpret_cast<int64_t>(to[g].p));
  }
  auto froms = repeated(e, G, a), tos = repeated(e, G, t), strides = repeated<int64_t>(e, G, {width[0], width[1]});
  auto sizes = repeated<int32_t>(e, G, {size[0], size[1]});
  auto request = filled<int64_t>(e, B, [&](size_t i) { return (i * 7 + 3) % R; });
  auto counts = filled<int32_t>(e, size_t(G) * R, [&](size_t i) { return int(i * 37 % (width[i / R] + 1)); });
  auto starts = filled<int32_t>(e, B + 1, [&](size_t i) { return i == 1 ? 0 : int(tokens * i / B); });
  auto positions = integers<int64_t>(e, tokens, 0, std::min(longest, width[1] * size[1]));
  auto slots = constant<int64_t>(e, size_t(G) * most, -9);
  Job j;
  j.mbytes = 4e-6 * B * (width[0] + width[1]);
  j.add(block_rows, c, request.p, froms.p, tos.p, strides.p, counts.p, R, B);
  j.add(slot_mapping, c, request.p, starts.p, positions.p, froms.p, strides.p, sizes.p, slots.p, most, most, B);
  j.check = [=] {
    std::vector<double> places(size_t(G) * most, -1);
    for (int g = 0; g < G; ++g) {
      std::vector<double> want(size_t(B) * width[g], -7);
      for (int b = 0; b < B; ++b) {
        const size_t r = request.at(b) * width[g];
        for (int i = 0; i < counts.at(size_t(g) * R + request.at(b)); ++i)
          want[size_t(b) * width[g] + i] = from[g][r + i];
        for (int i = starts.at(b); i < starts.at(b + 1); ++i)
          places[size_t(g) * most + i] =
              from[g][r + positions.at(i) / size[g]] * size[g] + double(positions.at(i) % size[g]);
      }
      const auto wrong = agree(to[g].now(), want, 0.5, 0);
      if (!wrong.empty()) return "rows: " + wrong;
    }
    return agree(slots.now(), places, 0.5, 0);
  };
  return j;
});

}  // namespace serving_metadata
}  // namespace users
