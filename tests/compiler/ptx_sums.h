// ptx_sums.h - PTX of a loop whose loads ptxas may start together or one after the other.
#pragma once
#include <string>

namespace tile::ir {

/// A loop that multiplies and adds what it loads from `rows` places, 16 bytes each.
inline std::string sumsOf(int rows, const std::string& bounds = "") {
  auto text = [](const std::string& name, int i) { return "%" + name + std::to_string(i); };
  std::string sums, loads, adds, stores;
  for (int i = 0; i < rows; ++i) {
    const std::string first = text("d", 2 * i), second = text("d", 2 * i + 1);
    sums += "\tmov.f64 " + first + ", 0d0000000000000000;\n\tmov.f64 " + second + ", 0d0000000000000000;\n";
    loads +=
        "\tadd.s64 %p, %p, %rd2;\n\tld.global.v2.f64 {" + text("x", 2 * i) + ", " + text("x", 2 * i + 1) + "}, [%p];\n";
    adds += "\tfma.rn.f64 " + first + ", " + text("x", 2 * i) + ", %s, " + first + ";\n\tfma.rn.f64 " + second + ", " +
            text("x", 2 * i + 1) + ", %s, " + second + ";\n";
    stores += "\tst.global.v2.f64 [%p], {" + first + ", " + second + "};\n\tadd.s64 %p, %p, 4096;\n";
  }
  const std::string many = std::to_string(2 * rows);
  return ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 "
         "n)\n" +
         bounds +
         ".reqntid 128\n{\n\t.reg .pred %q;\n\t.reg .b32 %i, %n, %t;\n\t.reg .b64 %p, %base, %rd2, %rd3;\n"
         "\t.reg .f64 %s, %d<" +
         many + ">, %x<" + many +
         ">;\n"
         "\tld.param.u64 %base, [a];\n\tld.param.u64 %rd2, [b];\n\tld.param.u32 %n, [n];\n\tmov.u32 %t, %tid.x;\n"
         "\tmul.wide.u32 %rd3, %t, 16;\n\tadd.s64 %base, %base, %rd3;\n\tcvt.rn.f64.u32 %s, %t;\n\tmov.u32 %i, 0;\n" +
         sums + "again:\n\t.pragma \"nounroll\";\n\tmov.b64 %p, %base;\n" + loads + adds +
         "\tadd.s64 %base, %base, 2048;\n\tadd.u32 %i, %i, 1;\n\tsetp.lt.u32 %q, %i, %n;\n\t@%q bra again;\n"
         "\tmov.b64 %p, %base;\n" +
         stores + "\tret;\n}\n";
}

}  // namespace tile::ir
