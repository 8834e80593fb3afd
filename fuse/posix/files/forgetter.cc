#include "fuse/posix/files/forgetter.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "net/start_thread.h"

namespace vpfs::fuse {
namespace {

constexpr std::size_t kStep = 16;

}  // namespace

Forgetter::Forgetter(Inodes& inodes, std::unique_ptr<Channel> channel)
    : inodes_(inodes), channel_(std::move(channel)) {
  threads_.reserve(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i) {
    Result<std::thread> thread = net::start_thread([this] { run(); });
    if (!thread) {
      if (threads_.empty()) throw std::runtime_error(thread.error().message);
      break;  // fewer will do
    }
    threads_.push_back(std::move(*thread));
  }
}

Forgetter::~Forgetter() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  for (std::thread& each : threads_) each.join();
}

void Forgetter::look_at(uid_t user) {
  {
    const std::lock_guard lock(mutex_);
    if (has_turn(user)) return;
    turns_.push_back({.user = user, .left = inodes_.stay_open(user)});
  }
  changed_.notify_all();
}

bool Forgetter::has_turn(uid_t user) const {
  return std::ranges::find(turns_, user, &Turn::user) != turns_.end();
}

std::deque<Forgetter::Turn>::iterator Forgetter::next_turn() {
  return std::ranges::find_if(turns_,
                              [this](const Turn& each) { return busy_.room_for(each.user) > 0; });
}

// A step for each user in turn: the kernel may take long for one of them. Then it may do so for all
// of that user's directories, so others have threads left.
void Forgetter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto next = turns_.end();
    changed_.wait(lock, [&] { return stops_ || (next = next_turn()) != turns_.end(); });
    if (stops_) return;
    Turn turn = *next;
    turns_.erase(next);
    busy_.take(turn.user, 1);
    // What the kernel forgets comes back as messages of its own, a little later. So it is asked for
    // each object once; those in use are not forgotten.
    const std::size_t looks = std::min(turn.left, kStep);
    turn.left -= looks;
    if (turn.left > 0) turns_.push_back(turn);
    lock.unlock();
    for (const Inodes::Name& each : inodes_.names_to_forget(turn.user, looks)) {
      channel_->forget_name(each.parent, each.entry);
    }
    lock.lock();
    busy_.give_back(turn.user, 1);
    changed_.notify_one();  // a turn may have waited for that
  }
}

}  // namespace vpfs::fuse
