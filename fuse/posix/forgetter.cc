#include "fuse/posix/forgetter.h"

#include <utility>

#include "base/signal_block.h"

namespace vpfs::fuse {
namespace {

// What the kernel forgets comes back as messages of its own, a little later, so it is asked in
// small steps.
constexpr std::size_t kStep = 64;

}  // namespace

Forgetter::Forgetter(Inodes& inodes, std::unique_ptr<Channel> channel)
    : inodes_(inodes), channel_(std::move(channel)) {
  const SignalBlock no_signals;
  thread_ = std::thread([this] { run(); });
}

Forgetter::~Forgetter() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Forgetter::look_at(uid_t user) {
  {
    const std::lock_guard lock(mutex_);
    if (!users_.insert(user).second) return;
  }
  changed_.notify_all();
}

void Forgetter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || !users_.empty(); });
    if (stops_) return;
    const uid_t user = *users_.begin();
    users_.erase(users_.begin());
    lock.unlock();
    ask_for(user);
    lock.lock();
  }
}

void Forgetter::ask_for(uid_t user) {
  for (const Inodes::Name& each : inodes_.names_to_forget(user, kStep)) {
    channel_->forget_name(each.parent, each.entry);
  }
}

}  // namespace vpfs::fuse
