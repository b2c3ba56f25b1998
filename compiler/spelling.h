// spelling.h - "did you mean": the known name nearest to a mistyped one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tile::ir {

/// The name within a third of its length of `word` (edit distance); empty when nothing is close.
std::string nearestSpelling(std::string_view word, const std::vector<std::string>& names);

/// "unknown WHAT `word`; did you mean `near`? Known: a, b, c" for error messages.
std::string unknownName(std::string_view what, std::string_view word, const std::vector<std::string>& names);

}  // namespace tile::ir
