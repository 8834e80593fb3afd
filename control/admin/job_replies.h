#pragma once

#include <expected>
#include <set>
#include <string>

#include "control/wire/control.pb.h"
#include "control/wire/rights.h"
#include "stage/config.h"
#include "stage/live_rules.h"

namespace vpfs::control {

// The job of a request. The error's place is an option of `job start`.
[[nodiscard]] std::expected<stage::RegisteredJob, Error> read_job(const Job& request,
                                                                  const stage::Names* names);

// Adds all registered jobs, those of the file too.
void add_jobs(JobReply& reply, const stage::Config& config, const stage::BookState& book);

// The jobs that are registered for the caller's uid.
using JobIds = std::set<std::string, std::less<>>;
[[nodiscard]] JobIds own_jobs(const stage::Config& config, const Caller& caller);

// Take out what is not of these jobs.
void keep_own(JobReply& reply, const JobIds& jobs);
void keep_own(StatsReply& reply, const JobIds& jobs);
void keep_own(WhyReply& reply, const JobIds& jobs);

}  // namespace vpfs::control
