#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/admin/host_names.h"
#include "control/admin/live_state.h"
#include "control/admin/name_lookups.h"
#include "control/admin/rule_administration.h"
#include "control/allocation/cycle_state.h"
#include "control/allocation/totals_watch.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/links/cycle_times.h"
#include "control/coordinator/links/parent_link.h"
#include "control/coordinator/links/stage_links.h"
#include "control/metrics/http_ports.h"
#include "control/metrics/own_part.h"
#include "control/site/kept.h"
#include "control/site/site_book.h"
#include "control/site/site_forward.h"
#include "control/site/site_jobs.h"
#include "control/site/site_numbers.h"
#include "control/site/site_reads.h"
#include "control/site/site_stages.h"
#include "control/store/store_thread.h"
#include "control/wire/owner.h"
#include "control/wire/port.h"

namespace vpfs::coordinator {

// The coordinator as administrators and scrapers of metrics reach it: the site's rules and jobs
// with their journal, requests that are forwarded to stages, and its state. Belongs to the
// coordinator's thread; its ports have threads of their own and post what they are asked.
class SiteAdministration final : private control::Owner {
 public:
  struct Parts {
    asio::io_context& context;
    const Clock& clock;
    const Config& config;
    allocation::CycleState& state;
    StageLinks& links;
    const ParentLink* parent;  // null: it is not an aggregator
    std::uint64_t incarnation;
    control::StoreCaller& store;
    std::function<void()> lost;  // called when the store says that another coordinator leads
    std::function<std::string()> store_problem;  // what it did not do last; "": it works
    SiteReads::Confirm confirm = {};             // the office; null: no other one can lead
    std::function<bool()> may_send = {};         // whether it leads still; null: likewise
    control::OwnPart* own_part =
        nullptr;  // told of with the status and the metrics; null: there is none
    const stage::Names* databases = nullptr;  // of users, groups and hosts; null: this machine's
  };

  // All parts outlive it. The records of the store are replayed, what was due has ended, jobs have
  // what they are entitled to, and the ports are open. The error names the key of the
  // configuration, or the place of the record.
  [[nodiscard]] static Result<std::unique_ptr<SiteAdministration>> open(
      const Parts& parts, const control::StateStore::Loaded& records);
  ~SiteAdministration() override { stop(); }

  // What another program has renamed is written anew.
  void reopen_audit();
  // Serves from now on.
  void start();
  // Closes the ports. Idempotent.
  void stop();

  // A stage has joined, is about to leave, has announced flows: the CycleState hears of these here.
  void joined(allocation::StageId stage) { stages_.joined(stage); }
  void left(allocation::StageId stage) { stages_.left(stage); }
  void announced(allocation::StageId stage, const control::Flows& flows) {
    jobs_.announced(stage, flows);
  }
  void finished(const CycleTimes& times);

  // For an aggregator. The parent's rules go to its stages as they are; it has none of its own.
  // Calls `done` once its stages have answered or a second is over, with their warnings.
  void take_on(const control::Site& of_parent, SiteStages::Told done);
  // What the parent asks of its stages.
  void forward(const control::Forward& request, SiteForward::Done done) {
    forward_.forward(request, std::move(done));
  }

  // Both may be some time old if they take long to make. They are valid until the next call.
  [[nodiscard]] const std::string& status();
  [[nodiscard]] const SiteNumbers& numbers();
  [[nodiscard]] std::optional<net::Endpoint> tcp_endpoint() const {
    return port_ == nullptr ? std::nullopt : port_->tcp_endpoint();
  }

 private:
  explicit SiteAdministration(const Parts& parts);
  [[nodiscard]] Result<void> load(const control::StateStore::Loaded& records,
                                  std::function<void()> lost);
  [[nodiscard]] Result<std::unique_ptr<control::LiveState>> replay(
      const control::StateStore::Loaded& records, std::vector<std::string>& notes);
  [[nodiscard]] Result<void> open_ports();

  // control::Owner, on the threads of the ports.
  [[nodiscard]] control::Hello hello() const override { return hello_; }
  void ask(control::Envelope request, const control::Caller& caller,
           control::Answer answer) override;
  [[nodiscard]] std::unique_ptr<control::Link> make_link(const control::Caller& caller) override;
  void cycle(const control::Cycle& cycle, control::Link& link,
             control::CycleAnswer& answer) override;

  void handle(const control::Envelope& request, const control::Caller& caller,
              const control::Answer& answer);
  void answer(const control::Envelope& request, const control::Caller& caller,
              const control::Answer& answer, control::ReadRequest& read);
  void answer_rule(const control::Envelope& request, const control::Caller& caller,
                   const control::Answer& answer, control::ReadRequest& read);
  // Answers with what the book has, or would have after a change that is tried.
  void tell_rules(const control::Envelope& request, const control::Caller& caller,
                  const control::Answer& answer, control::ReadRequest& read,
                  SiteReads::Standing standing);
  // Answers with the list of the site's rules, and what stages say of theirs.
  void add_lists(control::Envelope reply, const control::Envelope& request,
                 const control::Caller& caller, const control::Answer& answer);
  void answer_job(const control::Envelope& request, const control::Caller& caller,
                  const control::Answer& answer);
  void change(const control::Envelope& request, const control::Caller& caller,
              const control::Answer& answer, control::ReadRequest& read);
  // Tells jobs and stages if the book has changed.
  void put_into_force();
  void use_composed();
  void tell_whether_divided();
  [[nodiscard]] SiteNumbers make_numbers();
  void look_names_up();
  void read_again();
  void tick();

  asio::io_context& context_;
  const Clock& clock_;
  const Config& config_;
  allocation::CycleState& state_;
  StageLinks& links_;
  const ParentLink* const parent_;
  const WallTime started_;
  const std::optional<WallTime> certificate_end_;  // of those in use: files may be newer
  control::Hello hello_;
  control::HostNames names_;
  control::NameLookups lookups_;
  stage::Config grammar_;
  control::StoreCaller& store_;
  const std::function<std::string()> store_problem_;
  control::OwnPart* const own_part_;
  std::unique_ptr<control::LiveState> live_;
  std::unique_ptr<control::RuleAdministration> rules_;
  std::unique_ptr<SiteBook> book_;
  SiteReads reads_;
  SiteJobs jobs_;
  SiteStages stages_;
  SiteForward forward_;
  RecentCycles cycles_;
  bool divides_ = true;  // as was last told
  Kept<SiteNumbers> numbers_;
  Kept<std::string> status_;
  std::optional<allocation::TotalsWatch> totals_;  // nothing: the policy does not share totals
  GrowingSums sums_;
  asio::steady_timer timer_;
  control::WantedNames unknown_names_;  // of rules that were replayed
  asio::steady_timer names_timer_;
  std::uint64_t ticks_ = 0;
  std::unique_ptr<control::Port> port_;
  control::HttpPorts http_;
  bool is_stopped_ = false;
};

}  // namespace vpfs::coordinator
