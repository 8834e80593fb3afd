#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "control/store/site_store.h"

namespace vpfs::test {

// A SiteStore in memory whose writes fail as a test wants. The test keeps its state.
class ScriptedStore final : public control::SiteStore {
 public:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> records;
    std::deque<Failure> failures;  // of the next writes; afterwards they succeed
    bool is_held = false;          // writes wait
    bool carries_out = false;      // the next write that fails is carried out all the same
    bool wants_replacing = false;
    std::size_t writes = 0;    // that have begun
    std::size_t replaced = 0;  // that have succeeded
    std::size_t confirmed = 0;

    void fail(Why why, std::string text, std::size_t times = 1) {
      const std::lock_guard lock(mutex);
      for (std::size_t i = 0; i < times; ++i) failures.push_back({why, text});
    }
    void hold(bool holds) {
      const std::lock_guard lock(mutex);
      is_held = holds;
      changed.notify_all();
    }
    [[nodiscard]] std::vector<std::string> kept() {
      const std::lock_guard lock(mutex);
      return records;
    }
  };

  explicit ScriptedStore(State& state, Traits traits = {}) : state_(state), traits_(traits) {}

  [[nodiscard]] Traits traits() const override { return traits_; }
  [[nodiscard]] Outcome<Seen> look() override { return Seen(); }
  [[nodiscard]] Outcome<void> claim(const Seen& /*seen*/, const control::Leadership&) override {
    return {};
  }
  [[nodiscard]] Outcome<void> confirm() override {
    auto written = write();
    const std::lock_guard lock(state_.mutex);
    if (written) ++state_.confirmed;
    return written;
  }
  [[nodiscard]] Outcome<void> resign() override { return {}; }
  [[nodiscard]] Outcome<control::StateStore::Loaded> load() override {
    control::StateStore::Loaded loaded;
    for (const std::string& each : state_.kept()) loaded.records.push_back({.text = each});
    return loaded;
  }
  [[nodiscard]] Outcome<void> append(std::string_view record) override {
    auto written = write();
    const std::lock_guard lock(state_.mutex);
    const bool is_again = !state_.records.empty() && state_.records.back() == record;
    if ((written && !is_again) || (!written && std::exchange(state_.carries_out, false))) {
      state_.records.emplace_back(record);
    }
    return written;
  }
  [[nodiscard]] Outcome<void> replace(std::string_view record) override {
    auto written = write();
    const std::lock_guard lock(state_.mutex);
    if (!written) return written;
    state_.records = {std::string(record)};
    state_.wants_replacing = false;
    ++state_.replaced;
    return {};
  }
  [[nodiscard]] bool wants_replacing() const override {
    const std::lock_guard lock(state_.mutex);
    return state_.wants_replacing;
  }
  void wait(Duration /*patience*/) override {}
  void cancel() override { state_.hold(false); }

 private:
  Outcome<void> write() {
    std::unique_lock lock(state_.mutex);
    ++state_.writes;
    state_.changed.wait(lock, [this] { return !state_.is_held; });
    if (state_.failures.empty()) return {};
    Failure failure = std::move(state_.failures.front());
    state_.failures.pop_front();
    return std::unexpected(std::move(failure));
  }

  State& state_;
  const Traits traits_;
};

}  // namespace vpfs::test
