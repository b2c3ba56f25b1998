// kernel.h - a kernel as a typed host object: kernel("name", lambda) deduces the parameters of the lambda, and a launch
// takes exactly the matching host arguments, checked by the C++ compiler:
//   Ptr<T> <- T*      Tensor<T, R> <- TensorView<T, R>      I32, F32, ... <- an arithmetic value that does not narrow
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "jit.h"
#include "memory.h"
#include "value.h"
#include "../runtime/device.h"
#include "../runtime/tensor.h"

namespace tile {

/// A scalar argument that may widen but never narrows, as braces do: 3 for an I32 or I64, 3u for a U32, 3.f for an F32
/// or F64; no int for a U32 or F32, no double for an F32, no long long for an I32.
template <class T>
struct Exact {
  T value;
  template <class U>
  requires(std::is_arithmetic_v<T> ? std::is_arithmetic_v<U>&& requires(U u) { T{u}; } : std::same_as<U, T>) Exact(U u)
      : value{u} {}
  /// An enumerator of a plain `enum` is the integer it is.
  template <Enumerator U>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) >= sizeof(U)) Exact(U u)
      : value(static_cast<T>(u)) {}
  operator T() const { return value; }
};

/// Configuration of a kernel that has none.
struct NoConfig {};

namespace detail {

// What each kind of parameter is on the host: its argument type, its slots (runtime/abi.h) and what may be promised to
// the compiler about one argument, packed into a word:
//   pointer  bit 0: 16-byte aligned
//   scalar   bit 0: integer multiple of 16, bit 1: 1 (a stride), bit 2: multiple of 128 (rows of packed numbers, N / 8
//            words, begin at multiples of 16 bytes then); nothing about u64, which are keys and seeds, not sizes
//   view     bit 0: base 16-byte aligned; bits 1-4: 1 + the last dim with stride 1 (0: none);
//            then 3 bits per dim: stride divisibility (1: 16 bytes' worth, 2: 16 elements), 1 bit: size divisible by
//            16; bit 32: bulk copies cannot address it (kNoBulkCopies in jit.h), so the code is made without them;
//            then 4 bits for each of the first 7 dims: strides of less divisibility, and sizes of dims of stride 1 that
//            are no multiples of 16, are multiples of 2 to the power of 2 bits each (pairs side by side, complex
//            numbers, rows of 100 halves)
inline ParamInfo param_info(ParamInfo::Kind kind, DType dtype, uint8_t rank) {
  ParamInfo p;
  p.kind = kind, p.dtype = dtype, p.rank = rank;
  return p;
}
template <class P>
struct Param {
  static_assert(kAlwaysFalse<P>, "a kernel parameter is a Ptr<T>, a Tensor<T, R> or a scalar (I32, F32, ...)");
  using Host = int;
  static ParamInfo info() { return {}; }
  static constexpr size_t kSlots = 1;
  static void pack(const Host&, uint64_t*) {}
  static uint64_t promise(const Host&) { return 0; }
};
template <class P>
inline constexpr bool kIsParam = false;
template <class T>
inline constexpr bool kIsParam<Ptr<T>> = true;
template <class T>
inline constexpr bool kIsParam<Scalar<T>> = true;
template <class T, int R>
inline constexpr bool kIsParam<Tensor<T, R>> = true;

template <class T>
struct Param<Ptr<T>> {
  using Host = T*;
  static constexpr size_t kSlots = 1;
  static ParamInfo info() { return param_info(ParamInfo::pointer, dtype_of<T>(), 0); }
  static void pack(const Host& p, uint64_t* slots) { slots[0] = reinterpret_cast<uintptr_t>(p); }
  static uint64_t promise(const Host& p) { return (reinterpret_cast<uintptr_t>(p) & 15) == 0; }
};

template <class T>
struct Param<Scalar<T>> {
  using Host = Exact<T>;
  static constexpr size_t kSlots = 1;
  static ParamInfo info() { return param_info(ParamInfo::scalar, dtype_of<T>(), 0); }
  static void pack(const Host& s, uint64_t* slots) {
    if constexpr (std::is_integral_v<T>)
      slots[0] = static_cast<uint64_t>(static_cast<int64_t>(s.value));  // extended
    else if constexpr (sizeof(T) == 8)
      slots[0] = std::bit_cast<uint64_t>(s.value);
    else if constexpr (sizeof(T) == 4)
      slots[0] = std::bit_cast<uint32_t>(s.value);
    else if constexpr (sizeof(T) == 2)
      slots[0] = std::bit_cast<uint16_t>(s.value);
    else
      slots[0] = std::bit_cast<uint8_t>(s.value);
  }
  static uint64_t promise(const Host& s) {
    if constexpr (std::is_integral_v<T> && sizeof(T) >= 4 && !std::is_same_v<T, uint64_t>)
      return uint64_t((s.value & 15) == 0) | uint64_t(s.value == 1) << 1 | uint64_t((s.value & 127) == 0) << 2;
    else
      return 0;
  }
};

template <class T, int R>
struct Param<Tensor<T, R>> {
  using Host = TensorView<T, R>;
  static constexpr size_t kSlots = 1 + 2 * R;
  static ParamInfo info() { return param_info(ParamInfo::view, dtype_of<T>(), R); }
  static void pack(const Host& v, uint64_t* slots) {
    slots[0] = reinterpret_cast<uintptr_t>(v.data);
    for (int d = 0; d < R; ++d)
      slots[1 + d] = static_cast<uint64_t>(v.shape[d]), slots[1 + R + d] = static_cast<uint64_t>(v.strides[d]);
  }
  /// Elements in 16 bytes, which is what one access moves at most.
  static constexpr int64_t kBytes16 = 16 / static_cast<int64_t>(size_of(dtype_of<T>()));
  /// How often 2 divides the number, three times at most; of 0 and less nobody asks.
  static constexpr uint64_t power_of(int64_t n) {
    return n <= 0 ? 0 : n % 8 == 0 ? 3 : n % 4 == 0 ? 2 : n % 2 == 0;
  }
  /// How much of a stride's divisibility bulk copies and whole vectors need: 2: 16 elements, 1: 16 bytes, 0: less. The
  /// stride of a dim of size 1 is never used: only index 0 is inside.
  static constexpr uint64_t level_of(const Host& v, int d) {
    return v.shape[d] <= 1 || v.strides[d] % 16 == 0 ? 2 : v.strides[d] % kBytes16 == 0 ? 1 : 0;
  }
  /// The power of 2 that the strides of all rows are multiples of, from 4 bytes to 16. 0: less, or there are no rows.
  static constexpr uint64_t power_of_rows(const Host& v) {
    uint64_t power = power_of(kBytes16);
    bool any = false;
    for (int d = 0; d < R; ++d) {
      if (v.shape[d] <= 1 || v.strides[d] == 1) continue;
      any = true;
      if (!level_of(v, d)) power = std::min(power, power_of(v.strides[d]));
    }
    return any && power >= power_of(kBytes16 / 4) ? power : 0;
  }
  /// Of a stride of less than 16 bytes' worth. Large ones vary from launch to launch: of planes no more is said than of
  /// the rows in them, so that they make no variants of their own.
  static constexpr uint64_t stride_power(int64_t n, uint64_t rows) { return n < 16 ? power_of(n) : rows; }
  /// Of the size of rows. Of larger ones only whether they are odd multiples of 8 (heads of 40 or 72), or multiples of
  /// what the strides of rows are: bounds then cut no word, and packed rows, which begin where others end, have no
  /// variants for it.
  static constexpr uint64_t size_power(int64_t n, uint64_t rows) {
    if (n < 16 || n % 16 == 8) return power_of(n);
    return n % 16 != 0 && power_of(n) >= rows ? rows : 0;
  }
  static uint64_t promise(const Host& v) {
    const uint64_t rows = power_of_rows(v);
    uint64_t word = (reinterpret_cast<uintptr_t>(v.data) & 15) == 0;
    for (int d = 0; d < R; ++d) {
      const int64_t stride = v.strides[d];
      // Tensor maps take no repeated or reversed dims, 2^32 elements per dim and strides below 2^40 bytes.
      if (v.shape[d] > 1 && (stride <= 0 || stride >= (kBytes16 << 36) || v.shape[d] > int64_t{1} << 32))
        word |= kNoBulkCopies;
      if (stride == 1) word = (word & ~uint64_t{30}) | uint64_t(d + 1) << 1;
      const uint64_t level = level_of(v, d);
      word |= (level | uint64_t((v.shape[d] & 15) == 0) << 2) << (5 + 3 * d);
      if (d < 7)
        word |= ((level ? 0 : stride_power(stride, rows)) | (stride == 1 ? size_power(v.shape[d], rows) : 0) << 2)
                << (33 + 4 * d);
    }
    return word;
  }
};

/// The fields of a configuration struct, with their defaults.
template <class Cfg>
std::vector<ConfigField> config_fields() {
  const Cfg config{};
  const auto pointers = fields_of(config);
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::vector<ConfigField>{
        ConfigField{std::string(field_name<Cfg, I>()),
                    field_kind<std::remove_cv_t<std::remove_pointer_t<std::tuple_element_t<I, decltype(pointers)>>>>(),
                    static_cast<uint8_t>(sizeof(*std::get<I>(pointers))), field_to_word(*std::get<I>(pointers))}...};
  }
  (std::make_index_sequence<kFields<Cfg>>{});
}

}  // namespace detail

/// The argument a kernel parameter takes on the host.
template <class P>
using HostArg = typename detail::Param<P>::Host;

namespace detail {
template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<Exact<T>> {
  using type = T;
};
/// The same for a grid function, which computes with it: a `const auto& n` of one is an int and no Exact<int>.
template <class P>
using GridArg = typename Plain<HostArg<P>>::type;
}  // namespace detail

/// A kernel compiled for one configuration on one device.
template <class... P>
class Compiled : public AnyCompiled {
 public:
  Compiled() = default;
  explicit Compiled(AnyCompiled c) : AnyCompiled(std::move(c)) {}
  /// Code specialised to other arguments (alignment, divisibility) refuses these with a user error.
  Status try_launch(StreamAt stream, const Grid& grid, HostArg<P>... args) const {
    std::array<uint64_t, (detail::Param<P>::kSlots + ... + 0)> slots;
    size_t at = 0;
    ((detail::Param<P>::pack(args, slots.data() + at), at += detail::Param<P>::kSlots), ...);
    const std::array<uint64_t, sizeof...(P)> found{detail::Param<P>::promise(args)...};
    return launch_slots(stream, grid, slots, found);
  }
  /// Throws tile::Exception.
  void launch(StreamAt stream, const Grid& grid, HostArg<P>... args) const {
    if (Status s = try_launch(stream, grid, args...); !s) throw Exception(s.error());
  }
};

/// A typed kernel. Copies share code and caches.
template <class Cfg, class... P>
class Kernel : public AnyKernel {
 public:
  using Config = Cfg;
  using GridFunction = std::function<Grid(const Cfg&, const detail::GridArg<P>&...)>;

  Kernel(std::string name, SrcLoc loc, Body body)
      : AnyKernel(std::move(name), loc, detail::config_fields<Cfg>(), {detail::Param<P>::info()...}, std::move(body)) {}
  Kernel(const Kernel&) = default;  // as of AnyKernel: moving is copying
  Kernel& operator=(const Kernel&) = default;

  /// How many programs to run, from the configuration and the launch arguments: what operator() uses.
  template <class F>
  Kernel grid(F f) const {
    constexpr bool fits = std::is_invocable_r_v<Grid, F, const Cfg&, const detail::GridArg<P>&...>;
    static_assert(fits, "the grid function takes the configuration (NoConfig where the kernel has none) and the kernel's "
                        "host arguments and returns a Grid: (const Config& c, const auto& x, ...) with a parameter for "
                        "each of the kernel, or const auto&...");
    Kernel k = *this;
    if constexpr (fits) k.grid_ = std::move(f);
    return k;
  }
  /// Configurations worth trying; the first one is what a launch without a configuration uses.
  Kernel tune(std::vector<Cfg> space) const {
    Kernel k = *this;
    k.space_ = std::move(space);
    return k;
  }
  Kernel options(KernelOptions o) const {
    Kernel k = *this;
    k.set_options(std::move(o));
    return k;
  }
  using AnyKernel::options;
  const std::vector<Cfg>& space() const { return space_; }
  Cfg default_cfg() const { return space_.empty() ? Cfg{} : space_[0]; }

  Traced trace(const Cfg& config = {}) const { return AnyKernel::trace(words(config)); }

  /// Right for any arguments.
  Result<Compiled<P...>> compile(const std::shared_ptr<Device>& device, const Cfg& config) const {
    return typed(AnyKernel::compile(device, words(config), {}, options()));
  }
  /// For arguments as well aligned and divisible as these.
  Result<Compiled<P...>> compile(const std::shared_ptr<Device>& device, const Cfg& config, HostArg<P>... like) const
      requires(sizeof...(P) > 0) {
    return typed(AnyKernel::compile(device, words(config), promises(like...), options()));
  }

  /// What code for arguments like these may take for granted: alignment, strides of 1, divisibility. Only the numbers
  /// are looked at: without a device, views over null stand for memory that is aligned to 16 bytes.
  static Specialization promises(HostArg<P>... like) { return {detail::Param<P>::promise(like)...}; }

  using AnyKernel::compile_for;
  /// Ahead of time, for a target by name ("sm_90a", "host") and arguments as well aligned and divisible as these: what
  /// a launch with them would compile, bulk copies included. Launches of other arguments are refused by what runs it.
  Result<KernelBinary> compile_for(const std::string& target, const Cfg& config, HostArg<P>... like) const
      requires(sizeof...(P) > 0) {
    return AnyKernel::compile_for(target, words(config), promises(like...), options());
  }

  /// Launches over an explicit grid, compiling first if these arguments need new code.
  Status try_launch(StreamAt stream, const Cfg& config, const Grid& grid, HostArg<P>... args) const {
    std::array<uint64_t, (detail::Param<P>::kSlots + ... + 0)> slots;
    size_t at = 0;
    ((detail::Param<P>::pack(args, slots.data() + at), at += detail::Param<P>::kSlots), ...);
    const std::array<uint64_t, sizeof...(P)> found{detail::Param<P>::promise(args)...};
    const auto key = detail::config_words(config);
    return AnyKernel::launch(stream, key, found, grid, slots);
  }
  /// The same; throws tile::Exception.
  void launch(StreamAt stream, const Cfg& config, const Grid& grid, HostArg<P>... args) const {
    if (Status s = try_launch(stream, config, grid, args...); !s) throw Exception(s.error());
  }
  /// Launches over the grid that grid()'s function computes, with a configuration or with the default one. Throws
  /// tile::Exception.
  void operator()(StreamAt stream, const Cfg& config, HostArg<P>... args) const {
    if (Status s = try_call(stream, config, args...); !s) throw Exception(s.error());
  }
  void operator()(StreamAt stream, HostArg<P>... args) const {
    if (Status s = try_call(stream, default_cfg(), args...); !s) throw Exception(s.error());
  }
  /// The same, returning errors as values. Exceptions of the user's, out of the body or the grid function, pass
  /// through.
  Status try_call(StreamAt stream, const Cfg& config, HostArg<P>... args) const {
    if (!grid_)
      return misused(stream, user_error("kernel '" + name() +
                                        "' has no grid function: add .grid(...) or launch with an explicit Grid"));
    return try_launch(stream, config, grid_(config, args...), args...);
  }
  /// What grid()'s function computes; nothing where there is none.
  std::optional<Grid> grid_for(const Cfg& config, const HostArg<P>&... args) const {
    return grid_ ? std::optional(grid_(config, args...)) : std::nullopt;
  }

  static ConfigWords words(const Cfg& config) {
    const auto w = detail::config_words(config);
    return {w.begin(), w.end()};
  }
  /// Throws tile::Exception unless there is a word for every field.
  static Cfg from_words(const ConfigWords& w) {
    if (w.size() != detail::kFields<Cfg>)
      throw Exception(user_error("a configuration of " + std::to_string(detail::kFields<Cfg>) + " fields, found " +
                                 std::to_string(w.size()) + " words"));
    return detail::config_from_words<Cfg>(w.data());
  }

 private:
  static Result<Compiled<P...>> typed(Result<AnyCompiled> r) {
    if (!r) return r.error();
    return Compiled<P...>(std::move(*r));
  }
  GridFunction grid_;
  std::vector<Cfg> space_;
};

namespace detail {
template <class F, class Cfg, class... P>
Kernel<Cfg, P...> make_kernel(std::string name, F f, SrcLoc loc) {
  auto body = [f = std::move(f), loc](const uint64_t* config, const Value* params) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      // Parameters are built in place: each is its own variable, declared at the kernel.
      if constexpr (std::is_invocable_v<const F&, const Cfg&, P...>)
        f(config_from_words<Cfg>(config), P(ParamValue{params[I], loc})...);
      else
        f(P(ParamValue{params[I], loc})...);
    }
    (std::index_sequence_for<P...>{});
  };
  return Kernel<Cfg, P...>(std::move(name), loc, std::move(body));
}
template <class F, class... A>
struct Deduce;
template <class F>
struct Deduce<F> {
  static Kernel<NoConfig> make(std::string n, F f, SrcLoc l) {
    return make_kernel<F, NoConfig>(std::move(n), std::move(f), l);
  }
};
template <class F, class First, class... Rest>
struct Deduce<F, First, Rest...> {
  using Plain = std::remove_cvref_t<First>;
  static constexpr bool kHasConfig = !kIsParam<Plain> && std::is_class_v<Plain> && std::is_aggregate_v<Plain>;
  static auto make(std::string n, F f, SrcLoc l) {
    static_assert(!kHasConfig || !std::is_lvalue_reference_v<First> || std::is_const_v<std::remove_reference_t<First>>,
                  "a kernel reads its configuration and cannot change it -> const Cfg&");
    // What is wrong is said here, once: nothing below is instantiated.
    constexpr bool params_ok = (kHasConfig || kIsParam<First>) && (kIsParam<Rest> && ...);
    static_assert(
        params_ok,
        "a kernel parameter is a Ptr<T>, a Tensor<T, R> or a scalar (I32, F32, ...), taken by value; before them "
        "may stand one configuration, const Cfg&, an aggregate of numbers without constructors");
    if constexpr (!params_ok) {
      return 0;
    } else if constexpr (kHasConfig) {
      constexpr bool fields_ok = is_configuration<Plain>();
      static_assert(fields_ok,
                    "a field of a kernel configuration is a bool, integer, enum, DType or float: no array, string or "
                    "struct");
      if constexpr (fields_ok)
        return make_kernel<F, Plain, Rest...>(std::move(n), std::move(f), l);
      else
        return 0;
    } else {
      return make_kernel<F, NoConfig, First, Rest...>(std::move(n), std::move(f), l);
    }
  }
};
template <class F, class M>
struct Callable {
  static_assert(kAlwaysFalse<M>,
                "a kernel is a lambda or function that returns nothing, with its parameters by value; not `mutable`, "
                "not `noexcept`");
  static int make(std::string, F, SrcLoc) { return 0; }
};
template <class F, class C, class... A>
struct Callable<F, void (C::*)(A...) const> : Deduce<F, A...> {};
template <class F, class... A>
struct Callable<F, void (*)(A...)> : Deduce<F, A...> {};
}  // namespace detail

/// A kernel from a lambda or a function pointer: void(const Cfg&, parameters...) or void(parameters...). Cfg is an
/// aggregate of trace-time constants. `name` is part of symbols, caches and messages.
template <class F>
auto kernel(std::string name, F f, SrcLoc loc = SrcLoc::current()) {
  if constexpr (std::is_pointer_v<F>)
    return detail::Callable<F, F>::make(std::move(name), f, loc);
  else if constexpr (!requires { &F::operator(); })
    static_assert(detail::kAlwaysFalse<F>, "the parameters of a kernel have types of their own, not `auto`");
  else
    return detail::Callable<F, decltype(&F::operator())>::make(std::move(name), std::move(f), loc);
}

}  // namespace tile
