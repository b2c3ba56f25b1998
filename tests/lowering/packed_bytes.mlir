// Numbers that become bytes are rounded, kept inside the range and packed two at a time.
// RUN: rm -rf %t && split-file %s %t
// RUN: tilec compile %t/rounded.mlir -t sm_90a -e ptx | FileCheck %t/rounded.mlir
// RUN: tilec compile %t/natural.mlir -t sm_90a -e ptx | FileCheck %t/natural.mlir
// RUN: tilec compile %t/symmetric.mlir -t sm_90a -e ptx | FileCheck %t/symmetric.mlir
// RUN: tilec compile %t/ends.mlir -t sm_90a -e ptx | FileCheck %t/ends.mlir
// RUN: tilec compile %t/words.mlir -t sm_90a -e ptx | FileCheck %t/words.mlir
// RUN: tilec compile %t/wrapped.mlir -t sm_90a -e ptx | FileCheck %t/wrapped.mlir
// RUN: tilec compile %t/pairs.mlir -t sm_90a -e ptx | FileCheck %t/pairs.mlir
// RUN: tilec compile %t/single.mlir -t sm_90a -e ptx | FileCheck %t/single.mlir
// RUN: tilec compile %t/chosen.mlir -t sm_90a -e ptx | FileCheck %t/chosen.mlir
// RUN: tilec compile %t/positive.mlir -t sm_90a -e ptx | FileCheck %t/positive.mlir

//--- rounded.mlir
// The lowest byte is the second operand of the pair that comes last. What is no number becomes zero, as cvt has it.
// CHECK-NOT: max.f32
// CHECK: cvt.rni.s32.f32 [[D:%r[0-9]+]],
// CHECK: cvt.rni.s32.f32 [[C:%r[0-9]+]],
// CHECK: cvt.pack.sat.s8.s32.b32 [[HIGH:%r[0-9]+]], [[D]], [[C]], %r
// CHECK: cvt.rni.s32.f32 [[B:%r[0-9]+]],
// CHECK: cvt.rni.s32.f32 [[A:%r[0-9]+]],
// CHECK: cvt.pack.sat.s8.s32.b32 [[ALL:%r[0-9]+]], [[B]], [[A]], [[HIGH]];
// CHECK: st.global.b32 {{.*}}, [[ALL]];
// CHECK: ret
func.func @rounded(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %low = arith.constant dense<-128.0> : tensor<512xf32>
  %high = arith.constant dense<127.0> : tensor<512xf32>
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %r = math.roundeven %x : tensor<512xf32>
  %is = arith.cmpf oeq, %r, %r : tensor<512xf32>
  %most = arith.maxnumf %r, %low : tensor<512xf32>
  %in = arith.minnumf %most, %high : tensor<512xf32>
  %s = arith.select %is, %in, %zero : tensor<512xi1>, tensor<512xf32>
  %b = arith.fptosi %s : tensor<512xf32> to tensor<512xi8>
  tile.scatter %b, %y offsets %i : tensor<512xi32> : tensor<512xi8>, !tile.ptr<i8>
  return
}

//--- natural.mlir
// CHECK-NOT: max.f32
// CHECK-COUNT-2: cvt.pack.sat.u8.s32.b32
// CHECK: ret
func.func @natural(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %low = arith.constant dense<0.0> : tensor<512xf32>
  %high = arith.constant dense<255.0> : tensor<512xf32>
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %r = math.roundeven %x : tensor<512xf32>
  %is = arith.cmpf oeq, %r, %r : tensor<512xf32>
  %most = arith.maxnumf %r, %low : tensor<512xf32>
  %in = arith.minnumf %most, %high : tensor<512xf32>
  %s = arith.select %is, %in, %zero : tensor<512xi1>, tensor<512xf32>
  %b = arith.fptoui %s : tensor<512xf32> to tensor<512xi8>
  tile.scatter %b, %y offsets %i : tensor<512xi32> : tensor<512xi8>, !tile.ptr<i8>
  return
}

//--- symmetric.mlir
// Other ends stay, in front of the rounding; here what is no number becomes zero before.
// CHECK: setp.num.f32
// CHECK: max.f32 {{.*}}, 0fC2FE0000;
// CHECK-COUNT-2: cvt.pack.sat.s8.s32.b32
// CHECK: ret
func.func @symmetric(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %low = arith.constant dense<-127.0> : tensor<512xf32>
  %high = arith.constant dense<127.0> : tensor<512xf32>
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %r = math.roundeven %x : tensor<512xf32>
  %is = arith.cmpf oeq, %r, %r : tensor<512xf32>
  %most = arith.maxnumf %r, %low : tensor<512xf32>
  %in = arith.minnumf %most, %high : tensor<512xf32>
  %s = arith.select %is, %in, %zero : tensor<512xi1>, tensor<512xf32>
  %b = arith.fptosi %s : tensor<512xf32> to tensor<512xi8>
  tile.scatter %b, %y offsets %i : tensor<512xi32> : tensor<512xi8>, !tile.ptr<i8>
  return
}

//--- ends.mlir
// CHECK-NOT: cvt.rni.f32.f32
// CHECK: max.f32 {{.*}}, 0fC2FE0000;
// CHECK-NOT: min.f32
// CHECK-COUNT-2: cvt.pack.sat.s8.s32.b32
// CHECK: ret
func.func @ends(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %low = arith.constant dense<-127.0> : tensor<512xf32>
  %high = arith.constant dense<127.0> : tensor<512xf32>
  %r = math.roundeven %x : tensor<512xf32>
  %most = arith.maxnumf %r, %low : tensor<512xf32>
  %in = arith.minnumf %most, %high : tensor<512xf32>
  %b = arith.fptosi %in : tensor<512xf32> to tensor<512xi8>
  tile.scatter %b, %y offsets %i : tensor<512xi32> : tensor<512xi8>, !tile.ptr<i8>
  return
}

//--- words.mlir
// CHECK-NOT: max.s32
// CHECK-COUNT-2: cvt.pack.sat.s8.s32.b32
// CHECK: ret
func.func @words(%p: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %low = arith.constant dense<-128> : tensor<512xi32>
  %high = arith.constant dense<127> : tensor<512xi32>
  %most = arith.maxsi %x, %low : tensor<512xi32>
  %in = arith.minsi %most, %high : tensor<512xi32>
  %b = arith.trunci %in : tensor<512xi32> to tensor<512xi8>
  tile.scatter %b, %y offsets %i : tensor<512xi32> : tensor<512xi8>, !tile.ptr<i8>
  return
}

//--- wrapped.mlir
// Words of which only the low bytes are kept, and single bytes, are not.
// CHECK-NOT: cvt.pack
// CHECK: ret
func.func @wrapped(%p: !tile.ptr<i32> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %b = arith.trunci %x : tensor<512xi32> to tensor<512xi8>
  tile.scatter %b, %y offsets %i : tensor<512xi32> : tensor<512xi8>, !tile.ptr<i8>
  return
}

//--- pairs.mlir
// CHECK-NOT: max.f32
// CHECK-COUNT-1: cvt.pack.sat.s8.s32.b32
// CHECK-NOT: cvt.pack
// CHECK: st.global.b16
// CHECK: ret
func.func @pairs(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<256xi32>
  %x = tile.gather %p offsets %i : tensor<256xi32> : !tile.ptr<f32> -> tensor<256xf32>
  %low = arith.constant dense<-128.0> : tensor<256xf32>
  %high = arith.constant dense<127.0> : tensor<256xf32>
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %r = math.roundeven %x : tensor<256xf32>
  %is = arith.cmpf oeq, %r, %r : tensor<256xf32>
  %most = arith.maxnumf %r, %low : tensor<256xf32>
  %in = arith.minnumf %most, %high : tensor<256xf32>
  %s = arith.select %is, %in, %zero : tensor<256xi1>, tensor<256xf32>
  %b = arith.fptosi %s : tensor<256xf32> to tensor<256xi8>
  tile.scatter %b, %y offsets %i : tensor<256xi32> : tensor<256xi8>, !tile.ptr<i8>
  return
}

//--- single.mlir
// CHECK-NOT: cvt.pack
// CHECK: ret
func.func @single(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<128xi32>
  %x = tile.gather %p offsets %i : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %low = arith.constant dense<-128.0> : tensor<128xf32>
  %high = arith.constant dense<127.0> : tensor<128xf32>
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %r = math.roundeven %x : tensor<128xf32>
  %is = arith.cmpf oeq, %r, %r : tensor<128xf32>
  %most = arith.maxnumf %r, %low : tensor<128xf32>
  %in = arith.minnumf %most, %high : tensor<128xf32>
  %s = arith.select %is, %in, %zero : tensor<128xi1>, tensor<128xf32>
  %b = arith.fptosi %s : tensor<128xf32> to tensor<128xi8>
  tile.scatter %b, %y offsets %i : tensor<128xi32> : tensor<128xi8>, !tile.ptr<i8>
  return
}

//--- chosen.mlir
// ptxas would make F2IP.U8.RELU, which no sm_90 knows, of a choice of x or zero; an end above hides it.
// CHECK-COUNT-4: min.f32 {{.*}}, 0f437F0000;
// CHECK: cvt.pack.sat.u8.s32.b32
// CHECK: ret
func.func @chosen(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %is = arith.cmpf ogt, %x, %zero : tensor<512xf32>
  %s = arith.select %is, %x, %zero : tensor<512xi1>, tensor<512xf32>
  %b = arith.fptoui %s : tensor<512xf32> to tensor<512xi8>
  tile.scatter %b, %y offsets %i : tensor<512xi32> : tensor<512xi8>, !tile.ptr<i8>
  return
}

//--- positive.mlir
// Bytes without a sign need no maximum: saturation makes it.
// CHECK-NOT: {{max|min}}.f32
// CHECK: cvt.pack.sat.u8.s32.b32
// CHECK-NOT: {{max|min}}.f32
// CHECK: ret
func.func @positive(%p: !tile.ptr<f32> {tile.align = 16 : i32}, %y: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %i = tile.iota : tensor<512xi32>
  %x = tile.gather %p offsets %i : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %high = arith.constant dense<255.0> : tensor<512xf32>
  %r = math.roundeven %x : tensor<512xf32>
  %most = arith.maxnumf %r, %zero : tensor<512xf32>
  %in = arith.minnumf %most, %high : tensor<512xf32>
  %b = arith.fptoui %in : tensor<512xf32> to tensor<512xi8>
  tile.scatter %b, %y offsets %i : tensor<512xi32> : tensor<512xi8>, !tile.ptr<i8>
  return
}
