#include "control/etcd/etcd_client.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/control/etcd/client_fixture.h"
#include "test/control/etcd/fake_etcd.h"
#include "test/control/etcd/raw_server.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using test::ReservedPort;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Why = EtcdFailure::Why;
using Watched = EtcdClient::Watched;

std::string http(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

// A part of a body.
std::string chunk(const std::string& text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

Duration time_of(const std::function<void()>& call) {
  const auto begun = std::chrono::steady_clock::now();
  call();
  return std::chrono::steady_clock::now() - begun;
}

TEST_F(EtcdClientTest, SettingsThatCannotBeRightAreRefused) {
  for (const char* url : {"", "127.0.0.1:2379", "ftp://h:1", "http://h", "http://:1", "http://h:",
                          "http://h:x", "http://h:1/path", "http://u@h:1", "https://h:1?x"}) {
    EXPECT_FALSE(EtcdClient::make({.endpoints = {"http://h:1", url}}, clock_)) << url;
  }
  EXPECT_FALSE(EtcdClient::make({.endpoints = {}}, clock_));
  for (const char* url : {"http://[::1]:2379", "https://etcd.example.org:2379"}) {
    EXPECT_TRUE(EtcdClient::make({.endpoints = {url}}, clock_)) << url;
  }
  const auto without_file = EtcdClient::make(
      {.endpoints = {"https://h:1"}, .files = {.certificate = "", .key = "", .ca = "/no/ca.pem"}},
      clock_);
  ASSERT_FALSE(without_file);
  EXPECT_THAT(without_file.error().message, HasSubstr("/no/ca.pem"));
}

TEST_F(EtcdClientTest, ARangeIsAskedForAndUnderstood) {
  FakeEtcd etcd(says(R"({"header":{"revision":"12","raft_term":"3"},"kvs":[{"key":"L2E=",
      "value":"eA==","mod_revision":"9007199254740993"}],"count":"1"})"));
  const auto asking = client({etcd.url()});
  const auto answer = asking->range({.key = "/a"});
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(answer->revision, 12);
  EXPECT_EQ(answer->raft_term, 3U);
  ASSERT_THAT(answer->found, SizeIs(1));
  EXPECT_EQ(answer->found[0].key, "/a");
  EXPECT_EQ(answer->found[0].mod_revision, 9007199254740993);
  ASSERT_THAT(etcd.asked(), SizeIs(1));
  EXPECT_EQ(etcd.asked()[0].path, "/v3/kv/range");
  EXPECT_EQ(etcd.asked()[0].body, R"({"key":"L2E="})");
  EXPECT_EQ(etcd.asked()[0].token, "");
}

TEST_F(EtcdClientTest, LeasesAreGrantedKeptAndRevoked) {
  FakeEtcd etcd([](const FakeEtcd::Asked& asked, httplib::Response& response) {
    const std::string header = R"("header":{"raft_term":"4"})";
    if (asked.path == "/v3/lease/grant") {
      response.set_content("{" + header + R"(,"ID":"7587848390000000001","TTL":"2"})", kJson);
    } else if (asked.body.find("\"8\"") != std::string::npos) {
      response.set_content(R"({"result":{)" + header + R"(,"ID":"8"}})", kJson);
    } else if (asked.path == "/v3/lease/keepalive") {
      response.set_content(R"({"result":{)" + header + R"(,"ID":"9","TTL":"5"}})", kJson);
    } else {
      response.status = 404;
      response.set_content(R"({"error":"x","message":"etcdserver: lease not found","code":5})",
                           kJson);
    }
  });
  const auto asking = client({etcd.url()});
  const auto granted = asking->grant_lease(1s);
  ASSERT_TRUE(granted) << granted.error().text;
  EXPECT_EQ(granted->id, 7587848390000000001);
  EXPECT_EQ(granted->time, 2s);
  const auto kept = asking->keep_alive(9);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->time, 5s);
  EXPECT_EQ(kept->raft_term, 4U);
  const auto ended = asking->keep_alive(8);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().why, Why::not_found);
  const auto revoked = asking->revoke_lease(8'000);
  ASSERT_FALSE(revoked);
  EXPECT_EQ(revoked.error().why, Why::not_found);
}

TEST_F(EtcdClientTest, AnswersThatAreNotUnderstoodAreFailures) {
  for (const char* body :
       {"", "{", "[]", "null", "<html>", "{}", R"({"header":{"revision":"x"}})",
        R"({"header":{},"kvs":7})", R"({"header":{},"kvs":[{"key":"*"}]})", "{\"a\":\"\xff\"}"}) {
    FakeEtcd etcd(says(body));
    const auto asking = client({etcd.url()});
    const auto answer = asking->range({.key = "/a"});
    ASSERT_FALSE(answer) << body;
    EXPECT_EQ(answer.error().why, Why::unreachable) << body;
    EXPECT_THAT(answer.error().text, HasSubstr("not understood")) << body;
  }
}

TEST_F(EtcdClientTest, ErrorsHaveTheStatusTheCodeAndTheEndpoint) {
  FakeEtcd etcd(
      says("{\"error\":\"x\",\"message\":\"etcdserver: permission\\ndenied\",\"code\":7}", 403));
  const auto asking = client({etcd.url()});
  EXPECT_THAT(ask(*asking), AllOf(HasSubstr(etcd.url()), HasSubstr("HTTP 403"), HasSubstr("code 7"),
                                  HasSubstr("permission\\ndenied"), HasSubstr("/v3/kv/range")));
  FakeEtcd other(says("Not Found", 404));
  const auto answer = client({other.url()})->range({.key = "/a"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().why, Why::refused);
  EXPECT_THAT(answer.error().text, HasSubstr("HTTP 404: Not Found"));
}

TEST_F(EtcdClientTest, AnErrorWithATrailerIsUnderstood) {
  RawServer etcd([](RawServer::Connection& peer) {
    while (peer.read_request()) {
      (void)peer.send(
          "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
          "Trailer: Grpc-Trailer-Content-Type\r\nTransfer-Encoding: chunked\r\n\r\n" +
          chunk(R"({"error":"x","message":"revision has been compacted","code":11})") +
          "0\r\nGrpc-Trailer-Content-Type: application/grpc\r\n\r\n");
    }
  });
  const auto asking = client({etcd.url()});
  for (int time = 0; time < 3; ++time) {
    const auto answer = asking->range({.key = "/a"});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().why, Why::compacted) << answer.error().text;
  }
}

TEST_F(EtcdClientTest, AnAnswerThatIsCutOffIsAFailure) {
  for (const char* status : {"200 OK", "400 Bad Request"}) {
    RawServer etcd([&](RawServer::Connection& peer) {
      if (!peer.read_request()) return;
      (void)peer.send("HTTP/1.1 " + std::string(status) +
                      "\r\nContent-Length: 99\r\n\r\n{\"error\":\"x\",\"co");
    });
    const auto asking = client({etcd.url()});
    const auto answer = asking->range({.key = "/a"});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().why, Why::unreachable);
    EXPECT_THAT(answer.error().text, HasSubstr("not understood"));
  }
}

TEST_F(EtcdClientTest, AHugeAnswerIsNotTaken) {
  for (const std::string length : {"Content-Length: 100000000000\r\n\r\n", "\r\n"}) {
    std::atomic<std::size_t> sent = 0;
    RawServer etcd([&](RawServer::Connection& peer) {
      if (!peer.read_request()) return;
      (void)peer.send("HTTP/1.1 200 OK\r\n" + length + "{\"a\":\"");
      const std::string part(std::size_t{1} << 20, 'x');
      while (!peer.is_over() && peer.send(part)) sent += part.size();
    });
    auto settings_client =
        EtcdClient::make({.endpoints = {etcd.url()}, .call_time_out = 20s}, clock_);
    ASSERT_TRUE(settings_client);
    const auto answer = (*settings_client)->range({.key = "/a"});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().why, Why::too_large) << answer.error().text;
    EXPECT_LT(sent, EtcdClient::kMostAnswer + (std::size_t{16} << 20));
  }
}

TEST_F(EtcdClientTest, AnEndpointThatIsSilentMakesWayForTheNext) {
  RawServer silent([](RawServer::Connection& peer) { peer.hang(); });
  FakeEtcd etcd(says(kEmptyRange));
  const auto asking = client({silent.url(), etcd.url()});
  EXPECT_LT(time_of([&] { EXPECT_EQ(ask(*asking), "done"); }), 3s);
  EXPECT_EQ(asking->requests(), 2U);
  // The next call begins with the one that answered.
  EXPECT_EQ(ask(*asking), "done");
  EXPECT_EQ(asking->requests(), 3U);
}

TEST_F(EtcdClientTest, AnEndpointThatDripsDoesNotHoldACall) {
  const auto drip = [](RawServer::Connection& peer, const std::string& first) {
    if (!peer.read_request() || !peer.send(first)) return;
    while (!peer.is_over() && peer.send("x")) std::this_thread::sleep_for(20ms);
  };
  for (const std::string first : {"", "HTTP/1.1 ", "HTTP/1.1 200 OK\r\nX: ",
                                  "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"}) {
    RawServer etcd([&](RawServer::Connection& peer) { drip(peer, first); });
    const auto asking = client({etcd.url()});
    EXPECT_LT(time_of([&] { EXPECT_THAT(ask(*asking), HasSubstr("not answered in time")); }),
              1500ms)
        << first;
  }
}

TEST_F(EtcdClientTest, AnEndpointThatDripsAHandshakeDoesNotHoldACall) {
  RawServer etcd([&](RawServer::Connection& peer) {
    // A record of TLS that never ends.
    if (!peer.send(std::string("\x16\x03\x03\x40\x00\x02\x00\x3f\x00", 9))) return;
    while (!peer.is_over() && peer.send("x")) std::this_thread::sleep_for(20ms);
  });
  const auto asking = client({"https" + etcd.url().substr(4)});
  EXPECT_LT(time_of([&] { EXPECT_THAT(ask(*asking), HasSubstr("not answered in time")); }), 3s);
}

TEST_F(EtcdClientTest, AnEndpointThatRefusesMakesWayForTheNext) {
  const ReservedPort none;
  FakeEtcd etcd(says(kEmptyRange));
  const auto asking = client({"http://" + none.address(), etcd.url()});
  EXPECT_EQ(ask(*asking), "done");
  EXPECT_EQ(ask(*asking), "done");
  EXPECT_EQ(asking->requests(), 3U);
  const auto nowhere = client({"http://" + none.address()});
  EXPECT_THAT(ask(*nowhere), AllOf(HasSubstr(none.address()), HasSubstr("cannot be connected to")));
}

TEST_F(EtcdClientTest, AnEndpointThatIsNotAvailableMakesWayForTheNext) {
  FakeEtcd leaderless(says(R"({"error":"x","message":"etcdserver: no leader","code":14})", 503));
  FakeEtcd broken(says("<html>Bad Gateway</html>", 502));
  FakeEtcd etcd(says(kEmptyRange));
  const auto asking = client({leaderless.url(), broken.url(), etcd.url()});
  EXPECT_EQ(ask(*asking), "done");
  EXPECT_EQ(ask(*asking), "done");
  EXPECT_THAT(leaderless.asked(), SizeIs(1));
}

TEST_F(EtcdClientTest, WhatMayHaveBeenCarriedOutIsNotSentAgainUnlessThatDoesNoHarm) {
  FakeEtcd slow(says(R"({"error":"x","message":"etcdserver: request timed out","code":14})", 503));
  RawServer silent([](RawServer::Connection& peer) { peer.hang(); });
  FakeEtcd etcd(says(R"({"header":{"revision":"5"},"succeeded":true})"));
  for (const std::string& first : {slow.url(), silent.url()}) {
    const auto asking = client({first, etcd.url()});
    const auto put = asking->put("/a", "x");
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().why, Why::unreachable);
    EXPECT_EQ(asking->requests(), 1U);
    EXPECT_TRUE(asking->transact({.compares = {}, .success = {etcd_put("/a", "x")}, .failure = {}},
                                 EtcdClient::Repeat::yes));
  }
  // What was not sent is not carried out.
  const ReservedPort none;
  EXPECT_TRUE(client({"http://" + none.address(), etcd.url()})->put("/a", "x"));
}

TEST_F(EtcdClientTest, AConnectionThatTheServerHasClosedIsMadeAnew) {
  RawServer etcd([](RawServer::Connection& peer) {
    if (peer.read_request() && peer.send(http(kEmptyRange))) (void)peer.read_request();
  });
  const auto asking = client({etcd.url()});
  for (int time = 0; time < 5; ++time) EXPECT_EQ(ask(*asking), "done");
  EXPECT_EQ(etcd.connections(), 5U);
  EXPECT_EQ(asking->requests(), 9U);
}

TEST_F(EtcdClientTest, AConnectionIsKept) {
  RawServer etcd([](RawServer::Connection& peer) {
    while (peer.read_request() && peer.send(http(kEmptyRange))) continue;
  });
  const auto asking = client({etcd.url()});
  for (int time = 0; time < 5; ++time) EXPECT_EQ(ask(*asking), "done");
  EXPECT_EQ(etcd.connections(), 1U);
}

// Watches.

constexpr const char* kStream = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr const char* kCreated = "{\"result\":{\"header\":{},\"created\":true}}\n";
constexpr const char* kEvent = "{\"result\":{\"header\":{},\"events\":[{\"kv\":{}}]}}\n";

TEST_F(EtcdClientTest, AWatchEndsWithAnEventAlsoOneInPieces) {
  RawServer etcd([](RawServer::Connection& peer) {
    if (!peer.read_request() || !peer.send(kStream + chunk(kCreated))) return;
    std::this_thread::sleep_for(50ms);
    const std::string event = kEvent;
    (void)peer.send(chunk(event.substr(0, 20)));
    std::this_thread::sleep_for(50ms);
    (void)peer.send(chunk(event.substr(20)));
    peer.hang();
  });
  const auto asking = client({etcd.url()});
  EXPECT_LT(time_of([&] { EXPECT_EQ(asking->watch({"/a", "/b"}, 5, 10s), Watched::event); }), 2s);
}

TEST_F(EtcdClientTest, AWatchAsksForEachKeyFromTheNextRevisionOn) {
  FakeEtcd etcd(says(kEvent));
  const auto asking = client({etcd.url()});
  EXPECT_EQ(asking->watch({"/a", "/b"}, 5, 10s), Watched::event);
  ASSERT_THAT(etcd.asked(), SizeIs(1));
  EXPECT_EQ(etcd.asked()[0].path, "/v3/watch");
  EXPECT_EQ(
      etcd.asked()[0].body,
      "{\"create_request\":{\"key\":\"L2E=\",\"start_revision\":\"6\",\"watch_id\":\"1\"}}\n"
      "{\"create_request\":{\"key\":\"L2I=\",\"start_revision\":\"6\",\"watch_id\":\"2\"}}\n");
}

TEST_F(EtcdClientTest, AWatchThatEndsInTheMiddleIsBroken) {
  for (const std::string& end :
       {std::string(), chunk("{\"result\":{\"hea"), chunk("garbage\n"), chunk(""),
        chunk("{\"error\":{\"grpc_code\":14,\"message\":\"gone\"}}\n"),
        chunk("{\"result\":{\"canceled\":true}}\n")}) {
    RawServer etcd([&](RawServer::Connection& peer) {
      if (peer.read_request()) (void)peer.send(kStream + chunk(kCreated) + end);
    });
    const auto asking = client({etcd.url()});
    EXPECT_LT(time_of([&] { EXPECT_EQ(asking->watch({"/a"}, 5, 10s), Watched::broken); }), 2s)
        << end;
  }
  FakeEtcd refusing(says(R"({"error":"x","message":"no","code":7})", 403));
  EXPECT_EQ(client({refusing.url()})->watch({"/a"}, 5, 10s), Watched::broken);
}

TEST_F(EtcdClientTest, AWatchOfARevisionThatIsNotKeptIsAnEvent) {
  FakeEtcd etcd(says("{\"result\":{\"canceled\":true,\"compact_revision\":\"9\"}}\n"));
  EXPECT_EQ(client({etcd.url()})->watch({"/a"}, 5, 10s), Watched::event);
}

TEST_F(EtcdClientTest, AWatchEndsWithItsPatience) {
  RawServer etcd([](RawServer::Connection& peer) {
    if (peer.read_request() && peer.send(kStream + chunk(kCreated))) peer.hang();
  });
  RawServer silent([](RawServer::Connection& peer) { peer.hang(); });
  const auto asking = client({etcd.url()});
  // Longer than a call may take.
  const Duration took =
      time_of([&] { EXPECT_EQ(asking->watch({"/a"}, 5, 900ms), Watched::nothing); });
  EXPECT_GE(took, 900ms);
  EXPECT_LT(took, 2s);
  const auto hanging = client({silent.url()});
  EXPECT_LT(time_of([&] { (void)hanging->watch({"/a"}, 5, 50ms); }), 1s);
  EXPECT_LT(time_of([&] { (void)hanging->watch({"/a"}, 5, 10s); }), 2s);
}

TEST_F(EtcdClientTest, AWatchThatSendsTooMuchIsBroken) {
  RawServer etcd([](RawServer::Connection& peer) {
    if (!peer.read_request() || !peer.send(kStream)) return;
    const std::string part = chunk(std::string(4'000, 'x'));
    while (!peer.is_over() && peer.send(part)) continue;
  });
  EXPECT_LT(
      time_of([&] { EXPECT_EQ(client({etcd.url()})->watch({"/a"}, 5, 30s), Watched::broken); }),
      20s);
}

// Cancelling.

TEST_F(EtcdClientTest, CancellingEndsWhatBlocksForGood) {
  RawServer silent([](RawServer::Connection& peer) { peer.hang(); });
  RawServer streaming([](RawServer::Connection& peer) {
    if (peer.read_request() && peer.send(kStream + chunk(kCreated))) peer.hang();
  });
  const std::string secure = "https" + silent.url().substr(4);
  const std::vector<std::pair<std::string, std::function<void(EtcdClient&)>>> calls = {
      {silent.url(), [](EtcdClient& client) { EXPECT_THAT(ask(client), HasSubstr("cancelled")); }},
      {secure, [](EtcdClient& client) { EXPECT_THAT(ask(client), HasSubstr("cancelled")); }},
      {streaming.url(), [](EtcdClient& client) { (void)client.watch({"/a"}, 5, 1h); }},
      {silent.url(), [this](EtcdClient& client) { client.sleep_until(clock_.now() + 1h); }}};
  for (const auto& [url, call] : calls) {
    auto made = EtcdClient::make(
        {.endpoints = {url, url}, .connect_time_out = 60s, .call_time_out = 60s}, clock_);
    ASSERT_TRUE(made);
    EtcdClient& asking = **made;
    std::atomic<std::chrono::steady_clock::time_point> cancelled;
    std::thread other([&] {
      std::this_thread::sleep_for(200ms);
      cancelled = std::chrono::steady_clock::now();
      asking.cancel();
    });
    call(asking);
    EXPECT_LT(std::chrono::steady_clock::now() - cancelled.load(), 1s);
    other.join();
    EXPECT_LT(time_of([&] { EXPECT_NE(ask(asking), "done"); }), 1s);
    EXPECT_LT(time_of([&] { (void)asking.watch({"/a"}, 5, 1h); }), 1s);
    EXPECT_LT(time_of([&] { asking.sleep_until(clock_.now() + 1h); }), 1s);
  }
}

}  // namespace
}  // namespace vpfs::control
