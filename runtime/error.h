// error.h - errors by culprit, as values. Nothing in tile aborts on user input and nothing throws through LLVM frames:
// functions return Result<T>; the convenience API of the dsl layer turns an Error into an Exception at its very edge.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tile {

/// Who has to act. user: the kernel or call is wrong (message names file:line). compile: a limit of the target was hit
/// (message says which). device: what the driver said. internal: a bug of ours; the IR is attached.
enum class ErrorKind : uint8_t { user, compile, device, internal };

enum class Severity : uint8_t { error, warning, remark, note };

/// One message at one place of the user's C++ (or of a .mlir file). line 0 means: no location known.
struct Diagnostic {
  Severity severity = Severity::error;
  std::string message;
  std::string file;
  uint32_t line = 0, column = 0;
  std::vector<Diagnostic> notes;
  /// `file:line:col: error: message`, the source line with a caret when the file can be read, then the notes.
  std::string to_string() const;
};

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string message;                   ///< one line; the details are in `diagnostics`
  std::vector<Diagnostic> diagnostics;   ///< every problem found, in source order
  /// The bulk copies of this code cannot be used with these arguments (or this driver); the same kernel compiled
  /// without them can. Launches through the dsl do that by themselves.
  bool needs_plain_copies = false;
  std::string to_string() const;
};

inline Error make_error(ErrorKind kind, std::string message, std::vector<Diagnostic> diagnostics = {}) {
  return Error{kind, std::move(message), std::move(diagnostics)};
}
inline Error user_error(std::string message) { return make_error(ErrorKind::user, std::move(message)); }
inline Error compile_error(std::string message) { return make_error(ErrorKind::compile, std::move(message)); }
inline Error device_error(std::string message) { return make_error(ErrorKind::device, std::move(message)); }
inline Error internal_error(std::string message) { return make_error(ErrorKind::internal, std::move(message)); }

/// Thrown only by the calls that say so: `value_or_throw` and what else takes the value of a failed Result, a kernel's
/// operator() and `launch`, what cannot return an Error.
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error e) : std::runtime_error(e.to_string()), error_(std::move(e)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

/// A value or an Error (C++20 has no std::expected). Taking the value of a failed one (value, *, ->, value_or_throw) throws
/// Exception with its error; error() of one that holds a value throws, too.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return checked(), std::get<0>(state_); }
  const T& value() const& { return checked(), std::get<0>(state_); }
  T&& value() && { return checked(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    if (ok()) [[unlikely]]
      throw Exception(user_error("error() of a Result that holds a value: ask ok() first"));
    return std::get<1>(state_);
  }
  T value_or_throw() && { return std::move(*this).value(); }
  T& value_or_throw() & { return value(); }
  const T& value_or_throw() const& { return value(); }

 private:
  void checked() const {
    if (!ok()) [[unlikely]]
      throw Exception(std::get<1>(state_));
  }
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;
inline Status ok() { return Ok{}; }

}  // namespace tile
