// The byte form of a KernelBinary: everything survives, and hostile bytes are refused without harm.
#include <gtest/gtest.h>

#include <random>

#include "runtime/cache.h"

namespace tile {
namespace {

KernelBinary sample() {
  KernelBinary k;
  k.format = BinaryFormat::ptx;
  k.target = "sm_90a";
  k.entry = "attention_forward";
  k.bytes = std::string("code\0with zeros", 15);
  k.params = {{.kind = ParamInfo::pointer, .dtype = DType::bf16, .nullable = true, .name = "lse"},
              {.kind = ParamInfo::view,
               .dtype = DType::f8e5m2,
               .rank = 4,
               .stored = true,
               .align = 16,
               .unit_stride = 3,
               .stride_multiple_of = {8, 16, 0, 1},
               .dim_multiple_of = {0, 0, 16, 70000},
               .name = "Q"},
              {.kind = ParamInfo::scalar, .dtype = DType::i64, .multiple_of = 16, .one = true, .positive = true, .name = ""}};
  k.threads = 256;
  k.shared_bytes = 98304;
  k.arena_bytes = 12345;
  k.uses_debug_ring = true;
  k.persistent = true;
  k.uses_tickets = true;
  k.varies_with_grid = true;
  k.tensor_maps = {{1, DType::f8e5m2, 4, {3, 2, 1, 0}, {128, 64, 1, 1}, 128, false, false, true},
                   {1, DType::i8, 2, {3, 1}, {16, 256}, 0, true, false},
                   {1, DType::i8, 1, {0}, {16}, 0, false, false, false, {}}};
  k.tensor_maps[2].made = {{-8, {{1, {1}}, {2, {3, 10}}}}, {0, {{1, {2}}}, 40}, {1, {}}};
  k.debug_sites = {{DebugSite::assertion, "x < n", DType::i1, {64, 128}, "a.cpp", 12},
                   {DebugSite::print, "", DType::f16, {}, "b.cpp", 7}};
  k.buffers = {{"ring of 3 x 128x64xf16", "a.cpp", 30, 1024, 49152}};
  k.resources = {168, 4, 8, 16, 48, "ptxas info: 168 registers"};
  return k;
}

void expect_same(const KernelBinary& a, const KernelBinary& b) {
  EXPECT_EQ(a.abi_version, b.abi_version);
  EXPECT_EQ(a.format, b.format);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.entry, b.entry);
  EXPECT_EQ(a.bytes, b.bytes);
  ASSERT_EQ(a.params.size(), b.params.size());
  for (size_t i = 0; i < a.params.size(); ++i) {
    const ParamInfo &p = a.params[i], &q = b.params[i];
    EXPECT_TRUE(p.kind == q.kind && p.dtype == q.dtype && p.rank == q.rank && p.nullable == q.nullable &&
                p.stored == q.stored &&
                p.align == q.align && p.multiple_of == q.multiple_of && p.one == q.one && p.positive == q.positive && p.unit_stride == q.unit_stride &&
                p.stride_multiple_of == q.stride_multiple_of && p.dim_multiple_of == q.dim_multiple_of &&
                p.name == q.name)
        << i;
  }
  EXPECT_EQ(a.threads, b.threads);
  EXPECT_EQ(a.shared_bytes, b.shared_bytes);
  EXPECT_EQ(a.arena_bytes, b.arena_bytes);
  EXPECT_EQ(a.uses_debug_ring, b.uses_debug_ring);
  EXPECT_EQ(a.persistent, b.persistent);
  EXPECT_EQ(a.uses_tickets, b.uses_tickets);
  EXPECT_EQ(a.varies_with_grid, b.varies_with_grid);
  EXPECT_EQ(a.cluster, b.cluster);
  EXPECT_EQ(a.tensor_maps, b.tensor_maps);
  ASSERT_EQ(a.debug_sites.size(), b.debug_sites.size());
  for (size_t i = 0; i < a.debug_sites.size(); ++i) {
    const DebugSite &p = a.debug_sites[i], &q = b.debug_sites[i];
    EXPECT_TRUE(p.kind == q.kind && p.message == q.message && p.dtype == q.dtype && p.shape == q.shape &&
                p.file == q.file && p.line == q.line)
        << i;
  }
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (size_t i = 0; i < a.buffers.size(); ++i) {
    const BufferInfo &p = a.buffers[i], &q = b.buffers[i];
    EXPECT_TRUE(p.what == q.what && p.file == q.file && p.line == q.line && p.offset == q.offset && p.bytes == q.bytes)
        << i;
  }
  const Resources &p = a.resources, &q = b.resources;
  EXPECT_TRUE(p.registers == q.registers && p.spill_store_bytes == q.spill_store_bytes &&
              p.spill_load_bytes == q.spill_load_bytes && p.stack_bytes == q.stack_bytes &&
              p.static_shared_bytes == q.static_shared_bytes && p.log == q.log);
}

TEST(Serialize, RoundTrip) {
  const KernelBinary k = sample();
  const Result<KernelBinary> back = deserialize(serialize(k));
  ASSERT_TRUE(back) << back.error().message;
  expect_same(k, *back);
}

TEST(Serialize, EmptyKernel) {
  const Result<KernelBinary> back = deserialize(serialize(KernelBinary{}));
  ASSERT_TRUE(back);
  expect_same(KernelBinary{}, *back);
}

TEST(Serialize, EveryTruncationIsRefused) {
  const std::string bytes = serialize(sample());
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(deserialize(std::string_view(bytes).substr(0, n))) << n;
}

TEST(Serialize, TrailingBytesAreRefused) { EXPECT_FALSE(deserialize(serialize(sample()) + '\0')); }

TEST(Serialize, OtherVersionsAreNamed) {
  std::string bytes = serialize(sample());
  bytes[4] = 99;
  const auto back = deserialize(bytes);
  ASSERT_FALSE(back);
  EXPECT_NE(std::string::npos, back.error().message.find("format 99")) << back.error().message;
}

// A changed byte may make another valid kernel (the cache's checksum is what catches that); it must never do harm, and
// what is accepted must be in range.
void expect_harmless(const std::string& bytes) {
  const Result<KernelBinary> k = deserialize(bytes);
  if (!k) return;
  EXPECT_LE(static_cast<int>(k->format), static_cast<int>(BinaryFormat::host_object));
  for (const ParamInfo& p : k->params)
    EXPECT_TRUE(static_cast<int>(p.dtype) < kNumDTypes && p.rank <= 8 && p.kind <= ParamInfo::view);
  for (const DebugSite& s : k->debug_sites) {
    EXPECT_TRUE(static_cast<int>(s.dtype) < kNumDTypes && s.shape.size() <= 8);
    for (int extent : s.shape) EXPECT_GE(extent, 0);
  }
  for (const TensorMapInfo& m : k->tensor_maps) {
    ASSERT_LT(m.param, k->params.size());
    ASSERT_NE(ParamInfo::scalar, k->params[m.param].kind);
    EXPECT_TRUE(m.made.empty() ? ParamInfo::view == k->params[m.param].kind : m.made.size() == 1 + 2u * m.rank);
    const int rank = m.made.empty() ? k->params[m.param].rank : m.rank;
    EXPECT_TRUE(m.rank >= 1 && m.rank <= 5 && m.rank <= rank);
    for (size_t d = 0; d < m.rank; ++d) EXPECT_TRUE(m.dims[d] >= 0 && m.dims[d] < rank && m.box[d] > 0);
    size_t slots = 0;
    for (const ParamInfo& p : k->params) slots += p.slots();
    for (const SlotSum& sum : m.made)
      for (const SlotSum::Term& term : sum.terms)
        for (uint32_t slot : term.slots) EXPECT_LT(slot, slots);
  }
  EXPECT_LE(k->tensor_maps.size(), kMaxTensorMaps);
  EXPECT_EQ(bytes, serialize(*k)) << "accepted bytes mean exactly one kernel";
}

TEST(Serialize, EveryBitFlipIsHarmless) {
  const std::string good = serialize(sample());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    expect_harmless(bytes);
  }
}

TEST(Serialize, RandomBytesAreHarmless) {
  std::mt19937_64 random(3);
  const std::string good = serialize(sample());
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    if (i % 2) bytes.resize(random() % 400 + 12);
    // Keep magic and versions, so that the fields behind them are reached.
    for (size_t at = 12; at < bytes.size(); ++at)
      if (i % 2 || random() % 16 == 0) bytes[at] = static_cast<char>(random() % 8 ? 0 : random());
    expect_harmless(bytes);
  }
}

TEST(Serialize, TensorMapsOfViewsThereAreNot) {
  const auto refused = [](auto change) {
    KernelBinary k = sample();
    change(k);
    return !deserialize(serialize(k)).ok();
  };
  EXPECT_FALSE(refused([](KernelBinary&) {}));
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].param = 3; })) << "there are three parameters";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].param = 2; })) << "a scalar";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].rank = 5; })) << "the view has 4 dims";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].rank = 0; }));
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].dims[1] = 3; })) << "twice";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].dims[1] = 4; }));
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].dims[1] = -1; }));
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].box[1] = 0; }));
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].box[1] = 257; }));
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].swizzle = 64; })) << "rows of 128 bytes";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].swizzle = 96; }));
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[1].box[0] = 8; })) << "rows of 8 bytes";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].dtype = DType::f16; })) << "the view's elements are bytes";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[0].tf32 = true; })) << "bytes are no tf32";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[1].remainder = true; })) << "it is written";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[2].remainder = true; })) << "it has one dim";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps.resize(17, k.tensor_maps[0]); }));
  EXPECT_FALSE(refused([](KernelBinary& k) { k.tensor_maps[2].param = 0, k.params[0].dtype = DType::i8; })) << "a pointer";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[2].param = 2; })) << "a scalar";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[2].made.pop_back(); })) << "no stride";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[2].made[0].terms[1].slots[1] = 11; })) << "there are 11 slots";
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[2].made[0].terms[1].slots.resize(9); }));
  EXPECT_TRUE(refused([](KernelBinary& k) { k.tensor_maps[2].made[1].terms.resize(17); }));
  EXPECT_TRUE(refused([](KernelBinary& k) { k.persistent = false; })) << "tickets without a work loop";
  auto in_cluster = [&](uint32_t programs) {
    return !refused([&](KernelBinary& k) { k.uses_tickets = false, k.cluster = programs; });
  };
  for (uint32_t programs : {1, 2, 4, 8}) EXPECT_TRUE(in_cluster(programs)) << programs;
  EXPECT_FALSE(in_cluster(0));
  for (uint32_t programs : {3, 6, 16}) EXPECT_FALSE(in_cluster(programs)) << programs;
  EXPECT_TRUE(refused([](KernelBinary& k) { k.cluster = 2; })) << "programs that draw tickets go different ways";
}

TEST(Serialize, HugeLengthsAllocateNothing) {
  std::string bytes = serialize(sample());
  // The length of `target`, right after magic, versions and format.
  for (size_t i = 13; i < 21; ++i) bytes[i] = '\xff';
  EXPECT_FALSE(deserialize(bytes));
}

}  // namespace
}  // namespace tile
