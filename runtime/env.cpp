// env.cpp - see env.h.
#include "runtime/env.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace tile {
namespace {

constexpr EnvVariable kVariables[] = {
#define TILE_ENV(id, name, def, doc) {Env::id, name, def, doc},
#include "runtime/env.def"
#undef TILE_ENV
};

}  // namespace

std::span<const EnvVariable> env_variables() { return kVariables; }
const EnvVariable& env_info(Env id) { return kVariables[static_cast<size_t>(id)]; }

std::optional<std::string> env_text(Env id) {
  const char* value = std::getenv(env_info(id).name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

void env_ignored(Env id, const std::string& value, const std::string& because) {
  static std::atomic<uint64_t> told{0};
  static_assert(std::size(kVariables) <= 64);
  const uint64_t bit = uint64_t{1} << static_cast<int>(id);
  if (!(told.fetch_or(bit) & bit))
    std::fprintf(stderr, "tile: %s='%s' is ignored: %s\n", env_info(id).name, value.c_str(), because.c_str());
}

bool env_flag(Env id, bool otherwise) {
  const std::string value = env_text(id).value_or("");
  if (value == "1" || value == "true" || value == "yes" || value == "on") return true;
  if (value == "0" || value == "false" || value == "no" || value == "off") return false;
  if (!value.empty()) env_ignored(id, value, "it takes 0 or 1");
  return otherwise;
}

int64_t env_int(Env id, int64_t otherwise, int64_t low, int64_t high) {
  const std::string value = env_text(id).value_or("");
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem == std::errc() && end == value.data() + value.size() && number >= low && number <= high) return number;
  if (!value.empty())
    env_ignored(id, value, "it takes a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return otherwise;
}

std::vector<std::string> env_for_child(const std::string& name, const std::string& entry) {
  std::vector<std::string> variables;
  std::string* list = nullptr;
  for (char** variable = environ; variable && *variable; ++variable) variables.emplace_back(*variable);
  for (std::string& variable : variables)
    if (variable.starts_with(name + "=")) list = &variable;
  if (!list) {
    variables.push_back(name + "=" + entry);
  } else if (list->find(entry.substr(0, entry.find('='))) == std::string::npos) {
    *list += (list->ends_with('=') ? "" : ":") + entry;
  }
  return variables;
}

}  // namespace tile
