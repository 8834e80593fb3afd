#include "fuse/posix/forgetter.h"

#include <utility>

#include "base/signal_block.h"

namespace vpfs::fuse {
namespace {

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

// What the kernel forgets comes back as messages of its own, a little later. So it is asked for
// each object once at most; those in use are not forgotten.
void Forgetter::ask_for(uid_t user) {
  for (std::size_t asked = 0, known = inodes_.size(); asked < known;) {
    const std::vector<Inodes::Name> names = inodes_.names_to_forget(user, kStep);
    if (names.empty()) return;
    for (const Inodes::Name& each : names) channel_->forget_name(each.parent, each.entry);
    asked += names.size();
  }
}

}  // namespace vpfs::fuse
