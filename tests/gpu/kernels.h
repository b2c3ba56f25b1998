// kernels.h - text of small kernels for the simulated machine.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace tile::testing {

inline std::string shapeText(const std::vector<int64_t>& shape) {
  std::string text;
  for (int64_t dim : shape) text += std::to_string(dim) + "x";
  return text;
}
/// tensor<4x8xf32>
inline std::string tensor(const std::vector<int64_t>& shape, const std::string& element) {
  return "tensor<" + shapeText(shape) + element + ">";
}
inline int64_t count(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t dim : shape) n *= dim;
  return n;
}

/// Defines %name as the row-major index of every element (i32).
inline std::string rowMajorIndex(const std::string& name, const std::vector<int64_t>& shape) {
  int64_t n = count(shape);
  if (shape.size() == 1) return fmt::format("  %{} = tile.iota : tensor<{}xi32>\n", name, n);
  return fmt::format(
      "  %{0}_flat = tile.iota : tensor<{1}xi32>\n  %{0} = tile.reshape %{0}_flat : tensor<{1}xi32> -> {2}\n", name, n,
      tensor(shape, "i32"));
}
/// Defines %name: the whole tile read from pointer %ptr in row-major order.
inline std::string readTile(const std::string& name, const std::string& ptr, const std::vector<int64_t>& shape,
                            const std::string& element) {
  std::string at = name + "_at";
  return rowMajorIndex(at, shape) + fmt::format("  %{} = tile.gather %{} offsets %{} : {} : !tile.ptr<{}> -> {}\n",
                                                name, ptr, at, tensor(shape, "i32"), element, tensor(shape, element));
}
inline std::string writeTile(const std::string& value, const std::string& ptr, const std::vector<int64_t>& shape,
                             const std::string& element) {
  std::string at = value + "_to";
  return rowMajorIndex(at, shape) + fmt::format("  tile.scatter %{}, %{} offsets %{} : {} : {}, !tile.ptr<{}>\n", value,
                                                ptr, at, tensor(shape, "i32"), tensor(shape, element), element);
}
inline std::string kernel(const std::string& args, const std::string& body) {
  return "func.func @k(" + args + ") attributes {tile.kernel} {\n" + body + "  return\n}\n";
}

template <class T>
uint64_t slot(const T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

inline uint64_t slot(int64_t value) { return static_cast<uint64_t>(value); }

/// Puts a fault into a kernel's text.
inline void replaceAll(std::string& text, const std::string& from, const std::string& to) {
  if (text.find(from) == std::string::npos) throw std::logic_error("there is no \"" + from + "\" in the kernel");
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Aligned pointer arguments, as the launcher gives.
inline const char* kIn = "{tile.align = 16 : i32}";

}  // namespace tile::testing
