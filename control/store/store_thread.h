#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "control/store/site_store.h"

namespace vpfs::control {

// A SiteStore on a thread of its own, whose calls may take seconds. They are carried out one after
// the other.
class StoreThread {
 public:
  explicit StoreThread(std::unique_ptr<SiteStore> store);
  // Cancels what is under way. Its callers are gone.
  ~StoreThread();
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  [[nodiscard]] const SiteStore::Traits& traits() const { return traits_; }

  // Any thread.
  void post(std::move_only_function<void(SiteStore&)> call);

 private:
  void run();

  const std::unique_ptr<SiteStore> store_;
  const SiteStore::Traits traits_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable more_;
  std::deque<std::move_only_function<void(SiteStore&)>> calls_;
  bool is_ending_ = false;
  std::thread thread_;
};

// What one thread asks of a store. Outcomes come back to it through `post`, in the order of the
// calls. After its end, calls that have not begun are not carried out, and no outcome comes.
class StoreCaller {
 public:
  // Runs a function on the caller's thread, in a later turn.
  using Post = std::function<void(std::function<void()>)>;

  // `store` outlives it.
  StoreCaller(StoreThread& store, Post post);
  ~StoreCaller() { end(); }
  StoreCaller(const StoreCaller&) = delete;
  StoreCaller& operator=(const StoreCaller&) = delete;

  [[nodiscard]] const SiteStore::Traits& traits() const { return store_.traits(); }

  // `call` gets the store, on its thread, and `done` what that has returned, on the caller's.
  template <typename Call, typename Done>
  void ask(Call call, Done done) {
    using Outcome = std::invoke_result_t<Call, SiteStore&>;
    store_.post([link = link_, call = std::move(call), done = std::move(done)](SiteStore& store) {
      if (!link->is_open) return;
      auto outcome = std::make_shared<Outcome>(call(store));
      link->deliver([link, outcome, done] {
        if (link->is_open) done(std::move(*outcome));
      });
    });
  }

  // From the caller's thread.
  void end();

 private:
  struct CallerLink {
    std::atomic<bool> is_open = true;  // written by the caller's thread
    std::mutex mutex;                  // guards `post`
    Post post;

    void deliver(std::function<void()> what);
  };

  StoreThread& store_;
  const std::shared_ptr<CallerLink> link_;  // shared with calls under way
};

}  // namespace vpfs::control
