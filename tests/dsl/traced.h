// traced.h - what the tests of the tracer share: tracing a lambda, its IR, its errors.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dsl/tile.h"

namespace tile::testing {

template <class F>
Traced trace_of(F f) {
  return kernel("k", f).trace();
}

/// The IR of a kernel that must trace.
template <class F>
std::string ir_of(F f) {
  const Traced t = trace_of(f);
  EXPECT_TRUE(t.ok()) << t.error().to_string();
  return t.text();
}

/// Runs of spaces count as one: the assembly format is not what these tests are about.
inline std::string squeezed(const std::string& text) {
  std::string out;
  for (char c : text)
    if (c != ' ' || out.empty() || out.back() != ' ') out += c;
  return out;
}

template <class F>
std::vector<Diagnostic> errors_of(F f) {
  const Traced t = trace_of(f);
  EXPECT_FALSE(t.ok()) << t.text();
  if (!t.ok()) {
    EXPECT_EQ(t.error().kind, ErrorKind::user) << t.error().to_string();
  }
  return t.ok() ? std::vector<Diagnostic>{} : t.error().diagnostics;
}

/// Exactly one error, at `line` of this file, whose text contains `part`. The caret needs a column.
inline void expect_error(const std::vector<Diagnostic>& found, int line, const std::string& part, const char* file) {
  std::string all;
  for (const Diagnostic& d : found) all += d.to_string();
  ASSERT_EQ(found.size(), 1u) << "expected one error with: " << part << "\n" << all;
  EXPECT_NE(found[0].message.find(part), std::string::npos) << "expected: " << part << "\n" << all;
  EXPECT_EQ(static_cast<int>(found[0].line), line) << all;
  EXPECT_EQ(found[0].file, file) << all;
  if (SrcLoc::current().column() > 0) {
    EXPECT_GT(found[0].column, 0u) << all;
    EXPECT_NE(found[0].to_string().find("^"), std::string::npos) << all;
  }
}

inline int count_of(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

}  // namespace tile::testing

#define EXPECT_TILE_ERROR(line, part, ...) \
  ::tile::testing::expect_error(::tile::testing::errors_of(__VA_ARGS__), line, part, __FILE__)
#define EXPECT_IR(part, ...)                                                                       \
  do {                                                                                             \
    const std::string ir_text = ::tile::testing::squeezed(::tile::testing::ir_of(__VA_ARGS__));    \
    EXPECT_NE(ir_text.find(part), std::string::npos) << "expected: " << (part) << "\n" << ir_text; \
  } while (false)
