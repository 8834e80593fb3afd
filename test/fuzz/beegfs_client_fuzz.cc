#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <spdlog/spdlog.h>

#include "base/byte_writer.h"
#include "base/system_clock.h"
#include "client/beegfs/storage_client.h"
#include "protocols/beegfs/message_header.h"
#include "test/fuzz/fuzz_input.h"
#include "test/fuzz/require.h"

// The BeeGFS client library against a storage server that says anything: each operation ends, and
// gives no more than was asked for.
namespace vpfs::test {
namespace {

using namespace std::chrono_literals;

class LyingStorage {
 public:
  LyingStorage(asio::io_context& loop, FuzzInput& lies)
      : lies_(lies), acceptor_(loop, net::Endpoint(asio::ip::address_v4::loopback(), 0)) {
    asio::co_spawn(loop, serve(), asio::detached);
  }
  [[nodiscard]] net::Endpoint endpoint() const { return acceptor_.local_endpoint(); }
  void stop() {
    std::error_code ignored;
    acceptor_.close(ignored);
    if (client_) client_->close(ignored);
  }

 private:
  // Each connection gets the next lies, and then its end.
  net::Task<> serve() {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(net::kUseTask);
      if (error) co_return;
      client_.emplace(std::move(socket));
      const std::vector<std::byte> said = lies();
      const auto out = asio::buffer(said);
      const auto [failed, sent] = co_await asio::async_write(*client_, out, net::kUseTask);
      std::error_code ignored;
      client_->shutdown(net::Socket::shutdown_send, ignored);
      // What the client says is read, so that its connection ends by our end, not by a reset.
      std::array<std::byte, 16384> rest;
      while (!failed) {
        const auto into = asio::buffer(rest);
        const auto [ended, size] = co_await client_->async_read_some(into, net::kUseTask);
        if (ended) break;
      }
    }
  }

  std::vector<std::byte> lies() {
    std::vector<std::byte> said;
    for (bool more = true; more && !lies_.empty();) {
      switch (lies_.below(6)) {
        case 0: {
          const auto bytes = lies_.bytes(lies_.u8());
          said.insert(said.end(), bytes.begin(), bytes.end());
          break;
        }
        case 1:
        case 2:
          word(said, lies_.size());
          break;
        case 3:
          said.resize(said.size() + lies_.u16() % 20'000U, std::byte{0x5a});
          break;
        case 4:
          message(said);
          break;
        default:
          more = false;
      }
    }
    return said;
  }
  // As before each part of a read's data: its size, or a negated error.
  void word(std::vector<std::byte>& said, std::uint64_t value) {
    const bool is_error = lies_.u8() % 4 == 0;
    ByteWriter(said).u64(is_error ? ~value + 1 : value);
  }
  void message(std::vector<std::byte>& said) {
    constexpr beegfs::MessageType kTypes[] = {
        beegfs::MessageType::write_local_file_resp, beegfs::MessageType::fsync_local_file_resp,
        beegfs::MessageType::delete_chunks_resp, beegfs::MessageType::stat_storage_path_resp,
        beegfs::MessageType::generic_response};
    std::vector<std::byte> body;
    ByteWriter(body).u64(lies_.size());
    const auto more = lies_.bytes(lies_.below(40));
    body.insert(body.end(), more.begin(), more.end());
    const std::size_t choice = lies_.below(std::size(kTypes) + 1);
    const beegfs::MessageType type =
        choice < std::size(kTypes) ? kTypes[choice] : static_cast<beegfs::MessageType>(lies_.u16());
    const auto bytes = beegfs::make_message({.type = type}, body);
    said.insert(said.end(), bytes.begin(), bytes.end());
  }

  FuzzInput& lies_;
  asio::ip::tcp::acceptor acceptor_;
  std::optional<net::Socket> client_;
};

net::Task<> use(client::StorageClient& client) {
  const client::ChunkFile file = {.target = 101, .entry = "1-2-3", .user = 1000};
  std::vector<std::byte> bytes(100'000, std::byte{7});
  const std::span<std::byte> all(bytes);
  for (const std::size_t size : {std::size_t{100}, std::size_t{100'000}}) {
    (void)co_await client.write(file, 0, all.first(size));
    const Result<std::uint64_t> got = co_await client.read(file, 0, all.first(size));
    if (got) require(*got <= size, "more was read than asked for");
    const Result<std::uint64_t> dropped = co_await client.discard(file, 0, size);
    if (dropped) require(*dropped <= size, "more was dropped than asked for");
  }
  (void)co_await client.sync(file);
  (void)co_await client.probe(101);
  (void)co_await client.remove(file);
}

}  // namespace
}  // namespace vpfs::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs;
  using namespace vpfs::test;
  spdlog::set_level(spdlog::level::off);
  FuzzInput lies(data, size);
  asio::io_context loop(1);
  const SystemClock clock;
  LyingStorage storage(loop, lies);
  client::StorageClientOptions options;
  options.server = storage.endpoint();
  options.connections = 1;
  options.retry_delay = {};
  options.give_up = {};
  options.timeout = std::chrono::milliseconds(400);
  client::StorageClient client(loop.get_executor(), options, clock);
  bool finished = false;
  asio::co_spawn(loop, use(client), [&](const std::exception_ptr& problem) {
    require(problem == nullptr, "an operation throws");
    finished = true;
  });
  while (!finished) require(loop.run_one_for(std::chrono::seconds(10)) > 0, "it does not end");
  client.close();
  storage.stop();
  loop.restart();
  while (loop.poll() > 0) {
  }
  return 0;
}
