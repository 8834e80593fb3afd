#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "control/wire/owner.h"

namespace vpfs::test {

// An owner without a stage. Unless a test says otherwise it answers Stats with its name and the
// caller's, every other request with an Ack, and reports no flow.
class FakeOwner final : public control::Owner {
 public:
  struct Asked {
    control::Envelope request;
    control::Caller caller;
  };
  using Ask = std::function<void(control::Envelope, const control::Caller&, control::Answer)>;
  using CycleCall = std::function<void(const control::Cycle&, control::CycleAnswer&)>;

  // Before the port starts.
  void on_ask(Ask ask) { ask_ = std::move(ask); }
  void on_cycle(CycleCall cycle) { cycle_ = std::move(cycle); }
  void call_itself(control::Hello::Role role) { role_ = role; }
  // From any thread.
  void be_standby(bool is_standby = true) { is_standby_ = is_standby; }
  // Keeps answers back from now on; `release` gives all of them their default answer.
  void hold();
  void release();

  // From any thread.
  [[nodiscard]] std::vector<Asked> asked() const;
  [[nodiscard]] std::size_t cycles() const;
  [[nodiscard]] std::size_t links() const;  // alive

  [[nodiscard]] control::Hello hello() const override;
  void ask(control::Envelope request, const control::Caller& caller,
           control::Answer answer) override;
  [[nodiscard]] std::unique_ptr<control::Link> make_link(const control::Caller& caller) override;
  void cycle(const control::Cycle& cycle, control::Link& link,
             control::CycleAnswer& answer) override;

 private:
  struct Held {
    control::Envelope answer;
    control::Answer to;
  };
  class CountedLink;

  Ask ask_;
  CycleCall cycle_;
  control::Hello::Role role_ = control::Hello::STAGE;
  std::atomic<bool> is_standby_ = false;
  mutable std::mutex mutex_;
  std::vector<Asked> asked_;
  std::vector<Held> held_;
  std::size_t cycles_ = 0;
  std::size_t links_ = 0;
  bool holding_ = false;
};

}  // namespace vpfs::test
