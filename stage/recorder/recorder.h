#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "schedulers/request.h"
#include "stage/recorder/recorded.h"
#include "stage/recorder/ring.h"
#include "stage/rules/address.h"
#include "stage/rules/text_hash.h"

namespace vpfs::stage {

// Where requests come from: a connection of a client (of a mount: a process), and the job that they
// show.
struct Origin {
  std::uint64_t connection = 0;
  Address client = {};
  std::string jobid;

  bool operator==(const Origin&) const = default;
};

// Records what arrives at a stage. The stage's owner guards it with its lock; the ring may be read
// without.
class Recorder {
 public:
  // Virtual PFSes beyond have the number kOther.
  static constexpr std::size_t kMostNames = 65'536;
  static constexpr std::uint32_t kOther = 0;
  // Further jobs of one connection are not told apart: their origin has none.
  static constexpr std::size_t kMostJobs = 64;

  struct Settings {
    std::uint32_t number = 1;  // tells recordings of one program apart; not zero
    std::size_t requests = 1;  // that are kept
    TimePoint begin = {};
    TimePoint end = kNever;  // what ends later is not recorded
    std::uint64_t seed = 0;  // unknown to clients
  };
  // Throws std::bad_alloc.
  explicit Recorder(const Settings& settings);

  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const RecordedRing& ring() const { return ring_; }

  // Names a virtual PFS until it is retired.
  struct Flow {
    AppId app = {};
    std::uint32_t generation = 0;
  };
  // Notes a request that ends at `now`. `name`: of its virtual PFS.
  void write(Recorded request, Flow virtual_pfs, const std::string& name, TimePoint now) {
    if (now > settings_.end) return;
    request.virtual_pfs = number_of(virtual_pfs, name);
    ring_.write(request);
  }
  // Its number, for Recorded::origin. Origins beyond kMostNames share one.
  [[nodiscard]] std::uint32_t number_of(const Origin& origin);

  // By number. A virtual PFS that was retired and came again is there twice.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // Two are empty: number 0, of requests that came before the recording began or that show nothing,
  // and the one that those beyond kMostNames share.
  [[nodiscard]] const std::vector<Origin>& origins() const { return origins_; }
  // Whether there were more names, origins, or jobs of a connection.
  [[nodiscard]] bool is_full() const { return is_full_; }

 private:
  [[nodiscard]] std::uint32_t number_of(Flow id, const std::string& name) {
    const auto app = static_cast<std::size_t>(id.app);
    if (app < known_.size() && known_[app].generation == id.generation &&
        known_[app].name != kUnknown) {
      return known_[app].name;
    }
    return add_name(id, name);
  }
  std::uint32_t add_name(Flow id, const std::string& name);
  std::uint32_t add(const Origin& origin);

  static constexpr std::uint32_t kUnknown = UINT32_MAX;
  struct Known {
    std::uint32_t generation = 0;
    std::uint32_t name = kUnknown;
  };
  struct Hash {
    TextHash jobs;
    std::size_t operator()(const Origin& origin) const;
  };

  Settings settings_;
  RecordedRing ring_;
  std::vector<Known> known_;  // by the number of the virtual PFS
  std::vector<std::string> names_;
  std::vector<Origin> origins_;
  std::unordered_map<Origin, std::uint32_t, Hash> origin_numbers_;
  std::unordered_map<std::uint64_t, std::size_t> jobs_;  // by connection
  bool is_full_ = false;
};

}  // namespace vpfs::stage
