#include "dataserver/orangefs/server_config.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/places.h"

namespace vpfs::dataserver {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string problems(const std::string& text) {
  ConfigErrors errors("test.yaml");
  (void)parse_server_config(text, errors);
  return errors.to_string();
}

const std::string kGood =
    "file_system: {id: 7}\n"
    "servers:\n"
    "  - {alias: s0, addresses: ['tcp://127.0.0.1:3334']}\n";

TEST(ServerConfig, TheExampleIsGood) {
  std::ifstream file(test::source("conf/server.yaml"));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  ConfigErrors errors("conf/server.yaml");
  const ServerConfig config = parse_server_config(text, errors);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  ASSERT_EQ(config.servers.size(), 2U);
  EXPECT_EQ(config.servers[0].listen_address(), "127.0.0.1:3334");
  EXPECT_EQ(config.find_server("s1"), 1U);
  EXPECT_EQ(config.find_server("s2"), std::nullopt);
}

TEST(ServerConfig, DefaultsFillTheRest) {
  ConfigErrors errors("test.yaml");
  const ServerConfig config = parse_server_config(kGood, errors);
  EXPECT_TRUE(errors.empty()) << errors.to_string();
  EXPECT_EQ(config.id, 7);
  EXPECT_EQ(config.engine, EngineKind::memory);
  EXPECT_EQ(config.flow_buffer_size, Bytes{262144});
  EXPECT_FALSE(config.device);
}

TEST(ServerConfig, EachServerHasADirectoryAndAMarkOfItsOwn) {
  ServerConfig config;
  config.id = 7;
  config.path = "/srv";
  config.servers = {{.alias = "s0", .addresses = {}}, {.alias = "s1", .addresses = {}}};
  const EngineSettings settings = config.engine_settings(1);
  EXPECT_EQ(settings.directory, "/srv/s1");
  EXPECT_EQ(settings.owner, "file system 7, server 1 of 2");
}

TEST(ServerConfig, AllErrorsComeAtOnceWithLineAndKey) {
  const std::string text =
      "file_system: {id: 0, strp_size: 64 KiB}\n"
      "servers:\n"
      "  - {alias: s0, addresses: ['udp://127.0.0.1:1']}\n"
      "  - {alias: s0, addresses: ['tcp://127.0.0.1']}\n"
      "storage: {engine: tape}\n"
      "device: {parallelism: 2}\n";
  EXPECT_THAT(problems(text),
              AllOf(HasSubstr("test.yaml:1"), HasSubstr("strp_size"), HasSubstr("udp://"),
                    HasSubstr("test.yaml:4"), HasSubstr("is listed twice"),
                    HasSubstr("no valid port"), HasSubstr("engine"), HasSubstr("bandwidth")));
}

TEST(ServerConfig, TheDirectoryEngineNeedsAPath) {
  EXPECT_THAT(problems(kGood + "storage: {engine: directory}\n"), HasSubstr("path"));
  EXPECT_EQ(problems(kGood + "storage: {engine: directory, path: /x}\n"), "");
}

TEST(ServerConfig, OnlyALoneServerMayLeaveItsPortToTheKernel) {
  const std::string one =
      "file_system: {id: 7}\nservers:\n"
      "  - {alias: s0, addresses: ['tcp://127.0.0.1:0']}\n";
  EXPECT_EQ(problems(one), "");
  EXPECT_THAT(problems(one + "  - {alias: s1, addresses: ['tcp://127.0.0.1:9']}\n"),
              HasSubstr("port 0"));
}

TEST(ServerConfig, SomethingMustBeThere) {
  EXPECT_THAT(problems(""), AllOf(HasSubstr("file_system"), HasSubstr("servers")));
}

}  // namespace
}  // namespace vpfs::dataserver
