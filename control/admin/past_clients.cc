#include "control/admin/past_clients.h"

#include <algorithm>

namespace vpfs::control {
namespace {

std::optional<std::uint32_t> uid_of(const Seen& seen) {
  return seen.has_uid() ? std::optional(seen.uid()) : std::nullopt;
}

std::optional<std::uint32_t> owner_of(const Seen& seen) {
  return seen.has_owner() ? std::optional(seen.owner()) : std::nullopt;
}

}  // namespace

void PastClients::note(const std::vector<Client>& clients, WallTime now) {
  for (const Client& client : clients) {
    for (const Seen& seen : client.seen()) {
      const Key key(client.address(), uid_of(seen), owner_of(seen), seen.virtual_pfs());
      Row& row = rows_.try_emplace(key, Row{.first = now, .last = now}).first->second;
      row.last = std::max(row.last, now);
    }
  }
  forget(now);
}

void PastClients::forget(WallTime now) {
  std::erase_if(rows_, [&](const auto& each) { return each.second.last + kKept <= now; });
  if (rows_.size() <= kMost) return;
  std::vector<WallTime> ends;
  for (const auto& [key, row] : rows_) ends.push_back(row.last);
  const auto oldest = ends.begin() + static_cast<std::ptrdiff_t>(rows_.size() - kMost);
  std::ranges::nth_element(ends, oldest);
  std::erase_if(rows_, [&](const auto& each) { return each.second.last < *oldest; });
  // Many were seen at that time.
  while (rows_.size() > kMost) rows_.erase(rows_.begin());
}

std::set<std::string, std::less<>> PastClients::virtual_pfs_of(const Asked& asked, WallTime from,
                                                               WallTime to) const {
  std::set<std::string, std::less<>> names;
  for (const auto& [key, row] : rows_) {
    const auto& [address, uid, owner, virtual_pfs] = key;
    if (row.last < from || row.first > to) continue;
    if (is_user(asked, uid, owner) || has_address(asked, address)) names.insert(virtual_pfs);
  }
  return names;
}

}  // namespace vpfs::control
