// message.cpp - see message.h.
#include "dsl/message.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tile {

MessageValue::MessageValue(float value) : text_(fmt::format("{}", value)) {}
MessageValue::MessageValue(double value) : text_(fmt::format("{}", value)) {}
MessageValue::MessageValue(std::span<const int64_t> list) : text_(fmt::format("[{}]", fmt::join(list, ", "))) {}

std::string detail::message(std::string_view text, std::span<const MessageValue> values) {
  std::string out;
  size_t from = 0;
  for (const MessageValue& value : values) {
    const size_t place = text.find("{}", from);
    out += text.substr(from, place - from);
    out += value.text();
    from = place + 2;
  }
  return out + std::string(text.substr(from));
}

}  // namespace tile
