// config_text.h - values of configuration fields from text, for parse_config and the tuning tables.
#pragma once
#include <string_view>

#include "../jit.h"

namespace tile::detail {

/// False when `text` is no value of the field.
bool parse_field_value(const ConfigField& field, std::string_view text, uint64_t& word);

}  // namespace tile::detail
