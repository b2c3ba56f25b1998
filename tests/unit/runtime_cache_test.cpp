// The disk cache under every kind of trouble: it answers with the right bytes or with nothing, and never fails a
// caller.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include "runtime/cache.h"

namespace tile {
namespace {

namespace fs = std::filesystem;

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_all(const std::string& path, std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tile_cache_XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(pattern.data()));
    root_ = pattern;
    directory_ = root_ + "/cache";
  }
  void TearDown() override {
    std::error_code ec;
    fs::remove_all(root_, ec);
  }
  CacheOptions options() {
    CacheOptions o;
    o.directory = directory_;
    o.on_remark = [this](const std::string& text) { remarks_.push_back(text); };
    return o;
  }
  static Hash128 key(uint64_t n) { return Hasher().add(n).finish(); }
  void set_age(const Hash128& k, std::chrono::minutes age) {
    fs::last_write_time(DiskCache(options()).path_of(k), fs::file_time_type::clock::now() - age);
  }
  size_t files() {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  std::string root_, directory_;
  std::vector<std::string> remarks_;
};

TEST_F(CacheTest, StoresAndLoads) {
  DiskCache cache(options());
  EXPECT_FALSE(cache.load(key(1)));
  cache.store(key(1), "one");
  cache.store(key(2), std::string(100000, '\0'));
  cache.store(key(3), "");
  EXPECT_EQ("one", cache.load(key(1)));
  EXPECT_EQ(std::string(100000, '\0'), cache.load(key(2)));
  EXPECT_EQ("", cache.load(key(3)));
  EXPECT_FALSE(cache.load(key(4)));
  EXPECT_EQ(3u, cache.usage().entries);
  EXPECT_EQ(3u, cache.stats().hits);
  EXPECT_EQ(2u, cache.stats().misses);
  EXPECT_EQ("one", DiskCache(options()).load(key(1))) << "another process sees it";
  EXPECT_TRUE(remarks_.empty());
}

TEST_F(CacheTest, OverwritingReplaces) {
  DiskCache cache(options());
  cache.store(key(1), "old");
  cache.store(key(1), "new and longer");
  EXPECT_EQ("new and longer", cache.load(key(1)));
  EXPECT_EQ(1u, files());
}

TEST_F(CacheTest, KernelsRoundTrip) {
  DiskCache cache(options());
  KernelBinary k;
  k.entry = "e";
  k.bytes = "code";
  cache.store_kernel(key(1), k);
  const auto back = cache.load_kernel(key(1));
  ASSERT_TRUE(back);
  EXPECT_EQ("code", back->bytes);
  cache.store(key(2), "not a kernel");
  EXPECT_FALSE(cache.load_kernel(key(2)));
  EXPECT_EQ(1u, cache.stats().damaged);
}

TEST_F(CacheTest, EveryBitFlipIsAMiss) {
  DiskCache cache(options());
  cache.store(key(1), "some payload of a few dozen bytes");
  const std::string path = cache.path_of(key(1)), good = read_all(path);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    write_all(path, bad);
    ASSERT_FALSE(cache.load(key(1))) << "bit " << bit;
  }
  EXPECT_EQ(good.size() * 8, cache.stats().damaged);
  EXPECT_EQ(1u, remarks_.size()) << "told once, not once per entry";
  cache.store(key(1), "fresh");
  EXPECT_EQ("fresh", cache.load(key(1)));
}

TEST_F(CacheTest, EveryTruncationAndExtensionIsAMiss) {
  DiskCache cache(options());
  cache.store(key(1), "some payload");
  const std::string path = cache.path_of(key(1)), good = read_all(path);
  for (size_t n = 0; n < good.size(); ++n) {
    write_all(path, good.substr(0, n));
    ASSERT_FALSE(cache.load(key(1))) << n;
  }
  write_all(path, good + "x");
  EXPECT_FALSE(cache.load(key(1)));
  write_all(path, good);
  EXPECT_EQ("some payload", cache.load(key(1)));
}

TEST_F(CacheTest, ForeignFilesAreMisses) {
  DiskCache cache(options());
  cache.store(key(1), "x");
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 2 && bytes.size() > 8) bytes.replace(0, 8, "TILECACH");
    write_all(cache.path_of(key(1)), bytes);
    ASSERT_FALSE(cache.load(key(1)));
  }
}

TEST_F(CacheTest, AnotherKeysEntryIsNotTaken) {
  DiskCache cache(options());
  cache.store(key(1), "one");
  fs::copy_file(cache.path_of(key(1)), cache.path_of(key(2)));
  EXPECT_FALSE(cache.load(key(2)));
}

TEST_F(CacheTest, OddThingsInPlaceOfAnEntry) {
  DiskCache cache(options());
  fs::create_directories(cache.path_of(key(1)));
  ASSERT_EQ(0, mkfifo(cache.path_of(key(2)).c_str(), 0600));
  fs::create_symlink(cache.path_of(key(3)), cache.path_of(key(3)));
  fs::create_symlink("/nonexistent", cache.path_of(key(4)));
  for (int i = 1; i <= 4; ++i) {
    EXPECT_FALSE(cache.load(key(i))) << i;
    cache.store(key(i), "v");
  }
  EXPECT_FALSE(cache.load(key(1))) << "a directory cannot be replaced";
  for (int i = 2; i <= 4; ++i) EXPECT_EQ("v", cache.load(key(i))) << i;
  EXPECT_EQ(4u, files()) << "no temporary file is left";
}

TEST_F(CacheTest, DirectoryThatIsAFile) {
  write_all(directory_, "a file");
  DiskCache cache(options());
  cache.store(key(1), "x");
  cache.store(key(2), "x");
  EXPECT_FALSE(cache.load(key(1)));
  EXPECT_EQ(2u, cache.stats().failed_stores);
  EXPECT_EQ("a file", read_all(directory_));
  EXPECT_EQ(0u, cache.usage().entries);
}

TEST_F(CacheTest, DirectoryThatCannotBeCreated) {
  directory_ = "/proc/tile/cache";
  DiskCache cache(options());
  cache.store(key(1), "x");
  EXPECT_FALSE(cache.load(key(1)));
  EXPECT_EQ(1u, cache.stats().failed_stores);
  ASSERT_EQ(1u, remarks_.size());
  EXPECT_NE(std::string::npos, remarks_[0].find("/proc/tile/cache")) << remarks_[0];
}

TEST_F(CacheTest, ProblemsAreSeenBeforehand) {
  const auto problem = [&](const std::string& directory, CacheMode mode = CacheMode::read_write) {
    CacheOptions o;
    o.directory = directory;
    o.mode = mode;
    return DiskCache(o).problem();
  };
  EXPECT_EQ("", problem(directory_)) << "it is made at the first store";
  EXPECT_EQ("", problem(directory_ + "/a/b/c"));
  EXPECT_EQ("", problem("tile_cache_that_is_not_there"));
  EXPECT_EQ("'/dev/null' is not a directory", problem("/dev/null"));
  EXPECT_EQ("'/dev/null' is not a directory", problem("/dev/null/tile"));
  EXPECT_EQ("off", problem(directory_, CacheMode::off));
  EXPECT_EQ("read only", problem(directory_, CacheMode::read_only));
  EXPECT_NE(std::string::npos, problem("").find("TILE_CACHE_DIR"));
  EXPECT_FALSE(fs::exists(directory_)) << "looking changes nothing";
}

// A directory somebody names is one somebody wants used: it is said where that cannot be, remarks or not.
TEST_F(CacheTest, AnUnusableNamedDirectoryIsTold) {
  setenv("TILE_CACHE_DIR", "/dev/null/tile", 1);
  unsetenv("TILE_REMARKS");
  DiskCache cache(CacheOptions::from_env());
  unsetenv("TILE_CACHE_DIR");
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(cache.load(key(1)));
    cache.store(key(1), "x");
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(0u, said.find("tile: cannot write to the cache directory '/dev/null/tile': Not a directory")) << said;
  EXPECT_EQ(1, std::count(said.begin(), said.end(), '\n')) << said;
}

TEST_F(CacheTest, DirectoryRemovedMeanwhile) {
  DiskCache cache(options());
  cache.store(key(1), "x");
  fs::remove_all(directory_);
  EXPECT_FALSE(cache.load(key(1)));
  cache.store(key(1), "y");
  EXPECT_EQ("y", cache.load(key(1)));
}

TEST_F(CacheTest, ReadOnlyDirectory) {
  DiskCache(options()).store(key(1), "x");
  chmod(root_.c_str(), 0755);
  chmod(directory_.c_str(), 0555);
  const bool root = geteuid() == 0;
  if (root) {  // permissions do not stop root
    ASSERT_EQ(0, seteuid(65534));
  }
  {
    DiskCache cache(options());
    cache.store(key(2), "y");
    EXPECT_EQ("x", cache.load(key(1)));
    EXPECT_FALSE(cache.load(key(2)));
    EXPECT_EQ(1u, cache.stats().failed_stores);
  }
  if (root) {
    ASSERT_EQ(0, seteuid(0));
  }
  chmod(directory_.c_str(), 0755);
  EXPECT_EQ(1u, files());
  EXPECT_EQ(1u, remarks_.size());
}

TEST_F(CacheTest, UnreadableEntry) {
  DiskCache(options()).store(key(1), "x");
  chmod(root_.c_str(), 0755);
  chmod(DiskCache(options()).path_of(key(1)).c_str(), 0);
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(0, seteuid(65534));
  }
  DiskCache cache(options());
  EXPECT_FALSE(cache.load(key(1)));
  if (root) {
    ASSERT_EQ(0, seteuid(0));
  }
  EXPECT_EQ(1u, remarks_.size());
}

TEST_F(CacheTest, FullDisk) {
  DiskCache cache(options());
  cache.store(key(1), "small");
  // A file-size limit makes writes stop half way, as a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tiny{4096, before.rlim_max};
  ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &tiny));
  cache.store(key(2), std::string(100000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(cache.load(key(2)));
  EXPECT_EQ("small", cache.load(key(1)));
  EXPECT_EQ(1u, cache.stats().failed_stores);
  EXPECT_EQ(1u, files()) << "the half-written file is gone";
}

TEST_F(CacheTest, Modes) {
  CacheOptions o = options();
  DiskCache(o).store(key(1), "x");
  o.mode = CacheMode::read_only;
  DiskCache reader(o);
  reader.store(key(2), "y");
  EXPECT_EQ("x", reader.load(key(1)));
  EXPECT_FALSE(reader.load(key(2)));
  o.mode = CacheMode::off;
  DiskCache off(o);
  off.store(key(2), "y");
  EXPECT_FALSE(off.load(key(1)));
  EXPECT_EQ(1u, files());
}

TEST_F(CacheTest, LeastRecentlyUsedEntriesGoFirst) {
  CacheOptions o = options();
  o.max_bytes = 10 * 1056;  // each entry: 56 bytes of header and 1000 of payload
  DiskCache cache(o);
  for (int i = 0; i < 9; ++i) {
    cache.store(key(i), std::string(1000, 'a'));
    set_age(key(i), std::chrono::minutes(100 - i));
  }
  EXPECT_TRUE(cache.load(key(0)));  // used now, so no longer the oldest
  cache.store(key(10), std::string(1000, 'a'));
  EXPECT_EQ(0u, cache.stats().evicted) << "still within the limit";
  cache.store(key(11), std::string(1000, 'a'));
  EXPECT_LE(cache.usage().bytes, o.max_bytes);
  // Eviction makes room for a while: down to 7/8 of the limit, eight entries.
  for (int i : {1, 2, 3}) EXPECT_FALSE(cache.load(key(i))) << i;
  for (int i : {0, 4, 5, 6, 7, 8, 10, 11}) EXPECT_TRUE(cache.load(key(i))) << i;
}

TEST_F(CacheTest, EvictionLeavesOthersFilesAndSweepsOldTemporaries) {
  fs::create_directories(directory_);
  const std::string mine = directory_ + "/notes.txt", stale = directory_ + "/.tile-1-2-3.tmp",
                    busy = directory_ + "/.tile-1-2-4.tmp";
  for (const std::string& path : {mine, stale, busy}) write_all(path, std::string(5000, 'n'));
  for (const std::string& path : {mine, stale})
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(5));
  CacheOptions o = options();
  o.max_bytes = 2000;
  DiskCache cache(o);
  for (int i = 0; i < 5; ++i) cache.store(key(i), std::string(1000, 'a'));
  EXPECT_EQ(1u, cache.usage().entries);
  EXPECT_TRUE(cache.load(key(4))) << "the newest stays";
  EXPECT_TRUE(fs::exists(mine));
  EXPECT_TRUE(fs::exists(busy)) << "somebody may be writing it";
  EXPECT_FALSE(fs::exists(stale));
  cache.clear();
  EXPECT_EQ(0u, cache.usage().entries);
  EXPECT_TRUE(fs::exists(mine));
}

TEST_F(CacheTest, EntriesLargerThanTheCacheAreNotStored) {
  CacheOptions o = options();
  o.max_bytes = 500;
  DiskCache cache(o);
  cache.store(key(1), std::string(1000, 'a'));
  EXPECT_FALSE(cache.load(key(1)));
  EXPECT_EQ(1u, remarks_.size());
}

// The payload says which key it belongs to, with a length that varies, so a torn or mixed entry would show.
std::string payload_of(uint64_t k, uint64_t version) {
  return std::to_string(k) + ":" + std::string(1000 + version * 997 % 5000, static_cast<char>('a' + version % 26));
}
bool valid_payload(uint64_t k, const std::string& p) {
  const std::string head = std::to_string(k) + ":";
  if (!p.starts_with(head) || p.size() < head.size() + 1000) return false;
  return p.find_first_not_of(p.back(), head.size()) == std::string::npos;
}

void hammer(const CacheOptions& o, uint64_t seed, int rounds, std::atomic<int>& wrong, std::atomic<int>& hits) {
  DiskCache cache(o);
  std::mt19937_64 random(seed);
  for (int i = 0; i < rounds; ++i) {
    const uint64_t k = random() % 8;
    const Hash128 hash = Hasher().add(k).finish();
    if (random() % 2)
      cache.store(hash, payload_of(k, random() % 100));
    else if (const auto got = cache.load(hash))
      ++(valid_payload(k, *got) ? hits : wrong);
  }
}

TEST_F(CacheTest, ManyThreadsAndProcessesWithEviction) {
  CacheOptions o;
  o.directory = directory_;
  o.max_bytes = 20000;  // about five entries: eviction is at work all the time
  std::vector<pid_t> children;
  for (int c = 0; c < 3; ++c) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::atomic<int> wrong{0}, hits{0};
      hammer(o, static_cast<uint64_t>(100 + c), 400, wrong, hits);
      _exit(wrong == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  std::atomic<int> wrong{0}, hits{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] { hammer(o, static_cast<uint64_t>(t), 400, wrong, hits); });
  for (std::thread& t : threads) t.join();
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(0, wrong);
  EXPECT_GT(hits, 0);
  DiskCache cache(o);
  cache.store(key(99), "last");  // one more eviction pass, now without rivals
  EXPECT_LE(cache.usage().bytes, o.max_bytes);
}

class CacheEnvTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kNames) {
      const char* value = getenv(name);
      saved_.emplace_back(name, value ? std::optional<std::string>(value) : std::nullopt);
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : saved_) value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
  }
  static constexpr const char* kNames[] = {"TILE_CACHE_DIR", "TILE_CACHE_MODE", "TILE_CACHE_MAX_MB", "XDG_CACHE_HOME",
                                           "HOME"};
  std::vector<std::pair<std::string, std::optional<std::string>>> saved_;
};

TEST_F(CacheEnvTest, DirectoryByPrecedence) {
  EXPECT_EQ(CacheMode::off, CacheOptions::from_env().mode) << "nowhere to put it";
  setenv("HOME", "/home/u", 1);
  EXPECT_EQ("/home/u/.cache/tile", CacheOptions::from_env().directory);
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ("/x/tile", CacheOptions::from_env().directory);
  setenv("TILE_CACHE_DIR", "/t", 1);
  EXPECT_EQ("/t", CacheOptions::from_env().directory);
  EXPECT_EQ(CacheMode::read_write, CacheOptions::from_env().mode);
}

TEST_F(CacheEnvTest, ModeAndSize) {
  setenv("HOME", "/h", 1);
  setenv("TILE_CACHE_MODE", "read_only", 1);
  setenv("TILE_CACHE_MAX_MB", "3", 1);
  EXPECT_EQ(CacheMode::read_only, CacheOptions::from_env().mode);
  EXPECT_EQ(3u << 20, CacheOptions::from_env().max_bytes);
  setenv("TILE_CACHE_MODE", "off", 1);
  EXPECT_EQ(CacheMode::off, CacheOptions::from_env().mode);
  setenv("TILE_CACHE_MODE", "rw", 1);
  EXPECT_EQ(CacheMode::read_write, CacheOptions::from_env().mode);
}

}  // namespace
}  // namespace tile
