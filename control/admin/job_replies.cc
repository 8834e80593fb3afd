#include "control/admin/job_replies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "control/wire/protocol.h"
#include "stage/rules/client_list.h"

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

void add_jobs(JobReply& reply, const LiveState& live, const JobIds* only) {
  const stage::BookState& book = live.book().state();
  JobIds of_file;
  for (const stage::RegisteredJob& job : live.file().jobs) of_file.insert(job.jobid);
  const auto find = [&](const std::string& id) -> const stage::LiveJob* {
    if (const auto here = book.jobs.find(id); here != book.jobs.end()) return &here->second;
    const auto of_site = book.site_jobs.find(id);
    return of_site == book.site_jobs.end() || of_file.contains(id) ? nullptr : &of_site->second;
  };
  for (const stage::RegisteredJob& job : live.composed().config.jobs) {
    if (only != nullptr && !only->contains(job.jobid)) continue;
    JobState& state = *reply.add_jobs();
    fill(state, job);
    const stage::LiveJob* const made = find(job.jobid);
    state.set_origin(std::string(origin_of(made)));
    if (made == nullptr) continue;
    state.set_since_at(made->since.time_since_epoch().count());
    if (made->until) state.set_until_at(made->until->time_since_epoch().count());
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

std::vector<Client> clients_of(const std::vector<Client>& all, const JobIds& jobs) {
  std::vector<Client> found;
  for (const Client& client : all) {
    Client own;
    for (const Seen& seen : client.seen()) {
      if (jobs.contains(seen.jobid())) *own.add_seen() = seen;
    }
    if (own.seen_size() == 0) continue;
    own.set_address(client.address());
    own.set_connections(client.connections());
    found.push_back(std::move(own));
  }
  return found;
}

}  // namespace vpfs::control
