// tune_test.cpp - the tuner: who is timed, how often, and who wins; on made-up jobs, on host kernels, and on a GPU's
// kernels over the fake driver (where there is one, or a GPU).
#include "dsl/tune.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <thread>

#include "dsl/tile.h"

using namespace tile;

namespace {

const std::shared_ptr<Device>& host() {
  static const auto d = open_device("host").value_or_throw();
  return d;
}

/// A job whose candidates take given times, by a clock of its own.
struct Scripted {
  std::vector<double> us;
  std::vector<double> areas{};
  std::vector<int> spills{};
  std::vector<double> cycles{};    ///< of every run; missing: not counted
  std::vector<size_t> sequence{};  ///< of runs
  std::vector<int> turns{};
  std::set<size_t> unbuildable{}, unfit{}, failing{};
  std::atomic<int> builds{0};

  explicit Scripted(std::vector<double> microseconds) : us(std::move(microseconds)) {}
  TuneJob job() {
    TuneJob j;
    j.name = "scripted";
    j.candidates = us.size();
    j.describe = [](size_t i) { return "n=" + std::to_string(i); };
    j.check = [this](size_t i) { return unfit.count(i) ? Status(compile_error("does not fit")) : ok(); };
    j.build = [this](size_t i) -> Result<Resources> {
      ++builds;
      if (unbuildable.count(i)) return compile_error("does not compile");
      Resources r;
      if (i < spills.size()) r.spill_store_bytes = spills[i];
      return r;
    };
    j.measure = [this](size_t i, Stream&, int turn) -> Result<TuneSample> {
      sequence.push_back(i);
      turns.push_back(turn);
      if (failing.count(i)) return device_error("fails");
      const bool disturbed = turn % 5 == 4;
      const double ms = us[i] * 1e-3 * (disturbed ? 20 : 1);
      return TuneSample{ms, i < cycles.size() ? cycles[i] : 0};
    };
    j.area = [this](size_t i) { return i < areas.size() ? areas[i] : 1.0; };
    return j;
  }
};

TuneOptions quiet() {
  TuneOptions o;
  o.show = false;
  return o;
}

// Every other candidate, so that some thread that the tuner started meets one.
TEST(Tune, WhatKernelsThrowLeavesTheTuner) {
  Scripted s(std::vector<double>(64, 100.0));
  TuneJob job = s.job();
  job.build = [](size_t i) -> Result<Resources> {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (i % 2) throw std::runtime_error("of a grid function");
    return Resources{};
  };
  TuneOptions options = quiet();
  options.threads = 4;
  EXPECT_THROW((void)run_tuning(host()->default_stream(), job, options), std::runtime_error);
}

TEST(Tune, TheFastestWinsAndLosersLeaveEarly) {
  Scripted s({400, 100, 200, 5000});
  const auto r = run_tuning(host()->default_stream(), s.job(), quiet());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->best, 1u) << "though every fifth run is disturbed";
  EXPECT_EQ(r->measurements[3].runs, 2);
  EXPECT_EQ(r->measurements[1].runs, quiet().rounds);
  EXPECT_GT(r->measurements[3].milliseconds, 4.9);
  EXPECT_TRUE(r->measurements[3].problem.empty()) << "slow is no failure";
  // One warm-up each, then rounds in which everybody runs before anybody runs again.
  ASSERT_GE(s.sequence.size(), 8u);
  for (size_t begin : {0, 4}) {
    const std::set<size_t> round(s.sequence.begin() + static_cast<long>(begin),
                                 s.sequence.begin() + static_cast<long>(begin) + 4);
    EXPECT_EQ(round.size(), 4u);
  }
  for (size_t i = 0; i < s.turns.size(); ++i)
    EXPECT_EQ(s.turns[i], static_cast<int>(i)) << "buffers rotate with every run";
}

TEST(Tune, NothingThatFailsEndsTheSearch) {
  Scripted s({10, 10, 10, 300, 10});
  s.unfit = {0}, s.unbuildable = {1}, s.failing = {2}, s.spills = {0, 0, 0, 0, 64};
  const auto r = run_tuning(host()->default_stream(), s.job(), quiet());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->best, 3u);
  EXPECT_EQ(r->measurements[0].problem, "does not fit");
  EXPECT_EQ(r->measurements[1].problem, "does not compile");
  EXPECT_NE(r->measurements[2].problem.find("fails"), std::string::npos);
  EXPECT_EQ(r->measurements[4].problem, "spills 64 bytes");
  EXPECT_EQ(s.builds, 4) << "what cannot fit is not compiled";
}

TEST(Tune, SpillingCodeIsBetterThanNone) {
  Scripted s({50, 10});
  s.spills = {8, 8};
  const auto r = run_tuning(host()->default_stream(), s.job(), quiet());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->best, 1u);
}

TEST(Tune, WhenNothingRunsTheFirstErrorIsTold) {
  Scripted s({1, 1});
  s.failing = {0, 1};
  auto r = run_tuning(host()->default_stream(), s.job(), quiet());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message, "fails");
  s.unbuildable = {0, 1};
  r = run_tuning(host()->default_stream(), s.job(), quiet());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message, "does not compile");
  TuneJob nothing;
  nothing.name = "empty";
  EXPECT_FALSE(run_tuning(host()->default_stream(), nothing, quiet()));
}

TEST(Tune, AmongEqualsTheLargerTile) {
  Scripted s({3000, 3020, 3010, 3500});
  s.areas = {64, 256, 128, 512};
  const auto r = run_tuning(host()->default_stream(), s.job(), quiet());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->best, 1u);
}

TEST(Tune, CyclesDecideWhereTheyAreCounted) {
  Scripted s({3000, 2900, 2950});  // the clock favours the second
  s.cycles = {1.00e6, 1.04e6, 1.02e6};
  auto r = run_tuning(host()->default_stream(), s.job(), quiet());
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->by_cycles);
  EXPECT_EQ(r->best, 0u);
  EXPECT_EQ(r->measurements[1].cycles, 1.04e6);
  EXPECT_EQ(r->measurements[0].milliseconds, 3.0);
  s.cycles = {1.00e6, 1.04e6};  // not of all candidates: they cannot be compared
  r = run_tuning(host()->default_stream(), s.job(), quiet());
  ASSERT_TRUE(r);
  EXPECT_FALSE(r->by_cycles);
  EXPECT_EQ(r->best, 1u);
}

TEST(Tune, OneGoodMomentWinsNothing) {
  // The second has the least disturbed run and the larger tile, but is 5 % slower in all others.
  Scripted s({0, 0});
  s.areas = {64, 512};
  TuneJob j = s.job();
  std::vector<int> seen(2);
  j.measure = [&](size_t i, Stream&, int) -> Result<TuneSample> {
    const bool lucky = i == 1 && seen[i]++ == 3;
    return TuneSample{lucky ? 1.64 : i == 0 ? 1.65 : 1.73, 0};
  };
  const auto r = run_tuning(host()->default_stream(), j, quiet());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->best, 0u);
}

TEST(Tune, DeterministicModeTimesNothing) {
  Scripted s({10, 10, 10});
  s.unbuildable = {0}, s.spills = {0, 16, 0};
  TuneOptions o = quiet();
  o.deterministic = true;
  const auto r = run_tuning(host()->default_stream(), s.job(), o);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->best, 2u) << "the first that compiles well";
  EXPECT_TRUE(s.sequence.empty());
}

TEST(Tune, CompilesInParallelAndTellsHowFarItIs) {
  Scripted s({10, 10, 10, 10});
  TuneOptions o = quiet();
  o.threads = 4;
  std::atomic<int> at_once{0}, most{0};
  std::vector<TuneProgress> told;
  o.on_progress = [&](const TuneProgress& p) { told.push_back(p); };
  TuneJob j = s.job();
  j.build = [&](size_t) -> Result<Resources> {
    most = std::max<int>(most, ++at_once);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    --at_once;
    return Resources{};
  };
  ASSERT_TRUE(run_tuning(host()->default_stream(), j, o));
  EXPECT_GT(most, 1);
  ASSERT_GT(told.size(), 4u);
  EXPECT_EQ(told.front().phase, TuneProgress::Phase::compiling);
  EXPECT_EQ(told[3].finished, 4u);
  EXPECT_EQ(told.back().phase, TuneProgress::Phase::done);
  EXPECT_EQ(told.back().finished, told.back().total);
  EXPECT_FALSE(told.back().leader.empty());
}

TEST(Tune, AssemblerWarnings) {
  EXPECT_EQ(code_problem({}), "");
  Resources r;
  r.log = "ptxas info : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized";
  EXPECT_EQ(code_problem(r), "the assembler warns: C7510");
  Resources spilling;
  spilling.spill_store_bytes = spilling.spill_load_bytes = 8;
  EXPECT_EQ(code_problem(spilling), "");  // two words
  spilling.spill_load_bytes = 12;
  EXPECT_EQ(code_problem(spilling), "spills 12 bytes");
}

struct VecCfg {
  int BLOCK = 64;
  int unused = 0;
};
auto vector_add(const char* name) {
  return kernel(name,
                [](const VecCfg& c, Ptr<const float> x, Ptr<const float> y, Ptr<float> out, I32 n) {
                  auto i = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
                  auto m = i < n;
                  store(out + i, load(x + i, {.mask = m}) + load(y + i, {.mask = m}), {.mask = m});
                })
      .grid([](const VecCfg& c, const float*, const float*, float*, int n) {
        return Grid{cdiv(n, std::max(c.BLOCK, 1))};
      });
}

TEST(Tune, SpacesAreProducts) {
  const std::vector<VecCfg> all = Space<VecCfg>({.BLOCK = 7})
                                      .vary(&VecCfg::BLOCK, {16, 32, 64})
                                      .vary(&VecCfg::unused, {0, 1})
                                      .where([](const VecCfg& c) { return c.BLOCK * c.unused < 64; })
                                      .also({.BLOCK = 1024})
                                      .also({.BLOCK = 32});
  ASSERT_EQ(all.size(), 7u) << "the base, 6 - 1 of the product, one extra; twice the same counts once";
  EXPECT_EQ(all[0].BLOCK, 7);
  EXPECT_EQ(all[6].BLOCK, 1024);
  EXPECT_EQ(varied_fields(detail::config_fields<VecCfg>(), {{16, 0}, {32, 0}}, {32, 0}), "BLOCK=32");
}

TEST(Tune, HostKernels) {
  constexpr int n = 1 << 16;
  std::vector<float> x(n, 1), y(n, 2), out(n);
  const auto k = vector_add("tune_host").tune(Space<VecCfg>().vary(&VecCfg::BLOCK, {0, 1, 256, 1024}));
  const auto r = tune(k, host()->default_stream(), quiet(), x.data(), y.data(), out.data(), n);
  ASSERT_TRUE(r.ok()) << r.error().to_string();
  EXPECT_GE(r->best.BLOCK, 64) << "one element per program is slow";
  EXPECT_EQ(r->candidates.size(), 5u);
  EXPECT_FALSE(r->candidates[1].problem.empty());
  EXPECT_EQ(out[n - 1], 3.f);
}

TEST(Tune, OnceAndThenFromTheTables) {
  reload_tuning();
  constexpr int n = 1 << 12;
  std::vector<float> x(n, 1), y(n, 2), out(n);
  const auto k = vector_add("tune_once").tune({{.BLOCK = 1}, {.BLOCK = 512}});
  const TuningKey key = TuningKey().size("n", n);
  TuneOptions o = quiet();
  o.deterministic = true;
  Stream& s = host()->default_stream();
  EXPECT_EQ(tune_once(k, s, key, o, x.data(), y.data(), out.data(), n).value_or_throw().BLOCK, 1);
  o.deterministic = false;
  EXPECT_EQ(tune_once(k, s, key, o, x.data(), y.data(), out.data(), n).value_or_throw().BLOCK, 512);
  bool timed = false;
  o.on_progress = [&](const TuneProgress&) { timed = true; };
  EXPECT_EQ(tune_once(k, s, key, o, x.data(), y.data(), out.data(), n).value_or_throw().BLOCK, 512);
  o.deterministic = true;
  EXPECT_EQ(tune_once(k, s, key, o, x.data(), y.data(), out.data(), n).value_or_throw().BLOCK, 512);
  EXPECT_FALSE(timed);
  reload_tuning();
}

// A table made for another version of the kernel: it is as if it had no line for this one.
TEST(Tune, OnceInSpiteOfAStaleEntry) {
  reload_tuning();
  constexpr int n = 1 << 12;
  std::vector<float> x(n, 1), y(n, 2), out(n);
  const auto k = vector_add("tune_stale").tune({{.BLOCK = 1}, {.BLOCK = 512}});
  Stream& s = host()->default_stream();
  const TuningKey key = TuningKey().size("n", n);
  TuningTable stale;
  ASSERT_TRUE(stale.set({"tune_stale", s.device().properties().model, key.text(), "NOPE=3", 0.1}));
  add_tuning(stale);
  EXPECT_EQ(tune_once(k, s, key, quiet(), x.data(), y.data(), out.data(), n).value_or_throw().BLOCK, 512);
  EXPECT_EQ(find_tuned("tune_stale", s.device().properties().model, key, VecCfg{}).value_or(VecCfg{}).BLOCK, 512);
  reload_tuning();
}

// Nothing can stop what runs on a host: its configuration is named while it runs.
TEST(Tune, RunsOfHostsThatTakeTooLongAreNamed) {
  TuneJob job;
  job.name = "slow";
  job.candidates = 2;
  job.describe = [](size_t i) { return i ? "good" : "bad"; };
  job.build = [](size_t) -> Result<Resources> { return Resources{}; };
  job.run = [](size_t i, Stream&, int turn) {
    if (i == 0 && turn < 2) std::this_thread::sleep_for(std::chrono::milliseconds(150));
    return ok();
  };
  TuneOptions o = quiet();
  o.patience_s = 0.03;
  ::testing::internal::CaptureStderr();
  const auto r = run_tuning(host()->default_stream(), job, o);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(r.ok());
  EXPECT_NE(said.find("slow: configuration bad has not finished after 0.03 s, and goes on: what runs on a host"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("configuration good"), std::string::npos) << said;
}

struct MatCfg {
  int BM = 64, BN = 64, warps = 4, BK = 32;
};
auto matmul() {
  return kernel("tune_matmul",
                [](const MatCfg& c, Tensor<const half, 2> a, Tensor<const half, 2> b, Tensor<float, 2> d) {
                  num_warps(c.warps);
                  auto m0 = program_id(0) * c.BM, n0 = program_id(1) * c.BN;
                  Tile acc = zeros({c.BM, c.BN}, f32);
                  for (auto k0 : range(0, a.dim(1), c.BK, {.stages = 2}))
                    acc = dot(a.load({m0, k0}, {c.BM, c.BK}), b.load({k0, n0}, {c.BK, c.BN}), acc);
                  d.store({m0, n0}, acc);
                })
      .grid([](const MatCfg& c, const auto&, const auto&, const auto& d) {
        return Grid{cdiv(d.shape[0], c.BM), cdiv(d.shape[1], c.BN)};
      });
}

TEST(Tune, WhatCannotFitIsRefusedFromTheTrace) {
  const auto k = matmul();
  const AnyKernel& any = k;
  const Specialization dense(3, 1 | 2 << 1 | 6ull << 5 | 6ull << 8);
  auto refusal = [&](const MatCfg& c, const char* target) {
    const Status s = any.check_budget(target, k.words(c), dense);
    return s ? std::string() : s.error().message;
  };
  EXPECT_EQ(refusal({}, "sm_90a"), "");
  EXPECT_EQ(refusal({.BM = 128, .BN = 256, .warps = 8}, "sm_90a"), "");
  EXPECT_EQ(refusal({.BM = 512, .BN = 512, .warps = 8}, "sm_90a"),
            "what a loop carries takes 1024 registers of each of 256 threads, sm_90a has 255");
  EXPECT_EQ(refusal({.BM = 64, .BN = 64, .warps = 4, .BK = 2048}, "sm_90a"),
            "one stage of the operands of a loop's products takes 524288 bytes of shared memory, sm_90a has 232448");
  EXPECT_EQ(refusal({.BM = 512, .BN = 512, .warps = 8}, "host"), "");
  EXPECT_NE(refusal({.BM = 0}, "sm_80"), "") << "does not trace";
}

TEST(Tune, GpuKernels) {
  const auto opened = open_device("cuda:0");
  if (!opened) GTEST_SKIP() << opened.error().message;
  const auto device = *opened;
  constexpr int n = 256;
  auto a = Buffer<half>::from(device, std::vector<half>(n * n)).value_or_throw();
  auto b = Buffer<half>::from(device, std::vector<half>(n * n)).value_or_throw();
  auto d = Buffer<float>::allocate(device, n * n).value_or_throw();
  const bool fake = device->properties().model.starts_with("Fake");
  auto k = matmul().tune(Space<MatCfg>().vary(&MatCfg::BM, {64, 128, 1024}).vary(&MatCfg::BN, {64, 128}));
  if (fake) k = k.options({.ptxas = "none"});  // it reads PTX
  TuneOptions o = quiet();
  o.patience_s = 10;
  const auto r = tune(k, device->default_stream(), o, a.view(n, n), b.view(n, n), d.view(n, n));
  ASSERT_TRUE(r.ok()) << r.error().to_string();
  int timed = 0, refused = 0;
  for (const auto& c : r->candidates) timed += c.milliseconds > 0, refused += !c.problem.empty();
  EXPECT_EQ(timed, 4);
  EXPECT_EQ(refused, 2) << "1024 rows are too many";
  EXPECT_GT(r->milliseconds, 0);
}

}  // namespace
