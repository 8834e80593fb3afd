#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/etcd/call_guard.h"
#include "control/etcd/etcd_messages.h"
#include "control/etcd/http_endpoint.h"
#include "net/tls.h"

namespace vpfs::control {

struct EtcdSettings {
  // "https://HOST:PORT" or "http://HOST:PORT" of the members of one cluster.
  std::vector<std::string> endpoints;
  net::TlsFiles files;  // empty names: no certificate; the authorities of the system
  // Empty: etcd asks for none. The gateway takes no user from a client whose certificate has a
  // common name.
  std::string user;
  std::string password;
  Duration connect_time_out = std::chrono::seconds(1);
  Duration call_time_out = std::chrono::seconds(2);  // after it is connected
};

struct EtcdFailure {
  enum class Why : std::uint8_t {
    // No endpoint gave an answer. The call may have been carried out.
    unreachable,
    refused,    // it was not carried out
    not_found,  // the lease has ended
    compacted,  // the revision is not kept any more
    too_large,  // the answer
    denied,     // the token is not valid (any more)
  };
  Why why = Why::unreachable;
  std::string text;            // a sentence that names the endpoint
  bool has_timed_out = false;  // no answer came in time from one of the endpoints
};
template <typename T>
using EtcdOutcome = std::expected<T, EtcdFailure>;

// A client of etcd's v3 JSON gateway (etcd 3.4 and later). Calls block, and nothing throws.
//
// Endpoints are tried in turn, beginning with the one that answered last. One that cannot be
// connected to, does not answer in time, or says that it is not available, makes way for the next.
// But a call that may have been carried out is sent again only where that does no harm.
//
// Belongs to one thread, except for cancel() and requests(). REQUIRES: the process ignores SIGPIPE.
class EtcdClient {
 public:
  enum class Repeat : std::uint8_t {
    no,
    // Twice is as good as once. For a transaction: the second time it fails, and what its failure
    // operations read shows that the first was carried out.
    yes,
  };
  struct Lease {
    std::int64_t id = 0;
    Duration time = {};
    std::uint64_t raft_term = 0;  // of the answer
  };
  enum class Watched : std::uint8_t {
    event,    // a key has changed, or may have
    nothing,  // the time is over
    broken,   // it ended before, or did not begin
  };
  // What each answer may have.
  static constexpr std::size_t kMostAnswer = std::size_t{64} << 20;
  static constexpr Duration kLongestAuthentication = std::chrono::seconds(5);

  // The error is about the settings; nothing is connected to. `clock` outlives the client.
  [[nodiscard]] static Result<std::unique_ptr<EtcdClient>> make(EtcdSettings settings,
                                                                const Clock& clock);
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  [[nodiscard]] EtcdOutcome<EtcdTransactionAnswer> transact(const EtcdTransaction& transaction,
                                                            Repeat repeat);
  // Linearizable: it sees all that was written before.
  [[nodiscard]] EtcdOutcome<EtcdRangeAnswer> range(const EtcdRange& range);
  [[nodiscard]] EtcdOutcome<void> put(std::string key, std::string value);
  [[nodiscard]] EtcdOutcome<void> erase(std::string key, std::string end = {});

  // It lasts at least this time; etcd may make it longer.
  [[nodiscard]] EtcdOutcome<Lease> grant_lease(std::chrono::seconds time);
  [[nodiscard]] EtcdOutcome<Lease> keep_alive(std::int64_t lease);
  [[nodiscard]] EtcdOutcome<void> revoke_lease(std::int64_t lease);

  // Waits until one of the keys changes after that revision, or for `patience`. 0: from now on.
  [[nodiscard]] Watched watch(const std::vector<std::string>& keys, std::int64_t revision,
                              Duration patience);
  // Until then, or until it is cancelled.
  void sleep_until(TimePoint time) { guard_->sleep_until(time); }

  // Any thread: calls end, now and from now on.
  void cancel() { guard_->cancel(); }
  [[nodiscard]] bool is_cancelled() const { return guard_->is_cancelled(); }
  // How many were sent, those for tokens included. Any thread.
  [[nodiscard]] std::uint64_t requests() const { return requests_; }

 private:
  EtcdClient(EtcdSettings settings, const Clock& clock, std::unique_ptr<CallGuard> guard);

  // With a token, which is renewed if etcd does not take it any more.
  [[nodiscard]] EtcdOutcome<nlohmann::json> call(const char* path, const nlohmann::json& request,
                                                 Repeat repeat);
  // etcd computes for long to check a password, on purpose, and goes on when the client has given
  // up. If all clients of a busy etcd gave up and asked again, none would ever get a token. So each
  // try that no endpoint answers in time doubles the time that the next one waits, up to
  // kLongestAuthentication, and each success halves it.
  [[nodiscard]] EtcdOutcome<void> authenticate();
  // To the endpoints in turn.
  [[nodiscard]] EtcdOutcome<nlohmann::json> send(const HttpEndpoint::Call& call, Repeat repeat);
  [[nodiscard]] EtcdOutcome<nlohmann::json> judge(const HttpEndpoint& endpoint,
                                                  const std::string& path,
                                                  const HttpEndpoint::Answer& answer);

  const EtcdSettings settings_;
  const Clock& clock_;
  const std::unique_ptr<CallGuard> guard_;
  std::vector<std::unique_ptr<HttpEndpoint>> endpoints_;
  std::size_t first_ = 0;  // the endpoint that answered last
  std::string token_;
  Duration authentication_time_out_;
  std::atomic<std::uint64_t> requests_ = 0;
};

}  // namespace vpfs::control
