// emit.h - the opaque boundary between the verbs users write and the tracer that builds IR. Everything a verb knows
// crosses here as plain words: a Value is an index into the table of the trace in progress, an Operand is a Value or a
// C++ literal with the place the user wrote it. No MLIR, no LLVM. Nothing here throws or aborts: a mistake is recorded
// as a diagnostic of the trace and the operation yields Value{0}, which silences everything computed from it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "../types.h"

namespace tile {

/// How f32 operands of a dot are multiplied: exactly rounded, with 10 mantissa bits, or as three such products; as three
/// products of bf16 (16 bits of each operand count) or six (all 24). The last three want finite operands.
enum class Prec : uint8_t { ieee, tf32, tf32x3, bf16x3, bf16x6 };
/// Where a conversion goes that its target cannot hold.
enum class Rounding : uint8_t { nearest, toward_zero, up, down };
/// What a load or store asks of the caches of a GPU, whichever way the data travels (bulk and asynchronous copies,
/// too): nothing; used once (L1 does not keep it, L2 gives it up first); used again soon (given up last); no caching at
/// all.
enum class Cache : uint8_t { none, streaming, last, volatile_ };
/// Memory order of an atomic, as in std::memory_order.
enum class Order : uint8_t { relaxed, acquire, release, acq_rel };
/// Who observes an atomic in that order: this program, this GPU, the whole system.
enum class Scope : uint8_t { cta, gpu, sys };

namespace detail {

struct Value {
  uint32_t id;
};

/// A tile variable: where its current value is kept, and which trace it belongs to.
struct Slot {
  uint32_t index = 0;
  uint32_t trace = 0;
};

struct Operand {
  enum Kind : uint8_t { absent, value, boolean, integer, uinteger, floating };
  union {
    int64_t i = 0;
    Value v;
    bool b;
    uint64_t u;
    double f;
  };
  Kind kind = absent;
  bool drops_dim = false;  ///< the place in a dim of which a box has this one alone, without a dim of its own
  SrcLoc loc;
};

enum class Op : uint16_t {
#define TILE_UNARY_OPERATOR(name, ...) name,
#define TILE_UNARY(name, ...) name,
#define TILE_PREDICATE(name, ...) name,
#define TILE_BINARY_OPERATOR(name, ...) name,
#define TILE_BINARY(name, ...) name,
#define TILE_COMPARISON(name, ...) name,
#define TILE_TERNARY(name, ...) name,
#include "../elementwise.def"
};

// ---- variables (tracer.cpp)
Slot new_slot(Value initial, SrcLoc declared);
Slot new_empty_slot(SrcLoc declared);
Slot copy_slot(Slot from, SrcLoc declared);
void kill_slot(Slot) noexcept;
Value read_slot(Slot, SrcLoc);
void write_slot(Slot, Value, SrcLoc);
void assign_slot(Slot to, Slot from);  ///< plain `=`: no location of its own, the value's is used
TileType type_of(Value);
SrcLoc origin(Slot);  ///< where the variable's value was computed
/// Records an error of the user's program.
void report(const std::string& message, SrcLoc);
/// The same of a verb made of others: its name, what it got, and whether it takes floats or integers.
void report_undefined(const char* verb, const TileType& found, bool floats, SrcLoc);

// ---- values (emit.cpp)
Value literal(const Operand&);  ///< a literal on its own: bool i1, integers i32 (i64 when needed), floats f32
Value literal_as(const Operand&, DType);
Value scalar_as(const Operand&, DType);  ///< a scalar that must widen to the dtype
Value elementwise(Op, const Operand* args, int count);
Value select(const Operand& condition, const Operand& a, const Operand& b);
Value convert(const Operand&, DType);
Value saturate(const Operand&, DType);
Value convert_rounding(const Operand&, DType, Rounding);
Value convert_randomly(const Operand&, DType, const Operand& bits);
Value reinterpret(const Operand&, DType);
Value program_id(int axis, SrcLoc);
Value num_programs(int axis, SrcLoc);
Value arange(int64_t low, int64_t high, SrcLoc);
Value full(const Shape&, const Operand&, DType);

// ---- shapes
Value reshape(const Operand&, const Shape&);
Value expand_dims(const Operand&, int axis);
Value line(const Operand&, int axis);  ///< a rank-1 tile as a row (axis 0) or a column (1)
Value squeeze(const Operand&, int axis);
Value broadcast_to(const Operand&, const Shape&);
Value permute(const Operand&, const Shape& order);
Value transpose(const Operand&);
Value cat(const Operand* parts, int count, int axis);
Value extract(const Operand&, const Shape& offsets, const Shape& shape);
Value insert(const Operand& into, const Operand& part, const Shape& offsets);
Value repeat(const Operand&, int64_t n, int axis);
Value unpack(const Operand&, int bits, int axis, DType to, bool is_signed);
Value shift(const Operand&, int64_t by, int axis, const Operand& fill);
Value take(const Operand&, const Operand& indices, int axis);
Value put(const Operand& into, const Operand& indices, const Operand& values, int axis, const Operand& mask,
          bool whole = false);
Value to_scalar(const Operand&);
/// Sorted along an axis; where `indices` is given, equal elements keep their order, and it says where they were.
/// `first`: so many of them only.
Value sort(const Operand&, int axis, bool descending, Value* indices, std::optional<int64_t> first = {});
/// How many elements of an ascending table are less, or (`upper`) not more.
Value bound(const Operand& table, const Operand&, bool upper);

// ---- memory
Value load(const Operand& pointer, const Operand& mask, const Operand& other, Cache);
void store(const Operand& pointer, const Operand& value, const Operand& mask, Cache);
Value load_box(Value view, const Operand* offsets, int rank, const Shape&, double pad, const Operand& mask, Cache,
               SrcLoc);
Value narrow_view(Value view, int dim, const Operand& begin, const Operand& length, SrcLoc);
Value select_view(Value view, int dim, const Operand& index, SrcLoc);
void store_box(Value view, const Operand* offsets, int rank, const Operand& value, const Operand& mask, Cache, SrcLoc);
void add_to_box(Value view, const Operand* offsets, int rank, const Operand& value, SrcLoc);
Value gather_rows(Value view, const Operand& rows, const Operand& column, int64_t columns, double pad,
                  const Operand& mask, Cache);
void scatter_rows(Value view, const Operand& rows, const Operand& column, const Operand& value, const Operand& mask,
                  Cache);
Value view_dim(Value view, int dim, DType as, SrcLoc);
Value view_stride(Value view, int dim, SrcLoc);
Value view_pointer(Value view, SrcLoc);
Value make_view(const Operand& pointer, DType element, const Operand* dims, const Operand* strides, int rank, SrcLoc);
enum class Rmw : uint8_t { add, max, min, bit_and, bit_or, bit_xor, exchange };
Value atomic_rmw(Rmw, const Operand& pointer, const Operand& value, const Operand& mask, Order, Scope);
Value atomic_cas(const Operand& pointer, const Operand& expected, const Operand& desired, const Operand& mask, Order,
                 Scope);

// ---- across elements
enum class Fold : uint8_t { sum, prod, max, min, any, all, xor_sum, argmax, argmin };
Value reduce(Fold, const Operand&, int axis);
Value reduce_with_index(Fold, const Operand&, int axis, Value& index);  ///< of argmax or argmin, the value, too
Value reduce_all(Fold, const Operand&);  ///< over every axis, to a scalar
Value scan(Fold, const Operand&, int axis, bool reverse);
/// i32 counts of the values 0 .. bins - 1, or sums of their weights.
Value histogram(const Operand&, const Operand& weights, int64_t bins);
/// Opens the region of a custom combiner over `count` tiles; fills 2 * count scalars: accumulated, then next.
void open_combiner(const Operand* sources, int count, int axis, bool is_scan, bool reverse, Value* args, SrcLoc,
                   uint32_t& handle);
void close_combiner(const Operand* results, int count, Value* out);
Value dot(const Operand& a, const Operand& b, const Operand& acc, Prec);
Value dot_bits(const Operand& a, const Operand& b, const Operand& acc);
struct ScaledInput {
  Operand values, scales;
  bool packed_along_k;
};
Value dot_scaled(const ScaledInput& a, const ScaledInput& b, const Operand& acc);
Value from_e2m1(const Operand&, DType, int axis);
Value from_e8m0(const Operand&, DType);

// ---- assembly
/// The arguments as values of one shape; false after an error.
bool spread_arguments(const Operand* args, int count, SrcLoc, Value* out);
TileType result_type(const Value* args, int count, DType);
void inline_asm(const std::string& text, const std::string& constraints, const Value* args, int count,
                const DType* results, int result_count, int pack, bool pure, SrcLoc, Value* out);
Value on_host(SrcLoc);  ///< i1: what is compiled is for a host
bool check_host_form(const Operand& made, const TileType& wanted, int number, SrcLoc);

// ---- control flow (tracer.cpp); `handle` ties the end of a construct to its beginning
struct LoopHints {
  int stages = 0, unroll = 0;                        // 0: the compiler chooses
  int specialize = -1, overlap = -1, pingpong = -1;  // -1: the compiler chooses
};
Value open_for(const Operand& low, const Operand& high, const Operand& step, LoopHints, SrcLoc, uint32_t& handle);
void close_for(uint32_t handle);
void abandon_for(uint32_t handle, SrcLoc);  ///< the body was left by a C++ break, return or goto
/// An exception leaves the construct that begins at the line: an error, if somebody catches it in the kernel.
void unwind(uint32_t handle, SrcLoc) noexcept;
void open_then(const Operand& condition, uint32_t& handle);
void open_else(uint32_t handle);
void close_if(uint32_t handle);
void abandon_when(uint32_t handle, SrcLoc);
void open_while(SrcLoc, uint32_t& handle);
void while_condition(uint32_t handle, const Operand& condition);
void close_while(uint32_t handle);
void continue_if(const Operand&);
void break_if(const Operand&);
void return_if(const Operand&);

// ---- hints and debugging
Value multiple_of(const Operand&, int64_t);
void assume(const Operand&);
/// Nothing is stored through this pointer or view, or through what is computed from it: writes are errors.
void set_read_only(Value);
/// A pointer to elements of the type; read_only as read_only_copy makes it.
Value pointer_as(const Operand&, DType element, bool read_only);
Value read_only_copy(const Operand& pointer);  ///< the same address; only what is read through the copy is allowed
void require_positive(const Operand&, const char* what);  ///< an error where a literal is not
void set_num_warps(int, SrcLoc);
void set_programs(int, SrcLoc);
void set_cluster(int, SrcLoc);
void device_print(const std::string& message, const Operand&);
void device_assert(const Operand& condition, const std::string& message);

}  // namespace detail
}  // namespace tile
