#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/saved/saved_state.h"
#include "schedulers/share.h"
#include "schedulers/token_bucket.h"
#include "stage/config/config.h"
#include "stage/counters.h"
#include "stage/place.h"
#include "stage/rule_rows.h"

namespace vpfs::stage {

// What the limits of shadow rules (RuleMode::shadow) would have held. Each virtual PFS that such a
// rule names has a row with the buckets of the rule's share. Traffic is charged as it arrives, and
// never waits. A bucket keeps a debt of one burst at most: clients that had been held would have
// sent less, so a longer debt would tell of traffic that would not have been there.
//
// A row that is not used for long is retired as virtual PFSes are, and its counts stay in its
// rule's. Beyond kMostRows, further names of a rule share one row without buckets.
class ShadowLimits {
 public:
  static constexpr std::size_t kMostRows = 1000;

  struct Report {
    Amount seen;
    Amount would_hold;
    // For how long something would have been held, up to the time of the report.
    Duration held = {};
    Amount unmeasured;  // of `seen`: in the row without buckets
    std::size_t names = 0;

    Report& operator+=(const Report& other);

    template <typename Archive>
    void archive(Archive& fields) {
      fields("seen", seen);
      fields("would_hold", would_hold);
      fields("held", held);
      fields("unmeasured", unmeasured);
      fields("names", names);
    }
  };

  // Takes on the shadow rules of the configuration, whose rows are in `rules`. Their limits are
  // those of the declared virtual PFSes that they name. Rules that stay keep their counts.
  void reconfigure(const Config& config, const RuleRows& rules, TimePoint now);

  // The row of a rule for one virtual PFS, made if it is new. kNone if no shadow rule has the name.
  [[nodiscard]] ShadowRef find(std::string_view rule, const std::string& virtual_pfs,
                               TimePoint now);
  // A request arrives. Returns the row of its rule; kNone if that is gone. O(1); does not allocate.
  RuleRef arrive(ShadowRef shadow, Bytes size, TimePoint now);

  // The report on all virtual PFSes of one rule; nothing: no shadow rule has the name.
  [[nodiscard]] std::optional<Report> report(std::string_view rule, TimePoint now) const;
  // The report on one virtual PFS; nothing: it has no row.
  [[nodiscard]] std::optional<Report> report(std::string_view rule, std::string_view virtual_pfs,
                                             TimePoint now) const;
  // The same in pieces, each of them O(1) or O(log n): one row, and what is in no row any more. A
  // rule's report is the sum.
  struct RowReport {
    RuleRef rule;
    const std::string* virtual_pfs;  // nullptr: the row of further names
    Report counts;
  };
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  // Nothing: the number is free.
  [[nodiscard]] std::optional<RowReport> row(std::size_t row, TimePoint now) const;
  [[nodiscard]] std::optional<Report> retired(std::string_view rule) const;

  // For a successor: counts and buckets, by the names of rule and virtual PFS.
  void save(TimePoint now, SavedState& to);
  void restore(const SavedState& from, TimePoint now);

  // As in Stage.
  void find_idle(std::size_t rows, Duration idle_for, TimePoint now);
  [[nodiscard]] bool has_idle() const { return !idle_.empty(); }
  void retire_one(TimePoint now);

 private:
  struct Rule {
    Share share;
    RuleRef ref;
    bool is_there = true;  // used while a configuration is taken on
    std::map<std::string, std::uint32_t, std::less<>> rows;
    std::optional<std::uint32_t> others;  // the row without buckets
    Report retired;                       // of rows that are gone
  };
  struct Bucket {
    TokenBucket tokens;
    Duration longest;  // until it is full: from a debt of one burst

    // Returns when a request that is really held would have got its tokens.
    TimePoint charge(std::uint64_t amount, TimePoint now);
  };
  struct Row {
    std::uint32_t generation = 0;
    Rule* rule = nullptr;  // nullptr: the number is free
    const std::string* virtual_pfs = nullptr;
    std::optional<Bucket> bytes;
    std::optional<Bucket> operations;
    Report counts;
    TimePoint held_until = {};  // the time up to then is in counts.held
    TimePoint last_used = {};
    bool retiring = false;
    bool in_idle_list = false;
  };

  [[nodiscard]] std::uint32_t make_row(Rule& rule);
  void free_row(std::uint32_t row);
  void free_rows(Rule& rule);
  static void set_bucket(std::optional<Bucket>& bucket, std::uint64_t rate, std::uint64_t depth,
                         TimePoint now);
  static void set_buckets(Row& row, const Share& share, TimePoint now);
  [[nodiscard]] ShadowRef use(std::uint32_t row, TimePoint now);
  [[nodiscard]] static Report counts_of(const Row& row, TimePoint now);

  std::map<std::string, Rule, std::less<>> rules_;  // by name; rows refer to them
  std::vector<Row> rows_;
  std::vector<std::uint32_t> free_;
  std::size_t measured_ = 0;         // rows with buckets
  std::vector<std::uint32_t> idle_;  // waiting for retire_one()
  std::size_t next_row_ = 0;         // of find_idle()
};

// The virtual PFSes that a stage has to make: without those that only shadow rules name.
[[nodiscard]] std::vector<VirtualPfsConfig> enforced_virtual_pfs(const Config& config);

}  // namespace vpfs::stage
