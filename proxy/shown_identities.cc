#include "proxy/shown_identities.h"

#include "stage/rules/template_name.h"

namespace vpfs::proxy {
namespace {

bool is_like(const ShownIdentities::Row& row, const stage::Identity& identity,
             const Belonging& who) {
  return row.place.id == who.place.id && row.place.rule == who.place.rule &&
         row.traffic_class == who.traffic_class && row.uid == identity.uid &&
         row.node == identity.node && row.target == identity.target &&
         row.owner == identity.owner && row.file_system == identity.file_system;
}

// The text as a table for an administrator may show it.
std::string shortened(std::string_view text) {
  return std::string(text.substr(0, stage::kLongestName));
}

}  // namespace

ShownIdentities::Row* ShownIdentities::find(const stage::Identity& identity, const Belonging& who) {
  if (last_ < rows_.size() && is_like(rows_[last_], identity, who)) return &rows_[last_];
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!is_like(rows_[i], identity, who)) continue;
    last_ = i;
    return &rows_[i];
  }
  return nullptr;
}

ShownIdentities::Row& ShownIdentities::add(const stage::Identity& identity, const Belonging& who,
                                           std::string_view jobid) {
  Row row = {.place = who.place,
             .traffic_class = who.traffic_class,
             .name_refused = who.name_refused,
             .job_not_registered = who.job_not_registered,
             .job_from_registration = who.job_from_registration,
             .uid = identity.uid,
             .node = identity.node,
             .target = identity.target,
             .owner = identity.owner,
             .file_system = identity.file_system,
             .jobid = shortened(jobid),
             .directory = shortened(identity.directory)};
  if (rows_.size() < kMost) {
    last_ = rows_.size();
    return rows_.emplace_back(std::move(row));
  }
  last_ = next_;
  next_ = (next_ + 1) % kMost;
  return rows_[last_] = std::move(row);
}

}  // namespace vpfs::proxy
