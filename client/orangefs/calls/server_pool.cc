#include "client/orangefs/calls/server_pool.h"

#include <utility>

#include "base/result.h"

namespace vpfs::client {

ServerPool::ServerPool(asio::any_io_executor executor, const Clock& clock,
                       Duration connect_patience, std::size_t connections)
    : executor_(std::move(executor)),
      clock_(clock),
      connect_patience_(connect_patience),
      connections_to_each_(connections) {}

ServerPool::~ServerPool() {
  close();
}

void ServerPool::add(net::Endpoint server) {
  servers_.push_back({.endpoint = std::move(server),
                      .connections = std::vector<PooledConnection>(connections_to_each_),
                      .turn = 0});
}

std::shared_ptr<ServerConnection> ServerPool::ready(std::size_t server) {
  Server& wanted = servers_[server];
  const std::size_t turn = wanted.turn;
  const std::shared_ptr<ServerConnection>& connection = wanted.connections[turn].connection;
  if (!connection || !connection->usable()) return nullptr;
  wanted.turn = turn + 1 == wanted.connections.size() ? 0 : turn + 1;
  return connection;
}

net::Task<Result<std::shared_ptr<ServerConnection>>> ServerPool::connect(std::size_t server) {
  const std::size_t index = servers_[server].turn;
  for (;;) {
    if (closed_) {
      co_return fail("the file system is closed",
                     std::make_error_code(std::errc::connection_aborted));
    }
    PooledConnection& pooled = servers_[server].connections[index];
    if (pooled.connection && pooled.connection->usable()) co_return pooled.connection;
    if (!pooled.connecting) break;
    const std::shared_ptr<net::Signal> connecting = pooled.connecting;
    co_await connecting->wait();
  }
  if (const auto& lost = servers_[server].connections[index].connection) {
    lost->close(std::make_error_code(std::errc::connection_reset));
  }
  const auto connecting = std::make_shared<net::Signal>(executor_);
  servers_[server].connections[index].connecting = connecting;
  Result<std::shared_ptr<ServerConnection>> connection =
      co_await ServerConnection::open(servers_[server].endpoint, clock_, connect_patience_);
  connecting->notify_all();
  PooledConnection& pooled = servers_[server].connections[index];
  pooled.connecting = nullptr;
  VPFS_CO_TRY(connection);
  if (closed_) {
    (*connection)->close(std::make_error_code(std::errc::connection_aborted));
  } else {
    pooled.connection = *connection;
  }
  co_return connection;
}

void ServerPool::close() {
  closed_ = true;
  for (Server& server : servers_) {
    for (PooledConnection& pooled : server.connections) {
      if (pooled.connection) {
        pooled.connection->close(std::make_error_code(std::errc::connection_aborted));
      }
    }
  }
}

}  // namespace vpfs::client
