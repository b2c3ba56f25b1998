// reflect.h - fields of a configuration struct without macros: how many, their names, their values as 64-bit words.
// Any aggregate of bool, integers, enums (DType included) and floats. Names come from the compiler's spelling of a
// pointer to a subobject (g++ 12, clang 18 and later, MSVC); elsewhere the struct gives them: static constexpr auto
// names().
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../types.h"

namespace tile::detail {

struct AnyField {
  template <class T>
  constexpr operator T() const;  // never defined: only asked whether it would convert
};
template <class T, class... A>
constexpr size_t count_fields() {
  if constexpr (requires { T{A{}..., AnyField{}}; })
    return count_fields<T, A..., AnyField>();
  else
    return sizeof...(A);
}
template <class T>
inline constexpr size_t kFields = count_fields<std::remove_cv_t<T>>();

/// Pointers to the fields, in order.
template <class T>
constexpr auto fields_of(T& t) {
  constexpr size_t n = kFields<T>;
#define TILE_FIELDS(count, ...)                                       \
  else if constexpr (n == count) {                                    \
    auto& [__VA_ARGS__] = t;                                          \
    return [](auto&... f) { return std::tuple(&f...); }(__VA_ARGS__); \
  }
  if constexpr (n == 0) return std::tuple<>{};
  TILE_FIELDS(1, a)
  TILE_FIELDS(2, a, b)
  TILE_FIELDS(3, a, b, c)
  TILE_FIELDS(4, a, b, c, d)
  TILE_FIELDS(5, a, b, c, d, e)
  TILE_FIELDS(6, a, b, c, d, e, f)
  TILE_FIELDS(7, a, b, c, d, e, f, g)
  TILE_FIELDS(8, a, b, c, d, e, f, g, h)
  TILE_FIELDS(9, a, b, c, d, e, f, g, h, i)
  TILE_FIELDS(10, a, b, c, d, e, f, g, h, i, j)
  TILE_FIELDS(11, a, b, c, d, e, f, g, h, i, j, k)
  TILE_FIELDS(12, a, b, c, d, e, f, g, h, i, j, k, l)
  TILE_FIELDS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  TILE_FIELDS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, o)
  TILE_FIELDS(15, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p)
  TILE_FIELDS(16, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q)
  TILE_FIELDS(17, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r)
  TILE_FIELDS(18, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s)
  TILE_FIELDS(19, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, u)
  TILE_FIELDS(20, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, u, v)
  TILE_FIELDS(21, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, u, v, w)
  TILE_FIELDS(22, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, u, v, w, x)
  TILE_FIELDS(23, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, u, v, w, x, y)
  TILE_FIELDS(24, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, u, v, w, x, y, z)
  else static_assert(n <= 24, "a kernel configuration has at most 24 fields");
#undef TILE_FIELDS
}

/// A type a field of a configuration may have.
template <class F>
inline constexpr bool kIsFieldType = std::is_arithmetic_v<F> || std::is_enum_v<F>;

/// Whether some field is an array, or a struct of several: what braces of its own would initialise.
template <class T, class... A>
constexpr bool has_compound_field() {
  if constexpr (requires { T{A{}..., {AnyField{}, AnyField{}}}; })
    return true;
  else if constexpr (sizeof...(A) < kFields<T>)
    return has_compound_field<T, A..., AnyField>();
  else
    return false;
}

/// Whether all fields are such as a configuration may have: asked first, so that one message says what is wrong.
template <class T>
constexpr bool is_configuration() {
  if constexpr (has_compound_field<T>())
    return false;
  else if constexpr (kFields<T> > 24)
    return true;  // fields_of says that
  else
    return []<class... F>(const std::tuple<F*...>*) {
      return (kIsFieldType<std::remove_cv_t<F>> && ...);
    }(static_cast<decltype(fields_of(std::declval<T&>()))*>(nullptr));
}

template <class T>
struct Wrap {
  T value;
};
template <class T>
extern const Wrap<T> kNeverDefined;  // only its address is spelled

template <auto P>
constexpr std::string_view spelled() {
  return __PRETTY_FUNCTION__;
}

template <class T>
concept NamesItsFields = requires {
  std::string_view(T::names()[0]);
};

/// "BM" for field 0 of struct { int BM; }.
template <class T, size_t I>
constexpr std::string_view field_name() {
  if constexpr (NamesItsFields<T>) {
    return T::names()[I];
  } else {
#if defined(__clang__) && __clang_major__ < 18
    constexpr std::string_view numbered[] = {"f0",  "f1",  "f2",  "f3",  "f4",  "f5",  "f6",  "f7",  "f8",  "f9",
                                             "f10", "f11", "f12", "f13", "f14", "f15", "f16", "f17", "f18", "f19",
                                             "f20", "f21", "f22", "f23"};
    return numbered[I];
#else
    // "... [with auto P = (& kNeverDefined<Cfg>.Wrap<Cfg>::value.Cfg::BM); ...]": the last identifier before ; or ].
    constexpr std::string_view text = spelled<std::get<I>(fields_of(kNeverDefined<T>.value))>();
    constexpr size_t begin = text.find("P = ");
    size_t end = text.find_first_of(";]", begin);
    auto identifier = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (end > begin && !identifier(text[end - 1])) --end;
    size_t from = end;
    while (from > begin && identifier(text[from - 1])) --from;
    return text.substr(from, end - from);
#endif
  }
}

enum class FieldKind : uint8_t { boolean, integer, unsigned_integer, floating, dtype, enumeration };

template <class F>
constexpr FieldKind field_kind() {
  if constexpr (std::is_same_v<F, bool>)
    return FieldKind::boolean;
  else if constexpr (std::is_same_v<F, DType>)
    return FieldKind::dtype;
  else if constexpr (std::is_enum_v<F>)
    return FieldKind::enumeration;
  else if constexpr (std::is_floating_point_v<F>)
    return FieldKind::floating;
  else {
    static_assert(std::is_integral_v<F>, "a field of a kernel configuration is a bool, integer, enum, DType or float");
    return std::is_signed_v<F> ? FieldKind::integer : FieldKind::unsigned_integer;
  }
}

template <class F>
constexpr uint64_t field_to_word(F f) {
  if constexpr (std::is_floating_point_v<F>)
    return std::bit_cast<uint64_t>(static_cast<double>(f));
  else
    return static_cast<uint64_t>(static_cast<int64_t>(f));
}
template <class F>
constexpr F word_to_field(uint64_t w) {
  if constexpr (std::is_floating_point_v<F>)
    return static_cast<F>(std::bit_cast<double>(w));
  else
    return static_cast<F>(w);
}

/// A configuration as words: comparing them compares the configuration (padding bytes of the struct do not matter).
template <class T>
constexpr std::array<uint64_t, kFields<T>> config_words(const T& config) {
  return std::apply([](auto*... f) { return std::array<uint64_t, kFields<T>>{field_to_word(*f)...}; },
                    fields_of(config));
}
template <class T>
constexpr T config_from_words(const uint64_t* words) {
  T config{};
  std::apply([&](auto*... f) { ((*f = word_to_field<std::remove_reference_t<decltype(*f)>>(*words++)), ...); },
             fields_of(config));
  return config;
}

}  // namespace tile::detail
