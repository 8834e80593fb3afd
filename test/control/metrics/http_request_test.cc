#include "control/metrics/http_request.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

int problem_of(const std::string& head) {
  const auto parsed = parse_request(head);
  return parsed ? 0 : parsed.error();
}

TEST(HttpRequest, FirstLineSaysWhatIsAskedFor) {
  EXPECT_EQ(parse_request("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
            (HttpRequest{.path = "/metrics", .query = "", .host = "x"}));
  EXPECT_EQ(parse_request("HEAD /healthz?a=b&c HTTP/1.0\n\n"),
            (HttpRequest{.head_only = true, .path = "/healthz", .query = "a=b&c", .host = ""}));
}

TEST(HttpRequest, HostIsTheFirstFieldOfThatName) {
  const auto host_of = [](const std::string& fields) {
    const auto read = parse_request("GET / HTTP/1.1\r\n" + fields + "\r\n\r\n");
    return read ? read->host : "no request";
  };
  EXPECT_EQ(host_of("Accept: */*\r\nhOST:\t localhost:9464 "), "localhost:9464");
  EXPECT_EQ(host_of("Host: a\r\nHost: b"), "a");
  EXPECT_EQ(host_of("X-Host: a"), "");
  EXPECT_EQ(host_of("Host"), "");
  EXPECT_EQ(host_of("Host:"), "");
}

TEST(HttpRequest, BytesThatAreNotHttpAreRefused) {
  for (const char* bad :
       {"", "\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / \r\n\r\n", "get / HTTP/1.1\r\n\r\n",
        "GET metrics HTTP/1.1\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n",
        "GET /\xff HTTP/1.1\r\n\r\n", " / HTTP/1.1\r\n\r\n", "GET / FTP/1.1\r\n\r\n"}) {
    EXPECT_EQ(problem_of(bad), 400) << bad;
  }
  EXPECT_EQ(problem_of("POST /metrics HTTP/1.1\r\n\r\n"), 405);
  EXPECT_EQ(problem_of("GET / HTTP/2.0\r\n\r\n"), 505);
}

TEST(HttpRequest, HeadEndsWithAnEmptyLine) {
  const std::string head = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  for (std::size_t i = 0; i < head.size(); ++i) EXPECT_EQ(head_size(head.substr(0, i)), 0U);
  EXPECT_EQ(head_size(head + "more\n\n"), head.size());
  EXPECT_EQ(head_size("GET / HTTP/1.1\n\nmore\r\n\r\n"), 16U);
}

TEST(HttpRequest, GarbageIsSeenInItsFirstByte) {
  EXPECT_TRUE(may_be_request(""));
  EXPECT_TRUE(may_be_request("G"));
  EXPECT_FALSE(may_be_request("\x16\x03\x01")) << "TLS";
  EXPECT_FALSE(may_be_request("\r\n"));
}

TEST(HttpRequest, RandomBytesHarmNothing) {
  std::mt19937_64 engine(1);
  for (int i = 0; i < 10'000; ++i) {
    std::string text = i % 2 == 0 ? "GET /" : "";
    for (std::uint64_t size = engine() % 60; size > 0; --size) {
      text += static_cast<char>("\r\n /HTP.1?\xff\x00G"[engine() % 14]);
    }
    (void)head_size(text);
    (void)parse_request(text);
  }
}

TEST(HttpRequest, AnswerClosesTheConnection) {
  const std::string head = answer_head({.status = 503, .size = 12});
  EXPECT_THAT(head, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nContent-Length: 12\r\n"));
  EXPECT_THAT(head, EndsWith("\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(answer_head({.status = 405}), HasSubstr("\r\nAllow: GET, HEAD\r\n"));
}

}  // namespace
}  // namespace vpfs::control
