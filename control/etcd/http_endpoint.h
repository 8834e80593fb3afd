#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "control/etcd/call_guard.h"
#include "control/etcd/host_addresses.h"
#include "net/tls.h"

namespace httplib {
class Client;
}

namespace vpfs::control {

// POSTs JSON to one server, over a connection that it keeps. Calls block, and nothing throws.
//
// After a call that has failed the next one makes a new connection, and reads the files of TLS
// anew.
class HttpEndpoint {
 public:
  struct Settings {
    std::string url;      // "https://HOST:PORT" or "http://HOST:PORT"
    net::TlsFiles files;  // names that are empty: none
    Duration connect_time_out = {};
  };
  struct Call {
    std::string path;
    std::string token;  // for the header Authorization; empty: none
    std::string body;
    Duration time_out = {};  // for all of it; for the headers, if there is a `patience`
    Duration patience = {};  // how long the body may go on, from the beginning of the call
  };
  struct Answer {
    int status = 0;
    std::string body;
    // The connection ended after what is here, or etcd sent a trailer, which the library cannot
    // read. The owner sees in the body whether it is whole.
    bool may_be_cut = false;
  };
  struct Failure {
    enum class Why : std::uint8_t { failed, timed_out, cancelled, too_large };
    Why why = Why::failed;
    std::string text;       // continues "etcd at URL "
    bool was_sent = false;  // so the server may have carried it out
    // It began on a connection that was there before, which the server may have closed meanwhile.
    bool was_kept = false;
  };
  // The next part of the body, an empty one after the headers; false: that is enough.
  using Receive = std::function<bool(int status, std::string_view part)>;

  // Both outlive it.
  HttpEndpoint(Settings settings, CallGuard& guard, const Clock& clock);
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  [[nodiscard]] const std::string& url() const { return settings_.url; }
  // Whether the files of TLS can be used.
  [[nodiscard]] Result<void> check_files();

  // An answer of more than `most` bytes is a failure.
  [[nodiscard]] std::expected<Answer, Failure> post(const Call& call, std::size_t most);
  // Receives the body as it comes. Without a failure it came to its end, or was enough.
  [[nodiscard]] std::expected<void, Failure> stream(const Call& call, const Receive& receive);

 private:
  [[nodiscard]] Result<void> make_client();
  // The next connection goes to the next address of the host.
  [[nodiscard]] Result<void> aim();
  [[nodiscard]] std::expected<void, Failure> exchange(const Call& call, const Receive& receive);
  void drop();

  const Settings settings_;
  CallGuard& guard_;
  const Clock& clock_;
  HostAddresses addresses_;
  CallGuard::Line line_;
  std::unique_ptr<httplib::Client> client_;
};

}  // namespace vpfs::control
