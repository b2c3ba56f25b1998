// test_names.h - names of parameterised tests made of any text.
#pragma once
#include <cctype>
#include <string>

namespace tile {

/// `text` with what a test's name may not have (it may have letters, digits and underscores) replaced.
inline std::string test_name_of(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

}  // namespace tile
