#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/store/leadership.h"
#include "control/store/site_store.h"

// Parts of site_store_cases.h.
namespace vpfs::control {

using Records = std::vector<std::string>;

// Where stores of one kind keep their state; empty at first.
class SiteStoreRig {
 public:
  virtual ~SiteStoreRig() = default;
  // One more handle on the same state, as one more process has it. Never null.
  [[nodiscard]] virtual std::unique_ptr<SiteStore> open() = 0;
  // Whether a child may call open() after fork().
  [[nodiscard]] virtual bool can_fork() const { return true; }
};

// Another handle, after `old` where a store has one at a time.
inline std::unique_ptr<SiteStore> another(SiteStoreRig& rig, std::unique_ptr<SiteStore>& old) {
  if (!old->traits().has_standbys) old.reset();
  return rig.open();
}

inline Leadership leadership(std::uint64_t term, std::uint64_t incarnation) {
  return {.term = term,
          .lease = std::chrono::seconds(1),
          .transit = std::chrono::milliseconds(500),
          .incarnation = incarnation,
          .addresses = {"127.0.0.1:4711"},
          .has_resigned = false};
}

inline std::string name_of(const SiteStore::Failure& failure) {
  EXPECT_FALSE(failure.text.empty());
  switch (failure.why) {
    case SiteStore::Why::unreachable:
      return "unreachable: " + failure.text;
    case SiteStore::Why::lost:
      return "lost";
    case SiteStore::Why::refused:
      return "refused: " + failure.text;
    case SiteStore::Why::damaged:
      return "damaged: " + failure.text;
  }
  return "";
}

inline std::string answer(const SiteStore::Outcome<void>& outcome) {
  return outcome ? "done" : name_of(outcome.error());
}

// As a coordinator does it: looks, and claims the least term.
inline std::string claim(SiteStore& store, std::uint64_t incarnation) {
  const auto seen = store.look();
  if (!seen) return name_of(seen.error());
  return answer(store.claim(*seen, leadership(seen->least_term, incarnation)));
}

inline Records load(SiteStore& store) {
  const auto loaded = store.load();
  if (!loaded) return {name_of(loaded.error())};
  Records records;
  for (const StateStore::Record& record : loaded->records) records.push_back(record.text);
  return records;
}

// Three handles, or one, that do anything that they may. A call succeeds if the model says so.
class SiteStoreHistory {
 public:
  SiteStoreHistory(SiteStoreRig& rig, std::uint64_t seed) : rig_(rig), random_(seed) {
    handles_.emplace_back().store = rig_.open();
    if (!handles_[0].store->traits().has_standbys) return;
    handles_.emplace_back().store = rig_.open();
    handles_.emplace_back().store = rig_.open();
  }

  void live(int steps) {
    for (step_ = 0; step_ < steps && !::testing::Test::HasFatalFailure(); ++step_) {
      step(below(handles_.size()));
    }
    if (::testing::Test::HasFatalFailure()) return;
    take(0);
    expect(0, "load", load(*handles_[0].store), records_);
  }

 private:
  struct Handle {
    std::unique_ptr<SiteStore> store;
    bool claimed = false;  // it has led, and not resigned
    bool loaded = false;
    std::optional<SiteStore::Seen> seen;
    std::uint64_t claims_when_seen = 0;
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  [[nodiscard]] std::string expected(std::size_t index) const {
    return leader_ == index ? "done" : "lost";
  }
  void expect(std::size_t index, std::string_view call, const Records& got, const Records& wanted) {
    ASSERT_EQ(got, wanted) << "step " << step_ << ", handle " << index << ", " << call;
  }

  void look(std::size_t index) {
    Handle& handle = handles_[index];
    const auto seen = handle.store->look();
    ASSERT_TRUE(seen) << seen.error().text;
    ASSERT_EQ(seen->leader.has_value(), claims_ > 0);
    if (seen->leader) {
      ASSERT_EQ(seen->leader->incarnation, claims_);
      ASSERT_EQ(seen->leader->term, term_);
      ASSERT_EQ(seen->least_term, term_ + 1);
      ASSERT_EQ(seen->leader->has_resigned, resigned_);
      if (handle.store->traits().shows_beats) {
        ASSERT_EQ(seen->is_vacant, resigned_);
      }
    }
    handle.seen = *seen;
    handle.claims_when_seen = claims_;
  }

  void take(std::size_t index) {
    Handle& handle = handles_[index];
    if (!handle.seen || below(4) != 0) look(index);
    if (::testing::Test::HasFatalFailure()) return;
    if (handle.claims_when_seen != claims_) {
      const Leadership own = leadership(handle.seen->least_term + below(3), claims_ + 1);
      expect(index, "claim", {answer(handle.store->claim(*handle.seen, own))}, {"lost"});
      look(index);
      if (::testing::Test::HasFatalFailure()) return;
    }
    const Leadership own = leadership(handle.seen->least_term + below(3), claims_ + 1);
    expect(index, "claim", {answer(handle.store->claim(*handle.seen, own))}, {"done"});
    ++claims_;
    term_ = own.term;
    resigned_ = false;
    leader_ = index;
    handle.claimed = true;
    handle.loaded = false;
  }

  void step(std::size_t index) {
    Handle& handle = handles_[index];
    const std::uint64_t choice = below(20);
    if (choice == 0) {
      handle = {};
      handle.store = rig_.open();
      if (leader_ == index) leader_.reset();
    } else if (choice == 1) {
      look(index);
    } else if (choice <= 3 || !handle.claimed) {
      take(index);
    } else if (choice == 4) {
      expect(index, "resign", {answer(handle.store->resign())}, {expected(index)});
      handle.claimed = handle.loaded = false;
      if (leader_ != index) return;
      resigned_ = true;
      leader_.reset();
    } else if (choice <= 6) {
      expect(index, "confirm", {answer(handle.store->confirm())}, {expected(index)});
    } else if (!handle.loaded) {
      const Records lost = {"lost"};
      expect(index, "load", load(*handle.store), leader_ == index ? records_ : lost);
      handle.loaded = true;
    } else {
      write(index, choice == 7);
    }
  }

  void write(std::size_t index, bool replaces) {
    SiteStore& store = *handles_[index].store;
    const std::string record = "step " + std::to_string(step_) + std::string(below(200), '.');
    if (replaces) {
      expect(index, "replace", {answer(store.replace(record))}, {expected(index)});
    } else {
      expect(index, "append", {answer(store.append(record))}, {expected(index)});
    }
    if (leader_ != index) return;
    if (replaces) records_.clear();
    records_.push_back(record);
  }

  SiteStoreRig& rig_;
  std::mt19937_64 random_;
  std::vector<Handle> handles_;
  int step_ = 0;
  std::optional<std::size_t> leader_;
  bool resigned_ = false;
  std::uint64_t claims_ = 0;
  std::uint64_t term_ = 0;
  Records records_;
};

// A process that leads and appends "rINCARNATION.0", "rINCARNATION.1" and so on until it is killed.
// What it was told to be stored is in acknowledged().
class KilledLeader {
 public:
  KilledLeader(SiteStoreRig& rig, std::uint64_t incarnation, std::mt19937_64& random) {
    std::array<int, 2> ends = {};
    if (::pipe(ends.data()) != 0) return;
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      lead(rig, incarnation, ends[1]);
      ::_exit(1);
    }
    ::close(ends[1]);
    read_lines(ends[0], 1 + random() % 20);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
    if (child > 0) {
      ::kill(child, SIGKILL);
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    }
    read_lines(ends[0], SIZE_MAX);
    ::close(ends[0]);
  }
  [[nodiscard]] const Records& acknowledged() const { return acknowledged_; }

 private:
  static void lead(SiteStoreRig& rig, std::uint64_t incarnation, int output) {
    const std::unique_ptr<SiteStore> store = rig.open();
    if (claim(*store, incarnation) != "done" || !store->load()) return;
    for (std::uint64_t number = 0;; ++number) {
      const std::string record =
          "r" + std::to_string(incarnation) + "." + std::to_string(number) + "\n";
      if (!store->append(record.substr(0, record.size() - 1))) return;
      if (::write(output, record.data(), record.size()) < 0) return;
    }
  }
  void read_lines(int input, std::size_t most) {
    char byte = 0;
    while (acknowledged_.size() < most && ::read(input, &byte, 1) == 1) {
      if (byte == '\n') acknowledged_.push_back(std::exchange(line_, ""));
      if (byte != '\n') line_ += byte;
    }
  }

  std::string line_;
  Records acknowledged_;
};

}  // namespace vpfs::control
