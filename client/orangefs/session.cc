#include "client/orangefs/session.h"

#include <array>
#include <ctime>
#include <utility>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/result.h"
#include "client/orangefs/calls/call.h"
#include "net/endpoint.h"
#include "net/gather.h"
#include "net/latch.h"

namespace vpfs::client {
namespace {

constexpr Duration kGetconfigTimeout = std::chrono::seconds(30);
constexpr std::uint64_t kCredentialLifetime = 3600;  // seconds
constexpr std::size_t kMostAtOnce = 256;             // requests of one operation
constexpr std::size_t kMostGroups = 32;              // that a server takes in a credential
constexpr int kMountAttempts = 3;
constexpr Duration kMountPause = std::chrono::milliseconds(100);

std::string host_name() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

net::Task<> pause(asio::any_io_executor executor, Duration duration) {
  asio::steady_timer timer(executor, duration);
  (void)co_await timer.async_wait(net::kUseTask);
}

struct AttemptResult {
  std::error_code failure;
  std::optional<orangefs::Response> response;
};

// One attempt on one connection.
net::Task<AttemptResult> attempt(ServerPool& pool, const asio::any_io_executor& executor,
                                 std::size_t server, const orangefs::Request& request,
                                 Duration patience) {
  std::shared_ptr<ServerConnection> connection = pool.ready(server);
  if (!connection) {
    Result<std::shared_ptr<ServerConnection>> made = co_await pool.connect(server);
    if (!made) co_return AttemptResult{.failure = made.error().code, .response = {}};
    connection = std::move(*made);
    if (!connection->usable()) {
      co_return AttemptResult{.failure = std::make_error_code(std::errc::connection_reset),
                              .response = {}};
    }
  }
  net::Latch latch(executor);
  Call call(*connection, latch);
  call.begin(request, patience);
  co_await latch.wait();
  co_return AttemptResult{.failure = call.failure(), .response = std::move(call.response())};
}

}  // namespace

Session::Session(asio::any_io_executor executor, SessionOptions options, const Clock& clock)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      clock_(clock),
      pool_(executor_, clock, options_.connect_timeout, options_.connections),
      closed_(executor_),
      host_(host_name()) {}

void Session::close() {
  pool_.close();
  closed_.notify_all();
}

net::Task<Result<std::shared_ptr<Session>>> Session::open(MountAddress address,
                                                          SessionOptions options,
                                                          const Clock& clock) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  auto session = std::make_shared<Session>(executor, std::move(options), clock);
  Result<void> good = co_await session->set_up(std::move(address));
  if (!good) {
    session->close();
    co_return std::unexpected(std::move(good.error()));
  }
  co_return session;
}

net::Task<Result<void>> Session::set_up(MountAddress address) {
  Result<net::Endpoint> first = net::resolve_endpoint(address.host_port);
  VPFS_CO_TRY(first);
  ServerPool bootstrap(executor_, clock_, options_.connect_timeout, 1);
  bootstrap.add(*first);
  Result<std::string> text = co_await config_from(bootstrap, 0, address.host_port);
  if (!text) {
    co_return fail(fmt::format("cannot mount {}://{}/{}: {}", address.scheme, address.host_port,
                               address.file_system, text.error().message),
                   text.error().code);
  }
  Result<MountConfig> config = read_mount_config(*text, address.file_system, address.scheme);
  VPFS_CO_TRY(config);
  config_ = std::move(*config);
  config_.job_timeout = options_.job_timeout.value_or(config_.job_timeout);
  config_.retry_limit = options_.retry_limit.value_or(config_.retry_limit);
  config_.retry_delay = options_.retry_delay.value_or(config_.retry_delay);
  retry_rule_ = {
      .limit = config_.retry_limit, .delay = config_.retry_delay, .retry_for = options_.retry_for};
  for (const MountConfig::Server& server : config_.servers) {
    Result<net::Endpoint> endpoint = net::resolve_endpoint(server.host_port);
    VPFS_CO_TRY(endpoint);
    pool_.add(*endpoint);
  }
  const auto ask_one = [this](std::size_t i) {
    return config_from(pool_, i, config_.servers[i].host_port);
  };
  const std::vector<Result<std::string>> others =
      co_await net::gather(config_.servers.size(), kMostAtOnce, ask_one);
  for (std::size_t i = 0; i < others.size(); ++i) {
    const Result<std::string>& other = others[i];
    if (!other) {
      co_return fail(fmt::format("cannot mount {}://{}/{}: {}", address.scheme, address.host_port,
                                 address.file_system, other.error().message),
                     other.error().code);
    }
    if (*other != *text) {
      co_return fail(fmt::format("server {} has another configuration than {}",
                                 config_.servers[i].host_port, address.host_port),
                     std::make_error_code(std::errc::invalid_argument));
    }
  }
  co_return Result<void>();
}

net::Task<Result<std::string>> Session::config_from(ServerPool& pool, std::size_t server,
                                                    std::string_view host_port) {
  const orangefs::Request request{.capability = {}, .hints = {}, .body = orangefs::EmptyRequest{}};
  for (int attempts = 1;; ++attempts) {
    AttemptResult answer = co_await attempt(pool, executor_, server, request, kGetconfigTimeout);
    if (answer.response) {
      auto* const body = std::get_if<orangefs::GetconfigResponse>(&answer.response->body);
      if (body == nullptr) co_return status_error("GETCONFIG", answer.response->status);
      co_return std::move(body->config);
    }
    if (attempts == kMountAttempts) {
      co_return transport_error(fmt::format("GETCONFIG to {}", host_port), answer.failure);
    }
    co_await pause(executor_, kMountPause);
  }
}

net::Task<Result<orangefs::Response>> Session::call(std::size_t server, orangefs::Request request,
                                                    bool* repeated) {
  const std::string_view what = orangefs::name(orangefs::op_of(request.body));
  Retry retry = new_retry();
  for (;;) {
    AttemptResult answer = co_await attempt(pool_, executor_, server, request, config_.job_timeout);
    if (answer.response) {
      if (answer.response->status != 0) co_return status_error(what, answer.response->status);
      co_return std::move(*answer.response);
    }
    if (answer.failure == std::errc::message_size) {
      co_return fail(fmt::format("{}: the request is too large", what), answer.failure);
    }
    if (!co_await pause_before_retry(retry, answer.failure)) {
      co_return transport_error(fmt::format("{} to {}", what, config_.servers[server].host_port),
                                answer.failure);
    }
    if (repeated != nullptr) *repeated = true;
  }
}

net::Task<std::vector<Result<orangefs::Response>>> Session::call_all(
    std::vector<Addressed> requests) {
  const auto call_one = [&](std::size_t i) {
    return call(requests[i].server, std::move(requests[i].request));
  };
  co_return co_await net::gather(requests.size(), kMostAtOnce, call_one);
}

net::Task<bool> Session::pause_before_retry(Retry& retry, std::error_code failure) {
  const std::optional<Duration> pause = retry.after(failure, clock_.now());
  if (!pause) co_return false;
  const bool closed = *pause > Duration::zero() && co_await closed_.wait_for(*pause);
  co_return !closed;
}

std::size_t Session::next_metadata_server() {
  const std::vector<MountConfig::Server>& servers = config_.servers;
  do {
    turn_ = (turn_ + 1) % servers.size();
  } while (servers[turn_].meta.empty());
  return turn_;
}

Result<std::size_t> Session::server_of(orangefs::Handle handle) const {
  if (const std::optional<std::size_t> server = config_.server_of(handle)) return *server;
  return fail(fmt::format("no server holds handle {}", handle),
              std::make_error_code(std::errc::invalid_argument));
}

orangefs::Credential Session::credential(const Caller& caller) const {
  std::vector<std::uint32_t> groups = {caller.gid};
  for (const std::uint32_t group : caller.groups) {
    if (groups.size() == kMostGroups) break;
    if (group != caller.gid) groups.push_back(group);
  }
  return {.uid = caller.uid,
          .groups = std::move(groups),
          .issuer = "C:" + host_,
          .timeout = static_cast<std::uint64_t>(std::time(nullptr)) + kCredentialLifetime,
          .signature = {},
          .certificate = {}};
}

orangefs::Hints Session::hints(const Caller& caller, orangefs::Handle object) {
  orangefs::Hints hints;
  if (object != kNoObject) {
    hints.push_back({.type = orangefs::HintType::handle,
                     .raw_type = static_cast<std::uint32_t>(orangefs::HintType::handle),
                     .number = object,
                     .key = {},
                     .text = {}});
  }
  const auto add = [&hints](const char* key, const std::string& text) {
    if (text.empty()) return;
    hints.push_back(
        {.type = orangefs::HintType::named, .raw_type = 0, .number = 0, .key = key, .text = text});
  };
  add("jobid", caller.jobid);
  add("vpfs", caller.virtual_pfs);
  return hints;
}

}  // namespace vpfs::client
