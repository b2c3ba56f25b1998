// The tile in shared memory, its elements stored over it where indices say, and the result read in order.
// RUN: split-file %s %t
// RUN: tilec compile %t/elements.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=ELEMENTS
// RUN: tilec compile %t/whole.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=WHOLE
// RUN: tilec compile %t/rows.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=ROWS
// RUN: tilec compile %t/in_order.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=ORDER
// RUN: tilec compile %t/own_runs.mlir -t sm_90a -e ptx | FileCheck %s --check-prefix=RUNS

//--- elements.mlir
// Zeros four at a time, four bytes of each thread one by one where they fit, and the result sixteen bytes at a time.
// ELEMENTS-LABEL: .entry elements(
// ELEMENTS: st.shared.{{.*}}
// ELEMENTS: bar.sync
// ELEMENTS-COUNT-4: setp.lt.u32 [[P:%p[0-9]+]], {{.*}}, 2048;
// ELEMENTS: @[[P]] st.shared.b8
// ELEMENTS-NOT: st.shared
// ELEMENTS: bar.sync
// ELEMENTS: ld.shared.v4
// ELEMENTS: st.global.v4
func.func @elements(%x: !tile.ptr<i8>, %p: !tile.ptr<i32>, %out: !tile.ptr<i8> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<512xi32>
  %v = tile.gather %x offsets %at : tensor<512xi32> : !tile.ptr<i8> -> tensor<512xi8>
  %i = tile.gather %p offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %zero = arith.constant dense<0> : tensor<2048xi8>
  %r = tile.put %v at %i into %zero axis 0 : (tensor<512xi8>, tensor<512xi32>, tensor<2048xi8>) -> tensor<2048xi8>
  %to = tile.iota : tensor<2048xi32>
  tile.scatter %r, %out offsets %to : tensor<2048xi32> : tensor<2048xi8>, !tile.ptr<i8>
  return
}

//--- whole.mlir
// Every element is put: nothing is stored before, and no thread waits for it.
// WHOLE-LABEL: .entry whole(
// WHOLE-NOT: bar.sync
// WHOLE-COUNT-4: st.shared.b32
// WHOLE-NOT: st.shared
// WHOLE: bar.sync
// WHOLE: ld.shared.v4
func.func @whole(%x: !tile.ptr<f32>, %p: !tile.ptr<i32>, %out: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<512xi32>
  %v = tile.gather %x offsets %at : tensor<512xi32> : !tile.ptr<f32> -> tensor<512xf32>
  %i = tile.gather %p offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %r = tile.put %v at %i into %v axis 0 {whole} : (tensor<512xf32>, tensor<512xi32>, tensor<512xf32>) -> tensor<512xf32>
  tile.scatter %r, %out offsets %at : tensor<512xi32> : tensor<512xf32>, !tile.ptr<f32>
  return
}

//--- rows.mlir
// Rows move whole: elements of one index are stored together. Places that are known to fit are not compared.
// ROWS-LABEL: .entry rows(
// ROWS: bar.sync
// ROWS: st.shared.v4
// ROWS: bar.sync
func.func @rows(%x: !tile.ptr<f32> {tile.align = 16 : i32}, %p: !tile.ptr<i32>, %out: !tile.ptr<f32> {tile.align = 16 : i32}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %row = tile.iota : tensor<32xi32>
  %column = tile.iota : tensor<64xi32>
  %rows = tile.reshape %row : tensor<32xi32> -> tensor<32x1xi32>
  %columns = tile.reshape %column : tensor<64xi32> -> tensor<1x64xi32>
  %r64 = arith.constant dense<64> : tensor<32x1xi32>
  %begin = arith.muli %rows, %r64 : tensor<32x1xi32>
  %b = tile.broadcast %begin : tensor<32x1xi32> -> tensor<32x64xi32>
  %c = tile.broadcast %columns : tensor<1x64xi32> -> tensor<32x64xi32>
  %at = arith.addi %b, %c : tensor<32x64xi32>
  %v = tile.gather %x offsets %at : tensor<32x64xi32> : !tile.ptr<f32> -> tensor<32x64xf32>
  %i = tile.gather %p offsets %row : tensor<32xi32> : !tile.ptr<i32> -> tensor<32xi32>
  %ic = tile.reshape %i : tensor<32xi32> -> tensor<32x1xi32>
  %ib = tile.broadcast %ic : tensor<32x1xi32> -> tensor<32x64xi32>
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %put = tile.put %v at %ib into %zero axis 0 : (tensor<32x64xf32>, tensor<32x64xi32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  tile.scatter %put, %out offsets %at : tensor<32x64xi32> : tensor<32x64xf32>, !tile.ptr<f32>
  return
}

//--- in_order.mlir
// Two puts meet, so that the second waits for the first.
// ORDER-LABEL: .entry in_order(
// ORDER-COUNT-3: bar.sync
// ORDER-NOT: bar.sync
// ORDER: ret
func.func @in_order(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<128xi32>
  %two = arith.constant dense<2> : tensor<128xi32>
  %i = arith.divui %at, %two : tensor<128xi32>
  %v = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<f32> -> tensor<128xf32>
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %a = tile.put %v at %i into %zero axis 0 : (tensor<128xf32>, tensor<128xi32>, tensor<128xf32>) -> tensor<128xf32>
  %b = tile.put %zero at %i into %a axis 0 : (tensor<128xf32>, tensor<128xi32>, tensor<128xf32>) -> tensor<128xf32>
  tile.scatter %b, %out offsets %at : tensor<128xi32> : tensor<128xf32>, !tile.ptr<f32>
  return
}

//--- own_runs.mlir
// Elements have places of their own, cumsum(l) - l and one behind it where l is 2: no wait in between.
// RUNS-LABEL: .entry own_runs(
// RUNS-COUNT-2: bar.sync
// RUNS-NOT: bar.sync
// RUNS: ret
func.func @own_runs(%x: !tile.ptr<i1>, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %nowhere = arith.constant dense<-1> : tensor<128xi32>
  %more = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<i1> -> tensor<128xi1>
  %m = arith.extui %more : tensor<128xi1> to tensor<128xi32>
  %l = arith.addi %m, %one : tensor<128xi32>
  %ends = tile.scan %l axis 0 : (tensor<128xi32>) -> tensor<128xi32> {
  ^bb0(%p: i32, %q: i32):
    %s = arith.addi %p, %q : i32
    tile.yield %s : i32
  }
  %starts = arith.subi %ends, %l : tensor<128xi32>
  %behind = arith.addi %starts, %one : tensor<128xi32>
  %two = arith.cmpi sgt, %l, %one : tensor<128xi32>
  %second = arith.select %two, %behind, %nowhere : tensor<128xi1>, tensor<128xi32>
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %v = arith.sitofp %at : tensor<128xi32> to tensor<128xf32>
  %w = arith.negf %v : tensor<128xf32>
  %a = tile.put %v at %starts into %zero axis 0 : (tensor<128xf32>, tensor<128xi32>, tensor<256xf32>) -> tensor<256xf32>
  %b = tile.put %w at %second into %a axis 0 : (tensor<128xf32>, tensor<128xi32>, tensor<256xf32>) -> tensor<256xf32>
  %to = tile.iota : tensor<256xi32>
  tile.scatter %b, %out offsets %to : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}
