// random_widths_test.cpp - random programs over numbers of mixed widths (random_widths.h) on the host, on the simulated
// machines and on the GPU that TILE_RANDOM_DEVICE names: the same as in plain loops (random_run.h has the settings).
#include "tests/gpu/random_run.h"
#include "tests/gpu/random_width_programs.h"

namespace tile::testing {
namespace {

constexpr int kPrograms = 3;  ///< of a launch

template <class F>
void forEachWidth(F f) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    (f.template operator()<std::tuple_element_t<I, WidthElements>>(int(I)), ...);
  }
  (std::make_index_sequence<kWidthTypes>());
}

/// Of every type: an array that is read, a number for every program, an array that is written; then memory of 32 and 64
/// bits.
struct WidthArrays : RandomMemory {
  explicit WidthArrays(int seed) : RandomMemory(seed) {
    const int all = kPrograms * countOf(WidthSizes(seed).dims);
    trips = number(4);
    auto some = [&]<class T>(int type) {
      const uint64_t high = uint64_t(number(1 << 16)) << 48 | uint64_t(number(1 << 16)) << 32;
      const uint64_t word = high | uint64_t(number(1 << 16)) << 16 | uint64_t(number(1 << 16));
      return static_cast<T>(fitted(int64_t(number(4) ? word >> (number(2) ? 0 : 20) : word % 7 - 3), type));
    };
    forEachWidth([&]<class T>(int type) { add<T>(all, [&] { return some.template operator()<T>(type); }); });
    forEachWidth([&]<class T>(int type) { add<T>(kPrograms, [&] { return some.template operator()<T>(type); }); });
    forEachWidth([&]<class T>(int) { add<T>(all, [] { return T{77}; }); });
    add<uint32_t>(all, [&] { return some.template operator()<uint32_t>(kU32); });
    add<uint64_t>(all, [&] { return some.template operator()<uint64_t>(kU64); });
  }
  int trips = 0;
};
constexpr int kWrites = 2 * kWidthTypes, kWordsOfMemory = 3 * kWidthTypes;

template <class T>
using In = Ptr<const T>;

Status run(const std::shared_ptr<Device>& device, WidthArrays& m, int seed) {
  const auto k =
      kernel("random_widths", [](const RandomSeed& c, In<uint32_t> a0, In<uint64_t> a1, In<int32_t> a2, In<int64_t> a3,
                                 In<uint8_t> a4, In<int16_t> a5, In<double> a6, In<uint32_t> s0, In<uint64_t> s1,
                                 In<int32_t> s2, In<int64_t> s3, In<uint8_t> s4, In<int16_t> s5, In<double> s6,
                                 Ptr<uint32_t> o0, Ptr<uint64_t> o1, Ptr<int32_t> o2, Ptr<int64_t> o3, Ptr<uint8_t> o4,
                                 Ptr<int16_t> o5, Ptr<double> o6, Ptr<uint32_t> words, Ptr<uint64_t> longs, I32 trips) {
        const WidthSizes sizes(c.seed);
        num_warps(sizes.warps);
        const int count = countOf(sizes.dims);
        WidthKernel machine{sizes.dims, words + program_id(0) * count, longs + program_id(0) * count};
        const Tile at = program_id(0) * count + machine.index();
        std::vector<Tile> in, scalars;
        auto read = [&](const auto& array, const auto& numbers) {
          in.push_back(load(array + at)), scalars.push_back(load(numbers + program_id(0)));
        };
        read(a0, s0), read(a1, s1), read(a2, s2), read(a3, s3), read(a4, s4), read(a5, s5), read(a6, s6);
        const auto out = WidthProgram<WidthKernel>(sizes.inner, machine).run(in, scalars, trips);
        store(o0 + at, out[0]), store(o1 + at, out[1]), store(o2 + at, out[2]), store(o3 + at, out[3]);
        store(o4 + at, out[4]), store(o5 + at, out[5]), store(o6 + at, out[6]);
      });
  MemoryOnDevice there(device, m);
  Status ran = [&]<size_t... I>(std::index_sequence<I...>) {
    return launch_one_way(k, device, seed, Grid{kPrograms},
                          static_cast<const std::tuple_element_t<I, WidthElements>*>(
                              there.template data<std::tuple_element_t<I, WidthElements>>(I))...,
                          static_cast<const std::tuple_element_t<I, WidthElements>*>(
                              there.template data<std::tuple_element_t<I, WidthElements>>(kWidthTypes + I))...,
                          there.template data<std::tuple_element_t<I, WidthElements>>(kWrites + I)...,
                          there.template data<uint32_t>(kWordsOfMemory),
                          there.template data<uint64_t>(kWordsOfMemory + 1), m.trips);
  }
  (std::make_index_sequence<kWidthTypes>());
  if (ran.ok()) ran = device->default_stream().synchronize();
  return ran.ok() ? there.copy_back() : ran;
}

void compute(WidthArrays& m, int seed) {
  const WidthSizes sizes(seed);
  const int count = countOf(sizes.dims);
  for (int p = 0; p < kPrograms; ++p) {
    std::vector<WidthElementsOf> in, scalars;
    forEachWidth([&]<class T>(int type) {
      WidthElementsOf& x = in.emplace_back();
      for (int i = 0; i < count; ++i)
        x.of.push_back(static_cast<int64_t>(m.buffer(size_t(type)).template as<T>()[p * count + i]));
      scalars.push_back({{static_cast<int64_t>(m.buffer(size_t(kWidthTypes + type)).template as<T>()[p])}});
    });
    auto* words = m.buffer(kWordsOfMemory).as<uint32_t>() + p * count;
    auto* longs = m.buffer(kWordsOfMemory + 1).as<uint64_t>() + p * count;
    WidthMemory memory{{words, words + count}, {longs, longs + count}};
    const auto out = WidthProgram<WidthLoops>(sizes.inner, {sizes.dims, &memory}).run(in, scalars, {{m.trips}});
    std::copy(memory.words.begin(), memory.words.end(), words);
    std::copy(memory.longs.begin(), memory.longs.end(), longs);
    forEachWidth([&]<class T>(int type) {
      for (int i = 0; i < count; ++i)
        m.buffer(size_t(kWrites + type)).template as<T>()[p * count + i] =
            static_cast<T>(out[size_t(type)].of[size_t(i)]);
    });
  }
}

TEST(RandomWidths, DevicesAgreeWithPlainLoops) {
  constexpr int kSeeds = 16;
  const auto check = [](const std::string& target, const WidthArrays& got, const WidthArrays& want, int seed) {
    const int columns = WidthSizes(seed).dims.back();
    forEachWidth([&]<class T>(int type) {
      EXPECT_EQ(got.difference<T>(want, size_t(kWrites + type), columns), "") << target << ", type " << type;
    });
    EXPECT_EQ(got.difference<uint32_t>(want, kWordsOfMemory, columns), "") << target << ", memory";
    EXPECT_EQ(got.difference<uint64_t>(want, kWordsOfMemory + 1, columns), "") << target << ", memory";
  };
  const int first = setting("TILE_RANDOM_SEED", 1), end = first + setting("TILE_RANDOM_PROGRAMS", kSeeds);
  const auto host = open_device("host").value_or_throw();
  for (int seed = first; seed < end; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    WidthArrays want(seed), got(seed);
    compute(want, seed);
    const Status ran = run(host, got, seed);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
    check("host", got, want, seed);
  }
  host_and_gpus_agree<WidthArrays>(kSeeds, run, check);
  print_launches();
}

}  // namespace
}  // namespace tile::testing
