#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <asio/io_context.hpp>

#include "control/wire/framing.h"
#include "net/endpoint.h"
#include "net/ready_stream.h"
#include "net/unix_socket.h"

namespace vpfs::test {

using namespace std::chrono_literals;

// A stage, or what says that it is one. Its calls block, with a time-out.
class FakeStage {
 public:
  // Not connected if no process listens; see connected().
  [[nodiscard]] static FakeStage dial(const std::string& path);
  // With a context: over TLS, after the handshake.
  [[nodiscard]] static FakeStage dial(const net::Endpoint& tcp,
                                      std::shared_ptr<net::TlsContext> tls);

  FakeStage(FakeStage&&) = default;
  // The stream goes before its context.
  FakeStage& operator=(FakeStage&& other) noexcept {
    stream_ = nullptr;
    context_ = std::move(other.context_);
    stream_ = std::move(other.stream_);
    reader_ = std::move(other.reader_);
    return *this;
  }
  ~FakeStage() = default;

  [[nodiscard]] bool connected() const { return stream_ != nullptr; }
  bool send(std::string_view bytes, std::chrono::milliseconds patience = 5s);
  bool send(const control::Envelope& message);
  // The next message; nothing at the end of the stream or after `patience`.
  std::optional<control::Envelope> receive(std::chrono::milliseconds patience = 5s);
  // Drops what comes before the end.
  bool closed_within(std::chrono::milliseconds patience = 5s);
  // Dials in: sends Hello; the answer.
  std::optional<control::Envelope> greet(const control::Hello& hello);
  // Answers the next cycle; nothing if none comes.
  std::optional<control::Cycle> answer_cycle(bool applied = true);

 private:
  friend class StageSocket;
  FakeStage() = default;
  void use(std::unique_ptr<net::ReadyStream> stream);
  bool wait_for(short events, std::chrono::steady_clock::time_point until) const;

  std::unique_ptr<asio::io_context> context_ = std::make_unique<asio::io_context>();
  std::unique_ptr<net::ReadyStream> stream_;
  control::FrameReader reader_{control::kMostAnswer};
};

// Where a coordinator dials stages that the test plays.
class StageSocket {
 public:
  explicit StageSocket(const std::string& path);

  // The next connection; not connected if none comes.
  [[nodiscard]] FakeStage accept(std::chrono::milliseconds patience = 5s);
  // The same, and the greeting: takes the coordinator's Hello and says that one.
  [[nodiscard]] FakeStage accept_and_greet(const control::Hello& hello);

 private:
  asio::io_context context_;
  asio::local::stream_protocol::acceptor acceptor_;
};

// What a proxy says.
[[nodiscard]] control::Hello stage_hello(const std::string& name);

}  // namespace vpfs::test
