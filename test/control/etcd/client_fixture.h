#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "control/etcd/etcd_client.h"
#include "net/socket_options.h"
#include "test/control/etcd/fake_etcd.h"

namespace vpfs::control {

inline constexpr const char* kEmptyRange = R"({"header":{"revision":"5","raft_term":"2"}})";
inline constexpr const char* kJson = "application/json";

inline FakeEtcd::Answer says(std::string body, int status = 200) {
  return [body = std::move(body), status](const FakeEtcd::Asked&, httplib::Response& response) {
    response.status = status;
    response.set_content(body, kJson);
  };
}

class EtcdClientTest : public ::testing::Test {
 protected:
  EtcdClientTest() { net::ignore_broken_pipes(); }

  std::unique_ptr<EtcdClient> client(std::vector<std::string> endpoints,
                                     const std::string& user = "") {
    auto made = EtcdClient::make({.endpoints = std::move(endpoints),
                                  .files = {},
                                  .user = user,
                                  .password = "secret",
                                  .connect_time_out = std::chrono::milliseconds(200),
                                  .call_time_out = std::chrono::milliseconds(300)},
                                 clock_);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  // What a range gives: "done", or what is wrong.
  static std::string ask(EtcdClient& client) {
    const auto answer = client.range({.key = "/a"});
    return answer ? "done" : answer.error().text;
  }

  const SystemClock clock_;
};

}  // namespace vpfs::control
