// golden.cpp - see golden.h.
#include "tests/numeric/golden.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

namespace tile::testing {

GoldenTable::GoldenTable(std::string path)
    : path_(std::move(path)), updating_(std::getenv("TILE_UPDATE_GOLDEN") != nullptr) {
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    if (line[0] == '#') {
      const size_t name = line.find_first_not_of("# "), end = line.find(" = ");
      if (name != std::string::npos && end != std::string::npos)
        headers_[line.substr(name, end - name)] = line.substr(end + 3);
      else
        comments_.push_back(line);
      continue;
    }
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) expected_[line.substr(0, colon)] = line.substr(colon + 2);
  }
}

std::string GoldenTable::header(const std::string& name) const {
  auto it = headers_.find(name);
  return it == headers_.end() ? "" : it->second;
}
void GoldenTable::setHeader(const std::string& name, const std::string& value) { headers_[name] = value; }

std::string GoldenTable::compare(const std::string& key, const std::string& value) {
  found_[key] = value;
  if (updating_) return "";
  auto it = expected_.find(key);
  if (it != expected_.end() && it->second == value) return "";
  return fmt::format(
      "{}\n- {}\n+ {}\nIf this is meant, run this test once with TILE_UPDATE_GOLDEN=1 (the whole program, no filter or "
      "shards): it rewrites {}, and the change shows in review.",
      key, it == expected_.end() ? "(no such line)" : it->second, value, path_);
}

std::vector<std::string> GoldenTable::unused() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : expected_)
    if (!found_.count(key)) keys.push_back(key);
  return keys;
}

void GoldenTable::write() const {
  std::ofstream out(path_);
  for (const std::string& line : comments_) out << line << "\n";
  for (const auto& [name, value] : headers_) out << "# " << name << " = " << value << "\n";
  for (const auto& [key, value] : found_) out << key << ": " << value << "\n";
}

}  // namespace tile::testing
