#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vpfs::control {

// Where a site's state is in etcd. Numbers have as many digits as they can need, so that keys are
// in the order of numbers.
//
//     PREFIXterm                      the newest Leadership, as to_record() writes it
//     PREFIXleader                    the same, for as long as its lease lasts
//     PREFIXgeneration                G, the number of the generation that is in force; absent: 0
//     PREFIXrules/G/N                 record N of generation G, from 1 on
//     PREFIXrules/G/N/I               its part I, from 0 on, if it is long
//
// A long record is cut into parts. The last one is the value of PREFIXrules/G/N, which is written
// after all others: as long as it is not there, the parts are not a record.
//
// A generation begins with the record that replaces those of the generation before. It is in force
// once PREFIXgeneration names it. What is left of others is removed.
class EtcdKeys {
 public:
  struct Place {
    std::uint64_t generation = 0;
    std::uint64_t number = 0;

    bool operator==(const Place&) const = default;
  };
  struct RecordKey {
    std::uint64_t number = 0;
    std::optional<std::size_t> part;  // nothing: the record's own key
  };

  // "/vpfs/SITE/", usually.
  explicit EtcdKeys(std::string prefix) : prefix_(std::move(prefix)) {}

  [[nodiscard]] std::string term() const { return prefix_ + "term"; }
  [[nodiscard]] std::string leader() const { return prefix_ + "leader"; }
  [[nodiscard]] std::string generation() const { return prefix_ + "generation"; }
  [[nodiscard]] std::string records() const { return prefix_ + "rules/"; }
  [[nodiscard]] std::string records_of(std::uint64_t generation) const;
  [[nodiscard]] std::string record(const Place& place) const;
  // All parts of a record are below it.
  [[nodiscard]] std::string parts(const Place& place) const { return record(place) + "/"; }
  [[nodiscard]] std::string part(const Place& place, std::size_t index) const;

  // What a key below records_of() is.
  [[nodiscard]] std::optional<RecordKey> parse(const std::string& key,
                                               std::uint64_t generation) const;

 private:
  std::string prefix_;
};

}  // namespace vpfs::control
