// The dialect's attributes on functions, arguments and loops.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @all(
// CHECK-SAME: tile.align = 16 : i32
// CHECK-SAME: tile.multiple_of = 8 : i32
// CHECK-SAME: tile.dim_multiple_of = array<i32: 16, 1>
// CHECK-SAME: tile.no_bulk_copies
// CHECK-SAME: attributes {tile.grid = array<i32: 2, 3>, tile.kernel, tile.num_warps = 8 : i32}
func.func @all(%p: !tile.ptr<f32> {tile.align = 16 : i32, tile.nullable}, %n: i32 {tile.multiple_of = 8 : i32},
               %v: !tile.view<2xf32> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>,
                                      tile.dim_multiple_of = array<i32: 16, 1>, tile.no_bulk_copies})
    attributes {tile.kernel, tile.num_warps = 8 : i32, tile.grid = array<i32: 2, 3>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
  } {tile.stages = 3 : i32, tile.unroll = 2 : i32}
  return
}

// -----

// expected-error @+1 {{attribute 'tile.kernel' has no value, found 1 : i32}}
func.func @kernel() attributes {tile.kernel = 1 : i32} { return }

// -----

// expected-error @+1 {{attribute 'tile.num_warps' must be an i32 between 1 and 32, found 0 : i32}}
func.func @warps() attributes {tile.num_warps = 0 : i32} { return }

// -----

// expected-error @+1 {{attribute 'tile.programs' must be an i32 between 1 and 32, found 33 : i32}}
func.func @programs() attributes {tile.programs = 33 : i32} { return }

// -----

// expected-error @+1 {{attribute 'tile.cluster' must be an i32 between 1 and 8, found 16 : i32}}
func.func @cluster() attributes {tile.cluster = 16 : i32} { return }

// -----

// expected-error @+1 {{attribute 'tile.cluster' must be a power of 2, found 6 : i32}}
func.func @cluster_of_six() attributes {tile.cluster = 6 : i32} { return }

// -----

func.func @multicast(%n: i32) -> i32 {
  // expected-error @+1 {{attribute 'tile.multicast' belongs on a copy of a box into shared memory}}
  %m = arith.addi %n, %n {tile.multicast} : i32
  return %m : i32
}

// -----

func.func @inside(%n: i32) -> i32 {
  // expected-error @+1 {{attribute 'tile.inside' belongs on a load or store of a box}}
  %m = arith.addi %n, %n {tile.inside} : i32
  return %m : i32
}

// -----

func.func @tf32(%n: i32) -> i32 {
  // expected-error @+1 {{attribute 'tile.tf32' belongs on a bulk copy of f32}}
  %m = arith.addi %n, %n {tile.tf32} : i32
  return %m : i32
}

// -----

// expected-error @+1 {{attribute 'tile.num_warps' must be an i32 between 1 and 32, found 4 : i64}}
func.func @warps_type() attributes {tile.num_warps = 4} { return }

// -----

// expected-error @+1 {{unknown attribute 'tile.num_warp'; did you mean 'tile.num_warps'? known: tile.kernel, tile.num_warps, tile.programs, tile.cluster, tile.grid}}
func.func @spelling() attributes {tile.num_warp = 4 : i32} { return }

// -----

// expected-error @+1 {{attribute 'tile.grid' must be array<i32> of one to three positive numbers, found array<i32: 1, 0>}}
func.func @grid() attributes {tile.grid = array<i32: 1, 0>} { return }

// -----

// expected-error @+1 {{attribute 'tile.align' must be an i32 power of two (bytes), found 12 : i32}}
func.func private @align(!tile.ptr<f32> {tile.align = 12 : i32})

// -----

// expected-error @+1 {{attribute 'tile.align' of argument 1 needs a pointer or a view, found 'i32'}}
func.func private @align_type(i32, i32 {tile.align = 16 : i32})

// -----

// expected-error @+1 {{attribute 'tile.no_bulk_copies' of argument 0 needs a view, found 'i32'}}
func.func private @bulk_type(i32 {tile.no_bulk_copies})

// -----

// expected-error @+1 {{attribute 'tile.multiple_of' of argument 0 needs an integer scalar, found 'f32'}}
func.func private @multiple(f32 {tile.multiple_of = 16 : i32})

// -----

// expected-error @+1 {{attribute 'tile.one' of argument 0 needs an integer scalar, found 'f32'}}
func.func private @one(f32 {tile.one})

// -----

// expected-error @+1 {{attribute 'tile.multiple_of' must be an i32 between 1 and 2147483647, found -4 : i32}}
func.func private @multiple_sign(i32 {tile.multiple_of = -4 : i32})

// -----

// expected-error @+1 {{attribute 'tile.unit_stride' must be an i32 between 0 and 1, found 2 : i32}}
func.func private @unit(!tile.view<2xf32> {tile.unit_stride = 2 : i32})

// -----

// expected-error @+1 {{attribute 'tile.stride_multiple_of' must be array<i32> of 2 positive numbers, found array<i32: 8>}}
func.func private @strides(!tile.view<2xf32> {tile.stride_multiple_of = array<i32: 8>})

// -----

// expected-error @+1 {{attribute 'tile.dim_multiple_of' of argument 0 needs a view, found '!tile.ptr<f32>'}}
func.func private @dims(!tile.ptr<f32> {tile.dim_multiple_of = array<i32: 8>})

// -----

// expected-error @+1 {{unknown attribute 'tile.multipleof'; did you mean 'tile.multiple_of'?}}
func.func private @argument_spelling(i32 {tile.multipleof = 8 : i32})

// -----

func.func @stages(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @+1 {{attribute 'tile.stages' must be an i32 between 1 and 1024, found 0 : i32}}
  scf.for %i = %c0 to %n step %c1 : i32 {
  } {tile.stages = 0 : i32}
  return
}

// -----

func.func @place() {
  // expected-error @+1 {{attribute 'tile.num_warps' belongs on a function}}
  %0 = tile.program_id 0 {tile.num_warps = 4 : i32}
  return
}
