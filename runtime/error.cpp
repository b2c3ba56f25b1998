// error.cpp - how errors read on a terminal.
#include "runtime/error.h"

#include <fmt/format.h>

#include <fstream>
#include <string_view>

namespace tile {
namespace {

std::string_view label(Severity s) {
  switch (s) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::remark:
      return "remark";
    case Severity::note:
      return "note";
  }
  return "error";
}

// The user's own line under the message; empty when the file cannot be read (a shipped binary has no sources).
std::string snippet(const std::string& file, uint32_t line, uint32_t column) {
  std::ifstream in(file);
  std::string text;
  for (uint32_t i = 0; i < line; ++i)
    if (!std::getline(in, text)) return "";
  if (line == 0 || text.empty()) return "";
  std::string out = fmt::format("    | {}\n", text);
  if (column > 0 && column <= text.size() + 1) out += fmt::format("    | {:>{}}\n", "^", column);
  return out;
}

}  // namespace

std::string Diagnostic::to_string() const {
  std::string where;
  if (!file.empty() && line > 0)
    where = column ? fmt::format("{}:{}:{}: ", file, line, column) : fmt::format("{}:{}: ", file, line);
  std::string out = fmt::format("{}{}: {}\n{}", where, label(severity), message, snippet(file, line, column));
  for (const Diagnostic& n : notes) out += n.to_string();
  return out;
}

std::string Error::to_string() const {
  static constexpr std::string_view kinds[] = {"user error", "compile error", "device error", "internal error"};
  std::string out = fmt::format("{}: {}\n", kinds[static_cast<int>(kind)], message);
  for (const Diagnostic& d : diagnostics) out += d.to_string();
  return out;
}

}  // namespace tile
