#include "control/admin/who.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "stage/rules/client_list.h"

namespace vpfs::control {
namespace {

bool fits(const Asked& asked, const Seen& seen) {
  if (asked.text.empty()) return seen.virtual_pfs() == "default";
  if (seen.jobid() == asked.text) return true;
  return is_user(asked, seen.has_uid() ? std::optional(seen.uid()) : std::nullopt,
                 seen.has_owner() ? std::optional(seen.owner()) : std::nullopt);
}

bool fits(const Asked& asked, const JobState& job) {
  if (asked.text.empty()) return false;
  if (job.jobid() == asked.text) return true;
  if (asked.uid && std::ranges::find(job.uids(), *asked.uid) != job.uids().end()) return true;
  return std::ranges::any_of(job.clients(),
                             [&](const std::string& client) { return has_address(asked, client); });
}

}  // namespace

bool has_address(const Asked& asked, std::string_view client) {
  if (asked.addresses.empty()) return false;
  const auto address = stage::AddressBlock::parse(std::string(client));
  return address && std::ranges::any_of(asked.addresses, [&](const stage::AddressBlock& block) {
           return block.contains(address->address());
         });
}

bool is_user(const Asked& asked, std::optional<std::uint32_t> uid,
             std::optional<std::uint32_t> owner) {
  return asked.uid && (uid == asked.uid || owner == asked.uid);
}

Asked read_asked(const std::string& text, const stage::Names* names) {
  Asked asked = {.text = text, .addresses = {}, .uid = {}};
  if (text.empty()) return asked;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) {
    asked.uid = number;
    return asked;
  }
  if (names != nullptr) asked.uid = names->user(text);
  std::vector<std::string> clients;
  if (stage::add_clients(text, names, clients)) {
    for (const std::string& each : clients) {
      if (const auto block = stage::AddressBlock::parse(each)) asked.addresses.push_back(*block);
    }
  }
  return asked;
}

void add_clients(WhyReply& reply, std::vector<Client> clients, const Asked& asked) {
  for (Client& client : clients) {
    if (!has_address(asked, client.address())) {
      auto& seen = *client.mutable_seen();
      seen.erase(std::remove_if(seen.begin(), seen.end(),
                                [&](const Seen& each) { return !fits(asked, each); }),
                 seen.end());
      if (seen.empty() && client.not_listed() == 0) continue;
    }
    *reply.add_clients() = std::move(client);
  }
}

void add_context(WhyReply& reply, StatsReply& stats, const JobReply& jobs, const Asked& asked) {
  std::set<std::string_view> virtual_pfs;
  std::set<std::string_view> rules;
  for (const Client& client : reply.clients()) {
    for (const Seen& seen : client.seen()) {
      virtual_pfs.insert(seen.virtual_pfs());
      rules.insert(seen.rule());
    }
  }
  for (VirtualPfs& each : *stats.mutable_virtual_pfs()) {
    if (virtual_pfs.contains(each.name())) *reply.add_virtual_pfs() = each;
  }
  for (const RuleState& each : stats.rules()) {
    if (rules.contains(each.name())) *reply.add_rules() = each;
  }
  for (const JobState& each : jobs.jobs()) {
    if (fits(asked, each)) *reply.add_jobs() = each;
  }
}

}  // namespace vpfs::control
