// tuning_table.cpp - see tuning_table.h. The text may come from anyone: nothing of it is believed before it is checked.
#include "dsl/tuning_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <tuple>

namespace tile {
namespace {

constexpr std::string_view kHead =
    "# Tuned configurations: kernel | device | key | config | milliseconds. Kept sorted.\n";
constexpr std::string_view kBar = " | ";
constexpr size_t kMaxLine = 4096, kMaxFile = size_t{64} << 20;

auto order(const TuningEntry& e) { return std::tie(e.kernel, e.device, e.key); }
bool before(const TuningEntry& a, const TuningEntry& b) { return order(a) < order(b); }

/// Which fields an entry names: those of one version of a kernel.
std::string fields_of(const TuningEntry& e) {
  std::string out, token;
  for (std::istringstream words(e.config); words >> token;) out += token.substr(0, token.find('=')) + " ";
  return out;
}
bool is_same(const TuningEntry& a, const TuningEntry& b) { return order(a) == order(b) && fields_of(a) == fields_of(b); }

/// Sorts, and of entries of the same problem with the same fields keeps the first.
void settle(std::vector<TuningEntry>& entries) {
  std::stable_sort(entries.begin(), entries.end(), before);
  std::vector<TuningEntry> kept;
  size_t problem = 0;  // where the entries of the current one begin
  for (TuningEntry& e : entries) {
    if (problem < kept.size() && order(kept[problem]) != order(e)) problem = kept.size();
    const auto begin = kept.begin() + static_cast<std::ptrdiff_t>(problem);
    if (std::none_of(begin, kept.end(), [&](const TuningEntry& k) { return is_same(k, e); })) kept.push_back(std::move(e));
  }
  entries = std::move(kept);
}

std::string_view trimmed(std::string_view s) {
  const size_t begin = s.find_first_not_of(" \t\r"), end = s.find_last_not_of(" \t\r");
  return begin == s.npos ? s.substr(0, 0) : s.substr(begin, end - begin + 1);
}
bool is_word(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '+';
  });
}

/// Calls fn(token) for every word of `text` until one is refused; where that is.
template <class Fn>
std::optional<size_t> each_token(std::string_view text, Fn fn) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at && !fn(text.substr(at, end - at))) return at;
    at = end + 1;
  }
  return std::nullopt;
}

struct KeyToken {
  std::string_view name, value;
  bool size = false;
};
std::optional<KeyToken> key_token(std::string_view token) {
  const size_t at = token.find_first_of("=~");
  if (at == token.npos) return std::nullopt;
  KeyToken t{token.substr(0, at), token.substr(at + 1), token[at] == '~'};
  if (!is_word(t.name) || !is_word(t.value)) return std::nullopt;
  return t;
}
bool to_number(std::string_view text, int64_t& out) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), out);
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

/// What is wrong with an entry, and how far into which field; empty: nothing.
struct Fault {
  std::string what;
  int field = 0;
  size_t at = 0;
};
Fault fault_of(const TuningEntry& e) {
  if (!is_word(e.kernel)) return {"a kernel's name is letters, digits and _-.+", 0, 0};
  const auto printable = [](char c) { return c >= ' ' && c != '|' && c != 127; };
  if (e.device.empty() || trimmed(e.device) != e.device || !std::all_of(e.device.begin(), e.device.end(), printable))
    return {"a device's name is printable text without |", 1, 0};
  std::vector<std::string_view> names;
  const auto bad_key = each_token(e.key, [&](std::string_view token) {
    const auto t = key_token(token);
    int64_t number = 0;
    if (!t || (t->size && !to_number(t->value, number))) return false;
    if (std::find(names.begin(), names.end(), t->name) != names.end() || names.size() == TuningKey::kMost) return false;
    names.push_back(t->name);
    return true;
  });
  if (bad_key)
    return {fmt::format("a key is at most {} different name=value and name~integer", TuningKey::kMost), 2, *bad_key};
  names.clear();
  const auto bad_config = each_token(e.config, [&](std::string_view token) {
    const auto t = key_token(token);
    if (!t || t->size || std::find(names.begin(), names.end(), t->name) != names.end()) return false;
    names.push_back(t->name);
    return true;
  });
  if (bad_config || names.empty())
    return {"a configuration is one or more different field=value", 3, bad_config.value_or(0)};
  if (!(std::isfinite(e.ms) && e.ms > 0)) return {"milliseconds are a number above 0", 4, 0};
  return {};
}

/// One line into an entry.
Fault parse_line(std::string_view line, TuningEntry& e) {
  std::array<std::string_view, 5> fields;
  size_t n = 0;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find('|', at), line.size());
    if (n == fields.size()) return {fmt::format("expected {} fields between |, found more", fields.size()), 0, 0};
    fields[n++] = trimmed(line.substr(at, end - at));
    at = end + 1;
  }
  if (n != fields.size()) return {fmt::format("expected {} fields between |, found {}", fields.size(), n), 0, 0};
  e = {std::string(fields[0]), std::string(fields[1]), std::string(fields[2]), std::string(fields[3]), 0};
  const auto number = std::from_chars(fields[4].data(), fields[4].data() + fields[4].size(), e.ms);
  if (number.ec != std::errc() || number.ptr != fields[4].data() + fields[4].size()) e.ms = 0;
  Fault f = fault_of(e);
  if (!f.what.empty()) f.at += static_cast<size_t>(fields[static_cast<size_t>(f.field)].data() - line.data());
  return f;
}

/// How far a key is from the wanted one; nullopt: another problem.
std::optional<double> distance(std::string_view entry_key, const std::vector<KeyToken>& wanted) {
  double sum = 0;
  size_t n = 0;
  const auto stopped = each_token(entry_key, [&](std::string_view token) {
    const auto t = key_token(token);
    if (!t) return false;
    const auto w = std::find_if(wanted.begin(), wanted.end(), [&](const KeyToken& k) { return k.name == t->name; });
    if (w == wanted.end() || w->size != t->size) return false;
    ++n;
    if (w->value == t->value) return true;
    int64_t a = 0, b = 0;
    if (!t->size || !to_number(t->value, a) || !to_number(w->value, b) || a <= 0 || b <= 0) return false;
    const double octaves = std::abs(std::log2(static_cast<double>(a)) - std::log2(static_cast<double>(b)));
    sum += octaves * octaves;
    // Twice the size can want other tiles: what is best for a GEMM of 2048 leaves half of the machine idle at 1024.
    return octaves <= 0.5;
  });
  if (stopped || n != wanted.size()) return std::nullopt;
  return sum;
}

}  // namespace

// ---- TuningKey

TuningKey& TuningKey::add(const char* name, int64_t value, Kind kind) {
  assert(count_ < kMost && is_word(name));
  if (count_ < kMost) parts_[count_++] = {name, value, kind};
  return *this;
}

std::string TuningKey::text() const {
  std::string out;
  for (size_t i = 0; i < count_; ++i) {
    const Part& p = parts_[i];
    const std::string value =
        p.kind == Kind::dtype ? std::string(name(static_cast<DType>(p.value))) : std::to_string(p.value);
    out += fmt::format("{}{}{}{}", i ? " " : "", p.name, p.kind == Kind::size ? '~' : '=', value);
  }
  return out;
}

uint64_t TuningKey::hash() const {
  uint64_t h = count_;
  for (size_t i = 0; i < count_; ++i) h = (h ^ static_cast<uint64_t>(parts_[i].value)) * 0x9e3779b97f4a7c15 + (h >> 29);
  return h;
}

bool TuningKey::operator==(const TuningKey& other) const {
  return std::equal(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(count_), other.parts_.begin(),
                    other.parts_.begin() + static_cast<std::ptrdiff_t>(other.count_), [](const Part& a, const Part& b) {
                      return a.value == b.value && a.kind == b.kind &&
                             (a.name == b.name || std::strcmp(a.name, b.name) == 0);
                    });
}

// ---- TuningTable

TuningTable TuningTable::parse(std::string_view text, const std::string& file, std::vector<Diagnostic>* problems) {
  TuningTable table;
  uint32_t number = 0;
  const auto problem = [&](std::string what, size_t column) {
    if (problems == nullptr) return;
    Diagnostic d;
    d.severity = Severity::warning;
    d.message = "tuning table: " + std::move(what) + "; the line is left out";
    d.file = file;
    d.line = number;
    d.column = static_cast<uint32_t>(column + 1);
    problems->push_back(std::move(d));
  };
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (trimmed(line).empty() || trimmed(line).front() == '#') continue;
    if (line.starts_with("<<<<<<<") || line.starts_with("=======") || line.starts_with(">>>>>>>")) {
      problem("a merge that was not finished", 0);  // the lines of both sides are good
      continue;
    }
    if (line.size() > kMaxLine) {
      problem(fmt::format("a line has at most {} characters, found {}", kMaxLine, line.size()), 0);
      continue;
    }
    TuningEntry entry;
    if (Fault f = parse_line(line, entry); !f.what.empty())
      problem(f.what, f.at);
    else
      table.entries_.push_back(std::move(entry));
  }
  // Of lines of the same problem (both sides of a merge) the faster one counts.
  std::stable_sort(table.entries_.begin(), table.entries_.end(),
                   [](const TuningEntry& a, const TuningEntry& b) { return a.ms < b.ms; });
  settle(table.entries_);
  return table;
}

Result<TuningTable> TuningTable::read(const std::string& path, std::vector<Diagnostic>* problems) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return user_error(fmt::format("tuning table '{}' is a directory", path));
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 14> part;
  while (file && text.size() <= kMaxFile) {
    file.read(part.data(), part.size());
    text.append(part.data(), static_cast<size_t>(file.gcount()));
  }
  if (!file.eof() && text.size() <= kMaxFile) return user_error(fmt::format("tuning table '{}' cannot be read", path));
  if (text.size() > kMaxFile)
    return user_error(fmt::format("tuning table '{}' has more than {} bytes", path, kMaxFile));
  return parse(text, path, problems);
}

std::string TuningTable::to_string() const {
  std::string out(kHead);
  for (const TuningEntry& e : entries_)
    out += fmt::format("{}{}{}{}{}{}{}{}{:.4g}\n", e.kernel, kBar, e.device, kBar, e.key, kBar, e.config, kBar, e.ms);
  return out;
}

Status TuningTable::write(const std::string& path) const {
  const std::string temporary = fmt::format("{}.{}.new", path, getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << to_string();
  file.close();
  std::error_code failed;
  if (file) std::filesystem::rename(temporary, path, failed);
  if (file && !failed) return ok();
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  return user_error(fmt::format("tuning table '{}' cannot be written", path));
}

Status TuningTable::set(TuningEntry entry) {
  if (const Fault f = fault_of(entry); !f.what.empty())
    return user_error(fmt::format("tuning table: {}; found '{}'", f.what,
                                  f.field == 0   ? entry.kernel
                                  : f.field == 1 ? entry.device
                                  : f.field == 2 ? entry.key
                                  : f.field == 3 ? entry.config
                                                 : fmt::format("{}", entry.ms)));
  const auto [begin, end] = std::equal_range(entries_.begin(), entries_.end(), entry, before);
  entries_.insert(entries_.erase(begin, end), std::move(entry));
  return ok();
}

void TuningTable::remove(std::string_view kernel, std::string_view device, std::string_view key) {
  std::erase_if(entries_,
                [&](const TuningEntry& e) { return e.kernel == kernel && e.device == device && e.key == key; });
}

void TuningTable::merge(const TuningTable& other) {
  std::vector<TuningEntry> all = other.entries_;
  all.insert(all.end(), entries_.begin(), entries_.end());
  settle(all);
  entries_ = std::move(all);
}

bool TuningTable::knows(std::string_view kernel, std::string_view device) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const TuningEntry& e) { return e.kernel == kernel && e.device == device; });
}

const TuningEntry* TuningTable::find(std::string_view kernel, std::string_view device, const TuningKey& key,
                                     const std::function<bool(const TuningEntry&)>& accept) const {
  const std::string text = key.text();
  std::vector<KeyToken> wanted;
  each_token(text, [&](std::string_view token) {
    if (const auto t = key_token(token)) wanted.push_back(*t);
    return true;
  });
  const TuningEntry* best = nullptr;
  double nearest = 0;
  for (const TuningEntry& e : entries_) {
    if (e.kernel != kernel || e.device != device) continue;
    const std::optional<double> d = distance(e.key, wanted);
    if (d && (best == nullptr || *d < nearest) && (!accept || accept(e))) best = &e, nearest = *d;
  }
  return best;
}

}  // namespace tile
