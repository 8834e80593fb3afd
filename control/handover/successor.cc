#include "control/handover/successor.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <asio/post.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/signal_block.h"
#include "base/units.h"

extern char** environ;

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSocket = "restart.socket";
constexpr const char* kSocketLock = "restart.socket.lock";
constexpr std::uint32_t kMode = 0600;
constexpr Duration kLook = 50ms;
// How long a program that was started may take until it dials.
constexpr Duration kDials = 30s;
// The main thread ends without a word when a signal ends the program.
constexpr auto kBetweenLooks = 50ms;

// The file that this program was started from. A package may have replaced it since.
std::string own_program() {
  std::array<char, 4096> path = {};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  std::string name(path.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  constexpr std::string_view kGone = " (deleted)";
  if (name.ends_with(kGone)) name.resize(name.size() - kGone.size());
  return name;
}

// Returns the process, which has the standard streams alone: what it shall have besides, the
// hand-over gives it. Sockets of asio are not closed by exec.
Result<pid_t> spawn(std::span<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  int error = ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  pid_t pid = -1;
  if (error == 0) {
    error = ::posix_spawn(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  }
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  const std::error_code code(error, std::system_category());
  return fail(fmt::format("{} cannot be started: {}", words[0], code.message()));
}

}  // namespace

Result<void> Successor::open(const std::string& path, net::Inherited* inherited) {
  if (path.empty()) return {};
  net::UnixListener::Handed handed = {.socket = net::Inherited::take_from(inherited, kSocket),
                                      .lock = net::Inherited::take_from(inherited, kSocketLock)};
  Result<net::UnixListener> listener =
      net::UnixListener::open(parts_.context, path, kMode, {}, std::move(handed));
  if (!listener) return fail("restart.socket: " + listener.error().message, listener.error().code);
  listener_.emplace(std::move(*listener));
  return {};
}

std::vector<std::pair<std::string, int>> Successor::listeners() const {
  if (!listener_) return {};
  return {{kSocket, listener_->native_handle()}, {kSocketLock, listener_->lock_handle()}};
}

void Successor::start(std::function<Restart()> settings) {
  settings_ = std::move(settings);
  if (!listener_) return;
  listener_->start([this](net::UnixSocket socket) { accepted(std::move(socket)); });
}

void Successor::stop() {
  stopping_ = true;
  if (peer_ && !has_left_) (void)::shutdown(peer_.get(), SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  if (program_timer_) program_timer_->cancel();
  if (!listener_) return;
  has_left_ ? listener_->leave() : listener_->close();
  listener_.reset();
}

void Successor::leave(const std::string& line) {
  spdlog::info("{}", line);
  tell(line);
  listener_->leave();
}

// A second one waits in vain: its connection is closed.
void Successor::accepted(net::UnixSocket socket) {
  std::error_code gone;
  net::Descriptor descriptor(socket.release(gone));
  if (gone || busy_ || has_left_) return;
  busy_ = true;
  const Restart restart = settings_();
  times_.patience = restart.patience;
  times_.drain = restart.drain;
  if (thread_.joinable()) thread_.join();
  peer_ = net::Descriptor(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
  auto shared = std::make_shared<net::Descriptor>(std::move(descriptor));  // functions are copied
  const SignalBlock blocked;
  thread_ = std::jthread([this, shared] { serve(std::move(*shared)); });
}

void Successor::serve(net::Descriptor socket) {
  const Result<HandedOver> outcome = hand_over(parts_.program, std::move(socket), times_);
  asio::post(parts_.context, [this, outcome] { ended(outcome); });
}

void Successor::ended(const Result<HandedOver>& outcome) {
  busy_ = false;
  peer_.close();
  if (outcome) return parts_.end();
  const std::string line =
      fmt::format("no process has taken over, this one goes on: {}", outcome.error().message);
  log_answer(spdlog::level::err, line);
  tell(fail(line));
}

bool Successor::on_main(const std::function<void()>& what, TimePoint deadline) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable done_now;
    bool done = false;
    bool given_up = false;
  };
  auto shared = std::make_shared<Shared>();
  asio::post(parts_.context, [shared, &what] {
    const std::lock_guard lock(shared->mutex);
    if (shared->given_up) return;
    what();
    shared->done = true;
    shared->done_now.notify_all();
  });
  std::unique_lock lock(shared->mutex);
  const auto may_wait = [&] { return !stopping_ && parts_.clock.now() < deadline; };
  while (!shared->done && may_wait()) shared->done_now.wait_for(lock, kBetweenLooks);
  shared->given_up = true;
  return shared->done;
}

void Successor::start_program(const std::string& binary, std::span<const std::string> arguments,
                              Told told) {
  if (!listener_) {
    return told(fail(fmt::format(
        "this {} has no socket for it: set restart.socket, or control.socket", parts_.role)));
  }
  if (::getpid() == 1) {
    return told(
        fail(fmt::format("this {} is process 1, and its container would end with it: start it "
                         "under an init, as docker run --init does",
                         parts_.role)));
  }
  if (busy_ || program_ > 0 || has_left_) {
    return told(fail("another process is about to take over already"));
  }
  const std::string program = binary.empty() ? own_program() : binary;
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), {"--take-over", listener_->path()});
  const Result<pid_t> pid = spawn(words);
  if (!pid) return told(std::unexpected(pid.error()));
  program_ = *pid;
  program_end_ = parts_.clock.now() + kDials;
  told_ = std::move(told);
  spdlog::info("started {}, pid {}, to take over", program, *pid);
  watch_program();
}

// It may end before it has dialled. After that the hand-over itself tells how it went.
void Successor::watch_program() {
  if (!program_timer_) program_timer_.emplace(parts_.context);
  program_timer_->expires_after(kLook);
  program_timer_->async_wait([this](std::error_code stopped) {
    if (stopped || program_ <= 0) return;
    if (!busy_ && !has_left_ && parts_.clock.now() >= program_end_) end_program();
    int status = 0;
    if (::waitpid(program_, &status, WNOHANG) == 0) return watch_program();
    program_ = -1;
    if (busy_) return;
    tell(fail(fmt::format("the new program ended before it took over ({}); this one goes on",
                          WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                            : fmt::format("signal {}", WTERMSIG(status)))));
  });
}

// It would keep any other from taking over.
void Successor::end_program() {
  program_end_ = kNever;
  (void)::kill(program_, SIGKILL);
  const std::string line = fmt::format(
      "the new program, pid {}, did not take over within {}, and was ended; this one "
      "goes on",
      program_, vpfs::to_string(kDials));
  spdlog::error("{}", line);
  tell(fail(line));
}

void Successor::tell(Result<std::string> outcome) {
  if (const Told told = std::exchange(told_, nullptr)) told(std::move(outcome));
}

}  // namespace vpfs::control
