#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <asio/steady_timer.hpp>

#include "dataserver/orangefs/client_connection.h"
#include "dataserver/orangefs/datafiles.h"
#include "dataserver/store/engine.h"
#include "net/listener.h"

namespace vpfs::dataserver {

// One server of a file system. Belongs to the strand of its io_context, which it does not run.
class Server {
 public:
  // `listener` is already open, so that the kernel may have chosen its port. `clock` outlives the
  // server. The error names what cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<Server>> open(asio::io_context& context,
                                                            ServerConfig config, std::uint32_t self,
                                                            net::Listener listener,
                                                            const Clock& clock,
                                                            WallClock wall_clock);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  // Closes everything. The io_context runs out of work once all operations have ended.
  void stop();

  [[nodiscard]] net::Endpoint local_endpoint() const { return listener_.local_endpoint(); }
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }
  [[nodiscard]] const std::string& config_text() const { return config_text_; }

 private:
  struct Watched {
    std::shared_ptr<ClientConnection> connection;  // shared with its coroutines
    std::uint64_t arrivals = 0;
    int silent_rounds = 0;
  };

  Server(asio::io_context& context, ServerConfig config, std::uint32_t self, net::Listener listener,
         const Clock& clock, WallClock wall_clock, Engine engine,
         std::vector<net::Endpoint> endpoints);
  void accept(net::Socket socket);
  void watch();

  ServerConfig config_;
  net::Listener listener_;
  HandleRanges ranges_;
  std::string config_text_;
  Engine engine_;
  Datafiles datafiles_;
  Metadata metadata_;
  Peers peers_;
  DeviceQueue device_;
  ServerContext server_;
  Operations operations_;
  asio::steady_timer watch_timer_;
  std::map<std::uint64_t, Watched> connections_;
  std::uint64_t next_connection_ = 0;
  bool stopped_ = false;
};

}  // namespace vpfs::dataserver
