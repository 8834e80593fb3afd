#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/orangefs/mount_address.h"
#include "client/orangefs/mount_config.h"
#include "client/orangefs/server_pool.h"
#include "net/async.h"
#include "protocols/orangefs/message.h"

namespace vpfs::client {

struct SessionOptions {
  std::size_t connections = 1;  // to each server
  std::string jobid;            // the hint on every request for an object; "" sends none
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  Duration connect_timeout = std::chrono::seconds(5);
  // Where set, these take the place of the servers' configuration.
  std::optional<Duration> job_timeout = {};
  std::optional<std::uint32_t> retry_limit = {};
  std::optional<Duration> retry_delay = {};
};

// A client's standing with the servers of one file system: their configuration, connections to
// them, and requests that are repeated when a connection is lost.
//
// Operations that run when the session is closed end with an error; let the event loop run until
// they have. Belongs to the strand of its executor.
class Session {
 public:
  // Gets the configuration from the server of the mount address, and makes sure that all servers
  // have the same one.
  [[nodiscard]] static net::Task<Result<std::unique_ptr<Session>>> open(MountAddress address,
                                                                        SessionOptions options,
                                                                        const Clock& clock);
  Session(asio::any_io_executor executor, SessionOptions options, const Clock& clock);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Sends a request to a server and waits for its response. Retries as configured when the
  // transport fails. A status other than zero is an error whose code is the errno. `repeated` is
  // set after a retry: an earlier attempt may already have done the work.
  [[nodiscard]] net::Task<Result<orangefs::Response>> call(std::size_t server,
                                                           orangefs::Request request,
                                                           bool* repeated = nullptr);

  struct Addressed {
    std::size_t server = 0;
    orangefs::Request request;
  };
  // call() for all of them at once; the results stand in the same order.
  [[nodiscard]] net::Task<std::vector<Result<orangefs::Response>>> call_all(
      std::vector<Addressed> requests);

  // Waits before the next attempt after a failure of the transport; false when there are no more.
  [[nodiscard]] net::Task<bool> retry_after(std::error_code failure, std::uint32_t attempt);

  // The server that holds the handle, or an error that names it.
  [[nodiscard]] Result<std::size_t> server_of(orangefs::Handle handle) const;
  [[nodiscard]] orangefs::Credential credential() const;
  [[nodiscard]] orangefs::Hints hints(orangefs::Handle object) const;
  [[nodiscard]] const MountConfig& config() const { return config_; }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  [[nodiscard]] ServerPool& pool() { return pool_; }
  [[nodiscard]] const asio::any_io_executor& executor() const { return executor_; }

  void close() { pool_.close(); }

 private:
  [[nodiscard]] net::Task<Result<void>> set_up(MountAddress address);
  [[nodiscard]] net::Task<Result<std::string>> config_from(ServerPool& pool, std::size_t server,
                                                           std::string_view host_port);

  asio::any_io_executor executor_;
  SessionOptions options_;
  const Clock& clock_;
  MountConfig config_;
  ServerPool pool_;
  std::string host_;
};

// The error for a response's status, and for a failure of the transport. After the latter it is
// unknown whether the server did the work.
[[nodiscard]] std::unexpected<Error> status_error(std::string_view what, orangefs::Status status);
[[nodiscard]] std::unexpected<Error> transport_error(std::string_view what,
                                                     std::error_code failure);
[[nodiscard]] bool is_transport_error(const Error& error);

}  // namespace vpfs::client
