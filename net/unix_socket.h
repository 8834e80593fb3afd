#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/local/stream_protocol.hpp>

#include "base/result.h"
#include "net/async.h"
#include "net/descriptor.h"

namespace vpfs::net {

using UnixSocket = asio::local::stream_protocol::socket;

// The longest path that UnixListener takes: the kernel's limit, less a suffix for the time in which
// the socket is made.
inline constexpr std::size_t kMostSocketPath = 103;

// The process at the other end, as it was when it connected.
struct PeerCredentials {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;  // its group, and those that it has besides
};
[[nodiscard]] Result<PeerCredentials> peer_credentials(int socket);

// Accepts connections on a UNIX socket.
//
// The socket has its owner, group and mode before any client can connect. A socket at that path
// that no process listens on is replaced; anything else there is an error. PATH.lock beside it,
// which stays, keeps two processes from taking the same path at the same time. Belongs to the
// strand of its io_context.
class UnixListener {
 public:
  using Handler = std::function<void(UnixSocket)>;

  // Without a `gid` the group is the process's. The error names the path.
  [[nodiscard]] static Result<UnixListener> open(asio::io_context& context, const std::string& path,
                                                 std::uint32_t mode,
                                                 std::optional<std::uint32_t> gid);
  // The same with what another process has opened there and still has: its socket and its lock.
  // The socket is used if it is the one at that path, and the lock if it is the path's.
  struct Handed {
    Descriptor socket;
    Descriptor lock;
  };
  [[nodiscard]] static Result<UnixListener> open(asio::io_context& context, const std::string& path,
                                                 std::uint32_t mode,
                                                 std::optional<std::uint32_t> gid, Handed handed);
  UnixListener(UnixListener&&) noexcept;
  UnixListener& operator=(UnixListener&&) noexcept;
  ~UnixListener();

  // A socket that was handed is removed by close() only after this call: it may be another
  // process's until then.
  void start(Handler handler);
  // Stops accepting and removes the socket, unless another one has taken its place. No handler runs
  // after it.
  void close();
  // Stops accepting, and leaves the socket and its lock to another process.
  void leave();
  [[nodiscard]] int native_handle() const;
  [[nodiscard]] int lock_handle() const;
  [[nodiscard]] const std::string& path() const;

 private:
  struct State;
  explicit UnixListener(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vpfs::net
