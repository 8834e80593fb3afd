#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/integration/control/standby_site.h"
#include "test/support/comes_true.h"

namespace vpfs::test {

inline constexpr std::size_t kCoordinators = 3;
inline constexpr std::size_t kStages = 8;
inline const std::string kMembersTimes =
    "members: auto\nperiod: 20 ms\ndeadline: 10 ms\nlease: 400 ms\ntransit: 100 ms\n"
    "log_level: debug\n";
// Epochs are within the term of the leader that has made them.
inline constexpr std::uint64_t kEpochs = 65536;

class MembersTest : public ::testing::Test {
 protected:
  // The coordinators dial the stages, or the stages dial them.
  enum class Dials : std::uint8_t { coordinators, stages };

  explicit MembersTest(Dials dials = Dials::coordinators)
      : site_(kStages, 0, dials == Dials::stages ? kCoordinators : 0) {
    const std::string more =
        dials == Dials::stages
            ? fmt::format("stages: {{listen: {{socket: {}}}}}\n", site_.stages_socket("{index}"))
            : "";
    std::filesystem::create_directory(shared());
    coordinators_.emplace(site_, kCoordinators,
                          fmt::format("directory: {}, lease: 2 s", shared().string()),
                          kMembersTimes + more);
  }
  void TearDown() override { coordinators_->stop_all(); }

  [[nodiscard]] std::filesystem::path shared() const { return site_.folder() / "shared"; }
  CoordinatorProcess& member(std::size_t index) { return coordinators_->member(index); }

  nlohmann::json status(std::size_t index) {
    const Outcome status = coordinators_->ctl({"status", "--json"}, coordinators_->socket(index));
    const nlohmann::json whole = nlohmann::json::parse(status.output, nullptr, false);
    if (!whole.is_object() || whole["proxies"].empty()) return {};
    return whole["proxies"][0].value("data", nlohmann::json());
  }
  // The stages that each running member serves, by its number. They may be none.
  std::map<std::size_t, std::set<std::string>> parts() {
    std::map<std::size_t, std::set<std::string>> parts;
    for (std::size_t i = 0; i < kCoordinators; ++i) {
      if (!member(i).running()) continue;
      const nlohmann::json own = status(i);
      if (!own.is_object() || !own.contains("member")) continue;
      parts[i];
      for (const auto& stage : own["member"]["stages"]) {
        if (stage["connected"]) parts[i].insert(stage["name"]);
      }
    }
    return parts;
  }
  // One that does not lead and has stages; nothing: the hash of the names, which are others in each
  // run, has given all to the leader.
  std::optional<std::size_t> standby_with_stages(std::size_t leader) {
    for (const auto& [index, part] : parts()) {
      if (index != leader && !part.empty()) return index;
    }
    return std::nullopt;
  }
  // Waits until each stage has a lease of one member, with a term from `least` on.
  bool each_is_served_once(std::uint64_t least) {
    return comes_true([&] {
      for (std::size_t i = 0; i < kStages; ++i) {
        if (epoch_of(i) < least) return false;
      }
      std::multiset<std::string> served;
      for (const auto& [index, part] : parts()) served.insert(part.begin(), part.end());
      return served.size() == kStages && std::set(served.begin(), served.end()).size() == kStages;
    });
  }
  // The term of the lease that a stage has; 0: it has none.
  std::uint64_t epoch_of(std::size_t stage) {
    const nlohmann::json row = site_.coordinated(stage);
    if (row.is_null() || !row.contains("lease_us_left")) return 0;
    return row["term"].get<std::uint64_t>();
  }
  // How long it took until all stages were led with that epoch or a later one.
  std::chrono::milliseconds until_led(std::uint64_t epoch, StandbySite::Clock::time_point from) {
    EXPECT_TRUE(comes_true([&] {
      for (std::size_t i = 0; i < kStages; ++i) {
        if (epoch_of(i) < epoch) return false;
      }
      return true;
    }));
    return std::chrono::duration_cast<std::chrono::milliseconds>(StandbySite::Clock::now() - from);
  }
  // Starts all; the one that leads. Each stage is served by one of them.
  std::size_t start() {
    coordinators_->start_all();
    const auto leader = coordinators_->leader(1);
    EXPECT_TRUE(leader);
    EXPECT_TRUE(comes_true([&] { return members_of(*leader).size() == kCoordinators; }));
    EXPECT_TRUE(each_is_served_once(view_of(*leader)));
    return *leader;
  }
  std::uint64_t view_of(std::size_t index) {
    const nlohmann::json own = status(index);
    return own.is_object() && own.contains("member") ? own["member"].value("view", 0ULL) : 0;
  }
  std::vector<std::string> members_of(std::size_t index) {
    const nlohmann::json own = status(index);
    if (!own.is_object() || !own.contains("member")) return {};
    return own["member"]["members"].get<std::vector<std::string>>();
  }

  CoordinatorSite site_;
  std::optional<StandbySite> coordinators_;
};

}  // namespace vpfs::test
