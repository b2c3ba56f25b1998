// tuning_table_test.cpp - tuned configurations as text: what is read, what is refused and how, what is found.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "dsl/tuned.h"

using namespace tile;

namespace {

constexpr const char* kGood =
    "# a comment\n"
    "gemm | NVIDIA H200 | dtype=f16 M~4096 N~4096 | BM=128 stages=4 | 0.1873\n"
    "\n"
    "gemm | NVIDIA H200 | dtype=f16 M~512 N~512 | BM=64 stages=3 | 0.01\r\n"
    "gemm|NVIDIA H200|dtype=bf16 M~512 N~512|BM=32|0.5\n"
    "softmax | AMD EPYC 9654 96-Core Processor |  | BLOCK=256 | 1e-3\n";

TuningKey key(DType dtype, int64_t m, int64_t n) { return TuningKey().fact("dtype", dtype).size("M", m).size("N", n); }

TEST(TuningTable, ReadsWritesAndSorts) {
  std::vector<Diagnostic> problems;
  const TuningTable t = TuningTable::parse(kGood, "t.txt", &problems);
  EXPECT_TRUE(problems.empty());
  ASSERT_EQ(t.entries().size(), 4u);
  const std::string text = t.to_string();
  EXPECT_NE(text.find("\ngemm | NVIDIA H200 | dtype=bf16 M~512 N~512 | BM=32 | 0.5\n"
                      "gemm | NVIDIA H200 | dtype=f16 M~4096 N~4096 | BM=128 stages=4 | 0.1873\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(TuningTable::parse(text, "", &problems).to_string(), text);
  EXPECT_TRUE(problems.empty());
}

TEST(TuningTable, FindsTheNearestOfTheSameFacts) {
  const TuningTable t = TuningTable::parse(kGood, "", nullptr);
  auto found = [&](DType dtype, int64_t m, int64_t n) -> std::string {
    const TuningEntry* e = t.find("gemm", "NVIDIA H200", key(dtype, m, n));
    return e ? e->config : "";
  };
  EXPECT_EQ(found(DType::f16, 4096, 4096), "BM=128 stages=4");
  EXPECT_EQ(found(DType::f16, 3000, 5700), "BM=128 stages=4");
  EXPECT_EQ(found(DType::f16, 700, 400), "BM=64 stages=3");
  EXPECT_EQ(found(DType::f16, 4096, 5800), "") << "more than half an octave larger";
  EXPECT_EQ(found(DType::f16, 2048, 2048), "") << "half as large wants other tiles";
  EXPECT_EQ(found(DType::f16, 1024, 1024), "") << "twice as large, too";
  EXPECT_EQ(found(DType::f16, 0, 512), "");
  EXPECT_EQ(found(DType::f32, 512, 512), "");
  EXPECT_EQ(found(DType::bf16, 512, 512), "BM=32");
  EXPECT_EQ(t.find("gemm", "NVIDIA H100", key(DType::f16, 512, 512)), nullptr);
  EXPECT_EQ(t.find("gemm", "NVIDIA H200", TuningKey().fact("dtype", DType::f16)), nullptr) << "fewer parts";
  EXPECT_EQ(t.find("gemm", "NVIDIA H200", key(DType::f16, 512, 512).fact("tb", 1)), nullptr) << "more parts";
  EXPECT_NE(t.find("softmax", "AMD EPYC 9654 96-Core Processor", TuningKey()), nullptr);
  EXPECT_TRUE(t.knows("gemm", "NVIDIA H200"));
  EXPECT_FALSE(t.knows("gemm", "host"));
}

TEST(TuningTable, RemovesOneEntry) {
  TuningTable t = TuningTable::parse(kGood, "", nullptr);
  t.remove("gemm", "NVIDIA H200", "dtype=f16 M~512 N~512");
  t.remove("gemm", "NVIDIA H100", "dtype=bf16 M~512 N~512");
  EXPECT_EQ(t.entries().size(), 3u);
  EXPECT_EQ(t.find("gemm", "NVIDIA H200", key(DType::f16, 512, 512)), nullptr);
  EXPECT_NE(t.find("gemm", "NVIDIA H200", key(DType::bf16, 512, 512)), nullptr);
}

TEST(TuningTable, BothSidesOfAMergeAndTheFasterOfEqualLines) {
  std::vector<Diagnostic> problems;
  const TuningTable t = TuningTable::parse(
      "<<<<<<< ours\n"
      "gemm | d | M~1 | BM=64 | 0.2\n"
      "=======\n"
      "gemm | d | M~1 | BM=32 | 0.1\n"
      ">>>>>>> theirs\n",
      "t.txt", &problems);
  ASSERT_EQ(t.entries().size(), 1u);
  EXPECT_EQ(t.entries()[0].config, "BM=32");
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[1].line, 3u);
  EXPECT_NE(problems[0].message.find("a merge that was not finished"), std::string::npos);
}

TEST(TuningTable, BadLinesAreReportedWithTheirPlaceAndLeftOut) {
  const struct {
    const char* line;
    const char* message;
    uint32_t column;
  } cases[] = {
      {"gemm | d | M~1 | BM=64", "expected 5 fields between |, found 4", 1},
      {"gemm | d | M~1 | BM=64 | 1 | 2", "expected 5 fields between |, found more", 1},
      {"ge mm | d | M~1 | BM=64 | 1", "a kernel's name", 1},
      {" | d | M~1 | BM=64 | 1", "a kernel's name", 1},
      {"gemm |  | M~1 | BM=64 | 1", "a device's name", 7},
      {"gemm | d\x01 | M~1 | BM=64 | 1", "a device's name", 8},
      {"gemm | d | M~x | BM=64 | 1", "name=value and name~integer", 12},
      {"gemm | d | a=1 M | BM=64 | 1", "name=value and name~integer", 16},
      {"gemm | d | a=1 a=2 | BM=64 | 1", "different name=value", 16},
      {"gemm | d | M~1 | | 1", "one or more different field=value", 17},
      {"gemm | d | M~1 | BM~64 | 1", "one or more different field=value", 18},
      {"gemm | d | M~1 | BM=64 BM=32 | 1", "one or more different field=value", 24},
      {"gemm | d | M~1 | BM=64 | fast", "milliseconds are a number above 0", 26},
      {"gemm | d | M~1 | BM=64 | -1", "milliseconds", 26},
      {"gemm | d | M~1 | BM=64 | nan", "milliseconds", 26},
      {"gemm | d | M~1 | BM=64 | inf", "milliseconds", 26},
      {"gemm | d | M~1 | BM=64 | ", "milliseconds", 25},
  };
  for (const auto& c : cases) {
    std::vector<Diagnostic> problems;
    const TuningTable t = TuningTable::parse(
        std::string("a | d | M~1 | X=1 | 1\n") + c.line + "\nb | d | M~1 | X=1 | 1", "t.txt", &problems);
    EXPECT_EQ(t.entries().size(), 2u) << c.line;
    ASSERT_EQ(problems.size(), 1u) << c.line;
    EXPECT_NE(problems[0].message.find(c.message), std::string::npos) << c.line << "\n" << problems[0].message;
    EXPECT_EQ(problems[0].line, 2u) << c.line;
    EXPECT_EQ(problems[0].column, c.column) << c.line;
    EXPECT_EQ(problems[0].file, "t.txt");
  }
}

// Whatever the bytes: no harm, and what was accepted is written and read as the same.
TEST(TuningTable, HostileTextIsHarmless) {
  std::mt19937_64 random(1);
  const std::string good = kGood, alphabet =
                                      "gemm|= ~#\n\r\t\0.1e9-<>\xff"
                                      "BMdtype";
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (int n = static_cast<int>(random() % 8); n >= 0; --n) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        default:
          text.insert(at, 1 + random() % 3, alphabet[random() % alphabet.size()]);
      }
      if (text.empty()) text = "|";
    }
    std::vector<Diagnostic> problems;
    const TuningTable t = TuningTable::parse(text, "", &problems);
    const std::string written = t.to_string();
    problems.clear();
    ASSERT_EQ(TuningTable::parse(written, "", &problems).to_string(), written) << text;
    ASSERT_TRUE(problems.empty()) << written;
    (void)t.find("gemm", "NVIDIA H200", key(DType::f16, 512, 512));
  }
}

TEST(TuningTable, LongLinesAndManyParts) {
  std::vector<Diagnostic> problems;
  EXPECT_TRUE(TuningTable::parse(std::string(1 << 20, 'x'), "", &problems).entries().empty());
  EXPECT_NE(problems.at(0).message.find("at most 4096 characters, found 1048576"), std::string::npos);
  std::string many = "k | d |";
  for (int i = 0; i < 13; ++i) many += " a" + std::to_string(i) + "=1";
  problems.clear();
  TuningTable::parse(many + " | X=1 | 1", "", &problems);
  EXPECT_NE(problems.at(0).message.find("at most 12 different"), std::string::npos);
}

TEST(TuningTable, SetRefusesWhatWouldNotBeReadBack) {
  TuningTable t;
  EXPECT_TRUE(t.set({"k", "d", "M~1", "X=1", 1}));
  EXPECT_TRUE(t.set({"k", "d", "M~1", "X=2", 3}));
  ASSERT_EQ(t.entries().size(), 1u);
  EXPECT_EQ(t.entries()[0].config, "X=2") << "what is set last counts";
  EXPECT_FALSE(t.set({"k", "d|e", "M~1", "X=1", 1}));
  EXPECT_FALSE(t.set({"k", "d\n", "M~1", "X=1", 1}));
  EXPECT_FALSE(t.set({"k", "d", "M~1", "", 1}));
  EXPECT_FALSE(t.set({"k", "d", "M~1", "X=1", 0}));
}

// ---- the process's tables

struct TunedCfg {
  int BM = 16;
  bool flag = false;
  DType type = DType::f32;
};

class Tuned : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("tile_tuning_" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override {
    unsetenv("TILE_TUNING");
    reload_tuning();
    std::filesystem::remove_all(directory_);
  }
  std::string file(const char* name, const std::string& text) {
    const std::string path = directory_ / name;
    std::ofstream(path) << text;
    return path;
  }
  void use(const std::string& files) {
    setenv("TILE_TUNING", files.c_str(), 1);
    reload_tuning();
  }
  static TunedCfg ask(int64_t m = 100) {
    return tuned("k", "d", TuningKey().size("M", m), TunedCfg{8, true, DType::f16});
  }
  std::filesystem::path directory_;
};

TEST_F(Tuned, ChangesTheFieldsOfTheEntryOnly) {
  EXPECT_EQ(ask().BM, 8) << "no entry";
  use(file("a", "k | d | M~100 | BM=64 type=bf16 | 1\n"));
  const TunedCfg c = ask();
  EXPECT_EQ(c.BM, 64);
  EXPECT_TRUE(c.flag);
  EXPECT_EQ(c.type, DType::bf16);
  EXPECT_EQ(ask(140).BM, 64);
  EXPECT_EQ(ask(1000).BM, 8);
}

TEST_F(Tuned, EarlierAnswersDoNotOutliveTheTables) {
  use(file("a", "k | d | M~100 | BM=64 | 1\n"));
  EXPECT_EQ(ask().BM, 64);
  TuningTable more;
  ASSERT_TRUE(more.set({"k", "d", "M~100", "BM=32", 1}));
  add_tuning(more);
  EXPECT_EQ(ask().BM, 32);
  reload_tuning();
  EXPECT_EQ(ask().BM, 64);
  use("none");
  EXPECT_EQ(ask().BM, 8);
  EXPECT_TRUE(tuning_database()->entries().empty());
}

TEST_F(Tuned, LaterFilesComeFirstAndMissingOnesAreSaid) {
  use(file("a", "k | d | M~100 | BM=64 | 1\n") + ":" + file("b", "k | d | M~100 | BM=128 | 9\nwrong\n") +
      ":/nonexistent/c");
  EXPECT_EQ(ask().BM, 128);
  const auto problems = tuning_problems();
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].file, (directory_ / "b").string());
  EXPECT_NE(problems[1].message.find("'/nonexistent/c' does not exist yet"), std::string::npos);
  use(directory_.string());
  ASSERT_EQ(tuning_problems().size(), 1u);
  EXPECT_NE(tuning_problems()[0].message.find("is a directory"), std::string::npos);
}

TEST_F(Tuned, EntriesOfAnotherVersionOfTheKernelAreNotUsed) {
  for (const char* config : {"BN=64", "BM=64 BN=64", "BM=sixty", "flag=2", "BM=99999999999"}) {
    use(file("a", std::string("k | d | M~100 | ") + config + " | 1\n"));
    EXPECT_EQ(ask().BM, 8) << config;
  }
}

// They hide no entry that can be used, whichever is nearer, faster or in the later file; and they are told of.
TEST_F(Tuned, EntriesOfAnotherVersionHideNothing) {
  use(file("a", "k | d | M~100 | BN=3 | 0.1\nk | d | M~100 | BM=64 | 0.2\nk | d | M~100 | BM=32 | 0.3\n"));
  EXPECT_EQ(ask().BM, 64) << "of equal lines the faster one";
  ASSERT_EQ(tuning_problems().size(), 1u);
  EXPECT_NE(tuning_problems()[0].message.find("'k | d | M~100 | BN=3' is not used: this kernel has no such fields"),
            std::string::npos);
  use(file("a", "k | d | M~100 | BN=3 | 0.1\nk | d | M~110 | BM=64 | 0.2\n"));
  EXPECT_EQ(ask().BM, 64) << "a little further";
  EXPECT_EQ(ask(110).BM, 64);
  use(file("a", "k | d | M~100 | BM=64 | 0.2\n") + ":" + file("b", "k | d | M~100 | BN=3 | 0.1\n"));
  EXPECT_EQ(ask().BM, 64) << "a later file";
  ASSERT_TRUE(remember_tuning({"k", "d", "M~100", "BM=16", 0.5}));
  const TuningTable written = TuningTable::read(directory_ / "a", nullptr).value_or_throw();
  ASSERT_EQ(written.entries().size(), 1u) << "a new result replaces all of its problem";
  EXPECT_EQ(written.entries()[0].config, "BM=16");
}

TEST_F(Tuned, ResultsAreRememberedInTheUsersFile) {
  const std::string path = directory_ / "mine";
  use(path);
  ASSERT_TRUE(remember_tuning({"k", "d", "M~100", "BM=64", 0.5}));
  ASSERT_TRUE(remember_tuning({"j", "d", "M~100", "BM=32", 0.5}));
  EXPECT_EQ(ask().BM, 64);
  reload_tuning();
  EXPECT_EQ(ask().BM, 64) << "from the file";
  std::ofstream(path, std::ios::app) << "something else\n";
  const Status refused = remember_tuning({"k", "d", "M~100", "BM=16", 0.4});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("has lines that cannot be read; it is not changed"), std::string::npos);
}

TEST_F(Tuned, AskingAgainIsCheap) {
  use(file("a", kGood));
  (void)ask();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10000; ++i) (void)ask();
  const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / 10000;
  EXPECT_LT(us, 2.0);
}

// Every table that is shipped reads without a complaint and is what writing it again gives.
TEST_F(Tuned, ShippedTablesAreSortedAndWhole) {
  reload_tuning();
  EXPECT_TRUE(tuning_problems().empty());
}

}  // namespace
