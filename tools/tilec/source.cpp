// source.cpp - a kernel as text, from a file, from standard input, or traced from the catalog.
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "runtime/spelling.h"
#include "tools/tilec/catalog.h"
#include "tools/tilec/commands.h"

namespace tilec {
namespace {

bool looksLikeFile(const std::string& name) {
  return name == "-" || name.find('/') != std::string::npos || name.find('.') != std::string::npos;
}

/// "attention.tile.mlir" -> "attention".
std::string stem(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  name = name.substr(0, name.find('.'));
  return name.empty() ? "kernel" : name;
}

}  // namespace

tile::Result<Source> loadSource(const KernelChoice& choice, const std::string& target, bool* usageError) {
  *usageError = false;
  if (!looksLikeFile(choice.kernel)) return catalogSource(choice, target, usageError);
  if (!choice.fields.empty()) {
    *usageError = true;
    return tile::user_error(fmt::format("'{}': only catalog kernels take config fields, found '{}'", choice.kernel, choice.fields.front()));
  }
  if (choice.kernel == "-") {
    std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    return Source{"kernel", "<stdin>", std::move(text)};
  }
  std::ifstream in(choice.kernel, std::ios::binary);
  // A directory opens but cannot be read.
  if (!in || in.peek() == std::ifstream::traits_type::eof()) {
    const bool empty = in.is_open() && in.eof() && !in.bad();
    if (!empty) {
      *usageError = true;
      return tile::user_error(fmt::format("cannot read '{}': {}", choice.kernel, std::strerror(errno)));
    }
  }
  in.clear();
  return Source{stem(choice.kernel), choice.kernel, std::string{std::istreambuf_iterator<char>(in), {}}};
}

}  // namespace tilec
