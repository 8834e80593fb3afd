#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>

#include "net/async.h"
#include "net/endpoint.h"
#include "test/fuzz/fuzz_input.h"

namespace vpfs::test {

// Relays connections to a server, and changes what one side says as a fuzzer's input has it: bytes
// are changed, left out or put in, and connections are closed. When the input is at its end
// everything passes as it is. Belongs to the thread of its io_context.
class LyingRelay {
 public:
  enum class Liar { client, server };

  LyingRelay(asio::io_context& loop, FuzzInput& lies, Liar liar)
      : loop_(loop),
        lies_(lies),
        liar_(liar),
        acceptor_(loop, net::Endpoint(asio::ip::address_v4::loopback(), 0)) {
    next_lie();
    asio::co_spawn(loop_, accept(), asio::detached);
  }
  LyingRelay(const LyingRelay&) = delete;
  LyingRelay& operator=(const LyingRelay&) = delete;

  [[nodiscard]] net::Endpoint endpoint() const { return acceptor_.local_endpoint(); }
  // Connections are relayed to it; before that there must be none.
  void serve(const net::Endpoint& server) { server_ = server; }
  void cut() {
    for (const auto& pair : pairs_) pair->close();
  }
  void stop() {
    std::error_code ignored;
    acceptor_.close(ignored);
    cut();
  }

 private:
  struct Pair {
    Pair(net::Socket from, asio::io_context& loop) : client(std::move(from)), server(loop) {}
    void close() {
      std::error_code ignored;
      client.close(ignored);
      server.close(ignored);
    }
    net::Socket client;
    net::Socket server;
  };
  using PairPtr = std::shared_ptr<Pair>;  // both directions share it

  net::Task<> accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(net::kUseTask);
      if (error) co_return;
      auto pair = std::make_shared<Pair>(std::move(socket), loop_);
      const auto [refused] = co_await pair->server.async_connect(server_, net::kUseTask);
      if (refused) continue;
      pairs_.push_back(pair);
      asio::co_spawn(loop_, copy(pair, Liar::client), asio::detached);
      asio::co_spawn(loop_, copy(pair, Liar::server), asio::detached);
    }
  }

  net::Task<> copy(PairPtr pair, Liar from) {
    net::Socket& source = from == Liar::client ? pair->client : pair->server;
    net::Socket& sink = from == Liar::client ? pair->server : pair->client;
    std::vector<std::byte> room(16384);
    for (;;) {
      const auto into = asio::buffer(room);
      const auto [ended, size] = co_await source.async_read_some(into, net::kUseTask);
      if (ended) break;
      std::vector<std::byte> bytes(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(size));
      const bool goes_on = from != liar_ || change(bytes);
      const auto out = asio::buffer(bytes);
      const auto [failed, sent] = co_await asio::async_write(sink, out, net::kUseTask);
      if (failed || !goes_on) break;
    }
    pair->close();
    pairs_.remove(pair);
  }

  void next_lie() {
    if (lies_.empty()) {
      until_lie_ = kNever;
      return;
    }
    until_lie_ = lies_.u8() % 4 == 0 ? lies_.u16() : lies_.u8();
  }

  // False: the connection ends with these bytes.
  bool change(std::vector<std::byte>& bytes) {
    std::size_t at = 0;
    while (until_lie_ < bytes.size() - at) {
      at += until_lie_;
      const bool goes_on = lie_at(bytes, at);
      next_lie();
      if (!goes_on) return false;
    }
    if (until_lie_ != kNever) until_lie_ -= bytes.size() - at;
    return true;
  }

  bool lie_at(std::vector<std::byte>& bytes, std::size_t& at) {
    const auto place = [&] { return bytes.begin() + static_cast<std::ptrdiff_t>(at); };
    const auto number = [&](std::size_t size, std::uint64_t value) {
      for (std::size_t i = 0; i < size && at < bytes.size(); ++i, ++at, value >>= 8) {
        bytes[at] = static_cast<std::byte>(value & 0xff);
      }
    };
    switch (lies_.below(8)) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1U << lies_.below(8));
        ++at;
        return true;
      case 1:
        number(1, lies_.u8());
        return true;
      case 2:
      case 3:
        number(4, lies_.size());
        return true;
      case 4:
        number(8, lies_.size());
        return true;
      case 5: {
        const std::size_t size = std::min<std::size_t>(lies_.u8(), bytes.size() - at);
        bytes.erase(place(), place() + static_cast<std::ptrdiff_t>(size));
        return true;
      }
      case 6: {
        const std::span<const std::byte> more = lies_.bytes(lies_.u8());
        bytes.insert(place(), more.begin(), more.end());
        at += more.size();
        return true;
      }
      default:
        if (lies_.u8() % 4 != 0) return true;
        bytes.resize(at);
        return false;
    }
  }

  static constexpr std::size_t kNever = ~std::size_t{0};

  asio::io_context& loop_;
  FuzzInput& lies_;
  const Liar liar_;
  asio::ip::tcp::acceptor acceptor_;
  net::Endpoint server_;
  std::list<PairPtr> pairs_;
  std::size_t until_lie_ = kNever;
};

}  // namespace vpfs::test
