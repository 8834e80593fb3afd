#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "stage/stage.h"

namespace vpfs::stage {

// A stage in virtual time, and requests of kSize bytes. Does what a stage's owner does.
class StageRig : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kSize = 1000;

  void make(const Config& config) {
    config_ = config;
    stage_ = std::make_unique<Stage>(config, now_);
  }
  void reconfigure(const Config& config) {
    config_ = config;
    stage_->reconfigure(config, now_);
  }
  Place find(const Classifier::Match& match) { return stage_->find(match, now_, config_.rules); }
  Held& request(const Place& place, IoKind kind = IoKind::read) {
    Held& io = requests_.emplace_back();
    io.set_place(place);
    io.kind = kind;
    io.size = io.asked = {kSize};
    io.cost = kSize;
    io.arrival = now_;
    return io;
  }
  Held& arrive(const Place& place, IoKind kind = IoKind::read) {
    Held& io = request(place, kind);
    stage_->arrive(io, now_);
    return io;
  }
  // Takes over and returns the requests released now.
  std::vector<Held*> let_go() {
    std::vector<Held*> released;
    until_ = stage_->release(now_, released);
    for (Held* io : released) Stage::took_over(*io);
    return released;
  }
  void end(Held& io) { stage_->end(io, {.moved = {kSize}}, now_); }
  // All callers have forgotten the numbers from before.
  void retire_idle() {
    stage_->find_idle(stage_->rows(), now_);
    while (stage_->has_idle()) stage_->retire(1, now_);
  }

  TimePoint now_ = TimePoint(std::chrono::seconds(100));
  TimePoint until_ = kNever;
  Config config_;
  std::deque<Held> requests_;  // none is ever moved
  std::unique_ptr<Stage> stage_;
};

}  // namespace vpfs::stage
