#include <memory>
#include <utility>

#include "net/ready_stream.h"
#include "net/tls/session.h"

namespace vpfs::net {
namespace {

class TlsReadyStream final : public ReadyStream {
 public:
  TlsReadyStream(StreamSocket socket, std::shared_ptr<TlsContext> context, TlsSide side,
                 const std::string& host)
      : session_(std::move(socket), std::move(context), side, host) {}

  Result<Wants> handshake() override { return session_.handshake(); }
  [[nodiscard]] bool has_slow_handshake() const override { return true; }
  [[nodiscard]] std::vector<std::string> peer_names() const override {
    return session_.peer_names();
  }
  Outcome read_now(std::span<std::byte> into) override { return session_.read_now(into); }
  // A read gives one record at most.
  [[nodiscard]] bool may_have_more() const override { return true; }
  Outcome write_now(std::span<const std::byte> bytes) override { return session_.write_now(bytes); }
  [[nodiscard]] int descriptor() const override {
    return const_cast<TlsSession&>(session_).socket().native_handle();
  }
  [[nodiscard]] std::string explain(const std::error_code& error) const override {
    return session_.explain(error);
  }

 private:
  TlsSession session_;
};

}  // namespace

std::unique_ptr<ReadyStream> make_ready_tls_stream(StreamSocket socket,
                                                   std::shared_ptr<TlsContext> context,
                                                   TlsSide side, const std::string& host) {
  return std::make_unique<TlsReadyStream>(std::move(socket), std::move(context), side, host);
}

}  // namespace vpfs::net
