#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

// What the proxy sees of a parallel file system's wire protocol. An implementation is pure: bytes
// in, decisions out. It serves one client connection and the upstream connection that belongs
// to it.
namespace vpfs {

// Who sent the bytes of a stream.
enum class Sender : std::uint8_t { client, server };

// Names one I/O among those of its connection, as long as it is held or outstanding.
using IoKey = std::uint64_t;

enum class RequestKind : std::uint8_t { read, write, metadata };

// One request, as the protocol shows it.
struct IoDescription {
  IoKey key = 0;
  RequestKind kind = RequestKind::read;
  std::uint64_t bytes = 0;           // of data that the data server will move; at most, for a read
  std::int64_t file_system = 0;      // zero where the protocol does not show it
  std::optional<std::uint32_t> uid;  // where the protocol shows exactly one

  // What follows, where the protocol shows it. Texts are valid until the next call of next().
  std::optional<std::uint32_t> node = std::nullopt;    // the client's number, one for each mount
  std::optional<std::uint32_t> target = std::nullopt;  // of the data server's storage targets
  std::optional<std::uint32_t> owner = std::nullopt;   // uid that the directory below belongs to
  std::string_view directory = {};                     // that the file was created in
  // The file as a node has it open; its uid is zero when the node's kernel writes back what others
  // wrote through it.
  std::string_view open_file = {};
  // The same for a request and its repetition, and hardly ever for two others; zero: not known.
  std::uint64_t fingerprint = 0;
};

// An I/O that the data server is done with.
struct FinishedIo {
  IoKey key = 0;
  std::uint64_t bytes = 0;  // moved
  bool failed = false;      // the data server answered with an error
};

// What to do with the bytes at the head of a stream.
struct Step {
  enum class Action : std::uint8_t {
    need_more,     // ask again once `size` bytes are there
    forward,       // pass the next `size` bytes on; those that are not here yet need no look
    hold,          // the next `size` bytes, all here, are the I/O request that held() describes
    discard,       // drop the next `size` bytes; those that are not here yet need no look
    wait,          // not yet: ask again after released(), refuse(), or a step of the other stream
    lost_framing,  // the stream makes no sense from here on (see problem()): close the connection
  };
  Action action = Action::need_more;
  std::uint64_t size = 0;
  // With need_more: as far as the protocol shows, the sender has nothing to say before the other
  // one does, so a look for more would find nothing.
  bool silent = false;
  // With forward: what is over when the last of the `size` bytes has been received from its sender.
  std::optional<FinishedIo> finished = std::nullopt;
};

class Conversation {
 public:
  virtual ~Conversation() = default;

  // Whether requests that work on names and attributes are held like I/O (not those of mounting and
  // administration); they are not, until this is called.
  virtual void hold_metadata(bool hold) = 0;

  // Looks at the head of one stream, which always starts where the step before ended. Each
  // message is shown until it gives another step than need_more, and then never again.
  // Never asks for more than kMostNeeded bytes.
  // `bytes` may be empty: then it tells whether anything need be seen to go on.
  [[nodiscard]] virtual Step next(Sender from, std::span<const std::byte> bytes) = 0;
  static constexpr std::size_t kMostNeeded = std::size_t{128} * 1024;

  // Of the request in the last hold step; valid until the next call of next().
  [[nodiscard]] virtual const IoDescription& held() const = 0;
  // The value that the held request carries under a free name (a hint), borrowed from its bytes.
  [[nodiscard]] virtual std::optional<std::string_view> held_hint(std::string_view name) const = 0;

  // The held request has been forwarded.
  virtual void released(IoKey key) = 0;
  // A held request will not be forwarded. The answer goes to the client at a message boundary.
  [[nodiscard]] virtual std::vector<std::byte> refuse(IoKey key) = 0;
  // Bytes of an outstanding I/O that have been seen on their way.
  [[nodiscard]] virtual std::uint64_t moved(IoKey key) = 0;
  // Whether the end of an outstanding I/O will be seen when its last byte passes. Where not, only
  // silence tells; this may change with every step of the server's stream. True for other keys.
  [[nodiscard]] virtual bool end_shows(IoKey key) = 0;
  // An outstanding I/O that made no progress for so long that its end will not be seen any more:
  // forget it; whatever still comes of it passes through.
  virtual void forget(IoKey key) = 0;

  // The number of the client node, where its connections carry one request at a time: a node has
  // few of them, and a held request takes one from all of the node's applications. Nothing where
  // connections carry many requests, and before the client has told.
  [[nodiscard]] virtual std::optional<std::uint32_t> serial_client() const = 0;
  // Whether nothing but I/O that was held is under way, as far as the protocol shows.
  [[nodiscard]] virtual bool at_rest() const = 0;

  // How long clients of this file system wait for an answer, once a message has told.
  [[nodiscard]] virtual std::optional<Duration> client_timeout() const = 0;
  // After lost_framing: what is wrong, with the offset in the message.
  [[nodiscard]] virtual std::string problem() const = 0;
};

}  // namespace vpfs
