#include "control/coordinator/config/store_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/coordinator/config/config.h"
#include "control/coordinator/office/addresses.h"
#include "test/support/places.h"
#include "test/support/process.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kOthers = "name: main\nstages: {dial: [{address: /run/a.sock}]}\n";

Config read_file(const std::string& text, std::vector<std::string>& errors) {
  ConfigErrors found("c.yaml");
  Config config = parse_config(text, found);
  errors = found.lines();
  return config;
}
Config good(const std::string& store) {
  std::vector<std::string> errors;
  Config config = read_file(kOthers + store, errors);
  EXPECT_THAT(errors, IsEmpty());
  return config;
}
std::vector<std::string> errors_of(const std::string& store) {
  std::vector<std::string> errors;
  (void)read_file(kOthers + store, errors);
  return errors;
}

TEST(StoreConfigTest, TheExampleIsGood) {
  std::vector<std::string> errors;
  const Config config =
      read_file(test::read_text(test::source("conf/coordinator-etcd.yaml")), errors);
  EXPECT_THAT(errors, IsEmpty());
  ASSERT_TRUE(config.store && config.store->etcd);
  EXPECT_EQ(config.store->etcd->prefix, "/vpfs/main/");
  EXPECT_EQ(config.store->lease, StoreConfig().lease);
}

TEST(StoreConfigTest, ReadsEveryKey) {
  const Config config = good(
      "store:\n"
      "  lease: 7 s\n"
      "  addresses: [admin0:7313, /run/c.sock]\n"
      "  etcd:\n"
      "    endpoints: ['https://a:2379', 'https://[::1]:2379']\n"
      "    prefix: /sites/one\n"
      "    ca: ca.pem\n"
      "    certificate: c.pem\n"
      "    key: c.key\n"
      "    user: u\n"
      "    password_file: p\n");
  const StoreConfig& store = *config.store;
  EXPECT_EQ(store.lease, 7s);
  EXPECT_THAT(store.addresses, ElementsAre("admin0:7313", "/run/c.sock"));
  EXPECT_THAT(store.etcd->endpoints, ElementsAre("https://a:2379", "https://[::1]:2379"));
  EXPECT_EQ(store.etcd->prefix, "/sites/one/");
  EXPECT_EQ(store.etcd->tls,
            (net::TlsFiles{.certificate = "c.pem", .key = "c.key", .ca = "ca.pem"}));
  EXPECT_EQ(store.etcd->user, "u");
  EXPECT_EQ(store.etcd->password_file, "p");
  EXPECT_EQ(good("store: {directory: /shared}\n").store->directory, "/shared");
}

TEST(StoreConfigTest, NamesEachMistakeAndItsPlace) {
  const auto expect = [](const std::string& store, const std::string& text) {
    EXPECT_THAT(errors_of(store), ElementsAre(HasSubstr(text))) << store;
  };
  expect("", "c.yaml:1: journal: is missing");
  expect("journal: j\nstore: {directory: /shared}\n",
         "journal: is for a coordinator that is alone");
  expect("store: {}\n", "store: expected one of `etcd` and `directory`");
  expect("store: {directory: /d, etcd: {endpoints: ['http://a:1']}}\n",
         "store: expected one of `etcd` and `directory`");
  expect("store: {directory: /d, lease: 1 s}\n", "store.lease: ");
  expect("store: {directory: /d, ttl: 9 s}\n", "lease");
  expect("store: {directory: /d, addresses: [admin0]}\n", "store.addresses[0]: ");
  expect("store: {etcd: {prefix: /x/}}\n", "store.etcd.endpoints: is missing");
  for (const char* const wrong : {"https://a", "https://a:1/x", "https://"}) {
    expect(fmt::format("store: {{etcd: {{endpoints: ['{}'], ca: c}}}}\n", wrong),
           fmt::format("store.etcd.endpoints[0]: \"{}\" is not an endpoint", wrong));
  }
  expect("store: {etcd: {endpoints: ['a:2379']}}\n", "endpoints[0]: \"a:2379\" is not an endpoint");
  expect("store: {etcd: {endpoints: ['ftp://a:1']}}\n", "\"ftp://a:1\" is not an endpoint");
  expect("store: {etcd: {endpoints: ['http://a:1', 'http://a:1']}}\n",
         "store.etcd.endpoints[1]: \"http://a:1\" is given twice");
  expect("store: {etcd: {endpoints: ['http://a:1', 'https://b:1'], ca: c}}\n",
         "store.etcd.endpoints[1]: some endpoints use TLS");
  expect("store: {etcd: {endpoints: ['https://a:1']}}\n", "https needs `ca`");
  expect("store: {etcd: {endpoints: ['http://a:1'], ca: c}}\n", "store.etcd.ca: is for endpoints");
  expect("store: {etcd: {endpoints: ['https://a:1'], ca: c, key: k}}\n",
         "expected both `certificate` and `key`");
  expect("store: {etcd: {endpoints: ['http://a:1'], user: u}}\n",
         "expected both `user` and `password_file`");
  expect("store: {etcd: {endpoints: ['http://a:1'], prefix: x}}\n",
         "store.etcd.prefix: \"x\" is not a prefix of keys");
}

TEST(StoreConfigTest, TheKeysOfASiteNeedItsName) {
  std::vector<std::string> errors;
  (void)read_file("stages: {dial: [{address: /a}]}\nstore: {etcd: {endpoints: ['http://a:1']}}\n",
                  errors);
  EXPECT_THAT(errors, ElementsAre(HasSubstr("store.etcd.prefix: is missing")));
}

TEST(StoreConfigTest, OthersFindItWhereItsControlPortIs) {
  EXPECT_THAT(addresses_of(good("store: {directory: /d}\n")), IsEmpty());
  EXPECT_THAT(addresses_of(good("store: {directory: /d}\ncontrol: {socket: /run/c.sock}\n")),
              ElementsAre("unix:/run/c.sock"));
  const std::string tcp =
      "control: {{socket: /run/c.sock, tcp: '{}', certificate: c, key: k, ca: a, writers: "
      "['cert:x']"
      "}}\nstore: {{directory: /d{}}}\n";
  EXPECT_THAT(addresses_of(good(fmt::format(fmt::runtime(tcp), "10.0.0.1:7313", ""))),
              ElementsAre("10.0.0.1:7313"));
  const auto any = addresses_of(good(fmt::format(fmt::runtime(tcp), "0.0.0.0:7313", "")));
  ASSERT_EQ(any.size(), 1U);
  EXPECT_THAT(any.front(), ::testing::EndsWith(":7313"));
  EXPECT_THAT(any.front(), ::testing::Not(HasSubstr("0.0.0.0")));
  EXPECT_THAT(
      addresses_of(good(fmt::format(fmt::runtime(tcp), "0.0.0.0:7313", ", addresses: [a:1, b:2]"))),
      ElementsAre("a:1", "b:2"));
}

constexpr const char* kShared = "store: {directory: /shared}\ncontrol: {socket: c.sock}\n";

TEST(MembersConfigTest, AllServeStagesIfTheyAreToldTo) {
  EXPECT_FALSE(good(kShared).members);
  const Config config = good(std::string(kShared) + "members: auto\n");
  ASSERT_TRUE(config.members);
  EXPECT_EQ(config.members->port, 0);
  const Config with_port = good(
      "store: {directory: /shared}\nmembers: {port: 7314}\n"
      "control: {tcp: '0.0.0.0:7313', certificate: c, key: k, ca: a, writers: ['cert:c']}\n");
  ASSERT_TRUE(with_port.members);
  EXPECT_EQ(with_port.members->port, 7314);
}

TEST(MembersConfigTest, SaysWhatIsMissing) {
  EXPECT_THAT(errors_of("journal: j\ncontrol: {socket: c.sock}\nmembers: auto\n"),
              ElementsAre(HasSubstr("members: needs `store`")));
  EXPECT_THAT(errors_of("store: {directory: /shared}\nmembers: auto\n"),
              ElementsAre(HasSubstr("members: needs `control`")));
  EXPECT_THAT(errors_of(std::string(kShared) + "parent: {address: /p.sock}\nmembers: auto\n"),
              ElementsAre(HasSubstr("members: is beside `parent`")));
  EXPECT_THAT(errors_of(std::string(kShared) + "members: all\n"),
              ElementsAre(HasSubstr("\"all\" is not one of: auto")));
  EXPECT_THAT(errors_of(std::string(kShared) + "members: {port: 7314}\n"),
              ElementsAre(HasSubstr("is without `control.tcp`")));
  EXPECT_THAT(errors_of(std::string(kShared) + "members: {}\n"),
              ElementsAre(HasSubstr("members.port: is missing")));
}

}  // namespace
}  // namespace vpfs::coordinator
