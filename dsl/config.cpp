// config.cpp - configurations as text: "BM=128, causal=true" out, "BM=64" in.
#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "dsl/detail/config_text.h"
#include "dsl/tracing/kernel_core.h"
#include "runtime/spelling.h"

namespace tile {
namespace detail {
namespace {

std::string value_text(const ConfigField& f, uint64_t word) {
  switch (f.kind) {
    case FieldKind::boolean:
      return word ? "true" : "false";
    case FieldKind::floating:
      return fmt::format("{}", std::bit_cast<double>(word));
    case FieldKind::dtype:
      return word < kNumDTypes ? std::string(name(static_cast<DType>(word))) : fmt::format("dtype({})", word);
    case FieldKind::unsigned_integer:
      return fmt::format("{}", word);
    default:
      return fmt::format("{}", static_cast<int64_t>(word));
  }
}

/// What a field takes, for messages.
std::string takes(const ConfigField& f) {
  switch (f.kind) {
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::floating:
      return "a number";
    case FieldKind::dtype:
      return "an element type (i1 ... f64)";
    case FieldKind::unsigned_integer:
      return fmt::format("a whole number of {} bits, not negative", 8 * f.bytes);
    default:
      return fmt::format("a whole number of {} bits", 8 * f.bytes);
  }
}

template <class T>
bool parse_number(std::string_view text, T& out) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), out);
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

}  // namespace

bool parse_field_value(const ConfigField& f, std::string_view text, uint64_t& word) {
  switch (f.kind) {
    case FieldKind::boolean:
      if (text != "true" && text != "false" && text != "1" && text != "0") return false;
      word = text == "true" || text == "1";
      return true;
    case FieldKind::floating: {
      double d = 0;
      if (!parse_number(text, d)) return false;
      word = std::bit_cast<uint64_t>(d);
      return true;
    }
    case FieldKind::dtype:
      for (int i = 0; i < kNumDTypes; ++i)
        if (name(static_cast<DType>(i)) == text) return word = static_cast<uint64_t>(i), true;
      return false;
    case FieldKind::unsigned_integer: {
      uint64_t v = 0;
      if (!parse_number(text, v) || (f.bytes < 8 && v >> (8 * f.bytes))) return false;
      word = v;
      return true;
    }
    default: {
      int64_t v = 0;
      if (!parse_number(text, v)) return false;
      const int64_t limit = f.bytes < 8 ? int64_t{1} << (8 * f.bytes - 1) : INT64_MAX;
      if (f.bytes < 8 && (v >= limit || v < -limit)) return false;
      word = static_cast<uint64_t>(v);
      return true;
    }
  }
}

std::string describe_config(const std::vector<ConfigField>& fields, const ConfigWords& config, const char* separator) {
  std::string out;
  for (size_t i = 0; i < fields.size() && i < config.size(); ++i)
    out += (i ? separator : "") + fields[i].name + "=" + value_text(fields[i], config[i]);
  return out;
}

std::string describe_specialization(const std::vector<ParamInfo>& params, std::span<const uint64_t> spec) {
  std::string out;
  for (size_t i = 0; i < spec.size() && i < params.size(); ++i) {
    if (spec[i] == 0) continue;
    out += fmt::format("{}#{}:", out.empty() ? "" : " ", i);
    if (params[i].kind == ParamInfo::pointer)
      out += "align16";
    else if (params[i].kind == ParamInfo::scalar)
      out += spec[i] & 2 ? "1" : fmt::format("multiple_of_{}", promised_multiple(spec[i]));
    else {
      if (spec[i] & 1) out += "align16,";
      if ((spec[i] >> 1) & 15) out += fmt::format("unit_stride={},", ((spec[i] >> 1) & 15) - 1);
      for (int d = 0; d < params[i].rank; ++d) {
        const bool is16Bytes = (spec[i] >> (5 + 3 * d) & 3) == 1;
        const int size = promised_size(spec[i], d), stride = promised_stride(spec[i], d, params[i].dtype);
        out += fmt::format("d{}", d);
        if (size > 1) out += fmt::format("={}n", size);
        if (is16Bytes)
          out += "/stride16B";
        else if (stride > 1)
          out += fmt::format("/stride{}n", stride);
      }
      if (spec[i] & kNoBulkCopies) out += ",no_bulk_copies";
    }
  }
  return out.empty() ? "generic" : out;
}

bool keeps_promise(const ParamInfo& param, uint64_t needed, uint64_t found) {
  if (param.kind == ParamInfo::scalar) return (needed & ~found) == 0;
  if ((needed & 1) && !(found & 1)) return false;
  if (param.kind != ParamInfo::view) return true;
  if (const uint64_t unit = needed >> 1 & 15; unit && unit != (found >> 1 & 15)) return false;
  for (int d = 0; d < param.rank; ++d) {
    if (promised_stride(needed, d, param.dtype) > promised_stride(found, d, param.dtype)) return false;
    if (promised_size(needed, d) > promised_size(found, d)) return false;
  }
  return true;
}

}  // namespace detail

Result<ConfigWords> AnyKernel::parse_config(std::span<const std::string> assignments, ConfigWords config) const {
  const auto& fields = core_->fields;
  if (config.empty()) config = default_config();
  if (config.size() != fields.size())
    return Error{ErrorKind::user,
                 fmt::format("kernel '{}' takes a configuration of {} words, one for each field, found {}", name(),
                             fields.size(), config.size()),
                 {}};
  std::vector<std::string> names;
  for (const ConfigField& f : fields) names.push_back(f.name);
  for (const std::string& a : assignments) {
    const size_t eq = a.find('=');
    const std::string key = a.substr(0, eq);
    if (eq == std::string::npos)
      return Error{ErrorKind::user, fmt::format("expected field=value for kernel '{}', found '{}'", name(), a), {}};
    size_t at = 0;
    while (at < names.size() && names[at] != key) ++at;
    if (at == names.size())
      return Error{ErrorKind::user, fmt::format("kernel '{}': {}", name(), unknown_name("field", key, names)), {}};
    if (!detail::parse_field_value(fields[at], std::string_view(a).substr(eq + 1), config[at]))
      return Error{ErrorKind::user,
                   fmt::format("kernel '{}': field '{}' takes {}, found '{}'", name(), key, detail::takes(fields[at]),
                               a.substr(eq + 1)),
                   {}};
  }
  return config;
}

ConfigWords AnyKernel::default_config() const {
  ConfigWords words;
  for (const ConfigField& f : core_->fields) words.push_back(f.default_word);
  return words;
}

std::string AnyKernel::describe_config(const ConfigWords& config) const {
  return detail::describe_config(core_->fields, config, ", ");
}

}  // namespace tile
