// Everything of the runtime that is about words: environment, spelling, hashes, errors.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "runtime/env.h"
#include "runtime/error.h"
#include "runtime/hash.h"
#include "runtime/spelling.h"

namespace tile {
namespace {

TEST(Result, TakingWhatIsNotThereThrowsTheError) {
  Result<std::string> failed = user_error("no such thing");
  auto message = [](auto take) -> std::string {
    try {
      take();
    } catch (const Exception& e) {
      return e.error().message;
    }
    return "";
  };
  EXPECT_EQ("no such thing", message([&] { (void)*failed; }));
  EXPECT_EQ("no such thing", message([&] { (void)failed->size(); }));
  EXPECT_EQ("no such thing", message([&] { (void)failed.value(); }));
  EXPECT_EQ("no such thing", message([&] { (void)failed.value_or_throw(); }));
  EXPECT_EQ("no such thing", message([&] { (void)std::move(failed).value_or_throw(); }));
  Result<std::string> good = std::string("abc");
  EXPECT_EQ(3u, good.value_or_throw().size()) << "of a named Result, too";
  EXPECT_EQ("abc", good.value_or_throw());
  EXPECT_NE(std::string::npos, message([&] { (void)good.error(); }).find("ok()"));
}

class EnvTest : public testing::Test {
 protected:
  void set(const char* value) { setenv("TILE_NUM_THREADS", value, 1); }
  void TearDown() override { unsetenv("TILE_NUM_THREADS"); }
  int64_t number() { return env_int(Env::num_threads, -1, 1, 64); }
};

TEST_F(EnvTest, UnsetAndEmptyAreNothing) {
  EXPECT_FALSE(env_text(Env::num_threads).has_value());
  set("");
  EXPECT_FALSE(env_text(Env::num_threads).has_value());
  EXPECT_EQ(-1, number());
}

TEST_F(EnvTest, NumbersAreCheckedWhole) {
  set("8");
  EXPECT_EQ(8, number());
  for (const char* bad : {"0", "65", "8x", " 8", "eight", "99999999999999999999", "-3", "0x8"}) {
    set(bad);
    EXPECT_EQ(-1, number()) << bad;
  }
}

TEST_F(EnvTest, Flags) {
  for (const char* yes : {"1", "true", "yes", "on"}) {
    set(yes);
    EXPECT_TRUE(env_flag(Env::num_threads)) << yes;
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    set(no);
    EXPECT_FALSE(env_flag(Env::num_threads, true)) << no;
  }
  set("maybe");
  EXPECT_TRUE(env_flag(Env::num_threads, true));
  EXPECT_FALSE(env_flag(Env::num_threads, false));
}

TEST_F(EnvTest, ChildrenGetTheirEntryUnlessItWasChosen) {
  auto list = [](const char* ours) {
    if (ours) setenv("TILE_TEST_LIST", ours, 1);
    const std::vector<std::string> variables = env_for_child("TILE_TEST_LIST", "a.b=1");
    unsetenv("TILE_TEST_LIST");
    std::vector<std::string> found;
    for (const std::string& v : variables)
      if (v.starts_with("TILE_TEST_LIST=")) found.push_back(v.substr(15));
    EXPECT_GT(variables.size(), 1u) << "the rest of the environment stays";
    EXPECT_EQ(1u, found.size());
    return found.empty() ? std::string() : found[0];
  };
  EXPECT_EQ("a.b=1", list(nullptr));
  EXPECT_EQ("a.b=1", list(""));
  EXPECT_EQ("c=2:a.b=1", list("c=2"));
  EXPECT_EQ("c=2:a.b=0", list("c=2:a.b=0"));
}

TEST(EnvTable, NonsenseIsToldOnce) {
  setenv("TILE_DEBUG_RECORDS", "many", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(5, env_int(Env::debug_records, 5, 1, 64));
  EXPECT_EQ(5, env_int(Env::debug_records, 5, 1, 64));
  unsetenv("TILE_DEBUG_RECORDS");
  EXPECT_EQ(5, env_int(Env::debug_records, 5, 1, 64));
  EXPECT_EQ("tile: TILE_DEBUG_RECORDS='many' is ignored: it takes a whole number from 1 to 64\n",
            ::testing::internal::GetCapturedStderr());
}

TEST(EnvTable, NamesAreUniqueAndDocumented) {
  std::set<std::string> names;
  size_t index = 0;
  for (const EnvVariable& v : env_variables()) {
    EXPECT_TRUE(names.insert(v.name).second) << v.name;
    EXPECT_STRNE("", v.doc) << v.name;
    EXPECT_EQ(index++, static_cast<size_t>(v.id)) << "env_info() indexes by id";
  }
}

TEST(Spelling, FindsTypingErrors) {
  const std::vector<std::string> names{"host", "cuda:0", "cuda:1", "read_write"};
  EXPECT_EQ("host", nearest_name("hots", names));
  EXPECT_EQ("host", nearest_name("hst", names));
  EXPECT_EQ("cuda:0", nearest_name("cdua:0", names));
  EXPECT_EQ("read_write", nearest_name("readwrite", names));
  EXPECT_EQ("", nearest_name("tpu", names));
  EXPECT_EQ("", nearest_name("", names));
  EXPECT_EQ("", nearest_name(std::string(100000, 'x'), names));
}

TEST(Spelling, Message) {
  const std::vector<std::string> names{"host", "cuda:0"};
  EXPECT_EQ("unknown device 'hosd'; did you mean 'host'? known: host, cuda:0", unknown_name("device", "hosd", names));
  EXPECT_EQ("unknown device 'q'; known: host, cuda:0", unknown_name("device", "q", names));
  EXPECT_EQ("unknown stage 'q'; there are none", unknown_name("stage", "q", {}));
}

TEST(Hash, KnownValue) {
  // XXH3-128 of the empty input, from the reference implementation.
  EXPECT_EQ("99aa06d3014798d86001c324468d497f", hash128("").hex());
}

TEST(Hash, FieldsDoNotRunTogether) {
  EXPECT_NE(Hasher().add("ab").add("c").finish(), Hasher().add("a").add("bc").finish());
  EXPECT_NE(Hasher().add("").add("x").finish(), Hasher().add("x").add("").finish());
  EXPECT_EQ(Hasher().add("ab").add(uint64_t{3}).finish(), Hasher().add("ab").add(uint64_t{3}).finish());
  EXPECT_NE(Hasher().add(uint64_t{1}).finish(), Hasher().add(uint64_t{2}).finish());
}

TEST(Errors, DiagnosticShowsTheLineWithACaret) {
  const std::string file = testing::TempDir() + "tile_error_test.cpp";
  std::ofstream(file) << "int first;\nauto bad = a + b;\n";
  Diagnostic d;
  d.message = "shapes differ";
  d.file = file;
  d.line = 2;
  d.column = 12;
  Diagnostic note;
  note.severity = Severity::note;
  note.message = "a is here";
  d.notes.push_back(note);
  EXPECT_EQ(file + ":2:12: error: shapes differ\n    | auto bad = a + b;\n    |            ^\nnote: a is here\n",
            d.to_string());
}

TEST(Errors, UnreadableOrShortFilesJustHaveNoSnippet) {
  Diagnostic d;
  d.message = "m";
  d.file = "/nonexistent/x.cpp";
  d.line = 3;
  EXPECT_EQ("/nonexistent/x.cpp:3: error: m\n", d.to_string());
  d.file = "/dev/null";
  d.line = 4000000000u;
  EXPECT_EQ("/dev/null:4000000000: error: m\n", d.to_string());
}

TEST(Errors, KindsAndValues) {
  const Result<int> bad = device_error("gone");
  ASSERT_FALSE(bad);
  EXPECT_EQ("device error: gone\n", bad.error().to_string());
  EXPECT_THROW((void)Result<int>(bad).value_or_throw(), Exception);
  EXPECT_EQ(3, Result<int>(3).value_or_throw());
}

}  // namespace
}  // namespace tile
