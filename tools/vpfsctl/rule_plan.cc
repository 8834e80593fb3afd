#include "tools/vpfsctl/rule_plan.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

// A replay with the rules in force that is farther from the recording tells that the recording is
// not what a replay assumes.
constexpr double kTrustedPoints = 5;

std::string check_text(const ShareGap& gap) {
  const double points = std::abs(gap.recorded - gap.replayed);
  if (points <= kTrustedPoints) {
    return fmt::format(
        "Calculated with the rules in force, shares are within {:.1f} points of the recorded "
        "ones.\n",
        points);
  }
  return fmt::format(
      "Do not rely on this: calculated with the rules in force, {} has {:.1f}%, and it had "
      "{:.1f}%.\n",
      gap.virtual_pfs.empty() ? "(others)" : printable(gap.virtual_pfs), gap.replayed,
      gap.recorded);
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
    if (options_.last) keep_last(recording, *options_.last);
    const Result<sim::RecordedLoad> load = sim_tool::load_of(recording);
    if (!load) {
      return fail(fmt::format("{}: its recording {}", recording.stage, load.error().message));
    }
    const auto quietly = [](int, std::uint64_t) {};
    const ShareGap gap = largest_gap(sim_tool::replayed(*load, rules->now, quietly));
    FinishedReplay finished = sim_tool::replayed(*load, rules->then, quietly);
    finished.recording = fmt::format("the recording of {}", printable(recording.stage));
    finished.config = set.file_name();
    planned_.output = options_.json ? json_of(tried->rule_reply(), finished, gap)
                                    : text_of(tried->rule_reply(), finished, gap);
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
                             const ShareGap& gap) {
    const std::string differences = difference_text(tried);
    return fmt::format("{}\n{}\n{}", differences.empty() ? "no rule changes\n" : differences,
                       to_table(finished), check_text(gap));
  }

  static std::string json_of(const control::RuleReply& tried, const FinishedReplay& finished,
                             const ShareGap& gap) {
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
    all["check"] = {{"virtual_pfs", gap.virtual_pfs},
                    {"recorded_percent", gap.recorded},
                    {"replayed_percent", gap.replayed},
                    {"is_close", std::abs(gap.recorded - gap.replayed) <= kTrustedPoints}};
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
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
