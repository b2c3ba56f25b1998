// cache.h - the disk cache of compiled code and the byte form of a KernelBinary.
//
// One file per entry: {magic, version, key, payload size, checksum, payload}, written to a temporary name and renamed,
// so readers see a whole entry or none, on network file systems too. The cache is an accelerator, never a source of
// errors: a damaged, truncated, foreign or old entry is a miss (and is replaced by the next store); a directory that is
// missing, read-only, full, or not a directory turns stores into no-ops with one remark. Remarks of the process's cache go
// to standard error where TILE_CACHE_DIR names the directory, or TILE_REMARKS is 1.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "abi.h"
#include "error.h"
#include "hash.h"

namespace tile {

enum class CacheMode : uint8_t { read_write, read_only, off };

struct CacheOptions {
  std::string directory;  ///< created on the first store; empty: no cache
  CacheMode mode = CacheMode::read_write;
  uint64_t max_bytes = uint64_t{2} << 30;             ///< above it the least recently used entries go
  std::function<void(const std::string&)> on_remark;  ///< told once per kind of trouble
  /// TILE_CACHE_DIR, TILE_CACHE_MODE, TILE_CACHE_MAX_MB; default directory $XDG_CACHE_HOME/tile or ~/.cache/tile.
  static CacheOptions from_env();
};

struct CacheStats {
  uint64_t hits = 0, misses = 0, damaged = 0, stores = 0, failed_stores = 0, evicted = 0;
};

class DiskCache {
 public:
  explicit DiskCache(CacheOptions options) : options_(std::move(options)) {
    if (options_.directory.empty()) options_.mode = CacheMode::off;
  }
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;
  /// The process-wide one, configured from the environment at first use.
  static DiskCache& standard();

  /// The payload stored under `key`, or nothing. Safe against other threads and processes.
  std::optional<std::string> load(const Hash128& key);
  void store(const Hash128& key, std::string_view payload);
  /// Same, with the payload being a KernelBinary.
  std::optional<KernelBinary> load_kernel(const Hash128& key);
  void store_kernel(const Hash128& key, const KernelBinary& binary);

  const CacheOptions& options() const { return options_; }
  CacheStats stats() const;
  std::string path_of(const Hash128& key) const;
  /// Bytes and number of entries on disk now (reads the directory).
  struct Usage {
    uint64_t entries = 0, bytes = 0;
  };
  Usage usage() const;
  /// Why stores would fail, as far as can be seen without trying; empty: they work.
  std::string problem() const;
  /// Removes every entry of ours; files of others stay.
  void clear();

 private:
  void evict(uint64_t limit);
  void remark(int kind, const std::string& text);

  CacheOptions options_;
  std::atomic<uint64_t> hits_{0}, misses_{0}, damaged_{0}, stores_{0}, failed_stores_{0}, evicted_{0};
  std::atomic<uint32_t> remarked_{0};  ///< bit per kind of remark already made
  std::mutex eviction_;
  uint64_t bytes_seen_ = 0;  ///< estimate of the directory's size; guarded by eviction_
  bool scanned_ = false;
};

/// Versioned, self-describing enough to refuse anything else; every length is checked against the bytes present.
std::string serialize(const KernelBinary& binary);
Result<KernelBinary> deserialize(std::string_view bytes);

}  // namespace tile
