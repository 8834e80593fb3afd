#include "client/orangefs/server_pool.h"

#include <utility>

namespace vpfs::client {

ServerPool::ServerPool(asio::any_io_executor executor, const Clock& clock,
                       Duration connect_patience, std::size_t connections)
    : executor_(std::move(executor)),
      clock_(clock),
      connect_patience_(connect_patience),
      connections_(connections) {}

ServerPool::~ServerPool() {
  close();
}

void ServerPool::add(net::Endpoint server) {
  servers_.push_back(
      {.endpoint = std::move(server), .slots = std::vector<Slot>(connections_), .turn = 0});
}

std::shared_ptr<Connection> ServerPool::ready(std::size_t server) {
  Server& wanted = servers_[server];
  const std::size_t turn = wanted.turn;
  const std::shared_ptr<Connection>& connection = wanted.slots[turn].connection;
  if (!connection || !connection->usable()) return nullptr;
  wanted.turn = turn + 1 == wanted.slots.size() ? 0 : turn + 1;
  return connection;
}

net::Task<Result<std::shared_ptr<Connection>>> ServerPool::connect(std::size_t server) {
  const std::size_t index = servers_[server].turn;
  for (;;) {
    if (closed_) {
      co_return fail("the file system is closed",
                     std::make_error_code(std::errc::connection_aborted));
    }
    Slot& slot = servers_[server].slots[index];
    if (slot.connection && slot.connection->usable()) co_return slot.connection;
    if (!slot.connecting) break;
    const std::shared_ptr<asio::steady_timer> connecting = slot.connecting;
    (void)co_await connecting->async_wait(net::kUseTask);
  }
  if (const auto& lost = servers_[server].slots[index].connection) {
    lost->close(std::make_error_code(std::errc::connection_reset));
  }
  const auto connecting =
      std::make_shared<asio::steady_timer>(executor_, asio::steady_timer::time_point::max());
  servers_[server].slots[index].connecting = connecting;
  Result<std::shared_ptr<Connection>> connection =
      co_await Connection::open(servers_[server].endpoint, clock_, connect_patience_);
  connecting->cancel();
  Slot& slot = servers_[server].slots[index];
  slot.connecting = nullptr;
  if (!connection) co_return std::unexpected(std::move(connection.error()));
  if (closed_) {
    (*connection)->close(std::make_error_code(std::errc::connection_aborted));
  } else {
    slot.connection = *connection;
  }
  co_return connection;
}

void ServerPool::close() {
  closed_ = true;
  for (Server& server : servers_) {
    for (Slot& slot : server.slots) {
      if (slot.connection) {
        slot.connection->close(std::make_error_code(std::errc::connection_aborted));
      }
    }
  }
}

}  // namespace vpfs::client
