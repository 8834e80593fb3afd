#include "dataserver/beegfs/storage.h"

#include <algorithm>
#include <stdexcept>

#include <asio/use_future.hpp>

#include "base/check.h"

namespace vpfs::dataserver {
namespace {

using namespace std::chrono_literals;

net::Listener listen(asio::io_context& loop, const StorageSettings& settings) {
  const auto address =
      settings.any_address ? asio::ip::address_v4::any() : asio::ip::address_v4::loopback();
  auto listener = net::Listener::open(loop, net::Endpoint(address, settings.port));
  if (!listener) throw std::runtime_error(listener.error().message);
  return std::move(*listener);
}

}  // namespace

BeegfsStorage::BeegfsStorage(StorageSettings settings)
    : settings_(std::move(settings)),
      context_(loop_, settings_, clock_),
      listener_(listen(loop_, settings_)),
      port_(listener_.local_endpoint().port()) {
  listener_.start([this](net::Socket socket) { accept(std::move(socket)); });
  thread_ = std::thread([this] { loop_.run(); });
}

BeegfsStorage::~BeegfsStorage() {
  stop();
}

void BeegfsStorage::accept(net::Socket socket) {
  const auto session = std::make_shared<StorageSession>(context_, std::move(socket));
  const std::uint64_t number = next_session_++;
  sessions_.emplace(number, session);
  session->start([this, number] { sessions_.erase(number); });
}

void BeegfsStorage::close_sessions() {
  for (const auto& [number, session] : sessions_) session->close();
}

void BeegfsStorage::stop() {
  if (!thread_.joinable()) return;
  on_thread([this] {
    listener_.close();
    context_.stop();
    close_sessions();
  });
  thread_.join();
}

void BeegfsStorage::inject(StorageFault fault) {
  on_thread([&] {
    context_.faults.push_back(fault);
    ++context_.record.faults_left;
  });
}

StorageRecord BeegfsStorage::record() {
  StorageRecord copy;
  on_thread([&] { copy = context_.record; });
  return copy;
}

net::Task<> BeegfsStorage::write_whole(std::uint16_t target, const std::string& entry,
                                       std::span<const std::byte> bytes) {
  const BstreamId file = context_.find_target(target)->chunk_file(entry);
  (void)context_.store.remove(file);
  std::int64_t offset = 0;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), context_.store.most_window());
    auto window = co_await context_.store.open_window(file, offset, size);
    VPFS_ASSERT(window);
    for (const std::span<std::byte> part : window->parts) {
      std::ranges::copy(bytes.first(part.size()), part.begin());
      bytes = bytes.subspan(part.size());
    }
    (void)co_await context_.store.commit(std::move(*window));
    offset += static_cast<std::int64_t>(size);
  }
}

net::Task<std::vector<std::byte>> BeegfsStorage::read_whole(std::uint16_t target,
                                                            const std::string& entry) {
  const BstreamId file = context_.find_target(target)->chunk_file(entry);
  const auto size = static_cast<std::size_t>(context_.store.size(file).value_or(0));
  const auto parts = co_await context_.store.read(file, 0, size);
  std::vector<std::byte> bytes;
  for (const auto& part : *parts) bytes.insert(bytes.end(), part.bytes.begin(), part.bytes.end());
  co_return bytes;
}

void BeegfsStorage::put(std::uint16_t target, const std::string& entry,
                        std::span<const std::byte> bytes) {
  asio::co_spawn(loop_, write_whole(target, entry, bytes), asio::use_future).get();
}

std::vector<std::byte> BeegfsStorage::content(std::uint16_t target, const std::string& entry) {
  return asio::co_spawn(loop_, read_whole(target, entry), asio::use_future).get();
}

}  // namespace vpfs::dataserver
