// Every problem of the catalog, test and edge, on every device present, against the float64 references. The device is
// part of the test's name; a machine without a GPU says so in the one test named after it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/catalog.h"
#include "tests/test_names.h"

namespace tile::kernels {
namespace {

struct Param {
  std::string device;
  const CatalogRow* row;
  size_t problem;
};

void PrintTo(const Param& p, std::ostream* out) {
  *out << p.row->name << " " << p.row->problems[p.problem].to_string() << " on " << p.device;
}

std::vector<Param> all_problems() {
  std::vector<Param> params;
  for (const std::string& device : device_names())
    for (const CatalogRow& row : catalog())
      for (size_t p = 0; p < row.problems.size(); ++p)
        if (row.problems[p].purpose == Purpose::test || row.problems[p].purpose == Purpose::edge)
          params.push_back({device, &row, p});
  return params;
}

std::string test_name(const testing::TestParamInfo<Param>& info) {
  return test_name_of(fmt::format("{}_{}_{}", info.param.device, info.param.row->name,
                                  info.param.row->problems[info.param.problem].to_string()));
}

class Catalog : public testing::TestWithParam<Param> {};

TEST_P(Catalog, AgreesWithReference) {
  const auto& [device_name, row, index] = GetParam();
  const Problem& problem = row->problems[index];
  auto device = open_device(device_name);
  ASSERT_TRUE(device.ok()) << device.error().to_string();
  ConfigWords config = row->default_config(problem, Machine::of((*device)->properties()));
  auto run = row->prepare(*device, problem, config);
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  auto checks = (*run)->check((*device)->default_stream());
  ASSERT_TRUE(checks.ok()) << checks.error().to_string();
  EXPECT_FALSE(checks->empty());
  for (const Check& check : *checks)
    EXPECT_TRUE(check.comparison.pass) << row->name << " " << problem.to_string() << ": " << check.output << ": "
                                       << check.comparison.why;
}

// Nothing here may depend on which warp is faster: the same launch gives the same bits every time.
TEST_P(Catalog, RepeatsBitForBit) {
  const auto& [device_name, row, index] = GetParam();
  const Problem& problem = row->problems[index];
  if (problem.purpose == Purpose::edge) return;  // the ordinary shapes cover every kernel and type
  if (!row->deterministic) GTEST_SKIP() << row->name << " adds in any order";
  auto device = open_device(device_name);
  ASSERT_TRUE(device.ok()) << device.error().to_string();
  auto run = row->prepare(*device, problem, row->default_config(problem, Machine::of((*device)->properties())));
  ASSERT_TRUE(run.ok()) << run.error().to_string();
  auto differing = (*run)->differing_runs((*device)->default_stream(), 20);
  ASSERT_TRUE(differing.ok()) << differing.error().to_string();
  EXPECT_EQ(*differing, 0) << "of 20 runs of " << row->name << " " << problem.to_string();
}

INSTANTIATE_TEST_SUITE_P(All, Catalog, testing::ValuesIn(all_problems()), test_name);

TEST(Devices, GpuPresent) {
  auto names = device_names();
  if (std::none_of(names.begin(), names.end(), [](const std::string& n) { return n.starts_with("cuda"); })) {
    auto gpu = open_device("cuda:0");
    GTEST_SKIP() << "no CUDA device, catalog runs on the host only: " << (gpu.ok() ? "" : gpu.error().message);
  }
}

TEST(CatalogList, NamesAreUniqueAndPartsExist) {
  std::vector<std::string> names;
  for (const CatalogRow& row : catalog()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), row.name), 0) << row.name;
    names.push_back(row.name);
    EXPECT_FALSE(row.problems.empty()) << row.name;
    EXPECT_TRUE(row.kernel != nullptr || !row.parts.empty()) << row.name;
    for (const std::string& part : row.parts) EXPECT_TRUE(find_kernel(part).ok()) << part;
    for (const Problem& p : row.problems)
      EXPECT_NE(std::find(row.dtypes.begin(), row.dtypes.end(), p.dtype), row.dtypes.end())
          << row.name << " " << p.to_string();
  }
}

TEST(CatalogList, UnknownKernelNamesTheNearest) {
  auto row = find_kernel("atention_forward");
  ASSERT_FALSE(row.ok());
  EXPECT_EQ(row.error().kind, ErrorKind::user);
  EXPECT_NE(row.error().message.find("attention_forward"), std::string::npos) << row.error().message;
}

}  // namespace
}  // namespace tile::kernels
