#include "fuse/posix/config.h"

#include <gmock/gmock.h>

#include "test/support/places.h"
#include "test/support/process.h"

namespace vpfs::fuse {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(MountConfig, TheOneWithoutAFileSharesEquallyAmongJobsAndUsers) {
  ConfigErrors errors("");
  const Config config = parse_config(default_config(), errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(config.policy, "sfq");
  ASSERT_EQ(config.rules.size(), 2U);
  EXPECT_EQ(config.rules[0].virtual_pfs, "job-{jobid}");
  EXPECT_EQ(config.rules[1].virtual_pfs, "user-{uid}");
}

TEST(MountConfig, TheExampleIsRead) {
  ConfigErrors errors("conf/mount.yaml");
  const Config config = parse_config(test::read_text(test::source("conf/mount.yaml")), errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(config.drain, 20s);
  EXPECT_TRUE(config.control.enabled());
}

TEST(MountConfig, WhatOnlyAProxyHasIsAMistake) {
  ConfigErrors errors("m.yaml");
  (void)parse_config("mount: {listen: '127.0.0.1:0', drain: x}\nscheduler: {polcy: sfq}", errors);
  EXPECT_THAT(errors.to_string(), HasSubstr("m.yaml:1: mount.listen: unknown"));
  EXPECT_THAT(errors.to_string(), HasSubstr("m.yaml:1: mount.drain:"));
  EXPECT_THAT(errors.to_string(), HasSubstr("m.yaml:2: scheduler.polcy: unknown"));
}

TEST(MountConfig, ARuleAboutWhatNoMountShowsIsAMistake) {
  ConfigErrors errors("m.yaml");
  (void)parse_config("rules:\n  - match: {target: 5}\n    virtual_pfs: default", errors);
  EXPECT_THAT(errors.to_string(), HasSubstr("a mounted directory"));
}

TEST(MountConfig, SaysWhatAReloadChanges) {
  ConfigErrors errors("m.yaml");
  const Config before = parse_config("mount: {drain: 5s}", errors);
  const Config after = parse_config("mount: {drain: 9s}", errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_THAT(changes(before, after), ::testing::ElementsAre("mount.drain 5 s -> 9 s"));
  EXPECT_THAT(changes(before, before), ::testing::IsEmpty());
}

TEST(MountConfig, HeldWritesHaveABound) {
  ConfigErrors errors("m.yaml");
  const Config standard = parse_config("", errors);
  EXPECT_GE(standard.held_bytes.count, 32 * kMiB);
  EXPECT_LE(standard.held_bytes.count, 256 * kMiB);
  const Config less = parse_config("limits: {held_bytes: 16 MiB}", errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(less.held_bytes.count, 16 * kMiB);
  EXPECT_THAT(changes(standard, less), ::testing::Contains(HasSubstr("limits.held_bytes")));
  (void)parse_config("limits: {held_bytes: 1 MiB}", errors);
  EXPECT_THAT(errors.to_string(), HasSubstr("limits.held_bytes"));
}

}  // namespace
}  // namespace vpfs::fuse
