#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "control/admin/live_state.h"
#include "control/site/site_message.h"

namespace vpfs::coordinator {

// The rules of a site without a journal, at a time of the test's.
class LiveBook {
 public:
  LiveBook() : grammar_(site_grammar(nullptr)) {
    std::vector<std::string> notes;
    auto live = control::LiveState::load(nullptr, grammar_, now, notes);
    EXPECT_TRUE(live);
    live_ = std::move(*live);
  }

  void start(const std::string& name, const std::string& condition,
             const std::vector<std::string>& words) {
    run(stage::StartRule{.rule = {.name = name, .condition = condition, .words = words}});
  }
  void stop(const std::string& name) { run(stage::StopRule{.name = name}); }
  void run(decltype(stage::BookOperation::what) what) {
    const auto change = live_->prepare({.at = now, .who = "ops", .what = std::move(what)});
    ASSERT_TRUE(change) << change.error().place() << ": " << change.error().text();
    ASSERT_TRUE(live_->carry_out(*change));
  }
  [[nodiscard]] const stage::Config& composed() const { return live_->composed().config; }
  [[nodiscard]] control::Site site() const { return to_site(*live_, "main"); }
  [[nodiscard]] control::LiveState& live() { return *live_; }

  WallTime now = WallTime(std::chrono::seconds(1'800'000'000));

 private:
  stage::Config grammar_;
  std::unique_ptr<control::LiveState> live_;
};

}  // namespace vpfs::coordinator
