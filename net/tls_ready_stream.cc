#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "net/ready_stream.h"
#include "net/tls_context.h"
#include "net/tls_problems.h"

namespace vpfs::net {
namespace {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

class TlsReadyStream final : public ReadyStream {
 public:
  TlsReadyStream(StreamSocket socket, std::shared_ptr<TlsContext> context, TlsSide side,
                 const std::string& host)
      : socket_(std::move(socket)),
        context_(std::move(context)),
        ssl_(SSL_new(context_->state().context.native_handle())) {
    std::error_code ignored;
    socket_.non_blocking(true, ignored);
    SSL_set_fd(ssl_.get(), socket_.native_handle());
    SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    side == TlsSide::server ? SSL_set_accept_state(ssl_.get()) : SSL_set_connect_state(ssl_.get());
    if (!host.empty()) expect_host(ssl_.get(), host);
  }

  Result<Wants> handshake() override {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) return Wants::nothing;
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return Wants::read;
      case SSL_ERROR_WANT_WRITE:
        return Wants::write;
      default: {
        const std::error_code error = last_error();
        return fail(explain(error), error);
      }
    }
  }
  [[nodiscard]] std::vector<std::string> peer_names() const override {
    return names_in_certificate(ssl_.get());
  }

  Outcome read_now(std::span<std::byte> into) override {
    ERR_clear_error();
    const int result = SSL_read(ssl_.get(), into.data(), limited(into.size()));
    return outcome(result);
  }
  // A read gives one record at most.
  [[nodiscard]] bool may_have_more() const override { return true; }

  Outcome write_now(std::span<const std::byte> bytes) override {
    ERR_clear_error();
    const int result = SSL_write(ssl_.get(), bytes.data(), limited(bytes.size()));
    return outcome(result);
  }

  [[nodiscard]] int descriptor() const override { return SSL_get_fd(ssl_.get()); }
  [[nodiscard]] std::string explain(const std::error_code& error) const override {
    return explain_tls(ssl_.get(), error);
  }

 private:
  static int limited(std::size_t size) {
    return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
  }

  static std::error_code last_error() {
    const int before = errno;
    if (const unsigned long error = ERR_get_error(); error != 0) {
      return {static_cast<int>(error), asio::error::get_ssl_category()};
    }
    if (before != 0) return {before, std::system_category()};
    return asio::ssl::error::stream_truncated;
  }

  // Renegotiation is off, so reads want reads alone, and writes want writes.
  Outcome outcome(int result) {
    if (result > 0) return {.size = static_cast<std::size_t>(result)};
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return {};
      case SSL_ERROR_ZERO_RETURN:
        return {.has_ended = true};
      case SSL_ERROR_SYSCALL:
        if (ERR_peek_error() == 0 && errno == 0) return {.has_ended = true};
        return {.error = last_error()};
      default:
        return {.error = last_error()};
    }
  }

  StreamSocket socket_;
  std::shared_ptr<TlsContext> context_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
};

}  // namespace

std::unique_ptr<ReadyStream> make_ready_tls_stream(StreamSocket socket,
                                                   std::shared_ptr<TlsContext> context,
                                                   TlsSide side, const std::string& host) {
  return std::make_unique<TlsReadyStream>(std::move(socket), std::move(context), side, host);
}

}  // namespace vpfs::net
