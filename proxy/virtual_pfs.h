#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/histogram.h"
#include "proxy/classifier.h"
#include "proxy/config.h"
#include "schedulers/scheduler.h"

namespace vpfs::proxy {

// One application's share of the data server, and what it got.
struct VirtualPfs {
  std::string name;
  Share share;

  std::uint64_t done_requests = 0;
  Bytes done_bytes;
  std::uint64_t failed_requests = 0;    // answered with an error by the data server
  std::uint64_t refused_requests = 0;   // held up to the deadline
  std::uint64_t given_up_requests = 0;  // outstanding without an end in sight
  Bytes queued_bytes;
  Bytes outstanding_bytes;
  LatencyHistogram wait;     // arrival to dispatch
  LatencyHistogram service;  // dispatch to the last byte
};

// All virtual PFSes by AppId. Those of the configuration are there from the start, "default" is
// number 0; templates add more. Not thread-safe: the dispatcher guards it.
class VirtualPfsTable {
 public:
  VirtualPfsTable(const std::vector<VirtualPfsConfig>& declared, std::size_t most);

  // The virtual PFS of that name, made with its template's share if it is new. Once `most`
  // exist, new names get "default".
  [[nodiscard]] AppId find_or_make(const Classifier::Match& match,
                                   const std::function<void(AppId, Share)>& made);

  [[nodiscard]] VirtualPfs& operator[](AppId app) { return table_[static_cast<std::size_t>(app)]; }
  [[nodiscard]] std::size_t size() const { return table_.size(); }
  // How often a new virtual PFS was refused.
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  std::vector<VirtualPfs> table_;
  std::map<std::string, AppId, std::less<>> by_name_;
  std::map<std::string, Share, std::less<>> templates_;
  std::size_t most_;
  std::uint64_t refused_ = 0;
};

}  // namespace vpfs::proxy
