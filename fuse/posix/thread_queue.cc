#include "fuse/posix/thread_queue.h"

#include <algorithm>

namespace vpfs::fuse {
namespace {

// A user with more threads than this occupies many.
constexpr std::uint64_t kFew = 8;
// Another user has come too if it is among this many calls.
constexpr std::uint64_t kLately = 4096;

}  // namespace

void ThreadQueue::come(uid_t uid) {
  if (last_.uid != uid) before_ = last_;
  last_ = {.uid = uid, .at = ++calls_};
}

bool ThreadQueue::yields(uid_t uid) const {
  if (shares_.taken_by(uid) <= kFew) return false;
  const Seen& other = last_.uid == uid ? before_ : last_;
  return other.at > 0 && calls_ - other.at < kLately;
}

bool ThreadQueue::enter(uid_t uid) {
  come(uid);
  if (shares_.room_for(uid) == 0) return false;
  shares_.take(uid, 1);
  return true;
}

bool ThreadQueue::enter_or_wait(IoRequest& request) {
  if (enter(request.charged)) return true;
  wait(request);
  return false;
}

void ThreadQueue::wait(IoRequest& request) {
  std::deque<IoRequest*>& queue = queues_[request.charged];
  if (queue.empty()) turns_.push_back(request.charged);
  queue.push_back(&request);
  waiting_.emplace(request.unique, &request);
}

void ThreadQueue::admit(std::vector<IoRequest*>& go) {
  // Requests that wait have no room unless another has just left, so each user is asked until a
  // round finds no room for any.
  for (std::size_t refused = 0; refused < turns_.size();) {
    const uid_t next = turns_.front();
    turns_.pop_front();
    if (shares_.room_for(next) == 0) {
      turns_.push_back(next);
      ++refused;
      continue;
    }
    refused = 0;
    shares_.take(next, 1);
    const auto place = queues_.find(next);
    IoRequest* const request = place->second.front();
    place->second.pop_front();
    waiting_.erase(request->unique);
    go.push_back(request);
    if (place->second.empty()) {
      queues_.erase(place);
    } else {
      turns_.push_back(next);
    }
  }
}

std::optional<Holder> ThreadQueue::holder_of(std::uint64_t unique) const {
  const auto place = waiting_.find(unique);
  if (place == waiting_.end()) return std::nullopt;
  return Holder{.process = place->second->process, .uid = place->second->charged};
}

IoRequest* ThreadQueue::withdraw(std::uint64_t unique) {
  const auto place = waiting_.find(unique);
  if (place == waiting_.end()) return nullptr;
  IoRequest* const request = place->second;
  waiting_.erase(place);
  const auto queue = queues_.find(request->charged);
  std::erase(queue->second, request);
  if (queue->second.empty()) {
    queues_.erase(queue);
    std::erase(turns_, request->charged);
  }
  return request;
}

std::vector<IoRequest*> ThreadQueue::all() const {
  std::vector<IoRequest*> all;
  for (const auto& [unique, request] : waiting_) all.push_back(request);
  return all;
}

std::vector<IoRequest*> ThreadQueue::withdraw_all() {
  std::vector<IoRequest*> all = this->all();
  waiting_.clear();
  queues_.clear();
  turns_.clear();
  return all;
}

std::vector<ThreadQueue::User> ThreadQueue::users_that_wait() const {
  std::vector<User> users;
  for (const auto& [uid, queue] : queues_) {
    users.push_back({.uid = uid, .busy = shares_.taken_by(uid), .waiting = queue.size()});
  }
  std::ranges::sort(users, std::ranges::greater(), &User::waiting);
  return users;
}

}  // namespace vpfs::fuse
