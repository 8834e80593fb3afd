#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "protocols/orangefs/basic_types.h"

// How the bytes of a file are placed on one of its datafiles (docs/wire-orangefs.md section 4).
namespace vpfs::orangefs {

// A datafile's place in its file.
struct Placement {
  std::uint32_t server_nr = 0;
  std::uint32_t server_ct = 1;
};

// Runs of logical bytes of one size at equal distances: [begin, begin + size),
// [begin + stride, ...), `count` of them.
struct Runs {
  std::int64_t begin = 0;
  std::int64_t stride = 0;
  std::int64_t count = 0;
  std::int64_t size = 0;
};

// The strips of one datafile; they repeat with a period. They keep the file's order without holes,
// so a logical run maps to one run of the datafile.
//
// A value without allocations. Logical positions given to it must be in [0, limit()].
class DatafileLayout {
 public:
  // Real files never reach this position; below it no sum overflows.
  static constexpr std::int64_t kMostLimit = std::int64_t{1} << 61;
  static constexpr std::size_t kMostGroups = 16;

  // basic_dist, simple_stripe, twod_stripe with no more groups than datafiles (or one datafile),
  // and varstrip_dist whose strips of this datafile make at most kMostGroups regular groups in a
  // period. Nothing for other distributions and for parameters that data servers refuse.
  // `strips` is the parameter of a varstrip_dist, used instead of that in `distribution`.
  [[nodiscard]] static std::optional<DatafileLayout> of(const Distribution& distribution,
                                                        std::string_view strips,
                                                        Placement placement);
  [[nodiscard]] static std::optional<DatafileLayout> of(const Distribution& distribution,
                                                        Placement placement);

  [[nodiscard]] std::int64_t limit() const { return limit_; }

  // How many of the logical bytes [0, logical) the datafile has. This is the datafile offset of its
  // first byte at or past `logical`.
  [[nodiscard]] std::int64_t below(std::int64_t logical) const;
  // The smallest logical position with below(position) >= physical; limit() where there is none.
  [[nodiscard]] std::int64_t logical_end(std::int64_t physical) const;

  // How many bytes of the runs the datafile has. Takes steps(runs) of a few divisions each.
  // REQUIRES: stride > 0 and every run within [0, limit()].
  [[nodiscard]] std::int64_t in_runs(const Runs& runs) const;
  [[nodiscard]] std::int64_t steps(const Runs& runs) const { return plan(runs).steps; }

 private:
  // `count` strips of `size` bytes, the first at `begin` in the period, `step` from one to the
  // next.
  struct StripGroup {
    std::int64_t begin = 0;
    std::int64_t step = 1;
    std::int64_t count = 1;
    std::int64_t size = 0;
  };
  class StripReader;

  DatafileLayout(std::int64_t period, std::int64_t limit);
  [[nodiscard]] static std::optional<DatafileLayout> regular(std::int64_t period,
                                                             const StripGroup& group);
  [[nodiscard]] static std::optional<DatafileLayout> two_dimensional(const TwoDStripe& stripe,
                                                                     Placement placement);
  [[nodiscard]] static std::optional<DatafileLayout> varying(std::string_view strips,
                                                             Placement placement);
  // Strips are added in the order of the period. False when there are too many.
  [[nodiscard]] bool add_group(const StripGroup& group);
  [[nodiscard]] bool add_strip(std::int64_t begin, std::int64_t size);
  // Three ways to count, with their costs.
  enum class Way : std::uint8_t { run_by_run, strip_by_strip, closed_form };
  struct Plan {
    Way way = Way::run_by_run;
    std::int64_t steps = 0;
  };
  [[nodiscard]] Plan plan(const Runs& runs) const;
  [[nodiscard]] std::int64_t counted_by_run(const Runs& runs) const;
  [[nodiscard]] std::int64_t counted_by_strip(const Runs& runs) const;
  [[nodiscard]] std::int64_t counted_in_closed_form(const Runs& runs) const;
  // The logical bytes from a byte of the datafile to the end of its strip.
  struct StripRest {
    std::int64_t begin = 0;
    std::int64_t size = 0;
  };
  [[nodiscard]] StripRest strip_from(std::int64_t physical) const;
  [[nodiscard]] std::span<const StripGroup> groups() const {
    return std::span(groups_).first(group_count_);
  }

  std::int64_t period_;
  std::int64_t limit_;
  std::int64_t size_in_period_ = 0;
  std::int64_t strips_in_period_ = 0;
  std::int64_t smallest_strip_ = kMostLimit;
  std::size_t group_count_ = 0;
  std::array<StripGroup, kMostGroups> groups_;
};

}  // namespace vpfs::orangefs
