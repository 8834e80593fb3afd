#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/orangefs/calls/server_connection.h"
#include "net/async.h"
#include "net/signal.h"

namespace vpfs::client {

// The connections of one client to the servers of its file system: a fixed number to each, made
// when first needed and again when lost, used in turn. Belongs to one strand.
class ServerPool {
 public:
  ServerPool(asio::any_io_executor executor, const Clock& clock, Duration connect_patience,
             std::size_t connections);
  ~ServerPool();
  ServerPool(const ServerPool&) = delete;
  ServerPool& operator=(const ServerPool&) = delete;

  // Servers are numbered from zero in the order of add().
  void add(net::Endpoint server);

  // The next connection in turn if it is open; otherwise null, and connect() opens it.
  [[nodiscard]] std::shared_ptr<ServerConnection> ready(std::size_t server);
  // All that ask while a connect is under way get its outcome: an unreachable server costs each of
  // them one time-out, however many they are.
  [[nodiscard]] net::Task<Result<std::shared_ptr<ServerConnection>>> connect(std::size_t server);

  // Ends all exchanges; no connection is opened after it.
  void close();

 private:
  struct Attempt {
    net::Signal ended;
    Result<std::shared_ptr<ServerConnection>> outcome = {};
  };
  struct PooledConnection {
    std::shared_ptr<ServerConnection> connection;
    std::shared_ptr<Attempt> attempt;  // to connect, shared by all that wait for it
  };
  struct Server {
    net::Endpoint endpoint;
    std::vector<PooledConnection> connections;
    std::size_t turn = 0;
  };

  asio::any_io_executor executor_;
  const Clock& clock_;
  Duration connect_patience_;
  std::size_t connections_to_each_;
  std::vector<Server> servers_;
  bool closed_ = false;
};

}  // namespace vpfs::client
