#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/device.h"
#include "base/io_kind.h"
#include "base/saved/saved_state.h"

// The proxy's view of a parallel file system's wire protocol. An implementation is pure: bytes in,
// decisions out. It serves one client connection and its upstream connection.
namespace vpfs {

// What a client's address says.
enum class PeerAddress : std::uint8_t {
  unknown,      // nothing: the file system's own servers are not listed
  server,       // it is one of them
  not_servers,  // it is none of them
};

// The side that sent the bytes of a stream.
enum class Sender : std::uint8_t { client, server };

// Stands for the number of a client node that has not introduced itself.
inline constexpr std::uint32_t kUnknownNode = 0xffffffff;

// Identifies an I/O within its connection while the I/O is held or outstanding.
using IoKey = std::uint64_t;

// One request, as the protocol shows it.
struct IoDescription {
  IoKey key = 0;
  IoKind kind = IoKind::read;
  std::uint64_t bytes = 0;           // file data that the server will move; a read may move less
  std::int64_t file_system = 0;      // zero where the protocol does not show it
  std::optional<std::uint32_t> uid;  // where the protocol shows exactly one

  // The fields below are set where the protocol shows them. Texts are valid until the next next().
  std::optional<std::uint32_t> node = std::nullopt;    // the client's number, one for each mount
  std::optional<std::uint32_t> target = std::nullopt;  // of the data server's storage targets
  // The target that holds the file, or kMirrorGroup + its mirror group. A client cannot reach the
  // file under another one.
  std::optional<std::uint32_t> device = std::nullopt;
  std::optional<std::uint32_t> owner = std::nullopt;  // uid that owns the directory below
  std::string_view directory = {};                    // where the file was created
  // The node's open file. The request's uid is zero when the node's kernel writes back what users
  // wrote through it, or reads ahead for them.
  std::string_view open_file = {};
  // Equal for a request and its retry; collisions are rare. Zero: not known.
  std::uint64_t fingerprint = 0;
  // The read asks for `bytes`, but the file may be shorter. `file` identifies this server's part of
  // the file on every connection; zero: not known (see FinishedIo::file_size).
  bool may_be_short = false;
  std::uint64_t file = 0;
  // The handle for which the data server has a queue: requests wait there for each other, on
  // whatever connection they come. Zero: there is no such queue.
  std::uint64_t handle = 0;
  // Where the I/O begins in this server's part of the file.
  std::optional<std::uint64_t> offset = std::nullopt;
};

// An I/O that the data server has finished.
struct FinishedIo {
  IoKey key = 0;
  std::uint64_t bytes = 0;  // moved
  bool failed = false;      // the data server answered with an error
  // The IoDescription::file of the I/O, and its size as the server told it. A write has no size.
  std::uint64_t file = 0;
  std::optional<std::uint64_t> file_size = std::nullopt;
};

// How long clients wait for an answer.
struct ClientTimeout {
  Duration timeout = {};
  // Applies to these file systems; empty: to all of the protocol.
  std::vector<std::int64_t> file_systems = {};
};

// What to do with the bytes at the head of a stream.
struct Step {
  enum class Action : std::uint8_t {
    need_more,     // ask again once `size` bytes are there
    forward,       // pass the next `size` bytes on, unseen where they have not come yet
    hold,          // the next `size` bytes, all here, are the I/O request that held() describes
    discard,       // drop the next `size` bytes, unseen where they have not come yet
    wait,          // not yet: ask again after released(), refuse(), or a step of the other stream
    lost_framing,  // the stream makes no sense from here on (see problem()): close the connection
  };
  Action action = Action::need_more;
  std::uint64_t size = 0;
  // With forward: the I/O that ends when the last of the `size` bytes is received.
  std::optional<FinishedIo> finished = std::nullopt;
};

class Conversation {
 public:
  virtual ~Conversation() = default;

  // Whether requests on names and attributes are held like I/O; those of mounting and
  // administration never are. The default is false.
  virtual void hold_metadata(bool hold) = 0;
  // The default is `unknown`. REQUIRES: next() has not been called.
  virtual void set_peer(PeerAddress /*address*/) {}

  // Looks at the head of one stream, which starts where the previous step ended. The caller shows
  // the same message until the step is not need_more. Asks for at most kMostNeeded bytes.
  // `bytes` may be empty; the step then tells whether the conversation must see any to go on.
  [[nodiscard]] virtual Step next(Sender from, std::span<const std::byte> bytes) = 0;
  static constexpr std::size_t kMostNeeded = std::size_t{128} * 1024;

  // Describes the request of the last hold step; valid until the next call of next().
  [[nodiscard]] virtual const IoDescription& held() const = 0;
  // The bytes that the held request would move from a file of `size` bytes.
  // REQUIRES: it is a read with a `file`.
  [[nodiscard]] virtual std::uint64_t held_bytes_of(std::uint64_t /*size*/) const {
    return held().bytes;
  }
  // The held request's hint of that name, borrowed from its bytes.
  [[nodiscard]] virtual std::optional<std::string_view> held_hint(std::string_view name) const = 0;

  // The held request has been forwarded.
  virtual void released(IoKey key) = 0;
  // A held request will not be forwarded. The answer goes to the client at a message boundary.
  [[nodiscard]] virtual std::vector<std::byte> refuse(IoKey key) = 0;
  // How many bytes of an outstanding I/O next() has shown so far.
  [[nodiscard]] virtual std::uint64_t moved(IoKey key) = 0;
  // Whether an outstanding I/O cannot go on before the client sends file data. `in_mid_message`:
  // the client's last message has not arrived in full.
  [[nodiscard]] virtual bool awaits_client(IoKey key, bool in_mid_message) = 0;
  // Whether an outstanding request may still be in the queue of its handle, as far as next() has
  // shown.
  [[nodiscard]] virtual bool is_queued(IoKey /*key*/) { return false; }
  // Whether a step will mark the end of an outstanding I/O. If not, only silence shows the end. The
  // answer may change with every step of the server's stream. True for other keys.
  [[nodiscard]] virtual bool end_shows(IoKey key) = 0;
  // Whether an I/O keeps one of the data server's few threads busy while its client is slow. Only
  // closing the connection frees the thread; clients retry what they had under way.
  [[nodiscard]] virtual bool occupies_server() const { return false; }
  // File data in all client messages that next() has shown, and whether the last one carries some.
  [[nodiscard]] virtual std::uint64_t data_from_client() const = 0;
  [[nodiscard]] virtual bool client_sends_data() const = 0;
  // Drops an outstanding I/O that has made no progress for too long. Later messages of it pass.
  virtual void forget(IoKey key) = 0;
  // An outstanding I/O is over whose end only silence shows.
  virtual void ended(IoKey key) { forget(key); }
  // Lets a client's stream that has waited too long for answers go on without them.
  virtual void forget_answers() {}

  // The client node's number, where connections carry one request at a time: a node has few
  // connections, and a held request takes one from all of its applications. kUnknownNode until the
  // client tells it; nothing where connections carry many requests.
  [[nodiscard]] virtual std::optional<std::uint32_t> serial_client() const = 0;
  // Whether only I/O that was held is under way, as far as the protocol shows.
  [[nodiscard]] virtual bool at_rest() const = 0;

  // For a successor that goes on with the connection. `may_be_saved`: apart from held requests,
  // only answers to requests that were not held are due. REQUIRES (all): both streams are at a
  // boundary, and no request that was held is at the data server. The successor restores before
  // next(), and is shown the held requests again.
  [[nodiscard]] virtual bool may_be_saved() const = 0;
  virtual void save(SavedState& to) = 0;
  virtual void restore(const SavedState& from) = 0;

  // How long clients of this file system wait for an answer, once a message has told.
  [[nodiscard]] virtual std::optional<ClientTimeout> client_timeout() const = 0;
  // After lost_framing: what is wrong, with the offset in the message.
  [[nodiscard]] virtual std::string problem() const = 0;
};

}  // namespace vpfs
