#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/config_file.h"
#include "base/result.h"
#include "base/system_clock.h"
#include "control/gate/stage_gate.h"
#include "control/host/config_changes.h"
#include "control/host/config_values.h"
#include "control/host/host.h"
#include "control/host/prepared_config.h"
#include "test/control/host/program_config.h"

namespace vpfs::test {

// A gate with the settings of the threads that serve. It counts how often its owner is asked to
// look again.
class FakeGate final : public control::StageGate {
 public:
  using Settings = control::PreparedConfig<ProgramConfig>;

  FakeGate(std::shared_ptr<const Settings> settings, TimePoint now)
      : StageGate(settings->config, now), settings_(std::move(settings)) {}

  void use(ProgramConfig config, TimePoint now) {
    auto settings = std::make_shared<const Settings>(std::move(config), settings_.get());
    act(now, [&](stage::Stage& stage, TimePoint at) {
      stage.reconfigure(settings->config, at);
      settings_ = std::move(settings);
    });
    ask_again();
  }
  void reconfigure(const stage::Config& config, TimePoint now) override {
    use(control::with_stage(settings()->config, config), now);
  }
  [[nodiscard]] std::shared_ptr<const Settings> settings() {
    std::shared_ptr<const Settings> settings;
    inspect({}, [&](stage::Stage&, TimePoint) { settings = settings_; });
    return settings;
  }
  [[nodiscard]] std::size_t asked() const { return asked_; }

 private:
  void ask_again() override { ++asked_; }

  std::shared_ptr<const Settings> settings_;  // guarded by the lock
  std::atomic<std::size_t> asked_ = 0;
};

// A program that is nothing but a stage: its requests are calls of serve(), which end at once. So
// it is all that a program has to do for its Host.
class FakeProgram final : private control::Program {
 public:
  using Settings = FakeGate::Settings;

  // The error names the key. `names` outlives it.
  [[nodiscard]] static Result<std::unique_ptr<FakeProgram>> start(
      const std::string& file, control::HostNames& names = names_of_host()) {
    ConfigErrors errors(file);
    const auto config = load(errors, nullptr, names);
    if (!config) return fail(errors.to_string());
    Result<control::Live> live =
        control::Live::load(std::make_shared<const ProgramConfig>(*config));
    VPFS_TRY(live);
    std::unique_ptr<FakeProgram> program(new FakeProgram(std::move(*live), file, names));
    VPFS_TRY(program->host_.lock_status_file());
    VPFS_TRY(program->host_.open("fake:1"));
    return program;
  }

  // Until it has drained.
  void run() {
    host_.run();
    host_.finish();
  }
  // A request of a job, from its arrival to its end. Any thread.
  void serve(const std::string& jobid) {
    const std::shared_ptr<const Settings> settings = gate_.settings();
    std::vector<std::optional<std::string_view>> hints(settings->classifier.hint_names().size(),
                                                       jobid);
    stage::Identity identity;
    identity.hints = hints;
    const auto match = settings->classifier.classify(*stage::Address::parse("::1"), identity);
    stage::Held io;
    std::vector<stage::Held*> let_go;
    gate_.act(clock_.now(), [&](stage::Stage& stage, TimePoint now) {
      io.set_place(stage.find(match, now, settings->config.rules));
      io.size = io.asked = {1000};
      io.cost = settings->cost_model.cost(io.kind, io.size);
      io.arrival = now;
      stage.arrive(io, now);
      (void)stage.release(now, let_go);
      ASSERT_EQ(let_go.size(), 1U);
      stage::Stage::took_over(io);
      stage.end(io, {.moved = io.size}, now);
    });
  }
  [[nodiscard]] FakeGate& gate() { return gate_; }
  [[nodiscard]] control::Host& host() { return host_; }
  [[nodiscard]] int drains() const { return drains_; }
  // How often its file was read after the start.
  [[nodiscard]] int reads() const { return reads_; }

 private:
  FakeProgram(control::Live live, const std::string& file, control::HostNames& names)
      : gate_(std::make_shared<const Settings>(control::with_stage(
                  static_cast<const ProgramConfig&>(*live.file), live.state->composed().config)),
              clock_.now()),
        host_(*this, gate_, std::move(live),
              {.name = kProgramName, .file = file, .names = names, .clock = clock_}) {}

  // Configurations refer to them.
  static control::HostNames& names_of_host() {
    static control::HostNames names;
    return names;
  }
  static std::optional<ProgramConfig> load(ConfigErrors& errors, const ProgramConfig* running,
                                           const stage::Names& names) {
    return load_config(errors, [&](std::string_view text, ConfigErrors& found) {
      ProgramConfig config = parse_program(text, found, running, &names);
      if (found.empty()) control::check_process(config, found, kProgramName, &names);
      return config;
    });
  }

  // control::Program
  std::shared_ptr<const control::HostConfig> read(ConfigErrors& errors,
                                                  const control::HostConfig& running,
                                                  const stage::Names& names) override {
    ++reads_;
    auto config = load(errors, &static_cast<const ProgramConfig&>(running), names);
    return config ? std::make_shared<const ProgramConfig>(std::move(*config)) : nullptr;
  }
  std::vector<std::string> use(const control::HostConfig& file,
                               const stage::Config& stage) override {
    const auto before = gate_.settings();
    gate_.use(control::with_stage(static_cast<const ProgramConfig&>(file), stage), clock_.now());
    return control::stage_changes(before->config, gate_.settings()->config);
  }
  std::string status(const control::HostStatus& host) override {
    nlohmann::ordered_json status = {{"program", "fake"}};
    control::add_reloads(status, host.reloads);
    control::add_stage(status, gate_.settings()->config, host.snapshot);
    control::add_coordinator(status, host);
    return control::to_text(status);
  }
  void describe(control::StatsReply& reply) override {
    host_.describe(reply);
    reply.set_connections(7);
  }
  void list_clients(std::function<void(std::vector<control::Client>)> done) override {
    control::Client client;
    client.set_address("::1");
    done({client});
  }
  void drain(std::string_view /*why*/) override {
    ++drains_;
    draining_ = true;
    host_.stop();
  }
  bool draining() const override { return draining_; }

  const SystemClock clock_;
  std::atomic<bool> draining_ = false;
  std::atomic<int> drains_ = 0;
  std::atomic<int> reads_ = 0;
  FakeGate gate_;
  control::Host host_;
};

}  // namespace vpfs::test
