#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/orangefs/caches.h"

namespace vpfs::client {

// What an operation changes. It leaves the caches at the latest when the operation ends, whether
// that went well or not: after a failure it is unknown what the server did.
class Change {
 public:
  explicit Change(Caches* caches) : caches_(caches) {}
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  ~Change() { forget(); }

  // What became of it is known, and stands in the caches.
  void drop() { caches_ = nullptr; }
  // Before others are told of the change.
  void forget() {
    if (caches_ == nullptr) return;
    for (const orangefs::Handle object : objects_) caches_->forget(object);
    for (const auto& [directory, name] : names_) caches_->forget_name(directory, name);
  }

  void object(orangefs::Handle object) { objects_.push_back(object); }
  void name(orangefs::Handle directory, std::string name) {
    names_.emplace_back(directory, std::move(name));
  }

 private:
  Caches* caches_;
  std::vector<orangefs::Handle> objects_;
  std::vector<std::pair<orangefs::Handle, std::string>> names_;
};

}  // namespace vpfs::client
