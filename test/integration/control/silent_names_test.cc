// vpfsctl where the name service does not answer.

#include <chrono>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/control/certificates.h"
#include "test/support/network_namespaces.h"
#include "test/support/places.h"
#include "test/support/process.h"

namespace vpfs::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// A prolog waits for it, so hosts are looked up side by side, and no longer than --timeout says.
TEST(SilentNameService, IsWaitedForNoLongerThanTheTimeout) {
  constexpr int kProxies = 10;
  const TwoHosts hosts;
  if (!hosts.problem().empty()) GTEST_SKIP() << hosts.problem();
  const TemporaryDirectory directory;
  make_certificates(directory.path(), {"ops"});
  // What goes there is dropped.
  ASSERT_TRUE(run(hosts.at_clients({"ip", "route", "add", "192.0.2.1", "dev", "lo"})).ok());
  const std::string resolver = directory.write("resolv.conf", "nameserver 192.0.2.1\n");
  std::string lines;
  for (int i = 0; i < kProxies; ++i) lines += fmt::format("stor{}.example:7311\n", i);
  const std::string proxies = directory.write("proxies", lines);
  const std::string folder = directory.path();
  const Command command = {"unshare",
                           "--mount",
                           "--propagation",
                           "private",
                           "sh",
                           "-euc",
                           "mount --bind \"$0\" /etc/resolv.conf; exec \"$@\"",
                           resolver,
                           program("vpfsctl"),
                           "--proxies",
                           proxies,
                           "--timeout",
                           "1s",
                           "--certificate",
                           folder + "/ops.pem",
                           "--key",
                           folder + "/ops.key",
                           "--ca",
                           folder + "/ca.pem",
                           "status"};
  std::string output;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run(hosts.at_clients(command), &output).code, 3) << output;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 4s);
  EXPECT_THAT(output, HasSubstr("stor9.example"));
  EXPECT_THAT(output, HasSubstr("not found in time"));
}

}  // namespace
}  // namespace vpfs::test
