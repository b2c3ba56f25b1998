// random_integers_test.cpp - random programs over integers of 8 to 64 bits (random_integers.h) on the host, on the
// simulated machines and on the GPU that TILE_RANDOM_DEVICE names: the same as in plain loops (random_run.h has the
// settings).
#include "tests/gpu/random_integers.h"

#include <tuple>

#include "tests/gpu/random_run.h"

namespace tile::testing {
namespace {

constexpr int kPrograms = 3;  ///< of a launch

template <class F>
void forEachType(F f) {
  f.template operator()<int16_t>(0), f.template operator()<uint16_t>(1), f.template operator()<int8_t>(2);
  f.template operator()<uint8_t>(3), f.template operator()<int32_t>(4), f.template operator()<int64_t>(5);
}

void add_table(RandomMemory& m) {
  m.add<int16_t>(kTableOfIntegers, [place = 0]() mutable { return inTable(place++); });
}

/// Arrays that are read, numbers one for a program, arrays that are written: of every type.
struct IntegerMemory : RandomMemory {
  explicit IntegerMemory(int seed) : RandomMemory(seed) {
    const IntegerSizes s(seed);
    const int all = kPrograms * s.rows * s.allColumns();
    length = number(3) ? all : all - number(all / 2 + 1);
    trips = number(4);
    auto some = [&](int shift) {
      const uint64_t high = uint64_t(number(1 << 16)) << 48 | uint64_t(number(1 << 16)) << 32;
      const uint64_t word = high | uint64_t(number(1 << 16)) << 16 | uint64_t(number(1 << 16));
      return number(4) ? word >> shift : word % 7 - 3;
    };
    forEachType([&]<class T>(int) { add<T>(length, [&] { return static_cast<T>(some(number(2) ? 0 : 20)); }); });
    forEachType([&]<class T>(int) { add<T>(kPrograms, [&] { return static_cast<T>(some(0)); }); });
    forEachType([&]<class T>(int) { add<T>(all, [] { return T{77}; }); });
    add_table(*this);
  }
  int length = 0, trips = 0;
};

template <class T>
using In = Ptr<const T>;

Status run(const std::shared_ptr<Device>& device, IntegerMemory& m, int seed) {
  const auto k =
      kernel("random_integers", [](const RandomSeed& c, In<int16_t> a0, In<uint16_t> a1, In<int8_t> a2, In<uint8_t> a3,
                                   In<int32_t> a4, In<int64_t> a5, In<int16_t> s0, In<uint16_t> s1, In<int8_t> s2,
                                   In<uint8_t> s3, In<int32_t> s4, In<int64_t> s5, Ptr<int16_t> o0, Ptr<uint16_t> o1,
                                   Ptr<int8_t> o2, Ptr<uint8_t> o3, Ptr<int32_t> o4, Ptr<int64_t> o5, In<int16_t> table,
                                   I32 length, I32 trips) {
        const IntegerSizes sizes(c.seed);
        num_warps(sizes.warps);
        const int rows = sizes.rows, columns = sizes.allColumns();
        const Tile at = program_id(0) * (rows * columns) + arange(0, rows).col() * columns + arange(0, columns).row();
        std::vector<Tile> in, scalars;
        auto read = [&](const auto& array, const auto& numbers) {
          in.push_back(load(array + at, {.mask = at < length}));
          scalars.push_back(load(numbers + program_id(0)));
        };
        read(a0, s0), read(a1, s1), read(a2, s2), read(a3, s3), read(a4, s4), read(a5, s5);
        const std::vector<Tile> out =
            IntegerProgram<IntegerKernel>(sizes.inner, {rows, columns, table}).run(in, scalars, trips);
        store(o0 + at, out[0]), store(o1 + at, out[1]), store(o2 + at, out[2]);
        store(o3 + at, out[3]), store(o4 + at, out[4]), store(o5 + at, out[5]);
      });
  MemoryOnDevice there(device, m);
  Status ran = [&]<size_t... I>(std::index_sequence<I...>) {
    using Types = std::tuple<int16_t, uint16_t, int8_t, uint8_t, int32_t, int64_t>;
    return launch_one_way(
        k, device, seed, Grid{kPrograms},
        static_cast<const std::tuple_element_t<I, Types>*>(there.template data<std::tuple_element_t<I, Types>>(I))...,
        static_cast<const std::tuple_element_t<I, Types>*>(
            there.template data<std::tuple_element_t<I, Types>>(6 + I))...,
        there.template data<std::tuple_element_t<I, Types>>(12 + I)...,
        static_cast<const int16_t*>(there.template data<int16_t>(18)), m.length, m.trips);
  }
  (std::make_index_sequence<kIntegerTypes>());
  if (ran.ok()) ran = device->default_stream().synchronize();
  return ran.ok() ? there.copy_back() : ran;
}

void compute(IntegerMemory& m, int seed) {
  const IntegerSizes sizes(seed);
  const int rows = sizes.rows, columns = sizes.allColumns(), count = rows * columns;
  for (int p = 0; p < kPrograms; ++p) {
    std::vector<Elements> in, scalars;
    forEachType([&]<class T>(int type) {
      Elements& x = in.emplace_back(Elements{std::vector<int64_t>(size_t(count))});
      for (int i = 0; i < count && p * count + i < m.length; ++i)
        x.of[i] = m.buffer(type).template as<T>()[p * count + i];
      scalars.push_back({{m.buffer(6 + type).template as<T>()[p]}});
    });
    const auto out = IntegerProgram<IntegerLoops>(sizes.inner, {rows, columns}).run(in, scalars, {{m.trips}});
    forEachType([&]<class T>(int type) {
      for (int i = 0; i < count; ++i)
        m.buffer(12 + type).template as<T>()[p * count + i] = static_cast<T>(out[type].of[i]);
    });
  }
}

/// Neighbours count on, but for where bytes begin again: places in memory, conditions, remainders.
TEST(Integers, BytesBeginAgain) {
  constexpr int kCount = 512;
  const auto k = kernel("bytes_begin_again", [](In<int16_t> table, Ptr<int32_t> out) {
    const Tile i = arange(0, kCount), with = cast(i, i8), without = cast(i, u8), behind = without + 144;
    const Tile first[] = {load(table + 128 + cast(with, i32)),
                          load(table + cast(without, i32)),
                          load(table + cast(behind, i32)),
                          load(table + 300 + max(cast(max(with, -127), i32), -120)),
                          load(table + cast(i, i32), {.mask = with < 0}),
                          load(table + cast(i, i32), {.mask = behind < 16})};
    for (int n = 0; n < 6; ++n) store(out + n * kCount + i, cast(first[n], i32));
    store(out + 6 * kCount + i, cast(behind % 64, i32));
  });
  for (const std::string& target : {std::string("host"), std::string("sm_90a"), std::string("sm_80")}) {
    const auto device = target == "host" ? open_device("host").value_or_throw() : random_device(target, 0);
    RandomMemory m(1);
    add_table(m);
    m.add<int32_t>(7 * kCount, [] { return -77; });
    MemoryOnDevice there(device, m);
    Status ran = k.try_launch(device->default_stream(), NoConfig{}, Grid{1},
                              static_cast<const int16_t*>(there.data<int16_t>(0)), there.data<int32_t>(1));
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
    ASSERT_TRUE(device->default_stream().synchronize().ok());
    ASSERT_TRUE(there.copy_back().ok());
    for (int i = 0; i < kCount; ++i) {
      const int8_t with = static_cast<int8_t>(i);
      const uint8_t without = static_cast<uint8_t>(i), behind = static_cast<uint8_t>(i + 144);
      const int want[] = {inTable(128 + with),
                          inTable(without),
                          inTable(behind),
                          inTable(300 + std::max<int>(with, -120)),
                          with < 0 ? inTable(i) : 0,
                          behind < 16 ? inTable(i) : 0,
                          behind % 64};
      for (int n = 0; n < 7; ++n)
        ASSERT_EQ(m.buffer(1).as<int32_t>()[n * kCount + i], want[n]) << target << ", output " << n << " at " << i;
    }
  }
}

/// Three rows of a product: half of the registers that hold bytes for the next iteration are padding.
TEST(Integers, BytesBesidePaddingCrossLoops) {
  constexpr int kRows = 3, kColumns = 8, kDeep = 32, kTrips = 3;
  const auto k = kernel("padded_bytes", [](Tensor<const int8_t, 2> a, Tensor<const int8_t, 2> b,
                                           Tensor<const uint8_t, 2> c, Tensor<int32_t, 2> out, I32 trips) {
    num_warps(4);
    Tile product = zeros({kRows, kColumns}, i32), count = product;
    for (auto k : range(0, trips)) {
      product = dot(a.load({0, k * kDeep}, {kRows, kDeep}), b.load({k * kDeep, 0}, {kDeep, kColumns}), product);
      count += cast(c.load({0, k}, {kRows, kColumns}), i32) * 1000;
    }
    out.store({0, 0}, product + count);
  });
  for (const std::string& target : {std::string("host"), std::string("sm_90a"), std::string("sm_80")}) {
    const auto device = target == "host" ? open_device("host").value_or_throw() : random_device(target, 0);
    RandomMemory m(1);
    auto next = [&] { return m.number(256) - 128; };
    const int8_t* a = m.add<int8_t>(kRows * kDeep * kTrips, next).as<int8_t>();
    const int8_t* b = m.add<int8_t>(kColumns * kDeep * kTrips, next).as<int8_t>();
    const uint8_t* c = m.add<uint8_t>(kRows * 2 * kColumns, next).as<uint8_t>();
    const int32_t* out = m.add<int32_t>(kRows * kColumns, [] { return -77; }).as<int32_t>();
    MemoryOnDevice there(device, m);
    Status ran =
        k.try_launch(device->default_stream(), NoConfig{}, Grid{1},
                     TensorView<const int8_t, 2>(there.data<int8_t>(0), {kRows, kDeep * kTrips}, {kDeep * kTrips, 1}),
                     TensorView<const int8_t, 2>(there.data<int8_t>(1), {kDeep * kTrips, kColumns}, {kColumns, 1}),
                     TensorView<const uint8_t, 2>(there.data<uint8_t>(2), {kRows, 2 * kColumns}, {2 * kColumns, 1}),
                     TensorView<int32_t, 2>(there.data<int32_t>(3), {kRows, kColumns}, {kColumns, 1}), kTrips);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
    ASSERT_TRUE(device->default_stream().synchronize().ok());
    ASSERT_TRUE(there.copy_back().ok());
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j) {
        int want = 0;
        for (int k = 0; k < kDeep * kTrips; ++k) want += a[i * kDeep * kTrips + k] * b[k * kColumns + j];
        for (int k = 0; k < kTrips; ++k) want += c[i * 2 * kColumns + j + k] * 1000;
        ASSERT_EQ(out[i * kColumns + j], want) << target << " at " << i << ", " << j;
      }
  }
}

TEST(RandomIntegers, DevicesAgreeWithPlainLoops) {
  constexpr int kSeeds = 25;
  const auto check = [](const std::string& target, const IntegerMemory& got, const IntegerMemory& want, int seed) {
    forEachType([&]<class T>(int type) {
      EXPECT_EQ(got.difference<T>(want, 12 + type, IntegerSizes(seed).allColumns()), "") << target << ", type " << type;
    });
  };
  const int first = setting("TILE_RANDOM_SEED", 1), end = first + setting("TILE_RANDOM_PROGRAMS", kSeeds);
  const auto host = open_device("host").value_or_throw();
  for (int seed = first; seed < end; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    IntegerMemory want(seed), got(seed);
    compute(want, seed);
    const Status ran = run(host, got, seed);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
    check("host", got, want, seed);
  }
  host_and_gpus_agree<IntegerMemory>(kSeeds, run, check);
  print_launches();
}

}  // namespace
}  // namespace tile::testing
