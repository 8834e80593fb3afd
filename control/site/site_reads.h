#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/store/store_thread.h"

namespace vpfs::coordinator {

// Asks the store whether this coordinator still holds its office, before it tells what its book
// has. A leader that another has taken for dead goes on for up to a lease, and lacks what is
// changed meanwhile. Those that ask while a question is under way share the next one, and a
// question begins a pause after the one before at the earliest: readers in a loop do not load the
// store. Belongs to the coordinator's thread.
class SiteReads {
 public:
  struct Limits {
    Duration patience = std::chrono::seconds(1);     // of a reader
    Duration pause = std::chrono::milliseconds(50);  // between the beginnings of two questions
  };
  enum class Standing : std::uint8_t {
    leads,    // at some moment since it was asked: its book had all answered changes then
    unknown,  // the store has not said so in time
    lost,     // another coordinator has claimed the office
  };
  using Done = std::function<void(Standing)>;

  // All outlive it. `lost` is called when the store says that another coordinator leads.
  SiteReads(asio::io_context& context, const Clock& clock, control::StoreCaller& store,
            std::function<void()> lost, const Limits& limits);

  // Calls `done` once: at once where the store serves one coordinator alone, and otherwise within
  // the patience and a pause.
  void ask(Done done);
  // Nothing more is asked. Those that wait are told `lost`.
  void stop();

 private:
  // Asks for those that wait, as soon as it may.
  void next();
  void begin();
  void answered(const control::SiteStore::Outcome<void>& outcome);
  void tell(std::vector<Done>& to, Standing standing);

  const Clock& clock_;
  control::StoreCaller& store_;
  const std::function<void()> lost_;
  const Limits limits_;
  std::vector<Done> asked_;     // for them the store is asked now
  std::vector<Done> waiting_;   // for the next question
  std::uint64_t question_ = 0;  // the number of the last one
  bool is_asking_ = false;
  bool is_late_ = false;  // the question under way has taken longer than the patience
  bool is_stopped_ = false;
  TimePoint next_at_ = {};  // no question begins before
  asio::steady_timer alarm_;
  asio::steady_timer pause_;
};

}  // namespace vpfs::coordinator
