// tuning_table.h - tuned configurations as text: one line per problem that was measured, sorted, so that tables can be
// checked in, read in a review and merged by git.
//
//   gemm | NVIDIA H200 | dtype=f16 M~4096 N~4096 K~4096 | BM=128 BN=256 stages=4 | 0.1873
//   kernel | device | key | the fields that were chosen | milliseconds
//
// A key is facts (name=value), which a problem must have to use the line, and sizes (name~value), which it may be near:
// within half an octave (a factor of 1.41) each; the nearest line wins. Lines of a file are independent: a bad one is
// reported and left out.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../runtime/dtype.h"
#include "../runtime/error.h"

namespace tile {

/// What a configuration is chosen for: TuningKey().fact("dtype", DType::f16).size("M", 4096).
class TuningKey {
 public:
  static constexpr size_t kMost = 12;
  /// Names are literals: letters, digits and underscores. More than kMost parts are ignored (asserted in debug builds).
  TuningKey& fact(const char* name, int64_t value) { return add(name, value, Kind::fact); }
  TuningKey& fact(const char* name, DType value) { return add(name, static_cast<int64_t>(value), Kind::dtype); }
  TuningKey& size(const char* name, int64_t value) { return add(name, value, Kind::size); }
  std::string text() const;
  uint64_t hash() const;
  bool operator==(const TuningKey& other) const;

 private:
  friend class TuningTable;
  enum class Kind : uint8_t { fact, dtype, size };
  struct Part {
    const char* name;
    int64_t value;
    Kind kind;
  };
  TuningKey& add(const char* name, int64_t value, Kind kind);
  std::array<Part, kMost> parts_{};
  size_t count_ = 0;
};

struct TuningEntry {
  std::string kernel, device, key, config;
  double ms = 0;
};

class TuningTable {
 public:
  /// `problems` gets a warning with file, line and column for every line left out; null: nobody asks.
  static TuningTable parse(std::string_view text, const std::string& file, std::vector<Diagnostic>* problems);
  /// The same from a file; an unreadable one is an error.
  static Result<TuningTable> read(const std::string& path, std::vector<Diagnostic>* problems);
  /// Sorted, with a head line; parses to the same table.
  std::string to_string() const;
  /// Over a temporary name, so that readers see the old file or the new.
  Status write(const std::string& path) const;

  /// Adds an entry, or replaces those of the same kernel, device and key. Refuses what would not be read back.
  Status set(TuningEntry entry);
  /// Forgets the entries of this kernel, device and key, if there are any.
  void remove(std::string_view kernel, std::string_view device, std::string_view key);
  /// The entries of `other` over those of this that name the same fields, and before those that name others.
  void merge(const TuningTable& other);
  /// The nearest entry whose facts agree, of those that `accept` takes (empty: all); null if there is none.
  const TuningEntry* find(std::string_view kernel, std::string_view device, const TuningKey& key,
                          const std::function<bool(const TuningEntry&)>& accept = {}) const;
  /// Whether find could answer at all.
  bool knows(std::string_view kernel, std::string_view device) const;
  const std::vector<TuningEntry>& entries() const { return entries_; }

 private:
  /// Sorted by kernel, device, key. Of one problem there may be entries that name different fields, those of another
  /// version of the kernel; the preferred ones come first.
  std::vector<TuningEntry> entries_;
};

}  // namespace tile
