#include "stage/virtual_pfs.h"

#include <utility>

#include "base/check.h"
#include "stage/rules/template_name.h"

namespace vpfs::stage {
namespace {

TimePoint finish_by(const VirtualPfsConfig& declared, TimePoint now) {
  return declared.share.finish_bytes.count > 0 ? now + declared.finish_within : TimePoint{};
}

bool is_template(const VirtualPfsConfig& declared) {
  return !template_fields(declared.name).empty();
}

}  // namespace

Share VirtualPfsInfo::share() const {
  Share share = declared->share;
  share.finish_by = finish_by;
  if (nodes > 0 && !share.own_value(kNodesWord))
    share.own.push_back({.word = kNodesWord, .value = nodes});
  return share;
}

VirtualPfsTable::VirtualPfsTable(const std::vector<VirtualPfsConfig>& declared, std::size_t most,
                                 TimePoint now) {
  (void)reconfigure(declared, most, now);
}

Share VirtualPfsTable::share_to_come(AppId app, TimePoint now) const {
  Share rest = rows_[app].info->share();
  const Bytes had = Bytes{counters_[app].done.all().bytes} - rows_[app].info->done_before;
  const bool over = rest.finish_by <= now || had >= rest.finish_bytes;
  rest.finish_bytes = over ? Bytes{} : rest.finish_bytes - had;
  return rest;
}

std::vector<AppId> VirtualPfsTable::everybody() const {
  std::vector<AppId> apps;
  for (std::uint32_t i = 0; i < size(); ++i) {
    if (is_there(AppId{i})) apps.push_back(AppId{i});
  }
  return apps;
}

AppId VirtualPfsTable::add(const std::string& name, const Declared& declared, TimePoint now) {
  AppId app{static_cast<std::uint32_t>(size())};
  if (!free_.empty()) {
    app = free_.back();
    free_.pop_back();
  } else {
    rows_.add();
    counters_.add();
  }
  VirtualPfs& made = rows_[app];
  made.last_used = now;
  made.from_template = is_template(*declared);
  if (made.from_template) ++from_templates_;
  made.info = std::make_shared<const VirtualPfsInfo>(
      VirtualPfsInfo{.name = name, .declared = declared, .finish_by = finish_by(*declared, now)});
  by_name_.emplace(made.info->name, app);
  return app;
}

void VirtualPfsTable::replace_info(AppId app, VirtualPfsInfo info) {
  VirtualPfs& row = rows_[app];
  if (info.declared->share.weight != row.info->declared->share.weight) ++row.weights;
  const auto old = std::exchange(row.info, std::make_shared<const VirtualPfsInfo>(std::move(info)));
  auto node = by_name_.extract(old->name);
  node.key() = row.info->name;
  by_name_.insert(std::move(node));
}

void VirtualPfsTable::set_info(AppId app, const Declared& declared, bool removed, TimePoint now) {
  VirtualPfs& row = rows_[app];
  VirtualPfsInfo info = *row.info;
  info.declared = declared;
  info.finish_by = finish_by(*declared, now);
  info.done_before = Bytes{counters_[app].done.all().bytes};
  info.removed = removed;
  info.refused_promise = nullptr;
  replace_info(app, std::move(info));
  row.retiring = false;  // the configuration may declare it now
  from_templates_ -= row.from_template ? 1 : 0;
  row.from_template = is_template(*declared);
  from_templates_ += row.from_template ? 1 : 0;
}

void VirtualPfsTable::set_refused_promise(AppId app, std::string why) {
  const auto& before = rows_[app].info->refused_promise;
  if (before == nullptr ? why.empty() : *before == why) return;
  VirtualPfsInfo info = *rows_[app].info;
  info.refused_promise =
      why.empty() ? nullptr : std::make_shared<const std::string>(std::move(why));
  replace_info(app, std::move(info));
}

VirtualPfsTable::Found VirtualPfsTable::find_or_make(const Classifier::Match& match,
                                                     TimePoint now) {
  const auto known = by_name_.find(match.virtual_pfs);
  if (known != by_name_.end() && !rows_[known->second].info->removed) {
    const AppId app = known->second;
    return {.app = app, .made = false, .other_nodes = learn_job(app, match)};
  }
  const auto declared = declared_.find(match.declared_name);
  if (declared == declared_.end()) return {.app = AppId{0}, .made = false};
  if (known != by_name_.end()) {
    const AppId back = known->second;
    set_info(back, declared->second, false, now);
    (void)learn_job(back, match);
    return {.app = back, .made = true};
  }
  if (is_template(*declared->second) && from_templates_ >= most_) {
    ++refused_;
    return {.app = AppId{0}, .made = false};
  }
  const AppId made = add(match.virtual_pfs, declared->second, now);
  (void)learn_job(made, match);
  return {.app = made, .made = true};
}

bool VirtualPfsTable::learn_job(AppId app, const Classifier::Match& match) {
  const VirtualPfs& row = rows_[app];
  const bool other_nodes = row.from_template && match.nodes > 0 && match.nodes != row.info->nodes;
  const bool is_of_one_job = app != AppId{0} && row.info->job != VirtualPfsInfo::Job::none;
  const bool other_job =
      is_of_one_job && (row.info->job == VirtualPfsInfo::Job::unseen || jobid(app) != match.jobid);
  const bool other_uid = is_of_one_job && match.job_uid && match.job_uid != row.info->job_uid;
  if (is_of_one_job && !match.account.empty()) accounts_[app] = match.account;
  if (!other_nodes && !other_job && !other_uid) return false;
  VirtualPfsInfo info = *row.info;
  if (other_nodes) info.nodes = match.nodes;
  if (other_uid) info.job_uid = match.job_uid;
  if (other_job) note_job(app, info, match.jobid);
  replace_info(app, std::move(info));
  return other_nodes;
}

// Most job ids are part of the name, which a template made of them.
void VirtualPfsTable::note_job(AppId app, VirtualPfsInfo& info, const std::string& jobid) {
  const bool is_first = info.job == VirtualPfsInfo::Job::unseen;
  other_jobids_.erase(app);
  info.job = VirtualPfsInfo::Job::none;
  if (!is_first || jobid.empty()) {
    info.job_uid.reset();
    accounts_.erase(app);
    return;
  }
  const std::size_t at = info.name.find(jobid);
  if (rows_[app].from_template && at != std::string::npos) {
    info.job = VirtualPfsInfo::Job::in_name;
    info.jobid_at = static_cast<std::uint8_t>(at);
    info.jobid_size = static_cast<std::uint8_t>(jobid.size());
  } else {
    info.job = VirtualPfsInfo::Job::elsewhere;
    other_jobids_.emplace(app, jobid);
  }
}

std::string_view VirtualPfsTable::jobid(AppId app) const {
  const VirtualPfsInfo& info = *rows_[app].info;
  if (info.job == VirtualPfsInfo::Job::in_name) {
    return std::string_view(info.name).substr(info.jobid_at, info.jobid_size);
  }
  if (info.job == VirtualPfsInfo::Job::elsewhere) return other_jobids_.at(app);
  return {};
}

std::string_view VirtualPfsTable::account(AppId app) const {
  const auto found = accounts_.find(app);
  return found == accounts_.end() ? std::string_view() : found->second;
}

// Looks up its own name, else the template that made it.
VirtualPfsTable::Declared VirtualPfsTable::declaration_of(const VirtualPfsInfo& info) const {
  auto found = declared_.find(info.name);
  if (found == declared_.end()) found = declared_.find(info.declared->name);
  return found == declared_.end() ? nullptr : found->second;
}

std::vector<AppId> VirtualPfsTable::reconfigure(const std::vector<VirtualPfsConfig>& declared,
                                                std::size_t most, TimePoint now) {
  declared_.clear();
  const auto declare = [&](const VirtualPfsConfig& each) {
    declared_.insert_or_assign(each.name, std::make_shared<const VirtualPfsConfig>(each));
  };
  declare({.name = "default", .share = {}});
  for (const VirtualPfsConfig& each : declared) declare(each);
  most_ = most;

  std::vector<AppId> changed;
  for (const AppId app : everybody()) {
    const VirtualPfsInfo& info = *rows_[app].info;
    const Declared now_declared = declaration_of(info);
    const bool removed = now_declared == nullptr;
    if (removed == info.removed && (removed || *now_declared == *info.declared)) continue;
    set_info(app,
             removed ? std::make_shared<const VirtualPfsConfig>(
                           VirtualPfsConfig{.name = info.declared->name, .share = {}})
                     : now_declared,
             removed, now);
    changed.push_back(app);
  }
  // "default" first, then in the order of the file.
  const auto add_if_new = [&](const std::string& name) {
    const Declared& found = declared_.at(name);
    if (is_template(*found) || by_name_.contains(name)) return;
    changed.push_back(add(name, found, now));
  };
  add_if_new("default");
  for (const VirtualPfsConfig& each : declared) add_if_new(each.name);
  return changed;
}

std::optional<AppId> VirtualPfsTable::named(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || rows_[found->second].info->removed) return std::nullopt;
  return found->second;
}

void VirtualPfsTable::save(AppId app, SavedState& to) {
  VirtualPfs& row = rows_[app];
  VirtualPfsInfo info = *row.info;
  to.set("name", info.name);
  to.set("declared", info.declared->name);
  to.set("jobid", std::string(jobid(app)));
  to.set("account", std::string(account(app)));
  StateWriter out(to);
  out("job", info.job);
  out("nodes", info.nodes);
  out("job_uid", info.job_uid);
  out("finish_by", info.finish_by);
  out("done_before", info.done_before);
  out("last_used", row.last_used);
  out("read_yield", row.read_yield);
  out("recent_kib", row.recent_kib);
  out("last_class", row.last_class);
  if (row.histograms) out("histograms", *row.histograms);
}

std::optional<VirtualPfsTable::Found> VirtualPfsTable::restore(const SavedState& from,
                                                               TimePoint now) {
  VirtualPfsInfo::Job job = VirtualPfsInfo::Job::unseen;
  StateReader in(from);
  in("job", job);
  Classifier::Match match;
  match.virtual_pfs = from.text("name");
  match.declared_name = from.text("declared");
  match.nodes = static_cast<std::uint32_t>(from.number("nodes"));
  in("job_uid", match.job_uid);
  match.account = from.text("account");
  match.jobid = from.text("jobid");
  Counters counters;
  in("counters", counters);
  Histograms histograms;
  in("histograms", histograms);
  const bool is_known = by_name_.contains(match.virtual_pfs);
  if (!is_known && !declared_.contains(match.declared_name)) {
    ++retired_.count;
    retired_.counters += counters;
    retired_.histograms.merge(histograms);
    return std::nullopt;
  }
  const bool has_job = job != VirtualPfsInfo::Job::unseen;
  Found found = {.app = AppId{0}, .made = false};
  if (has_job || !is_known) {
    found = find_or_make(match, now);
  } else if (const auto app = named(match.virtual_pfs)) {
    found.app = *app;
  }
  counters_[found.app] += counters;
  VirtualPfs& row = rows_[found.app];
  if (row.info->name != match.virtual_pfs) return std::nullopt;  // it counts as "default" now
  if (!from.list("histograms").empty()) {
    row.histograms = std::make_unique<Histograms>(std::move(histograms));
  }
  in("last_used", row.last_used);
  in("read_yield", row.read_yield);
  in("recent_kib", row.recent_kib);
  in("last_class", row.last_class);
  VirtualPfsInfo info = *row.info;
  in("done_before", info.done_before);
  // A wish that is the same goes on; another one begins now.
  if (info.finish_by != TimePoint{}) {
    TimePoint finish_by = info.finish_by;
    in("finish_by", finish_by);
    if (finish_by != TimePoint{}) info.finish_by = finish_by;
  }
  replace_info(found.app, std::move(info));
  found.made = true;  // the schedulers learn what has changed
  return found;
}

void VirtualPfsTable::save_retired(SavedState& to) {
  SavedState& one = to.add_list("retired").emplace_back();
  StateWriter out(one);
  out("count", retired_.count);
  out("counters", retired_.counters);
  out("histograms", retired_.histograms);
  out("refused", refused_);
}

void VirtualPfsTable::restore_retired(const SavedState& from) {
  StateReader in(from.child("retired"));
  in("count", retired_.count);
  in("counters", retired_.counters);
  in("histograms", retired_.histograms);
  in("refused", refused_);
}

void VirtualPfsTable::retire(AppId app) {
  VirtualPfs& row = rows_[app];
  VPFS_ASSERT(app != AppId{0} && row.info != nullptr && row.requests == 0);
  ++retired_.count;
  retired_.counters += counters_[app];
  if (row.histograms) retired_.histograms.merge(*row.histograms);
  if (row.from_template) --from_templates_;
  by_name_.erase(row.info->name);
  other_jobids_.erase(app);
  accounts_.erase(app);
  const std::uint32_t next = row.generation + 1;
  row = VirtualPfs{};
  row.generation = next;
  counters_[app] = Counters{};
  free_.push_back(app);
}

}  // namespace vpfs::stage
