#include "proxy/config/host_checks.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/log/log.h"
#include "net/endpoint.h"
#include "test/support/process.h"

namespace vpfs::proxy {
namespace {

struct Found {
  std::string errors;
  std::vector<std::string> warnings;
};

Found check(const std::string& listen, const std::string& upstream, const std::string& more = "") {
  const std::string text =
      fmt::format("proxy:\n  listen: '{}'\n  upstream: '{}'\n  {}\n", listen, upstream, more);
  ConfigErrors errors("p.yaml");
  const Config config = parse_config(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  check_host(config, errors);
  return {.errors = errors.to_string(), .warnings = errors.warnings()};
}

bool connects_to_itself(const std::string& listen, const std::string& upstream) {
  return check(listen, upstream).errors.find("is where the proxy itself listens") !=
         std::string::npos;
}

TEST(HostChecks, AProxyThatWouldConnectToItselfIsRefused) {
  EXPECT_EQ(check("127.0.0.1:4334", "127.0.0.1:4334").errors,
            "p.yaml:3: proxy.upstream: 127.0.0.1:4334 is where the proxy itself listens "
            "(127.0.0.1:4334): each connection would open another one without end\n");
  EXPECT_TRUE(connects_to_itself("127.0.0.1:4334", "localhost:4334") ||
              connects_to_itself("[::1]:4334", "localhost:4334"))
      << "names are looked up";
  EXPECT_TRUE(connects_to_itself("0.0.0.0:4334", "127.0.0.1:4334"));
  EXPECT_TRUE(connects_to_itself("0.0.0.0:4334", "127.3.2.1:4334")) << "all of 127/8 is this host";
  EXPECT_TRUE(connects_to_itself("[::]:4334", "127.0.0.1:4334")) << "[::] takes IPv4 too";
  EXPECT_TRUE(connects_to_itself("[::]:4334", "[::1]:4334"));
  EXPECT_TRUE(connects_to_itself("127.0.0.1:4334", "[::ffff:127.0.0.1]:4334"));
  EXPECT_TRUE(connects_to_itself("127.0.0.1:4334", "0.0.0.0:4334"));
}

TEST(HostChecks, OtherAddressesAndPortsAreNotItself) {
  EXPECT_FALSE(connects_to_itself("127.0.0.1:4334", "127.0.0.1:3334"));
  EXPECT_FALSE(connects_to_itself("127.0.0.1:4334", "127.0.0.2:4334"));
  EXPECT_FALSE(connects_to_itself("0.0.0.0:4334", "192.0.2.1:4334"));
  EXPECT_FALSE(connects_to_itself("[::]:4334", "192.0.2.1:4334"));
  EXPECT_FALSE(connects_to_itself("0.0.0.0:4334", "[::1]:4334")) << "that listens on IPv4 only";
  EXPECT_FALSE(connects_to_itself("127.0.0.1:0", "127.0.0.1:3334"));
}

// A name that needs no name service to be unknown.
const std::string kNobody = std::string(70, 'x');

TEST(HostChecks, ANameThatIsNotFoundIsAWarningHere) {
  const Found found = check("127.0.0.1:4334", kNobody + ":3334");
  EXPECT_EQ(found.errors, "");
  ASSERT_EQ(found.warnings.size(), 1U);
  EXPECT_NE(found.warnings[0].find("p.yaml:3: proxy.upstream: '" + kNobody + ":3334': host not"),
            std::string::npos)
      << found.warnings[0];
}

TEST(HostChecks, ACongestionControlThatTheKernelLacksIsToldWithThoseItHas) {
  const std::string errors =
      check("127.0.0.1:4334", "127.0.0.1:3334", "local_congestion: qubic").errors;
  EXPECT_NE(errors.find("p.yaml:4: proxy.local_congestion: 'qubic' is not "), std::string::npos)
      << errors;
  EXPECT_NE(errors.find("reno"), std::string::npos) << errors << "every kernel has it";
  EXPECT_EQ(check("127.0.0.1:4334", "127.0.0.1:3334", "local_congestion: reno").errors, "");
  EXPECT_EQ(check("127.0.0.1:4334", "127.0.0.1:3334", "local_congestion: system").errors, "");
  EXPECT_EQ(check("127.0.0.1:4334", "127.0.0.1:3334").errors, "") << "the default is never refused";
}

TEST(HostChecks, MoreWorkersThanProcessorsAreAWarning) {
  const auto warnings = [](const std::string& workers, std::size_t processors) {
    ConfigErrors errors("p.yaml");
    const Config config = parse_config(
        "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1', workers: " + workers + "}\n",
        errors);
    check_workers(config, processors, errors);
    EXPECT_EQ(errors.to_string(), "");
    return errors.warnings();
  };
  EXPECT_TRUE(warnings("4", 4).empty());
  EXPECT_TRUE(warnings("auto", 1).empty());
  EXPECT_EQ(
      warnings("4", 3),
      std::vector<std::string>{"p.yaml:1: proxy.workers: 4 workers on 3 processors: more workers "
                               "than processors move no more data, and take turns"});
}

std::string status_problem(const std::string& file) {
  return check("127.0.0.1:4334", "127.0.0.1:3334", "status_file: '" + file + "'").errors;
}

TEST(HostChecks, AControlSocketWithoutRoomForThatOfASuccessorIsAWarning) {
  const test::TemporaryDirectory directory;
  const auto warnings = [&](std::size_t bytes, const std::string& more) {
    std::string socket = directory.path().string() + "/";
    socket.resize(bytes, 's');
    return check("127.0.0.1:0", "127.0.0.1:1",
                 fmt::format("\ncontrol: {{socket: {}}}\n{}", socket, more))
        .warnings;
  };
  EXPECT_EQ(warnings(95, ""), std::vector<std::string>());
  EXPECT_EQ(warnings(96, "restart: {socket: /run/r}"), std::vector<std::string>());
  EXPECT_EQ(
      warnings(96, ""),
      std::vector<std::string>{
          "p.yaml:1: restart.socket: is missing, and control.socket is too long to have "
          "\".restart\" behind it: no process can take over, as `vpfsctl upgrade` has one do"});
}

TEST(HostChecks, AStatusFileThatCannotBeWrittenIsRefused) {
  const test::TemporaryDirectory directory;
  const std::string folder = directory.path().string();
  EXPECT_EQ(status_problem(folder + "/status.json"), "");
  EXPECT_EQ(status_problem("status.json"), "") << "relative to where it starts";
  EXPECT_EQ(
      status_problem(folder + "/none/status.json"),
      fmt::format("p.yaml:4: proxy.status_file: the folder '{}/none' does not exist\n", folder));
  EXPECT_EQ(status_problem(folder),
            fmt::format("p.yaml:4: proxy.status_file: '{}' is a directory, not a file\n", folder));
  EXPECT_FALSE(std::filesystem::exists(folder + "/status.json")) << "checking writes nothing";
}

TEST(HostChecks, AFolderThatIsNotWritableIsRefused) {
  const test::TemporaryDirectory directory;
  const std::string folder = (directory.path() / "closed").string();
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms(0555));
  const bool root = ::geteuid() == 0;
  if (root) ASSERT_EQ(::seteuid(65534), 0);  // a user that permissions bind
  const std::string problem = status_problem(folder + "/status.json");
  if (root) ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(problem, fmt::format("p.yaml:4: proxy.status_file: the folder '{}' is not writable: "
                                 "Permission denied\n",
                                 folder));
}

TEST(HostChecks, LogThatCannotBeWrittenIsAWarningAndAMissingJournalAnError) {
  const test::TemporaryDirectory directory;
  const std::string folder = (directory.path() / "missing").string();
  const auto with_log = [](const std::string& log) {
    return check("127.0.0.1:1", "127.0.0.1:2", "log: " + log);
  };
  const Found missing = with_log(folder + "/log");
  EXPECT_EQ(missing.errors, "");
  EXPECT_EQ(missing.warnings,
            std::vector{fmt::format("p.yaml:4: proxy.log: the folder '{}' does not exist: messages "
                                    "go to standard error until it does",
                                    folder)});
  EXPECT_TRUE(with_log("./log").warnings.empty());
  const Result<void> journal = check_journal();
  EXPECT_EQ(with_log("journal").errors,
            journal ? "" : "p.yaml:4: proxy.log: " + journal.error().message + "\n");
}

// A reload must not wait for a name service.
TEST(HostChecks, AddressesOfARunningProxyAreNotLookedAtAgain) {
  ConfigErrors errors("p.yaml");
  const Config config =
      parse_config("proxy: {listen: '127.0.0.1:4334', upstream: '" + kNobody + ":4334'}\n", errors);
  check_host(config, errors, &config);
  EXPECT_TRUE(errors.empty());
  EXPECT_TRUE(errors.warnings().empty());
}

}  // namespace
}  // namespace vpfs::proxy
