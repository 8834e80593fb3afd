#include "net/tls.h"

#include <chrono>
#include <ctime>
#include <utility>

#include <asio/error.hpp>
#include <fmt/format.h>

#include "base/named_file.h"
#include "base/result.h"
#include "net/tls/context.h"
#include "net/tls/problems.h"
#include "net/tls/session.h"

namespace vpfs::net {
namespace {

class TlsChannel final : public Channel {
 public:
  TlsChannel(StreamSocket socket, std::shared_ptr<TlsContext> context, TlsSide side,
             const std::string& host)
      : session_(std::move(socket), std::move(context), side, host) {}

  Task<Result<void>> handshake() override {
    while (socket_.is_open()) {
      const Result<ReadyStream::Wants> wants = session_.handshake();
      if (!wants) {
        Result<void> problem = std::unexpected(wants.error());
        co_return problem;
      }
      if (*wants == ReadyStream::Wants::nothing) co_return Result<void>();
      const auto kind =
          *wants == ReadyStream::Wants::read ? StreamSocket::wait_read : StreamSocket::wait_write;
      const auto [error] = co_await socket_.async_wait(kind, kUseTask);
      if (error) break;
    }
    const std::error_code closed = asio::error::operation_aborted;
    Result<void> problem = fail(closed.message(), closed);
    co_return problem;
  }

  [[nodiscard]] std::vector<std::string> peer_names() const override {
    return session_.peer_names();
  }

  Task<Transfer> read_some(std::span<std::byte> into) override {
    Transfer transfer = {.error = asio::error::operation_aborted};
    while (socket_.is_open()) {
      const ReadyStream::Outcome read = session_.read_now(into);
      if (read.size > 0 || read.has_ended || read.error) {
        transfer.error = read.has_ended ? asio::error::eof : read.error;
        transfer.size = read.size;
        break;
      }
      const auto [error] = co_await socket_.async_wait(StreamSocket::wait_read, kUseTask);
      if (error) break;
    }
    co_return transfer;
  }

  Task<std::error_code> write(std::span<const std::byte> bytes) override {
    if (bytes.empty()) co_return std::error_code();  // OpenSSL would take it for an end
    while (socket_.is_open()) {
      const ReadyStream::Outcome written = session_.write_now(bytes);
      if (written.error) co_return written.error;
      if (written.has_ended) co_return asio::error::broken_pipe;
      bytes = bytes.subspan(written.size);
      if (bytes.empty()) co_return std::error_code();
      if (written.size > 0) continue;
      const auto [error] = co_await socket_.async_wait(StreamSocket::wait_write, kUseTask);
      if (error) break;
    }
    co_return asio::error::operation_aborted;
  }

  std::size_t write_now(std::span<const std::byte> /*bytes*/) override { return 0; }

  // Frames have lengths, so that a truncated stream is noticed: TLS's own farewell, which has to
  // wait for the peer, is not needed.
  void end_output() override {
    std::error_code ignored;
    socket_.shutdown(StreamSocket::shutdown_send, ignored);
  }
  void close() override {
    std::error_code ignored;
    socket_.close(ignored);
  }

  [[nodiscard]] std::string explain(const std::error_code& error) const override {
    return session_.explain(error);
  }

 private:
  TlsSession session_;
  StreamSocket& socket_ = session_.socket();
};

// Reads the files into the context; what is wrong with which.
Result<void> load_files(SSL_CTX* context, const TlsFiles& files) {
  for (const std::string* file : {&files.certificate, &files.key, &files.ca}) {
    if (auto good = check_readable_file(*file); !good) return good;
  }
  openssl().ERR_clear_error();
  if (openssl().SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return fail(fmt::format("{}: is not a certificate: {}", files.certificate, last_tls_error()));
  }
  // Without this, OpenSSL asks for a passphrase on the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  openssl().SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (openssl().SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return fail(fmt::format("{}: is not a key without a passphrase that belongs to {}: {}",
                            files.key, files.certificate, last_tls_error()));
  }
  if (openssl().SSL_CTX_load_verify_file(context, files.ca.c_str()) != 1) {
    return fail(
        fmt::format("{}: has no certificates of authorities: {}", files.ca, last_tls_error()));
  }
  return {};
}

}  // namespace

TlsContext::TlsContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::load(const TlsFiles& files, TlsSide side) {
  VPFS_TRY(load_openssl());
  const OpenSsl& tls = openssl();
  auto state = std::make_unique<State>();
  SSL_CTX* const native =
      tls.SSL_CTX_new(side == TlsSide::server ? tls.TLS_server_method() : tls.TLS_client_method());
  if (native == nullptr) return fail("TLS: " + last_tls_error());
  state->context.reset(native);
  VPFS_TRY(load_files(native, files));
  // These calls of SSL_CTX_ctrl() are what the macros that are named after them do.
  tls.SSL_CTX_ctrl(native, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  tls.SSL_CTX_set_verify(native, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // A resumed session would not show the peer's certificate to a reloaded CA file.
  tls.SSL_CTX_ctrl(native, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  tls.SSL_CTX_set_num_tickets(native, 0);
  tls.SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  // Idle connections give their buffers back.
  tls.SSL_CTX_ctrl(native, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, nullptr);
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(state)));
}

Result<WallTime> end_of_certificate(const std::string& file) {
  VPFS_TRY(load_openssl());
  VPFS_TRY(check_readable_file(file));
  const OpenSsl& tls = openssl();
  TlsContext::State state;
  state.context.reset(tls.SSL_CTX_new(tls.TLS_server_method()));
  SSL_CTX* const native = state.context.get();
  if (native == nullptr) return fail("TLS: " + last_tls_error());
  std::tm end = {};
  const bool is_read =
      tls.SSL_CTX_use_certificate_chain_file(native, file.c_str()) == 1 &&
      tls.ASN1_TIME_to_tm(tls.X509_get0_notAfter(tls.SSL_CTX_get0_certificate(native)), &end) == 1;
  if (!is_read) return fail(fmt::format("{}: is not a certificate: {}", file, last_tls_error()));
  return WallTime(std::chrono::seconds(::timegm(&end)));
}

std::unique_ptr<Channel> accept_tls(StreamSocket socket, std::shared_ptr<TlsContext> context) {
  return std::make_unique<TlsChannel>(std::move(socket), std::move(context), TlsSide::server, "");
}

std::unique_ptr<Channel> connect_tls(StreamSocket socket, std::shared_ptr<TlsContext> context,
                                     const std::string& host) {
  return std::make_unique<TlsChannel>(std::move(socket), std::move(context), TlsSide::client, host);
}

}  // namespace vpfs::net
