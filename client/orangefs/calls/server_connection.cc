#include "client/orangefs/calls/server_connection.h"

#include <algorithm>
#include <utility>

#include <asio/this_coro.hpp>
#include <spdlog/spdlog.h>

#include "base/result.h"
#include "net/congestion/congestion_control.h"
#include "net/endpoint.h"

namespace vpfs::client {
namespace {

// Holds several small responses, but little of a flow message, because buffered data are copied.
constexpr std::size_t kResponsesBuffer = 32768;
// READDIR and GETCONFIG answers are the largest responses.
constexpr std::uint64_t kMaxResponse = 4U << 20;
// An IO response and the header of the flow message behind it.
constexpr std::size_t kAheadOfBulk = 2 * orangefs::kBmiHeaderSize + 24;
constexpr orangefs::Tag kMaxTag = 0x7fffffff;

}  // namespace

ServerConnection::ServerConnection(net::Socket socket, const Clock& clock)
    : clock_(clock),
      socket_(std::move(socket)),
      input_(socket_, kResponsesBuffer),
      output_(socket_),
      watch_(socket_.get_executor()) {}

ServerConnection::~ServerConnection() {
  close(std::make_error_code(std::errc::connection_aborted));
}

net::Task<Result<std::shared_ptr<ServerConnection>>> ServerConnection::open(net::Endpoint server,
                                                                            const Clock& clock,
                                                                            Duration patience) {
  Result<net::Socket> socket = co_await net::connect(std::move(server), patience);
  VPFS_CO_TRY(socket);
  net::choose_local_congestion(socket->native_handle());
  const std::shared_ptr<ServerConnection> connection(
      new ServerConnection(std::move(*socket), clock));
  // Both keep it alive until close().
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  asio::co_spawn(executor, connection->read_messages(), asio::detached);
  asio::co_spawn(executor, connection->watch_deadlines(), asio::detached);
  co_return connection;
}

orangefs::Tag ServerConnection::begin(Exchange& exchange, Duration patience) {
  do {
    last_tag_ = last_tag_ == kMaxTag ? 1 : last_tag_ + 1;
  } while (exchanges_.contains(last_tag_));
  exchange.tag_ = last_tag_;
  exchange.patience_ = patience;
  exchange.deadline_ = clock_.now() + patience;
  exchanges_.emplace(last_tag_, &exchange);
  exchange.in_bulk_ = exchange.reads_in_bulk();
  if (exchange.in_bulk_) ++bulk_reads_;
  if (patience < least_patience_) {
    least_patience_ = patience;
    watch_.cancel();
  }
  return last_tag_;
}

void ServerConnection::forget(Exchange& exchange) {
  if (exchanges_.erase(exchange.tag_) > 0 && exchange.in_bulk_) --bulk_reads_;
}

Exchange* ServerConnection::find(orangefs::Tag tag) {
  const auto found = exchanges_.find(tag);
  return found == exchanges_.end() ? nullptr : found->second;
}

void ServerConnection::close(std::error_code reason) {
  if (!usable_) return;
  usable_ = false;
  output_.close();
  std::error_code ignored;
  socket_.close(ignored);
  watch_.cancel();
  for (const auto& [tag, exchange] : std::exchange(exchanges_, {})) exchange->on_failure(reason);
}

net::Task<> ServerConnection::read_messages() {
  const std::shared_ptr<ServerConnection> self = shared_from_this();
  for (;;) {
    const Step step = handle_buffered();
    if (step == Step::handled) continue;
    bool good = step == Step::need_more;
    if (good) {
      good = co_await input_.fill(orangefs::kBmiHeaderSize,
                                  bulk_reads_ > 0 ? kAheadOfBulk : kResponsesBuffer);
    }
    if (!usable_) co_return;
    if (!good) break;
    const auto header = orangefs::decode_bmi_header(input_.buffered());
    if (!header) {
      spdlog::error("a server's message is malformed: {}", orangefs::describe(header.error()));
      break;
    }
    input_.consume(orangefs::kBmiHeaderSize);
    if (!co_await read_message(*header) || !usable_) break;
  }
  close(std::make_error_code(std::errc::connection_reset));
}

ServerConnection::Step ServerConnection::handle_buffered() {
  const auto buffered = input_.buffered();
  const auto header = orangefs::decode_bmi_header(buffered);
  if (!header) return Step::need_more;  // the caller tells a short header from a bad one
  if (buffered.size() - orangefs::kBmiHeaderSize < header->payload_size) return Step::need_more;
  Exchange* const exchange = find(header->tag);
  if (exchange != nullptr && exchange->expects_data()) return Step::need_more;
  const auto size = static_cast<std::size_t>(header->payload_size);
  const bool good = hand_over(header->tag, buffered.subspan(orangefs::kBmiHeaderSize, size));
  if (!usable_) return Step::broken;
  input_.consume(orangefs::kBmiHeaderSize + size);
  return good ? Step::handled : Step::broken;
}

net::Task<bool> ServerConnection::read_message(const orangefs::BmiHeader& header) {
  Exchange* const exchange = find(header.tag);
  if (exchange == nullptr) co_return co_await input_.discard(header.payload_size);
  if (exchange->expects_data()) co_return co_await read_data(header.tag, header.payload_size);
  co_return co_await read_response(header.tag, header.payload_size);
}

net::Task<bool> ServerConnection::read_response(orangefs::Tag tag, std::uint64_t size) {
  if (size > kMaxResponse) {
    spdlog::error("a server's response of {} bytes is too long", size);
    co_return false;
  }
  if (size <= kResponsesBuffer) {
    const auto here = static_cast<std::size_t>(size);
    if (!co_await input_.fill(here) || !usable_) co_return false;
    const bool good = hand_over(tag, input_.buffered().first(here));
    if (usable_) input_.consume(here);
    co_return good;
  }
  std::vector<std::byte> payload(static_cast<std::size_t>(size));
  if (!co_await input_.read(payload) || !usable_) co_return false;
  co_return hand_over(tag, payload);
}

bool ServerConnection::hand_over(orangefs::Tag tag, std::span<const std::byte> payload) {
  Exchange* const exchange = find(tag);
  if (exchange == nullptr) return true;
  exchange->deadline_ = clock_.now() + exchange->patience_;
  return exchange->on_response(payload);
}

net::Task<bool> ServerConnection::read_data(orangefs::Tag tag, std::uint64_t size) {
  Exchange* exchange = find(tag);
  if (!exchange->on_data(size)) {
    spdlog::error("a server sent {} bytes of data, more than requested", size);
    co_return false;
  }
  while (size > 0) {
    const Exchange::Room room = exchange->next_room(size);
    receiving_ = tag;
    const bool good =
        room.into.empty() ? co_await input_.discard(room.drop) : co_await input_.read(room.into);
    receiving_ = 0;
    if (!good || !usable_) co_return false;
    exchange->deadline_ = clock_.now() + exchange->patience_;
    size -= room.into.empty() ? room.drop : room.into.size();
  }
  exchange->on_data_end();
  co_return true;
}

net::Task<> ServerConnection::watch_deadlines() {
  const std::shared_ptr<ServerConnection> self = shared_from_this();
  while (usable_) {
    // Deadlines are coarse: an exchange ends at most an eighth of its patience late.
    watch_.expires_after(std::max<Duration>(least_patience_ / 8, std::chrono::milliseconds(1)));
    (void)co_await watch_.async_wait(net::kUseTask);
    if (usable_) expire(clock_.now());
  }
}

void ServerConnection::expire(TimePoint now) {
  std::vector<Exchange*> expired;
  for (const auto& [tag, exchange] : exchanges_) {
    if (exchange->deadline_ <= now) expired.push_back(exchange);
  }
  const std::error_code reason = std::make_error_code(std::errc::timed_out);
  for (Exchange* const exchange : expired) {
    if (!usable_) return;
    // Data are arriving in its owner's memory; only closing the connection stops that.
    if (exchange->tag_ == receiving_) return close(reason);
    forget(*exchange);
    exchange->on_failure(reason);
  }
}

}  // namespace vpfs::client
