#include "stage/rules/job_registry.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "stage/rules/template_name.h"
#include "stage/rules/text_hash.h"

namespace vpfs::stage {
namespace {

// Differs for different blocks and users; collisions are rare.
std::uint64_t owner_key(const Address& address, int prefix, std::uint64_t user) {
  struct Bytes {
    Address::Bytes address;
    std::uint64_t prefix;
    std::uint64_t user;
  };
  const Bytes bytes = {.address = AddressBlock(address, prefix).first().bytes(),
                       .prefix = static_cast<std::uint64_t>(prefix),
                       .user = user};
  std::array<char, sizeof bytes> text;
  std::memcpy(text.data(), &bytes, sizeof bytes);
  return TextHash()({text.data(), text.size()});
}

bool has_user(const JobRegistry::Job& job, std::optional<std::uint32_t> uid) {
  return job.uids.empty() || !uid || std::ranges::find(job.uids, *uid) != job.uids.end();
}
bool has_client(const JobRegistry::Job& job, std::span<const Address> client) {
  return std::ranges::any_of(client, [&](const Address& address) {
    return std::ranges::binary_search(job.addresses, address) ||
           std::ranges::any_of(job.blocks,
                               [&](const AddressBlock& block) { return block.contains(address); });
  });
}

}  // namespace

Result<void> JobRegistry::add(const RegisteredJob& job) {
  if (!is_good_name(job.jobid)) {
    return fail(fmt::format("a job id has 1 to {} bytes of printable ASCII", kLongestName));
  }
  if (by_id_.contains(job.jobid)) {
    return fail(fmt::format("the job '{}' is registered already", job.jobid));
  }
  if (job.clients.empty()) return fail(fmt::format("the job '{}' has no client", job.jobid));
  Job made = {.jobid = job.jobid,
              .account = job.account,
              .gids = job.gids,
              .nodes = job.nodes,
              .uids = job.uids,
              .addresses = {},
              .blocks = {}};
  std::vector<AddressBlock> clients;
  for (const std::string& client : job.clients) {
    const std::optional<AddressBlock> block = AddressBlock::parse(client);
    if (!block) return fail(fmt::format("'{}' is not an IP address or CIDR block", client));
    clients.push_back(*block);
    if (block->is_single()) {
      made.addresses.push_back(block->address());
    } else {
      made.blocks.push_back(*block);
    }
  }
  std::ranges::sort(made.addresses);
  const auto number = static_cast<std::uint32_t>(jobs_.size());
  has_users_ = has_users_ || !job.uids.empty();
  by_id_.emplace(job.jobid, number);
  jobs_.push_back(std::move(made));
  for (const AddressBlock& block : clients) note(block, number);
  return {};
}

void JobRegistry::note(const AddressBlock& block, std::uint32_t job) {
  if (std::ranges::find(prefixes_, block.prefix()) == prefixes_.end()) {
    prefixes_.push_back(block.prefix());
  }
  const std::uint64_t key = owner_key(block.address(), block.prefix(), kOfAll);
  BlockJobs* const owner = owners_.find(key);
  if (owner == nullptr) {
    owners_.insert(key, {.job = job});
  } else if (owner->job != job) {
    const std::uint32_t first = owner->job;
    const bool is_second = !std::exchange(owner->several, true);
    if (is_second) note_users(block, first);
    note_users(block, job);
  }
}

void JobRegistry::note_users(const AddressBlock& block, std::uint32_t job) {
  if (jobs_[job].uids.empty()) note_user(block, kOfNobody, job);
  for (const std::uint64_t uid : jobs_[job].uids) note_user(block, uid, job);
}

void JobRegistry::note_user(const AddressBlock& block, std::uint64_t user, std::uint32_t job) {
  const std::uint64_t key = owner_key(block.address(), block.prefix(), user);
  if (BlockJobs* const owner = owners_.find(key)) {
    owner->several = owner->several || owner->job != job;
  } else {
    owners_.insert(key, {.job = job});
  }
}

const JobRegistry::Job* JobRegistry::admitted(std::string_view jobid,
                                              std::span<const Address> client,
                                              std::optional<std::uint32_t> uid) const {
  const auto found = by_id_.find(jobid);
  if (found == by_id_.end()) return nullptr;
  const Job& job = jobs_[found->second];
  return has_user(job, uid) && has_client(job, client) ? &job : nullptr;
}

template <typename Take>
void JobRegistry::for_each_owner(const Address& address, std::optional<std::uint32_t> uid,
                                 const Take& take) const {
  for (const int prefix : prefixes_) {
    const BlockJobs* const owner = owners_.find(owner_key(address, prefix, kOfAll));
    if (owner == nullptr) continue;
    if (!owner->several || !uid) {
      if (has_user(jobs_[owner->job], uid)) take(*owner);
      continue;
    }
    for (const std::uint64_t user : {std::uint64_t{*uid}, kOfNobody}) {
      const BlockJobs* const of_user = owners_.find(owner_key(address, prefix, user));
      if (of_user != nullptr) take(*of_user);
    }
  }
}

const JobRegistry::Job* JobRegistry::only_job_of(std::span<const Address> client,
                                                 std::optional<std::uint32_t> uid) const {
  std::optional<std::uint32_t> only;
  bool several = false;
  for (const Address& address : client) {
    for_each_owner(address, uid, [&](const BlockJobs& owner) {
      several = several || owner.several || (only && *only != owner.job);
      only = owner.job;
    });
  }
  if (!only || several) return nullptr;
  const Job& job = jobs_[*only];
  // A collision of keys must not give a client another client's job.
  return has_user(job, uid) && has_client(job, client) ? &job : nullptr;
}

}  // namespace vpfs::stage
