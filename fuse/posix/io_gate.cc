#include "fuse/posix/io_gate.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "schedulers/policy.h"

namespace vpfs::fuse {
namespace {
// How many users are copied per lock.
constexpr std::size_t kUsersAtOnce = 64;
// How many files' held reads are looked at per lock.
constexpr std::size_t kFilesAtOnce = 256;
}  // namespace

IoGate::IoGate(MountSettingsPtr settings, std::function<void(TimePoint by)> ask_again,
               std::uint64_t seed, TimePoint now)
    : StageGate(settings->config, now),
      ask_again_(std::move(ask_again)),
      settings_(std::move(settings)),
      known_(seed) {}

void IoGate::use(Config config, TimePoint now) {
  auto settings = std::make_shared<const MountSettings>(std::move(config), settings_.get());
  act(now, [&](stage::Stage& stage, TimePoint at) {
    stage.reconfigure(settings->config, at);
    settings_.swap(settings);
    forget_numbers();
  });
  ask_again();
}

void IoGate::reconfigure(const stage::Config& config, TimePoint now) {
  use(control::with_stage(settings_->config, config), now);
}

IoGate::Users IoGate::users(TimePoint now) {
  Users all;
  bool has_more = true;
  while (has_more) {
    inspect(now, [&](stage::Stage&, TimePoint) {
      if (users_.size() < all.listed.size()) all.listed.clear();  // the rules changed meanwhile
      const std::size_t end = std::min(users_.size(), all.listed.size() + kUsersAtOnce);
      for (std::size_t i = all.listed.size(); i < end; ++i) all.listed.push_back(users_[i]);
      has_more = end < users_.size();
      all.others = others_;
      all.requests_of_others = requests_of_others_;
    });
  }
  return all;
}

// Matches the rules once for each identity in use.
IoGate::Belonging IoGate::belonging_of(const IoRequest& request, stage::Stage& stage,
                                       TimePoint now) {
  const Opener& opener = request.file ? request.file->opener : request.caller;
  hints_.clear();
  for (const std::string& name : settings_->classifier.hint_names()) {
    const bool job = name == stage::kJobHint && !opener.jobid.empty();
    hints_.push_back(job ? std::optional<std::string_view>(opener.jobid) : std::nullopt);
  }
  const stage::Identity identity = {.kind = request.kind, .uid = opener.uid, .hints = hints_};
  static const stage::Address local = {};
  key_.clear();
  const bool may_be_kept = settings_->classifier.append_key(local, identity, key_);
  if (may_be_kept) {
    if (const Belonging* const known = known_.find(key_)) return *known;
  }
  const stage::Classifier::Match match = settings_->classifier.classify(local, identity);
  Belonging belongs = {.place = stage.find(match, now, settings_->config.rules),
                       .traffic_class = match.traffic_class,
                       .job_not_registered = match.job_not_registered,
                       .user = kOther};
  if (users_.size() < kMostUsers) {
    belongs.user = users_.size();
    const bool is_shown = match.job_not_registered || !match.job_from_registration;
    users_.push_back({.uid = opener.uid,
                      .jobid = is_shown ? opener.jobid : match.jobid,
                      .kind = request.kind,
                      .place = belongs.place,
                      .traffic_class = belongs.traffic_class,
                      .job_not_registered = match.job_not_registered,
                      .job_from_registration = !is_shown});
  } else {
    ++others_;
  }
  // A request may be "default" only because the table is full; that ends when others are retired.
  const bool is_for_now = belongs.place.id.app == AppId{0} && match.declared_name != "default";
  if (may_be_kept && !is_for_now) known_.insert(key_, belongs);
  return belongs;
}

stage::Held::Source IoGate::source_of(const IoRequest& request, stage::Recorder& recorder) {
  const Opener& opener = request.file ? request.file->opener : request.caller;
  const auto process = static_cast<std::uint64_t>(request.process);
  const bool is_io = request.kind != IoKind::metadata;
  const std::uint32_t recording = recorder.settings().number;
  if (recording != last_recording_ || process != last_origin_.connection ||
      opener.jobid != last_origin_.jobid) {
    last_recording_ = recording;
    last_origin_ = {.connection = process, .client = {}, .jobid = opener.jobid};
    last_origin_number_ = recorder.number_of(last_origin_);
  }
  return {.recording = recording,
          .origin = last_origin_number_,
          .uid = opener.uid,
          .file = request.inode,
          .offset = is_io ? request.offset : stage::Recorded::kNoOffset};
}

void IoGate::arrive(IoRequest& request, std::uint64_t size, TimePoint now,
                    std::vector<IoRequest*>& go) {
  TimePoint until = kNever;
  bool is_first_to_tell = false;
  act(now, [&](stage::Stage& stage, TimePoint at) {
    const Belonging belongs = belonging_of(request, stage, at);
    request.set_place(belongs.place);
    request.traffic_class = belongs.traffic_class;
    ++(belongs.user == kOther ? requests_of_others_ : users_[belongs.user].requests);
    is_first_to_tell = belongs.job_not_registered && jobs_not_registered_++ == 0;
    request.size = request.asked = Bytes{size};
    request.cost = settings_->cost_model.cost(request.kind, request.size);
    request.arrival = at;
    if (stage.recorder() != nullptr) request.source = source_of(request, *stage.recorder());
    stage.arrive(request, at);
    request.held_until = held_until(request, at);
    until = release(stage, at, go);
    if (request.state != stage::Held::State::queued) return;
    hold(request);
    until = request.held_until <= at ? release(stage, at, go) : std::min(until, request.held_until);
  });
  if (until != kNever) ask_again_(until);
  if (is_first_to_tell) {
    spdlog::warn("a job id is not registered for its user on this node, so rules ignore it");
  }
}

TimePoint IoGate::held_until(const IoRequest& request, TimePoint now) {
  if (request.kind != IoKind::metadata) return kNever;
  if (request.locks.kept) {
    const LockWatch::Visitor visitor = {
        .app = request.app, .thread = request.process, .asks = request.locks.asks};
    return locks_.may_hold_until(request.locks.objects, visitor, now);
  }
  locks_.see(request.locks.objects, request.app, now);
  return kNever;
}

void IoGate::hold(IoRequest& request) {
  held_.emplace(request.unique, &request);
  held_reads_.add(request);
  files_with_held_reads_ = held_reads_.files();
  if (request.held_until != kNever) go_by_.emplace(request.held_until, request.unique);
}

void IoGate::hold_no_more(IoRequest& request) {
  if (held_.empty() || held_.erase(request.unique) == 0) return;
  held_reads_.remove(request);
  files_with_held_reads_ = held_reads_.files();
  if (request.held_until != kNever) go_by_.erase({request.held_until, request.unique});
}

TimePoint IoGate::release(stage::Stage& stage, TimePoint now, std::vector<IoRequest*>& go) {
  if (frozen_) return kNever;
  while (!go_by_.empty() && go_by_.begin()->first <= now) {
    IoRequest& request = *held_.at(go_by_.begin()->second);
    hold_no_more(request);
    stage.let_pass(request, now);
  }
  const TimePoint until = stage.release(now, let_go_);
  for (stage::Held* const each : let_go_) {
    auto* const request = static_cast<IoRequest*>(each);
    stage::Stage::took_over(*request);
    hold_no_more(*request);
    go.push_back(request);
  }
  let_go_.clear();
  return go_by_.empty() ? until : std::min(until, go_by_.begin()->first);
}

template <typename Change>
void IoGate::change(TimePoint now, std::vector<IoRequest*>& go, Change change) {
  TimePoint until = kNever;
  act(now, [&](stage::Stage& stage, TimePoint at) {
    change(stage, at);
    until = release(stage, at, go);
  });
  if (until != kNever) ask_again_(until);
}

void IoGate::end(IoRequest& request, TimePoint now, std::vector<IoRequest*>& go) {
  change(now, go, [&](stage::Stage& stage, TimePoint at) {
    stage.end(request, {.moved = {request.moved}, .failed = request.failed}, at);
  });
}

void IoGate::release(TimePoint now, std::vector<IoRequest*>& go) {
  change(now, go, [](stage::Stage&, TimePoint) {});
}

std::optional<Holder> IoGate::holder_of(std::uint64_t unique, TimePoint now) {
  std::optional<Holder> holder;
  inspect(now, [&](stage::Stage&, TimePoint) {
    const auto place = held_.find(unique);
    if (place == held_.end()) return;
    holder = {.process = place->second->process, .uid = place->second->charged};
  });
  return holder;
}

IoRequest* IoGate::withdraw(std::uint64_t unique, TimePoint now, std::vector<IoRequest*>& go) {
  IoRequest* found = nullptr;
  change(now, go, [&](stage::Stage& stage, TimePoint at) {
    const auto place = held_.find(unique);
    if (place == held_.end()) return;
    found = place->second;
    hold_no_more(*found);
    stage.abandon(*found, at);
  });
  return found;
}

std::vector<IoRequest*> IoGate::unlock_pages(TimePoint now, std::vector<IoRequest*>& go) {
  std::vector<IoRequest*> ahead;
  HeldReads::Round round;
  for (std::size_t files = files_with_held_reads_; files > 0;
       files -= std::min(files, kFilesAtOnce)) {
    change(now, go, [&](stage::Stage& stage, TimePoint at) {
      held_reads_.look(kFilesAtOnce, at, round);
      for (IoRequest* const each : round.ahead) {
        hold_no_more(*each);
        stage.abandon(*each, at);
      }
      for (IoRequest* const each : round.waited) {
        hold_no_more(*each);
        stage.let_pass(*each, at);
      }
    });
    ahead.insert(ahead.end(), round.ahead.begin(), round.ahead.end());
    round.ahead.clear();
    round.waited.clear();
  }
  return ahead;
}

std::vector<IoRequest*> IoGate::withdraw_all(TimePoint now) {
  std::vector<IoRequest*> all;
  act(now, [&](stage::Stage& stage, TimePoint at) {
    all = abandon_held(stage, at);
    (void)release(stage, at, all);
  });
  return all;
}

void IoGate::freeze(bool on) {
  inspect(TimePoint::min(), [&](stage::Stage&, TimePoint) { frozen_ = on; });
  if (!on) ask_again();
}

std::vector<IoRequest*> IoGate::held(TimePoint now) {
  std::vector<IoRequest*> all;
  inspect(now, [&](stage::Stage&, TimePoint) {
    for (const auto& [unique, request] : held_) all.push_back(request);
  });
  return all;
}

std::vector<std::uint64_t> IoGate::held_numbers(TimePoint now) {
  std::vector<std::uint64_t> all;
  inspect(now, [&](stage::Stage&, TimePoint) {
    for (const auto& [unique, request] : held_) all.push_back(unique);
  });
  return all;
}

std::vector<IoRequest*> IoGate::hand_on(TimePoint now) {
  std::vector<IoRequest*> all;
  act(now, [&](stage::Stage& stage, TimePoint at) { all = abandon_held(stage, at); });
  return all;
}

std::vector<IoRequest*> IoGate::abandon_held(stage::Stage& stage, TimePoint now) {
  std::vector<IoRequest*> all;
  while (!held_.empty()) {
    IoRequest& request = *held_.begin()->second;
    hold_no_more(request);
    stage.abandon(request, now);
    all.push_back(&request);
  }
  return all;
}

void IoGate::readmit(std::span<IoRequest* const> requests, TimePoint now) {
  act(now, [&](stage::Stage& stage, TimePoint at) {
    for (IoRequest* const each : requests) {
      const Belonging belongs = belonging_of(*each, stage, at);
      each->set_place(belongs.place);
      each->traffic_class = belongs.traffic_class;
      each->cost = settings_->cost_model.cost(each->kind, each->size);
      each->arrival = std::min(each->arrival, at);
      stage.readmit(*each, at);
      stage.arrive(*each, at);
      hold(*each);
    }
  });
}

}  // namespace vpfs::fuse
