#include "stage/config/job_config.h"

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/attributes.h"
#include "stage/config/condition_values.h"
#include "stage/rules/client_list.h"
#include "stage/rules/template_name.h"

namespace vpfs::stage {
namespace {

constexpr std::uint64_t kMostNodes = 10'000'000;

void read_clients(ConfigReader& entry, const Config& config, RegisteredJob& job) {
  std::vector<std::string> texts;
  entry.require("client");
  if (!entry.get("client", &texts)) return;
  for (const std::string& text : texts) {
    const Result<void> added = add_clients(text, config.names, job.clients);
    if (!added) entry.report("client", added.error().message);
  }
}

void read_ids(ConfigReader& entry, std::string_view key, NumberKind kind, const Config& config,
              std::vector<std::uint64_t>& ids) {
  std::vector<std::string> texts;
  if (!entry.get(key, &texts)) return;
  for (const std::string& text : texts) {
    const auto problem = add_numbers(text, kind, UINT32_MAX, config.names, ids);
    if (problem) entry.report(key, *problem);
  }
}

RegisteredJob read_job(ConfigReader& entry, const Config& config) {
  const auto check_name = [&](std::string_view key, const std::string& name) {
    if (is_good_name(name)) return;
    entry.report(key, fmt::format("must be 1 to {} bytes of printable ASCII", kLongestName));
  };
  RegisteredJob job;
  entry.require("jobid");
  if (entry.get("jobid", &job.jobid)) check_name("jobid", job.jobid);
  read_clients(entry, config, job);
  read_ids(entry, "uid", NumberKind::user, config, job.uids);
  read_ids(entry, "gid", NumberKind::group, config, job.gids);
  if (entry.get("account", &job.account)) check_name("account", job.account);
  std::uint64_t nodes = 0;
  if (entry.get("nodes", &nodes, 1, kMostNodes)) job.nodes = static_cast<std::uint32_t>(nodes);
  return job;
}

}  // namespace

void read_jobs(ConfigReader& reader, Config& config) {
  std::string mode = "trust";
  reader.choose("jobs", &mode, {"trust", "registered"});
  config.only_registered_jobs = mode == "registered";
  if (config.only_registered_jobs && !config.shown.has(Attribute::hint)) {
    reader.report("jobs", fmt::format("{} shows no job ids", config.source));
  }
  std::set<std::string> ids;
  reader.for_each("registered_jobs", [&](ConfigReader& entry) {
    RegisteredJob job = read_job(entry, config);
    if (!job.jobid.empty() && !ids.insert(job.jobid).second) {
      entry.report("jobid", fmt::format("the job '{}' is registered already", job.jobid));
    }
    config.jobs.push_back(std::move(job));
  });
}

void warn_of_no_jobs(const Config& config, ConfigErrors& errors) {
  if (!config.only_registered_jobs || !config.jobs.empty()) return;
  errors.warn("jobs", "no job is in `registered_jobs`: no job id counts until jobs are registered");
}

}  // namespace vpfs::stage
