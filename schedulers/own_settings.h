#pragma once

#include <algorithm>
#include <any>
#include <type_traits>
#include <utility>
#include <vector>

namespace vpfs {

// Settings that single policies define: at most one value of each type. A missing value has the
// type's defaults.
class OwnSettings {
 public:
  OwnSettings() = default;
  template <typename First, typename... Others>
  requires(!std::is_same_v<First, OwnSettings>)
      OwnSettings(First first, Others... others) {  // NOLINT: so that a list of settings is one
    set(std::move(first));
    (set(std::move(others)), ...);
  }

  template <typename Settings>
  void set(Settings settings) {
    of<Settings>() = std::move(settings);
  }
  template <typename Settings>
  [[nodiscard]] Settings& of() {
    for (Value& each : values_) {
      if (auto* const found = std::any_cast<Settings>(&each.settings)) return *found;
    }
    values_.push_back({.settings = Settings{}, .equal = &equal<Settings>});
    return *std::any_cast<Settings>(&values_.back().settings);
  }
  template <typename Settings>
  [[nodiscard]] Settings of() const {
    for (const Value& each : values_) {
      if (const auto* const found = std::any_cast<Settings>(&each.settings)) return *found;
    }
    return Settings{};
  }

  bool operator==(const OwnSettings& other) const {
    const auto has = [](const OwnSettings& all, const Value& one) {
      return std::ranges::any_of(
          all.values_, [&](const Value& each) { return one.equal(one.settings, each.settings); });
    };
    return values_.size() == other.values_.size() &&
           std::ranges::all_of(values_, [&](const Value& each) { return has(other, each); });
  }

 private:
  struct Value {
    std::any settings;
    bool (*equal)(const std::any& one, const std::any& other);  // false also for another type
  };

  template <typename Settings>
  static bool equal(const std::any& one, const std::any& other) {
    const auto* const second = std::any_cast<Settings>(&other);
    return second != nullptr && *std::any_cast<Settings>(&one) == *second;
  }

  std::vector<Value> values_;
};

}  // namespace vpfs
