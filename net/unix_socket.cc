#include "net/unix_socket.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/result.h"
#include "net/accept_loop.h"

namespace vpfs::net {
namespace {

using Protocol = asio::local::stream_protocol;

std::error_code last_error() {
  return {errno, std::system_category()};
}

std::unexpected<Error> problem(const std::string& path, std::string_view what) {
  const std::error_code error = last_error();
  return fail(fmt::format("{}: {}: {}", path, what, error.message()), error);
}

// Whether the file is the lock, and this process has it.
bool is_lock(int file, const std::string& name) {
  struct stat given = {};
  struct stat there = {};
  return ::fstat(file, &given) == 0 && ::lstat(name.c_str(), &there) == 0 &&
         given.st_dev == there.st_dev && given.st_ino == there.st_ino &&
         ::flock(file, LOCK_EX | LOCK_NB) == 0;
}

// An open descriptor of the lock. One that was handed may have it already, and a copy elsewhere.
Result<int> lock(const std::string& path, Descriptor handed) {
  const std::string name = path + ".lock";
  if (handed && is_lock(handed.get(), name)) return handed.release();
  handed.close();
  const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return problem(name, "cannot be opened");
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  const auto error = problem(
      path, errno == EWOULDBLOCK ? "another process has this control port" : "cannot be locked");
  ::close(file);
  return error;
}

// Whether a process accepts connections at `path`.
bool is_answered(const std::string& path) {
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return true;
  const Protocol::endpoint endpoint(path);
  const int result = ::connect(probe, endpoint.data(), static_cast<socklen_t>(endpoint.size()));
  const bool nobody = result != 0 && (errno == ECONNREFUSED || errno == ENOENT);
  ::close(probe);
  return !nobody;
}

// Whether a socket may be put at `path`.
Result<void> check_place(const std::string& path) {
  struct stat there = {};
  if (::lstat(path.c_str(), &there) != 0) {
    if (errno == ENOENT) return {};
    return problem(path, "cannot be made");
  }
  if (!S_ISSOCK(there.st_mode)) {
    return fail(fmt::format("{}: is there already, and is not a socket", path));
  }
  if (is_answered(path)) return fail(fmt::format("{}: another program answers there", path));
  return {};
}

}  // namespace

Result<PeerCredentials> peer_credentials(int socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return fail("the identity of the peer: " + last_error().message(), last_error());
  }
  PeerCredentials who{.pid = peer.pid, .uid = peer.uid, .gids = {}};
  // The groups that the process has, which need not be those that its user's entry lists.
  std::array<gid_t, 64> few = {};
  size = sizeof few;
  std::vector<gid_t> groups(few.begin(), few.end());
  int result = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
  if (result != 0 && errno == ERANGE) {
    groups.resize(size / sizeof(gid_t));
    result = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
  }
  if (result != 0) return fail("the peer's groups: " + last_error().message(), last_error());
  groups.resize(size / sizeof(gid_t));
  who.gids.assign(groups.begin(), groups.end());
  who.gids.push_back(peer.gid);
  return who;
}

struct UnixListener::State {
  explicit State(asio::io_context& context)
      : loop(std::make_shared<AcceptLoop<Protocol>>(context)) {}
  // asio's cancel(), which close() calls, throws by its signature only.
  // NOLINTNEXTLINE(bugprone-exception-escape)
  ~State() { close(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<void> make_socket(std::uint32_t mode, std::optional<std::uint32_t> gid);
  [[nodiscard]] bool take(Handed& handed);
  void close();

  std::shared_ptr<AcceptLoop<Protocol>> loop;  // shared with the wait in flight
  std::string path;
  int lock_file = -1;
  struct stat made = {};
  bool placed = false;  // the socket at the path is this one's to remove
};

// Makes the socket under another name. No client can connect before listen().
Result<void> UnixListener::State::make_socket(std::uint32_t mode,
                                              std::optional<std::uint32_t> gid) {
  const std::string temporary = path + ".new";
  if (::unlink(temporary.c_str()) != 0 && errno != ENOENT) {
    return problem(temporary, "cannot be removed");
  }
  auto& acceptor = loop->acceptor();
  const auto give_up = [&](std::string_view what) {
    auto error = problem(path, what);
    ::unlink(temporary.c_str());
    return error;
  };
  std::error_code error;
  acceptor.open(Protocol(), error);
  if (!error) acceptor.bind(Protocol::endpoint(temporary), error);
  if (error) {
    return fail(fmt::format("{}: cannot be made: {}", path, error.message()), error);
  }
  if (gid && ::lchown(temporary.c_str(), static_cast<uid_t>(-1), *gid) != 0) {
    return give_up(fmt::format("cannot be given to group {}", *gid));
  }
  if (::chmod(temporary.c_str(), mode) != 0) return give_up("cannot get its mode");
  if (::lstat(temporary.c_str(), &made) != 0) return give_up("cannot be looked at");
  if (::listen(acceptor.native_handle(), 4096) != 0) return give_up("cannot listen");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up("cannot be renamed");
  placed = true;
  return {};
}

// Whether the socket listens at the path.
bool UnixListener::State::take(Handed& handed) {
  sockaddr_un at = {};
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (::getsockname(handed.socket.get(), address, &size) != 0 || at.sun_family != AF_UNIX) {
    return false;
  }
  // It was made under another name.
  if (std::string_view(at.sun_path) != path + ".new") return false;
  if (::lstat(path.c_str(), &made) != 0 || !S_ISSOCK(made.st_mode)) return false;
  std::error_code error;
  loop->acceptor().assign(Protocol(), handed.socket.get(), error);
  if (error) return false;
  (void)handed.socket.release();
  lock_file = handed.lock.release();
  return true;
}

void UnixListener::State::close() {
  loop->close();
  struct stat there = {};
  if (std::exchange(placed, false) && ::lstat(path.c_str(), &there) == 0 &&
      there.st_dev == made.st_dev && there.st_ino == made.st_ino) {
    ::unlink(path.c_str());
  }
  if (lock_file >= 0) ::close(std::exchange(lock_file, -1));
}

Result<UnixListener> UnixListener::open(asio::io_context& context, const std::string& path,
                                        std::uint32_t mode, std::optional<std::uint32_t> gid) {
  return open(context, path, mode, gid, Handed());
}

Result<UnixListener> UnixListener::open(asio::io_context& context, const std::string& path,
                                        std::uint32_t mode, std::optional<std::uint32_t> gid,
                                        Handed handed) {
  if (path.empty() || path.size() > kMostSocketPath) {
    return fail(fmt::format("{}: the path of a socket has 1 to {} bytes", path, kMostSocketPath));
  }
  auto state = std::make_unique<State>(context);
  state->path = path;
  if (handed.socket && handed.lock && state->take(handed)) return UnixListener(std::move(state));
  handed.socket.close();
  const Result<int> locked = lock(path, std::move(handed.lock));
  VPFS_TRY(locked);
  state->lock_file = *locked;
  VPFS_TRY(check_place(path));
  VPFS_TRY(state->make_socket(mode, gid));
  return UnixListener(std::move(state));
}

UnixListener::UnixListener(std::unique_ptr<State> state) : state_(std::move(state)) {}
UnixListener::UnixListener(UnixListener&&) noexcept = default;
UnixListener& UnixListener::operator=(UnixListener&&) noexcept = default;
UnixListener::~UnixListener() = default;

void UnixListener::start(Handler handler) {
  state_->placed = true;
  state_->loop->start(state_->path, std::move(handler));
}

void UnixListener::close() {
  state_->close();
}

void UnixListener::leave() {
  state_->placed = false;
  state_->close();
}

int UnixListener::native_handle() const {
  return state_->loop->acceptor().native_handle();
}

const std::string& UnixListener::path() const {
  return state_->path;
}

int UnixListener::lock_handle() const {
  return state_->lock_file;
}

}  // namespace vpfs::net
