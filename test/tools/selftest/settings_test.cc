#include "tools/selftest/settings.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::selftest {
namespace {

using ::testing::HasSubstr;

Options good() {
  return {.on = "tcp-px://stor0:4334/vpfs", .direct = "", .directory = "/test", .share = ""};
}

std::string problem(const Options& options) {
  const Result<Settings> settings = check(options);
  return settings ? "" : settings.error().message;
}

TEST(SelftestSettings, AreGood) {
  const Result<Settings> settings = check(good());
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->time, std::chrono::minutes(3));
  EXPECT_EQ(settings->size.count, kMiB);
  EXPECT_FALSE(settings->is_beegfs());
  EXPECT_FALSE(settings->share);
}

TEST(SelftestSettings, AnEndpointIsRequiredAndRead) {
  Options options = good();
  options.on = "";
  EXPECT_THAT(problem(options), HasSubstr("--on ADDRESS"));
  options.on = "stor0:4334";
  EXPECT_THAT(problem(options), HasSubstr("--on: "));
  options.on = "beegfs://stor0:8003/101";
  EXPECT_EQ(problem(options), "");
}

TEST(SelftestSettings, ADirectoryIsRequired) {
  Options options = good();
  options.directory = "";
  EXPECT_THAT(problem(options), HasSubstr("--directory PATH"));
  options.directory = "test";
  EXPECT_THAT(problem(options), HasSubstr("--directory PATH"));
}

TEST(SelftestSettings, TheDirectWayIsAnotherOneToTheSameKindOfServer) {
  Options options = good();
  options.direct = options.on;
  EXPECT_THAT(problem(options), HasSubstr("--direct: expected another address"));
  options.direct = "beegfs://stor0:8003/101";
  EXPECT_THAT(problem(options), HasSubstr("--direct: expected another address"));
  options.direct = "tcp://stor0:3334/vpfs";
  EXPECT_EQ(problem(options), "");
}

TEST(SelftestSettings, BesideOthersAShareIsRequired) {
  Options options = good();
  options.busy = true;
  EXPECT_THAT(problem(options), HasSubstr("--busy needs --share"));
  options.share = "200MiB/s";
  EXPECT_EQ(problem(options), "");
  options.share = "200MiB";
  EXPECT_THAT(problem(options), HasSubstr("--share: "));
  options.share = "1KiB/s";
  EXPECT_THAT(problem(options), HasSubstr("--share: expected at least"));
}

TEST(SelftestSettings, NoShareHoldsWhatGoesPastTheProxy) {
  Options options = good();
  options.share = "200MiB/s";
  options.direct = "tcp://stor0:3334/vpfs";
  EXPECT_THAT(problem(options), HasSubstr("leave --share out"));
}

TEST(SelftestSettings, TimesAndSizesHaveBounds) {
  for (const double minutes : {-1.0, 0.0, 0.01, 11.0}) {
    Options options = good();
    options.minutes = minutes;
    EXPECT_THAT(problem(options), HasSubstr("--minutes: ")) << minutes;
  }
  for (const char* size : {"x", "4KiB", "1GiB"}) {
    Options options = good();
    options.size = size;
    EXPECT_THAT(problem(options), HasSubstr("--size: ")) << size;
  }
}

TEST(SelftestSettings, TargetsAreTheServerOfABeegfs) {
  Options options = good();
  options.servers = {"s0"};
  EXPECT_EQ(problem(options), "");
  options.on = "beegfs://stor0:8003/101";
  EXPECT_THAT(problem(options), HasSubstr("--server: "));
}

}  // namespace
}  // namespace vpfs::selftest
