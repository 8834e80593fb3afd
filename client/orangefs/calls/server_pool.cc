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
  if (closed_) {
    co_return fail("the file system is closed",
                   std::make_error_code(std::errc::connection_aborted));
  }
  const PooledConnection now = servers_[server].connections[index];
  if (now.connection && now.connection->usable()) co_return now.connection;
  if (now.attempt) {
    co_await now.attempt->ended.wait();
    co_return now.attempt->outcome;
  }
  if (now.connection) now.connection->close(std::make_error_code(std::errc::connection_reset));
  const std::shared_ptr<Attempt> attempt(new Attempt{.ended = net::Signal(executor_)});
  servers_[server].connections[index].attempt = attempt;
  attempt->outcome =
      co_await ServerConnection::open(servers_[server].endpoint, clock_, connect_patience_);
  PooledConnection& pooled = servers_[server].connections[index];
  pooled.attempt = nullptr;
  if (attempt->outcome) {
    if (closed_) {
      (*attempt->outcome)->close(std::make_error_code(std::errc::connection_aborted));
    } else {
      pooled.connection = *attempt->outcome;
    }
  }
  attempt->ended.notify_all();
  co_return attempt->outcome;
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
