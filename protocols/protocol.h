#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/io_kind.h"

// What the proxy sees of a parallel file system's wire protocol. An implementation is pure: bytes
// in, decisions out. It serves one client connection and the upstream connection that belongs
// to it.
namespace vpfs {

// Who sent the bytes of a stream.
enum class Sender : std::uint8_t { client, server };

// The number of a client node that has not introduced itself.
inline constexpr std::uint32_t kUnknownNode = 0xffffffff;
// Added to the number of a group of mirrored targets where it stands among those of targets.
inline constexpr std::uint32_t kMirrorGroup = 0x10000;

// Names one I/O among those of its connection, as long as it is held or outstanding.
using IoKey = std::uint64_t;

// One request, as the protocol shows it.
struct IoDescription {
  IoKey key = 0;
  IoKind kind = IoKind::read;
  std::uint64_t bytes = 0;           // of data that the data server will move; at most, for a read
  std::int64_t file_system = 0;      // zero where the protocol does not show it
  std::optional<std::uint32_t> uid;  // where the protocol shows exactly one

  // What follows, where the protocol shows it. Texts are valid until the next call of next().
  std::optional<std::uint32_t> node = std::nullopt;    // the client's number, one for each mount
  std::optional<std::uint32_t> target = std::nullopt;  // of the data server's storage targets
  // What the file itself lies on: a target, or kMirrorGroup + a group. One who asks for a file has
  // to say it, and cannot say another.
  std::optional<std::uint32_t> device = std::nullopt;
  std::optional<std::uint32_t> owner = std::nullopt;  // uid that the directory below belongs to
  std::string_view directory = {};                    // that the file was created in
  // The file as a node has it open; its uid is zero when the node's kernel writes back what others
  // wrote through it, or reads ahead for them.
  std::string_view open_file = {};
  // The same for a request and its repetition, and hardly ever for two others; zero: not known.
  std::uint64_t fingerprint = 0;
  // Whether `bytes` is what a read asks for, and its file may have less. `file` names what this
  // server has of it, the same on every connection; zero: not known (see FinishedIo::file_size).
  bool may_be_short = false;
  std::uint64_t file = 0;
};

// An I/O that the data server is done with.
struct FinishedIo {
  IoKey key = 0;
  std::uint64_t bytes = 0;  // moved
  bool failed = false;      // the data server answered with an error
  // The IoDescription::file that it was about, and how long the server said that is. A write leaves
  // the length open.
  std::uint64_t file = 0;
  std::optional<std::uint64_t> file_size = std::nullopt;
};

// How long clients wait for an answer.
struct ClientTimeout {
  Duration timeout = {};
  // The file systems that it holds for; none: for all of the protocol.
  std::vector<std::int64_t> file_systems = {};
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
  // Whether the client's address is one of the file system's own servers. They are not, until this
  // is called; it must not be called once something has been looked at.
  virtual void trust_peer(bool /*is_server*/) {}

  // Looks at the head of one stream, which always starts where the step before ended. Each
  // message is shown until it gives another step than need_more, and then never again.
  // Never asks for more than kMostNeeded bytes.
  // `bytes` may be empty: then it tells whether anything need be seen to go on.
  [[nodiscard]] virtual Step next(Sender from, std::span<const std::byte> bytes) = 0;
  static constexpr std::size_t kMostNeeded = std::size_t{128} * 1024;

  // Of the request in the last hold step; valid until the next call of next().
  [[nodiscard]] virtual const IoDescription& held() const = 0;
  // What the held request, a read with a `file`, would move if that file were `size` bytes long.
  [[nodiscard]] virtual std::uint64_t held_bytes_of(std::uint64_t /*size*/) const {
    return held().bytes;
  }
  // The value that the held request carries under a free name (a hint), borrowed from its bytes.
  [[nodiscard]] virtual std::optional<std::string_view> held_hint(std::string_view name) const = 0;

  // The held request has been forwarded.
  virtual void released(IoKey key) = 0;
  // A held request will not be forwarded. The answer goes to the client at a message boundary.
  [[nodiscard]] virtual std::vector<std::byte> refuse(IoKey key) = 0;
  // Bytes of an outstanding I/O that have been seen on their way.
  [[nodiscard]] virtual std::uint64_t moved(IoKey key) = 0;
  // Whether an outstanding I/O cannot go on before the client sends file data. `in_mid_message`:
  // the last message of the client's that next() has shown has not come to its end.
  [[nodiscard]] virtual bool awaits_client(IoKey key, bool in_mid_message) = 0;
  // Whether the end of an outstanding I/O will be seen when its last byte passes. Where not, only
  // silence tells; this may change with every step of the server's stream. True for other keys.
  [[nodiscard]] virtual bool end_shows(IoKey key) = 0;
  // Whether a data server has one of a few threads wait for the client of an I/O, so that others
  // cannot be served meanwhile. Then only the end of the connection frees it; clients repeat what
  // they had under way.
  [[nodiscard]] virtual bool occupies_server() const { return false; }
  // Bytes of file data in all messages of the client's that next() has shown, and whether the last
  // one has some.
  [[nodiscard]] virtual std::uint64_t data_from_client() const = 0;
  [[nodiscard]] virtual bool client_sends_data() const = 0;
  // An outstanding I/O that made no progress for so long that its end will not be seen any more:
  // forget it; whatever still comes of it passes through.
  virtual void forget(IoKey key) = 0;
  // The client's stream waits for answers that have not come for so long that they will not be seen
  // any more: go on without them.
  virtual void forget_answers() {}

  // The number of the client node, where its connections carry one request at a time: a node has
  // few of them, and a held request takes one from all of the node's applications. kUnknownNode
  // while the client has not told; nothing where connections carry many requests.
  [[nodiscard]] virtual std::optional<std::uint32_t> serial_client() const = 0;
  // Whether nothing but I/O that was held is under way, as far as the protocol shows.
  [[nodiscard]] virtual bool at_rest() const = 0;

  // How long clients of this file system wait for an answer, once a message has told.
  [[nodiscard]] virtual std::optional<ClientTimeout> client_timeout() const = 0;
  // After lost_framing: what is wrong, with the offset in the message.
  [[nodiscard]] virtual std::string problem() const = 0;
};

}  // namespace vpfs
