// The tile in shared memory, its elements stored over it where indices say, and the result read in order.
// RUN: tilec compile %s -t sm_90a -e ptx | FileCheck %s
// RUN: tilec compile %s -t sm_80,sm_90a -e json | FileCheck %s --check-prefix=RES
// REQUIRES: ptxas

// RES-COUNT-4: "spill_store_bytes": 0

// Zeros four at a time, four bytes of each thread one by one where they fit, and the result sixteen bytes at a time.
// CHECK-LABEL: .entry elements(
// CHECK: st.shared.{{.*}}
// CHECK: bar.sync
// CHECK-COUNT-4: setp.{{.*}}.u32 {{.*}}, 2048
// CHECK-COUNT-4: st.shared.b8
// CHECK-NOT: st.shared
// CHECK: bar.sync
// CHECK: ld.shared.v4
// CHECK: st.global.v4
func.func @elements(%x: !tile.ptr<i8>, %p: !tile.ptr<i32>, %out: !tile.ptr<i8> {tile.divisibility = 16 : i64}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
  %at = tile.iota : tensor<512xi32>
  %v = tile.gather %x offsets %at : tensor<512xi32> : !tile.ptr<i8> -> tensor<512xi8>
  %i = tile.gather %p offsets %at : tensor<512xi32> : !tile.ptr<i32> -> tensor<512xi32>
  %zero = arith.constant dense<0> : tensor<2048xi8>
  %r = tile.put %v at %i into %zero axis 0 : (tensor<512xi8>, tensor<512xi32>, tensor<2048xi8>) -> tensor<2048xi8>
  %to = tile.iota : tensor<2048xi32>
  tile.scatter %r, %out offsets %to : tensor<2048xi32> : tensor<2048xi8>, !tile.ptr<i8>
  return
}

// Rows move whole: elements of one index are stored together. Places that are known to fit are not compared.
// CHECK-LABEL: .entry rows(
// CHECK: bar.sync
// CHECK: st.shared.v4
// CHECK: bar.sync
func.func @rows(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %p: !tile.ptr<i32>, %out: !tile.ptr<f32> {tile.divisibility = 16 : i64}) attributes {tile.kernel, tile.num_warps = 4 : i32} {
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

// Two puts meet, so that the second waits for the first.
// CHECK-LABEL: .entry in_order(
// CHECK-COUNT-4: bar.sync
// CHECK-NOT: bar.sync
// CHECK: ret
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

// Elements have places of their own, cumsum(l) - l and one behind it where l is 2: three waits, beside two of the scan.
// CHECK-LABEL: .entry own_runs(
// CHECK-COUNT-3: bar.sync
// CHECK-NOT: bar.sync
// CHECK: ret
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
  %second = arith.select %more, %behind, %nowhere : tensor<128xi1>, tensor<128xi32>
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %v = arith.sitofp %at : tensor<128xi32> to tensor<128xf32>
  %w = arith.negf %v : tensor<128xf32>
  %a = tile.put %v at %starts into %zero axis 0 : (tensor<128xf32>, tensor<128xi32>, tensor<256xf32>) -> tensor<256xf32>
  %b = tile.put %w at %second into %a axis 0 : (tensor<128xf32>, tensor<128xi32>, tensor<256xf32>) -> tensor<256xf32>
  %to = tile.iota : tensor<256xi32>
  tile.scatter %b, %out offsets %to : tensor<256xi32> : tensor<256xf32>, !tile.ptr<f32>
  return
}
