#include "bench/control/control_cycles/stage_link.h"

#include <cerrno>
#include <stdexcept>
#include <utility>

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

namespace vpfs::bench {
namespace {

[[noreturn]] void fail_with_tls(const std::string& what) {
  const char* const why = ERR_reason_error_string(ERR_get_error());
  throw std::runtime_error(what + ": " + (why != nullptr ? why : "TLS failed"));
}

}  // namespace

TlsClient::TlsClient(const net::TlsFiles& files, std::string host)
    : host_(std::move(host)), context_(SSL_CTX_new(TLS_client_method())) {
  SSL_CTX* const context = context_.get();
  if (context == nullptr) fail_with_tls("TLS");
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    fail_with_tls(files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    fail_with_tls(files.key);
  }
  if (SSL_CTX_load_verify_file(context, files.ca.c_str()) != 1) fail_with_tls(files.ca);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

TlsClient::Session TlsClient::start(const net::Descriptor& socket) const {
  Session session(SSL_new(context_.get()));
  if (!session || SSL_set_fd(session.get(), socket.get()) != 1) fail_with_tls("TLS");
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(session.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host_.c_str()) != 1 &&
      X509_VERIFY_PARAM_set1_host(wanted, host_.c_str(), host_.size()) != 1) {
    fail_with_tls(host_);
  }
  SSL_set_connect_state(session.get());
  return session;
}

StageLink::StageLink(net::Descriptor socket, const TlsClient* tls) : socket_(std::move(socket)) {
  if (tls != nullptr) session_ = tls->start(socket_);
}

bool StageLink::shake_hands() {
  if (!is_tls()) return true;
  ERR_clear_error();
  const int result = SSL_do_handshake(session_.get());
  if (result == 1) return true;
  if (SSL_get_error(session_.get(), result) != SSL_ERROR_WANT_READ) fail_with_tls("handshake");
  return false;
}

std::optional<std::size_t> StageLink::receive(std::span<std::byte> into) {
  if (!is_tls()) {
    const ssize_t size = ::recv(socket_.get(), into.data(), into.size(), 0);
    if (size > 0) return static_cast<std::size_t>(size);
    if (size == 0 || errno == ECONNRESET) return std::nullopt;
    if (errno != EAGAIN) fail_with_errno("recv");
    return 0;
  }
  ERR_clear_error();
  std::size_t size = 0;
  const int result = SSL_read_ex(session_.get(), into.data(), into.size(), &size);
  if (result == 1) return size;
  switch (SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return 0;
    case SSL_ERROR_ZERO_RETURN:
    case SSL_ERROR_SYSCALL:
      return std::nullopt;
    default:
      // Peers end connections without a farewell, as frames have lengths.
      if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        return std::nullopt;
      }
      fail_with_tls("read");
  }
}

void StageLink::send(std::string_view bytes) {
  if (is_tls()) {
    ERR_clear_error();
    std::size_t sent = 0;
    if (SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &sent) != 1) {
      fail_with_tls("write");
    }
    return;
  }
  const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return;  // the next receive() tells
  if (sent < 0) fail_with_errno("send");
  if (static_cast<std::size_t>(sent) != bytes.size()) throw std::runtime_error("a cut message");
}

void StageLink::close() {
  session_.reset();
  socket_.close();
}

}  // namespace vpfs::bench
