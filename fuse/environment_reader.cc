#include "fuse/environment_reader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "base/result.h"
#include "fuse/credentials.h"
#include "fuse/process_environment.h"
#include "fuse/user_shares.h"
#include "net/start_thread.h"

namespace vpfs::fuse {
namespace {

constexpr std::size_t kMostThreads = 16;
constexpr Duration kRemembered = std::chrono::seconds(10);
constexpr unsigned kMostHalvings = 10;
constexpr std::size_t kMostUsers = 1024;

// An environment is its user's alone, and root's if the process has changed users. A mount without
// CAP_SYS_PTRACE may still look at it in the place of that user.
std::string look_at(pid_t process, uid_t uid, gid_t gid, std::string_view processes) {
  (void)become(uid, gid);
  const OwnCapabilities own;
  return environment_of(process, processes);
}

}  // namespace

struct EnvironmentReader::Question {
  pid_t process = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::condition_variable answered;
  std::optional<std::string> text = {};
};

struct EnvironmentReader::Shared {
  explicit Shared(std::string where) : processes(std::move(where)) {}

  // The oldest question whose user may have one more thread. Null: there is none.
  std::shared_ptr<Question> take() {
    const auto next = std::ranges::find_if(
        waiting, [this](const auto& each) { return busy.room_for(each->uid) > 0; });
    if (next == waiting.end()) return nullptr;
    std::shared_ptr<Question> question = std::move(*next);
    waiting.erase(next);
    busy.take(question->uid, 1);
    return question;
  }

  const std::string processes;
  std::mutex mutex;  // guards what follows, and what the reader has besides
  std::condition_variable asked;
  std::deque<std::shared_ptr<Question>> waiting;  // each with its asker, which may give up
  UserShares busy{kMostThreads};                  // threads that read
  std::size_t threads = 0;
  bool ends = false;
};

EnvironmentReader::EnvironmentReader(std::string processes, Duration patience, const Clock& clock)
    : patience_(patience), clock_(clock), shared_(std::make_shared<Shared>(std::move(processes))) {}

EnvironmentReader::~EnvironmentReader() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ends = true;
  }
  shared_->asked.notify_all();
}

std::optional<std::string> EnvironmentReader::read(pid_t process, uid_t uid, gid_t gid) {
  const auto question = std::make_shared<Question>(process, uid, gid);
  const TimePoint now = clock_.now();
  std::unique_lock lock(shared_->mutex);
  const unsigned halvings = std::min(in_vain_of(uid, now).times, kMostHalvings);
  shared_->waiting.push_back(question);
  see_to_a_thread();
  shared_->asked.notify_one();
  const bool in_time = question->answered.wait_for(lock, patience_ / (1U << halvings),
                                                   [&] { return question->text.has_value(); });
  if (in_time) return std::move(question->text);
  std::erase(shared_->waiting, question);
  InVain& in_vain = in_vain_of(uid, now);
  ++in_vain.times;
  in_vain.until = now + kRemembered;
  return std::nullopt;
}

// Without one, questions wait for a thread that there is, or for nothing.
void EnvironmentReader::see_to_a_thread() {
  const std::size_t idle = shared_->threads - shared_->busy.taken();
  if (shared_->waiting.size() <= idle || shared_->threads == kMostThreads) return;
  Result<std::thread> thread = net::start_thread([shared = shared_] { run(*shared); });
  if (!thread) return;
  thread->detach();
  ++shared_->threads;
}

EnvironmentReader::InVain& EnvironmentReader::in_vain_of(uid_t uid, TimePoint now) {
  if (in_vain_.size() >= kMostUsers) in_vain_.clear();
  InVain& in_vain = in_vain_[uid];
  if (now >= in_vain.until) in_vain = {};
  return in_vain;
}

void EnvironmentReader::run(Shared& shared) {
  adopt_own_identity();
  std::unique_lock lock(shared.mutex);
  while (!shared.ends) {
    const std::shared_ptr<Question> question = shared.take();
    if (!question) {
      shared.asked.wait(lock);
      continue;
    }
    lock.unlock();
    std::string text = look_at(question->process, question->uid, question->gid, shared.processes);
    lock.lock();
    question->text = std::move(text);
    question->answered.notify_one();
    shared.busy.give_back(question->uid, 1);
    // Another user may have a further thread now.
    if (!shared.waiting.empty()) shared.asked.notify_all();
  }
}

}  // namespace vpfs::fuse
