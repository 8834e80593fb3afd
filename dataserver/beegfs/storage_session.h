#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <asio/steady_timer.hpp>
#include <sys/uio.h>

#include "dataserver/beegfs/storage_context.h"
#include "dataserver/store/bstream_store.h"
#include "net/async.h"
#include "net/input_stream.h"
#include "protocols/beegfs/file_io.h"
#include "protocols/beegfs/message_header.h"

namespace vpfs::dataserver {

// One connection to a storage server: its requests one by one, in order. Shared by its coroutine
// and the timers that it waits for; the context outlives it.
class StorageSession : public std::enable_shared_from_this<StorageSession> {
 public:
  StorageSession(StorageContext& context, net::Socket socket);

  // `ended` is called once, after the session's last coroutine has ended.
  void start(std::function<void()> ended);
  void close();

 private:
  struct Write {
    StorageTarget* target = nullptr;
    std::uint64_t size = 0;
    std::int64_t result = 0;  // negative: the data are dropped
    std::optional<StorageFault> fault;
  };
  struct Read {
    StorageTarget* target = nullptr;
    BstreamId bstream = 0;
    std::int64_t offset = 0;
    std::uint64_t asked = 0;
    std::uint64_t readable = 0;
    std::uint64_t piece = 1;  // with one length word
    std::optional<StorageFault> fault;
  };

  [[nodiscard]] net::Task<> serve();
  // Each returns false when the connection must be closed.
  [[nodiscard]] net::Task<bool> take_request();
  [[nodiscard]] net::Task<bool> handle(const beegfs::MessageHeader& header);
  [[nodiscard]] net::Task<bool> handle_io(const beegfs::MessageHeader& header);
  [[nodiscard]] net::Task<bool> write(const beegfs::FileIo& io, Write plan);
  [[nodiscard]] net::Task<bool> take_data(const beegfs::FileIo& io, Write& plan);
  [[nodiscard]] net::Task<bool> take_window(BstreamStore::Window window);
  [[nodiscard]] net::Task<bool> read(Read plan);
  [[nodiscard]] net::Task<bool> send_piece(const Read& plan, std::uint64_t done,
                                           std::uint64_t size);
  [[nodiscard]] net::Task<bool> send_word(std::int64_t word);
  [[nodiscard]] net::Task<bool> send_half_word(const Read& plan, std::uint64_t first_piece);
  [[nodiscard]] net::Task<bool> send_wrong_type();
  // Empty when the header is incomplete.
  [[nodiscard]] net::Task<std::optional<beegfs::MessageHeader>> take_header();
  [[nodiscard]] net::Task<bool> fill_within(std::size_t size, Duration patience);
  [[nodiscard]] net::Task<bool> read_within(std::span<std::byte> into, Duration patience);
  [[nodiscard]] net::Task<bool> discard_within(std::uint64_t size, Duration patience);
  [[nodiscard]] net::Task<bool> send(std::span<const std::byte> bytes);
  [[nodiscard]] net::Task<bool> send(std::span<iovec> parts);
  // Drops all input until the peer closes.
  [[nodiscard]] net::Task<bool> stay_silent();
  [[nodiscard]] net::Task<> pause_until(TimePoint when);
  [[nodiscard]] net::Task<> pass_device(StorageTarget& target, std::uint64_t size);
  [[nodiscard]] Read plan_read(StorageTarget& target, const beegfs::FileIo& io);

  void arm(Duration patience);
  void disarm();
  void note_request(const beegfs::MessageHeader& header);
  void note_io(const beegfs::FileIo& io);
  [[nodiscard]] bool drop(const char* reason);

  StorageContext& context_;
  net::Socket socket_;
  net::InputStream input_;
  asio::steady_timer deadline_;
  asio::steady_timer pause_;
  std::uint64_t armed_ = 0;  // a counter; a deadline that was disarmed too late does nothing
  std::function<void()> ended_;
  std::vector<std::byte> message_;
  std::size_t number_ = 0;  // in the record
  bool header_in_pieces_ = false;
  bool authenticated_;
  bool closed_ = false;
};

}  // namespace vpfs::dataserver
