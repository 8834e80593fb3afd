#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/async.h"
#include "net/input_stream.h"
#include "net/output_queue.h"
#include "protocols/beegfs/types.h"

namespace vpfs::client {

// What a client tells a storage server when it connects.
struct StorageIntroduction {
  std::uint32_t node = 0;  // the number of the mount
  std::optional<std::uint64_t> secret = {};
};

// The bytes of a write. The file is used when `memory` is empty.
struct WriteBytes {
  std::span<const std::byte> memory = {};
  net::OutputQueue::FilePart file = {};
};

// The destination of a read of at most `size` bytes. They are dropped when `memory` is empty.
struct ReadRoom {
  std::span<std::byte> memory = {};
  std::uint64_t size = 0;
};

// A TCP connection to one BeeGFS storage server. It carries one request at a time and cannot be
// used again after a failed exchange. Belongs to the strand of its executor, and outlives its
// exchange.
class StorageConnection {
 public:
  // The number of bytes moved, or a negated OpsError. Empty when the connection is lost or the peer
  // breaks the protocol.
  using Outcome = std::optional<std::int64_t>;

  [[nodiscard]] static net::Task<Result<std::unique_ptr<StorageConnection>>> open(
      net::Endpoint server, StorageIntroduction introduction, Duration patience);
  explicit StorageConnection(net::Socket socket);
  StorageConnection(const StorageConnection&) = delete;
  StorageConnection& operator=(const StorageConnection&) = delete;

  // `message` is a WriteLocalFile or ReadLocalFileV2 for exactly these bytes.
  [[nodiscard]] net::Task<Outcome> write(std::span<const std::byte> message, WriteBytes bytes);
  [[nodiscard]] net::Task<Outcome> read(std::span<const std::byte> message, ReadRoom room);
  // Sends a request and returns the body of its answer, which has the type `answer`.
  [[nodiscard]] net::Task<std::optional<std::vector<std::byte>>> ask(
      std::span<const std::byte> message, beegfs::MessageType answer);

  // The owner closes the connection once this has passed.
  void set_deadline(TimePoint deadline) { deadline_ = deadline; }
  [[nodiscard]] TimePoint deadline() const { return deadline_; }
  void close();

 private:
  [[nodiscard]] net::Task<bool> introduce(StorageIntroduction introduction);
  [[nodiscard]] net::Task<bool> send(std::span<const std::byte> head,
                                     std::span<const std::byte> payload, bool more_follows = false);
  [[nodiscard]] net::Task<bool> send_file(net::OutputQueue::FilePart part);
  [[nodiscard]] net::Task<bool> writable();
  // Whether everything received has been consumed.
  [[nodiscard]] bool clean() const { return input_.buffered().empty(); }

  net::Socket socket_;
  net::InputStream input_;
  TimePoint deadline_ = kNever;
};

}  // namespace vpfs::client
