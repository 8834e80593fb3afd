#include "net/tls/session.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <utility>

#include <asio/error.hpp>
#include <asio/ip/address.hpp>
#include <sys/socket.h>

#include "net/tls/context.h"
#include "net/tls/problems.h"

namespace vpfs::net {
namespace {

using Outcome = ReadyStream::Outcome;
using Wants = ReadyStream::Wants;

int socket_of(BIO* bio) {
  return static_cast<StreamSocket*>(openssl().BIO_get_data(bio))->native_handle();
}

// What send() or recv() returned, as OpenSSL wants it.
int result_of(BIO* bio, ssize_t size, int retry) {
  openssl().BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    openssl().BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  }
  return static_cast<int>(size);
}

// The sockets of OpenSSL itself raise SIGPIPE.
const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made = openssl().BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
    if (made == nullptr) throw std::bad_alloc();
    openssl().BIO_meth_set_write(made, [](BIO* bio, const char* data, int size) {
      return result_of(bio,
                       ::send(socket_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL),
                       BIO_FLAGS_WRITE);
    });
    openssl().BIO_meth_set_read(made, [](BIO* bio, char* data, int size) {
      return result_of(bio, ::recv(socket_of(bio), data, static_cast<std::size_t>(size), 0),
                       BIO_FLAGS_READ);
    });
    openssl().BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long {
      return command == BIO_CTRL_FLUSH ? 1 : 0;
    });
    return made;
  }();
  return method;
}

// From now on the peer's certificate has to be one for `host`, a name or an address.
void expect_host(SSL* ssl, const std::string& host) {
  X509_VERIFY_PARAM* const checks = openssl().SSL_get0_param(ssl);
  std::error_code not_an_address;
  (void)asio::ip::make_address(host, not_an_address);
  if (not_an_address) {
    openssl().X509_VERIFY_PARAM_set1_host(checks, host.c_str(), host.size());
    // As the macro SSL_set_tlsext_host_name() does.
    openssl().SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                       const_cast<char*>(host.c_str()));
  } else {
    openssl().X509_VERIFY_PARAM_set1_ip_asc(checks, host.c_str());
  }
}

int limited(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

// What a call that failed with SSL_ERROR_SSL or SSL_ERROR_SYSCALL says.
Outcome failure(int before) {
  const unsigned long error = openssl().ERR_get_error();
  if (error == 0 && before == 0) return {.has_ended = true};
  if (error == 0) return {.error = {before, std::system_category()}};
  if (ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) return {.has_ended = true};
  return {.error = {static_cast<int>(error), tls_category()}};
}

// Renegotiation is off, so reads want reads alone, and writes want writes.
Outcome outcome_of(SSL* ssl, int result) {
  const int before = errno;
  if (result > 0) return {.size = static_cast<std::size_t>(result)};
  switch (openssl().SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return {};
    case SSL_ERROR_ZERO_RETURN:
      return {.has_ended = true};
    default:
      return failure(before);
  }
}

}  // namespace

TlsSession::TlsSession(StreamSocket socket, std::shared_ptr<TlsContext> context, TlsSide side,
                       const std::string& host)
    : context_(std::move(context)),
      socket_(std::move(socket)),
      ssl_(openssl().SSL_new(context_->state().context.get())) {
  std::error_code ignored;
  socket_.non_blocking(true, ignored);
  if (ssl_ == nullptr) throw std::bad_alloc();
  BIO* const bio = openssl().BIO_new(socket_method());
  if (bio == nullptr) throw std::bad_alloc();
  openssl().BIO_set_data(bio, &socket_);
  openssl().BIO_set_init(bio, 1);
  openssl().SSL_set_bio(ssl_.get(), bio, bio);
  // As the macro SSL_set_mode() does.
  openssl().SSL_ctrl(ssl_.get(), SSL_CTRL_MODE,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, nullptr);
  if (side == TlsSide::server) {
    openssl().SSL_set_accept_state(ssl_.get());
  } else {
    openssl().SSL_set_connect_state(ssl_.get());
  }
  if (!host.empty()) expect_host(ssl_.get(), host);
}

Result<Wants> TlsSession::handshake() {
  openssl().ERR_clear_error();
  errno = 0;
  const int result = openssl().SSL_do_handshake(ssl_.get());
  if (result == 1) return Wants::nothing;
  const int before = errno;
  switch (openssl().SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Wants::read;
    case SSL_ERROR_WANT_WRITE:
      return Wants::write;
    default: {
      const Outcome failed = failure(before);
      const std::error_code error = failed.has_ended ? asio::error::eof : failed.error;
      return fail(explain(error), error);
    }
  }
}

std::vector<std::string> TlsSession::peer_names() const {
  return names_in_certificate(ssl_.get());
}

Outcome TlsSession::read_now(std::span<std::byte> into) {
  openssl().ERR_clear_error();
  errno = 0;
  return outcome_of(ssl_.get(), openssl().SSL_read(ssl_.get(), into.data(), limited(into.size())));
}

Outcome TlsSession::write_now(std::span<const std::byte> bytes) {
  openssl().ERR_clear_error();
  errno = 0;
  return outcome_of(ssl_.get(),
                    openssl().SSL_write(ssl_.get(), bytes.data(), limited(bytes.size())));
}

std::string TlsSession::explain(const std::error_code& error) const {
  return explain_tls(ssl_.get(), error);
}

}  // namespace vpfs::net
