// commands.h - what the sub-commands of tilec share: exit codes, how errors are shown, where kernels come from.
#pragma once
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "runtime/error.h"

namespace tilec {

// Exit codes, a contract with scripts.
inline constexpr int kOk = 0;
inline constexpr int kDiagnostics = 1;  ///< the kernel, or what it needs of the target, is wrong
inline constexpr int kUsage = 2;        ///< the command line is wrong
inline constexpr int kMissing = 3;      ///< a tool, driver or device is missing or failed
inline constexpr int kInternal = 4;     ///< a bug of the compiler

/// Prints an error and gives its exit code.
int fail(const tile::Error& error);
/// "tilec: message" and kUsage.
int usage(const std::string& message);

/// Where a kernel comes from: a row of the catalog with config fields, a file of tile IR, or "-" for standard input.
struct KernelChoice {
  std::string kernel;
  std::vector<std::string> fields;  ///< "BM=64", "dtype=bf16"
  bool generic = false;             ///< catalog: promise nothing about alignment and divisibility
  std::string problem;              ///< catalog: sizes "M=128 N=64" whose default configuration is meant
};

/// Tile IR as text. Catalog kernels are traced for the target they will be compiled for.
struct Source {
  std::string name;  ///< for file names
  std::string file;  ///< for messages
  std::string text;
};
/// An unknown kernel or field is a usage error and sets `usageError`.
tile::Result<Source> loadSource(const KernelChoice& choice, const std::string& target, bool* usageError);

struct CompileRequest {
  KernelChoice choice;
  std::vector<std::string> targets, emit;
  std::string outputDir;
  bool timeReport = false, remarks = false;
  tile::ir::CompileOptions options;
};
int compile(const CompileRequest& request);
struct ReportRequest {
  bool json = false;
  std::string machine;      ///< peaks of the roofline: "h200", "h100", "a100"; empty: by the target
  std::string device;       ///< measure the problem on it: "cuda:0", "host"; empty: do not
  double milliseconds = 0;  ///< a time of the problem measured elsewhere
};
int report(const CompileRequest& request, const ReportRequest& what);
int check(const KernelChoice& choice, const std::vector<std::string>& targets, bool all);
int list(bool json);
int run(const std::string& file, const std::string& device, bool remarks);
int doctor();

}  // namespace tilec
