// Job ids that count only where they are registered.

#include <string>

#include <gtest/gtest.h>

#include "test/support/io_messages.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

// In the form of ProxySettings::whole.
const std::string kConfiguration =
    "proxy: {{listen: {listen}, upstream: {upstream}, status_file: '{status_file}'}}\n"
    "virtual_pfs: {{'job-{{jobid}}': {{weight: 1}}}}\n"
    "rules: [{{match: {{hint: {{jobid: '*'}}}}, virtual_pfs: 'job-{{jobid}}'}}]\n"
    "jobs: registered\n"
    "registered_jobs:\n"
    "  - {{jobid: mine, client: 127.0.0.1, uid: [1000, 1001]}}\n"
    "  - {{jobid: theirs, client: 127.0.0.1, uid: 1001}}\n";

// A connection shows its uid in metadata requests. In this test the uid is 1000.
TEST(RegisteredJobs, TheUidThatAConnectionHasShownMustBeTheJobs) {
  FakeDataServer server;
  ProxyProcess proxy({.upstream = server.port(), .whole = kConfiguration});
  ProxiedLink link = open_link(proxy, server);
  orangefs::Tag tag = 0;
  const auto pass = [&](const Buffer& request, const Buffer& answer) {
    EXPECT_TRUE(link.client.send(request));
    EXPECT_TRUE(link.server.receive());
    EXPECT_TRUE(link.server.send(answer));
    EXPECT_TRUE(link.client.receive());
  };
  const auto ask = [&](const std::string& job) {
    ++tag;
    pass(io_request(tag, {.job = job}), io_response(tag, 0));
  };
  ask("theirs");  // the connection has shown no uid yet
  ++tag;
  pass(getattr_request(tag), getattr_response(tag));
  ask("mine");
  ask("theirs");
  ask("theirs");
  ASSERT_TRUE(proxy.wait_for_outstanding(0));
  const nlohmann::json now = proxy.status();
  EXPECT_EQ(now["counters"]["jobs_not_registered"], 2);
  ASSERT_EQ(now["virtual_pfs"].size(), 3U);
  EXPECT_EQ(now["virtual_pfs"][0]["done_requests"], 2);
  EXPECT_EQ(now["virtual_pfs"][1]["name"], "job-theirs");
  EXPECT_EQ(now["virtual_pfs"][1]["done_requests"], 1);
  EXPECT_EQ(now["virtual_pfs"][2]["name"], "job-mine");
}

}  // namespace
}  // namespace vpfs::test
