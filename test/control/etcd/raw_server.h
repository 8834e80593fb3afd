#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vpfs::control {

// Listens on loopback, and gives each connection to a function, in a thread of its own.
class RawServer {
 public:
  class Connection {
   public:
    Connection(int socket, const std::atomic<bool>& is_over) : socket_(socket), is_over_(is_over) {}

    // Up to the end of a request with a body; false at the end of the connection.
    bool read_request() {
      std::string request;
      while (!is_over_) {
        const std::size_t head = request.find("\r\n\r\n");
        const std::size_t length = request.find("Content-Length: ");
        if (head != std::string::npos && length != std::string::npos &&
            request.size() >= head + 4 + std::stoul(request.substr(length + 16))) {
          return true;
        }
        pollfd wait = {.fd = socket_, .events = POLLIN, .revents = 0};
        if (::poll(&wait, 1, 10) == 0) continue;
        char part[4096];
        const ssize_t size = ::recv(socket_, part, sizeof part, 0);
        if (size <= 0) return false;
        request.append(part, static_cast<std::size_t>(size));
      }
      return false;
    }
    bool send(std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t size = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (size <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(size));
      }
      return true;
    }
    // Until the peer closes.
    void hang() {
      char byte = 0;
      while (!is_over_) {
        pollfd wait = {.fd = socket_, .events = POLLIN, .revents = 0};
        if (::poll(&wait, 1, 10) > 0 && ::recv(socket_, &byte, 1, 0) <= 0) return;
      }
    }
    [[nodiscard]] bool is_over() const { return is_over_; }
    [[nodiscard]] int socket() const { return socket_; }

   private:
    int socket_;
    const std::atomic<bool>& is_over_;
  };
  using Serve = std::function<void(Connection&)>;

  explicit RawServer(Serve serve) : serve_(std::move(serve)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    (void)::bind(listener_, generic, size);
    (void)::listen(listener_, 16);
    (void)::getsockname(listener_, generic, &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept(); });
  }
  ~RawServer() {
    is_over_ = true;
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    ::close(listener_);
  }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::size_t connections() const { return connections_; }

 private:
  void accept() {
    while (!is_over_) {
      pollfd wait = {.fd = listener_, .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, 10) <= 0) continue;
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) continue;
      ++connections_;
      threads_.emplace_back([this, socket] {
        Connection connection(socket, is_over_);
        serve_(connection);
        ::close(socket);
      });
    }
  }

  const Serve serve_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> is_over_ = false;
  std::atomic<std::size_t> connections_ = 0;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace vpfs::control
