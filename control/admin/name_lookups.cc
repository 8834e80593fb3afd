#include "control/admin/name_lookups.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <fmt/format.h>

#include "net/start_thread.h"

namespace vpfs::control {

// What outlives a NameLookups.
struct NameLookups::Shared {
  std::mutex mutex;                // guards what follows
  NameLookups* lookups = nullptr;  // null: the owner has gone
  std::size_t threads = 0;
  std::size_t threads_of_questions = 0;  // of them

  [[nodiscard]] bool add_thread(For what, const Limits& limits) {
    const std::lock_guard lock(mutex);
    const bool is_question = what == For::question;
    if (threads >= limits.threads_of_all) return false;
    if (is_question && threads_of_questions >= limits.threads_of_questions) return false;
    ++threads;
    if (is_question) ++threads_of_questions;
    return true;
  }
  void thread_ended(For what) {
    const std::lock_guard lock(mutex);
    --threads;
    if (what == For::question) --threads_of_questions;
  }
  // It may have gone before its thread is told, too.
  static void tell(const std::shared_ptr<Shared>& shared, std::uint64_t request) {
    const std::lock_guard lock(shared->mutex);
    if (shared->lookups == nullptr) return;
    asio::post(shared->lookups->context_, [shared, request] {
      // Only this thread sets it.
      if (shared->lookups != nullptr) shared->lookups->end(request, std::nullopt);
    });
  }
};

// What the threads of one request do. They own it.
struct NameLookups::Work {
  std::vector<std::function<void()>> tasks;
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> done = 0;
  std::atomic<bool> given_up = false;

  // Whether this call did the last one.
  [[nodiscard]] bool run() {
    for (std::size_t at = next++; at < tasks.size() && !given_up.load(); at = next++) {
      tasks[at]();
      if (++done == tasks.size()) return true;
    }
    return false;
  }
};

struct NameLookups::Request {
  Request(asio::io_context& context, std::shared_ptr<Work> to_do, Done then)
      : work(std::move(to_do)), done(std::move(then)), deadline(context) {}

  const std::shared_ptr<Work> work;
  Done done;
  asio::steady_timer deadline;
};

NameLookups::NameLookups(asio::io_context& context, const Clock& clock, HostNames names,
                         Limits limits)
    : context_(context),
      clock_(clock),
      names_(std::move(names)),
      limits_(limits),
      shared_(std::make_shared<Shared>()) {
  shared_->lookups = this;
}

NameLookups::~NameLookups() {
  for (const auto& [number, request] : requests_) request->work->given_up = true;
  const std::lock_guard lock(shared_->mutex);
  shared_->lookups = nullptr;
}

void NameLookups::fetch(const WantedNames& wanted, Done done, For what) {
  if (wanted.empty()) return done(std::nullopt);
  names_.bound(limits_.kept);
  WantedNames asked = names_.missing(wanted);
  if (what == For::question) return start(asked, what, std::move(done));
  asked.merge(old(wanted));
  start(asked, what,
        [this, wanted, done = std::move(done)](const std::optional<std::string>& problem) {
          done(names_.missing(wanted).empty() ? std::nullopt : problem);
        });
}

WantedNames NameLookups::old(const WantedNames& names) const {
  const TimePoint since = clock_.now() - limits_.holds;
  WantedNames found;
  const auto copy = [since](const auto& wanted, const auto& looked_up, auto& to) {
    std::ranges::copy_if(wanted, std::inserter(to, to.end()), [&](const std::string& each) {
      const auto at = looked_up.find(each);
      return at == looked_up.end() || at->second <= since;
    });
  };
  copy(names.users, looked_up_.users, found.users);
  copy(names.groups, looked_up_.groups, found.groups);
  copy(names.hosts, looked_up_.hosts, found.hosts);
  return found;
}

void NameLookups::note(const WantedNames& names) {
  const std::size_t all =
      looked_up_.users.size() + looked_up_.groups.size() + looked_up_.hosts.size();
  if (all > limits_.kept) looked_up_ = {};
  const TimePoint now = clock_.now();
  for (const std::string& each : names.users) looked_up_.users[each] = now;
  for (const std::string& each : names.groups) looked_up_.groups[each] = now;
  for (const std::string& each : names.hosts) looked_up_.hosts[each] = now;
}

void NameLookups::fetch_anew(const WantedNames& wanted, Done done) {
  names_.bound(limits_.kept);
  start(wanted, For::change, std::move(done));
}

void NameLookups::start(const WantedNames& wanted, For what, Done done) {
  if (wanted.empty()) return done(std::nullopt);
  const std::size_t most = what == For::question ? limits_.names_of_question : limits_.names;
  if (wanted.size() > most) {
    return done(fmt::format("more than {} names have to be looked up", most));
  }
  auto work = std::make_shared<Work>();
  for (const std::string& name : wanted.users) {
    work->tasks.emplace_back([names = names_, name] { names.find_user(name); });
  }
  for (const std::string& name : wanted.groups) {
    work->tasks.emplace_back([names = names_, name] { names.find_group(name); });
  }
  for (const std::string& name : wanted.hosts) {
    work->tasks.emplace_back([names = names_, name] { names.find_host(name); });
  }
  const std::uint64_t number = ++last_;
  std::size_t threads = 0;
  for (; threads < std::min(limits_.threads, work->tasks.size()); ++threads) {
    if (!shared_->add_thread(what, limits_)) break;
    Result<std::thread> thread = net::start_thread([work, number, what, shared = shared_] {
      if (work->run()) Shared::tell(shared, number);
      shared->thread_ended(what);
    });
    if (!thread) {
      shared_->thread_ended(what);
      break;
    }
    thread->detach();
  }
  if (threads == 0) return done("too many names are being looked up; try again");
  const Done noted = [this, wanted, done = std::move(done)](std::optional<std::string> problem) {
    if (!problem) note(wanted);
    done(std::move(problem));
  };
  auto request = std::make_unique<Request>(context_, std::move(work), noted);
  request->deadline.expires_after(what == For::question ? limits_.patience_of_question
                                                        : limits_.patience);
  request->deadline.async_wait([this, number](std::error_code error) {
    if (error) return;
    end(number, "users, groups or hosts could not be looked up in time: the name service is slow");
  });
  requests_.emplace(number, std::move(request));
}

void NameLookups::end(std::uint64_t request, std::optional<std::string> problem) {
  auto found = requests_.extract(request);
  if (found.empty()) return;
  found.mapped()->work->given_up = true;
  found.mapped()->done(std::move(problem));
}

}  // namespace vpfs::control
