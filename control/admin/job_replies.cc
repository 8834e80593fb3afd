#include "control/admin/job_replies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "control/wire/protocol.h"
#include "stage/client_list.h"

namespace vpfs::control {
namespace {

std::string_view origin_of(const stage::LiveJob* live) {
  if (live == nullptr) return "file";
  return live->origin == stage::RuleOrigin::coordinator ? "coordinator" : "job";
}

void fill(JobState& state, const stage::RegisteredJob& job) {
  state.set_jobid(job.jobid);
  state.set_nodes(job.nodes);
  for (const std::uint64_t uid : job.uids) state.add_uids(static_cast<std::uint32_t>(uid));
  for (const std::uint64_t gid : job.gids) state.add_gids(static_cast<std::uint32_t>(gid));
  for (const std::string& client : job.clients) state.add_clients(client);
  state.set_account(job.account);
}

// Keeps the elements for which `keep` is true.
template <typename Elements, typename Keep>
void keep_if(Elements& elements, Keep&& keep) {
  elements.erase(std::remove_if(elements.begin(), elements.end(),
                                [&](const auto& each) { return !keep(each); }),
                 elements.end());
}

}  // namespace

std::expected<stage::RegisteredJob, Error> read_job(const Job& request, const stage::Names* names) {
  stage::RegisteredJob job;
  job.jobid = request.jobid();
  for (const std::string& client : request.clients()) {
    if (const Result<void> added = stage::add_clients(client, names, job.clients); !added) {
      return std::unexpected(make_error(Error::INVALID, "--clients", added.error().message));
    }
  }
  job.uids.assign(request.uids().begin(), request.uids().end());
  job.gids.assign(request.gids().begin(), request.gids().end());
  job.account = request.account();
  job.nodes = request.nodes();
  return job;
}

void add_jobs(JobReply& reply, const stage::Config& config, const stage::BookState& book) {
  for (const stage::RegisteredJob& job : config.jobs) {
    JobState& state = *reply.add_jobs();
    fill(state, job);
    const auto found = book.jobs.find(job.jobid);
    const stage::LiveJob* const live = found == book.jobs.end() ? nullptr : &found->second;
    state.set_origin(std::string(origin_of(live)));
    if (live == nullptr) continue;
    state.set_since_at(live->since.time_since_epoch().count());
    if (live->until) state.set_until_at(live->until->time_since_epoch().count());
  }
}

JobIds own_jobs(const stage::Config& config, const Caller& caller) {
  JobIds own;
  if (!caller.uid) return own;
  for (const stage::RegisteredJob& job : config.jobs) {
    if (std::ranges::find(job.uids, *caller.uid) != job.uids.end()) own.insert(job.jobid);
  }
  return own;
}

void keep_own(JobReply& reply, const JobIds& jobs) {
  keep_if(*reply.mutable_jobs(), [&](const JobState& job) { return jobs.contains(job.jobid()); });
}

void keep_own(StatsReply& reply, const JobIds& jobs) {
  keep_if(*reply.mutable_virtual_pfs(),
          [&](const VirtualPfs& pfs) { return jobs.contains(pfs.jobid()); });
  reply.clear_rules();
  reply.clear_upstream();
  reply.set_partial(true);
}

void keep_own(WhyReply& reply, const JobIds& jobs) {
  for (Client& client : *reply.mutable_clients()) {
    keep_if(*client.mutable_seen(), [&](const Seen& seen) { return jobs.contains(seen.jobid()); });
  }
  keep_if(*reply.mutable_clients(), [](const Client& client) { return client.seen_size() > 0; });
  keep_if(*reply.mutable_virtual_pfs(),
          [&](const VirtualPfs& pfs) { return jobs.contains(pfs.jobid()); });
  keep_if(*reply.mutable_jobs(), [&](const JobState& job) { return jobs.contains(job.jobid()); });
  reply.clear_rules();
}

}  // namespace vpfs::control
