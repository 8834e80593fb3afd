// The part of Server that goes from one process to another.
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/result.h"
#include "fuse/posix/handover/known_changes.h"
#include "fuse/posix/server.h"
#include "fuse/posix/server_thread.h"

namespace vpfs::fuse {
namespace {

constexpr std::size_t kDescriptorsAtOnce = 250;
constexpr std::size_t kRequestsAtOnce = 512;

using control::PackedParcel;

// The channels of requests, by the numbers that they have in the other process.
class Channels {
 public:
  std::size_t number_of(Channel* channel) {
    const auto [place, is_new] = numbers_.try_emplace(channel, all_.size());
    if (is_new) all_.push_back(channel->descriptor());
    return place->second;
  }
  [[nodiscard]] std::vector<PackedParcel> parcels() const {
    std::vector<PackedParcel> parcels;
    for (std::size_t first = 0; first < all_.size(); first += kDescriptorsAtOnce) {
      const auto some =
          std::span(all_).subspan(first, std::min(kDescriptorsAtOnce, all_.size() - first));
      PackedParcel& parcel = parcels.emplace_back();
      parcel.state.set("what", "channels");
      parcel.descriptors.assign(some.begin(), some.end());
    }
    return parcels;
  }

 private:
  std::unordered_map<Channel*, std::size_t> numbers_;
  std::vector<int> all_;
};

}  // namespace

// What cannot be copied now is an error in pack().
void Server::copy_held_data() {
  data_.clear();
  for (const std::uint64_t unique : gate_.held_numbers(clock_.now())) {
    gate_.visit_held(unique, clock_.now(),
                     [this](IoRequest& request) { (void)data_.add(request); });
  }
}

void Server::freeze() {
  {
    const std::scoped_lock lock(rounds_mutex_, asking_mutex_);
    frozen_ = true;
  }
  gate_.freeze(true);
  files_.inodes().let_none_wait(true);
  { const std::lock_guard lock(again_mutex_); }
  again_.notify_all();
}

void Server::thaw() {
  packed_calls_.clear();
  {
    const std::lock_guard lock(rounds_mutex_);
    frozen_ = false;
  }
  files_.inodes().let_none_wait(false);
  gate_.freeze(false);
  std::vector<IoRequest*> go;
  {
    const std::lock_guard lock(calls_.mutex);
    for (IoRequest* const each : std::exchange(arriving_, {})) {
      if (calls_.queue.enter_or_wait(*each)) go.push_back(each);
    }
    calls_.queue.admit(go);
  }
  if (!go.empty()) hand_over(go);
  admit_scheduled();
  {
    const std::lock_guard lock(handed_mutex_);
    see_to_a_reader();
  }
  rounds_.wake();
  ask_again();
}

void Server::admit_scheduled() {
  std::vector<IoRequest*> go;
  {
    const std::lock_guard lock(scheduled_.mutex);
    scheduled_.queue.admit(go);
  }
  if (!go.empty()) hand_over(go);
}

std::vector<std::uint64_t> Server::look_at_threads() {
  std::vector<std::uint64_t> turns;
  const std::scoped_lock lock(workers_mutex_, reading_mutex_);
  for (const std::unique_ptr<ServerThread>& each : workers_) {
    turns.push_back(each->turn());
    each->interrupt_reading();
  }
  return turns;
}

// One that the gate has let go has had its turn.
void Server::ServerThread::put_off(std::unique_ptr<IoRequest> request) {
  server_.leave(request->charged, server_.door_of(*request), go_);
  if (request->is_scheduled) {
    server_.gate_.end(*request, server_.clock_.now(), let_go_);
    server_.admit(let_go_, go_);
    request->is_scheduled = false;
  }
  IoRequest* const waits = request.release();
  // The server may not be frozen any more.
  if (server_.enter_or_wait(*waits)) go_.push_back(waits);
}

// Its user's other calls may last for long, and it would wait for these.
void Server::put_off_waiting_changes() {
  std::vector<IoRequest*> changes;
  {
    const std::lock_guard lock(scheduled_.mutex);
    for (const IoRequest* const each : scheduled_.queue.all()) {
      if (!changes_what_is_known(*each)) continue;
      changes.push_back(scheduled_.queue.withdraw(each->unique));
    }
  }
  for (IoRequest* const each : changes) {
    std::vector<IoRequest*> let_go;
    gate_.end(*each, clock_.now(), let_go);
    each->is_scheduled = false;
    VPFS_ASSERT(let_go.empty() && !enter_or_wait(*each));
  }
}

bool Server::has_changes_to_do() {
  const std::lock_guard lock(handed_mutex_);
  return std::ranges::any_of(to_do_,
                             [](const IoRequest* each) { return changes_what_is_known(*each); });
}

// Requests go from threads to queues and back. If no thread has changed what it does from the first
// look to the second, none has moved in between.
bool Server::settle() {
  const std::vector<std::uint64_t> turns = look_at_threads();
  const bool busy = std::ranges::any_of(turns, [](std::uint64_t turn) {
    const ServerThread::Doing doing = ServerThread::doing(turn);
    return doing == ServerThread::Doing::reading || doing == ServerThread::Doing::working;
  });
  put_off_waiting_changes();
  return !busy && !has_changes_to_do() && look_at_threads() == turns;
}

// Requests still go from the list to threads, so it comes first. At the door they stay until
// leave().
std::vector<Server::Stays> Server::what_stays() {
  std::vector<Stays> all;
  const auto add = [&](const IoRequest* each) {
    all.push_back({.channel = each->channel,
                   .unique = each->unique,
                   .holder = {.process = each->process, .uid = each->charged},
                   .is_early = may_be_answered_early(*each)});
  };
  {
    const std::lock_guard lock(handed_mutex_);
    std::ranges::for_each(to_do_, add);
    // What has stayed with the process before may still be there.
    all.insert(all.end(), stayed_.begin(), stayed_.end());
  }
  {
    const std::lock_guard lock(scheduled_.mutex);
    std::ranges::for_each(scheduled_.queue.all(), add);
  }
  const std::lock_guard lock(workers_mutex_);
  for (const std::unique_ptr<ServerThread>& each : workers_) {
    const Stays stays = each->under_way();
    if (stays.unique != 0) all.push_back(stays);
  }
  return all;
}

Result<std::vector<PackedParcel>> Server::pack(SavedState& state) {
  std::vector<IoRequest*> requests = gate_.held(clock_.now());
  {
    const std::lock_guard lock(calls_.mutex);
    packed_calls_ = calls_.queue.all();
  }
  requests.insert(requests.end(), packed_calls_.begin(), packed_calls_.end());
  Channels channels;
  std::vector<PackedParcel> packed;
  for (std::size_t next = 0; next < requests.size();) {
    PackedParcel& parcel = packed.emplace_back();
    parcel.state.set("what", "requests");
    SavedState::Values& list = parcel.state.add_list("requests");
    while (next < requests.size() && list.size() < kRequestsAtOnce &&
           parcel.descriptors.size() < kDescriptorsAtOnce) {
      IoRequest& request = *requests[next++];
      VPFS_TRY(save_request(request, channels.number_of(request.channel), data_, parcel.descriptors,
                            list.emplace_back()));
    }
  }
  SavedState::Values& stays = state.add_list("stays");
  for (const Stays& each : what_stays()) {
    SavedState& one = stays.emplace_back();
    one.set("channel", std::uint64_t{channels.number_of(each.channel)});
    one.set("unique", each.unique);
    one.set("process", static_cast<std::uint64_t>(each.holder.process));
    one.set("uid", std::uint64_t{each.holder.uid});
    one.set("is_early", std::uint64_t{each.is_early});
  }
  {
    const std::lock_guard lock(interrupted_mutex_);
    state.set("interrupted", interrupted_.numbers());
  }
  // Requests refer to what comes before them.
  std::vector<PackedParcel> parcels = channels.parcels();
  if (data_.descriptor() >= 0) {
    PackedParcel& parcel = parcels.emplace_back();
    parcel.state.set("what", "data");
    parcel.descriptors.push_back(data_.descriptor());
  }
  std::ranges::move(packed, std::back_inserter(parcels));
  return parcels;
}

// The other process answers these.
void Server::leave() {
  std::vector<IoRequest*> gone = gate_.hand_on(clock_.now());
  {
    const std::lock_guard lock(calls_.mutex);
    for (const IoRequest* const each : std::exchange(packed_calls_, {})) {
      gone.push_back(calls_.queue.withdraw(each->unique));
    }
  }
  for (IoRequest* const each : gone) delete each;
  data_.clear();
  {
    const std::lock_guard lock(interrupted_mutex_);
    interrupted_ = InterruptedRequests();
  }
  has_left_ = true;
  admit_scheduled();
}

Result<void> Server::take_on(const SavedState& parcel, std::vector<net::Descriptor> descriptors) {
  const std::string_view what = parcel.text("what");
  if (what == "channels") {
    for (net::Descriptor& each : descriptors) {
      Result<std::unique_ptr<Channel>> channel = mount_.adopt_channel(std::move(each));
      VPFS_TRY(channel);
      inherited_.push_back(std::move(*channel));
    }
    return {};
  }
  if (what == "data") {
    if (descriptors.empty()) return fail("the data of held writes are missing");
    data_ = SavedData(std::move(descriptors.front()));
    return {};
  }
  const RequestSource source = {
      .channels = inherited_, .files = files_.files(), .data = data_, .pipes = descriptors};
  for (const SavedState& each : parcel.list("requests")) {
    Result<std::unique_ptr<IoRequest>> request = restore_request(each, source);
    VPFS_TRY(request);
    arriving_.push_back(request->release());
  }
  return {};
}

std::size_t Server::take_on_requests(const SavedState& state) {
  std::ranges::sort(arriving_, {},
                    [](const IoRequest* each) { return std::tuple(each->arrival, each->unique); });
  for (const IoRequest* const each : arriving_) {
    if (each->kept > 0) memory_.take(each->charged, each->kept);
    if (each->pipe) memory_.take_pipe_again(each->charged);
    if (each->is_counted) requests_.take(each->charged, 1);
  }
  const std::size_t all = arriving_.size();
  std::vector<IoRequest*> held;
  std::vector<IoRequest*> calls;
  for (IoRequest* const each : arriving_) (each->is_scheduled ? held : calls).push_back(each);
  gate_.readmit(held, clock_.now());
  arriving_ = std::move(calls);
  data_ = SavedData();
  for (const SavedState& each : state.list("stays")) {
    const std::uint64_t channel = each.number("channel");
    if (channel >= inherited_.size()) continue;
    stayed_.push_back({.channel = inherited_[channel].get(),
                       .unique = each.number("unique"),
                       .holder = {.process = static_cast<pid_t>(each.number("process")),
                                  .uid = static_cast<uid_t>(each.number("uid"))},
                       .is_early = each.number("is_early") != 0});
  }
  if (const auto* const numbers = state.find<SavedState::Numbers>("interrupted")) {
    const std::lock_guard lock(interrupted_mutex_);
    for (const std::uint64_t unique : *numbers) {
      interrupted_.put({.unique = unique}, {.state = Finding::State::missing});
    }
  }
  return all;
}

Server::Finding Server::look_at_what_stayed(std::uint64_t unique) {
  const std::lock_guard lock(handed_mutex_);
  const auto found = std::ranges::find(stayed_, unique, &Stays::unique);
  if (found == stayed_.end()) return {.state = Finding::State::missing};
  if (!found->is_early || !obeys(options_.interrupts, found->holder.process)) {
    return {.state = Finding::State::waits, .uid = found->holder.uid};
  }
  found->channel->fail(unique, EINTR);
  return {.state = Finding::State::over};
}

void Server::end_of_what_stayed() {
  std::vector<Stays> stayed;
  {
    const std::lock_guard lock(handed_mutex_);
    stayed.swap(stayed_);
  }
  for (const Stays& each : stayed) each.channel->fail(each.unique, ECONNABORTED);
}

}  // namespace vpfs::fuse
