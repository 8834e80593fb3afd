#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/wire/control.pb.h"

namespace vpfs::ctl {

// Amounts each second; nothing where two samples of the same counters are missing.
struct TopRate {
  std::optional<double> bytes;
  std::optional<double> operations;
};

// A virtual PFS at one proxy, or at all of them together.
struct TopRow {
  std::string name;
  std::string proxy;  // empty in a row of all
  std::string rule;
  std::string class_name;
  TopRate now;                     // over the last second
  TopRate ten;                     // over the last ten
  std::optional<double> entitled;  // bytes each second; nothing: a stage does not say
  bool has_own_part = false;       // in a row of all: one says
  bool not_busy = false;           // no server was busy, so weights did nothing for it
  std::uint64_t queued = 0;
  std::uint64_t wait_us = 0;      // of the oldest queued request
  std::string held_by;            // why that one waits, else what held most of the last second's
  bool keeps_no_queue = false;    // held_by says so: that is why it misses its share
  std::uint64_t limit_bytes = 0;  // each second; 0: none
  std::uint64_t limit_operations = 0;  // the same
  std::uint64_t limit_metadata = 0;    // the same of metadata operations
  bool is_silent = false;              // no proxy that it was seen at answers
};

// A proxy as the head of the screen shows it.
struct TopProxy {
  std::string name;
  bool answers = false;
  std::string problem;  // why it does not
  std::string policy;
  bool bypass = false;
  bool draining = false;
  std::uint32_t outstanding = 0;
  std::uint32_t queued = 0;
  double bytes = 0;  // each second
  double operations = 0;
};

// Makes rates of cumulative counters that proxies report now and then. A proxy that starts anew, or
// a virtual PFS that does, has no rate until its second report.
class TopModel {
 public:
  explicit TopModel(const std::vector<std::string>& proxies);
  // One more, with the next number.
  void add_proxy(const std::string& name);

  // `proxy` counts as in the constructor.
  void add(std::size_t proxy, const control::StatsReply& reply);
  void lost(std::size_t proxy, const std::string& problem);
  // A proxy may say its name later.
  void set_name(std::size_t proxy, const std::string& name);

  // Rows of all proxies together by name, or one for each proxy. Sorted by name and proxy.
  [[nodiscard]] std::vector<TopRow> rows(bool each_proxy) const;
  [[nodiscard]] std::vector<TopProxy> proxies() const;

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;  // id and generation
  struct Counters {
    std::uint64_t bytes = 0;
    std::uint64_t operations = 0;
    std::uint64_t cost = 0;
    std::uint64_t held_limit = 0;
    std::uint64_t held_share = 0;
    std::uint64_t held_kept = 0;
    std::uint64_t held_depth = 0;
    std::uint64_t held_class = 0;
    std::uint64_t held_client = 0;

    [[nodiscard]] bool not_before(const Counters& earlier) const;
  };
  struct Snapshot {
    std::uint64_t at_us = 0;
    std::map<Key, Counters> counters;
  };
  struct Proxy {
    std::string name;
    bool answers = false;
    std::string problem;
    control::StatsReply last;
    std::deque<Snapshot> history;  // oldest first
  };
  struct Change {
    double seconds = 0;
    Counters by;
  };

  [[nodiscard]] static Counters counters_of(const control::VirtualPfs& each);
  // What happened since the report of about `back_us` ago.
  [[nodiscard]] static std::optional<Change> change(const Proxy& proxy, Key key,
                                                    std::uint64_t back_us);
  [[nodiscard]] static std::vector<TopRow> rows_of(const Proxy& proxy);
  [[nodiscard]] static std::optional<double> entitled_bytes(const control::VirtualPfs& each,
                                                            const std::optional<Change>& now);
  static void fill_rates(const Proxy& proxy, Key key, const control::VirtualPfs& each, TopRow& row);
  static void fill_now(const control::VirtualPfs& each, TopRow& row);
  [[nodiscard]] static std::string held_most(const Counters& by);

  std::vector<Proxy> proxies_;
};

}  // namespace vpfs::ctl
