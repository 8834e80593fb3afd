#include "stage/job_registry.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stage/template_name.h"

namespace vpfs::stage {

Result<void> JobRegistry::add(const RegisteredJob& job) {
  if (!is_good_name(job.jobid)) {
    return fail(fmt::format("a job id has 1 to {} bytes of printable ASCII", kLongestName));
  }
  if (jobs_.contains(job.jobid)) {
    return fail(fmt::format("the job '{}' is registered already", job.jobid));
  }
  if (job.clients.empty()) return fail(fmt::format("the job '{}' has no client", job.jobid));
  Job made = {.clients = {}, .uids = job.uids};
  for (const std::string& client : job.clients) {
    const std::optional<AddressBlock> block = AddressBlock::parse(client);
    if (!block) return fail(fmt::format("'{}' is no IP address or CIDR block", client));
    made.clients.push_back(*block);
  }
  jobs_.emplace(job.jobid, std::move(made));
  return {};
}

bool JobRegistry::admits(std::string_view jobid, const Address& client,
                         std::optional<std::uint32_t> uid) const {
  const auto found = jobs_.find(jobid);
  if (found == jobs_.end()) return false;
  const Job& job = found->second;
  const bool is_user =
      job.uids.empty() || !uid || std::ranges::find(job.uids, *uid) != job.uids.end();
  return is_user && std::ranges::any_of(job.clients, [&](const AddressBlock& block) {
           return block.contains(client);
         });
}

}  // namespace vpfs::stage
