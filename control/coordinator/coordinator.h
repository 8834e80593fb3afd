#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/allocation/cycle_state.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/links/cycle_log.h"
#include "control/coordinator/links/cycle_runner.h"
#include "control/coordinator/links/parent_link.h"
#include "control/coordinator/links/stage_links.h"
#include "control/coordinator/office/elected.h"
#include "control/coordinator/office/office.h"
#include "control/site/site_administration.h"
#include "control/store/store_thread.h"
#include "net/signal_queue.h"

namespace vpfs::coordinator {

// A coordinator that leads: one thread for the stages and their cycles.
class Coordinator final : private StageLinks::StageHandler, private ParentLink::ParentHandler {
 public:
  struct Options {
    std::string cycle_log;  // a file; "": none
    StageLinks::Limits links;
  };
  enum class Ending : std::uint8_t {
    signal,  // SIGTERM or SIGINT
    lost,    // another coordinator leads, or may lead from now on
  };

  // Its sockets are open. The error names the key of the configuration. `clock`, `store` and
  // `signals` (SIGTERM, SIGINT, SIGUSR2) outlive it.
  [[nodiscard]] static Result<std::unique_ptr<Coordinator>> make(
      const Config& config, const Clock& clock, const Options& options, const Elected& elected,
      control::StoreThread& store, const net::SignalQueue& signals);
  ~Coordinator() override;

  [[nodiscard]] Ending run();

  [[nodiscard]] std::uint64_t term() const { return own_.term; }
  [[nodiscard]] std::optional<net::Endpoint> tcp_endpoint() const { return links_->tcp_endpoint(); }

 private:
  Coordinator(const Config& config, const Clock& clock, const Elected& elected,
              control::StoreThread& store, const net::SignalQueue& signals);

  [[nodiscard]] std::expected<allocation::StageId, control::Error> admit(
      const StageHello& hello) override;
  void joined(allocation::StageId stage) override;
  void left(allocation::StageId stage) override;
  void announced(allocation::StageId stage, const control::Flows& flows) override {
    runner_.announced(stage, flows);
    site_->announced(flows);
  }
  void reported(allocation::StageId stage, const control::Report& report) override {
    runner_.reported(stage, report);
  }
  void refused_cycle(allocation::StageId stage, std::uint64_t sequence,
                     const control::Error& why) override {
    runner_.refused(stage, sequence, why);
  }

  [[nodiscard]] std::optional<control::Hello> hello() const override;
  void led(bool is_led) override;
  void ask(const control::Envelope& request, ParentLink::Done done) override;

  [[nodiscard]] std::unique_ptr<allocation::AllocationPolicy> make_policy();
  // That of most stages; null: there is none.
  [[nodiscard]] const std::string* common_cost_model() const;
  void take_signal(int signal);
  void lose(const std::string& why);
  void tell_joins();
  void begin_cycle();
  void begin_later(TimePoint at);
  void run_divided(CycleTimes times);
  void finished(const CycleTimes& times);

  const Config config_;
  const Clock& clock_;
  const control::Leadership own_;
  const allocation::AllocationPolicyKind& policy_;
  allocation::GivenPolicy* given_ = nullptr;  // the aggregator's policy, which state_ owns
  asio::io_context context_{1};
  net::SignalReader signals_;
  asio::steady_timer cycle_timer_;
  Office office_;
  Ending ending_ = Ending::signal;
  TimePoint cycle_began_;
  allocation::CycleState state_;
  CycleRunner runner_;
  std::unique_ptr<StageLinks> links_;
  std::optional<allocation::Uplink> uplink_;  // of an aggregator, as the following
  std::unique_ptr<ParentLink> parent_;        // of an aggregator
  std::unique_ptr<SiteAdministration> site_;
  std::unique_ptr<CycleLog> cycle_log_;
  std::map<std::string, std::size_t> cost_models_;  // of connected stages
  TimePoint joins_since_ = {};
  std::size_t joins_ = 0;  // since then
};

}  // namespace vpfs::coordinator
