// tuned.h - the process's tuned configurations: the tables built into the library (kernels/tuned/*.txt), and over them
// the files named by TILE_TUNING. Default configurations ask here first, so that a first launch is fast without tuning.
//
//   config = tuned("gemm", device.properties().model, TuningKey().fact("dtype", DType::f16).size("M", m), config);
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel.h"
#include "tuning_table.h"

namespace tile {

/// Everything known now. TILE_TUNING is read at the first use and by reload_tuning().
std::shared_ptr<const TuningTable> tuning_database();
/// Puts entries over what is known, for this process.
void add_tuning(const TuningTable& table);
/// The same for one entry, which also goes into the first file of TILE_TUNING, if that names one (a file that does not
/// exist is made).
Status remember_tuning(const TuningEntry& entry);
/// Forgets what was added and reads TILE_TUNING again.
void reload_tuning();
/// What was wrong with the tables read so far, and with the entries asked for (shown once on standard error when
/// TILE_REMARKS is 1).
std::vector<Diagnostic> tuning_problems();

namespace detail {
/// Fields of a configuration with their tuned values.
using TunedFields = std::vector<std::pair<size_t, uint64_t>>;
/// The fields of the nearest entry, of those that name only fields and values which this configuration has (others were
/// tuned for another version of the kernel, and are among tuning_problems() from then on); null when there is none.
/// Remembers answers: cheap enough for every launch. `fields` must outlive the process's last call.
std::shared_ptr<const TunedFields> tuned_fields(std::string_view kernel, std::string_view device, const TuningKey& key,
                                                const std::vector<ConfigField>& fields);
/// Parses "BM=64 stages=3" over some fields; null when a name or value is none of them.
std::shared_ptr<const TunedFields> parse_fields(std::string_view text, const std::vector<ConfigField>& fields);
}  // namespace detail

/// `otherwise` with the tuned fields changed; nullopt where the tables have no entry that this configuration can use.
template <class Cfg>
std::optional<Cfg> find_tuned(std::string_view kernel, std::string_view device, const TuningKey& key,
                              const Cfg& otherwise) {
  static const auto* fields = new std::vector<ConfigField>(detail::config_fields<Cfg>());
  const auto found = detail::tuned_fields(kernel, device, key, *fields);
  if (!found) return std::nullopt;
  auto words = detail::config_words(otherwise);
  for (const auto& [field, word] : *found) words[field] = word;
  return detail::config_from_words<Cfg>(words.data());
}

/// The same, `otherwise` itself where there is none.
template <class Cfg>
Cfg tuned(std::string_view kernel, std::string_view device, const TuningKey& key, const Cfg& otherwise) {
  return find_tuned(kernel, device, key, otherwise).value_or(otherwise);
}

}  // namespace tile
