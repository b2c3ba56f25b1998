// tuned.cpp - see tuned.h. Answers are remembered under the names' hash and compared in full, so that asking again
// costs a lock and a look-up; anything that changes the database forgets them.
#include "dsl/tuned.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "dsl/detail/config_text.h"
#include "dsl/detail/tuned_tables.h"
#include "runtime/env.h"

namespace tile {
namespace {

struct Answer {
  std::string kernel, device;
  TuningKey key;
  const std::vector<ConfigField>* fields;
  std::shared_ptr<const detail::TunedFields> found;
};

struct Database {
  std::mutex mutex;
  std::shared_ptr<const TuningTable> table;  ///< null: not read yet
  std::unordered_map<uint64_t, std::vector<Answer>> answers;
  std::vector<Diagnostic> problems;
};
Database& database() {
  static Database* d = new Database;  // outlives kernels with static storage
  return *d;
}

// With the mutex held.
void read_tables(Database& d) {
  TuningTable all;
  d.problems.clear();
  const std::optional<std::string> files = env_text(Env::tuning);
  if (!files || *files != "none") {
    for (const detail::TunedTable& built_in : detail::tuned_tables())
      all.merge(TuningTable::parse(built_in.text, built_in.file, &d.problems));
    std::istringstream names(files.value_or(""));
    for (std::string name; std::getline(names, name, ':');) {
      if (name.empty()) continue;
      if (!std::filesystem::exists(name))  // no mistake: the first result makes it
        d.problems.push_back(
            {Severity::remark, fmt::format("tuning table '{}' does not exist yet", name), {}, 0, 0, {}});
      else if (Result<TuningTable> read = TuningTable::read(name, &d.problems))
        all.merge(*read);
      else
        d.problems.push_back({Severity::warning, read.error().message + " (TILE_TUNING)", {}, 0, 0, {}});
    }
  }
  if (env_flag(Env::remarks))
    for (const Diagnostic& p : d.problems) fmt::print(stderr, "{}\n", p.to_string());
  d.table = std::make_shared<const TuningTable>(std::move(all));
  d.answers.clear();
}
std::shared_ptr<const TuningTable> current(Database& d) {
  if (!d.table) read_tables(d);
  return d.table;
}

}  // namespace

std::shared_ptr<const TuningTable> tuning_database() {
  Database& d = database();
  std::lock_guard lock(d.mutex);
  return current(d);
}

void add_tuning(const TuningTable& table) {
  Database& d = database();
  std::lock_guard lock(d.mutex);
  TuningTable all = *current(d);
  all.merge(table);
  d.table = std::make_shared<const TuningTable>(std::move(all));
  d.answers.clear();
}

Status remember_tuning(const TuningEntry& entry) {
  TuningTable one;
  if (Status s = one.set(entry); !s) return s;
  add_tuning(one);
  const std::string files = env_text(Env::tuning).value_or("");
  const std::string file = files.substr(0, files.find(':'));
  if (file.empty() || file == "none") return ok();
  // Rewriting would lose the lines that cannot be read.
  TuningTable all;
  std::vector<Diagnostic> problems;
  if (std::filesystem::exists(file)) {
    Result<TuningTable> read = TuningTable::read(file, &problems);
    if (!read) return read.error();
    if (!problems.empty())
      return make_error(ErrorKind::user,
                        fmt::format("tuning table '{}' has lines that cannot be read; it is not changed", file),
                        problems);
    all = std::move(*read);
  }
  all.merge(one);
  return all.write(file);
}

void reload_tuning() {
  Database& d = database();
  std::lock_guard lock(d.mutex);
  read_tables(d);
}

std::vector<Diagnostic> tuning_problems() {
  Database& d = database();
  std::lock_guard lock(d.mutex);
  current(d);
  return d.problems;
}

// With the mutex held; the same problem once.
static void note_problem(Database& d, std::string message) {
  for (const Diagnostic& p : d.problems)
    if (p.message == message) return;
  d.problems.push_back({Severity::warning, std::move(message), {}, 0, 0, {}});
  if (env_flag(Env::remarks)) fmt::print(stderr, "{}\n", d.problems.back().to_string());
}

namespace detail {

std::shared_ptr<const TunedFields> parse_fields(std::string_view text, const std::vector<ConfigField>& fields) {
  auto out = std::make_shared<TunedFields>();
  std::istringstream words{std::string(text)};
  for (std::string assignment; words >> assignment;) {
    const size_t eq = assignment.find('=');
    size_t at = 0;
    while (at < fields.size() && fields[at].name != std::string_view(assignment).substr(0, eq)) ++at;
    uint64_t word = 0;
    if (eq == assignment.npos || at == fields.size() ||
        !parse_field_value(fields[at], std::string_view(assignment).substr(eq + 1), word))
      return nullptr;
    out->emplace_back(at, word);
  }
  return out;
}

std::shared_ptr<const TunedFields> tuned_fields(std::string_view kernel, std::string_view device, const TuningKey& key,
                                                const std::vector<ConfigField>& fields) {
  const uint64_t hash = key.hash() ^ std::hash<std::string_view>()(kernel) ^ std::hash<std::string_view>()(device) * 3;
  Database& d = database();
  std::lock_guard lock(d.mutex);
  const auto table = current(d);
  if (table->entries().empty()) return nullptr;
  if (d.answers.size() > 10000) d.answers.clear();  // sizes that never repeat must not fill the memory
  std::vector<Answer>& known = d.answers[hash];
  for (const Answer& a : known)
    if (a.fields == &fields && a.key == key && a.kernel == kernel && a.device == device) return a.found;
  Answer answer{std::string(kernel), std::string(device), key, &fields, nullptr};
  table->find(kernel, device, key, [&](const TuningEntry& entry) {
    auto parsed = parse_fields(entry.config, fields);
    if (!parsed) {
      note_problem(d, fmt::format("tuning table: '{} | {} | {} | {}' is not used: this kernel has no such fields or values",
                                  entry.kernel, entry.device, entry.key, entry.config));
      return false;
    }
    answer.found = std::move(parsed);  // nearer than what was accepted before
    return true;
  });
  known.push_back(std::move(answer));
  return known.back().found;
}

}  // namespace detail
}  // namespace tile
