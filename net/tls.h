#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/channel.h"

namespace vpfs::net {

// Names of PEM files.
struct TlsFiles {
  std::string certificate;  // with its chain
  std::string key;
  std::string ca;  // those who sign the certificates of peers
  bool operator==(const TlsFiles&) const = default;
};

enum class TlsSide { server, client };

// Certificates as they were in their files: TLS 1.2 or later, and both sides show a certificate.
class TlsContext {
 public:
  // The error names the file.
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> load(const TlsFiles& files,
                                                                TlsSide side);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  struct State;
  [[nodiscard]] State& state() { return *state_; }

 private:
  explicit TlsContext(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// When the certificate of this file ends. The error names the file.
[[nodiscard]] Result<WallTime> end_of_certificate(const std::string& file);

// A channel over TCP. It keeps its context, which the channels before a reload share.
[[nodiscard]] std::unique_ptr<Channel> accept_tls(StreamSocket socket,
                                                  std::shared_ptr<TlsContext> context);
// `host`, a name or an address, must be in the server's certificate.
[[nodiscard]] std::unique_ptr<Channel> connect_tls(StreamSocket socket,
                                                   std::shared_ptr<TlsContext> context,
                                                   const std::string& host);

}  // namespace vpfs::net
