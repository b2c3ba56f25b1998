// Short loops that read memory become straight-line code, inner ones first.
// RUN: tile-opt %s -split-input-file -tile-unroll-short -canonicalize | FileCheck %s

// Nine gathers of four elements each are on their way together; 27 would be too many.
// CHECK-LABEL: func.func @window
// CHECK: scf.for
// CHECK-COUNT-9: tile.gather
// CHECK-NOT: {{scf.for|tile.gather}}
// CHECK: scf.yield
func.func @window(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %i = tile.iota : tensor<512xi32>
  %r = scf.for %a = %c0 to %c3 step %c1 iter_args(%s = %zero) -> (tensor<512xf32>) : i32 {
    %t = scf.for %b = %c0 to %c3 step %c1 iter_args(%u = %s) -> (tensor<512xf32>) : i32 {
      %ab = arith.muli %a, %b : i32
      %v = scf.for %c = %c0 to %c3 step %c1 iter_args(%w = %u) -> (tensor<512xf32>) : i32 {
        %at = arith.addi %ab, %c : i32
        %p = tile.ptr_add %x, %at : !tile.ptr<f32>, i32
        %e = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
        %n = arith.addf %w, %e : tensor<512xf32>
        scf.yield %n : tensor<512xf32>
      }
      scf.yield %v : tensor<512xf32>
    }
    scf.yield %t : tensor<512xf32>
  }
  tile.scatter %r, %y offsets %i : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}

// -----
// Not: places that the iteration before reads (a chain of links); loops that write; loops that say how they run; loops
// whose end the launch tells.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-4: scf.for
func.func @stays(%x: !tile.ptr<i32>, %y: !tile.ptr<i32>, %end: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %i = tile.iota : tensor<128xi32>
  %links = scf.for %a = %c0 to %c3 step %c1 iter_args(%at = %i) -> (tensor<128xi32>) : i32 {
    %next = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
    scf.yield %next : tensor<128xi32>
  }
  scf.for %a = %c0 to %c3 step %c1 : i32 {
    %p = tile.ptr_add %x, %a : !tile.ptr<i32>, i32
    %e = tile.gather %p offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
    %q = tile.ptr_add %y, %a : !tile.ptr<i32>, i32
    tile.scatter %e, %q offsets %i : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  }
  %asked = scf.for %a = %c0 to %c3 step %c1 iter_args(%s = %links) -> (tensor<128xi32>) : i32 {
    %p = tile.ptr_add %x, %a : !tile.ptr<i32>, i32
    %e = tile.gather %p offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
    %n = arith.addi %s, %e : tensor<128xi32>
    scf.yield %n : tensor<128xi32>
  } {tile.stages = 2 : i32}
  %r = scf.for %a = %c0 to %end step %c1 iter_args(%s = %asked) -> (tensor<128xi32>) : i32 {
    %p = tile.ptr_add %x, %a : !tile.ptr<i32>, i32
    %e = tile.gather %p offsets %i : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
    %n = arith.addi %s, %e : tensor<128xi32>
    scf.yield %n : tensor<128xi32>
  }
  tile.scatter %r, %y offsets %i : tensor<128xi32> : tensor<128xi32>, !tile.ptr<i32>
  return
}
