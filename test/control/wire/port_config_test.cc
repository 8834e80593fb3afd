#include "control/wire/port_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/control/certificates.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Principal::Kind;

struct Reading {
  PortConfig config;
  std::vector<std::string> errors;
};
Reading read(std::string_view text, MayDial may_dial = MayDial::no) {
  ConfigErrors errors("f.yaml");
  Reading reading;
  {
    ConfigReader reader(text, errors);
    reading.config = read_port_config(reader, {}, may_dial);
  }
  reading.errors = errors.lines();
  return reading;
}

TEST(PortConfig, WithoutTheMappingThereIsNoPort) {
  const Reading reading = read("");
  EXPECT_TRUE(reading.errors.empty());
  EXPECT_FALSE(reading.config.enabled());
}

TEST(PortConfig, ReadsEveryKey) {
  const Reading reading = read(
      "control:\n"
      "  socket: /run/vpfs/a.sock\n"
      "  mode: 0600\n"
      "  group: storage\n"
      "  tcp: 0.0.0.0:7311\n"
      "  certificate: a.pem\n"
      "  key: a.key\n"
      "  ca: ca.pem\n"
      "  readers: '@staff'\n"
      "  writers: [alice, user:bob, group:storage, uid:1001, gid:100, 'cert:ops.example']\n"
      "  audit: /var/log/vpfs/audit.json\n");
  ASSERT_THAT(reading.errors, ElementsAre());
  const PortConfig& config = reading.config;
  EXPECT_EQ(config.socket, "/run/vpfs/a.sock");
  EXPECT_EQ(config.mode, 0600U);
  EXPECT_EQ(config.group, "storage");
  EXPECT_EQ(config.tcp, "0.0.0.0:7311");
  EXPECT_EQ(config.certificate, "a.pem");
  EXPECT_EQ(config.key, "a.key");
  EXPECT_EQ(config.ca, "ca.pem");
  EXPECT_EQ(config.audit, "/var/log/vpfs/audit.json");
  EXPECT_THAT(config.readers, ElementsAre(Principal{.kind = Kind::group, .name = "staff"}));
  EXPECT_THAT(config.writers,
              ElementsAre(Principal{.kind = Kind::user, .name = "alice"},
                          Principal{.kind = Kind::user, .name = "bob"},
                          Principal{.kind = Kind::group, .name = "storage"},
                          Principal{.kind = Kind::uid, .name = "", .id = 1001},
                          Principal{.kind = Kind::gid, .name = "", .id = 100},
                          Principal{.kind = Kind::certificate, .name = "ops.example"}));
}

TEST(PortConfig, TheModeIs0660) {
  EXPECT_EQ(read("control: {socket: /a}").config.mode, 0660U);
}

TEST(PortConfig, TcpIsNeverWithoutTls) {
  const auto errors = read("control:\n  tcp: :7311\n  key: a.key\n").errors;
  EXPECT_THAT(
      errors,
      ElementsAre(
          HasSubstr("f.yaml:1: control.certificate: is missing: TLS needs"),
          HasSubstr("f.yaml:1: control.ca: is missing: TLS needs"),
          HasSubstr("f.yaml:2: control.tcp: ':7311' is not an endpoint: expected HOST:PORT")));
  EXPECT_THAT(read("control: {socket: /a, ca: ca.pem}").errors,
              ElementsAre(HasSubstr("control.ca: needs control.tcp")));
}

TEST(PortConfig, AStageMayHaveACoordinatorToConnectTo) {
  const auto of_stage = [](std::string_view text) { return read(text, MayDial::yes); };
  const PortConfig config = of_stage("control: {coordinator: /run/vpfs/stages.sock}").config;
  EXPECT_THAT(config.coordinators, ElementsAre("/run/vpfs/stages.sock"));
  EXPECT_TRUE(config.enabled()) << "it needs no socket of its own";
  EXPECT_THAT(of_stage("control: {coordinator: 'coord:7311', ca: a, key: b}").errors,
              ElementsAre(HasSubstr("control.certificate: is missing: TLS needs")));
  EXPECT_THAT(
      of_stage("control: {coordinator: 'coord:7311', ca: a, key: b, certificate: c}").errors,
      ElementsAre());
  EXPECT_THAT(of_stage("control: {coordinator: /a, ca: a}").errors,
              ElementsAre(HasSubstr("control.ca: needs control.tcp")));
  for (const char* const address : {"''", "coord", "'coord:0'", "'unix:'"}) {
    EXPECT_THAT(of_stage(std::string("control: {coordinator: ") + address + "}").errors,
                ElementsAre(HasSubstr("expected the path of a socket (/run/vpfs/stages.sock)")))
        << address;
  }
  EXPECT_THAT(read("control: {socket: /a, coordinator: /b}").errors,
              ElementsAre(HasSubstr("control.coordinator")))
      << "a coordinator has none";
}

TEST(PortConfig, ACoordinatorMayHaveSeveralAddresses) {
  const auto of_stage = [](const std::string& list, const std::string& more = "") {
    return read("control:\n  coordinator: " + list + "\n" + more, MayDial::yes);
  };
  EXPECT_THAT(of_stage("[/a, 'unix:/b', /c]").config.coordinators, ElementsAre("/a", "/b", "/c"));
  EXPECT_THAT(
      of_stage("[/a, 'coord:7311']").errors,
      ElementsAre(HasSubstr("control.certificate: is missing"),
                  HasSubstr("control.key: is missing"), HasSubstr("control.ca: is missing")));
  const Reading mixed =
      of_stage("['coord:7311', /a, '[::1]:7311']", "  certificate: c\n  key: k\n  ca: a\n");
  EXPECT_THAT(mixed.errors, ElementsAre());
  EXPECT_THAT(mixed.config.coordinators, ElementsAre("coord:7311", "/a", "[::1]:7311"));

  EXPECT_THAT(of_stage("[/a, what, '', /b]").errors,
              ElementsAre(HasSubstr("f.yaml:2: control.coordinator[1]: \"what\" is not an address: "
                                    "expected the path of a socket (/run/vpfs/stages.sock)"),
                          HasSubstr("f.yaml:2: control.coordinator[2]: \"\" is not an address")));
  EXPECT_THAT(of_stage("[/a, /b, 'unix:/a']").errors,
              ElementsAre(HasSubstr("f.yaml:2: control.coordinator[2]: /a is given twice")));
  EXPECT_THAT(of_stage("[]").errors, ElementsAre(HasSubstr("control.coordinator: ")));
  EXPECT_THAT(of_stage("[[/a]]").errors,
              ElementsAre(HasSubstr("control.coordinator: must be a value or a list of values")));
  std::string many = "[/0";
  for (int i = 1; i < 16; ++i) many += ", /" + std::to_string(i);
  EXPECT_EQ(of_stage(many + "]").config.coordinators.size(), 16U);
  EXPECT_THAT(of_stage(many + ", /16]").errors,
              ElementsAre(HasSubstr("control.coordinator: has 17 addresses; there may be 16")));
}

TEST(PortConfig, MistakesAreNamed) {
  const auto error = [](std::string_view text) {
    const auto errors = read(text).errors;
    return errors.size() == 1 ? errors[0] : "not one error, but " + std::to_string(errors.size());
  };
  EXPECT_THAT(error("control: {}"), HasSubstr("control: has neither a socket nor tcp"));
  EXPECT_THAT(error("control: x"), HasSubstr("control: must be a mapping"));
  EXPECT_THAT(error("control: {socket: ''}"), HasSubstr("control.socket: must be the path"));
  EXPECT_THAT(error("control: {socket: /" + std::string(120, 'x') + "}"),
              HasSubstr("may have 103"));
  EXPECT_THAT(error("control: {socket: /a, mode: 0668}"),
              HasSubstr("is not a mode: expected one such as 0660"));
  EXPECT_THAT(error("control: {socket: /a, mode: 01777}"), HasSubstr("is not a mode"));
  EXPECT_THAT(error("control: {socket: /a, mode: 0060}"),
              HasSubstr("keeps the socket's owner out"));
  EXPECT_THAT(error("control: {socket: /a, admins: root}"), HasSubstr("did you mean \"writers\"?"));
  for (const char* wrong :
       {"'@'", "'user:'", "uid:x", "uid:4294967295", "'cert:'", "host:a", "':a'"}) {
    EXPECT_THAT(error(std::string("control: {socket: /a, writers: ") + wrong + "}"),
                HasSubstr("is not a user, group or certificate: expected alice"));
  }
}

TEST(PortConfig, UsersAndCertificatesThatThisHostLacksAreNamed) {
  PortConfig config;
  config.socket = "/a";
  config.writers = {{.kind = Kind::user, .name = "no-such-user"}};
  const auto problem = [&] {
    ConfigErrors errors("f.yaml");
    check_port_config(config, errors);
    return errors.lines().empty() ? "" : errors.lines()[0];
  };
  EXPECT_THAT(problem(), HasSubstr("control.writers: this host has no user \"no-such-user\""));
  config.writers = {{.kind = Kind::user, .name = "root"}};
  EXPECT_EQ(problem(), "");
  config.readers = {{.kind = Kind::group, .name = "no-such-group"}};
  EXPECT_THAT(problem(), HasSubstr("control.readers: this host has no group \"no-such-group\""));
  config.readers = {};
  config.group = "no-such-group";
  EXPECT_THAT(problem(), HasSubstr("control.group: this host has no group"));
  config.group = "";
  config.tcp = "127.0.0.1:0";
  config.certificate = config.key = config.ca = "/no/such/file";
  EXPECT_THAT(problem(), HasSubstr("control.certificate: /no/such/file: No such file"));
}

TEST(PortConfig, ACertificateThatEndsSoonOrHasEndedIsAWarning) {
  const test::TemporaryDirectory folder;
  test::make_certificates(folder.path(), {"--days", "365", "year"});
  test::make_certificates(folder.path(), {"--days", "29", "month"});
  test::make_certificates(folder.path(), {"--expired", "past"});
  const auto warnings = [&](const std::string& name) {
    const net::TlsFiles files = test::certificate_files(folder.path(), name);
    PortConfig config;
    config.tcp = "127.0.0.1:0";
    config.certificate = files.certificate;
    config.key = files.key;
    config.ca = files.ca;
    ConfigErrors errors("f.yaml");
    check_port_config(config, errors);
    EXPECT_TRUE(errors.empty()) << errors.to_string();
    return errors.warnings();
  };
  EXPECT_THAT(warnings("year"), IsEmpty());
  EXPECT_THAT(warnings("month"), ElementsAre(AllOf(HasSubstr("control.certificate: "),
                                                   HasSubstr("month.pem is valid until 20"))));
  EXPECT_THAT(warnings("past"), ElementsAre(HasSubstr("past.pem has ended at 20")));
}

TEST(PortConfig, AnOpenPortKeepsItsAddress) {
  PortConfig running;
  running.socket = "/a";
  PortConfig wanted = running;
  wanted.writers = {{.kind = Kind::uid, .name = "", .id = 5}};
  wanted.audit = "/b";
  wanted.coordinators = {"/c"};
  EXPECT_TRUE(may_become(running, wanted));
  wanted.socket = "/b";
  EXPECT_THAT(may_become(running, wanted).error().message,
              HasSubstr("control.socket: cannot change"));
}

}  // namespace
}  // namespace vpfs::control
