// The visible list of targets.
#include "compiler/targets/target.h"

#include <gtest/gtest.h>

namespace tile::ir {
namespace {

TEST(Targets, EveryListedNameIsFound) {
  for (const std::string& name : targetNames()) {
    if (name.find('<') != std::string::npos) continue;  // host:<cpu> stands for many
    auto target = lookupTarget(name);
    ASSERT_TRUE(target) << name << ": " << target.error().to_string();
    EXPECT_EQ(target->name, name);
  }
}

TEST(Targets, NvidiaFacts) {
  auto a100 = lookupTarget("sm_80"), ada = lookupTarget("sm_89"), hopper = lookupTarget("sm_90a");
  ASSERT_TRUE(a100 && ada && hopper);
  EXPECT_EQ(a100->maxSharedBytes, 163u * 1024);
  EXPECT_EQ(ada->maxSharedBytes, 99u * 1024);
  EXPECT_EQ(hopper->maxSharedBytes, 227u * 1024);
  EXPECT_EQ(hopper->sm, 90);
  EXPECT_EQ(hopper->backend, Backend::nvptx);
  EXPECT_TRUE(a100->hasMma && a100->hasAsyncCopy);
}

TEST(Targets, PortableBaselinesHaveTheirOwnVectors) {
  auto baseline = lookupTarget("host:x86-64"), v3 = lookupTarget("host:x86-64-v3"), v4 = lookupTarget("host:x86-64-v4");
  ASSERT_TRUE(baseline && v3 && v4);
  EXPECT_EQ(baseline->vectorBytes, 16);
  EXPECT_EQ(v3->vectorBytes, 32);
  EXPECT_EQ(v4->vectorBytes, 64);
  EXPECT_EQ(v4->vectorRegisters, 32);
  EXPECT_EQ(v3->cpu, "x86-64-v3");
}

TEST(Targets, UnknownNamesSuggest) {
  auto typo = lookupTarget("sm90a");
  ASSERT_FALSE(typo);
  EXPECT_EQ(typo.error().kind, ErrorKind::user);
  EXPECT_NE(typo.error().message.find("did you mean 'sm_90a'"), std::string::npos) << typo.error().message;
  auto cpu = lookupTarget("host:skylke");
  ASSERT_FALSE(cpu);
  EXPECT_NE(cpu.error().message.find("host:skylake"), std::string::npos) << cpu.error().message;
  EXPECT_FALSE(lookupTarget(""));
  EXPECT_FALSE(lookupTarget("host:"));
  EXPECT_FALSE(lookupTarget(std::string(10000, 'x')));
}

}  // namespace
}  // namespace tile::ir
