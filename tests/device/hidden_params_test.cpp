// Kernels with hidden parameters (abi.h): persistent ones that walk their grid, tickets, tensor maps made from views.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/tickets.h"
#include "runtime/env.h"
#include "runtime/launch_marks.h"
#include "tests/device/test_kernels.h"

namespace tile {
namespace {

using namespace testing_kernels;

// A function of the driver library that tile does not use, or of the fake driver (null on a real one).
template <class F>
F symbol_of_driver(const char* name) {
  void* library = dlopen(env_text(Env::libcuda).value_or("libcuda.so.1").c_str(), RTLD_NOW | RTLD_NOLOAD);
  return library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
}
int maps_encoded() {
  const auto count = symbol_of_driver<int (*)()>("fake_maps_encoded");
  return count ? count() : -1;
}

class PersistentTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::shared_ptr<Device>> opened = open_device("cuda:0");
    if (!opened) GTEST_SKIP() << opened.error().message;
    device_ = *opened;
  }
  std::shared_ptr<Module> load(const std::string& name) { return must(device_->load(binary_for(*device_, name))); }
  Stream& stream() { return device_->default_stream(); }
  int64_t most_programs(const Module& m) {
    return int64_t{m.resident_programs()} * device_->properties().multiprocessors;
  }
  std::shared_ptr<Device> device_;
};

TEST_F(PersistentTest, EveryPositionOnceByAsManyProgramsAsRunAtATime) {
  const auto module = load("work_ids");
  const int64_t most = most_programs(*module);
  for (const Grid grid : {Grid{1}, Grid{3, 5, 2}, Grid{most}, Grid{most + 1}, Grid{10, 70000}, Grid{1, 1, 70000}}) {
    const int64_t total = grid.programs();
    std::vector<int32_t> nothing(static_cast<size_t>(std::max(total, most)), -1), none(nothing.size(), 0);
    Buffer<int32_t> out = must(Buffer<int32_t>::from(device_, nothing)),
                    programs = must(Buffer<int32_t>::from(device_, none));
    ASSERT_OK(device_->synchronize());
    ASSERT_OK(launch_and_wait(stream(), *module, grid, {slot(out.data()), slot(programs.data())}));
    const auto got = must(out.to_host()), runs = must(programs.to_host());
    for (int64_t i = 0; i < total; ++i)
      ASSERT_EQ(i % grid.x + 100 * (i / grid.x % grid.y) + 10000 * (i / (grid.x * grid.y)), got[static_cast<size_t>(i)])
          << i;
    for (int64_t i = 0; i < static_cast<int64_t>(runs.size()); ++i)
      ASSERT_EQ(i < std::min(total, most) ? 1 : 0, runs[static_cast<size_t>(i)]) << "program " << i << " of " << total;
  }
}

TEST_F(PersistentTest, GridsOverTheCountAreRefused) {
  const auto module = load("work_ids");
  Buffer<int32_t> out = must(Buffer<int32_t>::allocate(device_, 16));
  const auto refused = [&](const Grid& grid, const std::string& part) {
    expect_error(launch(stream(), *module, grid, {slot(out.data()), slot(out.data())}), ErrorKind::user, part);
  };
  refused({1 << 20, 1 << 11},
          "kernel 'work_ids': grid (1048576, 2048, 1) has 2147483648 positions, a persistent kernel walks "
          "at most 2147483647");
  refused({int64_t{1} << 31}, "has 2147483648 programs in x");
  refused({1, -1}, "is negative in y");
  refused({2000000000, 2000000000, 2000000000}, "2^63");
  EXPECT_OK(launch_and_wait(stream(), *module, {5, 0, 7}, {slot(out.data()), slot(out.data())}));  // nothing to do
}

TEST_F(PersistentTest, GridsThatSplitAClusterAreRefused) {
  KernelBinary k = binary_for(*device_, "work_ids");
  k.cluster = 2;
  const auto module = must(device_->load(k));
  Buffer<int32_t> out = must(Buffer<int32_t>::allocate(device_, 16));
  expect_error(launch(stream(), *module, {3, 2}, {slot(out.data()), slot(out.data())}), ErrorKind::user,
               "kernel 'work_ids' runs in clusters of 2 programs along x, the grid's x is 3");
}

// How many clusters run at a time is the driver's to say: their multiprocessors lie side by side.
TEST_F(PersistentTest, ProgramsOfClustersAreLaunchedInWholeClusters) {
  KernelBinary k = binary_for(*device_, "work_ids");
  k.cluster = 4;
  const auto module = must(device_->load(k));
  const int64_t most = most_programs(*module), total = 4 * most;
  std::vector<int32_t> none(static_cast<size_t>(total), 0);
  Buffer<int32_t> out = must(Buffer<int32_t>::from(device_, none)),
                  programs = must(Buffer<int32_t>::from(device_, none));
  ASSERT_OK(device_->synchronize());
  ASSERT_OK(launch_and_wait(stream(), *module, {total}, {slot(out.data()), slot(programs.data())}));
  const auto got = must(out.to_host()), runs = must(programs.to_host());
  for (int64_t i = 0; i < total; ++i) ASSERT_EQ(i, got[static_cast<size_t>(i)]);
  const int64_t launched = std::count(runs.begin(), runs.end(), 1);
  EXPECT_EQ(0, launched % 4);
  EXPECT_GE(launched, 4);
  EXPECT_LE(launched, most);
}

// A symbol of the module decides (launch_marks.h): such a kernel is launched while the one in front of it ends.
TEST_F(PersistentTest, KernelsThatWaitForTheirStreamAreLaunchedEarly) {
  KernelBinary waiting = binary_for(*device_, "iota");
  const auto plain = must(device_->load(waiting));
  waiting.bytes += std::string("\n.visible .global .align 1 .b8 ") + kWaitsForStreamMark + "[1] = {1};\n";
  const auto early = must(device_->load(waiting));
  const auto count = symbol_of_driver<int (*)()>("fake_early_launches");
  // Behind one that may fill the machine its two programs do not come early, behind their own like they do.
  for (const auto& [module, launches] : {std::pair(plain, 0), {plain, 0}, {early, 0}, {early, 1}, {plain, 0}, {early, 0}}) {
    const int before = count ? count() : 0;
    Buffer<int32_t> out = must(Buffer<int32_t>::allocate(device_, 200));
    ASSERT_OK(launch_and_wait(stream(), *module, {2}, {slot(out.data()), slot(200)}));
    const auto got = must(out.to_host());
    for (int i = 0; i < 200; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], i);
    if (count) {
      EXPECT_EQ(count() - before, launches);
    }
  }
}

TEST_F(PersistentTest, TicketsServeLaunchAfterLaunch) {
  const auto module = load("work_tickets");
  const Grid grid{7, 11, 100};
  Buffer<int32_t> out = must(Buffer<int32_t>::from(device_, std::vector<int32_t>(7700, 0)));
  ASSERT_OK(device_->synchronize());
  for (int i = 0; i < 5; ++i) ASSERT_OK(launch(stream(), *module, grid, {slot(out.data())}));
  EXPECT_EQ(std::vector<int32_t>(7700, 5), must(out.to_host()));
}

TEST_F(PersistentTest, TicketsOfManyStreamsAtOnce) {
  const auto module = load("work_tickets");
  constexpr int kStreams = 8, kLaunches = 20;
  std::vector<std::shared_ptr<Stream>> streams;
  std::vector<Buffer<int32_t>> out;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(must(device_->create_stream()));
    out.push_back(must(Buffer<int32_t>::from(device_, std::vector<int32_t>(5000, 0))));
  }
  ASSERT_OK(device_->synchronize());
  for (int n = 0; n < kLaunches; ++n)
    for (size_t i = 0; i < kStreams; ++i) ASSERT_OK(launch(*streams[i], *module, {50, 100}, {slot(out[i].data())}));
  ASSERT_OK(device_->synchronize());
  for (auto& buffer : out) EXPECT_EQ(std::vector<int32_t>(5000, kLaunches), must(buffer.to_host()));
}

TEST_F(PersistentTest, CountersBelongToStreams) {
  const cu::Driver& driver = *cu::driver();
  driver.cuCtxSetCurrent(static_cast<cu::CUcontext>(device_->native_context()));
  cu::Tickets tickets(driver);
  ASSERT_OK(tickets.prepare(static_cast<cu::CUstream>(stream().native())));
  const auto handle = [](uintptr_t n) { return reinterpret_cast<cu::CUstream>(n * 64); };
  const cu::CUdeviceptr first = tickets.of_stream(handle(1)), second = tickets.of_stream(handle(2));
  EXPECT_NE(first, second);
  EXPECT_EQ(first, tickets.of_stream(handle(1)));
  std::vector<cu::CUdeviceptr> all{first, second};
  // A counter that was given back comes last.
  tickets.forget(handle(1));
  for (size_t i = 3; i <= cu::Tickets::kOwned; ++i) all.push_back(tickets.of_stream(handle(i)));
  EXPECT_EQ(first, tickets.of_stream(handle(5000)));
  for (size_t i = 0; i < cu::Tickets::kShared; ++i) all.push_back(tickets.next_shared());
  EXPECT_EQ(all[cu::Tickets::kOwned], tickets.next_shared()) << "they go round";
  EXPECT_NE(0u, tickets.of_stream(handle(5001))) << "more streams than counters";
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.end(), std::adjacent_find(all.begin(), all.end()));
  tickets.release();
}

TEST_F(PersistentTest, CapturedTickets) {
  const auto begin = symbol_of_driver<cu::CUresult (*)(cu::CUstream, int)>("cuStreamBeginCapture_v2");
  const auto end = symbol_of_driver<cu::CUresult (*)(cu::CUstream, void**)>("cuStreamEndCapture");
  const auto instantiate =
      symbol_of_driver<cu::CUresult (*)(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags");
  const auto run = symbol_of_driver<cu::CUresult (*)(void*, cu::CUstream)>("cuGraphLaunch");
  if (!begin || !end || !instantiate || !run) GTEST_SKIP() << "the fake driver has no graphs";
  const auto module = load("work_tickets");
  const auto stream = must(device_->create_stream()), other = must(device_->create_stream());
  const auto native = static_cast<cu::CUstream>(stream->native());
  Buffer<int32_t> out = must(Buffer<int32_t>::from(device_, std::vector<int32_t>(5000, 0)));
  ASSERT_OK(device_->synchronize());
  cu::driver()->cuCtxSetCurrent(static_cast<cu::CUcontext>(device_->native_context()));
  ASSERT_EQ(cu::CUDA_SUCCESS, begin(native, 0));
  for (int i = 0; i < 2; ++i) EXPECT_OK(launch(*stream, *module, {50, 100}, {slot(out.data())}));
  void *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(cu::CUDA_SUCCESS, end(native, &graph));
  ASSERT_EQ(cu::CUDA_SUCCESS, instantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cu::CUDA_SUCCESS, run(executable, native));
    ASSERT_OK(launch(*other, *module, {50, 100}, {slot(out.data())}));
  }
  ASSERT_OK(device_->synchronize());
  EXPECT_EQ(std::vector<int32_t>(5000, 9), must(out.to_host()));
}

TEST_F(PersistentTest, WrongHiddenParametersAreRefusedAtLoad) {
  KernelBinary k = binary_for(*device_, "work_tickets");
  k.persistent = false;
  expect_error(device_->load(k), ErrorKind::internal, "kernel 'work_tickets' draws tickets but is not persistent");
  k = binary_for(*device_, "nothing");
  k.params = {{.kind = ParamInfo::view, .dtype = DType::f32, .rank = 2, .name = "x"}};
  const TensorMapInfo map{0, DType::f32, 2, {1, 0}, {32, 8}};
  k.tensor_maps.assign(kMaxTensorMaps + 1, map);
  expect_error(device_->load(k), ErrorKind::compile, "17 tensor maps, a launch takes 16");
  k.tensor_maps.assign(16, map);
  k.params.insert(k.params.end(), 300, ParamInfo{.kind = ParamInfo::scalar, .name = "s"});
  expect_error(device_->load(k), ErrorKind::compile,
               "has 4544 bytes of parameters (305 argument slots, 16 tensor maps)");
}

// ---- tensor maps

/// Rows of floats somewhere in a buffer.
struct View {
  size_t offset = 0;
  int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 1;
};

class TensorMapTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::string& name : device_names())
      if (name != "host" && !device_)
        if (auto d = open_device(name); d && (*d)->properties().sm >= 90) device_ = *d;
    if (!device_) GTEST_SKIP() << "no GPU with tensor maps (sm_90) on this machine";
    module_ = must(device_->load(binary_for(*device_, "copy_boxes")));
    for (size_t i = 0; i < kFloats; ++i) input_.push_back(static_cast<float>(i + 1));
    in_ = must(Buffer<float>::from(device_, input_));
    out_ = must(Buffer<float>::from(device_, std::vector<float>(kFloats, -1)));
    ASSERT_OK(device_->synchronize());
  }
  std::vector<uint64_t> slots(const View& x, const View& y) {
    std::vector<uint64_t> s;
    for (const auto& [base, v] : {std::pair{in_.data(), x}, std::pair{out_.data(), y}})
      for (uint64_t w : {slot(base + v.offset), slot(v.rows), slot(v.cols), slot(v.row_stride), slot(v.col_stride)})
        s.push_back(w);
    return s;
  }
  Status copy(const View& x, const View& y, Grid grid) {
    const auto s = slots(x, y);
    return device_->default_stream().launch(*module_, grid, s.data(), s.size());
  }
  // What copy() over a grid of boxes leaves in the output, where it was `before`.
  std::vector<float> expected(const View& x, const View& y, const Grid& grid, std::vector<float> before) {
    for (int64_t r = 0; r < std::min<int64_t>(y.rows, grid.y * kBoxRows); ++r)
      for (int64_t c = 0; c < std::min<int64_t>(y.cols, grid.x * kBoxCols); ++c)
        before[y.offset + static_cast<size_t>(r * y.row_stride + c)] =
            r < x.rows && c < x.cols ? input_[x.offset + static_cast<size_t>(r * x.row_stride + c)] : 0.0f;
    return before;
  }
  void expect_copied(const View& x, const View& y, Grid grid = {3, 4}) {
    const auto before = must(out_.to_host());
    ASSERT_OK(copy(x, y, grid));
    EXPECT_EQ(expected(x, y, grid, before), must(out_.to_host()))
        << "x " << x.rows << " x " << x.cols << ", y " << y.rows << " x " << y.cols;
  }
  void expect_refused(const View& x, const std::string& part) {
    const Status refused = copy(x, {0, 8, 32, 32}, {1});
    expect_error(refused, ErrorKind::user, part);
    EXPECT_TRUE(refused.error().needs_plain_copies);
    EXPECT_NE(std::string::npos,
              refused.error().message.find("kernel 'copy_boxes', argument 0 'x': bulk copies cannot"));
  }

  static constexpr size_t kFloats = 1 << 14;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Module> module_;
  std::vector<float> input_;
  Buffer<float> in_, out_;
};

TEST_F(TensorMapTest, ViewsOfManyShapes) {
  expect_copied({0, 32, 96, 96}, {0, 32, 96, 96});
  expect_copied({0, 31, 95, 96}, {0, 32, 96, 96}, {3, 4});
  expect_copied({0, 32, 96, 96}, {0, 31, 92, 96}, {3, 4});
  expect_copied({4, 9, 33, 100}, {8, 20, 72, 104}, {3, 4});
  expect_copied({0, 1, 1, 4}, {0, 5, 4, 8});
}

TEST_F(TensorMapTest, RowsThatAreWrittenAreWholeUnits) {
  const auto before = must(out_.to_host());
  const Status refused = copy({0, 32, 96, 96}, {0, 32, 95, 96}, {3, 4});
  expect_error(refused, ErrorKind::user, "dimension 1 is written and has 380 bytes, not a multiple of 16");
  EXPECT_TRUE(refused.error().needs_plain_copies);
  EXPECT_EQ(before, must(out_.to_host()));
}

TEST_F(TensorMapTest, DimsOfOneElementHaveAnyStride) {
  expect_copied({0, 1, 64, 3}, {0, 1, 64, 64}, {2, 1});
  expect_copied({0, 1, 64, 0}, {0, 1, 64, -7}, {2, 1});
  expect_copied({0, 1, 64, int64_t{1} << 50}, {0, 1, 64, 64}, {2, 1});
  const View column{16, 8, 1, 32, 12345};  // the contiguous dim of one element
  expect_copied(column, {0, 8, 32, 32}, {1});
}

TEST_F(TensorMapTest, EmptyViewsReadAsZerosAndTakeNothing) {
  expect_copied({0, 0, 96, 96}, {0, 32, 96, 96});
  expect_copied({0, 32, 0, 96}, {0, 32, 96, 96});
  expect_copied({0, 32, 96, 96}, {0, 0, 96, 96});
  expect_copied({0, 0, 0, 0}, {0, 32, 96, 96});  // what went to the empty output does not come back here
  // No pointer at all.
  auto s = slots({0, 0, 96, 96}, {0, 32, 96, 96});
  s[0] = 0;
  ASSERT_OK(device_->default_stream().launch(*module_, {3, 4}, s.data(), s.size()));
  EXPECT_EQ(0.0f, must(out_.to_host())[0]);
}

// The kernel's x is then a view that it makes: every second row of its argument, without the first column.
TEST_F(TensorMapTest, ViewsMadeOfArguments) {
  KernelBinary k = binary_for(*device_, "copy_boxes");
  k.tensor_maps[0].made = {{16, {{1, {0}}}}, {0, {{1, {1}}}}, {-4, {{1, {2}}}}, {0, {{2, {3}}}}, {1, {}}};
  module_ = must(device_->load(k));
  const auto run = [&](const View& argument, const View& made) {
    const View y{0, 32, 96, 96};
    const auto before = must(out_.to_host());
    ASSERT_OK(copy(argument, y, {3, 4}));
    EXPECT_EQ(expected(made, y, {3, 4}, before), must(out_.to_host()));
  };
  run({0, 32, 100, 100}, {4, 32, 96, 200});
  run({8, 31, 84, 100}, {12, 31, 80, 200});
  run({0, 32, 4, 100}, {4, 32, 0, 200});
  run({0, 32, 0, 100}, {4, 0, 0, 200});  // -4 columns are none
  expect_refused({0, 8, 32, 33}, "a view: stride 66 of dimension 0");
  auto s = slots({0, 0, 96, 96}, {0, 32, 96, 96});
  s[0] = 0;
  ASSERT_OK(device_->default_stream().launch(*module_, {3, 4}, s.data(), s.size()));
  EXPECT_EQ(0.0f, must(out_.to_host())[0]);
  k.tensor_maps[0].made[0].terms[0].slots[0] = 10;
  expect_error(device_->load(k), ErrorKind::internal, "tensor map 0: slot 10 of 10");
}

// Boxes are then of what 8 rows at a time leave at the end, also where the view has no columns.
TEST_F(TensorMapTest, RemaindersOfRows) {
  if (maps_encoded() < 0) GTEST_SKIP() << "the fake driver's kernel copies as many rows as the map's box has";
  KernelBinary k = binary_for(*device_, "copy_boxes");
  k.tensor_maps[0].remainder = true;
  module_ = must(device_->load(k));
  const View y{0, 32, 32, 32};
  for (const View x : {View{0, 13, 32, 32}, {0, 16, 32, 32}, {0, 3, 32, 32}, {0, 13, 0, 32}, {0, 0, 32, 32}}) {
    const int64_t left = x.rows % kBoxRows ? x.rows % kBoxRows : kBoxRows;
    out_ = must(Buffer<float>::from(device_, std::vector<float>(kFloats, -1)));
    ASSERT_OK(copy(x, y, {1, 4}));
    std::vector<float> want = expected(x, y, {1, 4}, std::vector<float>(kFloats, -1));
    for (int64_t r = 0; r < 32; ++r)
      if (r % kBoxRows >= left) std::fill_n(want.begin() + r * 32, 32, -1.0f);
    EXPECT_EQ(want, must(out_.to_host())) << x.rows << " x " << x.cols;
  }
}

TEST_F(TensorMapTest, WhatNoMapDescribesIsSaid) {
  expect_refused({0, 8, 32, 0}, "stride 0 of dimension 0 (4 bytes per element)");
  expect_refused({1024, 8, 32, -32}, "stride -32 of dimension 0");
  expect_refused({0, 8, 32, 33}, "stride 33 of dimension 0");
  expect_refused({0, 8, 32, int64_t{1} << 38}, "is not a multiple of 16 bytes between 1 and 2^40");
  expect_refused({1, 8, 32, 32}, "is not a multiple of 16 bytes;");
  expect_refused({0, 8, 32, 32, 2}, "stride 2 of dimension 1 is not 1");
  expect_refused({0, 8, (int64_t{1} << 32) + 1, 32}, "dimension 1 has 4294967297 elements, more than 2^32");
  expect_copied({0, 32, 96, 96}, {0, 32, 96, 96});
}

TEST_F(TensorMapTest, RepeatedArgumentsAreEncodedOnce) {
  if (maps_encoded() < 0) GTEST_SKIP() << "only the fake driver counts";
  const auto encoded_by = [&](const View& x, const View& y) {
    const int before = maps_encoded();
    expect_copied(x, y);
    return maps_encoded() - before;
  };
  const View a{0, 32, 96, 96}, b{512, 32, 96, 96}, c{0, 32, 92, 96}, d{0, 16, 96, 96}, e{0, 32, 96, 100};
  EXPECT_EQ(2, encoded_by(a, a)) << "one of each argument";
  EXPECT_EQ(0, encoded_by(a, a));
  EXPECT_EQ(1, encoded_by(b, a));
  EXPECT_EQ(1, encoded_by(a, b)) << "x was seen before, y not";
  EXPECT_EQ(0, encoded_by(b, b));
  for (const View& v : {c, d, e}) EXPECT_EQ(1, encoded_by(v, a)) << "the same address with another shape or stride";
  for (const View& v : {a, b, c, d, e}) EXPECT_EQ(0, encoded_by(v, a));
  // More than are kept: the oldest go.
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(1, encoded_by({4 * i + 1024, 32, 96, 96}, a));
  EXPECT_EQ(0, encoded_by({4 * 39 + 1024, 32, 96, 96}, a));
  EXPECT_EQ(1, encoded_by(a, a));
}

TEST_F(TensorMapTest, WhatTheDriverRefusesIsRefusedOnce) {
  const auto refuse = symbol_of_driver<void (*)(int)>("fake_refuse_maps");
  if (!refuse) GTEST_SKIP() << "only the fake driver can be told to refuse";
  refuse(1);
  for (int i = 0; i < 2; ++i) expect_refused({0, 32, 96, 96}, "cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE");
  expect_copied({0, 16, 96, 96}, {0, 16, 96, 96});
}

TEST_F(TensorMapTest, ThreadsShareTheMaps) {
  constexpr int kThreads = 4, kLaunches = 60;
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kLaunches; ++i) {
        const auto at = static_cast<size_t>(t) * 1024;  // one box each, from places of its own
        failed += !copy({at + 4 * static_cast<size_t>(i), 8, 32, 32}, {at, 8, 32, 32}, {1}).ok();
      }
    });
  for (auto& t : threads) t.join();
  ASSERT_EQ(0, failed);
  const auto got = must(out_.to_host());
  for (size_t t = 0; t < kThreads; ++t)
    for (size_t i = 0; i < 256; ++i)
      ASSERT_EQ(input_[t * 1024 + 4 * (kLaunches - 1) + i], got[t * 1024 + i]) << "the thread's last launch";
}

}  // namespace
}  // namespace tile
