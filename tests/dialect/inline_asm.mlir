// Inline assembly: registers against constraints, and texts that LLVM would not survive.
// RUN: tile-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @forms(
// CHECK: tile.inline_asm "add.f32 $0, $1, $2;", "=f,f,r"(%{{.*}}, %{{.*}}) pure : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
// CHECK: tile.inline_asm "mov.b32 $0, $2; mov.b32 $1, $3;", "=r,=&r,r,r"(%{{.*}}) pack 8 : (tensor<8xi8>) -> tensor<8xi8>
// CHECK: tile.inline_asm "mov.u32 $0, %clock;", "=r,~{memory}"() : () -> i32
// CHECK: tile.on_host
func.func @forms(%x: tensor<8xf32>, %b: tensor<8xi8>) {
  %0 = tile.inline_asm "add.f32 $0, $1, $2;", "=f,f,r" (%x, %x) pure : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = tile.inline_asm "mov.b32 $0, $2; mov.b32 $1, $3;", "=r,=&r,r,r" (%b) pack 8 : (tensor<8xi8>) -> tensor<8xi8>
  %2 = tile.inline_asm "mov.u32 $0, %clock;", "=r,~{memory}" () : () -> i32
  %3 = tile.on_host
  return
}

// -----

func.func @letters(%x: tensor<8xf64>) {
  // expected-error @+1 {{argument 0 (f64) takes 1 register like "l", found "r" as constraint 1}}
  %0 = tile.inline_asm "x;", "=r,r" (%x) : (tensor<8xf64>) -> tensor<8xi32>
  return
}

// -----

func.func @variants(%x: i32) {
  // expected-error @+1 {{`$(a$|b$)` names no register: write $0, $1 .., and $$ for a dollar}}
  %0 = tile.inline_asm "$(a$|b$)", "=r,r" (%x) : (i32) -> i32
  return
}

// -----

func.func @too_far(%x: i32) {
  // expected-error @+1 {{`$2` names no register: the constraints have 2, counted from $0}}
  %0 = tile.inline_asm "add $0, $1, $2;", "=r,r" (%x) : (i32) -> i32
  return
}

// -----

func.func @packs(%x: i32) {
  // expected-error @+1 {{pack must be 1, 2, 4, 8 or 16, found 0}}
  %0 = tile.inline_asm "x;", "=r,r" (%x) pack 0 : (i32) -> i32
  return
}

// -----

func.func @nothing(%x: i32) {
  // expected-error @+1 {{it must have a result}}
  tile.inline_asm "x;", "r" (%x) : (i32) -> ()
  return
}
