#include "control/site/site_jobs.h"

#include <algorithm>
#include <utility>

#include "control/coordinator/links/cycle_runner.h"
#include "stage/config/live_words.h"
#include "stage/rules/template_name.h"

namespace vpfs::coordinator {

Entitlements entitlements_of(const std::vector<JobConfig>& file, const stage::Config& composed) {
  Entitlements all;
  for (const JobConfig& job : file) all[job.name] = {.weight = job.weight, .most = job.most};
  std::map<std::string_view, const stage::RuleConfig*> rules;
  for (const stage::RuleConfig& rule : composed.rules) rules.emplace(rule.name, &rule);
  for (const stage::VirtualPfsConfig& each : composed.virtual_pfs) {
    const auto rule = rules.find(each.name);
    const bool has_weight =
        rule != rules.end() && stage::value_of(rule->second->text.words, "weight").has_value();
    if (!has_weight && each.total_rate.count == 0 && each.total_operations == 0) continue;
    Entitlement& made = all[each.name];
    if (has_weight) made.weight = each.share.weight;
    if (each.total_rate.count > 0) made.most.bytes = each.total_rate.count;
    if (each.total_operations > 0) made.most.operations = each.total_operations;
  }
  return all;
}

const Entitlement* SiteJobs::entitlement_of(const std::string& name, const std::string& by) const {
  auto found = entitlements_.find(name);
  if (found == entitlements_.end() && !by.empty()) found = entitlements_.find(by);
  return found == entitlements_.end() ? nullptr : &found->second;
}

void SiteJobs::set(const std::string& name, const Entitlement* entitlement) {
  const auto told = told_.find(name);
  if (entitlement == nullptr) {
    if (told == told_.end()) return;
    state_.remove_job(name);
    told_.erase(told);
    return;
  }
  if (told != told_.end() && told->second == *entitlement) return;
  state_.set_job(name, entitlement->weight, entitlement->most);
  told_[name] = *entitlement;
}

void SiteJobs::use(Entitlements entitlements) {
  const Entitlements before = std::exchange(entitlements_, std::move(entitlements));
  for (const auto& [name, unused] : before) {
    if (!entitlements_.contains(name) && !made_.contains(name)) set(name, nullptr);
  }
  for (const auto& [name, entitlement] : entitlements_) {
    if (stage::template_fields(name).empty()) set(name, &entitlement);
  }
  for (const auto& [name, made] : made_) set(name, entitlement_of(name, made.by));
}

void SiteJobs::announced(allocation::StageId stage, const control::Flows& flows) {
  for (const control::Flow& flow : flows.flows()) {
    if (!announce(state_, stage, flow)) continue;
    const std::size_t length = flow.template_().size();
    if (length == 0 || length > allocation::kLongestName) continue;
    Made& made = made_[flow.name()];
    made = {.by = flow.template_(), .is_seen = true};
    set(flow.name(), entitlement_of(flow.name(), made.by));
  }
}

void SiteJobs::sweep() {
  if (made_.empty()) return;
  const auto names = state_.job_names();
  std::vector<bool> is_there(names.size());
  for (const allocation::Pair& pair : state_.pairs()) is_there[pair.job] = true;
  // Both are in the order of names.
  std::size_t at = 0;
  for (auto each = made_.begin(); each != made_.end();) {
    while (at < names.size() && names[at] < each->first) ++at;
    const bool is_now = at < names.size() && names[at] == each->first && is_there[at];
    if (!is_now && !each->second.is_seen) {
      const std::string name = each->first;
      each = made_.erase(each);
      set(name, entitlement_of(name, ""));
      continue;
    }
    each->second.is_seen = is_now;
    ++each;
  }
}

}  // namespace vpfs::coordinator
