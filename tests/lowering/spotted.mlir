// Elements that memory chooses (flags): neighbours are read together if any of them is wanted, and nobody branches; those
// that a place bounds, too, are read one by one where the bound falls between them: flags behind it say nothing.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s

// CHECK-LABEL: .entry chosen(
// CHECK: {{^[[:space:]]+}}ld.global.v4.b32
// CHECK-NOT: bra
// CHECK: @%p{{[0-9]+}} ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: selp
// CHECK: bra
// CHECK: {{^[[:space:]]+}}ld.global.v4.b32
// CHECK-COUNT-4: @%p{{[0-9]+}} ld.global.b32
func.func @chosen(%flags: !tile.ptr<i32> {tile.align = 16 : i32}, %p: !tile.ptr<i32> {tile.align = 16 : i32},
                  %q: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.ptr<i32> {tile.align = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %zero = arith.constant dense<0> : tensor<512xi32>
  %f = tile.gather %flags offsets %i : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %chosen = arith.cmpi ne, %f, %zero : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> mask %chosen : tensor<512xi1> : !tile.ptr<i32> -> tensor<512xi32>
  tile.scatter %x, %y offsets %i : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  %end = tile.splat %n : i32 -> tensor<512xi32>
  %bounded = arith.cmpi slt, %i, %end : tensor<512xi32>
  %z = tile.gather %q offsets %i : tensor<512xi32> mask %bounded : tensor<512xi1> : !tile.ptr<i32> -> tensor<512xi32>
  tile.scatter %z, %y offsets %i : tensor<512xi32> : tensor<512xi32>, !tile.ptr<i32>
  return
}
