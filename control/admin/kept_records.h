#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/result.h"
#include "control/store/state_store.h"

namespace vpfs::control {

// A store for what may be written a little later: a full disk is told once, and nothing fails.
class KeptRecords {
 public:
  // `key` is that of the configuration, for the log. Null: nothing is kept.
  KeptRecords(std::unique_ptr<StateStore> store, std::string_view key)
      : store_(std::move(store)), key_(key) {}

  [[nodiscard]] bool exists() const { return store_ != nullptr; }
  // As StateStore::load().
  [[nodiscard]] Result<StateStore::Loaded> load() { return store_->load(); }
  // The next call of keep() is the last one, and is not left out.
  void hurry() { passed_ = kCallsBetween; }
  // Appends more(), or writes all() if the file was removed or has become long. Returns whether it
  // is stored. After a failure it is not tried in the next calls: to make the records takes long,
  // and the disk stays full. REQUIRES: exists().
  template <typename More, typename All>
  bool keep(More&& more, All&& all) {
    if (has_failed_ && ++passed_ < kCallsBetween) return false;
    passed_ = 0;
    const bool is_in_place = store_->is_in_place();
    const bool is_long = store_->wants_replacing() && ++appended_ >= kCallsBetween;
    Result<void> written = Result<void>();
    if (!is_in_place || is_long) {
      written = store_->replace(all());
      appended_ = written ? kCallsBetween : 0;
    }
    // There may be no room for a second file.
    if (is_in_place && (!is_long || !written)) written = store_->append(more());
    if (!written && !has_failed_) {
      spdlog::error("{}: {}; it is tried again", key_, written.error().message);
    }
    if (written && has_failed_) spdlog::info("{} is written again", key_);
    has_failed_ = !written;
    return !has_failed_;
  }

 private:
  static constexpr int kCallsBetween = 10;  // there is one a second at most

  std::unique_ptr<StateStore> store_;
  std::string_view key_;
  bool has_failed_ = false;
  int passed_ = 0;                // calls since it failed
  int appended_ = kCallsBetween;  // calls since it could not be replaced
};

}  // namespace vpfs::control
