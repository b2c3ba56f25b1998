// message.h - texts with values in them, for wrappers of kernels that say what they expected and what they found: put
// together in the library, so that a user's file needs nothing for it.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace tile {

/// A value as text.
class MessageValue {
 public:
  template <std::integral I>
  MessageValue(I value) : text_(std::to_string(value)) {}
  MessageValue(float value);
  MessageValue(double value);
  MessageValue(std::string_view text) : text_(text) {}
  MessageValue(const char* text) : text_(text) {}
  /// [2, 3].
  MessageValue(std::span<const int64_t> list);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// "BM = {} is less than {}": a literal with a place for each of N values.
template <size_t N>
struct MessageText {
  std::string_view text;
  template <size_t Length>
  consteval MessageText(const char (&literal)[Length]) : text(literal, Length - 1) {
    size_t places = 0;
    for (size_t at = text.find("{}"); at != text.npos; at = text.find("{}", at + 2)) ++places;
    if (places != N) throw "a message needs a {} for each of its values";  // never thrown: no constant
  }
};

namespace detail {
std::string message(std::string_view text, std::span<const MessageValue> values);
}
template <class... V>
std::string message(MessageText<sizeof...(V)> text, const V&... values) {
  const std::array<MessageValue, sizeof...(V)> list{MessageValue(values)...};
  return detail::message(text.text, list);
}

}  // namespace tile
