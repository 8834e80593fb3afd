#include "control/etcd/etcd_records.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/system_clock.h"
#include "net/socket_options.h"
#include "test/control/etcd/fake_etcd.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;

// An etcd without records, to which more than a hundred keys at once take too long.
void answer(const FakeEtcd::Asked& asked, httplib::Response& response) {
  std::string body = R"({"header":{"revision":"5","raft_term":"2"}})";
  if (asked.path == "/v3/kv/txn") {
    body = R"({"header":{"revision":"5"},"succeeded":true,
        "responses":[{"response_range":{"header":{"revision":"5"}}}]})";
  } else if (asked.body.contains(R"("limit":"1000")") || asked.body.contains(R"("limit":"125")")) {
    std::this_thread::sleep_for(500ms);
  }
  response.set_content(body, "application/json");
}

TEST(EtcdRecords, APageThatDoesNotComeInTimeIsAskedForInSmallerOnes) {
  net::ignore_broken_pipes();
  FakeEtcd etcd(answer);
  const SystemClock clock;
  const auto client = EtcdClient::make(
      {.endpoints = {etcd.url()}, .connect_time_out = 200ms, .call_time_out = 200ms}, clock);
  ASSERT_TRUE(client) << client.error().message;
  const EtcdKeys keys("/vpfs/site/");
  EtcdRecords records(**client, keys);
  records.lead(4);
  const auto loaded = records.load([] {});
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_TRUE(loaded->records.empty());
}

TEST(EtcdRecords, ItsOwnerIsCalledBetweenPages) {
  net::ignore_broken_pipes();
  const EtcdKeys keys("/vpfs/site/");
  std::uint64_t page = 0;
  FakeEtcd etcd([&](const FakeEtcd::Asked& asked, httplib::Response& response) {
    if (asked.path != "/v3/kv/range" || page == 3) return answer(asked, response);
    const std::string key = to_base64(keys.record({.generation = 0, .number = ++page}));
    response.set_content(
        fmt::format(
            R"({{"header":{{"revision":"5"}},"more":true,"kvs":[{{"key":"{}","value":"{}"}}]}})",
            key, to_base64("{}")),
        "application/json");
  });
  const SystemClock clock;
  const auto client = EtcdClient::make({.endpoints = {etcd.url()}}, clock);
  ASSERT_TRUE(client) << client.error().message;
  EtcdRecords records(**client, keys);
  records.lead(4);
  int calls = 0;
  const auto loaded = records.load([&] { ++calls; });
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->records.size(), 3U);
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace vpfs::control
