// emit_sort.cpp - sorting along an axis as a bitonic network of exchanges between partners. Where only the first few
// are wanted, runs of as many are sorted; of two runs in opposite order the elementwise minimum has the first few of
// both, and needs a merge to be a run again: every such step leaves half of the elements. Places, where they are
// wanted, are the lower half of a key of twice the width: one comparison orders both. Keys that are places themselves
// (where a sorted tile's elements were: their order is the way back) are short ones. Integers known to have few bits
// are put in order by rounds instead (few_bits.h).
#include <bit>

#include "dsl/tracing/emit_at.h"
#include "dsl/tracing/emit_rules.h"
#include "dsl/tracing/few_bits.h"

namespace tile::detail {
namespace {

/// Floats as integers of the same order. Their words count from 0 outwards: those of negative ones are turned round.
struct Keys {
  At at;
  DType given, type;
  bool descending;

  /// `below`: not 0 for integers from 0 on that are less.
  Keys(SrcLoc loc, DType d, bool descending, int64_t below) : at{loc}, given(d), type(d), descending(descending) {
    if (below > 0 && below <= int64_t{1} << 15) type = DType::i16;
    if (is_float(d)) type = size_of(d) == 2 ? DType::i16 : size_of(d) == 4 ? DType::i32 : DType::i64;
  }
  Value turned(Value word) const {
    const Value sign = at.apply(Op::shr, word, bits_of(type) - 1);
    return at.apply(Op::bit_xor, word, at.apply(Op::bit_and, sign, largest_integer(type)));
  }
  Value inverted(Value key) const {
    const Operand one[] = {at(key)};
    return descending ? elementwise(Op::bit_not, one, 1) : key;
  }
  Value of(Value x) const {
    if (!is_float(given)) return inverted(type == given ? x : convert(at(x), type));
    const Value isNumber = at.apply(Op::eq, x, x);
    return at.choose(isNumber, inverted(turned(reinterpret(at(x), type))), largest_integer(type));
  }
  /// The type whose upper half is a key and whose lower half is a place below `places`; nothing: there is none.
  std::optional<DType> typeOfBoth(int64_t places) const {
    if (size_of(type) > 4) return std::nullopt;
    const bool isSmall = size_of(type) <= 2 && places <= int64_t{1} << 16;
    return is_unsigned(type) ? (isSmall ? DType::u32 : DType::u64) : (isSmall ? DType::i32 : DType::i64);
  }
  Value join(Value key, Value place, DType both) const {
    const Value upper = at.apply(Op::shl, convert(at(key), both), bits_of(both) / 2);
    return at.apply(Op::bit_or, upper, convert(at(place), both));
  }
  Value keyOf(Value joined, DType both) const {
    return convert(at(at.apply(Op::shr, joined, bits_of(both) / 2)), type);
  }
  Value placeOf(Value joined, DType both) const {
    if (bits_of(both) == 32) joined = at.apply(Op::bit_and, joined, 0xffff);
    return convert(at(joined), DType::i32);
  }
  /// A key comes before another one; of equal ones the first place.
  Value is_less(Value key, Value than, Value place, Value than_place) const {
    const Value first = at.apply(Op::bit_and, at.apply(Op::eq, key, than), at.apply(Op::lt, place, than_place));
    return at.apply(Op::bit_or, at.apply(Op::lt, key, than), first);
  }
  Value back(Value key) const {
    key = inverted(key);
    if (is_float(given)) return reinterpret(at(turned(key)), given);
    return type == given ? key : convert(at(key), given);
  }
};

/// A network that sorts runs of a tile along an axis by exchanging elements with partners (bitonic sort).
class Network {
 public:
  /// `key`, of shape `whole`: padded to a power of two. With `places` every key keeps its place.
  Network(const Keys& keys, Value key, Shape whole, int axis, bool places)
      : keys_(keys), at_(keys.at), key_(key), whole_(whole), axis_(axis), places_(places) {
    number();
    const int64_t padded = whole_[axis_];
    if (places_) place_ = broadcast_to(at_(i_), whole_);
    both_ = places_ ? keys_.typeOfBoth(padded) : std::nullopt;
    if (both_) key_ = keys_.join(key_, place_, *both_);
  }

  /// Sorts, so that the first `kept` elements (a power of two) are right.
  void sort(int64_t kept) {
    const int64_t padded = whole_[axis_];
    for (int64_t run = 2; run <= kept; run *= 2)
      for (int64_t far = run / 2; far > 0; far /= 2) exchange(far, run == kept && kept < padded ? padded / 2 : run);
    for (int64_t rows = padded; rows > kept;) {
      rows /= 2;
      keepLess(rows);
      for (int64_t far = kept / 2; far > 0; far /= 2) exchange(far, rows == kept ? rows : rows / 2);
    }
  }

  /// Leaves the first `count` elements.
  void cut(int64_t count) {
    if (count == whole_[axis_]) return;
    Shape zero;
    for (int d = 0; d < whole_.rank(); ++d) zero.push_back(0);
    whole_[axis_] = count;
    key_ = extract(at_(key_), zero, whole_);
    if (isApart()) place_ = extract(at_(place_), zero, whole_);
  }

  Value keys() const { return both_ ? keys_.keyOf(key_, *both_) : key_; }
  Value places() const { return both_ ? keys_.placeOf(key_, *both_) : place_; }

 private:
  bool isApart() const { return places_ && !both_; }  ///< places are beside keys, not in one word with them

  /// The number of each element along the axis.
  void number() {
    Shape line;
    for (int d = 0; d < whole_.rank(); ++d) line.push_back(d == axis_ ? whole_[d] : 1);
    i_ = reshape(at_(arange(0, whole_[axis_], at_.loc)), line);
  }

  /// Each element and the one `far` from it. Where a run ends up ascending is where the bit `direction` of the number
  /// is clear.
  void exchange(int64_t far, int64_t direction) {
    auto is_clear = [&](int64_t bit) { return at_.apply(Op::eq, at_.apply(Op::bit_and, i_, bit), 0); };
    const Value wants_less = at_.apply(Op::bit_xor, at_.apply(Op::bit_xor, is_clear(far), is_clear(direction)), true);
    const Value partner = broadcast_to(at_(at_.apply(Op::bit_xor, i_, far)), whole_);
    const Value other = take(at_(key_), at_(partner), axis_);
    if (!isApart()) {
      // Two words take as long to be compared as to be chosen from.
      const bool hasExtremes = size_of(both_.value_or(keys_.type)) <= 4;
      key_ = hasExtremes ? at_.choose(wants_less, at_.apply(Op::min, key_, other), at_.apply(Op::max, key_, other))
                         : at_.choose(at_.apply(Op::bit_xor, at_.apply(Op::lt, other, key_), wants_less), key_, other);
      return;
    }
    const Value there = take(at_(place_), at_(partner), axis_);
    const Value stays = at_.apply(Op::bit_xor, keys_.is_less(other, key_, there, place_), wants_less);
    key_ = at_.choose(stays, key_, other);
    place_ = at_.choose(stays, place_, there);
  }

  /// Halves the tile: of each element and the one `rows` behind it the lesser.
  void keepLess(int64_t rows) {
    Shape half = whole_, zero, behind;
    for (int d = 0; d < whole_.rank(); ++d) zero.push_back(0), behind.push_back(d == axis_ ? rows : 0);
    half[axis_] = rows;
    const Value a = extract(at_(key_), zero, half), b = extract(at_(key_), behind, half);
    if (isApart()) {
      const Value p = extract(at_(place_), zero, half), q = extract(at_(place_), behind, half);
      const Value less = keys_.is_less(b, a, q, p);
      key_ = at_.choose(less, b, a);
      place_ = at_.choose(less, q, p);
    } else {
      key_ = at_.apply(Op::min, a, b);
    }
    whole_ = half;
    number();
  }

  const Keys& keys_;
  const At& at_;
  Value key_, place_{0}, i_{0};
  Shape whole_;
  int axis_;
  bool places_;
  std::optional<DType> both_;  ///< the type of a key and its place in one word
};

/// Keys of few bits along an axis in order, without a network: upper halves of words, whose lower halves are places.
Value order_of_few(const At& at, Value x, const TileType& type, int axis, int bits, bool descending, Value* indices) {
  constexpr int64_t kRuns = 16;  // elements: whole runs of a thread
  Shape whole = type.shape, line, rest = type.shape, zero;
  whole[axis] = (type.shape[axis] + kRuns - 1) / kRuns * kRuns;
  rest[axis] = whole[axis] - type.shape[axis];
  for (int d = 0; d < whole.rank(); ++d) line.push_back(d == axis ? whole[d] : 1), zero.push_back(0);
  const int64_t largest = (int64_t{1} << bits) - 1;
  Value key = convert(at(x), DType::u32);
  if (descending) key = at.apply(Op::bit_xor, key, largest);
  if (rest[axis] > 0) {  // behind everything
    const Operand parts[] = {at(key), at(full(rest, at(largest), DType::u32))};
    key = cat(parts, 2, axis);
  }
  const Value place = convert(at(reshape(at(arange(0, whole[axis], at.loc)), line)), DType::u32);
  const Value words = at.apply(Op::bit_or, at.apply(Op::shl, key, 16), place);
  Value sorted = sort_in_rounds(at, words, whole, axis, bits);
  if (rest[axis] > 0) sorted = extract(at(sorted), zero, type.shape);
  if (indices) *indices = convert(at(at.apply(Op::bit_and, sorted, 0xffff)), DType::i32);
  key = at.apply(Op::shr, sorted, 16);
  return convert(at(descending ? at.apply(Op::bit_xor, key, largest) : key), type.dtype);
}

}  // namespace

Value sort(const Operand& o, int along, bool descending, Value* indices, std::optional<int64_t> first) {
  Tracer* t = Tracer::current();
  if (indices) *indices = {0};
  if (!t) return {0};
  const Value x = use(*t, o);
  if (t->is_bad(x)) return {0};
  const TileType type = t->type_of(x);
  const int rank = type.shape.rank(), axis = along < 0 ? along + rank : along;
  if (axis < 0 || axis >= rank)
    return t->error("axis " + std::to_string(along) + " is out of range for " + type.to_string(), o.loc), Value{0};
  if (type.pointer || type.dtype == DType::i1 || (is_float(type.dtype) && size_of(type.dtype) == 1)) {
    t->error("sort is not defined on " + type.to_string() + "; it takes integers, f16, bf16, f32 and f64", o.loc);
    return {0};
  }
  const int64_t size = type.shape[axis];
  if (first && (*first < 1 || *first > size)) {
    t->error("topk of " + std::to_string(*first) + " along an axis of " + std::to_string(size) +
                 " elements: " + type.to_string(),
             o.loc);
    return {0};
  }

  if (!first && !is_float(type.dtype)) {
    const int64_t below = t->info(x).below;
    const int known = bits_known(t->info(x).value, is_unsigned(type.dtype), 16);
    const int bits = below > 0 && below <= 1 << 16 ? std::bit_width(static_cast<uint64_t>(below - 1)) : known;
    if (bits > 0 && wants_rounds(type.shape, axis, bits)) {
      const Value sorted = order_of_few(At{o.loc}, x, type, axis, bits, descending, indices);
      if (indices) t->set_below(*indices, size);
      return sorted;
    }
  }
  const Keys keys(o.loc, type.dtype, descending, indices ? t->info(x).below : 0);
  const At& at = keys.at;
  Shape whole = type.shape, rest = type.shape;
  for (whole[axis] = 1; whole[axis] < size;) whole[axis] *= 2;
  const int64_t padded = whole[axis];
  rest[axis] = padded - size;
  Value key = keys.of(x);
  if (padded > size) {  // behind everything: the largest key, at places past the end
    const Operand parts[] = {at(key), at(full(rest, at(largest_integer(keys.type)), keys.type))};
    key = cat(parts, 2, axis);
  }
  int64_t kept = 1;
  while (kept < first.value_or(size)) kept *= 2;
  Network network(keys, key, whole, axis, indices != nullptr);
  network.sort(kept);

  network.cut(first.value_or(size));
  if (indices) {
    *indices = network.places();
    t->set_below(*indices, padded);
  }
  return keys.back(network.keys());
}

}  // namespace tile::detail
