#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/histogram.h"
#include "schedulers/scheduler.h"
#include "stage/classifier.h"
#include "stage/config.h"

namespace vpfs::stage {

// What part of the bytes that reads ask for files have, as reads of late have shown.
class ReadYield {
 public:
  [[nodiscard]] Bytes expected(Bytes asked) const {
    return {static_cast<std::uint64_t>(Wide{asked.count} * part_ / kWhole)};
  }
  void learn(Bytes asked, Bytes given) {
    const auto now = static_cast<std::uint32_t>(Wide{std::min(given.count, asked.count)} * kWhole /
                                                std::max<std::uint64_t>(asked.count, 1));
    part_ =
        now > part_ ? part_ + (now - part_ + kSteps - 1) / kSteps : part_ - (part_ - now) / kSteps;
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::uint32_t kWhole = 1U << 16;
  static constexpr std::uint32_t kSteps = 8;
  std::uint32_t part_ = kWhole;
};

// One application's share of the data server, and what it got.
struct VirtualPfs {
  std::string name;
  VirtualPfsConfig declared;    // what made it: its own entry, or a template
  Share share;                  // as declared, with finish_by
  bool removed = false;         // is in the configuration no more
  std::string refused_promise;  // why a promise of `share` cannot be kept; "": it can

  std::uint64_t done_requests = 0;
  Bytes done_bytes;
  std::uint64_t failed_requests = 0;    // answered with an error by the data server
  std::uint64_t refused_requests = 0;   // held up to the deadline
  std::uint64_t excess_requests = 0;    // sent back because their client had too many waiting
  std::uint64_t given_up_requests = 0;  // outstanding without an end in sight
  Bytes queued_bytes;
  Bytes outstanding_bytes;
  std::uint64_t outstanding_requests = 0;
  LatencyHistogram wait;     // arrival to dispatch
  LatencyHistogram service;  // dispatch to the last byte
  Bytes done_before;         // done_bytes when `share` began
  ReadYield read_yield;

  // The share without what it has had of its "bytes by a time"; that ends with its time.
  [[nodiscard]] Share share_to_come(TimePoint now) const;
};

// All virtual PFSes by AppId. Those of the configuration are there from the start, "default" is
// number 0; templates add more. None is ever taken out: one that a reload removes is only marked.
// Not thread-safe: the dispatcher guards it.
class VirtualPfsTable {
 public:
  VirtualPfsTable(const std::vector<VirtualPfsConfig>& declared, std::size_t most);

  // From here on times that are counted from the start are counted.
  void start(TimePoint now);

  struct Found {
    AppId app;
    bool made;  // it is new, or back, and has a share that nobody knows yet
  };
  // The virtual PFS of that name, made with its template's share if it is new. Names that are not
  // declared (any more) get "default", as do new ones once `most` exist.
  [[nodiscard]] Found find_or_make(const Classifier::Match& match, TimePoint now);

  // Takes on another configuration; tells who is new or has another share, or none any more.
  [[nodiscard]] std::vector<AppId> reconfigure(const std::vector<VirtualPfsConfig>& declared,
                                               std::size_t most, TimePoint now);

  [[nodiscard]] VirtualPfs& operator[](AppId app) { return table_[static_cast<std::size_t>(app)]; }
  [[nodiscard]] std::size_t size() const { return table_.size(); }
  [[nodiscard]] std::vector<AppId> everybody() const;
  // How often a new virtual PFS was refused.
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  [[nodiscard]] const VirtualPfsConfig* declaration_of(const VirtualPfs& pfs) const;
  AppId add(const std::string& name, const VirtualPfsConfig& declared, TimePoint now);
  void set_most(std::size_t from_templates);

  std::vector<VirtualPfs> table_;
  std::map<std::string, AppId, std::less<>> by_name_;
  std::map<std::string, VirtualPfsConfig, std::less<>> declared_;  // templates too
  std::size_t most_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace vpfs::stage
