#include "fuse/posix/server.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/signal_block.h"
#include "fuse/posix/worker.h"

namespace vpfs::fuse {

Server::Server(MountPoint& mount, PosixFileSystem& files, IoGate& gate, const Clock& clock,
               Options options, Owner owner)
    : mount_(mount),
      files_(files),
      gate_(gate),
      clock_(clock),
      options_(options),
      owner_(std::move(owner)),
      schedules_metadata_(options.schedules_metadata),
      keeper_(
          {.reader = [this] { return add_reader(); }, .helper = [this] { return add_helper(); }}) {}

Server::~Server() {
  keeper_.stop();
  {
    const std::lock_guard lock(handed_mutex_);
    stops_ = true;
  }
  handed_.notify_all();
  for (std::size_t i = 0; Worker* const worker = worker_at(i); ++i) worker->join();
  for (IoRequest* const each : gate_.withdraw_all(clock_.now()))
    delete each;  // nobody waits for it
}

Server::Worker* Server::worker_at(std::size_t index) {
  const std::lock_guard lock(workers_mutex_);
  return index < workers_.size() ? workers_[index].get() : nullptr;
}

Result<void> Server::start() {
  return keeper_.start();
}

Result<void> Server::add_reader() {
  // One that was asked for a while ago may have come back meanwhile.
  if (waiting_readers_ > 0) return {};
  Result<std::unique_ptr<Channel>> channel = mount_.add_channel(false);
  if (!channel) return std::unexpected(std::move(channel.error()));
  auto worker = std::make_unique<Worker>(*this, std::move(*channel));
  const SignalBlock no_signals;
  const std::lock_guard lock(workers_mutex_);
  workers_.push_back(std::move(worker));
  // It counts as waiting until it has a message.
  ++waiting_readers_;
  ++readers_;
  try {
    workers_.back()->start();
  } catch (const std::system_error& problem) {
    workers_.pop_back();
    --waiting_readers_;
    --readers_;
    return fail(std::string("cannot start a thread: ") + problem.what());
  }
  return {};
}

void Server::want_reader_if_none_waits() {
  if (waiting_readers_.fetch_sub(1) > 1) return;
  {
    const std::lock_guard lock(workers_mutex_);
    if (readers_ >= options_.most_readers) return;
  }
  keeper_.want_reader();
}

Result<void> Server::add_helper() {
  auto worker = std::make_unique<Worker>(*this, nullptr);
  const SignalBlock no_signals;
  const std::lock_guard lock(workers_mutex_);
  workers_.push_back(std::move(worker));
  try {
    workers_.back()->start();
  } catch (const std::system_error& problem) {
    workers_.pop_back();
    return fail(std::string("cannot start a thread: ") + problem.what());
  }
  return {};
}

void Server::hand_over(std::span<IoRequest* const> requests) {
  std::size_t missing = 0;
  {
    const std::lock_guard lock(handed_mutex_);
    to_do_.insert(to_do_.end(), requests.begin(), requests.end());
    const std::size_t wanted =
        to_do_.size() > waiting_helpers_ ? to_do_.size() - waiting_helpers_ : 0;
    // A bypass lets all that are held go at once; more threads would not make them faster.
    missing = std::min(wanted, options_.most_readers - helpers_);
    helpers_ += missing;
    // They count as waiting for work until they take some.
    waiting_helpers_ += missing;
  }
  if (missing > 0) keeper_.want_helpers(missing);
  handed_.notify_all();
}

IoRequest* Server::next_handed_over() {
  std::unique_lock lock(handed_mutex_);
  handed_.wait(lock, [this] { return stops_ || !to_do_.empty(); });
  --waiting_helpers_;
  if (to_do_.empty()) {
    --helpers_;
    return nullptr;
  }
  IoRequest* const request = to_do_.front();
  to_do_.pop_front();
  return request;
}

void Server::helper_waits() {
  const std::lock_guard lock(handed_mutex_);
  ++waiting_helpers_;
}

void Server::ask_again() {
  std::vector<IoRequest*> go;
  gate_.release(clock_.now(), go);
  if (!go.empty()) hand_over(go);
}

bool Server::interrupt(std::uint64_t unique, Worker& asked) {
  if (const std::optional<pid_t> holder = gate_.holder_of(unique, clock_.now())) {
    if (!obeys(options_.interrupts, *holder)) return false;
    std::vector<IoRequest*> go;
    std::unique_ptr<IoRequest> held(gate_.withdraw(unique, clock_.now(), go));
    if (!go.empty()) hand_over(go);
    if (held == nullptr) return false;
    asked.answer_interrupted(std::move(held));
    return true;
  }
  const std::lock_guard lock(workers_mutex_);
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (const std::optional<bool> obeyed = worker->interrupt(unique)) return *obeyed;
  }
  return false;
}

void Server::interrupt_later(std::uint64_t unique) {
  {
    const std::lock_guard lock(later_mutex_);
    later_.push_back(unique);
  }
  owner_.wants_reminder();
}

void Server::remind_of_interrupts() {
  std::vector<std::uint64_t> all;
  {
    const std::lock_guard lock(later_mutex_);
    all.swap(later_);
  }
  // Only the channel that gave the request can speak of it; others are not heard.
  const std::lock_guard lock(workers_mutex_);
  for (const std::uint64_t unique : all) {
    for (const std::unique_ptr<Worker>& worker : workers_) worker->ask_to_tell_again(unique);
  }
}

}  // namespace vpfs::fuse
