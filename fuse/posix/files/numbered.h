#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace vpfs::fuse {

// The numbers that the kernel knows objects by. They are small and count up, so a process that
// takes over has the same ones. Numbers that are free again are used first. at() takes no lock; its
// owner sees to it that one thread at a time calls the others. Objects are borrowed.
template <typename Object>
class Numbered {
 public:
  // Numbers below `first` are never given.
  explicit Numbered(std::uint64_t first) : first_(first), end_(first) {}
  ~Numbered() {
    for (auto& each : segments_) delete[] each.load();
  }
  Numbered(const Numbered&) = delete;
  Numbered& operator=(const Numbered&) = delete;

  [[nodiscard]] std::uint64_t add(Object& object) {
    // place() leaves numbers there that it has taken since, or that are there twice.
    while (!free_.empty() && at(free_.back()) != nullptr) free_.pop_back();
    std::uint64_t number = end_;
    if (free_.empty()) {
      ++end_;
    } else {
      number = free_.back();
      free_.pop_back();
    }
    entry(number).store(&object);
    return number;
  }
  void remove(std::uint64_t number) {
    entry(number).store(nullptr);
    free_.push_back(number);
  }
  // Null: there is none.
  [[nodiscard]] Object* at(std::uint64_t number) const {
    const Place place = place_of(number);
    if (place.segment >= segments_.size()) return nullptr;
    const std::atomic<Object*>* const segment = segments_[place.segment].load();
    return segment == nullptr ? nullptr : segment[place.index].load();
  }

  // All numbers that were ever given are below it.
  [[nodiscard]] std::uint64_t end() const { return end_; }

  // Takes on an object of the process before, under its number there. False: the number is taken,
  // or no process of ours has given it.
  [[nodiscard]] bool place(std::uint64_t number, Object& object) {
    if (number < first_ || number > kMost || at(number) != nullptr) return false;
    for (std::uint64_t gap = number; gap-- > end_;) free_.push_back(gap);
    end_ = std::max(end_, number + 1);
    entry(number).store(&object);
    return true;
  }

 private:
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  static constexpr int kBits = 10;  // of the first segment's size; each is twice the one before

  struct Place {
    std::size_t segment;
    std::size_t index;
  };
  static Place place_of(std::uint64_t number) {
    constexpr std::uint64_t kFirst = std::uint64_t{1} << kBits;
    if (number > kMost) return {.segment = SIZE_MAX, .index = 0};
    const std::uint64_t at = number + kFirst;
    const auto segment = static_cast<std::size_t>(std::bit_width(at) - 1 - kBits);
    return {.segment = segment, .index = at - (kFirst << segment)};
  }
  std::atomic<Object*>& entry(std::uint64_t number) {
    const Place place = place_of(number);
    auto& segment = segments_[place.segment];
    if (segment.load() == nullptr) {
      segment.store(new std::atomic<Object*>[std::size_t{1} << (kBits + place.segment)]());
    }
    return segment.load()[place.index];
  }

  const std::uint64_t first_;
  std::uint64_t end_;  // of the numbers that were ever given
  std::vector<std::uint64_t> free_;
  std::array<std::atomic<std::atomic<Object*>*>, 24> segments_ = {};
};

// What the kernel has open, by its numbers. It need not release everything when a mount ends.
// Thread-safe.
template <typename Object>
class OpenObjects {
 public:
  using Pointer = std::shared_ptr<Object>;  // I/O under way shares it with the kernel

  [[nodiscard]] std::uint64_t add(Pointer object) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = numbers_.add(*object);
    object->number = number;
    open_.emplace(number, std::move(object));
    return number;
  }
  // REQUIRES: add() gave the number, or place() has it, and it is not closed.
  [[nodiscard]] Object& at(std::uint64_t number) const { return *numbers_.at(number); }
  void close(std::uint64_t number) {
    Pointer gone;  // without the lock
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(number);
    gone = std::move(found->second);
    open_.erase(found);
    numbers_.remove(number);
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return open_.size();
  }

  // For a hand-over: all of them; and the other way round, as those of Numbered.
  [[nodiscard]] std::vector<Pointer> all() const {
    std::vector<Pointer> objects;
    const std::lock_guard lock(mutex_);
    for (const auto& [number, object] : open_) objects.push_back(object);
    return objects;
  }
  [[nodiscard]] bool place(std::uint64_t number, Pointer object) {
    const std::lock_guard lock(mutex_);
    if (!numbers_.place(number, *object)) return false;
    object->number = number;
    open_.emplace(number, std::move(object));
    return true;
  }
  [[nodiscard]] Pointer find(std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(number);
    return found == open_.end() ? nullptr : found->second;
  }

 private:
  mutable std::mutex mutex_;
  Numbered<Object> numbers_{1};
  std::unordered_map<std::uint64_t, Pointer> open_;
};

}  // namespace vpfs::fuse
