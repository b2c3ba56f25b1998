// vector_add.h - z = x + y for vectors of any length.
#pragma once
#include "parts/shapes.h"

namespace tile::kernels {

struct VectorAddConfig {
  int BLOCK = 2048;  ///< elements per program
  int warps = 4;
};

/// Grid {ceil(n / BLOCK)}. Lanes past the end are neither read nor written: the views carry the bounds.
template <class T>
void vector_add_program(const VectorAddConfig& c, Tensor<const T, 1> x, Tensor<const T, 1> y, Tensor<T, 1> z) {
  num_warps(c.warps);
  auto first = program_id(0).to(i64) * c.BLOCK;
  z.store({first}, x.load({first}, {c.BLOCK}) + y.load({first}, {c.BLOCK}));
}

template <class T>
const auto& vector_add_kernel() {
  static const auto k = kernel(typed_name("vector_add", dtype_of<T>()), vector_add_program<T>)
                            .grid([](const VectorAddConfig& c, const auto&, const auto&, const auto& z) {
                              return Grid{cdiv(z.shape[0], c.BLOCK)};
                            });
  return k;
}

inline VectorAddConfig default_vector_add_config(const Machine& machine) {
  // A GPU wants a few 16-byte accesses in flight per thread; a core wants blocks that live in its first-level cache.
  return tuned("vector_add", machine.model, TuningKey(),
               machine.gpu ? VectorAddConfig{2048, 4} : VectorAddConfig{4096, 1});
}
inline std::vector<VectorAddConfig> vector_add_space(const VectorAddConfig& base, const Machine& machine) {
  Space<VectorAddConfig> space(base);
  space.vary(&VectorAddConfig::BLOCK, {512, 1024, 2048, 4096, 8192, 16384});
  if (machine.gpu) space.vary(&VectorAddConfig::warps, {4, 8, 16});
  return space;
}

/// z = x + y, all [n], any stride; dtypes f16, bf16, f32, f64, i32.
template <class T>
Status vector_add(StreamAt stream, Input<T, 1> x, Input<T, 1> y, TensorView<T, 1> z, const VectorAddConfig& config) {
  ShapeCheck check("vector_add");
  check.shape("x", x, {z.shape[0]}, "[n]").shape("y", y, {z.shape[0]}, "[n]");
  if (!check.ok()) return stream.refuse(check.error());
  return vector_add_kernel<T>().try_call(stream, config, x, y, z);
}
template <class T>
Status vector_add(StreamAt stream, Input<T, 1> x, Input<T, 1> y, TensorView<T, 1> z) {
  return vector_add<T>(stream, x, y, z, default_vector_add_config(Machine::of(stream)));
}

}  // namespace tile::kernels
