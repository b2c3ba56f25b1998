// What is known about integers: runs, divisors, equal neighbours, ranges.
// RUN: tile-opt %s -tile-print-facts -verify-diagnostics -o /dev/null

// Bytes begin again at -128, and widened without a sign at 0: runs end there, wherever they begin.
func.func @bytes() {
  %iota = tile.iota : tensor<512xi32>
  // expected-remark @+1 {{contiguity [128] divisibility [128] constancy [1] range -128 to 127}}
  %byte = arith.trunci %iota {facts} : tensor<512xi32> to tensor<512xi8>
  // expected-remark @+1 {{contiguity [128] divisibility [128] constancy [1] range -128 to 127}}
  %signed = arith.extsi %byte {facts} : tensor<512xi8> to tensor<512xi32>
  // expected-remark @+1 {{contiguity [128] divisibility [128] constancy [1] range 0 to 255}}
  %unsigned = arith.extui %byte {facts} : tensor<512xi8> to tensor<512xi32>
  %c112 = arith.constant dense<112> : tensor<512xi8>
  // expected-remark @+1 {{contiguity [128] divisibility [16] constancy [1] range -128 to 127}}
  %later = arith.addi %byte, %c112 {facts} : tensor<512xi8>
  // expected-remark @+1 {{contiguity [16] divisibility [16] constancy [1] range -128 to 127}}
  %wide = arith.extsi %later {facts} : tensor<512xi8> to tensor<512xi32>
  %zero = arith.constant dense<0> : tensor<512xi8>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [128] range 0 to 1}}
  %below = arith.cmpi slt, %byte, %zero {facts} : tensor<512xi8>
  // What stays within the type goes on.
  %few = tile.iota : tensor<64xi32>
  %small = arith.trunci %few : tensor<64xi32> to tensor<64xi8>
  %c8 = arith.constant dense<8> : tensor<64xi8>
  %more = arith.addi %small, %c8 : tensor<64xi8>
  // expected-remark @+1 {{contiguity [64] divisibility [8] constancy [1] range 8 to 71}}
  %all = arith.extsi %more {facts} : tensor<64xi8> to tensor<64xi32>
  return
}

func.func @tiles(%n: i32 {tile.multiple_of = 16 : i32}, %m: i32) {
  // expected-remark @+1 {{contiguity [64] divisibility [1073741824] constancy [1] range 0 to 63}}
  %iota = tile.iota {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [48] divisibility [8] constancy [1] range 24 to 71}}
  %from = tile.iota from 24 {facts} : tensor<48xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [16] constancy [64]}}
  %ns = tile.splat %n {facts} : i32 -> tensor<64xi32>
  // A run shifted by multiples of 16 still starts at one.
  // expected-remark @+1 {{contiguity [64] divisibility [16] constancy [1]}}
  %add = arith.addi %iota, %ns {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [64] divisibility [16] constancy [1]}}
  %sub = arith.subi %iota, %ns {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [16] constancy [1]}}
  %mul = arith.muli %iota, %ns {facts} : tensor<64xi32>
  %c8 = arith.constant dense<8> : tensor<64xi32>
  // Eight neighbours share a quotient.
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [8] range 0 to 7}}
  %div = arith.divsi %iota, %c8 {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [8] divisibility [8] constancy [1] range 0 to 7}}
  %rem = arith.remsi %iota, %c8 {facts} : tensor<64xi32>
  // A whole group of 16 is in or out.
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [16] range 0 to 1}}
  %in = arith.cmpi slt, %iota, %ns {facts} : tensor<64xi32>
  // The last element of a group may differ: not known to be constant.
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1] range 0 to 1}}
  %le = arith.cmpi sle, %iota, %ns {facts} : tensor<64xi32>
  // Negative numbers round toward zero: no groups without knowing the sign.
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %any = arith.addi %iota, %ns : tensor<64xi32>
  %mixed = arith.addi %iota, %ms : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1] range -7 to 7}}
  %signed = arith.remsi %mixed, %c8 {facts} : tensor<64xi32>
  // By a number of the launch, dividends are taken not to be negative: whole groups of 16 wrap around.
  // expected-remark @+1 {{contiguity [16] divisibility [16] constancy [1]}}
  %around = arith.remsi %any, %ns {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [16]}}
  %lines = arith.divsi %any, %ns {facts} : tensor<64xi32>
  // A divisor for each element, or one that nothing is known of: no groups.
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1]}}
  %each = arith.remsi %any, %add {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1]}}
  %other = arith.remsi %any, %ms {facts} : tensor<64xi32>
  // Nothing is left of multiples of 16.
  // expected-remark @+1 {{contiguity [1] divisibility [8] constancy [1] range 0 to 0}}
  %none = arith.remsi %mul, %c8 {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [8] divisibility [8] constancy [1]}}
  %masked = arith.remui %any, %c8 {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1, 64] divisibility [1, 1073741824] constancy [1, 1] range 0 to 63}}
  %row = tile.reshape %iota {facts} : tensor<64xi32> -> tensor<1x64xi32>
  // expected-remark @+1 {{contiguity [1, 64] divisibility [1, 1073741824] constancy [16, 1] range 0 to 63}}
  %rows = tile.broadcast %row {facts} : tensor<1x64xi32> -> tensor<16x64xi32>
  // expected-remark @+1 {{contiguity [64, 1] divisibility [1073741824, 1] constancy [1, 16] range 0 to 63}}
  %cols = tile.trans %rows, [1, 0] {facts} : tensor<16x64xi32> -> tensor<64x16xi32>
  // expected-remark @+1 {{contiguity [1, 16] divisibility [1, 16] constancy [1, 1] range 0 to 63}}
  %square = tile.reshape %iota {facts} : tensor<64xi32> -> tensor<4x16xi32>
  // expected-remark @+1 {{contiguity [16] divisibility [16] constancy [1] range 0 to 63}}
  %box = tile.extract %iota [16] {facts} : tensor<64xi32> -> tensor<32xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [32] constancy [1]}}
  %hint = tile.assume %mul multiple_of 32 {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [64] divisibility [16] constancy [1]}}
  %wide = arith.extsi %add {facts} : tensor<64xi32> to tensor<64xi64>
  // expected-remark @+1 {{contiguity [16] divisibility [16] constancy [1]}}
  %choice = arith.select %in, %add, %iota {facts} : tensor<64xi1>, tensor<64xi32>
  return
}

func.func @scalars(%n: i32 {tile.multiple_of = 24 : i32}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c100 = arith.constant 100 : i32
  %c3 = arith.constant 3 : i32
  // expected-remark @+1 {{contiguity [1] divisibility [8] constancy [1]}}
  %same = arith.addi %n, %c0 {facts} : i32
  // expected-remark @+1 {{divisibility [1] constancy [1] range 0 to 2147483646}}
  %pid = tile.program_id 0 {facts}
  // The product may wrap: multiples of 64 stay multiples of 64, the range is lost.
  // expected-remark @+1 {{divisibility [64] constancy [1] range -2147483648 to 2147483584}}
  %start = arith.muli %pid, %c64 {facts} : i32
  // expected-remark @+1 {{divisibility [64] constancy [1] range 0 to 2147483584}}
  %exact = arith.muli %pid, %c64 overflow<nsw> {facts} : i32
  %c4 = arith.constant 4 : i32
  // expected-remark @+1 {{divisibility [128] constancy [1]}}
  %shifted = arith.shli %n, %c4 {facts} : i32
  // expected-remark @+1 {{divisibility [4] constancy [1]}}
  %half = arith.shrsi %start, %c4 {facts} : i32
  // expected-remark @+1 {{divisibility [4] constancy [1] range 0 to 96}}
  %bounded = arith.remui %start, %c100 {facts} : i32
  return
}

// Quotients and remainders by a number of the launch are taken not to be negative, like what they are of.
func.func @wrapped(%m: i32, %n: i32 {tile.multiple_of = 16 : i32}) {
  %iota = tile.iota : tensor<64xi32>
  %c64 = arith.constant 64 : i32
  %start = arith.muli %m, %c64 : i32
  %from = tile.splat %start : i32 -> tensor<64xi32>
  %rows = arith.addi %from, %iota : tensor<64xi32>
  %by = tile.splat %n : i32 -> tensor<64xi32>
  // expected-remark @+1 {{contiguity [16] divisibility [16] constancy [1]}}
  %inside = arith.remsi %rows, %by {facts} : tensor<64xi32>
  %c128 = arith.constant dense<128> : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [16]}}
  %group = arith.divsi %inside, %c128 {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1]}}
  %other = arith.divsi %rows, %c128 {facts} : tensor<64xi32>
  return
}

// Loops: from what enters, joined with what comes round.
func.func @loops(%n: i32, %stride: i32 {tile.multiple_of = 32 : i32}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1000 = arith.constant 1000 : i32
  %iota = tile.iota : tensor<64xi32>
  %step = tile.splat %stride : i32 -> tensor<64xi32>
  %r:2 = scf.for %i = %c0 to %c1000 step %c64 iter_args(%offs = %iota, %k = %c0) -> (tensor<64xi32>, i32) : i32 {
    // expected-remark @+1 {{divisibility [64] constancy [1] range 0 to 960}}
    %at = arith.addi %i, %c0 {facts} : i32
    // expected-remark @+1 {{contiguity [64] divisibility [32] constancy [1]}}
    %next = arith.addi %offs, %step {facts} : tensor<64xi32>
    // expected-remark @+1 {{divisibility [64] constancy [1] range}}
    %k2 = arith.addi %k, %c64 {facts} : i32
    scf.yield %next, %k2 : tensor<64xi32>, i32
  }
  // expected-remark @+1 {{contiguity [64] divisibility [32] constancy [1]}}
  %after = arith.addi %r#0, %step {facts} : tensor<64xi32>
  %c1 = arith.constant 1 : i1
  %w:2 = scf.while (%a = %c64, %b = %iota) : (i32, tensor<64xi32>) -> (i32, tensor<64xi32>) {
    scf.condition(%c1) %a, %b : i32, tensor<64xi32>
  } do {
  ^bb0(%a: i32, %b: tensor<64xi32>):
    %a2 = arith.muli %a, %stride : i32
    %one = arith.constant dense<1> : tensor<64xi32>
    %b2 = arith.addi %b, %one : tensor<64xi32>
    scf.yield %a2, %b2 : i32, tensor<64xi32>
  }
  // expected-remark @+1 {{divisibility [64]}}
  %wa = arith.addi %w#0, %c0 {facts} : i32
  // expected-remark @+1 {{contiguity [64] divisibility [1]}}
  %wb = arith.addi %w#1, %step {facts} : tensor<64xi32>
  return
}

func.func @memory(%p: !tile.ptr<f16> {tile.align = 16 : i32}, %n: i32 {tile.multiple_of = 4 : i32},
                  %v: !tile.view<2xf16> {tile.align = 32 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>, tile.dim_multiple_of = array<i32: 1, 64>},
                  %c: i1) {
  // expected-remark @+1 {{align 8}}
  %q = tile.ptr_add %p, %n {facts} : !tile.ptr<f16>, i32
  // expected-remark @+1 {{align 8}}
  %either = arith.select %c, %p, %q {facts} : !tile.ptr<f16>
  // expected-remark @+1 {{align 32}}
  %vp = tile.view_ptr %v {facts} : !tile.view<2xf16> -> !tile.ptr<f16>
  // expected-remark @+1 {{divisibility [64] constancy [1] range 0 to 9223372036854775744}}
  %d = tile.view_dim %v, 1 {facts} : !tile.view<2xf16>
  %s = tile.view_stride %v, 0 : !tile.view<2xf16>
  %one = arith.constant 1 : i64
  // A table's address is as aligned as promised.
  %address = tile.view_dim %v, 0 : !tile.view<2xf16>
  %promised = tile.assume %address multiple_of 16 : i64
  // expected-remark @+1 {{align 16}}
  %found = tile.int_to_ptr %promised {facts} : !tile.ptr<f16>
  // expected-remark @+1 {{align 8 unit_stride 1 strides [8, 1] dims [64, 64]}}
  %w = tile.make_view %q, dims(%d, %d), strides(%s, %one) {facts} : !tile.ptr<f16> -> !tile.view<2xf16>
  return
}

// Program ids of a work loop and stages of rings.
func.func @work_loop() {
  %r = tile.ring_alloc arrivals 1 : !tile.ring<3>
  tile.specialize regs(0, 0) producer { } consumer {
    tile.work_loop {
    ^bb0(%x: i32, %y: i32, %z: i32):
      %two = arith.constant 2 : i32
      // expected-remark @+1 {{range 0 to 1073741823}}
      %half = arith.divsi %x, %two {facts} : i32
      // expected-remark @+1 {{range 0 to 2}}
      %s = tile.ring_acquire %r {facts} : !tile.ring<3>
    }
  }
  return
}

// The last block of a loop whose counter is a multiple of the block's size does not wrap, so that groups of its numbers
// have one quotient.
func.func @blocks(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c48 = arith.constant 48 : i32
  %eights = arith.constant dense<8> : tensor<64xi32>
  %iota = tile.iota : tensor<64xi32>
  scf.for %k = %c0 to %n step %c64 : i32 {
    %start = tile.splat %k : i32 -> tensor<64xi32>
    // expected-remark @+1 {{contiguity [64] divisibility [64] constancy [1] range 0 to 2147483647}}
    %at = arith.addi %start, %iota {facts} : tensor<64xi32>
    // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [8] range 0 to 268435455}}
    %words = arith.divsi %at, %eights {facts} : tensor<64xi32>
  }
  // Sixteen divides the counter of this one: its numbers may wrap.
  scf.for %k = %c0 to %n step %c48 : i32 {
    %start = tile.splat %k : i32 -> tensor<64xi32>
    // expected-remark @+1 {{contiguity [64] divisibility [16] constancy [1] range -2147483648 to 2147483647}}
    %at = arith.addi %start, %iota {facts} : tensor<64xi32>
  }
  return
}

// Sizes that fit 32 bits, and what is made of them and of counters. Parts that both sides of a difference have cancel.
func.func @differences(%v: !tile.view<1 x f32>, %x: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %dim = tile.view_dim %v, 0 : !tile.view<1 x f32>
  // expected-remark @+1 {{range 0 to 2147483647}}
  %n = arith.trunci %dim overflow<nsw> {facts} : i64 to i32
  // expected-remark @+1 {{range 0 to 33554432}}
  %end = arith.ceildivui %n, %c64 {facts} : i32
  // expected-remark @+1 {{range -1 to 33554431}}
  %last = arith.subi %end, %c1 {facts} : i32
  scf.for %i = %c0 to %end step %c1 : i32 {
    // expected-remark @+1 {{range 0 to 33554431}}
    %down = arith.subi %last, %i {facts} : i32
    // expected-remark @+1 {{range 0 to 2147483584}}
    %row = arith.muli %down, %c64 {facts} : i32
    %next = arith.addi %i, %c1 : i32
    // One behind the last.
    // expected-remark @+1 {{range -1 to 33554430}}
    %behind = arith.subi %last, %next {facts} : i32
  }
  // Part of the loop: its end is a minimum, or its beginning where it has no iterations.
  %wide = arith.extsi %end : i32 to i64
  %least = arith.minsi %x, %wide : i64
  %cut = arith.trunci %least overflow<nsw> : i64 to i32
  %some = arith.cmpi slt, %x, %dim : i64
  %stop = arith.select %some, %cut, %c0 : i32
  scf.for %i = %c0 to %stop step %c1 : i32 {
    // expected-remark @+1 {{range 0 to 33554431}}
    %down = arith.subi %last, %i {facts} : i32
  }
  // What is taken away is not more than what it is taken from.
  %whole = arith.divsi %n, %c64 : i32
  %capped = arith.minsi %whole, %end : i32
  // expected-remark @+1 {{range 0 to 33554432}}
  %rest = arith.subi %end, %capped {facts} : i32
  // Not so where it may wrap, or for another loop's counter.
  %other = arith.trunci %dim : i64 to i32
  scf.for %i = %c0 to %other step %c1 : i32 {
    // expected-remark @+1 {{range -2147483647 to 33554431}}
    %down = arith.subi %last, %i {facts} : i32
  }
  return
}

// A multiple of the divisor has a quotient without a rest, whatever its sign.
func.func @exact_quotients(%n: i32 {tile.multiple_of = 16 : i32}) {
  %c4 = arith.constant 4 : i32
  %c32 = arith.constant 32 : i32
  // expected-remark @+1 {{divisibility [4] constancy [1] range -536870912 to 536870908}}
  %q = arith.divsi %n, %c4 {facts} : i32
  // expected-remark @+1 {{divisibility [4] constancy [1]}}
  %up = arith.ceildivsi %n, %c4 {facts} : i32
  // expected-remark @+1 {{divisibility [1] constancy [1]}}
  %half = arith.divsi %n, %c32 {facts} : i32
  return
}

// Equal places of a table are read alike, where all of them are read or none.
func.func @table(%pages: !tile.ptr<i32>, %n: i32) {
  %iota = tile.iota : tensor<64xi32>
  %c16 = arith.constant dense<16> : tensor<64xi32>
  %place = arith.divsi %iota, %c16 : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [16]}}
  %page = tile.gather %pages offsets %place : tensor<64xi32> {facts} : !tile.ptr<i32> -> tensor<64xi32>
  %slot = arith.remsi %iota, %c16 : tensor<64xi32>
  %first = arith.muli %page, %c16 : tensor<64xi32>
  // expected-remark @+1 {{contiguity [16] divisibility [16] constancy [1]}}
  %row = arith.addi %first, %slot {facts} : tensor<64xi32>
  %end = tile.splat %n : i32 -> tensor<64xi32>
  %in = arith.cmpi slt, %iota, %end : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1]}}
  %some = tile.gather %pages offsets %place : tensor<64xi32> mask %in : tensor<64xi1> {facts} : !tile.ptr<i32> -> tensor<64xi32>
  // Others may write it between two reads.
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1]}}
  %seen = tile.gather %pages offsets %place : tensor<64xi32> cache volatile {facts} : !tile.ptr<i32> -> tensor<64xi32>
  return
}

// Upper bits of words of any sign.
func.func @upper_bits(%bytes: tensor<64xi8>) {
  %c4 = arith.constant dense<4> : tensor<64xi8>
  // expected-remark @+1 {{range 0 to 15}}
  %high = arith.shrui %bytes, %c4 {facts} : tensor<64xi8>
  // expected-remark @+1 {{range -8 to 7}}
  %signed = arith.shrsi %bytes, %c4 {facts} : tensor<64xi8>
  return
}

func.func @clamped(%n: i32, %first: i32) {
  %iota = tile.iota : tensor<256xi32>
  %c128 = arith.constant 128 : i32
  %at = arith.muli %first, %c128 : i32
  %start = tile.splat %at : i32 -> tensor<256xi32>
  %rows = arith.addi %start, %iota : tensor<256xi32>
  %end = tile.splat %n : i32 -> tensor<256xi32>
  // Rows past the end are the last one: neighbours differ there.
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1]}}
  %inside = arith.minsi %rows, %end {facts} : tensor<256xi32>
  %c128s = arith.constant dense<128> : tensor<256xi32>
  // Their quotients rounded down do not, but those rounded toward zero may, of numbers below 0.
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [128]}}
  %block = arith.floordivsi %inside, %c128s {facts} : tensor<256xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1]}}
  %toward = arith.divsi %inside, %c128s {facts} : tensor<256xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1]}}
  %rest = arith.remsi %inside, %c128s {facts} : tensor<256xi32>
  return
}

// Places in flat memory, made of what is not negative by sums and products without a promise that they do not wrap: what
// is divided is taken not to be negative. Differences may be.
func.func @flat_places(%n: i32) {
  %id = tile.program_id 0
  %c7 = arith.constant 7 : i32
  %c7168 = arith.constant 7168 : i32
  %part = arith.divsi %id, %c7 : i32
  // expected-remark @+1 {{divisibility [1024] constancy [1]}}
  %first = arith.muli %part, %c7168 {facts} : i32
  %iota = tile.iota : tensor<256xi32>
  %start = tile.splat %first : i32 -> tensor<256xi32>
  %place = arith.addi %start, %iota : tensor<256xi32>
  %c784 = arith.constant dense<784> : tensor<256xi32>
  %c64 = arith.constant dense<64> : tensor<256xi32>
  // expected-remark @+1 {{contiguity [16] divisibility [16] constancy [1]}}
  %pixel = arith.remsi %place, %c784 {facts} : tensor<256xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [16]}}
  %plane = arith.divsi %place, %c784 {facts} : tensor<256xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [16]}}
  %of = arith.remsi %plane, %c64 {facts} : tensor<256xi32>
  %c1024 = arith.constant dense<1024> : tensor<256xi32>
  %before = arith.subi %place, %c1024 : tensor<256xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1] range -783 to 783}}
  %maybe = arith.remsi %before, %c784 {facts} : tensor<256xi32>
  return
}

// Scalars that a number of the launch divides may be negative (what lies in front of a program), and so may an extended
// bit, and a sum of bytes: rows of what they begin round toward zero.
func.func @in_front(%n: i32) {
  %id = tile.program_id 0
  %c5 = arith.constant 5 : i32
  %c16 = arith.constant 16 : i32
  %iota = tile.iota : tensor<64xi32>
  %c16s = arith.constant dense<16> : tensor<64xi32>
  %before = arith.subi %id, %c5 : i32
  %part = arith.divsi %before, %n : i32
  %first = arith.muli %part, %c16 : i32
  %start = tile.splat %first : i32 -> tensor<64xi32>
  // expected-remark @+1 {{contiguity [64] divisibility [16] constancy [1]}}
  %place = arith.addi %start, %iota {facts} : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1]}}
  %row = arith.divsi %place, %c16s {facts} : tensor<64xi32>
  %behind = arith.divsi %id, %n : i32
  %first2 = arith.muli %behind, %c16 : i32
  %start2 = tile.splat %first2 : i32 -> tensor<64xi32>
  %place2 = arith.addi %start2, %iota : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [16]}}
  %row2 = arith.divsi %place2, %c16s {facts} : tensor<64xi32>
  %bit = arith.cmpi slt, %id, %n : i32
  %minus = arith.extsi %bit : i1 to i32
  %first3 = arith.muli %minus, %c16 : i32
  %start3 = tile.splat %first3 : i32 -> tensor<64xi32>
  %place3 = arith.addi %start3, %iota : tensor<64xi32>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1]}}
  %row3 = arith.divsi %place3, %c16s {facts} : tensor<64xi32>
  %bytes = arith.trunci %iota : tensor<64xi32> to tensor<64xi8>
  %c96 = arith.constant dense<96> : tensor<64xi8>
  %c8s = arith.constant dense<8> : tensor<64xi8>
  %wraps = arith.addi %bytes, %c96 : tensor<64xi8>
  // expected-remark @+1 {{contiguity [1] divisibility [1] constancy [1] range -16 to 15}}
  %row4 = arith.divsi %wraps, %c8s {facts} : tensor<64xi8>
  return
}

// The numbers below a power of two keep a remainder: also all of 64 bits but the sign.
func.func @masks(%n: i64 {tile.multiple_of = 16 : i32}) {
  %iota = tile.iota : tensor<64xi64>
  %start = tile.splat %n : i64 -> tensor<64xi64>
  %place = arith.addi %iota, %start : tensor<64xi64>
  %c31 = arith.constant dense<31> : tensor<64xi64>
  // expected-remark @+1 {{contiguity [16] divisibility [16] constancy [1] range 0 to 31}}
  %low = arith.andi %place, %c31 {facts} : tensor<64xi64>
  %all = arith.constant dense<0x7fffffffffffffff> : tensor<64xi64>
  // expected-remark @+1 {{contiguity [64] divisibility [1073741824] constancy [1] range 0 to 63}}
  %whole = arith.andi %iota, %all {facts} : tensor<64xi64>
  return
}

// Numbers put together of fields have as many bits as these.
func.func @fields(%x: tensor<64xi32>, %y: tensor<64xi32>, %b: tensor<64xi1>) {
  %c15 = arith.constant dense<15> : tensor<64xi32>
  %c3 = arith.constant dense<3> : tensor<64xi32>
  %c4 = arith.constant dense<4> : tensor<64xi32>
  %c8 = arith.constant dense<8> : tensor<64xi32>
  %ones = arith.constant dense<-1> : tensor<64xi32>
  %low = arith.andi %x, %c15 : tensor<64xi32>
  %two = arith.andi %y, %c3 : tensor<64xi32>
  %high = arith.shli %two, %c4 : tensor<64xi32>
  // expected-remark @+1 {{range 0 to 63}}
  %six = arith.ori %low, %high {facts} : tensor<64xi32>
  // expected-remark @+1 {{range 8 to 15}}
  %above = arith.ori %low, %c8 {facts} : tensor<64xi32>
  // expected-remark @+1 {{range 0 to 15}}
  %turned = arith.xori %low, %c8 {facts} : tensor<64xi32>
  // A sign extended by hand.
  // expected-remark @+1 {{range -8 to 7}}
  %signed = arith.subi %turned, %c8 {facts} : tensor<64xi32>
  // Bits only come: what is below 0 stays there, and is not less than before.
  // expected-remark @+1 {{range -4 to -1}}
  %below = arith.subi %two, %c4 {facts} : tensor<64xi32>
  // expected-remark @+1 {{range -4 to -1}}
  %or = arith.ori %low, %below {facts} : tensor<64xi32>
  // expected-remark @+1 {{range -8 to 15}}
  %mixed = arith.ori %low, %signed {facts} : tensor<64xi32>
  // expected-remark @+1 {{range -16 to -1}}
  %not = arith.xori %low, %ones {facts} : tensor<64xi32>
  // expected-remark @+1 {{range 0 to 15}}
  %again = arith.xori %not, %below {facts} : tensor<64xi32>
  // expected-remark @+1 {{range -16 to 15}}
  %any = arith.xori %low, %signed {facts} : tensor<64xi32>
  // expected-remark @+1 {{range -2147483648 to 2147483647}}
  %all = arith.xori %x, %y {facts} : tensor<64xi32>
  // expected-remark @+1 {{range 0 to 32}}
  %count = math.ctpop %x {facts} : tensor<64xi32>
  // expected-remark @+1 {{range 0 to 32}}
  %zeros = math.ctlz %x {facts} : tensor<64xi32>
  // expected-remark @+1 {{range 0 to 1}}
  %one = arith.xori %b, %b {facts} : tensor<64xi1>
  return
}
