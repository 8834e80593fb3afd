#include "net/ready_stream.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

namespace vpfs::net {
namespace {

class PlainReadyStream final : public ReadyStream {
 public:
  explicit PlainReadyStream(StreamSocket socket) : socket_(std::move(socket)) {}

  Result<Wants> handshake() override { return Wants::nothing; }
  [[nodiscard]] std::vector<std::string> peer_names() const override { return {}; }

  Outcome read_now(std::span<std::byte> into) override {
    const ssize_t size = ::recv(descriptor(), into.data(), into.size(), MSG_DONTWAIT);
    if (size > 0) return {.size = static_cast<std::size_t>(size)};
    return size == 0 ? Outcome{.has_ended = true} : failed();
  }
  [[nodiscard]] bool may_have_more() const override { return false; }

  Outcome write_now(std::span<const std::byte> bytes) override {
    const ssize_t size =
        ::send(descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return size >= 0 ? Outcome{.size = static_cast<std::size_t>(size)} : failed();
  }

  [[nodiscard]] int descriptor() const override {
    return const_cast<StreamSocket&>(socket_).native_handle();
  }
  [[nodiscard]] std::string explain(const std::error_code& error) const override {
    return error.message();
  }

 private:
  static Outcome failed() {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
    return {.error = std::error_code(errno, std::system_category())};
  }

  StreamSocket socket_;
};

}  // namespace

std::unique_ptr<ReadyStream> make_ready_stream(StreamSocket socket) {
  return std::make_unique<PlainReadyStream>(std::move(socket));
}

}  // namespace vpfs::net
