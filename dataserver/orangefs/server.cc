#include "dataserver/orangefs/server.h"

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/result.h"
#include "dataserver/orangefs/fs_config.h"
#include "net/endpoint.h"

namespace vpfs::dataserver {
namespace {

using namespace std::chrono_literals;

// How long another server may take to answer (ServerJobBMITimeoutSecs).
constexpr auto kPeerPatience = 30s;
// A connection is closed when the rest of a message or write is silent for this many rounds (30 s).
constexpr auto kWatchRound = 10s;
constexpr int kSilentRounds = 3;

}  // namespace

Result<std::unique_ptr<Server>> Server::open(asio::io_context& context, ServerConfig config,
                                             std::uint32_t self, net::Listener listener,
                                             const Clock& clock, WallClock wall_clock) {
  std::vector<net::Endpoint> endpoints;
  for (const ServerAddress& server : config.servers) {
    auto endpoint = net::resolve_endpoint(server.listen_address());
    VPFS_TRY(endpoint);
    endpoints.push_back(*endpoint);
  }
  auto engine = open_engine(context, config.engine_settings(self));
  VPFS_TRY(engine);
  std::unique_ptr<Server> server(new Server(context, std::move(config), self, std::move(listener),
                                            clock, std::move(wall_clock), std::move(*engine),
                                            std::move(endpoints)));
  if (const Outcome<void> opened = server->metadata_.open(); !opened) {
    return fail(fmt::format("cannot create the root directory: {}",
                            std::make_error_code(opened.error()).message()));
  }
  return server;
}

Server::Server(asio::io_context& context, ServerConfig config, std::uint32_t self,
               net::Listener listener, const Clock& clock, WallClock wall_clock, Engine engine,
               std::vector<net::Endpoint> endpoints)
    : config_(std::move(config)),
      listener_(std::move(listener)),
      ranges_(static_cast<std::uint32_t>(config_.servers.size())),
      config_text_(orangefs::write_fs_config(fs_config(config_, ranges_))),
      engine_(std::move(engine)),
      datafiles_(*engine_.bstreams),
      metadata_(*engine_.metadata, ranges_, self, std::move(wall_clock)),
      peers_(context, std::move(endpoints), kPeerPatience),
      device_(context, clock, config_.device),
      server_{.io = context,
              .config = config_,
              .self = self,
              .config_text = config_text_,
              .ranges = ranges_,
              .metadata = metadata_,
              .bstreams = *engine_.bstreams,
              .datafiles = datafiles_,
              .peers = peers_,
              .device = device_},
      operations_(server_),
      watch_timer_(context) {}

Server::~Server() {
  stop();
}

void Server::start() {
  listener_.start([this](net::Socket socket) { accept(std::move(socket)); });
  watch();
}

void Server::accept(net::Socket socket) {
  auto connection = std::make_shared<ClientConnection>(server_, operations_, std::move(socket));
  const std::uint64_t number = next_connection_++;
  connections_.emplace(number, Watched{.connection = connection});
  connection->start([this, number] { connections_.erase(number); });
}

void Server::watch() {
  watch_timer_.expires_after(kWatchRound);
  watch_timer_.async_wait([this](std::error_code error) {
    if (error || stopped_) return;
    for (auto& [number, watched] : connections_) {
      const bool silent = watched.connection->waits_for_more() &&
                          watched.arrivals == watched.connection->arrivals();
      watched.arrivals = watched.connection->arrivals();
      watched.silent_rounds = silent ? watched.silent_rounds + 1 : 0;
      if (watched.silent_rounds >= kSilentRounds) {
        watched.connection->give_up("the rest of a message did not arrive within 30 s");
      }
    }
    watch();
  });
}

void Server::stop() {
  if (stopped_) return;
  stopped_ = true;
  listener_.close();
  watch_timer_.cancel();
  peers_.close();
  // Closing a connection may remove it from the map.
  std::vector<std::shared_ptr<ClientConnection>> open;
  for (const auto& [number, watched] : connections_) open.push_back(watched.connection);
  for (const auto& connection : open) connection->close();
}

}  // namespace vpfs::dataserver
