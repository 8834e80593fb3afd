#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "schedulers/request.h"
#include "schedulers/share.h"
#include "stage/history/history.h"

namespace vpfs::insight {

// What one virtual PFS did in some time, and what it could have had.
struct PastOf {
  std::string name;
  std::string jobid;  // the last one; "": some requests showed none, or another
  // Whose that registered job is, if it is known of all the time.
  std::optional<std::uint32_t> job_uid;
  Share share;                     // the last one
  std::vector<std::string> rules;  // of its requests, in the order of time
  stage::Measures sums;
  Duration active = {};  // spans of time in which it did something or waited
  WallTime first = {};
  WallTime last = {};

  // By the cost that was sent in pieces of ten seconds or more. A virtual PFS wants all that it can
  // get in a piece if others, or a full data server, held it for half of it.
  Cost wanted = 0;
  Cost entitled = 0;
  Duration wanted_all = {};
};

// What was done at one data server in some time.
struct Past {
  WallTime begin = {};  // of what is known of it
  WallTime end = {};
  Duration length = {};
  std::uint64_t first_rules = 0;  // the version of the rules at its beginning
  std::uint64_t last_rules = 0;
  Cost cost = 0;           // sent
  std::vector<PastOf> of;  // the busiest first
  stage::Measures others;  // of those that were not among the busiest of a span
};

// What a history knows of the time between `from` and `to`, in whole spans.
[[nodiscard]] Past past_of(const stage::History& history, WallTime from, WallTime to);

}  // namespace vpfs::insight
