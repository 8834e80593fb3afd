#include "dataserver/orangefs/fs_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::dataserver {
namespace {

using testing::HasSubstr;

std::string fs_config_text(const ServerConfig& config, const HandleRanges& ranges) {
  return orangefs::write_fs_config(fs_config(config, ranges));
}

ServerConfig two_servers() {
  ServerConfig config;
  config.name = "vpfs";
  config.id = 1234;
  config.servers = {
      {.alias = "s0", .addresses = {"tcp://127.0.0.1:3334", "tcp-px://127.0.0.1:4334"}},
      {.alias = "s1", .addresses = {"tcp://127.0.0.1:3335"}}};
  config.strip_size = Bytes{32768};
  config.client_job_timeout = std::chrono::seconds(77);
  return config;
}

TEST(FsConfig, SaysWhatClientsRead) {
  const ServerConfig config = two_servers();
  const std::string text = fs_config_text(config, HandleRanges(2));
  EXPECT_THAT(text, HasSubstr("BMIModules bmi_tcp\n"));
  EXPECT_THAT(text, HasSubstr("Alias s0 tcp://127.0.0.1:3334,tcp-px://127.0.0.1:4334\n"));
  EXPECT_THAT(text, HasSubstr("Alias s1 tcp://127.0.0.1:3335\n"));
  EXPECT_THAT(text, HasSubstr("Name vpfs\n"));
  EXPECT_THAT(text, HasSubstr("ID 1234\n"));
  EXPECT_THAT(text, HasSubstr("RootHandle 1048576\n"));
  EXPECT_THAT(text, HasSubstr("FlowBufferSizeBytes 262144\n"));
  EXPECT_THAT(text, HasSubstr("ClientJobBMITimeoutSecs 77\n"));
  EXPECT_THAT(text, HasSubstr("Value 32768\n"));
  EXPECT_THAT(text, HasSubstr("DefaultNumDFiles 2\n"));
  EXPECT_LT(text.size(), 65536U);
}

TEST(FsConfig, ProxiesAndClientsReadBackWhatIsSaid) {
  const ServerConfig config = two_servers();
  const HandleRanges ranges(2);
  const auto [read, problem] = orangefs::read_fs_config(fs_config_text(config, ranges));
  EXPECT_FALSE(problem) << problem->message;
  EXPECT_EQ(read, fs_config(config, ranges));
}

TEST(FsConfig, GivesEveryServerItsRanges) {
  const HandleRanges ranges(2);
  const std::string text = fs_config_text(two_servers(), ranges);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::string alias = i == 0 ? "s0" : "s1";
    for (const orangefs::HandleExtent range : {ranges.meta(i), ranges.data(i)}) {
      EXPECT_THAT(text, HasSubstr("Range " + alias + " " + std::to_string(range.first) + "-" +
                                  std::to_string(range.last) + "\n"));
    }
  }
  // Aliases come before the sections that refer to them.
  EXPECT_LT(text.find("<Aliases>"), text.find("<Filesystem>"));
}

TEST(FsConfig, FitsAMessageWithTheMostServers) {
  ServerConfig config = two_servers();
  config.servers.clear();
  for (std::size_t i = 0; i < kMostServers; ++i) {
    config.servers.push_back({.alias = std::string(64, static_cast<char>('a' + i % 26)),
                              .addresses = {std::string(200, 'x')}});
  }
  EXPECT_LT(fs_config_text(config, HandleRanges(kMostServers)).size(), 65536U);
}

}  // namespace
}  // namespace vpfs::dataserver
