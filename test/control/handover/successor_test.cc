#include "control/handover/successor.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/system_clock.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;

// Nothing is handed over here.
class NoProgram final : public GivingProgram {
 public:
  [[nodiscard]] Belongings offer() override { return {}; }
  void withdraw() override {}
  void freeze() override {}
  [[nodiscard]] std::size_t outstanding() override { return 0; }
  [[nodiscard]] Result<std::vector<PackedParcel>> pack() override { return {}; }
  [[nodiscard]] Result<SavedState> state(TimePoint /*end*/) override { return {}; }
  void thaw() override {}
  [[nodiscard]] std::string why_not() override { return ""; }
  void leave(const HandedOver& /*done*/) override {}
  [[nodiscard]] std::vector<PackedParcel> wait_for_more(Duration /*patience*/) override {
    return {};
  }
  [[nodiscard]] std::optional<SavedState> changes() override { return std::nullopt; }
  [[nodiscard]] std::size_t left() override { return 0; }
  [[nodiscard]] std::string_view kind_of_parts() const override { return "parts"; }
};

// The test's thread is that of a hand-over. The main thread runs the context, where a test starts
// it.
class SuccessorOnMain : public ::testing::Test {
 protected:
  [[nodiscard]] TimePoint in(Duration time) const { return clock_.now() + time; }

  SystemClock clock_;
  asio::io_context context_;
  NoProgram program_;
  Successor successor_{
      {.context = context_, .program = program_, .clock = clock_, .role = "program", .end = [] {}}};
};

TEST_F(SuccessorOnMain, WaitsUntilTheMainThreadHasRunIt) {
  auto work = asio::make_work_guard(context_);
  std::jthread main_thread([this] { context_.run(); });
  std::thread::id ran_on;
  EXPECT_TRUE(successor_.on_main([&] { ran_on = std::this_thread::get_id(); }, in(1min)));
  EXPECT_EQ(ran_on, main_thread.get_id());
  work.reset();
}

TEST_F(SuccessorOnMain, ABusyMainThreadIsWaitedForUntilTheDeadlineAndNeverRunsItAfterwards) {
  bool ran = false;
  EXPECT_FALSE(successor_.on_main([&] { ran = true; }, in(100ms)));
  EXPECT_GT(context_.run(), 0U);
  EXPECT_FALSE(ran);
}

TEST_F(SuccessorOnMain, TheEndOfTheProgramEndsAWaitWithoutADeadline) {
  bool ran = false;
  std::jthread ending([this] { successor_.stop(); });
  EXPECT_FALSE(successor_.on_main([&] { ran = true; }));
  ending.join();
  EXPECT_GT(context_.run(), 0U);
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace vpfs::control
