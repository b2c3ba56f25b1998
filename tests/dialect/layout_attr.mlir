// The layout attribute: text that reads back, and faults named.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | tile-opt -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @round_trip(
// CHECK-SAME: tensor<64x64xf16, #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>>
// CHECK: tile.convert %{{.*}} -> tensor<64x64xf16, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
// CHECK: tensor<7xf32, #tile.layout<7 regs [] lanes [0:8*1, rep:4] warps [rep:4]>>
func.func @round_trip(%a: tensor<64x64xf16, #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>>,
                      %b: tensor<7xf32, #tile.layout<7 regs [] lanes [0:8*1, rep:4] warps [rep:4]>>) {
  %c = tile.convert %a : tensor<64x64xf16, #tile.layout<64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]>>
      -> tensor<64x64xf16, #tile.layout<64x64 regs [1:2*1, 0:2*8, 1:8*8] lanes [1:4*2, 0:8*1] warps [0:4*16]>>
  %d = arith.addf %b, %b : tensor<7xf32, #tile.layout<7 regs [] lanes [0:8*1, rep:4] warps [rep:4]>>
  return
}

// -----

// expected-error @+1 {{digits of dim 0 cover 4 of 8 elements}}
func.func @covers_too_little(%a: tensor<8xf32, #tile.layout<8 regs [] lanes [0:4*1, rep:8] warps []>>) { return }

// -----

// expected-error @+1 {{digits of dim 0 must be dense: expected stride 4, found 8}}
func.func @leaves_gaps(%a: tensor<8xf32, #tile.layout<8 regs [0:2*8] lanes [0:4*1, rep:8] warps []>>) { return }

// -----

// expected-error @+1 {{digit moves along dim 1 of a tile of rank 1}}
func.func @unknown_dim(%a: tensor<8xf32, #tile.layout<8 regs [1:2*1] lanes [0:8*1, rep:4] warps []>>) { return }

// -----

// expected-error @+1 {{layout of a 8 tile on a tensor of shape 16}}
func.func @other_shape(%a: tensor<16xf32, #tile.layout<8 regs [] lanes [0:8*1, rep:4] warps []>>) { return }

// -----

// expected-error @+1 {{expected 'lanes' with the digits of the layout}}
func.func @missing_list(%a: tensor<8xf32, #tile.layout<8 regs [] warps []>>) { return }

// -----

func.func @other_elements(%a: tensor<8xf32>) {
  // expected-error @+1 {{changes only the layout: expected the shape and elements of 'tensor<8xf32>', found 'tensor<8xf16>'}}
  %b = tile.convert %a : tensor<8xf32> -> tensor<8xf16>
  return
}

// -----

func.func @total_of_anything(%a: tensor<8xf32>) {
  // expected-error @+1 {{expected the result of a scan}}
  %b = tile.total %a : tensor<8xf32> -> tensor<1xf32>
  return
}

// -----

func.func @total_of_another_axis(%a: tensor<4x8xi32>) {
  %s = tile.scan %a axis 1 : (tensor<4x8xi32>) -> tensor<4x8xi32> {
  ^bb0(%p: i32, %q: i32):
    %r = arith.addi %p, %q : i32
    tile.yield %r : i32
  }
  // expected-error @+1 {{expected 'tensor<4x1xi32>', found 'tensor<1x8xi32>'}}
  %b = tile.total %s : tensor<4x8xi32> -> tensor<1x8xi32>
  return
}
