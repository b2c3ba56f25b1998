// address.h - addresses that are kept in memory as integers: tables of pointers.
#pragma once
#include "memory.h"

namespace tile {

namespace detail {
Value pointer_to(const Operand& address, DType element);
}

/// The address of an element T from the integer (i64, u64) that it was kept as; from a tile of integers a tile of
/// pointers, each to a place of its own. Addresses are multiples of T's size. What they point to must be no argument of
/// the kernel's that the kernel also accesses in another way. Wide copies want a promise:
/// pointer_to<const half>(multiple_of(load(table + i), 16)).
template <class T>
[[nodiscard]] Tile pointer_to(Expr address) {
  const Tile p = detail::make_tile(detail::pointer_to(address, dtype_of<T>()), address.loc);
  if constexpr (std::is_const_v<T>) detail::set_read_only(Expr(p, address.loc).v);
  return p;
}

}  // namespace tile
