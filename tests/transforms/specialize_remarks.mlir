// What keeps a kernel's copies in its own warps, and that it says so.
// RUN: tile-opt %s -split-input-file -verify-diagnostics --tile-specialize --tile-target=sm_90a | FileCheck %s

// CHECK-NOT: tile.specialize {{.*}}producer

func.func @unaligned(%a: !tile.view<2xf16> {tile.align = 2 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    // expected-remark @+1 {{no producer warps: the view's address is not known to be a multiple of 16 bytes}}
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// The hardware reads from multiples of 16 bytes on; a step of one element is not.
func.func @shifted(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %next = arith.addi %k, %c1 : i32
    // expected-remark @+1 {{no producer warps: where the box begins along dim 1 of the view is not known to be a multiple of 16 bytes}}
    %sa = tile.load_shared %a[%c0, %next : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

func.func @repeated(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.no_bulk_copies}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    // expected-remark @+1 {{no producer warps: no tensor map describes the view: a dim repeats, runs backwards or is too large}}
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

func.func @padded(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    // expected-remark @+1 {{no producer warps: products read a tile of 64x48 as 64x64}}
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 48] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

func.func @gathered(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32, %p: !tile.ptr<f16>, %o: tensor<64x64xi32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    // expected-remark @+1 {{no producer warps: a tile gathered through pointers is not a box of a view: a loop that asks for `specialize` gets a producer that gathers}}
    %sb = tile.gather_shared %p offsets %o : tensor<64x64xi32> : !tile.ptr<f16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// expected-remark @+1 {{no producer warps: at most 3 warpgroups of consumers can have registers enough, the kernel has 16 warps}}
func.func @too_wide(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 16 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// The user says no: no remark.
func.func @told_not_to(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.specialize = 0 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

func.func @in_place(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %unused: !tile.view<2xf32>, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %h = arith.truncf %r : tensor<64x64xf32> to tensor<64x64xf16>
  // expected-remark @+1 {{no producer warps: the kernel may write what it copies, and copies run ahead of writes}}
  tile.store %h, %b[%c0, %c0 : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
  return
}

// -----

func.func @from_a_tile(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32, %t: tensor<64xi32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sum = "tile.reduce"(%t) <{axis = 0 : i32}> ({
    ^bb0(%x: i32, %y: i32):
      %z = arith.addi %x, %y : i32
      tile.yield %z : i32
    }) : (tensor<64xi32>) -> tensor<1xi32>
    // expected-remark @+1 {{no producer warps: where or when tiles are copied depends on a tile this program computes}}
    %of = tile.item %sum : tensor<1xi32> -> i32
    %at = arith.muli %of, %c64 : i32
    %sa = tile.load_shared %a[%c0, %at : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

func.func @acquire(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32, %p: !tile.ptr<i32>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c1 = arith.constant 1 : i32
  // expected-remark @+1 {{no producer warps: an acquiring atomic stands before copies, which would run ahead of it}}
  %old = tile.atomic_rmw add acquire gpu %p, %c1 : !tile.ptr<i32>, i32 -> i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// expected-remark @+2 {{no producer warps: one stage of every ring needs 395568 bytes of shared memory, sm_90a has 232448}}
// expected-note @+1 {{2048 bytes: scratch}}
func.func @too_large(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
    // expected-note @+1 {{393216 bytes: ring of 128x512xf16 + 512x256xf16, 1 stage}}
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [128, 512] : !tile.view<2xf16> -> !tile.smem<128x512xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [512, 256] : !tile.view<2xf16> -> !tile.smem<512x256xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 512 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x512xf16, minor = 1>, !tile.smem<512x256xf16, minor = 1> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<128x256xf32>, !tile.view<2xf32>
  return
}

// -----

// Transposes of what products became, through branches and element by element, are names: they need no scratch.
// expected-remark @+2 {{no producer warps: one stage of every ring needs 395568 bytes of shared memory, sm_90a has 232448}}
// expected-note @+1 {{2048 bytes: scratch}}
func.func @too_large_turned(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32, %twice: i1) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %two = arith.constant dense<2.0> : tensor<128x256xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32>) : i32 {
    // expected-note @+1 {{393216 bytes: ring of 128x512xf16 + 512x256xf16, 1 stage}}
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [128, 512] : !tile.view<2xf16> -> !tile.smem<128x512xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [512, 256] : !tile.view<2xf16> -> !tile.smem<512x256xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 512 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x512xf16, minor = 1>, !tile.smem<512x256xf16, minor = 1> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
  %chosen = scf.if %twice -> tensor<128x256xf32> {
    %more = arith.mulf %r, %two : tensor<128x256xf32>
    scf.yield %more : tensor<128x256xf32>
  } else {
    scf.yield %r : tensor<128x256xf32>
  }
  %turned = tile.trans %chosen, [1, 0] : tensor<128x256xf32> -> tensor<256x128xf32>
  tile.store %turned, %c[%c0, %c0 : i32, i32] : tensor<256x128xf32>, !tile.view<2xf32>
  return
}

// -----

// Asked to, the producer gathers; but not from where a tile carried by the loop says.
func.func @carried(%b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32, %p: !tile.ptr<f16>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %start = arith.constant dense<0> : tensor<64x64xi32>
  %step = arith.constant dense<64> : tensor<64x64xi32>
  // expected-remark @+1 {{no producer warps: where tiles are copied from is a tile carried by a loop or branch}}
  %r, %end = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero, %o = %start) -> (tensor<64x64xf32>, tensor<64x64xi32>) : i32 {
    %sa = tile.gather_shared %p offsets %o : tensor<64x64xi32> : !tile.ptr<f16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    %next = arith.addi %o, %step : tensor<64x64xi32>
    scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64xi32>
  } {tile.specialize = 1 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Nor where a value computed from other threads' elements says.
func.func @summed(%b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %list: !tile.view<1xi32>, %n: i32, %p: !tile.ptr<f16>) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %lengths = tile.load %list[%k : i32] : !tile.view<1xi32> -> tensor<64xi32>
    // expected-remark @+1 {{no producer warps: where or when tiles are copied depends on a tile this program computes}}
    %starts = tile.scan %lengths axis 0 : (tensor<64xi32>) -> tensor<64xi32> {
    ^bb0(%x: i32, %y: i32):
      %s = arith.addi %x, %y : i32
      tile.yield %s : i32
    }
    %column = tile.reshape %starts : tensor<64xi32> -> tensor<64x1xi32>
    %o = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x64xi32>
    %sa = tile.gather_shared %p offsets %o : tensor<64x64xi32> : !tile.ptr<f16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.specialize = 1 : i32}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A tensor map for each iteration.
func.func @made_in_loop(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %ld = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %at = arith.muli %k, %c64 : i32
    %q = tile.ptr_add %p, %at : !tile.ptr<f16>, i32
    %v = tile.make_view %q, dims(%ld, %ld), strides(%ld, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
    // expected-remark @+1 {{no producer warps: the view is made in the kernel, and not in front of a loop that copies from it}}
    %sa = tile.load_shared %v[%c0, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A stride from memory may be 0, or run backwards.
func.func @stride_unknown(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %list: !tile.ptr<i32>, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %rows = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %read = tile.gather %list : !tile.ptr<i32> -> i32
  %steps = arith.muli %read, %c64 : i32
  %ld = arith.extsi %steps : i32 to i64
  %v = tile.make_view %p, dims(%rows, %rows), strides(%ld, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    // expected-remark @+1 {{no producer warps: stride 0 of the view is not known to be positive (assume(stride > 0) says so)}}
    %sa = tile.load_shared %v[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// A 16th of a number that is at least 8 (and is multiplied, so that rows begin where copies can) may be 0.
func.func @stride_of_little(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %few: i32 {tile.multiple_of = 8 : i32}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %c: !tile.view<2xf32>, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %rows = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %part = arith.divsi %few, %c16 : i32
  %steps = arith.muli %part, %c64 : i32
  %ld = arith.extsi %steps : i32 to i64
  %v = tile.make_view %p, dims(%rows, %rows), strides(%ld, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    // expected-remark @+1 {{no producer warps: stride 0 of the view is not known to be positive (assume(stride > 0) says so)}}
    %sa = tile.load_shared %v[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  return
}

// -----

// Addresses from one table may be the same.
func.func @one_table(%as: !tile.ptr<i64>, %cs: !tile.ptr<i64>, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %groups: i32, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %rows = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %g = %c0 to %groups step %c1 : i32 {
    %ap = tile.ptr_add %as, %g : !tile.ptr<i64>, i32
    %aa = tile.gather %ap : !tile.ptr<i64> -> i64
    %aligned = tile.assume %aa multiple_of 16 : i64
    %a = tile.int_to_ptr %aligned : !tile.ptr<f16>
    %v = tile.make_view %a, dims(%rows, %rows), strides(%rows, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
    %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %sa = tile.load_shared %v[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
      %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %cp = tile.ptr_add %as, %g : !tile.ptr<i64>, i32
    %ca = tile.gather %cp : !tile.ptr<i64> -> i64
    %c = tile.int_to_ptr %ca : !tile.ptr<f32>
    %w = tile.make_view %c, dims(%rows, %rows), strides(%rows, %one) : !tile.ptr<f32> -> !tile.view<2xf32>
    // expected-remark @+1 {{no producer warps: the kernel may write what it copies, and copies run ahead of writes}}
    tile.store %r, %w[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
  }
  return
}

// -----

// What an iteration has written the next one reads: the pointers change places.
func.func @swapped(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %q: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %rounds: i32, %n: i32) attributes {tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %rows = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %last:2 = scf.for %g = %c0 to %rounds step %c1 iter_args(%from = %p, %to = %q) -> (!tile.ptr<f16>, !tile.ptr<f16>) : i32 {
    %v = tile.make_view %from, dims(%rows, %rows), strides(%rows, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
    %w = tile.make_view %to, dims(%rows, %rows), strides(%rows, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
    %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %sa = tile.load_shared %v[%c0, %k : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
      %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
      %d = tile.mma wgmma_f16 k 64 warps(4, 1) %sa, %sb, %acc : !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    %h = arith.truncf %r : tensor<64x64xf32> to tensor<64x64xf16>
    // expected-remark @+1 {{no producer warps: the kernel may write what it copies, and copies run ahead of writes}}
    tile.store %h, %w[%c0, %c0 : i32, i32] : tensor<64x64xf16>, !tile.view<2xf16>
    scf.yield %to, %from : !tile.ptr<f16>, !tile.ptr<f16>
  }
  return
}

// -----

// Who asks for one stage has programs overlap, and four of 256 threads fit instead of two with a producer.
// expected-remark @+1 {{no producer warps: loops of one stage copy nothing ahead: programs overlap with each other, and more of them fit without roles}}
func.func @one_stage(%a: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %b: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}, %n: i32) attributes {tile.num_warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %sa = tile.load_shared %a[%c0, %k : i32, i32] box [128, 64] : !tile.view<2xf16> -> !tile.smem<128x64xf16, minor = 1>
    %sb = tile.load_shared %b[%k, %c0 : i32, i32] box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1>
    %d = tile.mma wgmma_f16 k 64 warps(8, 1) %sa, %sb, %acc : !tile.smem<128x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  } {tile.stages = 1 : i32}
  tile.print "r" %r : tensor<128x64xf32>
  return
}
