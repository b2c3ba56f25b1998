// ptx_text.cpp - see ptx_text.h.
#include "compiler/targets/ptx_text.h"

#include <cstdlib>
#include <cstring>

namespace tile::ir {

std::string entryOf(const std::string& ptx) {
  const std::string directive = ".entry ";
  size_t at = ptx.find(directive);
  if (at == std::string::npos) return "?";
  at += directive.size();
  return ptx.substr(at, ptx.find_first_of(" (\n", at) - at);
}

int threadsOf(const std::string& ptx) {
  const size_t at = ptx.find(kThreadsDirective);
  return at == std::string::npos ? 0 : std::atoi(ptx.c_str() + at + std::strlen(kThreadsDirective));
}

std::string withDirective(const std::string& ptx, const std::string& directive) {
  std::string with = ptx;
  return with.insert(with.find(kThreadsDirective), "." + directive + "\n");
}

}  // namespace tile::ir
