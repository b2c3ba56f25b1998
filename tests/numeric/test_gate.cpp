// Offline gate: every catalog kernel, element type and default config compiles for the GPU targets, is assembled by
// ptxas, and neither spills registers nor draws a warning about serialised matrix instructions (C75xx), nor touches
// registers of a warpgroup's product before it has waited for it (ptxas does not say). Needs no GPU.
// sm_90a sees every config that a problem of the catalog leads to, sm_80 those of the ordinary problems.
// sm_89 (99 KiB for a program, f8 in its tensor cores) sees the ordinary problems' up to PTX.
// What comes out (registers, shared memory, tensor instructions, the order of things in the hottest loop) is compared
// with golden_builds.txt: a change of code generation shows in review as a change of that file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "compiler/targets/sass.h"
#include "compiler/targets/sass_in_flight.h"
#include "kernels/catalog.h"
#include "tests/numeric/golden.h"
#include "tests/spills.h"
#include "tests/test_names.h"

namespace tile::kernels {
namespace {

struct Param {
  std::string target;
  uint32_t shared_bytes;
  const CatalogRow* row;
  Problem problem;
  bool timed = false;  ///< some timed problem leads to this build: it has a line in the golden table
};

void PrintTo(const Param& p, std::ostream* out) {
  *out << p.row->name << " " << p.problem.to_string() << " for " << p.target;
}

Machine machine_of(const std::string& target, uint32_t shared) {
  const bool warpgroups = target == "sm_90a";  // with the tuned configurations that ship
  return {.gpu = true,
          .shared_bytes = shared,
          .multiprocessors = 132,
          .warpgroups = warpgroups,
          .model = warpgroups ? "NVIDIA H200" : ""};
}

/// One problem for each config that the default of some problem of this row leads to.
std::vector<Param> all_builds() {
  std::vector<Param> params;
  for (auto [target, shared] : {std::pair{"sm_80", 166912u}, std::pair{"sm_90a", 232448u}})
    for (const CatalogRow& row : catalog()) {
      if (!row.compilable()) continue;
      std::set<std::pair<std::string, ConfigWords>> seen, timed;
      for (const Problem& p : row.problems)
        if (p.purpose == Purpose::bench) timed.insert({p.dtype, row.default_config(p, machine_of(target, shared))});
      for (const Problem& p : row.problems) {
        const bool isExtra = p.purpose == Purpose::edge || p.purpose == Purpose::build;
        if (p.purpose == Purpose::bench_host || (isExtra && shared < 200000)) continue;
        const std::pair build{p.dtype, row.default_config(p, machine_of(target, shared))};
        if (seen.insert(build).second) params.push_back({target, shared, &row, p, timed.contains(build)});
      }
    }
  return params;
}

std::string test_name(const ::testing::TestParamInfo<Param>& info) {
  return test_name_of(fmt::format("{}_{}_{}", info.param.target, info.param.row->name, info.param.problem.to_string()));
}

bool have_ptxas() {
  static const bool found = std::system("ptxas --version >/dev/null 2>&1") == 0 ||
                            std::system("/usr/local/cuda/bin/ptxas --version >/dev/null 2>&1") == 0 ||
                            std::getenv("TILE_PTXAS");
  return found;
}

/// Bytes of spills that are not an accident: the few of any kernel; and attention with 128 x 64 scores and more than 64
/// channels keeps its row sums (4 words of the loop) and addresses of the copies in local memory: two accumulators of
/// 128 and 64 registers leave no room, smaller tiles read more shared memory. Backward has three accumulators, and dQ
/// leaves with an address for every few elements.
int allowed_spill_bytes(const CatalogRow& row, const Problem& problem) {
  const bool forward = row.name == "attention_forward" || row.name == "block_sparse_attention";
  if (forward && problem.sizes["D"] > 64 && problem.dtype != "f32" && problem.dtype != "tf32")
    return 192;
  // Of few channels in f32, with a bias: ptxas spills 40 bytes with 128 registers, and 100 where it may have all of them.
  if (forward && problem.dtype == "f32" && problem.sizes["varlen"] && problem.sizes["bias"]) return 48;
  // Three loops of a window, each with its addresses.
  if (row.name == "attention_backward" || row.name == "block_sparse_attention_backward") return 400;
  const bool backward =
      row.name == "attention_backward_deterministic" || row.name == "block_sparse_attention_backward_deterministic";
  if (backward && problem.sizes["D"] > 128) return 320;
  if (backward && problem.sizes["softcap"]) return 48;  // the slopes of tanh beside the scores
  // Addresses made before the loop over blocks of K, each read once a block: the levels between rows need all registers
  // (16 channels instead of 32 spill 8 bytes and take half as long again).
  if (row.name == "gla_gradient_keys" || row.name == "gla_backward") return 176;
  // Addresses, too, made before the walk.
  if (row.name == "gla_fused" || row.name == "gla_fused_values") return 72;
  return tile::testing::kFewSpilledBytes;
}

/// Version of ptxas as it says it ("V13.0.88"): another one allocates and schedules differently.
std::string ptxas_version() {
  std::string text;
  if (FILE* pipe = popen("${TILE_PTXAS:-$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)} --version", "r")) {
    char buffer[256];
    while (std::fgets(buffer, sizeof buffer, pipe)) text += buffer;
    pclose(pipe);
  }
  const size_t at = text.rfind(" V");
  return at == std::string::npos ? "unknown" : text.substr(at + 1, text.find_first_of(" \n", at + 1) - at - 1);
}

tile::testing::GoldenTable& golden() {
  static tile::testing::GoldenTable table(TILE_GOLDEN_BUILDS);
  return table;
}

/// "BM=128, causal=false, warps=8" -> "BM=128 warps=8": what is off says nothing.
std::string without_false(const std::string& config) {
  std::string text;
  for (size_t at = 0, end; at < config.size(); at = end + 2) {
    end = std::min(config.find(", ", at), config.size());
    const std::string field = config.substr(at, end - at);
    if (!field.ends_with("=false")) text += (text.empty() ? "" : " ") + field;
  }
  std::replace(text.begin(), text.end(), ':', ' ');
  return text;
}

/// One line for the table.
std::string describe(const KernelBinary& binary, const ir::SassKernel& sass) {
  const Resources& r = binary.resources;
  const ir::SassCounts& c = sass.counts;
  std::string text = fmt::format("threads {} registers {} shared {}", binary.threads, r.registers, binary.shared_bytes);
  if (r.spill_store_bytes || r.spill_load_bytes)
    text += fmt::format(" spills {}/{}", r.spill_store_bytes, r.spill_load_bytes);
  for (auto [name, count] : {std::pair{"HGMMA", c.hgmma},
                             {"QGMMA", c.qgmma},
                             {"IGMMA", c.igmma},
                             {"HMMA", c.hmma},
                             {"IMMA", c.imma},
                             {"DMMA", c.dmma},
                             {"MUFU", c.mufu},
                             {"bulk loads", c.bulkLoads},
                             {"bulk stores", c.bulkStores}})
    if (count) text += fmt::format(" {} {}", name, count);
  const ir::SassLoop* loop = sass.hottestLoop();
  if (loop && c.tensorOps()) text += " | " + sass.phases(*loop);
  return text;
}

/// setmaxnreg hands registers around among what the program entered with; asking for more hangs every launch.
void check_register_pool(const KernelBinary& binary, const ir::SassKernel& sass, const std::string& where) {
  if (sass.registerChanges.empty()) return;
  const auto [least, most] = std::minmax_element(sass.registerChanges.begin(), sass.registerChanges.end());
  const int groups = static_cast<int>(binary.threads) / 128;
  EXPECT_GE(groups, 2) << where;
  EXPECT_LE(*least + (groups - 1) * *most, binary.resources.registers * groups)
      << where << ": setmaxnreg asks for more than " << groups << " warpgroups of " << binary.resources.registers;
}

class Gate : public ::testing::TestWithParam<Param> {
 protected:
  /// Whether launches of few programs (at most one per multiprocessor) have code of their own.
  bool varies_ = false;

  void assembles(bool few) {
    const auto& [target, shared, row, problem, timed] = GetParam();
    const AnyKernel& kernel = *row->kernel(problem.dtype);
    ConfigWords config = row->default_config(problem, machine_of(target, shared));
    KernelOptions options;
    options.few_programs = few;
    auto binary = kernel.compile_for(target, config, dense_specialization(kernel), options);
    ASSERT_TRUE(binary.ok()) << kernel.describe_config(config) << "\n" << binary.error().to_string();
    varies_ = binary->varies_with_grid;
    EXPECT_EQ(binary->format, BinaryFormat::cubin);
    const Resources& r = binary->resources;
    std::string where =
        kernel.symbol(config) + " {" + kernel.describe_config(config) + "}" + (few ? " of few programs" : "");
    EXPECT_LE(r.spill_store_bytes, allowed_spill_bytes(*row, problem)) << where;
    EXPECT_LE(r.spill_load_bytes, allowed_spill_bytes(*row, problem)) << where;
    EXPECT_EQ(r.log.find("C75"), std::string::npos) << where << "\n" << r.log;
    EXPECT_LE(binary->shared_bytes, shared) << where;

    auto sass = ir::readSass(binary->bytes, binary->entry, target == "sm_90a" ? 90 : 80);
    ASSERT_TRUE(sass.ok()) << sass.error().to_string();
    check_register_pool(*binary, *sass, where);
    const auto touched = ir::touchedInFlight(*sass);
    EXPECT_TRUE(touched.empty()) << where << ": " << touched.size() << ", first " << touched.front();
    static const std::string version = ptxas_version();
    if (golden().updating()) golden().setHeader("ptxas", version);
    if (timed && (golden().updating() || golden().header("ptxas") == version)) {
      const std::string key = fmt::format("{} {} {} {}{}", target, row->name, problem.dtype,
                                          without_false(kernel.describe_config(config)), few ? " few_programs" : "");
      EXPECT_EQ(golden().compare(key, describe(*binary, *sass)), "");
    }
  }
};

TEST_P(Gate, AssemblesWithoutSpills) {
  if (!have_ptxas()) GTEST_SKIP() << "ptxas not found in TILE_PTXAS, PATH or /usr/local/cuda/bin";
  assembles(/*few=*/false);
  if (varies_) assembles(/*few=*/true);
}

/// The default configurations of GPUs with 99 KiB for a program (sm_86, sm_89, and sm_120 by the code for sm_89).
class SmallerGpus : public ::testing::TestWithParam<const CatalogRow*> {};

TEST_P(SmallerGpus, HaveRoomForTheDefaults) {
  const CatalogRow& row = *GetParam();
  const uint32_t shared = 101376;
  KernelOptions as_text;
  as_text.ptxas = "none";
  std::set<std::pair<std::string, ConfigWords>> seen;
  for (const Problem& problem : row.problems) {
    if (problem.purpose == Purpose::bench_host || problem.purpose == Purpose::build) continue;
    const ConfigWords config = row.default_config(problem, machine_of("sm_89", shared));
    if (!seen.insert({problem.dtype, config}).second) continue;
    const AnyKernel& kernel = *row.kernel(problem.dtype);
    auto binary = kernel.compile_for("sm_89", config, dense_specialization(kernel), as_text);
    ASSERT_TRUE(binary.ok()) << problem.to_string() << ": " << kernel.describe_config(config) << "\n"
                             << binary.error().to_string();
    EXPECT_LE(binary->shared_bytes, shared) << problem.to_string();
  }
}

std::vector<const CatalogRow*> rows_to_compile() {
  std::vector<const CatalogRow*> rows;
  for (const CatalogRow& row : catalog())
    if (row.compilable()) rows.push_back(&row);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(All, SmallerGpus, ::testing::ValuesIn(rows_to_compile()),
                         [](const auto& info) { return info.param->name; });

/// Lines nobody builds any more. Only a run of everything knows.
class GoldenEnd : public ::testing::Environment {
  void TearDown() override {
    const bool everything = ::testing::GTEST_FLAG(filter) == "*" && !std::getenv("GTEST_TOTAL_SHARDS");
    if (!everything || !have_ptxas()) return;
    if (golden().updating()) return golden().write();
    for (const std::string& key : golden().unused())
      ADD_FAILURE() << "golden_builds.txt has a line of no build: " << key;
  }
};
const auto* const golden_end = ::testing::AddGlobalTestEnvironment(new GoldenEnd);

INSTANTIATE_TEST_SUITE_P(All, Gate, ::testing::ValuesIn(all_builds()), test_name);

}  // namespace
}  // namespace tile::kernels
