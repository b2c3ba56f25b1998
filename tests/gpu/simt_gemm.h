// simt_gemm.h - a GEMM for sm_90a in LLVM IR, written by hand: a producer warp loads stages with bulk copies, consumer
// warpgroups multiply them with wgmma and store through shared memory. What the simulated machine is tested with;
// faults can be put in to see that it finds them.
#pragma once
#include <fmt/format.h>

#include <string>

#include "tests/gpu/simt.h"

namespace tile::testing {

enum class Fault {
  none,
  noProxyFence,   ///< stores to the staging buffer without fence.proxy.async
  noStagingWait,  ///< writes the staging buffer again while its copy may still read
  earlyRelease,   ///< gives a stage back while products read it
  noWgmmaFence,   ///< accumulators set to zero, then a product without fence
  noFullWait,     ///< multiplies without waiting for the copies
  tooFewBytes,    ///< announces fewer bytes than come
  tooManyBytes,
  readsInFlight,   ///< uses accumulators that did not pass the wait
  poolTooLarge,    ///< setmaxnreg to more registers than there are
  noInitFence,     ///< barriers not made visible
  missingArrival,  ///< one warpgroup never releases
  noFinalWait,     ///< ends before its stores have read shared memory
};

struct GemmCase {
  std::string type = "f16";  ///< wgmma operand type
  DType dtype = DType::f16;
  bool aTransposed = false, bTransposed = false;  ///< stored with M or N contiguous (16-bit types)
  bool aInRegisters = false;                      ///< ldmatrix, then wgmma with A from registers (128-byte rows)
  int n = 64, swizzle = 128, stages = 2, consumers = 2;
  Fault fault = Fault::none;

  bool integer() const { return type == "s8"; }
  int bytes() const { return static_cast<int>(size_of(dtype)); }
  int m() const { return 64 * consumers; }
  int k() const { return aTransposed || bTransposed ? 64 : swizzle / bytes(); }  ///< per stage
  int aBytes() const { return m() * k() * bytes(); }
  int bBytes() const { return n * k() * bytes(); }
};

/// The kernel, its parameters (views a, b, c and i32 k-tiles) and tensor maps.
class GemmIr {
 public:
  explicit GemmIr(const GemmCase& g) : g_(g) {}

  SimtKernel kernel() {
    KernelBinary info;
    info.entry = "gemm";
    info.shared_bytes = static_cast<uint32_t>(barriersAt() + 16 * g_.stages);
    ParamInfo view;
    view.kind = ParamInfo::view;
    view.rank = 2;
    info.params = {view, view, view, ParamInfo{}};
    auto map = [&](uint32_t param, DType dtype, int inner, int rows, int swizzle) {
      TensorMapInfo m;
      m.param = param;
      m.dtype = dtype;
      m.rank = 2;
      m.dims = {1, 0};
      m.box = {static_cast<uint16_t>(inner), static_cast<uint16_t>(rows)};
      m.swizzle = static_cast<uint8_t>(swizzle);
      info.tensor_maps.push_back(m);
    };
    int inner = g_.swizzle / g_.bytes();
    map(0, g_.dtype, inner, g_.aTransposed ? g_.k() : g_.m(), g_.swizzle);
    map(1, g_.dtype, inner, g_.bTransposed ? g_.k() : g_.n, g_.swizzle);
    map(2, g_.integer() ? DType::i32 : DType::f32, 32, 64, 0);
    return SimtKernel(text(), "", info);
  }

  std::string text() {
    header();
    setUp();
    producer();
    consumer();
    out_ += "exit:\n  ret void\n}\n";
    return out_;
  }

 private:
  int stagingAt() const { return g_.stages * (g_.aBytes() + g_.bBytes()); }
  int barriersAt() const { return stagingAt() + g_.consumers * 8192; }  // full[stages], empty[stages]
  bool has(Fault fault) const { return g_.fault == fault; }
  void line(const std::string& text) { out_ += "  " + text + "\n"; }
  void label(const std::string& name) { out_ += name + ":\n"; }
  std::string value(const std::string& expression) {
    std::string name = fmt::format("%v{}", next_++);
    line(name + " = " + expression);
    return name;
  }
  std::string shared(const std::string& offset) {
    return value(fmt::format("getelementptr i8, ptr addrspace(3) @tile_shared, i32 {}", offset));
  }
  /// Address of something of `size` bytes per stage, as i32.
  std::string ofSlot(const std::string& slot, int base, int size) {
    return value(fmt::format("add i32 {}, {}", value(fmt::format("mul i32 {}, {}", slot, size)), base));
  }
  std::string address(const std::string& offset) {
    return value("ptrtoint ptr addrspace(3) " + shared(offset) + " to i32");
  }

  void header() {
    for (const char* d :
         {"i32 @llvm.nvvm.read.ptx.sreg.tid.x()", "i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
          "i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()", "void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)",
          "void @llvm.nvvm.fence.mbarrier_init.release.cluster()", "void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)",
          "void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32)", "{i32, i1} @llvm.nvvm.elect.sync(i32)",
          "void @llvm.nvvm.setmaxnreg.inc.sync.aligned.u32(i32 immarg)",
          "void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32 immarg)",
          "i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)",
          "void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7), ptr addrspace(3), ptr, i32, i32, i16, "
          "i64, i1 "
          "immarg, i1 immarg, i32 immarg)",
          "void @llvm.nvvm.cp.async.bulk.tensor.s2g.tile.2d(ptr addrspace(3), ptr, i32, i32, i64, i1 immarg)",
          "void @llvm.nvvm.cp.async.bulk.commit.group()", "void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 immarg)",
          "void @llvm.nvvm.wgmma.fence.sync.aligned()", "void @llvm.nvvm.wgmma.commit_group.sync.aligned()"})
      out_ += fmt::format("declare {}\n", d);
    out_ += "@tile_shared = external addrspace(3) global [0 x i8], align 1024\n";
    std::string views;
    for (char v : {'a', 'b', 'c'})
      views += fmt::format("ptr addrspace(1) %{0}, i64 %{0}0, i64 %{0}1, i64 %{0}2, i64 %{0}3, ", v);
    std::string maps;
    for (char v : {'a', 'b', 'c'})
      maps += fmt::format(", ptr byval([128 x i8]) align 64 \"nvvm.grid_constant\" %t{}", v);
    out_ +=
        fmt::format("define ptx_kernel void @gemm({}i32 %kt{}) \"nvvm.reqntid\"=\"{}\" \"nvvm.minctasm\"=\"1\" {{\n",
                    views, maps, 128 * (g_.consumers + 1));
  }

  void setUp() {
    label("entry");
    line("%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()");
    line("%tilex = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()");
    line("%tiley = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()");
    line(fmt::format("%row0 = mul i32 %tilex, {}", g_.m()));
    line(fmt::format("%col0 = mul i32 %tiley, {}", g_.n));
    line("%wid0 = lshr i32 %tid, 5");
    line("%wid = call i32 asm \"shfl.sync.idx.b32 $0, $1, 0, 31, -1;\", \"=r,r\"(i32 %wid0) convergent");
    line("%wg = lshr i32 %wid, 2");
    line("%first = icmp eq i32 %tid, 0");
    line("br i1 %first, label %init, label %start");
    label("init");
    for (int i = 0; i < 2 * g_.stages; ++i)
      line(fmt::format("call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) {}, i32 {})",
                       shared(std::to_string(barriersAt() + 8 * i)), i < g_.stages ? 1 : g_.consumers));
    if (!has(Fault::noInitFence)) line("call void @llvm.nvvm.fence.mbarrier_init.release.cluster()");
    line("br label %start");
    label("start");
    line("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)");
    line(fmt::format("%isp = icmp eq i32 %wg, {}", g_.consumers));
    line("br i1 %isp, label %prod, label %cons");
  }

  /// `first`: full barriers begin at 0, empty ones at `stages`.
  std::string barrier(const std::string& slot, int first) { return ofSlot(slot, barriersAt() + 8 * first, 8); }
  void wait(const std::string& barrier, const std::string& parity) {
    line(fmt::format(
        "call void asm sideeffect \"{{.reg .pred P1; W: mbarrier.try_wait.parity.shared.b64 P1, [$0], $1; @P1 "
        "bra.uni D; bra.uni W; D: }}\", \"r,r,~{{memory}}\"(i32 {}, i32 {}) convergent",
        address(barrier), parity));
  }
  void advance(const std::string& role) {
    line(fmt::format(
        "%{0}s1 = add i32 %{0}s, 1\n  %{0}w = icmp eq i32 %{0}s1, {1}\n  %{0}s2 = select i1 %{0}w, i32 0, i32 %{0}s1"
        "\n  %{0}x = xor i32 %{0}p, 1\n  %{0}p2 = select i1 %{0}w, i32 %{0}x, i32 %{0}p\n  %{0}i2 = add i32 %{0}i, 1"
        "\n  %{0}more = icmp slt i32 %{0}i2, %kt",
        role, g_.stages));
  }

  void producer() {
    label("prod");
    int regs = has(Fault::poolTooLarge) ? 32 : 24;
    line(fmt::format("call void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32 {})", regs));
    line(fmt::format("%isw = icmp eq i32 %wid, {}\n  br i1 %isw, label %prod1, label %exit", 4 * g_.consumers));
    label("prod1");
    line("%e = call {i32, i1} @llvm.nvvm.elect.sync(i32 -1)\n  %el = extractvalue {i32, i1} %e, 1");
    line("%any = icmp sgt i32 %kt, 0\n  %go = and i1 %el, %any\n  br i1 %go, label %load, label %exit");
    label("load");
    line(
        "%pi = phi i32 [0, %prod1], [%pi2, %load]\n  %ps = phi i32 [0, %prod1], [%ps2, %load]\n  %pp = phi i32 [0, "
        "%prod1], [%pp2, %load]");
    wait(barrier("%ps", g_.stages), value("xor i32 %pp, 1"));
    std::string full = shared(barrier("%ps", 0));
    int bytes = g_.aBytes() + g_.bBytes() + (has(Fault::tooFewBytes) ? -128 : has(Fault::tooManyBytes) ? 128 : 0);
    value(fmt::format("call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) {}, i32 {})",
                      full, bytes));
    std::string k0 = value(fmt::format("mul i32 %pi, {}", g_.k()));
    copyIn('a', full, ofSlot("%ps", 0, g_.aBytes()), "%row0", k0, g_.m(), g_.aTransposed);
    copyIn('b', full, ofSlot("%ps", g_.stages * g_.aBytes(), g_.bBytes()), "%col0", k0, g_.n, g_.bTransposed);
    advance("p");
    line("br i1 %pmore, label %load, label %exit");
  }
  void copyIn(char name, const std::string& full, const std::string& target, const std::string& mn,
              const std::string& k, int extent, bool transposed) {
    int perPanel = g_.swizzle / g_.bytes();
    for (int panel = 0; panel < (transposed ? extent / perPanel : 1); ++panel) {
      std::string to = shared(value(fmt::format("add i32 {}, {}", target, panel * g_.swizzle * g_.k())));
      std::string at = value(fmt::format("add i32 {}, {}", mn, panel * perPanel));
      line(fmt::format(
          "call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) {}, ptr addrspace(3) {}, ptr %t{}, "
          "i32 {}, i32 {}, i16 0, i64 0, i1 false, i1 false, i32 0)",
          value("addrspacecast ptr addrspace(3) " + to + " to ptr addrspace(7)"), full, name, transposed ? at : k,
          transposed ? k : at));
    }
  }

  // ---- consumers

  std::string record(int n) const {
    std::string text;
    for (int i = 0; i < n; ++i) text += fmt::format("{}{}", i ? ", " : "", scalar());
    return "{ " + text + " }";
  }
  std::string scalar() const { return g_.integer() ? "i32" : "float"; }
  std::string constraint() const { return g_.integer() ? "r" : "f"; }
  std::vector<std::string> parts(const std::string& aggregate, int n) {
    std::vector<std::string> list;
    for (int i = 0; i < n; ++i) list.push_back(value(fmt::format("extractvalue {} {}, {}", record(n), aggregate, i)));
    return list;
  }
  std::string typed(const std::vector<std::string>& values) const {
    std::string text;
    for (const std::string& v : values) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", scalar(), v);
    return text;
  }
  std::string tied(int n) const {
    std::string text;
    for (int i = 0; i < n; ++i) text += "=" + constraint() + ",";
    for (int i = 0; i < n; ++i) text += std::to_string(i) + ",";
    return text;
  }
  std::string descriptor(const std::string& offset, int leading, int stride) {
    uint64_t mode = g_.swizzle == 128 ? 1 : g_.swizzle == 64 ? 2 : 3;
    uint64_t base = mode << 62 | static_cast<uint64_t>(stride >> 4) << 32 | static_cast<uint64_t>(leading >> 4) << 16;
    std::string start = value(fmt::format("lshr i32 {}, 4", value(fmt::format("and i32 {}, 262143", address(offset)))));
    return value(fmt::format("or i64 {}, {}", value("zext i32 " + start + " to i64"), static_cast<int64_t>(base)));
  }

  std::vector<std::string> multiply(std::vector<std::string> acc) {
    int n = g_.n / 2, step = 32 / g_.bytes(), s = g_.swizzle;
    std::string a0 = value(fmt::format("add i32 {}, {}", ofSlot("%cs", 0, g_.aBytes()),
                                       ofSlot("%wg", 0, g_.aTransposed ? 64 * g_.bytes() * g_.k() : 64 * s)));
    std::string b0 = ofSlot("%cs", g_.stages * g_.aBytes(), g_.bBytes());
    std::string outs;
    for (int i = 0; i < n; ++i) outs += fmt::format("{}${}", i ? ", " : "", i);
    std::vector<std::vector<std::string>> fragments;
    for (int k = 0; g_.aInRegisters && k < g_.k(); k += step) fragments.push_back(fragment(a0, k / step));
    if (!has(Fault::noWgmmaFence)) line("call void @llvm.nvvm.wgmma.fence.sync.aligned()");
    for (int k = 0; k < g_.k(); k += step) {
      auto operand = [&](const std::string& base, bool transposed) {
        std::string at = value(fmt::format("add i32 {}, {}", base, transposed ? k * s : k * g_.bytes()));
        return descriptor(at, transposed ? s * g_.k() : 16, 8 * s);
      };
      std::string a = g_.aInRegisters ? "" : operand(a0, g_.aTransposed), b = operand(b0, g_.bTransposed);
      int at = 2 * n;
      std::string aText = fmt::format("${}", at), aArgs = "i64 " + a, aConstraint = "l";
      if (g_.aInRegisters) {
        aText = fmt::format("{{${}, ${}, ${}, ${}}}", at, at + 1, at + 2, at + 3);
        aConstraint = "r,r,r,r";
        aArgs = fmt::format("i32 {}", fmt::join(fragments[static_cast<size_t>(k / step)], ", i32 "));
      }
      std::string transposes = g_.bytes() != 2   ? ""
                               : g_.aInRegisters ? fmt::format(", {:d}", g_.bTransposed)
                                                 : fmt::format(", {:d}, {:d}", g_.aTransposed, g_.bTransposed);
      std::string opcode = fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}", g_.n, step,
                                       g_.integer() ? "s32" : "f32", g_.type, g_.type);
      acc = parts(value(fmt::format(
                      "call {} asm sideeffect \"{} {{{}}}, {}, ${}, 1{}{};\", \"{}{},l\"({}, {}, i64 {}) convergent",
                      record(n), opcode, outs, aText, at + (g_.aInRegisters ? 4 : 1), g_.integer() ? "" : ", 1, 1",
                      transposes, tied(n), aConstraint, typed(acc), aArgs, b)),
                  n);
    }
    line("call void @llvm.nvvm.wgmma.commit_group.sync.aligned()");
    return acc;
  }
  /// Registers of A for k step `step`: rows of 128 bytes, chunks swizzled.
  std::vector<std::string> fragment(const std::string& base, int step) {
    std::string row =
        value(fmt::format("add i32 {}, {}", value("and i32 %lane, 15"), ofSlot(value("and i32 %wid, 3"), 0, 16)));
    std::string chunk = value(fmt::format("add i32 {}, {}", value("lshr i32 %lane, 4"), 2 * step));
    std::string swizzled = value(fmt::format("xor i32 {}, {}", chunk, value("and i32 %lane, 7")));
    std::string at = value(fmt::format("add i32 {}, {}", value(fmt::format("mul i32 {}, 128", row)),
                                       value(fmt::format("mul i32 {}, 16", swizzled))));
    std::string pointer = address(value(fmt::format("add i32 {}, {}", base, at)));
    std::string all =
        value(fmt::format("call {{i32, i32, i32, i32}} asm sideeffect \"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{$0, "
                          "$1, $2, $3}}, [$4];\", "
                          "\"=r,=r,=r,=r,r,~{{memory}}\"(i32 {}) convergent",
                          pointer));
    std::vector<std::string> list;
    for (int i = 0; i < 4; ++i)
      list.push_back(value(fmt::format("extractvalue {{i32, i32, i32, i32}} {}, {}", all, i)));
    return list;
  }
  std::vector<std::string> waitProducts(int pending, const std::vector<std::string>& acc) {
    int n = static_cast<int>(acc.size());
    return parts(value(fmt::format(
                     "call {} asm sideeffect \"wgmma.wait_group.sync.aligned {};\", \"{}~{{memory}}\"({}) convergent",
                     record(n), pending, tied(n), typed(acc))),
                 n);
  }
  void release(const std::string& slot, const std::string& condition) {
    std::string leads = value(fmt::format("and i1 %leads, {}", condition));
    line(
        fmt::format("call void asm sideeffect \"@$1 mbarrier.arrive.shared.b64 _, [$0];\", \"r,b,~{{memory}}\"(i32 {}, "
                    "i1 {}) convergent",
                    address(barrier(slot, g_.stages)), leads));
  }

  void consumer() {
    int n = g_.n / 2;
    std::string zero = g_.integer() ? "0" : "0.0";
    label("cons");
    line(fmt::format("call void @llvm.nvvm.setmaxnreg.inc.sync.aligned.u32(i32 {})", g_.consumers == 1   ? 248
                                                                                     : g_.consumers == 2 ? 240
                                                                                                         : 160));
    line("%lane = and i32 %tid, 31\n  %inwg = and i32 %tid, 127\n  %isl = icmp eq i32 %inwg, 0");
    line(has(Fault::missingArrival) ? "%here = icmp ne i32 %wg, 0\n  %leads = and i1 %isl, %here"
                                    : "%leads = and i1 %isl, true");
    line("%some = icmp sgt i32 %kt, 0\n  br i1 %some, label %loop, label %epi");
    label("loop");
    line(
        "%ci = phi i32 [0, %cons], [%ci2, %loop]\n  %cs = phi i32 [0, %cons], [%cs2, %loop]\n  %cp = phi i32 [0, "
        "%cons], [%cp2, %loop]\n  %prev = phi i32 [0, %cons], [%cs, %loop]");
    size_t phis = out_.size();
    std::vector<std::string> acc;
    for (int i = 0; i < n; ++i) acc.push_back(fmt::format("%acc{}", i));
    if (!has(Fault::noFullWait)) wait(barrier("%cs", 0), "%cp");
    std::vector<std::string> sums = multiply(acc);
    if (!has(Fault::earlyRelease))
      line("call void asm sideeffect \"wgmma.wait_group.sync.aligned 1;\", \"~{memory}\"() convergent");
    release("%prev", value("icmp ne i32 %ci, 0"));
    advance("c");
    line("br i1 %cmore, label %loop, label %last");
    std::string text;
    for (int i = 0; i < n; ++i)
      text +=
          fmt::format("  %acc{} = phi {} [{}, %cons], [{}, %loop]\n", i, scalar(), zero, sums[static_cast<size_t>(i)]);
    out_.insert(phis, text);
    label("last");
    std::vector<std::string> done = has(Fault::readsInFlight) ? sums : waitProducts(0, sums);
    if (has(Fault::readsInFlight))
      line("call void asm sideeffect \"wgmma.wait_group.sync.aligned 0;\", \"~{memory}\"() convergent");
    release("%cs", "true");
    line("br label %epi");
    label("epi");
    std::vector<std::string> result;
    for (int i = 0; i < n; ++i) {
      result.push_back(fmt::format("%r{}", i));
      line(fmt::format("%r{} = phi {} [{}, %cons], [{}, %last]", i, scalar(), zero, done[static_cast<size_t>(i)]));
    }
    store(result);
    line("br label %exit");
  }

  // 32 columns at a time through 64 x 32 words of the warpgroup.
  void store(const std::vector<std::string>& acc) {
    std::string row =
        value(fmt::format("add i32 {}, {}", value("lshr i32 %lane, 2"), ofSlot(value("and i32 %wid, 3"), 0, 16)));
    std::string base = ofSlot("%wg", stagingAt(), 8192), id = value("add i32 %wg, 8");
    std::string col = value("shl i32 " + value("and i32 %lane, 3") + ", 3");
    std::string mine = value(fmt::format(
        "add i32 {}, {}", value(fmt::format("add i32 {}, {}", base, value("shl i32 " + row + ", 7"))), col));
    for (int pass = 0; pass < g_.n / 32; ++pass) {
      auto byLeader = [&](const char* name, auto body) {
        line(fmt::format("br i1 %isl, label %{0}{1}, label %{0}e{1}", name, pass));
        label(fmt::format("{}{}", name, pass));
        body();
        line(fmt::format("br label %{}e{}", name, pass));
        label(fmt::format("{}e{}", name, pass));
      };
      if (!has(Fault::noStagingWait))
        byLeader("w", [&] { line("call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)"); });
      line(fmt::format("call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 {}, i32 128)", id));
      for (int i = 0; i < 16; ++i) {
        int offset = i / 4 * 32 + i % 2 * 4 + i / 2 % 2 * 1024;
        line(fmt::format("store {} {}, ptr addrspace(3) {}", scalar(), acc[static_cast<size_t>(pass * 16 + i)],
                         shared(value(fmt::format("add i32 {}, {}", mine, offset)))));
      }
      if (!has(Fault::noProxyFence))
        line("call void asm sideeffect \"fence.proxy.async.shared::cta;\", \"~{memory}\"()");
      line(fmt::format("call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 {}, i32 128)", id));
      byLeader("s", [&] {
        line(
            fmt::format("call void @llvm.nvvm.cp.async.bulk.tensor.s2g.tile.2d(ptr addrspace(3) {}, ptr %tc, i32 {}, "
                        "i32 {}, i64 0, i1 false)",
                        shared(base), value(fmt::format("add i32 %col0, {}", 32 * pass)),
                        value(fmt::format("add i32 %row0, {}", ofSlot("%wg", 0, 64)))));
        line("call void @llvm.nvvm.cp.async.bulk.commit.group()");
      });
    }
    if (has(Fault::noFinalWait)) return;
    line("br i1 %isl, label %fin, label %exit");
    label("fin");
    line("call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)");
  }

  GemmCase g_;
  std::string out_;
  int next_ = 0;
};

}  // namespace tile::testing
