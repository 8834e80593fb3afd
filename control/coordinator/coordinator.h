#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/allocation/cycle_state.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/later_term.h"
#include "control/coordinator/led_stages.h"
#include "control/coordinator/links/cycle_log.h"
#include "control/coordinator/links/cycle_runner.h"
#include "control/coordinator/links/parent_link.h"
#include "control/coordinator/links/stage_links.h"
#include "control/coordinator/members/served_part.h"
#include "control/coordinator/members/view_publisher.h"
#include "control/metrics/own_part.h"
#include "control/site/site_administration.h"
#include "control/site/site_numbers.h"
#include "control/site/site_reads.h"
#include "control/store/state_store.h"
#include "control/store/store_thread.h"

namespace vpfs::coordinator {

// A coordinator's stages and their cycles: those of a leader, of an aggregator, or of a member.
// Belongs to one thread, that of its io_context, and outlives its run.
class Coordinator final : private StageLinks::StageHandler, private ParentLink::ParentHandler {
 public:
  struct Options {
    std::string cycle_log;  // a file; "": none
    StageLinks::Limits links;
  };
  // All that is a reference outlives it.
  struct Parts {
    asio::io_context& context;
    const Clock& clock;
    const Config& config;
    const Options& options;
    std::uint64_t term = 0;  // of a member: zero, until it is told a view
    std::uint64_t incarnation = 0;
    TimePoint clear_from;  // no caps of another coordinator before are in force from then on
    const control::StateStore::Loaded& records;
    control::StoreCaller& store;
    // Whether cycles and rules may be sent; null: they always may.
    std::function<bool()> may_send = {};
    // Its term is over, since another coordinator leads, or since it needs a later one.
    std::function<void(const std::string& why)> over;
    // An aggregator has it; see LaterTerm.
    LaterTerm::Begin begin_later_term = {};
    Duration later_term_after = {};
    std::function<std::string()> store_problem;  // what the store did not do last; "": it works
    SiteReads::Confirm confirm = {};             // as SiteAdministration::Parts has it
    control::OwnPart* own_part = nullptr;        // as SiteAdministration::Parts has it
    std::optional<ServedPart> part = {};         // of a member
    bool leads_members = false;                  // its stages are members
    std::string gone_member = {};                // the leader before, if its process has ended
    const stage::Names* databases = nullptr;     // as SiteAdministration::Parts has it
  };

  // Its sockets are open. The error names the key of the configuration.
  [[nodiscard]] static Result<std::unique_ptr<Coordinator>> make(const Parts& parts);
  ~Coordinator() override;

  // Begins; what it waits for runs on the io_context.
  void start();
  void stop();
  // For a member: its leader is there; empty: it has no members.
  void follow(const std::vector<control::PortAddress>& leader);
  // For a member: none leads, as far as is known.
  void follow_none() { has_leader_ = false; }

  [[nodiscard]] std::optional<net::Endpoint> tcp_endpoint() const { return links_->tcp_endpoint(); }
  [[nodiscard]] std::string status() { return site_->status(); }
  void reopen_audit() { site_->reopen_audit(); }
  [[nodiscard]] SiteNumbers numbers() { return site_->numbers(); }
  // What it serves as a member; null: it is not one.
  [[nodiscard]] const ServedPart* part() const { return part_ ? &*part_ : nullptr; }

 private:
  explicit Coordinator(const Parts& parts);
  [[nodiscard]] Result<void> open(const Parts& parts);

  [[nodiscard]] std::expected<allocation::StageId, control::Error> admit(
      const StageHello& hello) override;
  [[nodiscard]] std::optional<control::Error> why_not(const StageHello& hello) const;
  // Whether the stage has applied cycles of this term, or of a later one, that another sent.
  [[nodiscard]] bool is_led_by_another(const StageHello& hello) const;
  [[nodiscard]] control::Error need_later_term(const StageHello& hello);
  [[nodiscard]] std::optional<control::Error> compare_costs(const StageHello& hello) const;
  void joined(allocation::StageId stage) override;
  void left(allocation::StageId stage) override;
  void announced(allocation::StageId stage, const control::Flows& flows) override {
    site_->announced(stage, flows);
  }
  void reported(allocation::StageId stage, const control::Report& report) override {
    runner_.reported(stage, report);
    if (views_) views_->learn_cost_model(stage, report.cost_model());
  }
  void refused_cycle(allocation::StageId stage, std::uint64_t sequence,
                     const control::Error& why) override {
    runner_.refused(stage, sequence, why);
  }

  [[nodiscard]] std::optional<control::Hello> hello() const override;
  [[nodiscard]] std::string cost_model_to_tell() const override;
  void led(bool is_led) override;
  void ask(const control::Envelope& request, ParentLink::Done done) override;
  void serve_part();
  // Whether the one that leads is out of reach.
  void look_whether_cut_off();
  void take_view(const control::MemberView& told, const ParentLink::Done& done);

  [[nodiscard]] std::unique_ptr<allocation::AllocationPolicy> make_policy();
  // That of most stages; null: there is none.
  [[nodiscard]] const std::string* common_cost_model() const;
  // That of the configuration, or that a member was told; null: neither.
  [[nodiscard]] const std::string* given_cost_model() const;
  void tell_joins();
  void begin_cycle();
  void begin_later(TimePoint at);
  void run_divided(CycleTimes times);
  void finished(const CycleTimes& times);

  asio::io_context& context_;
  const Config& config_;
  const Clock& clock_;
  const std::uint64_t incarnation_;
  const allocation::AllocationPolicyKind& policy_;
  allocation::GivenPolicy* given_ = nullptr;  // the aggregator's policy, which state_ owns
  asio::steady_timer cycle_timer_;
  TimePoint cycle_began_;
  allocation::CycleState state_;
  CycleRunner runner_;
  LaterTerm later_term_;
  LedStages led_;  // in this term
  std::unique_ptr<StageLinks> links_;
  std::optional<allocation::Uplink> uplink_;  // of an aggregator, as the following
  std::unique_ptr<ParentLink> parent_;        // of an aggregator
  std::uint64_t site_term_ = 0;               // of the last rules of its parent
  std::optional<ServedPart> part_;            // of a member, as the following
  bool has_leader_ = false;
  TimePoint reached_at_;  // its leader was connected
  asio::steady_timer reach_timer_;
  std::optional<ViewPublisher> views_;  // of a leader of members
  std::unique_ptr<SiteAdministration> site_;
  std::unique_ptr<CycleLog> cycle_log_;
  std::map<std::string, std::size_t> cost_models_;  // of connected stages
  TimePoint joins_since_ = {};
  std::size_t joins_ = 0;  // since then
  bool is_stopped_ = false;
};

}  // namespace vpfs::coordinator
