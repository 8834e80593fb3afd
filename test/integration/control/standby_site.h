#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/integration/control/coordinator_site.h"
#include "test/integration/control/http_get.h"
#include "test/support/comes_true.h"
#include "test/support/outcome.h"

namespace vpfs::test {

// Coordinators of one site with a store that they share: one leads, the others are standbys.
class StandbySite {
 public:
  using Clock = std::chrono::steady_clock;

  // `store`: the mapping of that name. `more`: further keys; {index} in it is the coordinator's.
  StandbySite(CoordinatorSite& site, std::size_t count, const std::string& store,
              const std::string& more = "")
      : site_(site) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string text =
          fmt::format("store: {{{}}}\ncontrol: {{socket: {}, http: '{}'}}\n{}", store, socket(i),
                      http_.emplace_back().address(), with_index(more, i));
      members_.push_back(site_.coordinator(fmt::format("c{}", i), text));
    }
  }

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] CoordinatorProcess& member(std::size_t index) { return members_[index]; }
  [[nodiscard]] std::string socket(std::size_t index) const {
    return site_.folder() / fmt::format("c{}.sock", index);
  }
  [[nodiscard]] std::string metrics(std::size_t index) const {
    return http_get(http_[index].number(), "/metrics");
  }
  // All of their sockets, as vpfsctl takes them.
  [[nodiscard]] std::string sockets() const {
    std::string all;
    for (std::size_t i = 0; i < size(); ++i) all += (i == 0 ? "" : ",") + socket(i);
    return all;
  }
  [[nodiscard]] Outcome ctl(std::vector<std::string> arguments, const std::string& where) const {
    arguments.insert(arguments.begin(), program("vpfsctl"));
    arguments.insert(arguments.end(), {"--coordinator", where});
    return outcome_of(std::move(arguments));
  }
  [[nodiscard]] Outcome ctl(std::vector<std::string> arguments) const {
    return ctl(std::move(arguments), sockets());
  }
  // The term that it leads with; 0: it does not.
  [[nodiscard]] std::uint64_t leads_with(std::size_t index) {
    if (!member(index).running()) return 0;
    const std::string output = member(index).process().output();
    const std::size_t line = output.rfind("vpfs-coordinator: ready, ");
    if (line == std::string::npos) return 0;
    const std::size_t term = output.find(", term ", line);
    return term == std::string::npos ? 0 : std::stoull(output.substr(term + 7));
  }
  // The one that leads with a term of at least that; nothing if none does in time.
  [[nodiscard]] std::optional<std::size_t> leader(std::uint64_t least_term,
                                                  std::chrono::milliseconds patience = 20s) {
    std::optional<std::size_t> found;
    (void)comes_true(
        [&] {
          for (std::size_t i = 0; i < size(); ++i) {
            if (leads_with(i) >= least_term) found = i;
          }
          return found.has_value();
        },
        patience);
    return found;
  }
  // Waits until each of the others is connected to it. They log what debugging takes.
  [[nodiscard]] bool others_watch(std::size_t leader, std::uint64_t term) {
    for (std::size_t i = 0; i < size(); ++i) {
      if (i == leader) continue;
      if (!member(i).logs(fmt::format("the leader of term {} answers", term))) return false;
    }
    return true;
  }
  void start_all() {
    for (CoordinatorProcess& each : members_) each.start();
  }
  void stop_all() {
    for (CoordinatorProcess& each : members_) {
      if (each.running()) each.stop();
    }
  }

 private:
  static std::string with_index(std::string text, std::size_t index) {
    constexpr std::string_view kIndex = "{index}";
    if (const std::size_t place = text.find(kIndex); place != std::string::npos) {
      text.replace(place, kIndex.size(), fmt::format("{}", index));
    }
    return text;
  }

  CoordinatorSite& site_;
  std::deque<ReservedPort> http_;
  std::deque<CoordinatorProcess> members_;
};

}  // namespace vpfs::test
