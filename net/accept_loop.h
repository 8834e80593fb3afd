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
// letting them time out, and logs that at most once a second. The wait in flight shares it.
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

  // No handler runs after it, and no connection was accepted that has not been handed over.
  // Idempotent.
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
  // It waits instead of accepting: a connection that nothing was done with stays in the queue of
  // the listening socket, from where another process that has the socket takes it.
  void accept_next() {
    acceptor_.async_wait(
        Protocol::acceptor::wait_read,
        [self = this->shared_from_this()](std::error_code error) { self->some_have_come(error); });
  }

  void some_have_come(std::error_code error) {
    if (closed_ || error == asio::error::operation_aborted) return;
    // An exception of the handler costs this connection only.
    try {
      if (!error) error = accept_some();
    } catch (...) {
      if (!closed_) accept_next();
      throw;
    }
    if (closed_) return;
    error ? recover_from(error) : accept_next();
  }

  // Returns why not all can be accepted.
  [[nodiscard]] std::error_code accept_some() {
    for (int i = 0; i < kBatch && !closed_; ++i) {
      std::error_code error;
      typename Protocol::socket socket(acceptor_.get_executor());
      acceptor_.accept(socket, error);
      if (error == asio::error::would_block) break;
      if (error) return error;
      handler_(std::move(socket));
    }
    return {};
  }

  void recover_from(std::error_code error) {
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
