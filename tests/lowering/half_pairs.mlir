// Arithmetic on what is in 16-bit pairs already goes on in pairs.
// RUN: tile-opt %s -split-input-file --tile-target=sm_90a -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s
// RUN: tile-opt %s -split-input-file --tile-target=sm_80 -tile-assign-layouts -canonicalize -cse -tile-place-buffers -tile-insert-barriers -tile-emit=as=ptx -o /dev/null | FileCheck %s --check-prefix=SM80

// Widened bytes with a scale.
// CHECK: entry scaled(
// CHECK-NOT: {{mul.f16[ \t]}}
// CHECK: mul.f16x2
// CHECK-NOT: {{mul.f16[ \t]}}
// CHECK: ret;
// SM80: entry scaled(
// SM80-NOT: {{mul.f16[ \t]}}
// SM80: mul.f16x2
// SM80: ret;
func.func @scaled(%w: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>}, %s: f16) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %bytes = tile.load %w[%i, %i : i32, i32] : !tile.view<2xi8> -> tensor<32x64xi8>
  %wide = arith.sitofp %bytes : tensor<32x64xi8> to tensor<32x64xf16>
  %scale = tile.splat %s : f16 -> tensor<32x64xf16>
  %scaled = arith.mulf %wide, %scale : tensor<32x64xf16>
  tile.store %scaled, %y[%i, %i : i32, i32] : tensor<32x64xf16>, !tile.view<2xf16>
  return
}

// -----

// Words that are rounded for more arithmetic are rounded in pairs.
// CHECK: entry from_words(
// CHECK-NOT: cvt.rn.f16.f32
// CHECK: cvt.rn.f16x2.f32
// CHECK: mul.f16x2
// CHECK-NOT: cvt.rn.f16.f32
// CHECK: ret;
// SM80: entry from_words(
// SM80-NOT: cvt.rn.f16.f32
// SM80: ret;
func.func @from_words(%x: !tile.view<2xf32> {tile.align = 4 : i32}, %y: !tile.view<2xf16>, %s: f16) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %words = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf32> -> tensor<32x64xf32>
  %narrow = arith.truncf %words : tensor<32x64xf32> to tensor<32x64xf16>
  %scale = tile.splat %s : f16 -> tensor<32x64xf16>
  %scaled = arith.mulf %narrow, %scale : tensor<32x64xf16>
  tile.store %scaled, %y[%i, %i : i32, i32] : tensor<32x64xf16>, !tile.view<2xf16>
  return
}

// -----

// bf16 in pairs is widened where it lies: the lower half moves up, the upper one loses its neighbour.
// CHECK: entry widened(
// CHECK-NOT: cvt.f32.bf16
// CHECK: shl.b32
// CHECK: and.b32 {{.*}}, -65536
// CHECK-NOT: cvt.f32.bf16
// CHECK: ret;
func.func @widened(%x: !tile.view<2xbf16> {tile.align = 4 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 2, 1>, tile.dim_multiple_of = array<i32: 2, 2>}, %y: !tile.view<2xf32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %pairs = tile.load %x[%i, %i : i32, i32] : !tile.view<2xbf16> -> tensor<32x64xbf16>
  %wide = arith.extf %pairs : tensor<32x64xbf16> to tensor<32x64xf32>
  tile.store %wide, %y[%i, %i : i32, i32] : tensor<32x64xf32>, !tile.view<2xf32>
  return
}

// -----
// Flags that neighbours share choose whole words.
// CHECK-LABEL: .entry choose_pairs(
// CHECK-COUNT-4: selp.b32
// CHECK-NOT: selp.b16
// CHECK: st.global.v4.b32
// CHECK: ret;
func.func @choose_pairs(%x: !tile.view<1xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 8>}, %y: !tile.view<1xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf16> -> tensor<1024xf16>
  %i = tile.iota : tensor<1024xi32>
  %one = arith.constant dense<1> : tensor<1024xi32>
  %pair = arith.shrui %i, %one : tensor<1024xi32>
  %limit = tile.splat %n : i32 -> tensor<1024xi32>
  %flags = arith.cmpi slt, %pair, %limit : tensor<1024xi32>
  %zero = arith.constant dense<0.0> : tensor<1024xf16>
  %chosen = arith.select %flags, %a, %zero : tensor<1024xi1>, tensor<1024xf16>
  tile.store %chosen, %y[%c0 : i32] : tensor<1024xf16>, !tile.view<1xf16>
  return
}

// -----
// Every element has a flag of its own.
// CHECK-LABEL: .entry choose_single(
// CHECK: selp.b16
// CHECK: ret;
func.func @choose_single(%x: !tile.view<1xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 8>}, %y: !tile.view<1xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 8>}, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf16> -> tensor<1024xf16>
  %i = tile.iota : tensor<1024xi32>
  %limit = tile.splat %n : i32 -> tensor<1024xi32>
  %flags = arith.cmpi slt, %i, %limit : tensor<1024xi32>
  %zero = arith.constant dense<0.0> : tensor<1024xf16>
  %chosen = arith.select %flags, %a, %zero : tensor<1024xi1>, tensor<1024xf16>
  tile.store %chosen, %y[%c0 : i32] : tensor<1024xf16>, !tile.view<1xf16>
  return
}

// -----
// What bf16 loses of f32: nothing is converted alone, and what was rounded is widened where it lies.
// CHECK-LABEL: .entry rest(
// CHECK-NOT: cvt.rn.bf16.f32
// CHECK-NOT: cvt.f32.bf16
// CHECK: cvt.rn.bf16x2.f32
// CHECK: and.b32 {{.*}}, -65536
// CHECK-NOT: cvt.rn.bf16.f32
// CHECK-NOT: cvt.f32.bf16
// CHECK: ret;
// SM80-LABEL: .entry rest(
// SM80-NOT: cvt.rn.bf16.f32
// SM80: ret;
func.func @rest(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 8>}, %y: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 8>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %a = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<1024xf32>
  %high = arith.truncf %a : tensor<1024xf32> to tensor<1024xbf16>
  %wide = arith.extf %high : tensor<1024xbf16> to tensor<1024xf32>
  %low = arith.subf %a, %wide : tensor<1024xf32>
  tile.store %low, %y[%c0 : i32] : tensor<1024xf32>, !tile.view<1xf32>
  return
}

// -----

// Signs are changed in pairs.
// CHECK: entry signs(
// CHECK-NOT: {{(neg|abs).f16[ \t]}}
// CHECK: abs.f16x2
// CHECK-NOT: {{(neg|abs).f16[ \t]}}
// CHECK: neg.f16x2
// CHECK: ret;
// SM80: entry signs(
// SM80-NOT: {{(neg|abs).f16[ \t]}}
// SM80: abs.f16x2
// SM80: neg.f16x2
// SM80: ret;
func.func @signs(%x: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}, %y: !tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 16, 16>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %v = tile.load %x[%i, %i : i32, i32] : !tile.view<2xf16> -> tensor<32x64xf16>
  %a = math.absf %v : tensor<32x64xf16>
  %s = arith.addf %a, %v : tensor<32x64xf16>
  %n = arith.negf %s : tensor<32x64xf16>
  tile.store %n, %y[%i, %i : i32, i32] : tensor<32x64xf16>, !tile.view<2xf16>
  return
}

// -----

// Quotients of halves are those of f32, which have quick instructions: no IEEE division, which is a call.
// CHECK: entry quotients(
// CHECK-NOT: div.rn
// CHECK: div.full.ftz.f32
// CHECK-NOT: div.rn
// CHECK: ret;
// SM80: entry quotients(
// SM80-NOT: div.rn
// SM80: ret;
func.func @quotients(%x: !tile.view<1xf16>, %y: !tile.view<1xf16>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %a = tile.load %x[%i : i32] : !tile.view<1xf16> -> tensor<128xf16>
  %b = tile.load %y[%i : i32] : !tile.view<1xf16> -> tensor<128xf16>
  %q = arith.divf %a, %b : tensor<128xf16>
  tile.store %q, %y[%i : i32] : tensor<128xf16>, !tile.view<1xf16>
  return
}

// -----

// Four bytes that one flag chooses are chosen as a word: rows outside a picture hold its zero point.
// CHECK: entry chosen_bytes(
// CHECK-NOT: prmt
// CHECK: selp.b32
// CHECK-NOT: prmt
// CHECK: ret;
// SM80: entry chosen_bytes(
// SM80-NOT: prmt
// SM80: ret;
func.func @chosen_bytes(%x: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 32, 16>}, %y: !tile.view<2xi8> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>, tile.dim_multiple_of = array<i32: 32, 16>}, %zero: i8, %n: i32) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = arith.constant 0 : i32
  %bytes = tile.load %x[%i, %i : i32, i32] : !tile.view<2xi8> -> tensor<32x64xi8>
  %rows = tile.iota : tensor<32xi32>
  %column = tile.reshape %rows : tensor<32xi32> -> tensor<32x1xi32>
  %end = tile.splat %n : i32 -> tensor<32x1xi32>
  %in = arith.cmpi slt, %column, %end : tensor<32x1xi32>
  %all = tile.broadcast %in : tensor<32x1xi1> -> tensor<32x64xi1>
  %border = tile.splat %zero : i8 -> tensor<32x64xi8>
  %chosen = arith.select %all, %bytes, %border : tensor<32x64xi1>, tensor<32x64xi8>
  tile.store %chosen, %y[%i, %i : i32, i32] : tensor<32x64xi8>, !tile.view<2xi8>
  return
}

// -----
// What is looked up is rounded two by two, too, in a way that stays together.
// CHECK: entry looked_up(
// CHECK-NOT: cvt.rn.f16.f32
// CHECK: cvt.rn.f16x2.f32
// CHECK-NOT: cvt.rn.f16.f32
// CHECK: ret;
// SM80: entry looked_up(
// SM80: ret;
func.func @looked_up(%x: !tile.view<1xf32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %i: !tile.view<1xi32> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}, %y: !tile.view<1xf16> {tile.align = 16 : i32, tile.unit_stride = 0 : i32, tile.dim_multiple_of = array<i32: 32>}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %at = tile.load %i[%c0 : i32] : !tile.view<1xi32> -> tensor<512xi32>
  %v = tile.load %x[%c0 : i32] : !tile.view<1xf32> -> tensor<512xf32>
  %n = arith.truncf %v : tensor<512xf32> to tensor<512xf16>
  %t = tile.take %n, %at axis 0 : tensor<512xf16>, tensor<512xi32> -> tensor<512xf16>
  tile.store %t, %y[%c0 : i32] : tensor<512xf16>, !tile.view<1xf16>
  return
}
