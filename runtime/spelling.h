// spelling.h - "did you mean": the nearest of a list of names, for every message about an unknown name.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tile {

/// The closest of `names` by edit distance if it is close enough to be a typing error, else empty.
std::string nearest_name(std::string_view wanted, std::span<const std::string> names);
/// "unknown device 'cdua'; did you mean 'cuda'? known: host, cuda:0"
std::string unknown_name(std::string_view what, std::string_view wanted, std::span<const std::string> names);

}  // namespace tile
