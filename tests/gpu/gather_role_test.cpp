// gather_role_test.cpp - kernels whose producer gathers: rows by a list of indices, whole loops of unknown length,
// stages filled by bulk copies and threads at once, boxes without alignment. On the simulated machine under several
// schedules, against plain loops; and each fault put into the protocol is found and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <regex>

#include "runtime/float_types.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

/// C[m, n] = sum over k of A[ids[m], k] B[k, n]; rows whose id is not below `rows` are zeros. Every row of A that no id
/// names, and what lies between rows, is NaN.
struct Case {
  int stages = 3, warps = 4, blocks = 3;
  bool inBulk = true;     ///< B is a view the copy engine takes; else its box is copied by threads, too
  bool inLoop = false;    ///< the ids are read in the loop, like a block table
  bool isUneven = false;  ///< the loop's end comes from memory: programs draw tickets
  bool gathersB = false;  ///< B through pointers as well: no bulk copies at all
  int pitch = 0;          ///< elements between rows of A; 0: 16-byte pieces
};
constexpr int kTile = 64, kBlock = 32;  ///< rows and columns of a program; depth of an iteration

std::string textOf(const Case& c) {
  const int rows = 16 * c.warps;
  const std::string aligned =
      "tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>";
  const std::string offsetsOf =
      fmt::format(R"(    %ids = tile.load %list[%first : i32] : !tile.view<1xi32> -> tensor<{m}xi32>
    %col_ids = tile.reshape %ids : tensor<{m}xi32> -> tensor<{m}x1xi32>
    %limits = tile.splat %rows : i32 -> tensor<{m}x1xi32>
    %real = arith.cmpi slt, %col_ids, %limits : tensor<{m}x1xi32>
    %pitches = tile.splat %pitch : i32 -> tensor<{m}x1xi32>
    %starts = arith.muli %col_ids, %pitches : tensor<{m}x1xi32>
    %start = tile.broadcast %starts : tensor<{m}x1xi32> -> tensor<{m}x{k}xi32>
    %reals = tile.broadcast %real : tensor<{m}x1xi1> -> tensor<{m}x{k}xi1>
)",
                  fmt::arg("m", rows), fmt::arg("k", kBlock));
  std::string bTile = "%b_tile = tile.load %b[%at, %n0 : i32, i32] : !tile.view<2xf16> -> tensor<32x64xf16>\n";
  if (c.gathersB)
    bTile = R"(%bp = tile.view_ptr %b : !tile.view<2xf16> -> !tile.ptr<f16>
    %bs = tile.view_stride %b, 0 : !tile.view<2xf16>
    %bs32 = arith.trunci %bs : i64 to i32
    %bk = tile.iota : tensor<32xi32>
    %bk1 = tile.reshape %bk : tensor<32xi32> -> tensor<32x1xi32>
    %bats = tile.splat %at : i32 -> tensor<32x1xi32>
    %bk2 = arith.addi %bk1, %bats : tensor<32x1xi32>
    %bss = tile.splat %bs32 : i32 -> tensor<32x1xi32>
    %bk3 = arith.muli %bk2, %bss : tensor<32x1xi32>
    %bn = tile.iota : tensor<64xi32>
    %bn1 = tile.reshape %bn : tensor<64xi32> -> tensor<1x64xi32>
    %bns = tile.splat %n0 : i32 -> tensor<1x64xi32>
    %bn2 = arith.addi %bn1, %bns : tensor<1x64xi32>
    %bkk = tile.broadcast %bk3 : tensor<32x1xi32> -> tensor<32x64xi32>
    %bnn = tile.broadcast %bn2 : tensor<1x64xi32> -> tensor<32x64xi32>
    %bo = arith.addi %bkk, %bnn : tensor<32x64xi32>
    %kend = tile.splat %all : i32 -> tensor<32x1xi32>
    %bin = arith.cmpi slt, %bk2, %kend : tensor<32x1xi32>
    %bdown = tile.broadcast %bin : tensor<32x1xi1> -> tensor<32x64xi1>
    %bd = tile.view_dim %b, 1 : !tile.view<2xf16>
    %bd32 = arith.trunci %bd : i64 to i32
    %nend = tile.splat %bd32 : i32 -> tensor<1x64xi32>
    %bright = arith.cmpi slt, %bn2, %nend : tensor<1x64xi32>
    %brights = tile.broadcast %bright : tensor<1x64xi1> -> tensor<32x64xi1>
    %bins = arith.andi %bdown, %brights : tensor<32x64xi1>
    %b_tile = tile.gather %bp offsets %bo : tensor<32x64xi32> mask %bins : tensor<32x64xi1> : !tile.ptr<f16> -> tensor<32x64xf16>
)";
  return kernel(
      fmt::format("%a: !tile.ptr<f16> {{tile.align = 16 : i32}}, %pitch: i32 {{tile.multiple_of = {} : i32}}, %list: "
                  "!tile.view<1xi32> {{tile.unit_stride = 0 : i32}}, "
                  "%rows: i32, %b: !tile.view<2xf16> {{{}}}, %c: !tile.view<2xf32> {{tile.unit_stride = 1 : i32}}, "
                  "%depths: !tile.ptr<i32>, %all: i32 {{tile.multiple_of = 8 : i32}}",
                  c.pitch % 8 ? 1 : 8, c.inBulk ? aligned : "tile.unit_stride = 1 : i32"),
      fmt::format(R"(  %c0 = arith.constant 0 : i32
  %ck = arith.constant {k} : i32
  %cm = arith.constant {m} : i32
  %cn = arith.constant 64 : i32
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %first = arith.muli %pm, %cm : i32
  %n0 = arith.muli %pn, %cn : i32
  {depth}
  {outside}
  %zero = arith.constant dense<0.0> : tensor<{m}x64xf32>
  %r = scf.for %at = %c0 to %depth step %ck iter_args(%acc = %zero) -> (tensor<{m}x64xf32>) : i32 {{
    {inside}
    %steps = tile.iota : tensor<{k}xi32>
    %ats = tile.splat %at : i32 -> tensor<{k}xi32>
    %ks = arith.addi %steps, %ats : tensor<{k}xi32>
    %row_ks = tile.reshape %ks : tensor<{k}xi32> -> tensor<1x{k}xi32>
    %ends = tile.splat %all : i32 -> tensor<1x{k}xi32>
    %live = arith.cmpi slt, %row_ks, %ends : tensor<1x{k}xi32>
    %lives = tile.broadcast %live : tensor<1x{k}xi1> -> tensor<{m}x{k}xi1>
    %all_ks = tile.broadcast %row_ks : tensor<1x{k}xi32> -> tensor<{m}x{k}xi32>
    %offsets = arith.addi %start, %all_ks : tensor<{m}x{k}xi32>
    %mask = arith.andi %reals, %lives : tensor<{m}x{k}xi1>
    %a_tile = tile.gather %a offsets %offsets : tensor<{m}x{k}xi32> mask %mask : tensor<{m}x{k}xi1> : !tile.ptr<f16> -> tensor<{m}x{k}xf16>
    {b}
    %s = tile.dot %a_tile, %b_tile, %acc : tensor<{m}x{k}xf16>, tensor<{k}x64xf16> -> tensor<{m}x64xf32>
    scf.yield %s : tensor<{m}x64xf32>
  }} {{tile.stages = {stages} : i32, tile.specialize = 1 : i32}}
  tile.store %r, %c[%first, %n0 : i32, i32] : tensor<{m}x64xf32>, !tile.view<2xf32>
)",
                  fmt::arg("m", rows), fmt::arg("k", kBlock), fmt::arg("stages", c.stages), fmt::arg("b", bTile),
                  fmt::arg("depth", c.isUneven ? "%dp = tile.ptr_add %depths, %pm : !tile.ptr<i32>, i32\n  %depth = "
                                                 "tile.gather %dp : !tile.ptr<i32> -> i32"
                                               : "%depth = arith.addi %all, %c0 : i32"),
                  fmt::arg("outside", c.inLoop ? "" : offsetsOf), fmt::arg("inside", c.inLoop ? offsetsOf : "")));
}

/// Elements that differ from the plain loops', for programs that walk over `trips` blocks, the last one not whole;
/// uneven ones over one less for every program further down.
int wrongElements(const Case& c, SimtKernel& kern, int trips, uint32_t seed) {
  const int rows = 16 * c.warps, total = rows * c.blocks, columns = 2 * kTile - 24;
  const int depth = std::max(0, trips * kBlock - 8), tokens = 40;
  const int pitch = c.pitch ? c.pitch : (depth + 23) / 8 * 8, bPitch = c.inBulk ? columns + 8 : columns + 3;
  constexpr uint16_t kNaN = 0x7e00;
  std::mt19937 random(7);
  auto small = [&] { return static_cast<int>(random() % 9) - 4; };
  GuardedBuffer a(static_cast<size_t>(tokens * pitch) * 2), b(static_cast<size_t>(std::max(depth, 1) * bPitch) * 2),
      list(static_cast<size_t>(total) * 4), out(static_cast<size_t>(total * columns) * 4),
      depths(static_cast<size_t>(c.blocks) * 4);
  std::fill_n(a.as<uint16_t>(), tokens * pitch, kNaN);
  std::fill_n(b.as<uint16_t>(), std::max(depth, 1) * bPitch, kNaN);
  std::vector<int> valuesA(static_cast<size_t>(tokens * std::max(depth, 1))),
      valuesB(static_cast<size_t>(std::max(depth, 1) * columns));
  for (int& v : valuesA) v = small();
  for (int& v : valuesB) v = small();
  std::vector<int> ids(static_cast<size_t>(total)), ends(static_cast<size_t>(c.blocks));
  for (int i = 0; i < c.blocks; ++i)
    ends[static_cast<size_t>(i)] = depths.as<int32_t>()[i] = c.isUneven ? std::max(0, trips - i) * kBlock : depth;
  for (int i = 0; i < total; ++i) {
    const int id = random() % 5 == 0 ? tokens + static_cast<int>(random() % 1000) : static_cast<int>(random() % tokens);
    ids[static_cast<size_t>(i)] = list.as<int32_t>()[i] = id;
    // Rows end where the program's loop ends: what is behind stays NaN unless a longer one reads it.
    for (int k = 0; id < tokens && k < std::min(depth, ends[static_cast<size_t>(i / rows)]); ++k)
      a.as<uint16_t>()[id * pitch + k] = half(static_cast<float>(valuesA[static_cast<size_t>(id * depth + k)])).bits;
  }
  for (int k = 0; k < depth; ++k)
    for (int n = 0; n < columns; ++n)
      b.as<uint16_t>()[k * bPitch + n] = half(static_cast<float>(valuesB[static_cast<size_t>(k * columns + n)])).bits;
  std::fill_n(out.as<float>(), total * columns, -1.0f);
  kern.run({slot(a.as<char>()), slot(pitch), slot(list.as<char>()), slot(total), 1, slot(tokens), slot(b.as<char>()), slot(depth),
            slot(columns), slot(bPitch), 1, slot(out.as<char>()), slot(total), slot(columns), slot(columns), 1,
            slot(depths.as<char>()), slot(depth)},
           c.blocks, (columns + kTile - 1) / kTile, 1, seed);
  int wrong = 0;
  for (int i = 0; i < total; ++i)
    for (int n = 0; n < columns; ++n) {
      int sum = 0;
      const int id = ids[static_cast<size_t>(i)];
      for (int k = 0; id < tokens && k < std::min(depth, ends[static_cast<size_t>(i / rows)]); ++k)
        sum += valuesA[static_cast<size_t>(id * depth + k)] * valuesB[static_cast<size_t>(k * columns + n)];
      wrong += out.as<float>()[i * columns + n] != static_cast<float>(sum);
    }
  return wrong;
}

void check(const Case& c, std::initializer_list<int> trips, std::initializer_list<uint32_t> seeds = {0, 1, 2}) {
  SimtKernel kern(textOf(c), "sm_90a", c.warps);
  ASSERT_NE(kern.ptx().find("setmaxnreg"), std::string::npos) << "no roles";
  ASSERT_EQ(kern.binary().uses_tickets, c.isUneven);
  ASSERT_EQ(kern.ptx().find("cp.async.cg") != std::string::npos, c.pitch % 8 == 0);
  ASSERT_EQ(kern.ptx().find("cp.async.bulk.tensor") != std::string::npos, c.inBulk && !c.gathersB);
  for (int n : trips)
    for (uint32_t seed : seeds) {
      SCOPED_TRACE(fmt::format("stages {} warps {} bulk {} in loop {} uneven {} both {} trips {} seed {}", c.stages,
                               c.warps, c.inBulk, c.inLoop, c.isUneven, c.gathersB, n, seed));
      EXPECT_EQ(wrongElements(c, kern, n, seed), 0);
    }
}

TEST(GatherRole, EveryTripCountAndSchedule) {
  for (int stages : {1, 2, 3, 4}) {
    Case c;
    c.stages = stages;
    check(c, {0, 1, stages - 1, stages, stages + 1, 2 * stages + 1});
  }
}

TEST(GatherRole, ConsumersOfEveryNumber) {
  for (int warps : {8, 12}) {
    Case c;
    c.warps = warps;
    check(c, {0, 1, 4, 7});
  }
}

TEST(GatherRole, IndicesFromTheLoopItself) {
  for (int stages : {1, 2, 4}) {
    Case c;
    c.stages = stages, c.inLoop = true;
    check(c, {0, 1, stages - 1, stages, stages + 1, 9});
  }
}

// The queue of positions is read by the producer's own warps, too.
TEST(GatherRole, ProgramsOfDifferentLengthDrawTickets) {
  for (int stages : {1, 3}) {
    Case c;
    c.stages = stages, c.isUneven = true, c.blocks = 5;
    check(c, {0, 1, 2, 3, 4, 6});
    c.inLoop = true, c.warps = 8;
    check(c, {1, 5});
  }
}

TEST(GatherRole, NoBulkCopiesAtAll) {
  Case c;
  c.gathersB = true;
  check(c, {0, 1, 2, 3, 4, 7});
  c = Case();
  c.inBulk = false;  // a box of a view without alignment
  check(c, {0, 1, 2, 3, 4, 7});
}

// Elements one by one through registers: ordinary stores of the producer's threads.
TEST(GatherRole, RowsWithoutAlignment) {
  Case c;
  c.pitch = 333;
  check(c, {0, 1, 3, 5});
}

// ---- faults

/// What the simulated machine says of the kernel with a fault in it, or "".
std::string faultOf(const Case& c, const std::function<void(std::string&)>& change) {
  SimtKernel kern(textOf(c), "sm_90a", c.warps, change);
  for (uint32_t seed = 0; seed < 6; ++seed)
    for (int trips : {1, c.stages, 2 * c.stages + 1}) {
      try {
        if (wrongElements(c, kern, trips, seed)) return "wrong result";
      } catch (const std::runtime_error& error) {
        return error.what();
      }
    }
  return "";
}

TEST(GatherRole, MissingFenceIsNoticed) {
  EXPECT_THAT(
      faultOf(Case(),
              [](std::string& llvm) { replaceAll(llvm, "call void @llvm.nvvm.fence.proxy.async.shared_cta()", ""); }),
      ::testing::HasSubstr("without fence.proxy.async"));
}
TEST(GatherRole, CountingBeforeCopiesLandIsNoticed) {
  // An arrival of the thread's own, at once.
  auto countAtOnce = [](std::string& llvm) {
    replaceAll(llvm, "declare void @llvm.nvvm.cp.async.mbarrier.arrive.noinc.shared(",
               "declare i64 @llvm.nvvm.mbarrier.arrive.shared(");
    const std::string call = "call void @llvm.nvvm.cp.async.mbarrier.arrive.noinc.shared(";
    int count = 0;
    for (size_t at; (at = llvm.find(call)) != std::string::npos; ++count)
      llvm.replace(at, call.size(), fmt::format("%state.{} = call i64 @llvm.nvvm.mbarrier.arrive.shared(", count));
    ASSERT_GT(count, 0);
  };
  Case c;
  c.stages = 4;
  EXPECT_THAT(faultOf(c, countAtOnce), ::testing::HasSubstr("still copies to"));
}
// Of plain stores the hardware's counting knows nothing: those threads count themselves, and fences are wanted all the
// same.
TEST(GatherRole, MissingFenceBehindPlainStoresIsNoticed) {
  Case c;
  c.pitch = 333;
  EXPECT_THAT(
      faultOf(c,
              [](std::string& llvm) { replaceAll(llvm, "call void @llvm.nvvm.fence.proxy.async.shared_cta()", ""); }),
      ::testing::HasSubstr("without fence.proxy.async"));
}
TEST(GatherRole, WrongCountsAreNoticed) {
  // The full barriers of stages of both kinds: the threads of 4 warps and the one that announces bytes.
  auto fills = [](const char* count) {
    return [count](std::string& llvm) { replaceAll(llvm, ", i32 129)", fmt::format(", i32 {})", count)); };
  };
  EXPECT_THAT(faultOf(Case(), fills("130")), ::testing::HasSubstr("mbarrier"));
  EXPECT_NE(faultOf(Case(), fills("128")), "");
}
TEST(GatherRole, CopyingWithoutWaitingForConsumersIsNoticed) {
  Case c;
  c.stages = 2;
  EXPECT_THAT(faultOf(c,
                      [](std::string& llvm) {
                        // The first waits of the text are the producer's: for its scalars', then for its tiles' stages.
                        const std::regex waits(R"(call void asm sideeffect "[^"]*mbarrier.try_wait[^\n]*)");
                        for (int i = 0; i < 2; ++i)
                          llvm = std::regex_replace(llvm, waits, "", std::regex_constants::format_first_only);
                      }),
              ::testing::AnyOf(::testing::HasSubstr("copies to"), ::testing::HasSubstr("overwrites")));
}

}  // namespace
}  // namespace tile::testing
