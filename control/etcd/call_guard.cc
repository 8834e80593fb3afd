#include "control/etcd/call_guard.h"

#include <chrono>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>

#include "net/start_thread.h"

namespace vpfs::control {
namespace {

// A call that has to end may open one more socket, to another address of its host.
constexpr Duration kShutDownAgain = std::chrono::milliseconds(10);

}  // namespace

void CallGuard::Line::close() {
  socket_.close();
}

Result<std::unique_ptr<CallGuard>> CallGuard::start() {
  std::unique_ptr<CallGuard> guard(new CallGuard);
  Result<std::thread> thread = net::start_thread([guard = guard.get()] { guard->run(); });
  VPFS_TRY(thread);
  guard->thread_ = std::move(*thread);
  return guard;
}

CallGuard::~CallGuard() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CallGuard::begin(Line& line, TimePoint deadline) {
  {
    const std::lock_guard lock(mutex_);
    line_ = &line;
    deadline_ = deadline;
    is_past_deadline_ = false;
  }
  changed_.notify_all();
}

void CallGuard::use_socket(int socket) {
  const std::lock_guard lock(mutex_);
  if (line_ == nullptr) return;
  line_->socket_ = net::Descriptor(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
}

void CallGuard::set_deadline(TimePoint deadline) {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = deadline;
  }
  changed_.notify_all();
}

CallGuard::Ended CallGuard::end() {
  const std::lock_guard lock(mutex_);
  line_ = nullptr;
  deadline_ = kNever;
  if (is_cancelled_) return Ended::cancelled;
  return is_past_deadline_ ? Ended::at_deadline : Ended::by_itself;
}

void CallGuard::sleep_until(TimePoint time) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, time, [this] { return is_cancelled_; });
}

void CallGuard::cancel() {
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
  }
  changed_.notify_all();
}

bool CallGuard::is_cancelled() const {
  const std::lock_guard lock(mutex_);
  return is_cancelled_;
}

void CallGuard::run() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    if (line_ == nullptr) {
      changed_.wait(lock);
    } else if (is_cancelled_ || is_past_deadline_) {
      if (line_->socket_) (void)::shutdown(line_->socket_.get(), SHUT_RDWR);
      changed_.wait_for(lock, kShutDownAgain);
    } else if (const TimePoint deadline = deadline_;
               changed_.wait_until(lock, deadline) == std::cv_status::timeout) {
      is_past_deadline_ = line_ != nullptr && deadline_ <= deadline;
    }
  }
}

}  // namespace vpfs::control
