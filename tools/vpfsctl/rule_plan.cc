#include "tools/vpfsctl/rule_plan.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/system_clock.h"
#include "control/admin/host_names.h"
#include "control/words/printable.h"
#include "tools/plan/planned_rules.h"
#include "tools/sim/replay_input.h"
#include "tools/sim/replay_report.h"
#include "tools/sim/replay_run.h"
#include "tools/vpfsctl/rule_tables.h"

namespace vpfs::ctl {
namespace {

using words::printable;

using sim_tool::FinishedReplay;
using sim_tool::ShareGap;
using sim_tool::WorkGap;

// A replay with the rules in force that is farther from the recording tells that the recording is
// not what a replay assumes.
constexpr double kTrustedPoints = 5;
constexpr double kTrustedRatio = 1.25;

// How far a replay with the rules in force is from the recording.
struct Check {
  explicit Check(const FinishedReplay& replay)
      : shares(largest_gap(replay)), work(largest_work_gap(replay)) {}

  [[nodiscard]] double points() const { return std::abs(shares.recorded - shares.replayed); }
  [[nodiscard]] bool is_close() const {
    return points() <= kTrustedPoints && work.ratio() <= kTrustedRatio;
  }

  ShareGap shares;
  WorkGap work;
};

std::string name_text(const std::string& virtual_pfs) {
  return virtual_pfs.empty() ? "(others)" : printable(virtual_pfs);
}

std::string check_text(const Check& check) {
  if (check.is_close()) {
    return fmt::format(
        "Calculated with the rules in force, shares are within {:.1f} points of the recorded "
        "ones.\n",
        check.points());
  }
  const std::string warning = "Do not rely on this: calculated with the rules in force, ";
  if (check.points() > kTrustedPoints) {
    return warning + fmt::format("{} has {:.1f}%, and it had {:.1f}%.\n",
                                 name_text(check.shares.virtual_pfs), check.shares.replayed,
                                 check.shares.recorded);
  }
  const WorkGap& work = check.work;
  if (work.virtual_pfs.empty()) {
    return warning + fmt::format("all have {:.1f} MiB/s together, and they had {:.1f} MiB/s.\n",
                                 work.replayed, work.recorded);
  }
  return warning + fmt::format("{} does {:.0f} requests, and it did {:.0f}.\n",
                               name_text(work.virtual_pfs), work.replayed, work.recorded);
}

class Plan {
 public:
  Plan(const PlanOptions& options, const AskStages& ask) : options_(options), ask_(ask) {}

  Result<Planned> run() {
    // The stage reads the set itself: names mean there what they mean to it.
    const auto tried = ask(options_.dry_run);
    if (!tried) return std::move(planned_);
    Result<Fetched> fetched = fetch_recording(ask_);
    VPFS_TRY(fetched);
    if (!fetched->failures.empty()) {
      planned_.failures = std::move(fetched->failures);
      return std::move(planned_);
    }
    control::Envelope request;
    request.mutable_in_force();
    const auto in_force = ask(request);
    if (!in_force) return std::move(planned_);
    const control::HostNames names;
    const control::Rule& set = options_.dry_run.rule();
    const Result<plan::PlannedRules> rules = plan::planned_rules(
        in_force->in_force_reply(), {.file_name = set.file_name(), .text = set.file()},
        wall_clock_now(), names);
    VPFS_TRY(rules);
    recording::Recording& recording = fetched->recording;
    drop_overwritten(recording);
    if (options_.last) keep_last(recording, *options_.last);
    const Result<sim::RecordedLoad> load = sim_tool::load_of(recording);
    if (!load) {
      return fail(fmt::format("{}: its recording {}", recording.stage, load.error().message));
    }
    const auto quietly = [](int, std::uint64_t) {};
    const Check check(sim_tool::replayed(*load, rules->now, quietly));
    FinishedReplay finished = sim_tool::replayed(*load, rules->then, quietly);
    finished.recording = fmt::format("the recording of {}", printable(recording.stage));
    if (fetched->names_are_full) finished.recording += ", without the names of all connections";
    finished.config = set.file_name();
    planned_.output = options_.json ? json_of(tried->rule_reply(), finished, check)
                                    : text_of(tried->rule_reply(), finished, check);
    return std::move(planned_);
  }

 private:
  std::optional<control::Envelope> ask(const control::Envelope& request) {
    std::vector<ProxyAnswer> answers = ask_(request);
    if (answers.size() == 1 && answers.front().outcome == Outcome::done) {
      return std::move(answers.front().reply);
    }
    planned_.failures = std::move(answers);
    return std::nullopt;
  }

  static std::string text_of(const control::RuleReply& tried, const FinishedReplay& finished,
                             const Check& check) {
    const std::string differences = difference_text(tried);
    return fmt::format("{}\n{}\n{}", differences.empty() ? "no rule changes\n" : differences,
                       to_table(finished), check_text(check));
  }

  static std::string json_of(const control::RuleReply& tried, const FinishedReplay& finished,
                             const Check& check) {
    using Json = nlohmann::ordered_json;
    Json differences = Json::array();
    for (const control::Difference& each : tried.differences()) {
      differences.push_back({{"name", each.name()},
                             {"kind", each.kind()},
                             {"before", each.before()},
                             {"after", each.after()}});
    }
    Json all = sim_tool::json_of(finished);
    all["differences"] = std::move(differences);
    all["check"] = {{"virtual_pfs", check.shares.virtual_pfs},
                    {"recorded_percent", check.shares.recorded},
                    {"replayed_percent", check.shares.replayed},
                    {"is_close", check.is_close()}};
    all["work_check"] = {{"virtual_pfs", check.work.virtual_pfs},
                         {"recorded", check.work.recorded},
                         {"replayed", check.work.replayed}};
    return json_text(all, 2) + "\n";
  }

  const PlanOptions& options_;
  const AskStages& ask_;
  Planned planned_;
};

}  // namespace

Result<Planned> plan_rules(const PlanOptions& options, const AskStages& ask) {
  return Plan(options, ask).run();
}

}  // namespace vpfs::ctl
