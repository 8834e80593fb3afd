#include "fuse/posix/server.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "fuse/posix/low_priority.h"
#include "fuse/posix/server_thread.h"

namespace vpfs::fuse {
namespace {

// Threads that wait for messages at once. More sleep: each would take a message into memory however
// much is held already.
constexpr std::size_t kMostReaders = 8;

// Requests of interrupted processes that one round looks at, each for some tens of microseconds.
constexpr std::size_t kMostLooks = 200;

InterruptedRequests::Finding waits(const Holder& holder) {
  return {.state = InterruptedRequests::Finding::State::waits, .uid = holder.uid};
}

}  // namespace

// As many as may be busy behind both doors, and the readers.
std::size_t Server::most_threads() const {
  return 2 * options_.threads + kMostReaders;
}

Server::Server(MountPoint& mount, PosixFileSystem& files, IoGate& gate, const Clock& clock,
               Options options, std::function<void()> ended)
    : mount_(mount),
      files_(files),
      gate_(gate),
      clock_(clock),
      options_(options),
      ended_(std::move(ended)),
      schedules_metadata_(options.schedules_metadata),
      memory_(options.held_bytes, options.held_pipes),
      requests_(options.held_requests),
      calls_(options.threads),
      scheduled_(options.threads),
      frozen_(options.frozen),
      keeper_([this] { return add_thread(); }),
      rounds_([this] {
        const std::lock_guard lock(rounds_mutex_);
        if (frozen_) return true;
        const bool again = look_at_some_interrupted();
        return unlock_pages() || again;
      }) {}

Server::~Server() {
  rounds_.stop();
  keeper_.stop();
  {
    const std::lock_guard lock(handed_mutex_);
    stops_ = true;
  }
  handed_.notify_all();
  for (std::size_t i = 0; ServerThread* const worker = worker_at(i); ++i) worker->join();
  // No process waits for what is left.
  std::vector<IoRequest*> left = gate_.withdraw_all(clock_.now());
  left.insert(left.end(), to_do_.begin(), to_do_.end());
  for (Door* const door : {&calls_, &scheduled_}) {
    for (IoRequest* const each : door->queue.withdraw_all()) left.push_back(each);
  }
  for (IoRequest* const each : left) delete each;
}

Server::ServerThread* Server::worker_at(std::size_t index) {
  const std::lock_guard lock(workers_mutex_);
  return index < workers_.size() ? workers_[index].get() : nullptr;
}

Result<void> Server::start() {
  {
    const std::lock_guard lock(handed_mutex_);
    threads_ = starting_ = 1;
  }
  ServerThread::prepare_signal();
  may_yield_ = LowPriority::is_possible();
  if (Result<void> started = rounds_.start(); !started) return started;
  return keeper_.start();
}

Result<void> Server::add_thread() {
  Result<std::unique_ptr<Channel>> channel = mount_.add_channel(false);
  VPFS_TRY(channel);
  auto worker = std::make_unique<ServerThread>(*this, std::move(*channel));
  const std::lock_guard lock(workers_mutex_);
  workers_.push_back(std::move(worker));
  Result<void> started = workers_.back()->start();
  if (!started) workers_.pop_back();
  return started;
}

Server::Role Server::next_role(ServerThread& worker) {
  const bool is_new = worker.is_new();
  if (handed_over_ == 0 && !is_new && !frozen_) {
    if (waiting_readers_.fetch_add(1) < kMostReaders) return {};
    --waiting_readers_;
  }
  std::unique_lock lock(handed_mutex_);
  if (is_new) --starting_;
  for (bool has_rested = false;;) {
    if (!to_do_.empty()) {
      // With the lock: it is in the list or with the thread for whoever looks at both.
      worker.begin_work(*to_do_.front());
      const Role role = {.request = to_do_.front()};
      to_do_.pop_front();
      --handed_over_;
      see_to_a_reader();
      return role;
    }
    if (stops_) return {.ends = true};
    const bool reads = std::exchange(reader_is_missing_, false) || waiting_readers_ < kMostReaders;
    if (reads && !frozen_) {
      ++waiting_readers_;
      return {};
    }
    if (!std::exchange(has_rested, true)) {
      lock.unlock();
      worker.rest();
      lock.lock();
      continue;
    }
    ++sleeping_;
    handed_.wait(lock);
    --sleeping_;
  }
}

void Server::reader_left() {
  if (waiting_readers_.fetch_sub(1) > 1) return;
  const std::lock_guard lock(handed_mutex_);
  see_to_a_reader();
}

void Server::see_to_a_reader() {
  if (frozen_ || waiting_readers_ > 0 || starting_ > to_do_.size()) return;
  if (sleeping_ > 0) {
    reader_is_missing_ = true;
    handed_.notify_one();
  } else if (threads_ < most_threads()) {
    ++threads_;
    ++starting_;
    keeper_.want(1);
  }
}

void Server::hand_over(std::span<IoRequest* const> requests) {
  const std::lock_guard lock(handed_mutex_);
  to_do_.insert(to_do_.end(), requests.begin(), requests.end());
  handed_over_ += requests.size();
  const std::size_t takers = sleeping_ + starting_;
  if (to_do_.size() > takers) {
    const std::size_t more = std::min(to_do_.size() - takers, most_threads() - threads_);
    threads_ += more;
    starting_ += more;
    if (more > 0) keeper_.want(more);
  }
  for (std::size_t i = 0; i < std::min(requests.size(), sleeping_); ++i) handed_.notify_one();
}

bool Server::enter(uid_t uid) {
  const std::lock_guard lock(calls_.mutex);
  return calls_.queue.enter(uid);
}

bool Server::yields(uid_t uid) {
  if (!may_yield_) return false;
  const std::lock_guard lock(calls_.mutex);
  return calls_.queue.yields(uid);
}

// thaw() looks at what waits after it has set frozen_, so nothing is left behind.
bool Server::enter_or_wait(IoRequest& request) {
  const std::lock_guard lock(calls_.mutex);
  if (!frozen_) return calls_.queue.enter_or_wait(request);
  calls_.queue.wait(request);
  return false;
}

bool Server::wait_to_call_again(Duration step) {
  std::unique_lock lock(again_mutex_);
  return !again_.wait_for(lock, step, [this] { return frozen_.load(); });
}

// While the server is frozen, nothing moves from a door to a thread: pack() would miss it. Then
// calls that wait are the other process's, and what the gate has let go stays.
void Server::leave(uid_t uid, Door& door, std::vector<IoRequest*>& go) {
  const std::lock_guard lock(door.mutex);
  door.queue.leave(uid);
  if (!frozen_ || (has_left_ && &door == &scheduled_)) door.queue.admit(go);
}

void Server::admit(std::vector<IoRequest*>& let_go, std::vector<IoRequest*>& go) {
  if (let_go.empty()) return;
  const std::lock_guard lock(scheduled_.mutex);
  for (IoRequest* const each : let_go) {
    if (scheduled_.queue.enter_or_wait(*each)) go.push_back(each);
  }
  let_go.clear();
}

void Server::admit_and_hand_over(std::vector<IoRequest*>& let_go) {
  std::vector<IoRequest*> go;
  admit(let_go, go);
  if (!go.empty()) hand_over(go);
}

// A hand-over must find what is let go here, so it is in a list before one begins.
void Server::ask_again() {
  const std::lock_guard lock(asking_mutex_);
  if (frozen_) return;
  std::vector<IoRequest*> let_go;
  gate_.release(clock_.now(), let_go);
  admit_and_hand_over(let_go);
}

Server::Load Server::load() const {
  Load load;
  std::map<uid_t, ThreadQueue::User> users;
  for (const Door* const door : {&calls_, &scheduled_}) {
    const std::lock_guard lock(door->mutex);
    load.busy += door->queue.busy();
    load.waiting += door->queue.waiting();
    for (const ThreadQueue::User& each : door->queue.users_that_wait()) {
      ThreadQueue::User& user = users[each.uid];
      user.uid = each.uid;
      user.busy += each.busy;
      user.waiting += each.waiting;
    }
  }
  for (const auto& [uid, user] : users) load.users_that_wait.push_back(user);
  std::ranges::sort(load.users_that_wait, std::ranges::greater(), &ThreadQueue::User::waiting);
  return load;
}

void Server::interrupted(std::uint64_t unique) {
  const Finding finding = look_at_interrupted(unique);
  if (finding.state == Finding::State::over) return;
  {
    const std::lock_guard lock(interrupted_mutex_);
    interrupted_.put({.unique = unique}, finding);
  }
  rounds_.wake();
}

Server::Finding Server::look_at_interrupted(std::uint64_t unique) {
  if (const std::optional<Holder> holder = gate_.holder_of(unique, clock_.now())) {
    if (!obeys(options_.interrupts, holder->process)) return waits(*holder);
    return answer_interrupted(withdraw_held(unique));
  }
  for (Door* const door : {&calls_, &scheduled_}) {
    std::optional<Holder> holder;
    {
      const std::lock_guard lock(door->mutex);
      holder = door->queue.holder_of(unique);
    }
    if (!holder) continue;
    if (!obeys(options_.interrupts, holder->process)) return waits(*holder);
    return answer_interrupted(withdraw_waiting(unique, *door));
  }
  {
    const std::lock_guard lock(workers_mutex_);
    for (const std::unique_ptr<ServerThread>& worker : workers_) {
      const std::optional<Finding> finding = worker->look_at_interrupted(unique);
      if (finding) return *finding;
    }
  }
  return look_at_what_stayed(unique);
}

Server::Finding Server::answer_interrupted(std::unique_ptr<IoRequest> request) {
  if (!request) return {.state = Finding::State::missing};
  request->channel->fail(request->unique, EINTR);
  give_back_shares(*request);
  return {.state = Finding::State::over};
}

bool Server::look_at_some_interrupted() {
  std::unique_lock lock(interrupted_mutex_);
  for (std::size_t i = std::min(interrupted_.size(), kMostLooks); i > 0; --i) {
    const std::optional<InterruptedRequests::Entry> entry = interrupted_.take();
    if (!entry) break;
    lock.unlock();
    const Finding finding = look_at_interrupted(entry->unique);
    lock.lock();
    interrupted_.put(*entry, finding);
  }
  return interrupted_.size() > 0;
}

bool Server::unlock_pages() {
  std::vector<IoRequest*> let_go;
  fail_read_ahead(gate_.unlock_pages(clock_.now(), let_go));
  admit_and_hand_over(let_go);
  return gate_.files_with_held_reads() > 0;
}

void Server::fail_read_ahead(std::span<IoRequest* const> ahead) {
  for (IoRequest* const each : ahead) {
    const std::unique_ptr<IoRequest> request(each);
    request->channel->fail(request->unique, ENOBUFS);
    give_back_shares(*request);
  }
}

void Server::give_back_shares(const IoRequest& request) {
  if (request.kept > 0) memory_.give_back(request.charged, request.kept);
  if (request.pipe) memory_.give_pipe_back(request.charged);
  if (request.is_counted) requests_.give_back(request.charged, 1);
}

std::unique_ptr<IoRequest> Server::withdraw_held(std::uint64_t unique) {
  std::vector<IoRequest*> let_go;
  std::unique_ptr<IoRequest> held(gate_.withdraw(unique, clock_.now(), let_go));
  admit_and_hand_over(let_go);
  return held;
}

std::unique_ptr<IoRequest> Server::withdraw_waiting(std::uint64_t unique, Door& door) {
  std::unique_ptr<IoRequest> waiting;
  {
    const std::lock_guard lock(door.mutex);
    waiting.reset(door.queue.withdraw(unique));
  }
  if (waiting && waiting->is_scheduled) {
    // It gives its slot of the stage back.
    waiting->failed = true;
    std::vector<IoRequest*> let_go;
    gate_.end(*waiting, clock_.now(), let_go);
    admit_and_hand_over(let_go);
  }
  return waiting;
}

}  // namespace vpfs::fuse
