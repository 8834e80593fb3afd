#pragma once

#include <expected>
#include <set>
#include <string>
#include <vector>

#include "control/admin/live_state.h"
#include "control/wire/control.pb.h"
#include "control/wire/rights.h"
#include "stage/book/live_rules.h"
#include "stage/config/config.h"

namespace vpfs::control {

// The job of a request. The error's place is an option of `job start`.
[[nodiscard]] std::expected<stage::RegisteredJob, Error> read_job(const Job& request,
                                                                  const stage::Names* names);

using JobIds = std::set<std::string, std::less<>>;

// Adds all registered jobs that count, those of the file too; or those of `only`.
void add_jobs(JobReply& reply, const LiveState& live, const JobIds* only = nullptr);

// The jobs that are registered for the caller's uid.
[[nodiscard]] JobIds own_jobs(const stage::Config& config, const Caller& caller);

// The clients that have shown these jobs, with nothing else that they have shown.
[[nodiscard]] std::vector<Client> clients_of(const std::vector<Client>& all, const JobIds& jobs);

}  // namespace vpfs::control
