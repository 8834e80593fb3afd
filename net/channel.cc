#include "net/channel.h"

#include <utility>

#include <asio/buffer.hpp>
#include <asio/write.hpp>
#include <sys/socket.h>

namespace vpfs::net {
namespace {

class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(StreamSocket socket) : socket_(std::move(socket)) {
    std::error_code ignored;
    socket_.non_blocking(true, ignored);
  }

  Task<Result<void>> handshake() override { co_return Result<void>(); }
  [[nodiscard]] std::vector<std::string> peer_names() const override { return {}; }

  Task<Transfer> read_some(std::span<std::byte> into) override {
    const auto buffer = asio::buffer(into.data(), into.size());
    const auto [error, size] = co_await socket_.async_read_some(buffer, kUseTask);
    Transfer transfer = {error, size};
    co_return transfer;
  }

  Task<std::error_code> write(std::span<const std::byte> bytes) override {
    const auto buffer = asio::buffer(bytes.data(), bytes.size());
    const auto [error, size] = co_await asio::async_write(socket_, buffer, kUseTask);
    co_return error;
  }

  std::size_t write_now(std::span<const std::byte> bytes) override {
    const ssize_t sent =
        ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }

  void end_output() override {
    std::error_code ignored;
    socket_.shutdown(StreamSocket::shutdown_send, ignored);
  }
  void close() override {
    std::error_code ignored;
    socket_.close(ignored);
  }

  [[nodiscard]] std::string explain(const std::error_code& error) const override {
    return error.message();
  }

 private:
  StreamSocket socket_;
};

}  // namespace

std::unique_ptr<Channel> make_plain_channel(StreamSocket socket) {
  return std::make_unique<PlainChannel>(std::move(socket));
}

}  // namespace vpfs::net
