#include "net/tls.h"

#include <utility>

#include <asio/buffer.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/write.hpp>
#include <fmt/format.h>
#include <openssl/err.h>

#include "base/named_file.h"
#include "base/result.h"
#include "net/tls_context.h"
#include "net/tls_problems.h"

namespace vpfs::net {

namespace {

using TlsStream = asio::ssl::stream<StreamSocket>;

class TlsChannel final : public Channel {
 public:
  TlsChannel(StreamSocket socket, std::shared_ptr<TlsContext> context, TlsSide side)
      : context_(std::move(context)),
        stream_(std::move(socket), context_->state().context),
        side_(side) {}

  [[nodiscard]] SSL* ssl() const { return const_cast<TlsStream&>(stream_).native_handle(); }

  Task<Result<void>> handshake() override {
    const auto kind =
        side_ == TlsSide::server ? asio::ssl::stream_base::server : asio::ssl::stream_base::client;
    const auto [error] = co_await stream_.async_handshake(kind, kUseTask);
    if (error) {
      Result<void> problem = fail(explain(error), error);
      co_return problem;
    }
    co_return Result<void>();
  }

  [[nodiscard]] std::vector<std::string> peer_names() const override {
    return names_in_certificate(ssl());
  }

  Task<Transfer> read_some(std::span<std::byte> into) override {
    const auto buffer = asio::buffer(into.data(), into.size());
    const auto [error, size] = co_await stream_.async_read_some(buffer, kUseTask);
    Transfer transfer = {error, size};
    co_return transfer;
  }

  Task<std::error_code> write(std::span<const std::byte> bytes) override {
    const auto buffer = asio::buffer(bytes.data(), bytes.size());
    const auto [error, size] = co_await asio::async_write(stream_, buffer, kUseTask);
    co_return error;
  }

  std::size_t write_now(std::span<const std::byte> /*bytes*/) override { return 0; }

  // Frames have lengths, so that a truncated stream is noticed: TLS's own farewell, which has to
  // wait for the peer, is not needed.
  void end_output() override {
    std::error_code ignored;
    stream_.lowest_layer().shutdown(StreamSocket::shutdown_send, ignored);
  }
  void close() override {
    std::error_code ignored;
    stream_.lowest_layer().close(ignored);
  }

  [[nodiscard]] std::string explain(const std::error_code& error) const override {
    return explain_tls(ssl(), error);
  }

 private:
  std::shared_ptr<TlsContext> context_;
  TlsStream stream_;
  TlsSide side_;
};

// Reads the files into the context; what is wrong with which.
Result<void> load_files(asio::ssl::context& context, const TlsFiles& files) {
  for (const std::string* file : {&files.certificate, &files.key, &files.ca}) {
    if (auto good = check_readable_file(*file); !good) return good;
  }
  ERR_clear_error();
  SSL_CTX* native = context.native_handle();
  if (SSL_CTX_use_certificate_chain_file(native, files.certificate.c_str()) != 1) {
    return fail(fmt::format("{}: is not a certificate: {}", files.certificate, last_tls_error()));
  }
  // Without this, OpenSSL asks for a passphrase on the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  SSL_CTX_set_default_passwd_cb(native, no_passphrase);
  if (SSL_CTX_use_PrivateKey_file(native, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return fail(fmt::format("{}: is not a key without a passphrase that belongs to {}: {}",
                            files.key, files.certificate, last_tls_error()));
  }
  if (SSL_CTX_load_verify_file(native, files.ca.c_str()) != 1) {
    return fail(
        fmt::format("{}: has no certificates of authorities: {}", files.ca, last_tls_error()));
  }
  return {};
}

}  // namespace

TlsContext::TlsContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::load(const TlsFiles& files, TlsSide side) {
  auto state = std::make_unique<State>(side);
  VPFS_TRY(load_files(state->context, files));
  SSL_CTX* native = state->context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_verify(native, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // A resumed session would not show the peer's certificate to a reloaded CA file.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  // Idle connections give their buffers back.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(state)));
}

void expect_host(SSL* ssl, const std::string& host) {
  X509_VERIFY_PARAM* checks = SSL_get0_param(ssl);
  std::error_code not_an_address;
  (void)asio::ip::make_address(host, not_an_address);
  if (not_an_address) {
    X509_VERIFY_PARAM_set1_host(checks, host.c_str(), host.size());
    SSL_set_tlsext_host_name(ssl, host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_ip_asc(checks, host.c_str());
  }
}

std::unique_ptr<Channel> accept_tls(StreamSocket socket, std::shared_ptr<TlsContext> context) {
  return std::make_unique<TlsChannel>(std::move(socket), std::move(context), TlsSide::server);
}

std::unique_ptr<Channel> connect_tls(StreamSocket socket, std::shared_ptr<TlsContext> context,
                                     const std::string& host) {
  auto channel =
      std::make_unique<TlsChannel>(std::move(socket), std::move(context), TlsSide::client);
  expect_host(channel->ssl(), host);
  return channel;
}

}  // namespace vpfs::net
