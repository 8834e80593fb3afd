#include "stage/virtual_pfs.h"

#include "stage/template_name.h"

namespace vpfs::stage {
namespace {

Share share_of(const VirtualPfsConfig& declared, TimePoint now) {
  Share share = declared.share;
  if (share.finish_bytes.count > 0) share.finish_by = now + declared.finish_within;
  return share;
}

}  // namespace

Share VirtualPfs::share_to_come(TimePoint now) const {
  Share rest = share;
  const Bytes had = done_bytes - done_before;
  const bool over = rest.finish_by <= now || had >= rest.finish_bytes;
  rest.finish_bytes = over ? Bytes{} : rest.finish_bytes - had;
  return rest;
}

std::vector<AppId> VirtualPfsTable::everybody() const {
  std::vector<AppId> apps;
  for (std::uint32_t i = 0; i < table_.size(); ++i) apps.push_back(AppId{i});
  return apps;
}

VirtualPfsTable::VirtualPfsTable(const std::vector<VirtualPfsConfig>& declared, std::size_t most) {
  (void)reconfigure(declared, most, {});
}

void VirtualPfsTable::start(TimePoint now) {
  for (VirtualPfs& pfs : table_) pfs.share = share_of(pfs.declared, now);
}

void VirtualPfsTable::set_most(std::size_t from_templates) {
  most_ = from_templates;
  for (const auto& [name, declared] : declared_) {
    if (template_fields(name).empty()) ++most_;
  }
  for (const VirtualPfs& pfs : table_) {
    // Removed ones of the configuration's own stay in the table.
    if (template_fields(pfs.declared.name).empty() && !declared_.contains(pfs.name)) ++most_;
  }
}

AppId VirtualPfsTable::add(const std::string& name, const VirtualPfsConfig& declared,
                           TimePoint now) {
  const AppId app{static_cast<std::uint32_t>(table_.size())};
  table_.push_back({.name = name, .declared = declared, .share = share_of(declared, now)});
  by_name_.emplace(name, app);
  return app;
}

VirtualPfsTable::Found VirtualPfsTable::find_or_make(const Classifier::Match& match,
                                                     TimePoint now) {
  const auto known = by_name_.find(match.virtual_pfs);
  if (known != by_name_.end() && !(*this)[known->second].removed) {
    return {.app = known->second, .made = false};
  }
  const auto declared = declared_.find(match.declared_name);
  if (declared == declared_.end()) return {.app = AppId{0}, .made = false};
  if (known != by_name_.end()) {
    VirtualPfs& back = (*this)[known->second];
    back.removed = false;
    back.declared = declared->second;
    back.share = share_of(declared->second, now);
    back.done_before = back.done_bytes;
    return {.app = known->second, .made = true};
  }
  if (table_.size() >= most_) {
    ++refused_;
    return {.app = AppId{0}, .made = false};
  }
  return {.app = add(match.virtual_pfs, declared->second, now), .made = true};
}

// By its own name, else by the template that made it.
const VirtualPfsConfig* VirtualPfsTable::declaration_of(const VirtualPfs& pfs) const {
  auto found = declared_.find(pfs.name);
  if (found == declared_.end()) found = declared_.find(pfs.declared.name);
  return found == declared_.end() ? nullptr : &found->second;
}

std::vector<AppId> VirtualPfsTable::reconfigure(const std::vector<VirtualPfsConfig>& declared,
                                                std::size_t most, TimePoint now) {
  declared_.clear();
  declared_.emplace("default", VirtualPfsConfig{.name = "default", .share = {}});
  for (const VirtualPfsConfig& each : declared) declared_.insert_or_assign(each.name, each);
  set_most(most);

  std::vector<AppId> changed;
  for (std::uint32_t i = 0; i < table_.size(); ++i) {
    VirtualPfs& pfs = table_[i];
    const VirtualPfsConfig* const now_declared = declaration_of(pfs);
    const bool removed = now_declared == nullptr;
    if (removed == pfs.removed && (removed || *now_declared == pfs.declared)) continue;
    pfs.removed = removed;
    pfs.declared =
        removed ? VirtualPfsConfig{.name = pfs.declared.name, .share = {}} : *now_declared;
    pfs.share = share_of(pfs.declared, now);
    pfs.done_before = pfs.done_bytes;
    changed.push_back(AppId{i});
  }
  // "default" first, then in the order of the file.
  const auto add_if_new = [&](const VirtualPfsConfig& each) {
    if (!template_fields(each.name).empty() || by_name_.contains(each.name)) return;
    changed.push_back(add(each.name, each, now));
  };
  add_if_new(declared_.at("default"));
  for (const VirtualPfsConfig& each : declared) add_if_new(each);
  return changed;
}

}  // namespace vpfs::stage
