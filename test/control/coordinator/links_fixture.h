#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "control/coordinator/links/stage_links.h"
#include "control/wire/protocol.h"
#include "test/support/control/fake_stage.h"
#include "test/support/process.h"

namespace vpfs::coordinator {

using test::FakeStage;
using test::stage_hello;
using test::StageSocket;

// Admits stages, one of each name and of the cost model "cost", and remembers what it hears. Its
// callbacks come from the thread of the links.
class RecordingStageHandler final : public StageLinks::StageHandler {
 public:
  struct Stage {
    std::string name;
    bool is_connected = false;
    int times_joined = 0;
    std::size_t flows = 0;
    std::vector<std::uint64_t> reports;  // their sequences
    std::vector<std::string> refusals;
  };

  std::expected<allocation::StageId, control::Error> admit(const StageHello& hello) override {
    const std::lock_guard lock(mutex_);
    if (hello.cost_model != "cost") {
      return std::unexpected(control::make_error(control::Error::INVALID, "cost_model",
                                                 "\"" + hello.cost_model + "\" is not \"cost\""));
    }
    auto place = std::ranges::find(stages_, hello.name, &Stage::name);
    if (place == stages_.end()) {
      place = stages_.insert(stages_.end(), {.name = hello.name});
    } else if (place->is_connected) {
      return std::unexpected(
          control::make_error(control::Error::EXISTS, "name", hello.name + " is connected"));
    }
    hello_ = hello;
    return allocation::StageId{static_cast<std::uint32_t>(place - stages_.begin())};
  }
  void joined(allocation::StageId stage) override {
    change(stage, [](Stage& each) {
      each.is_connected = true;
      ++each.times_joined;
    });
  }
  void left(allocation::StageId stage) override {
    change(stage, [](Stage& each) { each.is_connected = false; });
  }
  void announced(allocation::StageId stage, const control::Flows& flows) override {
    change(stage, [&](Stage& each) { each.flows += static_cast<std::size_t>(flows.flows_size()); });
  }
  void reported(allocation::StageId stage, const control::Report& report) override {
    change(stage, [&](Stage& each) { each.reports.push_back(report.sequence()); });
  }
  void refused_cycle(allocation::StageId stage, std::uint64_t sequence,
                     const control::Error& why) override {
    change(stage, [&](Stage& each) {
      each.refusals.push_back(fmt::format("{}: {}", sequence, why.text()));
    });
  }

  // Waits for up to ten seconds until it holds.
  bool wait_until(const std::function<bool(const std::vector<Stage>&)>& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return holds(stages_); });
  }
  bool wait_until_connected(std::size_t count) {
    return wait_until([count](const std::vector<Stage>& stages) {
      return static_cast<std::size_t>(std::ranges::count(stages, true, &Stage::is_connected)) ==
             count;
    });
  }
  [[nodiscard]] std::vector<Stage> stages() {
    const std::lock_guard lock(mutex_);
    return stages_;
  }
  [[nodiscard]] StageHello last_hello() {
    const std::lock_guard lock(mutex_);
    return hello_;
  }

 private:
  template <typename Change>
  void change(allocation::StageId stage, Change&& apply) {
    const std::lock_guard lock(mutex_);
    apply(stages_.at(stage.index));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Stage> stages_;
  StageHello hello_;
};

// Links that run in a thread of their own; the test plays the stages.
class LinksFixture : public ::testing::Test {
 protected:
  LinksFixture() {
    config_.name = "site";
    config_.listen.socket = folder_.path() / "stages.sock";
    limits_.least_pause = std::chrono::milliseconds(20);
    limits_.most_pause = std::chrono::milliseconds(100);
  }
  ~LinksFixture() override { stop(); }

  void open() {
    auto links = StageLinks::open(context_, clock_, config_, handler_, limits_);
    ASSERT_TRUE(links) << links.error().message;
    links_ = std::move(*links);
    thread_ = std::thread([this] {
      links_->start();
      const auto guard = asio::make_work_guard(context_);
      context_.run();
    });
  }
  void stop() {
    if (!thread_.joinable()) return;
    on_thread([this] { links_->stop(); });
    context_.stop();
    thread_.join();
  }
  // Runs it where the links run; its result.
  template <typename Work>
  auto on_thread(Work work) -> decltype(work()) {
    std::packaged_task<decltype(work())()> task(std::move(work));
    auto result = task.get_future();
    asio::post(context_, [&task] { task(); });
    return result.get();
  }
  [[nodiscard]] StageLinks::Counters counters() {
    return on_thread([this] { return links_->counters(); });
  }
  [[nodiscard]] std::vector<AbsentStage> absent() {
    return on_thread([this] { return links_->absent(); });
  }

  [[nodiscard]] FakeStage dial_in() const { return FakeStage::dial(config_.listen.socket); }
  // A stage that has joined.
  [[nodiscard]] FakeStage joined(const std::string& name) {
    FakeStage stage = dial_in();
    const auto answer = stage.greet(stage_hello(name));
    EXPECT_TRUE(answer && answer->has_hello());
    return stage;
  }
  // Sends cycle `sequence` of term 1 to a stage by its place in the order of joining.
  void send_cycle(std::uint32_t stage, std::uint64_t sequence) {
    on_thread([=, this] {
      control::Envelope cycle;
      cycle.mutable_cycle()->set_term(1);
      cycle.mutable_cycle()->set_sequence(sequence);
      (void)links_->send_cycle({stage}, cycle, links_->joins());
    });
  }
  // The text and place of the error that refuses a greeting.
  [[nodiscard]] std::string refusal_of(const control::Hello& hello) {
    FakeStage stage = dial_in();
    const auto answer = stage.greet(hello);
    if (!answer || !answer->has_error()) return "no refusal";
    EXPECT_TRUE(stage.closed_within());
    return answer->error().place() + ": " + answer->error().text();
  }

  test::TemporaryDirectory folder_;
  SystemClock clock_;
  Config config_;
  StageLinks::Limits limits_;
  RecordingStageHandler handler_;
  asio::io_context context_{1};
  std::unique_ptr<StageLinks> links_;
  std::thread thread_;
};

}  // namespace vpfs::coordinator
