#include "tools/sim/replay_input.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace vpfs::sim_tool {

Result<sim::RecordedLoad> load_of(const recording::Recording& recording) {
  using stage::Recorded;
  sim::RecordedLoad load;
  load.length = recording.length;
  load.names_are_full = recording.names_are_full;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
  for (const Recorded& each : recording.requests) {
    const bool was_served =
        each.end == stage::RecordedEnd::done || each.end == stage::RecordedEnd::failed;
    if (!was_served || recording::end(each) < TimePoint()) continue;
    const auto [number, is_new] =
        numbers.try_emplace(std::tuple(each.virtual_pfs, each.origin, each.uid),
                            static_cast<std::uint32_t>(load.sources.size()));
    if (is_new) {
      const recording::Origin& origin = recording.origin_of(each);
      sim::RecordedSource& source = load.sources.emplace_back();
      source.client = stage::Address::parse(origin.client).value_or(stage::Address());
      if (each.uid != Recorded::kNoUser) source.uid = each.uid;
      source.jobid = origin.jobid;
      source.is_unknown = origin.connection == 0;
      source.is_one_of_many = recording.is_one_of_many(each);
      source.virtual_pfs = recording.name_of(each);
    }
    load.requests.push_back({.arrival = recording::arrival(each),
                             .sent = recording::sent(each),
                             .end = recording::end(each),
                             .kind = each.kind,
                             .size = Bytes{each.moved},
                             .source = number->second});
  }
  if (load.requests.empty() || load.length <= Duration::zero()) {
    return fail("has no request that was served");
  }
  std::ranges::sort(load.requests, {}, [](const sim::RecordedIo& io) {
    return std::tuple(io.arrival, io.end, io.source);
  });
  return load;
}

}  // namespace vpfs::sim_tool
