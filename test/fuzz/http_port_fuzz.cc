#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/system_clock.h"
#include "control/metrics/http_port.h"
#include "control/metrics/http_request.h"
#include "test/fuzz/fuzz_input.h"
#include "test/fuzz/require.h"

// The HTTP port: any bytes, in any pieces, are answered by one whole answer or by none, and the
// next client is served.
namespace vpfs::test {
namespace {

class Server {
 public:
  Server() {
    control::HttpSource source = {.stats =
                                      [](auto answer) {
                                        control::StatsReply stats;
                                        stats.set_name("fuzz");
                                        answer(stats);
                                      },
                                  .not_ready = [] { return std::string("not yet"); }};
    auto port = control::HttpPort::open({.address = "127.0.0.1:0", .most_virtual_pfs = 10},
                                        std::move(source), "1.2.3", clock_);
    require(port.has_value(), "the port does not open");
    port_ = std::move(*port);
  }

  // The answer to these bytes, sent in pieces of this size.
  [[nodiscard]] std::string ask(std::string_view text, std::size_t piece) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience = {.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const sockaddr_in to = {.sin_family = AF_INET,
                            .sin_port = htons(port_->local_endpoint().port()),
                            .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                            .sin_zero = {}};
    require(::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0,
            "the port does not accept");
    while (!text.empty()) {
      const std::string_view part = text.substr(0, piece);
      if (::send(socket, part.data(), part.size(), MSG_NOSIGNAL) <= 0) break;
      text.remove_prefix(part.size());
    }
    ::shutdown(socket, SHUT_WR);
    std::string answer;
    char part[4096];
    ssize_t size = 0;
    while ((size = ::recv(socket, part, sizeof part, 0)) > 0) {
      answer.append(part, static_cast<std::size_t>(size));
    }
    require(size == 0 || errno == ECONNRESET, "the connection does not end");
    ::close(socket);
    return answer;
  }

 private:
  SystemClock clock_;
  std::unique_ptr<control::HttpPort> port_;
};

void check_answer(const std::string& answer, bool head_only) {
  if (answer.empty()) return;
  const std::size_t head = answer.find("\r\n\r\n");
  require(head != std::string::npos && answer.starts_with("HTTP/1.1 "), "half an answer");
  const std::size_t length = answer.find("Content-Length: ");
  require(length < head, "an answer without its length");
  const std::size_t body = std::stoul(answer.substr(length + 16));
  require(answer.size() - head - 4 == (head_only ? 0 : body), "another length than it says");
}

// A refusal of bytes that are not a request has a body, whatever it begins with.
bool is_head(std::string_view text) {
  const auto request = control::parse_request(text.substr(0, control::head_size(text)));
  return control::head_size(text) > 0 && request && request->head_only;
}

void check_parsing(std::string_view text) {
  const std::size_t head = control::head_size(text);
  require(head <= text.size(), "a head beyond the text");
  const auto request = control::parse_request(text.substr(0, head));
  if (request) {
    require(request->path.starts_with('/') &&
                request->path.find_first_of("? \r\n") == std::string::npos,
            "a path that is none");
  } else {
    require(request.error() == 400 || request.error() == 405 || request.error() == 505,
            "an error that HTTP does not have");
  }
}

}  // namespace
}  // namespace vpfs::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs::test;
  static const Server server;
  FuzzInput in(data, size);
  const std::size_t piece = in.u8() + std::size_t{1};
  std::string text;
  // The words that requests are made of, or any bytes.
  constexpr std::string_view kWords[] = {
      "GET ",      "HEAD ",           "POST ",   "/metrics", "/healthz", "/readyz",
      " HTTP/1.1", " HTTP/1.0",       " HTTP/2", "\r\n",     "\r\n\r\n", "\n\n",
      "?a=b",      "Host: localhost", "/",       "\0\r\n\t "};
  while (!in.empty()) {
    const std::size_t choice = in.below(std::size(kWords) + 4);
    if (choice < std::size(kWords)) {
      text += kWords[choice];
    } else if (choice == std::size(kWords)) {
      text.append(in.u16() % 10'000U, static_cast<char>(in.u8()));
    } else {
      const auto bytes = in.bytes(in.below(32));
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  check_parsing(text);
  check_answer(server.ask(text, piece), is_head(text));
  require(server.ask("GET /healthz HTTP/1.1\r\n\r\n", 100).ends_with("\r\n\r\nok\n"),
          "the next client is not served");
  return 0;
}
