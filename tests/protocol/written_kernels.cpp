// written_kernels.cpp - kernels at the value level. Every view is one the copy engine takes.
#include <regex>

#include "tests/protocol/kernels.h"

namespace tile::ir::protocol {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string expanded(const std::string& text) {
  std::string out = replaced(text, "BOX", "box [64, 64] : !tile.view<2xf16> -> SMEM");
  out = replaced(out, "PRODUCT", "tile.mma wgmma_f16 k 64 warps(WARPS, 1)");
  out = replaced(out, "SS", ": SMEM, SMEM -> ACC");
  out = replaced(out, "RS", ": tensor<64x64xf16>, SMEM -> ACC");
  out = replaced(out, "SMEM", "!tile.smem<64x64xf16, minor = 1>");
  return replaced(out, "ACC", "tensor<64x64xf32>");
}

/// Columns in units of 16 elements: what the copy engine takes.
std::string inUnits(const std::string& text) {
  static const std::regex load(R"(\n( *)(%\w+ = tile\.load_shared %\w+\[%[\w#]+, )(%[\w#]+)( : i32, i32\]))");
  std::string out;
  auto from = text.begin();
  int count = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), load), end; it != end; ++it) {
    const std::string column = "%column" + std::to_string(count++);
    out.append(from, text.begin() + it->position());
    out += "\n" + it->str(1) + column + " = arith.muli " + it->str(3) + ", %c16 : i32";
    out += "\n" + it->str(1) + it->str(2) + column + it->str(4);
    from = text.begin() + it->position() + it->length();
  }
  return out.append(from, text.end());
}

}  // namespace

std::string kernelText(const std::string& body, int warpgroups) {
  const std::string facts =
      "{tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}";
  std::string text =
      "func.func @k(%a: !tile.view<2xf16> " + facts + ", %b: !tile.view<2xf16> " + facts + ", %c: !tile.view<2xf16> " +
      facts +
      ", %out: !tile.view<2xf32>, %table: !tile.view<1xi32>, %n: i32) attributes {tile.kernel, tile.num_warps = " +
      std::to_string(4 * warpgroups) + " : i32} {\n" + R"(
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c16 = arith.constant 16 : i32
    %zero = arith.constant dense<0.0> : ACC
    %x = tile.program_id 0
    %y = tile.program_id 1
)" + body +
      "\n    tile.store %r, %out[%x, %y : i32, i32] : ACC, !tile.view<2xf32>\n    return\n}\n";
  text = replaced(expanded(inUnits(text)), "WARPS", std::to_string(4 * warpgroups));
  // All warpgroups' rows.
  if (warpgroups > 1) {
    const std::string rows = std::to_string(64 * warpgroups);
    text = replaced(text, "tensor<64x64xf32>", "tensor<" + rows + "x64xf32>");
    text = replaced(text, "tensor<64x64xf16>", "tensor<" + rows + "x64xf16>");
    text = replaced(text, "box [64, 64] : !tile.view<2xf16> -> !tile.smem<64x64xf16, minor = 1> // A",
                    "box [" + rows + ", 64] : !tile.view<2xf16> -> !tile.smem<" + rows + "x64xf16, minor = 1>");
    text = replaced(text, ": !tile.smem<64x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor",
                    ": !tile.smem<" + rows + "x64xf16, minor = 1>, !tile.smem<64x64xf16, minor = 1> -> tensor");
  }
  return text;
}

namespace {

/// %r = the loop's product over %n blocks, `hints` on the loop.
std::string gemm(const std::string& hints = "") {
  return R"(
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (ACC) : i32 {
      %sa = tile.load_shared %a[%x, %k : i32, i32] BOX // A
      %sb = tile.load_shared %b[%k, %y : i32, i32] BOX
      %d = PRODUCT %sa, %sb, %acc SS
      scf.yield %d : ACC
    })" + hints;
}

std::string attention(const std::string& end) {
  return "%end = " + end + R"( : i32
    %sq = tile.load_shared %a[%x, %y : i32, i32] BOX // A
    %any = arith.cmpi sgt, %end, %c0 : i32
    %r = scf.if %any -> ACC {
      %sk0 = tile.load_shared %b[%c0, %y : i32, i32] BOX
      %s0 = PRODUCT %sq, %sk0, %zero SS
      %p0 = arith.truncf %s0 : ACC to tensor<64x64xf16>
      %mid0 = arith.subi %end, %c2 : i32
      %mid = arith.maxsi %mid0, %c1 : i32
      %o1, %p1 = scf.for %j = %c1 to %mid step %c1 iter_args(%acc = %zero, %p = %p0) -> (ACC, tensor<64x64xf16>) : i32 {
        %sk = tile.load_shared %b[%j, %y : i32, i32] BOX
        %before = arith.subi %j, %c1 : i32
        %sv = tile.load_shared %c[%before, %y : i32, i32] BOX
        %s = PRODUCT %sq, %sk, %zero SS
        %o = PRODUCT %p, %sv, %acc RS
        %e = math.exp2 %s : ACC
        %q = arith.truncf %e : ACC to tensor<64x64xf16>
        scf.yield %o, %q : ACC, tensor<64x64xf16>
      }
      %o2, %p2 = scf.for %j = %mid to %end step %c1 iter_args(%acc = %o1, %p = %p1) -> (ACC, tensor<64x64xf16>) : i32 {
        %sk = tile.load_shared %b[%j, %y : i32, i32] BOX
        %before = arith.subi %j, %c1 : i32
        %sv = tile.load_shared %c[%before, %y : i32, i32] BOX
        %s = PRODUCT %sq, %sk, %zero SS
        %o = PRODUCT %p, %sv, %acc RS
        %e = math.exp2 %s : ACC
        %m = arith.mulf %e, %s : ACC
        %q = arith.truncf %m : ACC to tensor<64x64xf16>
        scf.yield %o, %q : ACC, tensor<64x64xf16>
      }
      %last = arith.subi %end, %c1 : i32
      %sv = tile.load_shared %c[%last, %y : i32, i32] BOX
      %o = PRODUCT %p2, %sv, %o2 RS
      scf.yield %o : ACC
    } else {
      scf.yield %zero : ACC
    })";
}

const char* kSkipping = R"(
    %r, %last = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %x) -> (ACC, i32) : i32 {
      %t = tile.load %table[%k : i32] : !tile.view<1xi32> -> i32
      %keep = arith.cmpi sgt, %t, %c2 : i32
      %d, %next = scf.if %keep -> (ACC, i32) {
        %sa = tile.load_shared %a[%x, %at : i32, i32] BOX // A
        %sb = tile.load_shared %b[%at, %y : i32, i32] BOX
        %p = PRODUCT %sa, %sb, %acc SS
        %z = arith.addi %at, %t : i32
        scf.yield %p, %z : ACC, i32
      } else {
        scf.yield %acc, %at : ACC, i32
      }
      scf.yield %d, %next : ACC, i32
    })";

const char* kNested = R"(
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%outer = %zero) -> (ACC) : i32 {
      %sa = tile.load_shared %a[%x, %i : i32, i32] BOX // A
      %t = tile.load %table[%i : i32] : !tile.view<1xi32> -> i32
      %in = scf.for %k = %c0 to %t step %c1 iter_args(%acc = %outer) -> (ACC) : i32 {
        %sb = tile.load_shared %b[%k, %i : i32, i32] BOX
        %d = PRODUCT %sa, %sb, %acc SS
        scf.yield %d : ACC
      }
      scf.yield %in : ACC
    })";

// The second loop takes the first one's buffers; its first operand is read by every warp as well.
const char* kTwoLoops = R"(
    %h = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (ACC) : i32 {
      %sa = tile.load_shared %a[%x, %k : i32, i32] BOX // A
      %sb = tile.load_shared %b[%k, %y : i32, i32] BOX
      %d = PRODUCT %sa, %sb, %acc SS
      scf.yield %d : ACC
    }
    %r = scf.for %k = %x to %n step %c2 iter_args(%acc = %h) -> (ACC) : i32 {
      %sa = tile.load_shared %c[%x, %k : i32, i32] BOX // A
      %sb = tile.load_shared %b[%k, %x : i32, i32] BOX
      %d = PRODUCT %sa, %sb, %acc SS
      %ra = tile.smem_load %sb : SMEM -> tensor<64x64xf16>
      %sc = tile.share %ra : tensor<64x64xf16> -> SMEM
      %e = PRODUCT %sa, %sc, %d SS
      scf.yield %e : ACC
    })";

/// Loops with tiles of other sizes, which share a ring: each asks for more stages than rings of their own have room
/// for.
const char* kTwoSizes = R"(
    %h = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (ACC) : i32 {
      %sa = tile.load_shared %a[%x, %k : i32, i32] BOX // A
      %sb = tile.load_shared %b[%k, %y : i32, i32] BOX
      %d = PRODUCT %sa, %sb, %acc SS
      scf.yield %d : ACC
    } {tile.stages = 14 : i32}
    %r = scf.for %k = %x to %n step %c1 iter_args(%acc = %h) -> (ACC) : i32 {
      %sa = tile.load_shared %c[%x, %k : i32, i32] box [64, 32] : !tile.view<2xf16> -> !tile.smem<64x32xf16, minor = 1>
      %sb = tile.load_shared %b[%k, %x : i32, i32] box [32, 64] : !tile.view<2xf16> -> !tile.smem<32x64xf16, minor = 1>
      %d = tile.mma wgmma_f16 k 32 warps(WARPS, 1) %sa, %sb, %acc : !tile.smem<64x32xf16, minor = 1>, !tile.smem<32x64xf16, minor = 1> -> ACC
      scf.yield %d : ACC
    } {tile.stages = 14 : i32})";

/// Rows of %p by the entries of a list, beside boxes of %b; the list is read once, or in every iteration.
std::string gathering(bool inLoop, int stages, const std::string& upper = "%n") {
  const std::string ids = R"(
      %ids = tile.load %table[AT : i32] : !tile.view<1xi32> -> tensor<64xi32>
      %col = tile.reshape %ids : tensor<64xi32> -> tensor<64x1xi32>
      %rows = tile.broadcast %col : tensor<64x1xi32> -> tensor<64x64xi32>)";
  const std::string outside = inLoop ? "" : replaced(ids, "AT", "%x"), inside = inLoop ? replaced(ids, "AT", "%k") : "";
  return R"(
    %p = tile.view_ptr %a : !tile.view<2xf16> -> !tile.ptr<f16>)" +
         outside + R"(
    %r = scf.for %k = %c0 to )" +
         upper + R"( step %c1 iter_args(%acc = %zero) -> (ACC) : i32 {)" + inside + R"(
      %ks = tile.splat %k : i32 -> tensor<64x64xi32>
      %offsets = arith.addi %rows, %ks : tensor<64x64xi32>
      %sa = tile.gather_shared %p offsets %offsets : tensor<64x64xi32> : !tile.ptr<f16> -> SMEM
      %sb = tile.load_shared %b[%k, %y : i32, i32] BOX
      %d = PRODUCT %sa, %sb, %acc SS
      scf.yield %d : ACC
    } {tile.specialize = 1 : i32, tile.stages = )" +
         std::to_string(stages) + " : i32}";
}

// Two rings: one filled by threads and one in bulk, where a branch decides whether the first is needed.
const char* kGatherSometimes = R"(
    %p = tile.view_ptr %a : !tile.view<2xf16> -> !tile.ptr<f16>
    %r = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (ACC) : i32 {
      %sb = tile.load_shared %b[%k, %y : i32, i32] BOX
      %t = tile.load %table[%k : i32] : !tile.view<1xi32> -> i32
      %keep = arith.cmpi sgt, %t, %c2 : i32
      %e = scf.if %keep -> ACC {
        %offsets = tile.splat %t : i32 -> tensor<64x64xi32>
        %sa = tile.gather_shared %p offsets %offsets : tensor<64x64xi32> : !tile.ptr<f16> -> SMEM
        %g = PRODUCT %sa, %sb, %acc SS
        scf.yield %g : ACC
      } else {
        scf.yield %acc : ACC
      }
      %sc = tile.load_shared %c[%k, %y : i32, i32] BOX // A
      %d = PRODUCT %sc, %sb, %e SS
      scf.yield %d : ACC
    } {tile.specialize = 1 : i32})";

/// 8-bit tiles that lie across: %c's are turned, alone or (`beside`) in the stages of the tiles they meet.
std::string turned(bool beside, const std::string& end = "%n", const std::string& hints = "") {
  const std::string across = R"(
      %raw = tile.load_shared %c[%k, %y : i32, i32] BOX
      %rv = tile.smem_load %raw : SMEM -> tensor<64x64xf16>
      %sv = tile.share %rv : tensor<64x64xf16> -> TURNED)";
  std::string body = beside ? R"(
    %r = scf.for %k = %c0 to END step %c1 iter_args(%acc = %zero) -> (ACC) : i32 {
      %sa = tile.load_shared %a[%x, %k : i32, i32] BOX // A
)" + across + R"(
      %d = PRODUCT %sa, %sv, %acc : SMEM, TURNED -> ACC
      scf.yield %d : ACC
    })"
                            : R"(
    %p0 = arith.constant dense<0.0> : tensor<64x64xf16>
    %sq = tile.load_shared %a[%x, %y : i32, i32] BOX // A
    %r, %p1 = scf.for %k = %c0 to END step %c1 iter_args(%acc = %zero, %p = %p0) -> (ACC, tensor<64x64xf16>) : i32 {
      %sk = tile.load_shared %b[%k, %y : i32, i32] BOX
      %skt = tile.smem_trans %sk : SMEM -> TURNED
)" + across + R"(
      %s = PRODUCT %sq, %skt, %zero : SMEM, TURNED -> ACC
      %o = PRODUCT %p, %sv, %acc : tensor<64x64xf16>, TURNED -> ACC
      %e = math.exp2 %s : ACC
      %q = arith.truncf %e : ACC to tensor<64x64xf16>
      scf.yield %o, %q : ACC, tensor<64x64xf16>
    })";
  return replaced(body, "END", end) + hints;
}

/// The same kernel of f8 elements.
std::string ofBytes(std::string text) {
  text = replaced(text, "TURNED", "!tile.smem<64x64xf16, minor = 0>");
  text = replaced(text, "array<i32: 8, 1>", "array<i32: 16, 1>");
  return replaced(replaced(text, "wgmma_f16", "wgmma_f8"), "xf16", "xf8E4M3FN");
}

const char* kWhile = R"(
    %r, %stop = scf.while (%acc = %zero, %at = %c0) : (ACC, i32) -> (ACC, i32) {
      %more = arith.cmpi slt, %at, %n : i32
      scf.condition(%more) %acc, %at : ACC, i32
    } do {
    ^bb0(%acc: ACC, %at: i32):
      %sa = tile.load_shared %a[%x, %at : i32, i32] BOX // A
      %sb = tile.load_shared %b[%at, %y : i32, i32] BOX
      %d = PRODUCT %sa, %sb, %acc SS
      %t = tile.load %table[%at : i32] : !tile.view<1xi32> -> i32
      %step = arith.maxsi %t, %c1 : i32
      %next = arith.addi %at, %step : i32
      scf.yield %d, %next : ACC, i32
    })";

}  // namespace

std::vector<Inputs> trips(std::initializer_list<int64_t> counts, std::array<int64_t, 3> grid) {
  std::vector<Inputs> all;
  for (int64_t n : counts) {
    Inputs inputs;
    inputs.scalars[5] = n;
    inputs.grid = grid;
    inputs.memory = [](int64_t address, llvm::ArrayRef<int64_t> indices) {
      int64_t hash = address % 101;
      for (int64_t index : indices) hash = hash * 31 + index * 11 + 3;
      return (hash % 7 + 7) % 7;
    };
    all.push_back(std::move(inputs));
  }
  return all;
}

std::vector<TestKernel> writtenKernels() {
  // As many stages as rings get unasked, and one more or less; twice and one more.
  auto many = trips({0, 1, 2, 3, 4, 5, 7, 8, 9, 17}, {5, 1, 1});
  auto some = trips({0, 1, 2, 3, 5}, {3, 2, 1});
  return {
      {"gemm", kernelText(gemm(), 2), many},
      {"gemm, three warpgroups", kernelText(gemm(), 3), some},
      {"gemm, one stage", kernelText(gemm(" {tile.specialize = 1 : i32, tile.stages = 1 : i32}"), 2), some},
      {"gemm, two stages", kernelText(gemm(" {tile.stages = 2 : i32}"), 2), some},
      {"gemm, three stages", kernelText(gemm(" {tile.stages = 3 : i32}"), 1), trips({0, 1, 2, 3, 4, 7}, {4, 1, 1})},
      {"attention", kernelText(attention("arith.addi %n, %c0"), 2), many},
      {"attention, causal", kernelText(attention("arith.addi %x, %n"), 2), some},
      {"skipping", kernelText(kSkipping, 2), many},
      {"nested", kernelText(kNested, 2), some},
      {"two loops", kernelText(kTwoLoops, 1), some},
      {"two sizes", kernelText(kTwoSizes, 1), trips({0, 1, 2, 13, 14, 15, 29}, {3, 1, 1})},
      {"while", kernelText(kWhile, 1), some},
      {"gather, one stage", kernelText(gathering(false, 1), 1), trips({0, 1, 2, 3, 4}, {4, 1, 1})},
      {"gather, two stages", kernelText(gathering(false, 2), 1), trips({0, 1, 2, 3, 5}, {4, 1, 1})},
      {"gather, three stages", kernelText(gathering(true, 3), 1), trips({0, 1, 2, 3, 4, 7}, {4, 1, 1})},
      {"gather, uneven", kernelText("%end = arith.addi %x, %n : i32" + gathering(true, 2, "%end"), 1), some},
      {"gather sometimes", kernelText(kGatherSometimes, 1), some},
      {"turned", ofBytes(kernelText(turned(false), 1)), many},
      {"turned, uneven", ofBytes(kernelText("%end = arith.addi %x, %n : i32" + turned(false, "%end"), 1)), some},
      {"turned beside copies", ofBytes(kernelText(turned(true, "%n", " {tile.stages = 2 : i32}"), 1)), many},
  };
}

}  // namespace tile::ir::protocol
