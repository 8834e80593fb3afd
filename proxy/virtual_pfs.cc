#include "proxy/virtual_pfs.h"

namespace vpfs::proxy {

VirtualPfsTable::VirtualPfsTable(const std::vector<VirtualPfsConfig>& declared, std::size_t most)
    : most_(most + declared.size() + 1) {
  table_.push_back({.name = "default", .share = {}});
  by_name_.emplace("default", AppId{0});
  for (const VirtualPfsConfig& each : declared) {
    if (each.name == "default") {
      table_.front().share = each.share;
    } else if (!template_fields(each.name).empty()) {
      templates_.emplace(each.name, each.share);
    } else {
      by_name_.emplace(each.name, AppId{static_cast<std::uint32_t>(table_.size())});
      table_.push_back({.name = each.name, .share = each.share});
    }
  }
}

AppId VirtualPfsTable::find_or_make(const Classifier::Match& match,
                                    const std::function<void(AppId, Share)>& made) {
  if (const auto found = by_name_.find(match.virtual_pfs); found != by_name_.end()) {
    return found->second;
  }
  if (table_.size() >= most_) {
    ++refused_;
    return AppId{0};
  }
  const auto declared = templates_.find(match.declared_name);
  const Share share = declared == templates_.end() ? Share{} : declared->second;
  const AppId app{static_cast<std::uint32_t>(table_.size())};
  table_.push_back({.name = match.virtual_pfs, .share = share});
  by_name_.emplace(match.virtual_pfs, app);
  made(app, share);
  return app;
}

}  // namespace vpfs::proxy
