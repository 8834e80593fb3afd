#include "control/admin/past_clients.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vpfs::control {

void PastClients::note(const Who& who, std::uint64_t requests, WallTime now) {
  const auto known = present_.find(who);
  if (known == present_.end()) {
    if (present_.size() >= kMost) return;
    present_.emplace(
        who, Present{.stay = {.first = now, .last = now}, .requests = requests, .listed = now});
    return;
  }
  Present& present = known->second;
  present.listed = now;
  const bool is_active = requests > std::exchange(present.requests, requests);
  if (!is_active) return;
  if (!std::exchange(present.has_stay, true)) present.stay.first = now;
  present.stay.last = std::max(present.stay.first, now);
}

void PastClients::note(const std::vector<Client>& clients, WallTime now) {
  // One has several rows where its requests differ in something else, such as their targets.
  std::map<Who, std::uint64_t> requests;
  for (const Client& client : clients) {
    for (const Seen& seen : client.seen()) {
      if (seen.virtual_pfs().starts_with('(')) continue;  // not a name: it was retired
      requests[{.address = client.address(),
                .uid = seen.has_uid() ? std::optional(seen.uid()) : std::nullopt,
                .owner = seen.has_owner() ? std::optional(seen.owner()) : std::nullopt,
                .virtual_pfs = seen.virtual_pfs()}] += seen.requests();
    }
  }
  for (const auto& [who, count] : requests) note(who, count, now);
  end_stays(now);
}

void PastClients::end_stays(WallTime now) {
  for (auto each = present_.begin(); each != present_.end();) {
    Present& present = each->second;
    if (present.has_stay && present.stay.last + kGap <= now) {
      present.has_stay = false;
      ended_.emplace(present.stay.last, std::pair(each->first, present.stay));
    }
    const bool is_gone = present.listed < now && !present.has_stay;
    each = is_gone ? present_.erase(each) : std::next(each);
  }
  while (!ended_.empty() && (ended_.size() > kMost || ended_.begin()->first + kKept <= now)) {
    ended_.erase(ended_.begin());
  }
}

void PastClients::add(const Asked& asked, WallTime from, WallTime to, const Who& who,
                      const Stay& stay, std::set<std::string, std::less<>>& names) {
  if (stay.last < from || stay.first > to) return;
  if (is_user(asked, who.uid, who.owner) || has_address(asked, who.address)) {
    names.insert(who.virtual_pfs);
  }
}

std::set<std::string, std::less<>> PastClients::virtual_pfs_of(const Asked& asked, WallTime from,
                                                               WallTime to) const {
  std::set<std::string, std::less<>> names;
  for (const auto& [who, present] : present_) {
    if (present.has_stay) add(asked, from, to, who, present.stay, names);
  }
  for (const auto& [end, row] : ended_) add(asked, from, to, row.first, row.second, names);
  return names;
}

}  // namespace vpfs::control
