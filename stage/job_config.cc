#include "stage/job_config.h"

#include <charconv>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/attributes.h"
#include "stage/address.h"
#include "stage/template_name.h"

namespace vpfs::stage {
namespace {

void read_clients(ConfigReader& entry, RegisteredJob& job) {
  entry.require("client");
  if (!entry.get("client", &job.clients)) return;
  for (const std::string& client : job.clients) {
    if (!AddressBlock::parse(client)) {
      entry.report("client", fmt::format("'{}' is no IP address or CIDR block", client));
    }
  }
}

void read_uids(ConfigReader& entry, RegisteredJob& job) {
  std::vector<std::string> texts;
  if (!entry.get("uid", &texts)) return;
  for (const std::string& text : texts) {
    std::uint32_t uid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), uid);
    if (error != std::errc{} || end != text.data() + text.size()) {
      entry.report("uid", fmt::format("'{}' is not a number from 0 to {}", text, UINT32_MAX));
    } else {
      job.uids.push_back(uid);
    }
  }
}

RegisteredJob read_job(ConfigReader& entry) {
  RegisteredJob job;
  entry.require("jobid");
  if (entry.get("jobid", &job.jobid) && !is_good_name(job.jobid)) {
    entry.report("jobid", fmt::format("must be 1 to {} bytes of printable ASCII", kLongestName));
  }
  read_clients(entry, job);
  read_uids(entry, job);
  return job;
}

}  // namespace

void read_jobs(ConfigReader& reader, Config& config) {
  std::string mode = "trust";
  reader.choose("jobs", &mode, {"trust", "registered"});
  const bool registered = mode == "registered";
  if (registered && !config.shown.has(Attribute::hint)) {
    reader.report("jobs", fmt::format("{} shows no job ids", config.source));
  }
  std::set<std::string> ids;
  std::vector<RegisteredJob> jobs;
  const bool listed = reader.for_each("registered_jobs", [&](ConfigReader& entry) {
    RegisteredJob job = read_job(entry);
    if (!job.jobid.empty() && !ids.insert(job.jobid).second) {
      entry.report("jobid", fmt::format("the job '{}' is registered already", job.jobid));
    }
    jobs.push_back(std::move(job));
  });
  if (registered && (!listed || jobs.empty())) {
    reader.report("jobs", "no job is in `registered_jobs`, so no job id would count");
  } else if (!registered && listed) {
    reader.report("registered_jobs", "applies only with `jobs: registered`");
  }
  if (registered) config.registered_jobs = std::move(jobs);
}

}  // namespace vpfs::stage
