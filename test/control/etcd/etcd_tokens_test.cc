// Passwords and the tokens that etcd gives for them.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/etcd/client_fixture.h"
#include "test/control/etcd/fake_etcd.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Why = EtcdFailure::Why;

TEST_F(EtcdClientTest, ATokenIsAskedForOnceAndRenewedWhenItHasEnded) {
  std::atomic<int> tokens = 0;
  FakeEtcd etcd([&](const FakeEtcd::Asked& asked, httplib::Response& response) {
    if (asked.path == "/v3/auth/authenticate") {
      response.set_content(R"({"header":{},"token":"t)" + std::to_string(++tokens) + "\"}", kJson);
    } else if (asked.token == "t1" && asked.body.find("Yg==") != std::string::npos) {
      response.status = 401;
      response.set_content(R"({"message":"etcdserver: invalid auth token","code":16,"error":""})",
                           kJson);
    } else {
      response.set_content(kEmptyRange, kJson);
    }
  });
  const auto asking = client({etcd.url()}, "me");
  EXPECT_EQ(ask(*asking), "done");
  EXPECT_EQ(ask(*asking), "done");
  EXPECT_TRUE(asking->range({.key = "b"}));
  EXPECT_EQ(ask(*asking), "done");
  std::vector<std::string> history;
  for (const auto& asked : etcd.asked()) history.push_back(asked.path + " " + asked.token);
  EXPECT_THAT(history,
              ::testing::ElementsAre("/v3/auth/authenticate ", "/v3/kv/range t1", "/v3/kv/range t1",
                                     "/v3/kv/range t1", "/v3/auth/authenticate ", "/v3/kv/range t2",
                                     "/v3/kv/range t2"));
  EXPECT_EQ(etcd.asked()[0].body, R"({"name":"me","password":"secret"})");
  EXPECT_EQ(asking->requests(), 7U);
}

TEST_F(EtcdClientTest, APasswordThatTakesLongerThanCallsIsWaitedForInTheEnd) {
  std::atomic<int> passwords = 0;
  FakeEtcd etcd([&](const FakeEtcd::Asked& asked, httplib::Response& response) {
    if (asked.path == "/v3/auth/authenticate") {
      ++passwords;
      std::this_thread::sleep_for(1s);
      response.set_content(R"({"token":"t"})", kJson);
    } else {
      response.set_content(kEmptyRange, kJson);
    }
  });
  const auto asking = client({etcd.url()}, "me");
  EXPECT_THAT(ask(*asking), HasSubstr("in time"));
  int tries = 1;
  while (tries < 5 && ask(*asking) != "done") ++tries;
  EXPECT_LT(tries, 4);
  EXPECT_LE(passwords, 4);
}

TEST_F(EtcdClientTest, ATokenThatIsNeverTakenIsAFailure) {
  FakeEtcd etcd([](const FakeEtcd::Asked& asked, httplib::Response& response) {
    if (asked.path == "/v3/auth/authenticate") {
      response.set_content(R"({"token":"t"})", kJson);
    } else {
      response.status = 400;
      response.set_content(R"({"message":"auth: revision in header is old","code":3,"error":""})",
                           kJson);
    }
  });
  const auto asking = client({etcd.url()}, "me");
  const auto answer = asking->range({.key = "/a"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().why, Why::refused);
  EXPECT_EQ(asking->requests(), 4U);
  FakeEtcd tokenless(says("{}"));
  EXPECT_THAT(ask(*client({tokenless.url()}, "me")), HasSubstr("no token"));
  const auto odd = client({tokenless.url()}, "\xff\xfe");
  EXPECT_THAT(ask(*odd), HasSubstr("no token")) << "nothing throws";
}

}  // namespace
}  // namespace vpfs::control
