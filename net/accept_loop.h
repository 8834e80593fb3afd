#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vpfs::net {

// Accepts connections from an acceptor that listens already, and hands each to a callback.
//
// Thousands that connect at once are accepted in batches, so that they do not wait for a turn of
// the event loop each. When descriptors run out, it closes new connections at once instead of
// letting them time out, and logs that at most once a second. The accept in flight shares it.
// Belongs to the strand of its io_context.
template <typename Protocol>
class AcceptLoop : public std::enable_shared_from_this<AcceptLoop<Protocol>> {
 public:
  using Handler = std::function<void(typename Protocol::socket)>;

  explicit AcceptLoop(asio::io_context& context) : acceptor_(context), pause_(context) {
    open_spare();
  }
  ~AcceptLoop() { close_spare(); }
  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;

  [[nodiscard]] typename Protocol::acceptor& acceptor() { return acceptor_; }

  // `name` is for the log.
  void start(std::string name, Handler handler) {
    name_ = std::move(name);
    handler_ = std::move(handler);
    std::error_code ignored;
    acceptor_.non_blocking(true, ignored);
    accept_next();
  }

  // No handler runs after it. Idempotent.
  void close() {
    if (std::exchange(closed_, true)) return;
    // Another process may have the same socket open. close() alone would then leave it in this
    // one's epoll set.
    std::error_code error;
    const int socket = acceptor_.release(error);
    error ? (void)acceptor_.close(error) : (void)::close(socket);
    pause_.cancel();
  }

 private:
  void accept_next() {
    acceptor_.async_accept(
        [self = this->shared_from_this()](std::error_code error, typename Protocol::socket socket) {
          self->accepted(error, std::move(socket));
        });
  }

  // Those that have connected meanwhile. An error is left to async_accept().
  void accept_more() {
    for (int i = 0; i < kBatch && !closed_; ++i) {
      std::error_code error;
      typename Protocol::socket socket(acceptor_.get_executor());
      acceptor_.accept(socket, error);
      if (error) return;
      handler_(std::move(socket));
    }
  }

  void accepted(std::error_code error, typename Protocol::socket socket) {
    if (closed_ || error == asio::error::operation_aborted) return;
    if (!error) {
      // An exception of the handler costs this connection only.
      try {
        handler_(std::move(socket));
        accept_more();
      } catch (...) {
        if (!closed_) accept_next();
        throw;
      }
      if (!closed_) accept_next();
      return;
    }
    const bool exhausted = error.value() == EMFILE || error.value() == ENFILE;
    if (exhausted) {
      refuse_one();
    } else {
      spdlog::warn("accept on {}: {}", name_, error.message());
    }
    // A retry would fail at once too; the pause keeps the loop from spinning.
    pause_.expires_after(std::chrono::milliseconds(10));
    pause_.async_wait([self = this->shared_from_this()](std::error_code stopped) {
      if (!stopped && !self->closed_) self->accept_next();
    });
  }

  void refuse_one() {
    close_spare();
    const int fd =
        ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      ::close(fd);
      ++refused_;
    }
    open_spare();
    const auto now = pause_.expiry() > last_complaint_ ? pause_.expiry() : last_complaint_;
    if (refused_ == 1 || now - last_complaint_ >= std::chrono::seconds(1)) {
      spdlog::error("out of file descriptors: {} connections refused so far", refused_);
      last_complaint_ = now;
    }
  }

  void open_spare() { spare_descriptor_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
  void close_spare() {
    if (spare_descriptor_ >= 0) ::close(spare_descriptor_);
    spare_descriptor_ = -1;
  }

  static constexpr int kBatch = 64;

  typename Protocol::acceptor acceptor_;
  asio::steady_timer pause_;
  std::string name_;
  Handler handler_;
  // Closed for a moment, when no descriptor is left, to accept and close a connection.
  int spare_descriptor_ = -1;
  std::uint64_t refused_ = 0;
  std::chrono::steady_clock::time_point last_complaint_ = {};
  bool closed_ = false;
};

}  // namespace vpfs::net
