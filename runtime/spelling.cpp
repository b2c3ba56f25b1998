// spelling.cpp - edit distance with transpositions (the common typing error) over short names.
#include "runtime/spelling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tile {
namespace {

// Optimal string alignment distance: insert, delete, replace, swap two neighbours, each 1.
size_t edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> cost((a.size() + 1) * width);
  auto at = [&](size_t i, size_t j) -> size_t& { return cost[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = at(i - 1, j - 1) + (a[i - 1] != b[j - 1]);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  return cost.back();
}

}  // namespace

std::string nearest_name(std::string_view wanted, std::span<const std::string> names) {
  if (wanted.size() > 64) return "";  // not a typing error, and the table is quadratic
  size_t best = std::max<size_t>(1, wanted.size() / 3) + 1;
  std::string found;
  for (const std::string& name : names) {
    if (name.size() > 256) continue;
    const size_t distance = edit_distance(wanted, name);
    if (distance < best) best = distance, found = name;
  }
  return found;
}

std::string unknown_name(std::string_view what, std::string_view wanted, std::span<const std::string> names) {
  if (names.empty()) return fmt::format("unknown {} '{}'; there are none", what, wanted);
  const std::string near = nearest_name(wanted, names);
  const std::string hint = near.empty() ? ";" : fmt::format("; did you mean '{}'?", near);
  return fmt::format("unknown {} '{}'{} known: {}", what, wanted, hint, fmt::join(names, ", "));
}

}  // namespace tile
