// env.h - the only place that reads the environment. The variables are the rows of env.def; `tilec doctor` prints them.
// Values are read at each call (no hidden state), so callers on a hot path keep what they read.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tile {

enum class Env : uint8_t {
#define TILE_ENV(id, name, def, doc) id,
#include "env.def"
#undef TILE_ENV
};

struct EnvVariable {
  Env id;
  const char* name;
  const char* default_text;
  const char* doc;
};
std::span<const EnvVariable> env_variables();
const EnvVariable& env_info(Env id);

/// The value; nothing when unset or empty.
std::optional<std::string> env_text(Env id);
/// One line on stderr, the first time for each variable: its value is none it takes, and what happens instead.
void env_ignored(Env id, const std::string& value, const std::string& because);
/// 1/true/yes/on and 0/false/no/off; unset, and with a line on stderr anything else, gives `otherwise`.
bool env_flag(Env id, bool otherwise = false);
/// A whole number within [low, high]; unset, and with a line on stderr anything else, gives `otherwise`.
int64_t env_int(Env id, int64_t otherwise, int64_t low, int64_t high);
/// Every variable as NAME=VALUE, for a child process, with `entry` added to the colon-separated list `name` unless the list
/// already has an entry that begins as `entry` does up to its `=`.
std::vector<std::string> env_for_child(const std::string& name, const std::string& entry);

}  // namespace tile
