#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/system_clock.h"
#include "client/orangefs/caches.h"

namespace vpfs::client {

// What an operation changes. It leaves the caches at the latest when the operation ends, whether
// that went well or not: after a failure it is unknown what the server did.
class Change {
 public:
  // Null caches: nothing is remembered.
  Change(Caches* caches, const Clock& clock) : caches_(caches), clock_(clock) {}
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  ~Change() { forget(); }

  void object(orangefs::Handle object) { objects_.push_back(object); }
  void name(orangefs::Handle directory, std::string name) {
    names_.emplace_back(directory, std::move(name));
  }

  // The names have changed as they were to. So it is known when their directories did.
  void happened() { happened_ = true; }
  // Before others are told of the change.
  void forget() {
    if (caches_ == nullptr) return;
    for (const orangefs::Handle object : objects_) caches_->forget(object);
    for (const auto& [directory, name] : names_) caches_->forget_name(directory, name);
    tell_directories();
    caches_ = nullptr;
  }
  // Puts what the names lead to now into the caches.
  void keep_names() {
    if (caches_ == nullptr) return;
    happened();
    tell_directories();
    caches_ = nullptr;
  }

 private:
  void tell_directories() {
    // Not time(), which is some milliseconds late: a server that reads a better clock may have
    // noted the next second, and a time that is too small looks as if nothing had happened.
    const auto seconds =
        static_cast<std::uint64_t>(wall_clock_now().time_since_epoch() / std::chrono::seconds(1));
    for (const auto& [directory, name] : names_) {
      if (happened_) {
        caches_->entries_changed(directory, seconds, clock_.now());
      } else {
        caches_->forget_directory(directory);
      }
    }
  }

  Caches* caches_;
  const Clock& clock_;
  bool happened_ = false;
  std::vector<orangefs::Handle> objects_;
  std::vector<std::pair<orangefs::Handle, std::string>> names_;
};

}  // namespace vpfs::client
