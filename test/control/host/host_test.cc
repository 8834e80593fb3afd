// A Host in a program without any I/O: what a second kind of stage gets from it.
#include "control/host/host.h"

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "control/admin/host_names.h"
#include "control/wire/client.h"
#include "stage/rules/names.h"
#include "test/control/host/fake_program.h"
#include "test/support/control/fake_coordinator.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Users and groups of a site. It notes the threads that ask.
class SiteNames final : public stage::Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override {
    return known(name);
  }
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string& name) const override {
    return known(name);
  }
  [[nodiscard]] std::vector<std::string> addresses(const std::string& /*host*/) const override {
    return {};
  }
  void forget_threads() {
    const std::lock_guard lock(mutex_);
    threads_.clear();
  }
  [[nodiscard]] std::set<std::thread::id> threads() const {
    const std::lock_guard lock(mutex_);
    return threads_;
  }

 private:
  [[nodiscard]] std::optional<std::uint32_t> known(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    threads_.insert(std::this_thread::get_id());
    if (name == "alice" || name == "staff") return ::getegid();
    return std::nullopt;
  }

  mutable std::mutex mutex_;  // guards what follows
  mutable std::set<std::thread::id> threads_;
};

class HostTest : public ::testing::Test {
 protected:
  ~HostTest() override {
    if (thread_.joinable()) stop();
  }

  // Writes the configuration file. `own` and `port` are further keys of its first two mappings.
  void write(const std::string& rest, const std::string& own = "", const std::string& port = "") {
    const std::string folder = folder_.path().string();
    config_ = folder_.write(
        "config.yaml", fmt::format("program: {{status_file: {0}/status.json{2}}}\n"
                                   "control: {{socket: {0}/port, journal: {0}/journal{3}}}\n{1}",
                                   folder, rest, own, port));
  }
  void start() {
    auto program = test::FakeProgram::start(config_, names_);
    ASSERT_TRUE(program) << program.error().message;
    program_ = std::move(*program);
    thread_ = std::thread([this] { program_->run(); });
  }
  void end() { thread_.join(); }
  void stop() {
    asio::post(program_->host().context(), [this] { program_->host().stop(); });
    end();
  }

  Envelope ask(Envelope request) {
    auto client = PortClient::connect({.path = folder_.path() / "port", .host = ""}, {});
    if (!client) {
      ADD_FAILURE() << client.error().error.text();
      return {};
    }
    auto answer = client->ask(std::move(request), 10s);
    if (answer) return *answer;
    Envelope refused;
    *refused.mutable_error() = answer.error().error;
    return refused;
  }
  Envelope reload() {
    Envelope request;
    request.mutable_reload();
    return ask(request);
  }
  StatsReply stats() {
    Envelope request;
    request.mutable_stats();
    return ask(request).stats_reply();
  }
  Envelope start_rule(const std::string& name, const std::string& condition) {
    Envelope request;
    Rule& rule = *request.mutable_rule();
    rule.set_action(Rule::START);
    rule.set_name(name);
    rule.set_condition(condition);
    rule.add_words("weight=4");
    return ask(request);
  }
  static std::uint64_t done(const StatsReply& stats, const std::string& name) {
    for (const VirtualPfs& each : stats.virtual_pfs()) {
      if (each.name() == name) return each.read().requests();
    }
    return 0;
  }
  [[nodiscard]] nlohmann::json status_file() const {
    return nlohmann::json::parse(test::read_text(folder_.path() / "status.json"));
  }

  const test::TemporaryDirectory folder_;
  HostNames names_;
  std::string config_;
  std::unique_ptr<test::FakeProgram> program_;
  std::thread thread_;
};

TEST_F(HostTest, AdministratorsReachTheStageByItsControlPort) {
  write("virtual_pfs: {a: {weight: 3}}\nrules: [{match: {jobid: a1}, virtual_pfs: a}]\n");
  start();
  program_->serve("a1");
  program_->serve("b1");
  program_->serve("a1");
  const StatsReply seen = stats();
  EXPECT_EQ(seen.name(), "fake:1");
  EXPECT_EQ(seen.connections(), 7U);
  EXPECT_FALSE(seen.draining());
  EXPECT_EQ(done(seen, "a"), 2U);
  EXPECT_EQ(done(seen, "default"), 1U);
}

TEST_F(HostTest, ALiveRuleIsInForceAtOnceAndAfterARestart) {
  write("");
  start();
  const Envelope started = start_rule("c", "jobid=c1");
  EXPECT_FALSE(started.has_error()) << started.error().text();
  program_->serve("c1");
  EXPECT_EQ(done(stats(), "c"), 1U);
  stop();
  program_.reset();
  start();
  program_->serve("c1");
  program_->serve("c1");
  EXPECT_EQ(done(stats(), "c"), 2U);
}

TEST_F(HostTest, AReloadTakesTheChangedFileOnAndSaysWhatChanged) {
  write("virtual_pfs: {a: {weight: 3}}\n");
  start();
  ASSERT_FALSE(start_rule("c", "jobid=c1").has_error());
  const std::size_t asked = program_->gate().asked();
  write("virtual_pfs: {a: {weight: 5}, b: {}}\n");
  const Envelope answer = reload();
  EXPECT_THAT(answer.ack().text(), HasSubstr("virtual PFS a changed: weight 3 -> 5"));
  EXPECT_THAT(answer.ack().text(), HasSubstr("virtual PFS b added"));
  EXPECT_GT(program_->gate().asked(), asked) << "other requests may go now";
  program_->serve("c1");
  EXPECT_EQ(done(stats(), "c"), 1U) << "live rules stay";
  EXPECT_EQ(status_file()["reloads"], (nlohmann::json{{"tried", 1}, {"failed", 0}}));
}

TEST_F(HostTest, AReloadReadsItsFileOnceUnlessANameMeansSomethingElse) {
  const auto rules = [](const std::string& user) {
    return "virtual_pfs: {a: {}}\n"
           "registered_jobs: [{jobid: j, client: localhost, uid: " +
           user + "}]\n";
  };
  write(rules("root"));
  start();
  EXPECT_EQ(reload().ack().text(), "nothing has changed");
  EXPECT_EQ(program_->reads(), 1);
  write(rules("daemon"));
  EXPECT_THAT(reload().ack().text(), HasSubstr("job j changed"));
  EXPECT_EQ(program_->reads(), 3) << "its number was not known before";
  EXPECT_EQ(reload().ack().text(), "nothing has changed");
  EXPECT_EQ(program_->reads(), 4);
  write(rules("absent-user"));
  EXPECT_THAT(reload().error().text(), HasSubstr("there is no user 'absent-user'"));
}

// A name service that is slow would have the service manager end the program.
TEST_F(HostTest, AReloadLooksUpReadersAndWritersOnOtherThreads) {
  SiteNames site;
  names_ = HostNames(site);
  write("", "", ", group: staff, writers: [alice], readers: ['@staff']");
  start();
  const auto main_thread = thread_.get_id();
  site.forget_threads();
  EXPECT_EQ(reload().ack().text(), "nothing has changed");
  EXPECT_THAT(site.threads(), AllOf(Not(IsEmpty()), Not(Contains(main_thread))));
  write("", "", ", group: staff, writers: [bob]");
  EXPECT_THAT(reload().error().text(), HasSubstr("control.writers: this host has no user \"bob\""));
  EXPECT_THAT(site.threads(), Not(Contains(main_thread)));
  write("", "", ", group: staff, writers: [staff]");
  EXPECT_TRUE(reload().has_ack());
  EXPECT_THAT(site.threads(), Not(Contains(main_thread)));
}

TEST_F(HostTest, AReloadThatNeedsARestartChangesNothing) {
  write("virtual_pfs: {a: {}}\n");
  start();
  write("virtual_pfs: {b: {}}\n", ", threads: 2");
  const Envelope answer = reload();
  EXPECT_THAT(answer.error().text(), HasSubstr("cannot change while the program runs: restart it"));
  EXPECT_EQ(status_file()["reloads"]["failed"], 1);
  EXPECT_THAT(status_file()["reloads"]["last_error"], HasSubstr("program.threads"));
  bool has_a = false;
  for (const auto& row : status_file()["virtual_pfs"]) has_a = has_a || row["name"] == "a";
  EXPECT_TRUE(has_a);
}

TEST_F(HostTest, TheCoordinatorOfItsFileIsDialledAndItsCyclesAreTakenOn) {
  const std::string socket = folder_.path() / "stages";
  test::FakeCoordinator coordinator(socket);
  write("virtual_pfs: {a: {}}\n", "", ", coordinator: " + socket);
  start();
  auto stage = coordinator.greeted();
  ASSERT_TRUE(stage);
  Envelope cycle;
  cycle.set_id(1);
  cycle.mutable_cycle()->set_want_report(true);
  ASSERT_TRUE(stage->send(cycle));
  const auto flows = stage->receive();
  ASSERT_TRUE(flows && flows->has_flows());
  ASSERT_TRUE(stage->receive());
  std::uint32_t a = 0;
  for (const Flow& each : flows->flows().flows()) {
    if (each.name() == "a") a = each.id();
  }
  cycle.set_id(2);
  cycle.mutable_cycle()->set_term(1);
  cycle.mutable_cycle()->set_sequence(1);
  cycle.mutable_cycle()->set_lease_us(60'000'000);
  Allocation& limit = *cycle.mutable_cycle()->add_allocations();
  limit.set_flow(a);
  limit.set_bytes_per_second(1'000'000);
  ASSERT_TRUE(stage->send(cycle));
  const auto report = stage->receive();
  ASSERT_TRUE(report && report->has_report());
  EXPECT_TRUE(report->report().applied()) << report->report().refused().text();
  EXPECT_TRUE(stats().coordinator().connected());
  program_->gate().inspect({}, [&](stage::Stage& each, TimePoint) {
    EXPECT_EQ(each.allocations().limits(AppId{a}).bytes, BytesPerSecond{1'000'000});
  });
}

TEST_F(HostTest, TheStatusFileIsThereFromTheStartAndHasOneOwner) {
  write("");
  start();
  EXPECT_EQ(stats().name(), "fake:1");  // it runs
  EXPECT_EQ(status_file()["program"], "fake");
  const auto second = test::FakeProgram::start(config_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("journal"));
  const std::string journal = fmt::format("{}/other", folder_.path().string());
  config_ = folder_.write("other.yaml", fmt::format("program: {{status_file: {}/status.json}}\n"
                                                    "control: {{journal: {}}}\n",
                                                    folder_.path().string(), journal));
  const auto third = test::FakeProgram::start(config_);
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error().message, HasSubstr("program.status_file: "));
  EXPECT_THAT(third.error().message, HasSubstr("belongs to another vpfs-test"));
}

TEST_F(HostTest, DrainingIsTheProgramsAndHappensOnce) {
  write("");
  start();
  program_->serve("x");
  Envelope request;
  request.mutable_status();
  EXPECT_EQ(nlohmann::json::parse(ask(request).status_reply().json())["program"], "fake");
  request.mutable_drain();
  EXPECT_TRUE(ask(request).has_ack());
  end();
  EXPECT_EQ(program_->drains(), 1);
  EXPECT_EQ(status_file()["virtual_pfs"][0]["done_requests"], 1) << "the last status";
}

TEST_F(HostTest, SignalsReloadWriteTheStatusAndEnd) {
  write("virtual_pfs: {a: {}}\n");
  start();
  EXPECT_EQ(stats().name(), "fake:1");
  write("virtual_pfs: {a: {}, b: {}}\n");
  ASSERT_EQ(::raise(SIGHUP), 0);
  for (int i = 0; i < 1000 && status_file()["reloads"]["tried"] != 1; ++i) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(status_file()["reloads"]["failed"], 0);
  std::filesystem::remove(folder_.path() / "status.json");
  ASSERT_EQ(::raise(SIGUSR1), 0);
  for (int i = 0; i < 1000 && !std::filesystem::exists(folder_.path() / "status.json"); ++i) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "status.json"));
  ASSERT_EQ(::raise(SIGTERM), 0);
  end();
  EXPECT_EQ(program_->drains(), 1);
}

}  // namespace
}  // namespace vpfs::control
