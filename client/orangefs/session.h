#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/orangefs/caches.h"
#include "client/orangefs/calls/caller.h"
#include "client/orangefs/calls/error.h"
#include "client/orangefs/calls/mount_address.h"
#include "client/orangefs/calls/mount_config.h"
#include "client/orangefs/calls/retry.h"
#include "client/orangefs/calls/server_pool.h"
#include "net/async.h"
#include "net/signal.h"
#include "protocols/orangefs/message.h"

namespace vpfs::client {

struct SessionOptions {
  std::size_t connections = 1;  // to each server
  Caller caller = {};           // the session's own
  Duration connect_timeout = std::chrono::seconds(5);
  // Where set, these take the place of the servers' configuration.
  std::optional<Duration> job_timeout = {};
  std::optional<std::uint32_t> retry_limit = {};
  std::optional<Duration> retry_delay = {};
  // Where set, this takes the place of retry_limit and retry_delay (retry.h).
  std::optional<Duration> retry_for = {};
  // Shared by the sessions of one mount; null: nothing is cached.
  std::shared_ptr<Caches> caches = {};
};

// For hints of a request that is about no one object.
inline constexpr orangefs::Handle kNoObject = 0;

// A client's standing with the servers of one file system: their configuration, connections to
// them, and requests that are repeated when a connection is lost.
//
// Shared by the views of its file system and their open files. Operations that run when the session
// is closed end with an error; let the event loop run until they have. Belongs to the strand of its
// executor.
class Session {
 public:
  // Gets the configuration from the server of the mount address, and makes sure that all servers
  // have the same one.
  [[nodiscard]] static net::Task<Result<std::shared_ptr<Session>>> open(MountAddress address,
                                                                        SessionOptions options,
                                                                        const Clock& clock);
  Session(asio::any_io_executor executor, SessionOptions options, const Clock& clock);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Sends a request to a server and waits for its response. Retries as configured when the
  // transport fails. A status other than zero is an error whose code is the errno. `repeated` is
  // set after a retry: an earlier attempt may already have done the work. A request that is larger
  // than servers take is not sent: EMSGSIZE.
  [[nodiscard]] net::Task<Result<orangefs::Response>> call(std::size_t server,
                                                           orangefs::Request request,
                                                           bool* repeated = nullptr);

  struct Addressed {
    std::size_t server = 0;
    orangefs::Request request;
  };
  // call() for all of them at once; the results are in the same order.
  [[nodiscard]] net::Task<std::vector<Result<orangefs::Response>>> call_all(
      std::vector<Addressed> requests);

  [[nodiscard]] Retry new_retry() const { return Retry(retry_rule_, clock_.now()); }
  // Waits before the next attempt after a failure of the transport; false when there are no more.
  [[nodiscard]] net::Task<bool> pause_before_retry(Retry& retry, std::error_code failure);

  // Picks the metadata server for a new object, in turn.
  [[nodiscard]] std::size_t next_metadata_server();

  // The server that holds the handle, or an error that names it.
  [[nodiscard]] Result<std::size_t> server_of(orangefs::Handle handle) const;
  [[nodiscard]] orangefs::Credential credential(const Caller& caller) const;
  [[nodiscard]] static orangefs::Hints hints(const Caller& caller, orangefs::Handle object);
  [[nodiscard]] const MountConfig& config() const { return config_; }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  [[nodiscard]] ServerPool& pool() { return pool_; }
  [[nodiscard]] const asio::any_io_executor& executor() const { return executor_; }

  [[nodiscard]] Caches* caches() const { return options_.caches.get(); }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] TimePoint now() const { return clock_.now(); }

  void close();

 private:
  [[nodiscard]] net::Task<Result<void>> set_up(MountAddress address);
  [[nodiscard]] net::Task<Result<std::string>> config_from(ServerPool& pool, std::size_t server,
                                                           std::string_view host_port);

  asio::any_io_executor executor_;
  SessionOptions options_;
  const Clock& clock_;
  MountConfig config_;
  RetryRule retry_rule_;
  ServerPool pool_;
  net::Signal closed_;
  std::string host_;
  std::size_t turn_ = 0;
};

}  // namespace vpfs::client
