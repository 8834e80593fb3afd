#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "protocols/orangefs/message.h"

namespace vpfs::test {

// Speaks the OrangeFS protocol to a loopback port with blocking calls. Tests of servers and proxies
// use it. A call gives up after `patience` and returns nothing.
class OrangefsWireClient {
 public:
  struct Message {
    orangefs::BmiHeader header;
    std::vector<std::byte> payload;
  };

  explicit OrangefsWireClient(std::uint16_t port, int patience_seconds = 10)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = {.tv_sec = patience_seconds, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(socket_);
      throw std::runtime_error("cannot connect");
    }
  }
  ~OrangefsWireClient() {
    if (socket_ >= 0) ::close(socket_);
  }
  OrangefsWireClient(OrangefsWireClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), last_tag_(other.last_tag_) {}
  OrangefsWireClient& operator=(OrangefsWireClient&&) = delete;

  // False when the other side takes no more.
  bool send_bytes(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Sends a request under a new tag and returns the tag.
  orangefs::Tag send(const orangefs::Request& request) {
    const orangefs::Tag tag = ++last_tag_;
    send_bytes(orangefs::request_message(tag, request));
    return tag;
  }
  // One message of a flow.
  void send_data(orangefs::Tag tag, std::span<const std::byte> data) {
    send_bytes(orangefs::encode(orangefs::BmiHeader{
        .mode = orangefs::expected_mode(data.size()), .tag = tag, .payload_size = data.size()}));
    send_bytes(data);
  }

  // The next message of any kind; nothing at the end of the stream or of `patience`.
  std::optional<Message> receive() {
    std::vector<std::byte> head(orangefs::kBmiHeaderSize);
    if (!receive_bytes(head)) return std::nullopt;
    const auto header = orangefs::decode_bmi_header(head);
    if (!header) return std::nullopt;
    Message message{.header = *header, .payload = {}};
    message.payload.resize(static_cast<std::size_t>(header->payload_size));
    if (!receive_bytes(message.payload)) return std::nullopt;
    return message;
  }
  // The next message, which must be a response with this tag.
  std::optional<orangefs::Response> receive_response(orangefs::Tag tag) {
    const std::optional<Message> message = receive();
    if (!message || message->header.tag != tag) return std::nullopt;
    auto response = orangefs::decode_response(message->payload);
    if (!response) return std::nullopt;
    return std::move(*response);
  }
  std::optional<orangefs::Response> call(const orangefs::Request& request) {
    return receive_response(send(request));
  }
  // True if the other side closes within `patience` and sends nothing more. It may close by a
  // reset, which happens if it has unread data.
  bool closed_by_other_side() {
    std::byte byte{};
    const ssize_t received = ::recv(socket_, &byte, 1, 0);
    return received == 0 || (received < 0 && errno == ECONNRESET);
  }
  void half_close() { ::shutdown(socket_, SHUT_WR); }

 private:
  bool receive_bytes(std::span<std::byte> into) {
    while (!into.empty()) {
      const ssize_t received = ::recv(socket_, into.data(), into.size(), 0);
      if (received <= 0) return false;
      into = into.subspan(static_cast<std::size_t>(received));
    }
    return true;
  }

  int socket_;
  orangefs::Tag last_tag_ = 0;
};

}  // namespace vpfs::test
