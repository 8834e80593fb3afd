#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "client/beegfs/storage_connection.h"
#include "net/async.h"
#include "net/output_queue.h"
#include "net/permits.h"
#include "net/signal.h"
#include "protocols/beegfs/file_io.h"
#include "protocols/beegfs/message_header.h"

namespace vpfs::client {

// The part of a file that one target stores, as an open file of a mount names it.
struct ChunkFile {
  std::uint16_t target = 0;
  std::string entry;                            // the entry id: the same at every mount
  std::uint64_t session = 1;                    // with the entry id, the file handle
  std::uint32_t user = 0;                       // the uid that does the I/O
  std::optional<beegfs::FileOwner> owner = {};  // told with writes by clients with quota
  // The directory that the file was created in.
  std::uint32_t directory_owner = 0;
  std::string directory = "root";  // its entry id
};

struct StorageClientOptions {
  net::Endpoint server;
  std::uint32_t node = 1;  // the number of the mount
  std::size_t connections = 12;
  std::optional<std::uint64_t> secret = {};
  Duration connect_patience = std::chrono::seconds(5);
  Duration timeout = std::chrono::seconds(600);  // of one request on one connection
  // The first retry is immediate; later ones wait this long, then (with the default) four times as
  // long after a minute of failures and twelve times as long after five.
  Duration retry_delay = std::chrono::seconds(5);
  // It gives up after so much time in these pauses, however long the attempts take. Zero: with the
  // first failure. REQUIRES: retry_delay is not zero otherwise.
  Duration give_up = std::chrono::seconds(600);
};

// The I/O of one mounted BeeGFS client to one storage server.
//
// As in the kernel client, each connection of the pool carries one request at a time, and all
// requests share one queue for free connections. When a connection is lost, the idle ones are
// closed too and its request is retried. The code of an error is an OpsError (error_code_of).
// Operations cannot be cancelled, but close() ends them. Belongs to the strand of its executor, and
// outlives its operations.
class StorageClient {
 public:
  StorageClient(asio::any_io_executor executor, StorageClientOptions options, const Clock& clock);
  ~StorageClient();
  StorageClient(const StorageClient&) = delete;
  StorageClient& operator=(const StorageClient&) = delete;

  // Each returns how many bytes it read; fewer than asked for means the end of the chunk file.
  [[nodiscard]] net::Task<Result<std::uint64_t>> read(const ChunkFile& file, std::uint64_t offset,
                                                      std::span<std::byte> into);
  // Reads and drops the data, without copying them to user space.
  [[nodiscard]] net::Task<Result<std::uint64_t>> discard(const ChunkFile& file,
                                                         std::uint64_t offset, std::uint64_t size);
  // Each writes everything or fails.
  [[nodiscard]] net::Task<Result<void>> write(const ChunkFile& file, std::uint64_t offset,
                                              std::span<const std::byte> from);
  [[nodiscard]] net::Task<Result<void>> write(const ChunkFile& file, std::uint64_t offset,
                                              net::OutputQueue::FilePart from);
  [[nodiscard]] net::Task<Result<void>> sync(const ChunkFile& file);
  // Removes the chunk file, as a metadata server does. A missing file is not an error.
  [[nodiscard]] net::Task<Result<void>> remove(const ChunkFile& file);
  // Checks, without retries, that the server answers and has that target.
  [[nodiscard]] net::Task<Result<void>> probe(std::uint16_t target);

  void close();

  struct Counters {
    std::uint64_t opened = 0;   // connections
    std::uint64_t lost = 0;     // of those, dropped idle ones included
    std::uint64_t repeats = 0;  // of requests
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }
  // Requests that wait for a free connection.
  [[nodiscard]] std::size_t waiting() const { return free_connections_.waiting(); }

 private:
  struct Operation {
    std::vector<std::byte> message;
    beegfs::MessageType type = {};
    WriteBytes from = {};
    ReadRoom into = {};
    // For the other types, whose answers begin with the result.
    beegfs::MessageType answer = {};
    bool long_result = false;  // 64 bits
  };
  struct PooledConnection {
    std::unique_ptr<StorageConnection> connection;  // null: not open
    bool busy = false;
  };
  using Outcome = StorageConnection::Outcome;

  [[nodiscard]] Operation file_operation(beegfs::MessageType type, const ChunkFile& file,
                                         std::uint64_t offset, std::uint64_t count) const;
  [[nodiscard]] net::Task<Result<std::uint64_t>> read_all(const ChunkFile& file,
                                                          std::uint64_t offset, ReadRoom room);
  [[nodiscard]] net::Task<Result<void>> write_all(const ChunkFile& file, std::uint64_t offset,
                                                  WriteBytes bytes, std::uint64_t size);
  // Retries for as long as the kernel client would.
  [[nodiscard]] net::Task<Result<std::uint64_t>> perform(const Operation& operation);
  [[nodiscard]] Duration delay_after(Duration paused) const;
  [[nodiscard]] net::Task<Outcome> try_once(const Operation& operation);
  [[nodiscard]] net::Task<Outcome> exchange(StorageConnection& connection,
                                            const Operation& operation);
  void drop(PooledConnection& pooled);
  void drop_idle();
  void watch_deadlines();

  asio::any_io_executor executor_;
  StorageClientOptions options_;
  const Clock& clock_;
  net::Permits free_connections_;
  std::vector<PooledConnection> connections_;
  std::vector<std::size_t> idle_;  // which of connections_; the last was used last
  net::Signal closing_;
  asio::steady_timer watch_;
  std::shared_ptr<const bool> alive_;  // shared with the handler of watch_
  Counters counters_;
  bool closed_ = false;
};

}  // namespace vpfs::client
