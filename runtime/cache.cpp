// cache.cpp - see cache.h. Plain POSIX calls: what matters here is what happens when they fail.
#include "runtime/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "runtime/env.h"

namespace tile {
namespace fs = std::filesystem;
namespace {

constexpr char kMagic[8] = {'T', 'I', 'L', 'E', 'C', 'A', 'C', 'H'};
constexpr uint32_t kEntryVersion = 1;
constexpr std::string_view kSuffix = ".tile";
constexpr size_t kHexDigits = 32;
constexpr auto kTouchAfter = std::chrono::minutes(1);       // spares the file system one write per hit
constexpr auto kStaleTemporary = std::chrono::minutes(15);  // a writer that died left it

struct EntryHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint64_t key_high, key_low;
  uint64_t payload_bytes;
  uint64_t checksum_high, checksum_low;  // over everything else: header and payload
};
static_assert(sizeof(EntryHeader) == 56);

Hash128 checksum(const EntryHeader& h, std::string_view payload) {
  Hasher hasher;
  hasher.add(std::string_view(h.magic, sizeof(h.magic))).add(uint64_t{h.version} << 32 | h.reserved);
  hasher.add(h.key_high).add(h.key_low).add(payload);
  return hasher.finish();
}

enum RemarkKind { kUnreadable, kDamaged, kCannotStore, kTooLarge };

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

// The whole regular file; errno says what went wrong otherwise (EINVAL: not a regular file).
std::optional<std::string> read_file(const std::string& path, bool touch) {
  // Non-blocking: a FIFO somebody put there must not hang us.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return std::nullopt;
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode)) return errno = EINVAL, std::nullopt;
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  const auto age = std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(info.st_mtime);
  if (touch && age > kTouchAfter) ::futimens(file.get(), nullptr);  // eviction order; failure only makes it less exact
  return bytes;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

bool is_entry_name(std::string_view name) {
  return name.size() == kHexDigits + kSuffix.size() && name.ends_with(kSuffix) &&
         name.substr(0, kHexDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool is_temporary_name(std::string_view name) { return name.starts_with(".tile-") && name.ends_with(".tmp"); }

struct FoundEntry {
  std::string path;
  uint64_t bytes;
  fs::file_time_type used;
};

// Entries and left-over temporaries of ours in the directory; others' files are not looked at.
void scan(const std::string& directory, std::vector<FoundEntry>& entries, std::vector<std::string>* stale) {
  std::error_code ec;
  fs::directory_iterator at(directory, ec), end;
  for (; !ec && at != end; at.increment(ec)) {
    const std::string name = at->path().filename().string();
    const bool entry = is_entry_name(name);
    if (!entry && !(stale && is_temporary_name(name))) continue;
    std::error_code gone;  // another process may remove files while we look
    if (!at->is_regular_file(gone)) continue;
    const auto used = at->last_write_time(gone);
    const uint64_t bytes = at->file_size(gone);
    if (gone) continue;
    if (entry)
      entries.push_back({at->path().string(), bytes, used});
    else if (fs::file_time_type::clock::now() - used > kStaleTemporary)
      stale->push_back(at->path().string());
  }
}

}  // namespace

CacheOptions CacheOptions::from_env() {
  CacheOptions options;
  if (env_flag(Env::remarks) || env_text(Env::cache_dir))  // who names a directory wants it used
    options.on_remark = [](const std::string& text) { fmt::print(stderr, "tile: {}\n", text); };
  if (const auto directory = env_text(Env::cache_dir))
    options.directory = *directory;
  else if (const auto base = env_text(Env::xdg_cache_home))
    options.directory = *base + "/tile";
  else if (const auto home = env_text(Env::home))
    options.directory = *home + "/.cache/tile";
  else
    options.mode = CacheMode::off;
  const std::string mode = env_text(Env::cache_mode).value_or("read_write");
  if (mode == "off")
    options.mode = CacheMode::off;
  else if (mode == "read_only" && options.mode != CacheMode::off)
    options.mode = CacheMode::read_only;
  else if (mode != "read_write" && mode != "read_only")
    env_ignored(Env::cache_mode, mode, "it takes read_write, read_only or off");
  options.max_bytes = static_cast<uint64_t>(env_int(Env::cache_max_mb, 2048, 0, int64_t{1} << 40)) << 20;
  return options;
}

DiskCache& DiskCache::standard() {
  static DiskCache* cache = new DiskCache(CacheOptions::from_env());  // usable during exit
  return *cache;
}

std::string DiskCache::path_of(const Hash128& key) const {
  return fmt::format("{}/{}{}", options_.directory, key.hex(), kSuffix);
}

std::optional<std::string> DiskCache::load(const Hash128& key) {
  if (options_.mode == CacheMode::off) return std::nullopt;
  const std::string path = path_of(key);
  std::optional<std::string> bytes = read_file(path, options_.mode == CacheMode::read_write);
  if (!bytes) {
    if (errno != ENOENT && errno != ENOTDIR)  // stores tell of a directory that is none
      remark(kUnreadable, fmt::format("cache entry '{}' cannot be read: {}", path, std::strerror(errno)));
    ++misses_;
    return std::nullopt;
  }
  EntryHeader header;
  bool good = bytes->size() >= sizeof(header);
  if (good) {
    std::memcpy(&header, bytes->data(), sizeof(header));
    const std::string_view payload = std::string_view(*bytes).substr(sizeof(header));
    good = std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 && header.version == kEntryVersion &&
           header.key_high == key.high && header.key_low == key.low && header.payload_bytes == payload.size() &&
           checksum(header, payload) == Hash128{header.checksum_high, header.checksum_low};
  }
  if (!good) {
    remark(kDamaged, fmt::format("cache entry '{}' is damaged or not ours; compiling again", path));
    ++damaged_;
    ++misses_;
    return std::nullopt;
  }
  ++hits_;
  bytes->erase(0, sizeof(header));
  return bytes;
}

void DiskCache::store(const Hash128& key, std::string_view payload) {
  if (options_.mode != CacheMode::read_write) return;
  const uint64_t total = sizeof(EntryHeader) + payload.size();
  if (total > options_.max_bytes) {
    remark(kTooLarge, fmt::format("a cache entry of {} bytes exceeds the cache's limit of {} (TILE_CACHE_MAX_MB)",
                                  total, options_.max_bytes));
    ++failed_stores_;
    return;
  }
  EntryHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kEntryVersion;
  header.key_high = key.high;
  header.key_low = key.low;
  header.payload_bytes = payload.size();
  const Hash128 check = checksum(header, payload);
  header.checksum_high = check.high;
  header.checksum_low = check.low;

  std::error_code ec;
  fs::create_directories(options_.directory, ec);  // a failure shows in the open below
  // Unique over processes and threads, and over hosts sharing the directory by virtue of O_EXCL and the clock.
  static std::atomic<uint64_t> counter{0};
  const std::string temporary =
      fmt::format("{}/.tile-{}-{:x}-{}.tmp", options_.directory, ::getpid(),
                  std::chrono::system_clock::now().time_since_epoch().count(), counter.fetch_add(1));
  const std::string path = path_of(key);
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) {
    remark(kCannotStore,
           fmt::format("cannot write to the cache directory '{}': {}; kernels are compiled again in every process "
                       "(TILE_CACHE_DIR names another, TILE_CACHE_MODE=read_only or off says that this is meant)",
                       options_.directory, std::strerror(errno)));
    ++failed_stores_;
    return;
  }
  bool written =
      write_all(file.get(), {reinterpret_cast<const char*>(&header), sizeof(header)}) && write_all(file.get(), payload);
  written = file.close() && written;  // network file systems report a full disk here
  if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    remark(kCannotStore, fmt::format("cannot store '{}': {}", path, std::strerror(errno)));
    ::unlink(temporary.c_str());
    ++failed_stores_;
    return;
  }
  ++stores_;

  std::lock_guard lock(eviction_);
  bytes_seen_ += total;
  if (!scanned_ || bytes_seen_ > options_.max_bytes) evict(options_.max_bytes);
}

// Removes the least recently used entries until at most `limit` bytes are left; when it has to act it goes on to 7/8 of
// the limit so that the directory is not read again at the next store. Concurrent processes may both evict: harmless.
void DiskCache::evict(uint64_t limit) {
  std::vector<FoundEntry> entries;
  std::vector<std::string> stale;
  scan(options_.directory, entries, &stale);
  std::error_code ec;
  for (const std::string& path : stale) fs::remove(path, ec);
  uint64_t bytes = 0;
  for (const FoundEntry& e : entries) bytes += e.bytes;
  if (bytes > limit) {
    std::sort(entries.begin(), entries.end(), [](const FoundEntry& a, const FoundEntry& b) { return a.used < b.used; });
    const uint64_t goal = limit - limit / 8;
    // The newest entry was just written by somebody who wants it; it fits by itself (store checked).
    for (size_t i = 0; i + 1 < entries.size() && bytes > goal; ++i)
      if (fs::remove(entries[i].path, ec)) bytes -= entries[i].bytes, ++evicted_;
  }
  bytes_seen_ = bytes;
  scanned_ = true;
}

std::optional<KernelBinary> DiskCache::load_kernel(const Hash128& key) {
  const std::optional<std::string> bytes = load(key);
  if (!bytes) return std::nullopt;
  Result<KernelBinary> kernel = deserialize(*bytes);
  if (kernel) return std::move(*kernel);
  // The checksum was right: written by a build with another format under the same key.
  --hits_;
  ++misses_;
  ++damaged_;
  remark(kDamaged, fmt::format("cache entry '{}': {}; compiling again", path_of(key), kernel.error().message));
  return std::nullopt;
}

void DiskCache::store_kernel(const Hash128& key, const KernelBinary& binary) {
  if (options_.mode == CacheMode::read_write) store(key, serialize(binary));
}

CacheStats DiskCache::stats() const {
  return {hits_.load(), misses_.load(), damaged_.load(), stores_.load(), failed_stores_.load(), evicted_.load()};
}

DiskCache::Usage DiskCache::usage() const {
  std::vector<FoundEntry> entries;
  scan(options_.directory, entries, nullptr);
  Usage usage{entries.size(), 0};
  for (const FoundEntry& e : entries) usage.bytes += e.bytes;
  return usage;
}

std::string DiskCache::problem() const {
  if (options_.directory.empty()) return "there is no directory: neither TILE_CACHE_DIR nor HOME is set";
  if (options_.mode == CacheMode::off) return "off";
  if (options_.mode == CacheMode::read_only) return "read only";
  // Directories that are missing are made at the first store, in the innermost one that is there.
  std::error_code ec;
  fs::path at = fs::absolute(options_.directory, ec);
  while (!fs::exists(at, ec) && at.has_relative_path() && at != at.parent_path()) at = at.parent_path();
  if (!fs::is_directory(at, ec)) return fmt::format("'{}' is not a directory", at.string());
  if (::access(at.c_str(), W_OK | X_OK) != 0) return fmt::format("'{}': {}", at.string(), std::strerror(errno));
  return "";
}

void DiskCache::clear() {
  std::lock_guard lock(eviction_);
  std::vector<FoundEntry> entries;
  scan(options_.directory, entries, nullptr);
  std::error_code ec;
  for (const FoundEntry& e : entries) fs::remove(e.path, ec);
  bytes_seen_ = 0;
}

void DiskCache::remark(int kind, const std::string& text) {
  const uint32_t bit = 1u << kind;
  if (!options_.on_remark || (remarked_.fetch_or(bit) & bit)) return;
  options_.on_remark(text);
}

}  // namespace tile
