// serialize.cpp - KernelBinary as bytes and back. Little-endian, fields in the order of abi.h, strings and lists
// preceded by their length. Reading trusts nothing: lengths are checked against the bytes left before anything is
// allocated, enumerators against their range, and nothing may be left over.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "runtime/cache.h"
#include "runtime/launch.h"

namespace tile {
namespace {

static_assert(std::endian::native == std::endian::little, "the byte form is written in native order");

constexpr uint32_t kMagic = 0x4b4c4954;  // "TILK"
constexpr uint32_t kFormatVersion = 10;  // of this file; kAbiVersion is written next to it

class Writer {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void put(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void put(const std::string& text) {
    put(static_cast<uint64_t>(text.size()));
    out_ += text;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// After the first problem every read yields zero, so a reader is written without checks and asks once at the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <class T>
  requires(std::is_arithmetic_v<T>) T get() {
    T value{};
    if (left_.size() < sizeof(T)) return fail(), value;
    std::memcpy(&value, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
    return value;
  }
  template <class E>
  E get_enum(E last) {
    const auto value = get<std::underlying_type_t<E>>();
    if (value > static_cast<std::underlying_type_t<E>>(last)) return fail(), E{};
    return static_cast<E>(value);
  }
  bool get_bool() {
    const uint8_t value = get<uint8_t>();
    if (value > 1) fail();
    return value == 1;
  }
  std::string get_string() {
    const uint64_t size = get<uint64_t>();
    if (size > left_.size()) return fail(), std::string();
    std::string out(left_.substr(0, size));
    left_.remove_prefix(size);
    return out;
  }
  /// A list's length; each element takes at least `element_bytes`.
  uint32_t get_count(size_t element_bytes) {
    const uint32_t count = get<uint32_t>();
    if (count > left_.size() / element_bytes) return fail(), 0;
    return count;
  }
  void fail() {
    good_ = false;
    left_ = {};
  }
  bool good() const { return good_; }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

// ---- the records of abi.h, each written and read by two functions beside each other

void put(Writer& w, const std::vector<SlotSum>& made) {
  w.put(static_cast<uint32_t>(made.size()));
  for (const SlotSum& sum : made) {
    w.put(sum.constant);
    w.put(sum.most);
    w.put(static_cast<uint32_t>(sum.terms.size()));
    for (const SlotSum::Term& term : sum.terms) {
      w.put(term.factor);
      w.put(static_cast<uint32_t>(term.slots.size()));
      for (uint32_t slot : term.slots) w.put(slot);
    }
  }
}

std::vector<SlotSum> get_made(Reader& r) {
  std::vector<SlotSum> made;
  for (uint32_t n = r.get_count(20), i = 0; i < n && r.good(); ++i) {
    SlotSum sum;
    sum.constant = r.get<int64_t>();
    sum.most = r.get<int64_t>();
    for (uint32_t terms = r.get_count(12), t = 0; t < terms && r.good(); ++t) {
      SlotSum::Term term;
      term.factor = r.get<int64_t>();
      for (uint32_t slots = r.get_count(4), s = 0; s < slots && r.good(); ++s) term.slots.push_back(r.get<uint32_t>());
      sum.terms.push_back(std::move(term));
    }
    made.push_back(std::move(sum));
  }
  return made;
}

void put(Writer& w, const ParamInfo& p) {
  w.put(p.kind);
  w.put(p.dtype);
  w.put(p.rank);
  w.put(static_cast<uint8_t>(p.nullable));
  w.put(static_cast<uint8_t>(p.stored));
  w.put(p.align);
  w.put(p.multiple_of);
  w.put(static_cast<uint8_t>(p.one));
  w.put(static_cast<uint8_t>(p.positive));
  w.put(p.unit_stride);
  for (int d = 0; d < p.rank; ++d) {
    w.put(p.stride_multiple_of[static_cast<size_t>(d)]);
    w.put(p.dim_multiple_of[static_cast<size_t>(d)]);
  }
  w.put(p.name);
}
constexpr size_t kLeastParam = 23;  ///< bytes, as those below

ParamInfo get_param(Reader& r) {
  ParamInfo p;
  p.kind = r.get_enum(ParamInfo::view);
  p.dtype = r.get_enum(DType::f64);
  p.rank = r.get<uint8_t>();
  p.nullable = r.get_bool();
  p.stored = r.get_bool();
  p.align = r.get<uint32_t>();
  p.multiple_of = r.get<uint32_t>();
  p.one = r.get_bool();
  p.positive = r.get_bool();
  p.unit_stride = r.get<int8_t>();
  if (p.rank > uint32_t{kMaxRank} || !(p.align == 0 || std::has_single_bit(p.align)) || p.unit_stride < -1 ||
      p.unit_stride >= kMaxRank)
    r.fail();
  for (int d = 0; d < p.rank && r.good(); ++d) {
    p.stride_multiple_of[static_cast<size_t>(d)] = r.get<uint32_t>();
    p.dim_multiple_of[static_cast<size_t>(d)] = r.get<uint32_t>();
  }
  p.name = r.get_string();
  return p;
}

void put(Writer& w, const TensorMapInfo& m) {
  w.put(m.param);
  w.put(m.dtype);
  w.put(m.rank);
  for (int d = 0; d < m.rank; ++d) {
    w.put(m.dims[static_cast<size_t>(d)]);
    w.put(m.box[static_cast<size_t>(d)]);
  }
  w.put(m.swizzle);
  w.put(static_cast<uint8_t>(m.written));
  w.put(static_cast<uint8_t>(m.tf32));
  w.put(static_cast<uint8_t>(m.remainder));
  put(w, m.made);
}
constexpr size_t kLeastTensorMap = 8;

TensorMapInfo get_tensor_map(Reader& r) {
  TensorMapInfo m;
  m.param = r.get<uint32_t>();
  m.dtype = r.get_enum(DType::f64);
  m.rank = r.get<uint8_t>();
  if (m.rank > m.dims.size()) r.fail();
  for (int d = 0; d < m.rank && r.good(); ++d) {
    m.dims[static_cast<size_t>(d)] = r.get<int8_t>();
    m.box[static_cast<size_t>(d)] = r.get<uint16_t>();
  }
  m.swizzle = r.get<uint8_t>();
  m.written = r.get_bool();
  m.tf32 = r.get_bool();
  m.remainder = r.get_bool();
  m.made = get_made(r);
  return m;
}

void put(Writer& w, const DebugSite& s) {
  w.put(s.kind);
  w.put(s.message);
  w.put(s.dtype);
  w.put(static_cast<uint32_t>(s.shape.size()));
  for (int extent : s.shape) w.put(static_cast<int32_t>(extent));
  w.put(s.file);
  w.put(s.line);
}
constexpr size_t kLeastDebugSite = 26;

DebugSite get_debug_site(Reader& r) {
  DebugSite s;
  s.kind = r.get_enum(DebugSite::assertion);
  s.message = r.get_string();
  s.dtype = r.get_enum(DType::f64);
  uint64_t elements = 1;
  for (uint32_t rank = r.get_count(4), d = 0; d < rank && r.good(); ++d) {
    const int32_t extent = r.get<int32_t>();
    // The decoder of prints allocates this many elements.
    if (extent < 0 || rank > uint32_t{kMaxRank} || (elements *= static_cast<uint64_t>(extent)) > (1u << 24)) r.fail();
    s.shape.push_back(extent);
  }
  s.file = r.get_string();
  s.line = r.get<uint32_t>();
  return s;
}

void put(Writer& w, const BufferInfo& b) {
  w.put(b.what);
  w.put(b.file);
  w.put(b.line);
  w.put(b.offset);
  w.put(b.bytes);
}
constexpr size_t kLeastBuffer = 28;

BufferInfo get_buffer(Reader& r) {
  BufferInfo b;
  b.what = r.get_string();
  b.file = r.get_string();
  b.line = r.get<uint32_t>();
  b.offset = r.get<uint32_t>();
  b.bytes = r.get<uint32_t>();
  return b;
}

void put(Writer& w, const Resources& resources) {
  w.put(resources.registers);
  w.put(resources.spill_store_bytes);
  w.put(resources.spill_load_bytes);
  w.put(resources.stack_bytes);
  w.put(resources.static_shared_bytes);
  w.put(resources.log);
}
Resources get_resources(Reader& r) {
  Resources resources;
  resources.registers = r.get<int>();
  resources.spill_store_bytes = r.get<int>();
  resources.spill_load_bytes = r.get<int>();
  resources.stack_bytes = r.get<int>();
  resources.static_shared_bytes = r.get<uint32_t>();
  resources.log = r.get_string();
  return resources;
}

template <class Record>
void put_list(Writer& w, const std::vector<Record>& list) {
  w.put(static_cast<uint32_t>(list.size()));
  for (const Record& record : list) put(w, record);
}
/// Records of at least `bytes` each.
template <class Record>
std::vector<Record> get_list(Reader& r, size_t bytes, Record (*get)(Reader&)) {
  std::vector<Record> list;
  for (uint32_t n = r.get_count(bytes), i = 0; i < n && r.good(); ++i) list.push_back(get(r));
  return list;
}

}  // namespace

std::string serialize(const KernelBinary& k) {
  Writer w;
  w.put(kMagic);
  w.put(kFormatVersion);
  w.put(k.abi_version);
  w.put(k.format);
  w.put(k.target);
  w.put(k.entry);
  w.put(k.bytes);
  put_list(w, k.params);
  w.put(k.threads);
  w.put(k.shared_bytes);
  w.put(k.arena_bytes);
  w.put(static_cast<uint8_t>(k.uses_debug_ring));
  w.put(static_cast<uint8_t>(k.persistent));
  w.put(static_cast<uint8_t>(k.uses_tickets));
  w.put(static_cast<uint8_t>(k.varies_with_grid));
  w.put(k.cluster);
  put_list(w, k.tensor_maps);
  put_list(w, k.debug_sites);
  put_list(w, k.buffers);
  put(w, k.resources);
  return w.take();
}

Result<KernelBinary> deserialize(std::string_view bytes) {
  Reader r(bytes);
  if (r.get<uint32_t>() != kMagic) return user_error("not a serialised tile kernel");
  const uint32_t format = r.get<uint32_t>(), abi = r.get<uint32_t>();
  if (!r.good()) return user_error("serialised tile kernel is cut off in its header");
  if (format != kFormatVersion || abi != kAbiVersion)
    return user_error(fmt::format("serialised tile kernel has format {} and ABI {}, this build reads {} and {}", format,
                                  abi, kFormatVersion, kAbiVersion));
  KernelBinary k;
  k.abi_version = abi;
  k.format = r.get_enum(BinaryFormat::host_object);
  k.target = r.get_string();
  k.entry = r.get_string();
  k.bytes = r.get_string();
  k.params = get_list(r, kLeastParam, get_param);
  k.threads = r.get<uint32_t>();
  k.shared_bytes = r.get<uint32_t>();
  k.arena_bytes = r.get<uint32_t>();
  k.uses_debug_ring = r.get_bool();
  k.persistent = r.get_bool();
  k.uses_tickets = r.get_bool();
  k.varies_with_grid = r.get_bool();
  k.cluster = r.get<uint32_t>();
  if (k.cluster > 8 || !std::has_single_bit(k.cluster)) r.fail();
  k.tensor_maps = get_list(r, kLeastTensorMap, get_tensor_map);
  k.debug_sites = get_list(r, kLeastDebugSite, get_debug_site);
  k.buffers = get_list(r, kLeastBuffer, get_buffer);
  k.resources = get_resources(r);
  if (!r.good() || !r.at_end() || !check_hidden(k)) return user_error("serialised tile kernel is damaged");
  return k;
}

}  // namespace tile
