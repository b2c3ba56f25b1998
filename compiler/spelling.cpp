// spelling.cpp - nearest spelling by edit distance.
#include "compiler/spelling.h"

#include "llvm/ADT/StringRef.h"

namespace tile::ir {

std::string nearestSpelling(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  unsigned bestDistance = static_cast<unsigned>(word.size()) / 3 + 2;
  for (const std::string& name : names) {
    unsigned distance = llvm::StringRef(name).edit_distance(llvm::StringRef(word.data(), word.size()));
    if (distance < bestDistance) best = name, bestDistance = distance;
  }
  return best;
}

std::string unknownName(std::string_view what, std::string_view word, const std::vector<std::string>& names) {
  std::string out = "unknown " + std::string(what) + " `" + std::string(word) + "`";
  if (std::string near = nearestSpelling(word, names); !near.empty()) out += "; did you mean `" + near + "`?";
  if (names.empty()) return out;
  out += names.size() > 1 ? " Known: " : " Known: only ";
  for (size_t i = 0; i < names.size(); ++i) out += (i ? ", " : "") + names[i];
  return out;
}

}  // namespace tile::ir
