// ptxas.cpp - finds and runs the PTX assembler, and reads what it says.
#include <cstdlib>
#include <regex>
#include <sstream>

#include "compiler/targets/nvptx.h"
#include "compiler/targets/occupancy.h"
#include "compiler/targets/ptx_text.h"
#include "compiler/targets/sass_in_flight.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/env.h"

namespace tile::ir {
namespace {

std::string readFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// A file in the temp directory that disappears with the object.
struct TempFile {
  llvm::SmallString<128> path;
  std::error_code error;
  explicit TempFile(llvm::StringRef suffix) { error = llvm::sys::fs::createTemporaryFile("tile", suffix, path); }
  ~TempFile() {
    if (!error) llvm::sys::fs::remove(path);
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
};

}  // namespace

std::string findPtxas(const CompileOptions& options) {
  auto usable = [](const std::string& path) { return !path.empty() && llvm::sys::fs::can_execute(path); };
  for (const std::string& chosen : {options.ptxas, env_text(Env::ptxas).value_or("")})
    if (!chosen.empty()) return chosen == "none" ? "" : chosen;  // a wrong path is an error when run, not a silent skip
  for (Env home : {Env::cuda_home, Env::cuda_path})
    if (std::string path = env_text(home).value_or("") + "/bin/ptxas"; env_text(home) && usable(path)) return path;
  if (auto path = llvm::sys::findProgramByName("ptxas")) return *path;
  if (usable("/usr/local/cuda/bin/ptxas")) return "/usr/local/cuda/bin/ptxas";
  return "";
}

std::vector<std::string> parsePtxasLog(const std::string& log, Resources& resources) {
  // "ptxas info    : Used 168 registers, used 1 barriers, 512 bytes smem"
  // "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads"
  static const std::regex registers(R"(Used (\d+) registers)"), shared(R"((\d+)(?:\+\d+)? bytes smem)"),
      stack(R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)");
  std::vector<std::string> warnings;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    std::smatch m;
    if (std::regex_search(line, m, registers)) resources.registers = std::max(resources.registers, std::stoi(m[1]));
    if (std::regex_search(line, m, shared)) resources.static_shared_bytes = static_cast<uint32_t>(std::stoul(m[1]));
    if (std::regex_search(line, m, stack)) {
      resources.stack_bytes = std::stoi(m[1]);
      resources.spill_store_bytes = std::stoi(m[2]);
      resources.spill_load_bytes = std::stoi(m[3]);
    }
    if (line.find("warning") != std::string::npos || line.find("(C7") != std::string::npos) warnings.push_back(line);
  }
  resources.log = log;
  return warnings;
}

namespace {

/// FILE:LINE behind the mark of a piece of the user's assembly.
Diagnostic atMark(llvm::StringRef line, const std::string& message) {
  auto [file, number] = line.split(kUserAsmMark).second.rsplit(':');
  uint32_t at = 0;
  (void)number.trim().getAsInteger(10, at);
  return {Severity::error, message, file.str(), at, 0, {}};
}

/// What ptxas finds in assembly that the kernel's author wrote, at the author's lines. Where a brace or a comment was
/// left open ptxas stumbles behind it: then the first piece of assembly is named.
std::optional<Error> faultOfUserAsm(const std::string& ptx, const std::string& log) {
  static const std::regex fault(R"(line (\d+); (?:error|fatal) *: *(.*))"), atEnd(R"(: *(.*) on line (\d+))");
  if (ptx.find(kUserAsmMark) == std::string::npos) return std::nullopt;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(ptx).split(lines, '\n');
  Error error{ErrorKind::user, "ptxas does not take the kernel's inline assembly", {}};
  std::istringstream in(log);
  std::string elsewhere;
  for (std::string text; std::getline(in, text);) {
    std::smatch m;
    const bool leads = std::regex_search(text, m, fault);
    if (!leads && !std::regex_search(text, m, atEnd)) continue;
    const std::string message = m[leads ? 2 : 1], number = m[leads ? 1 : 2];
    size_t at = lines.size();
    (void)llvm::StringRef(number).getAsInteger(10, at);
    at = std::min(at, lines.size());
    while (at > 0 && !lines[at - 1].contains(kUserAsmMark) && !lines[at - 1].contains("// end inline asm")) --at;
    if (at > 0 && lines[at - 1].contains(kUserAsmMark))
      error.diagnostics.push_back(atMark(lines[at - 1], message));
    else if (elsewhere.empty())
      elsewhere = message;
  }
  if (error.diagnostics.empty() && !elsewhere.empty())
    for (llvm::StringRef line : lines)
      if (line.contains(kUserAsmMark)) {
        const char* hint = ", behind the kernel's assembly, the first of it here: is a brace or a comment left open?";
        error.diagnostics.push_back(atMark(line, elsewhere + hint));
        break;
      }
  if (error.diagnostics.empty()) return std::nullopt;
  return error;
}

struct Assembled {
  std::string bytes;
  Resources resources;
  std::vector<std::string> warnings;
};

Result<Assembled> assembled(const std::string& ptx, const std::string& what, const Target& target,
                            const CompileOptions& options) {
  const std::string program = findPtxas(options);
  if (program.empty()) return Error{ErrorKind::compile, "no ptxas to assemble " + what, {}};

  TempFile source("ptx"), object("cubin"), log("log");
  for (const TempFile* file : {&source, &object, &log})
    if (file->error) return Error{ErrorKind::device, "cannot make a temporary file: " + file->error.message(), {}};
  {
    std::error_code error;
    llvm::raw_fd_ostream out(source.path, error);
    if (!error) out << ptx;
    out.flush();
    if (error || (error = out.error())) {
      out.clear_error();
      return Error{ErrorKind::device, "cannot write " + source.path.str().str() + ": " + error.message(), {}};
    }
  }

  const std::string arch = "-arch=" + target.name;
  llvm::SmallVector<llvm::StringRef, 8> args = {program, arch, "-O3", "-v", source.path, "-o", object.path};
  if (options.lineInfo) args.push_back("-lineinfo");
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log.path),
                                                llvm::StringRef(log.path)};
  std::string why;
  // ptxas touches 10,000 pages for a kernel of 2500 lines: huge ones save 3 to 6 % of its time where the system grants
  // them. A heap that grows by 64 MB (of addresses) at a time has few others left, which saves 2 ms more.
  const std::vector<std::string> variables =
      env_for_child("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864");
  const llvm::SmallVector<llvm::StringRef, 64> environment(variables.begin(), variables.end());
  const int code = llvm::sys::ExecuteAndWait(program, args, llvm::ArrayRef(environment), redirects, 0, 0, &why);
  const std::string text = readFile(log.path);
  if (code != 0) {
    if (auto fault = faultOfUserAsm(ptx, text)) return *fault;
    std::string message = code < 0 ? "cannot run " + program + " on " + what + ": " + why
                                   : "ptxas (" + program + ") failed on " + what + ":\n" + text;
    if (text.find("C7600") != std::string::npos || text.find("Register allocation failed") != std::string::npos)
      message += "the kernel needs more registers than a thread has: use smaller tiles or more warps\n";
    return Error{ErrorKind::compile, message, {}};
  }

  Assembled result;
  result.warnings = parsePtxasLog(text, result.resources);
  result.bytes = readFile(object.path);
  if (!llvm::StringRef(result.bytes).starts_with("\x7f" "ELF"))
    return Error{ErrorKind::compile,
                 "ptxas (" + program + ") ended without an error and made no cubin of " + what + " (" +
                     std::to_string(result.bytes.size()) + " bytes that are no ELF file): is it NVIDIA's assembler?\n" +
                     text,
                 {}};
  return result;
}

/// The same code for one program at least on a multiprocessor. Without a bound ptxas leaves registers for as many
/// programs as there may be, and spills for that (128 threads were given 32 registers each). Empty where the code has a
/// bound of its own, its threads all the registers that there are, or more than two warps a few words in memory for an
/// occupancy step.
std::string withFewestPrograms(const std::string& ptx, const Target& target, const Resources& resources) {
  constexpr int kFewThreads = 64, kFewBytes = 16;
  const int threads = threadsOf(ptx);
  if (threads == 0 || ptx.find(".minnctapersm") != std::string::npos) return "";
  if (resources.registers + kRegisterStep > std::min<int64_t>(target.maxRegsPerThread, target.registersPerSm / threads))
    return "";
  if (threads > kFewThreads && resources.spill_store_bytes <= kFewBytes && resources.spill_load_bytes <= kFewBytes)
    return "";
  return withDirective(ptx, "minnctapersm 1");
}

/// Registers per thread that a program with these threads enters with, for as many programs as its directive asks for.
int enteredWith(const std::string& ptx, const Target& target, int threads) {
  const std::string directive = ".minnctapersm ";
  const size_t at = ptx.find(directive);
  const int programs = at == std::string::npos ? 1 : std::max(std::atoi(ptx.c_str() + at + directive.size()), 1);
  const auto each = std::min<int64_t>(target.registersPerSm / (int64_t{threads} * programs), target.maxRegsPerThread);
  return static_cast<int>(each) / kRegisterStep * kRegisterStep;
}

/// The same code with 16 registers more for threads of the producer, which consumers give up; empty where the code has
/// no such roles, or consumers would have fewer than they enter with. Addresses and counters of a producer with many
/// rings do not always fit.
std::string withRoomierProducer(std::string ptx, const Target& target) {
  constexpr int kMore = 16, kWarpgroup = 128;
  const std::string dec = "setmaxnreg.dec.sync.aligned.u32 \t", inc = "setmaxnreg.inc.sync.aligned.u32 \t";
  size_t producer = ptx.find(dec);
  const int threads = threadsOf(ptx), consumers = threads / kWarpgroup - 1;
  const bool isAlone = producer != std::string::npos && ptx.find(dec, producer + 1) == std::string::npos;
  if (!isAlone || ptx.find(inc) == std::string::npos)
    return "";  // consumers take nothing, or give registers up themselves
  if (consumers < 1 || kMore % (consumers * kRegisterStep) != 0) return "";
  producer += dec.size();
  const int had = std::atoi(ptx.c_str() + producer);
  ptx.replace(producer, ptx.find(';', producer) - producer, std::to_string(had + kMore));
  for (size_t from = 0; (from = ptx.find(inc, from)) != std::string::npos; from += inc.size()) {
    const size_t number = from + inc.size(), end = ptx.find(';', number);
    const int registers = std::atoi(ptx.c_str() + number) - kMore / consumers;
    if (registers < enteredWith(ptx, target, threads)) return "";
    ptx.replace(number, end - number, std::to_string(registers));
  }
  return ptx;
}

/// Whether the code touches registers of products of warpgroups in flight (sass_in_flight.h).
bool touchesInFlight(const Assembled& code, const std::string& ptx, const Target& target) {
  if (!target.hasWgmma || ptx.find("wgmma.mma_async") == std::string::npos) return false;
  const auto sass = readSass(code.bytes, entryOf(ptx), target.sm);
  return sass && !touchedInFlight(*sass).empty();
}

/// The same code where every group of products is over before anything else happens.
std::string waitingForProducts(std::string ptx) {
  const std::string commit = "wgmma.commit_group.sync.aligned;", wait = "\n\twgmma.wait_group.sync.aligned 0;";
  for (size_t at = 0; (at = ptx.find(commit, at)) != std::string::npos; at += wait.size())
    ptx.insert(at += commit.size(), wait);
  return ptx;
}

std::string whatIs(const std::string& ptx, const Target& target) {
  return "kernel `" + entryOf(ptx) + "` for " + target.name;
}

/// The bytes of `code`; what ptxas said of it goes to `resources` and options.onRemark.
std::string reported(Assembled& code, const std::string& what, const CompileOptions& options, Resources& resources) {
  resources = code.resources;
  if (options.onRemark) {
    for (const std::string& line : code.warnings)
      options.onRemark({Severity::warning, what + ": " + line, "", 0, 0, {}});
    if (resources.spill_store_bytes > 0)
      options.onRemark(
          {Severity::remark,
           what + ": " + std::to_string(resources.spill_store_bytes) + " bytes of registers spill to memory",
           "",
           0,
           0,
           {}});
  }
  return std::move(code.bytes);
}

}  // namespace

Result<std::string> runPtxasOnce(const std::string& ptx, const Target& target, const CompileOptions& options,
                                 Resources& resources) {
  const std::string what = whatIs(ptx, target);
  Result<Assembled> code = assembled(ptx, what, target, options);
  if (!code) return code.error();
  return reported(*code, what, options, resources);
}

Result<std::string> runPtxas(const std::string& ptx, const Target& target, const CompileOptions& options,
                             Resources& resources) {
  const std::string what = whatIs(ptx, target);
  Result<Assembled> code = assembled(ptx, what, target, options);
  if (!code) return code.error();
  auto spilled = [](const Assembled& a) { return spilledBytes(a.resources); };
  std::string used = ptx;
  auto helps = [&](std::string other) {  // to spill less
    if (other.empty() || spilled(*code) == 0) return false;
    Result<Assembled> again = assembled(other, what, target, options);
    if (!again || spilled(*again) >= spilled(*code) || again->warnings.size() > code->warnings.size()) return false;
    code = std::move(again), used = std::move(other);
    return true;
  };
  helps(withFewestPrograms(ptx, target, code->resources));
  constexpr int kMostSteps = 3;
  for (int step = 0; step < kMostSteps && helps(withRoomierProducer(used, target)); ++step) {
  }
  // ptxas gives registers of operands that products still read to what the next iteration computes, now and then (seen
  // on an H200 as wrong results of every hundredth random kernel, and not every time).
  if (touchesInFlight(*code, used, target)) {
    const std::string slower = waitingForProducts(used);
    if (Result<Assembled> again = assembled(slower, what, target, options); again) {
      again->warnings.push_back("products are waited for at once: registers of their operands were used meanwhile");
      code = std::move(again);
    }
  }
  return reported(*code, what, options, resources);
}

Result<std::string> tryPtxas(const std::string& ptx, const Target& target, const CompileOptions& options,
                             Resources& resources) {
  CompileOptions quiet = options;
  quiet.onRemark = nullptr;
  return runPtxas(ptx, target, quiet, resources);
}

}  // namespace tile::ir
