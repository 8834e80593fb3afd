// What the whole proxy tells a successor in another process.
#include "proxy/shared_state.h"

#include <array>
#include <utility>

namespace vpfs::proxy {
namespace {

struct NamedCounter {
  std::string_view name;
  std::atomic<std::uint64_t> Counters::*counter;
};

// Those that only grow.
constexpr std::array kCounters = {
    NamedCounter{"connections_total", &Counters::connections_total},
    NamedCounter{"connections_refused", &Counters::connections_refused},
    NamedCounter{"upstream_failures", &Counters::upstream_failures},
    NamedCounter{"framing_errors", &Counters::framing_errors},
    NamedCounter{"requests_refused", &Counters::requests_refused},
    NamedCounter{"excess_requests", &Counters::excess_requests},
    NamedCounter{"slots_given_up", &Counters::slots_given_up},
    NamedCounter{"write_back_by_file", &Counters::write_back_by_file},
    NamedCounter{"write_back_unknown", &Counters::write_back_unknown},
    NamedCounter{"late_bytes", &Counters::late_bytes},
    NamedCounter{"names_refused", &Counters::names_refused},
    NamedCounter{"jobs_not_registered", &Counters::jobs_not_registered},
    NamedCounter{"read_by_file", &Counters::read_by_file},
    NamedCounter{"read_unknown", &Counters::read_unknown},
    NamedCounter{"connections_unknown_node", &Counters::connections_unknown_node},
    NamedCounter{"client_stalls", &Counters::client_stalls},
    NamedCounter{"server_stalls", &Counters::server_stalls},
    NamedCounter{"bytes_to_server", &Counters::bytes_to_server},
    NamedCounter{"bytes_to_client", &Counters::bytes_to_client}};

}  // namespace

SavedState SharedState::save_counters() {
  SavedState state;
  told_counters_.clear();
  for (const NamedCounter& each : kCounters) {
    state.set(each.name, told_counters_.emplace_back((counters.*each.counter).load()));
  }
  return state;
}

std::optional<SavedState> SharedState::save_counter_changes() {
  std::optional<SavedState> state;
  for (std::size_t i = 0; i < told_counters_.size(); ++i) {
    const std::uint64_t now = (counters.*kCounters[i].counter).load();
    const std::uint64_t more = now - std::exchange(told_counters_[i], now);
    if (more == 0) continue;
    if (!state) state.emplace();
    state->set(kCounters[i].name, more);
  }
  return state;
}

void SharedState::restore_counters(const SavedState& from) {
  for (const NamedCounter& each : kCounters) counters.*each.counter += from.number(each.name);
}

SavedState SharedState::save_learnt() {
  SavedState state;
  state.set("open_files", open_files.save());
  SavedState::Numbers sizes;
  file_sizes.for_each([&](std::uint64_t file, std::uint64_t size) {
    sizes.push_back(file);
    sizes.push_back(size);
  });
  state.set("file_sizes", std::move(sizes));
  const std::lock_guard lock(mutex_);
  StateWriter out(state);
  out("client_timeout", client_timeout_);
  out("file_systems", file_systems_);
  return state;
}

void SharedState::restore_learnt(const SavedState& from) {
  if (const auto* const files = from.find<SavedState::Numbers>("open_files")) {
    open_files.restore(*files);
  }
  if (const auto* const sizes = from.find<SavedState::Numbers>("file_sizes")) {
    for (std::size_t i = 0; i + 1 < sizes->size(); i += 2) {
      file_sizes.change((*sizes)[i], [&](std::uint64_t& size) { size = (*sizes)[i + 1]; });
    }
  }
  ClientTimeout told;
  std::optional<Duration> timeout;
  StateReader in(from);
  in("client_timeout", timeout);
  in("file_systems", told.file_systems);
  if (!timeout) return;
  told.timeout = *timeout;
  learn_client_timeout(told);
}

}  // namespace vpfs::proxy
