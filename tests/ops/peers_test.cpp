// peers_test.cpp - addresses that are kept in memory, and kernels that talk to each other through them while they run:
// a sum over ranks in which every rank reads what the others have. On one device its ranks run on streams of their own,
// on a machine with several GPUs each has one.
#include "dsl/address.h"
#include "tests/ops/ops.h"

namespace tile::ops {
namespace {

struct ReduceCfg {
  int ranks = 2, B = 512, programs = 8;
};

/// Every program has a word for each rank, in which that rank says how far it is. What is read and written in between
/// is seen by all: the words are written with release and read with acquire, for the whole system. `at` is u64, of
/// which launches promise nothing: code of another variant could not be loaded while a kernel of its GPU waits.
auto all_reduce = kernel("peer_all_reduce", [](const ReduceCfg& c, Ptr<const uint64_t> inputs,
                                               Ptr<const uint64_t> words, Ptr<half> out, U64 at, I32 n) {
  auto rank = cast(at, i32) % c.ranks, round = cast(at, i32) / c.ranks;
  auto peer = arange(0, c.ranks);
  auto meet = [&](int place) {
    auto here = (program_id(0) * 2 + place) * c.ranks;
    auto theirs = pointer_to<int32_t>(load(words + peer)) + (here + rank);
    auto mine = pointer_to<int32_t>(load(words + rank)) + (here + peer);
    atomic_exchange(theirs, broadcast_to(round, {c.ranks}), {.order = Order::release, .scope = Scope::sys});
    while_([&] { return any(atomic_or(mine, 0, {.order = Order::acquire, .scope = Scope::sys}) < round); }, [&] {});
  };
  meet(0);
  for (auto first : range(program_id(0) * c.B, n, c.programs * c.B)) {
    auto i = first + arange(0, c.B);
    Tile sum = zeros({c.B}, f32);
    for (int r = 0; r < c.ranks; ++r)
      sum = sum + cast(load(pointer_to<const half>(multiple_of(load(inputs + r), 16)) + i, {.mask = i < n}), f32);
    store(out + i, cast(sum, f16), {.mask = i < n});
  }
  meet(1);  // only now may anyone write into its input again
});

/// `rounds` sums over ranks on the given devices, in each of which every input changes.
void expect_sums(const std::vector<std::shared_ptr<Device>>& owners, int rounds) {
  const int ranks = static_cast<int>(owners.size()), n = 10001;
  ReduceCfg c;
  c.ranks = ranks;
  std::vector<Buffer<half>> in, out;
  std::vector<Buffer<int32_t>> words;
  std::vector<uint64_t> at, words_at;
  std::vector<std::shared_ptr<Stream>> streams;
  for (const auto& d : owners) {
    in.push_back(Buffer<half>::allocate(d, n).value_or_throw());
    out.push_back(Buffer<half>::allocate(d, n).value_or_throw());
    words.push_back(Buffer<int32_t>::from(d, std::vector<int32_t>(size_t(2 * c.programs * ranks))).value_or_throw());
    at.push_back(reinterpret_cast<uint64_t>(in.back().data()));
    words_at.push_back(reinterpret_cast<uint64_t>(words.back().data()));
    streams.push_back(d->create_stream().value_or_throw());
  }
  std::vector<Buffer<uint64_t>> tables, word_tables;
  for (const auto& d : owners) {
    tables.push_back(Buffer<uint64_t>::from(d, at).value_or_throw());
    word_tables.push_back(Buffer<uint64_t>::from(d, words_at).value_or_throw());
  }
  // All inputs and results are on the devices: a copy to pageable memory of the host waits for its stream, in which a
  // kernel waits for ranks that are not launched yet.
  const auto value = [](int round, int rank, int i) { return float((i * 7 + rank * 3 + round * 5) % 64); };
  std::vector<Buffer<half>> inputs, results;
  for (int r = 0; r < ranks; ++r) {
    std::vector<half> all;
    for (int round = 0; round < rounds; ++round)
      for (int i = 0; i < n; ++i) all.push_back(half(value(round, r, i)));
    inputs.push_back(Buffer<half>::from(owners[size_t(r)], all).value_or_throw());
    results.push_back(Buffer<half>::allocate(owners[size_t(r)], size_t(rounds) * n).value_or_throw());
  }
  for (int round = 0; round < rounds; ++round)
    for (int r = 0; r < ranks; ++r) {  // nobody waits for a round to end
      const size_t k = size_t(r), first = size_t(round) * n;
      Stream& s = *streams[k];
      ASSERT_TRUE(s.copy(in[k].data(), inputs[k].data() + first, n * sizeof(half)).ok());
      Status ran = all_reduce.try_launch(s, c, Grid{c.programs}, tables[k].data(), word_tables[k].data(), out[k].data(),
                                         uint64_t((round + 1) * ranks + r), n);
      ASSERT_TRUE(ran.ok()) << ran.error().to_string();
      ASSERT_TRUE(s.copy(results[k].data() + first, out[k].data(), n * sizeof(half)).ok());
    }
  for (const auto& s : streams) {
    const Status done = s->synchronize();
    ASSERT_TRUE(done.ok()) << done.error().to_string();
  }
  for (int r = 0; r < ranks; ++r) {
    const std::vector<half> got = results[size_t(r)].to_host().value_or_throw();
    for (int round = 0; round < rounds; ++round)
      for (int i = 0; i < n; ++i) {
        float want = 0;
        for (int k = 0; k < ranks; ++k) want += value(round, k, i);
        ASSERT_EQ(want, float(got[size_t(round) * n + size_t(i)])) << "round " << round << " rank " << r << " at " << i;
      }
  }
}

// Every element has an address of its own, of two buffers in turn: loads, stores and atomics.
TEST(Memory, TilesOfAddresses) {
  constexpr int n = 96;
  for (const auto& d : devices()) {
    SCOPED_TRACE(d->name());
    std::vector<int32_t> first(n), second(n);
    for (int i = 0; i < n; ++i) first[size_t(i)] = i, second[size_t(i)] = 1000 + i;
    Buffer<int32_t> a = Buffer<int32_t>::from(d, first).value_or_throw(),
                    b = Buffer<int32_t>::from(d, second).value_or_throw();
    std::vector<uint64_t> addresses;
    for (int i = 0; i < n; ++i)
      addresses.push_back(reinterpret_cast<uint64_t>((i % 2 ? b.data() : a.data()) + (n - 1 - i)));
    Buffer<uint64_t> table = Buffer<uint64_t>::from(d, addresses).value_or_throw();
    Buffer<int32_t> out = Buffer<int32_t>::allocate(d, 128).value_or_throw();
    auto k = kernel("addresses", [](Ptr<const uint64_t> table, Ptr<int32_t> out, I32 n) {
      auto i = arange(0, 128);
      auto p = pointer_to<int32_t>(load(table + i, {.mask = i < n}));
      auto x = load(p, {.mask = i < n, .other = -1});
      store(out + i, x);
      store(p, 2 * x, {.mask = i < n - 2});
      atomic_add(p + 0, 7, {.mask = (i >= n - 2) & (i < n)});
    });
    const Status ran = k.try_launch(d->default_stream(), {}, Grid{1}, table.data(), out.data(), n);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
    const std::vector<int32_t> read = out.to_host().value_or_throw(), now = a.to_host().value_or_throw(),
                               after = b.to_host().value_or_throw();
    for (int i = 0; i < 128; ++i) {
      const int at = n - 1 - i, was = i % 2 ? 1000 + at : at;
      ASSERT_EQ(i < n ? was : -1, read[size_t(i)]) << i;
      if (i < n) ASSERT_EQ(i < n - 2 ? 2 * was : was + 7, (i % 2 ? after : now)[size_t(at)]) << i;
    }
  }
}

// On the host a launch returns when it is done: there is one rank only.
TEST(Peers, SumOverRanksOfOneDevice) {
  for (const auto& d : devices()) {
    SCOPED_TRACE(d->name());
    expect_sums(std::vector(d->kind() == DeviceKind::host ? 1u : 4u, d), 5);
  }
}

TEST(Peers, SumOverGpus) {
  std::vector<std::shared_ptr<Device>> gpus;
  for (const auto& d : devices())
    if (d->kind() == DeviceKind::cuda) gpus.push_back(d);
  size_t ranks = 1;  // lanes are a power of two
  while (2 * ranks <= gpus.size()) ranks *= 2;
  if (ranks < 2) GTEST_SKIP() << "this machine has fewer than two GPUs";
  gpus.resize(ranks);
  for (const auto& d : gpus)
    for (const auto& owner : gpus) {
      const Status can = d->enable_peer_access(*owner);
      if (!can.ok()) GTEST_SKIP() << can.error().to_string();
    }
  expect_sums(gpus, 20);
}

}  // namespace
}  // namespace tile::ops
