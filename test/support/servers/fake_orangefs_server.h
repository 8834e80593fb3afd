#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <fmt/format.h>

#include "net/async.h"
#include "protocols/orangefs/message.h"

namespace vpfs::test {

// A server of the OrangeFS protocol on the test's event loop. It answers GETCONFIG by itself. All
// other requests and flow data go to functions of the test.
class FakeOrangefsServer {
 public:
  class Peer {
   public:
    explicit Peer(net::Socket stream) : socket(std::move(stream)) {}

    void send(const std::vector<std::byte>& bytes) {
      std::error_code ignored;
      asio::write(socket, asio::buffer(bytes), ignored);
    }
    void answer(orangefs::Tag tag, const orangefs::Response& response) {
      send(orangefs::response_message(tag, response));
    }
    void fail(orangefs::Tag tag, orangefs::Op op, orangefs::Status status) {
      send(orangefs::error_message(tag, op, status));
    }
    // One flow message of `size` bytes, each `value`.
    void send_data(orangefs::Tag tag, std::size_t size, std::byte value = std::byte{0x5a}) {
      const auto header = orangefs::encode(
          {.mode = orangefs::expected_mode(size), .tag = tag, .payload_size = size});
      std::vector<std::byte> bytes(header.begin(), header.end());
      bytes.resize(bytes.size() + size, value);
      send(bytes);
    }
    void close() {
      std::error_code ignored;
      socket.close(ignored);
    }

    net::Socket socket;
    bool reading = true;  // false: reads no more from the client
  };
  struct Incoming {
    orangefs::Tag tag = 0;
    orangefs::Request request;
  };
  using OnRequest = std::function<void(Peer&, const Incoming&)>;
  using OnData = std::function<void(Peer&, orangefs::Tag, const std::vector<std::byte>&)>;

  explicit FakeOrangefsServer(asio::io_context& loop)
      : loop_(loop), acceptor_(loop, net::Endpoint(asio::ip::address_v4::loopback(), 0)) {
    asio::co_spawn(loop_, accept(), asio::detached);
  }
  FakeOrangefsServer(const FakeOrangefsServer&) = delete;
  FakeOrangefsServer& operator=(const FakeOrangefsServer&) = delete;
  ~FakeOrangefsServer() {
    std::error_code ignored;
    acceptor_.close(ignored);
    for (Peer& peer : peers_) peer.close();
    loop_.restart();
    loop_.poll();
  }

  void on_request(OnRequest handler) { on_request_ = std::move(handler); }
  void on_data(OnData handler) { on_data_ = std::move(handler); }

  [[nodiscard]] net::Endpoint endpoint() const { return acceptor_.local_endpoint(); }
  [[nodiscard]] std::size_t connections() const { return peers_.size(); }
  [[nodiscard]] Peer& last_peer() { return peers_.back(); }
  // A file system "fake" of this one server; handles from 3 to 999 are metadata, from 1000 data.
  [[nodiscard]] std::string config() const {
    const std::uint16_t port = endpoint().port();
    return fmt::format(
        "<Defaults>\nClientRetryLimit 2\nClientRetryDelayMilliSecs 20\n</Defaults>\n"
        "<Aliases>\nAlias s0 tcp://127.0.0.1:{}\n</Aliases>\n"
        "<FileSystem>\nName fake\nID 7\nRootHandle 100\n"
        "<MetaHandleRanges>\nRange s0 3-999\n</MetaHandleRanges>\n"
        "<DataHandleRanges>\nRange s0 1000-1999\n</DataHandleRanges>\n</FileSystem>\n",
        port);
  }

 private:
  net::Task<> accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(net::kUseTask);
      if (error) co_return;
      peers_.emplace_back(std::move(socket));
      asio::co_spawn(loop_, serve(peers_.back()), asio::detached);
    }
  }

  net::Task<> serve(Peer& peer) {
    std::vector<std::byte> bytes;
    while (peer.reading) {
      bytes.resize(orangefs::kBmiHeaderSize);
      if (!co_await fill(peer, bytes)) co_return;
      const auto header = orangefs::decode_bmi_header(bytes);
      if (!header) co_return;
      bytes.resize(static_cast<std::size_t>(header->payload_size));
      if (!co_await fill(peer, bytes)) co_return;
      if (header->mode == orangefs::BmiMode::unexpected) {
        request(peer, header->tag, bytes);
      } else if (on_data_) {
        on_data_(peer, header->tag, bytes);
      }
    }
  }

  static net::Task<bool> fill(Peer& peer, std::vector<std::byte>& bytes) {
    const auto buffer = asio::buffer(bytes);
    const auto [error, size] = co_await asio::async_read(peer.socket, buffer, net::kUseTask);
    co_return !error;
  }

  void request(Peer& peer, orangefs::Tag tag, const std::vector<std::byte>& payload) {
    auto decoded = orangefs::decode_request(payload);
    if (!decoded) return peer.close();
    if (orangefs::op_of(decoded->body) == orangefs::Op::getconfig) {
      const std::string text = config();
      const auto size = static_cast<std::uint32_t>(text.size() + 1);
      return peer.answer(
          tag, {.status = 0, .body = orangefs::GetconfigResponse{.size = size, .config = text}});
    }
    if (on_request_) on_request_(peer, {.tag = tag, .request = std::move(*decoded)});
  }

  asio::io_context& loop_;
  asio::ip::tcp::acceptor acceptor_;
  std::list<Peer> peers_;
  OnRequest on_request_;
  OnData on_data_;
};

}  // namespace vpfs::test
