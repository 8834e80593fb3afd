#include "control/wire/conversation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "control/wire/requests.h"

namespace vpfs::control {
namespace {

constexpr std::chrono::microseconds kMostWatchPeriod = std::chrono::hours(1);

Duration watch_period(const Watch& watch, Rights rights, const PortLimits& limits) {
  constexpr auto kMost = static_cast<std::uint64_t>(kMostWatchPeriod.count());
  const std::chrono::microseconds wanted(std::min<std::uint64_t>(watch.period_us(), kMost));
  return std::max<Duration>(wanted, rights == Rights::own ? limits.least_watch_period_of_others
                                                          : limits.least_watch_period);
}

}  // namespace

Conversation::Conversation(ConversationHost& host, Caller caller, Versions versions,
                           const PortLimits& limits, PortCounters& counters)
    : host_(host),
      caller_(std::move(caller)),
      versions_(versions),
      limits_(limits),
      counters_(counters),
      reader_(limits.frame) {}

void Conversation::set_caller(Caller caller) {
  caller_ = std::move(caller);
  const bool writer = greeted_ && caller_.rights == Rights::change;
  reader_.allow(writer ? limits_.frame_of_writers : limits_.frame);
  if (!writer) end_watches_of_others();
}

void Conversation::end_watches_of_others() {
  for (const Watching& watch : watches_) {
    if (watch.as_uid) send_error(watch.id, not_for_others());
  }
  std::erase_if(watches_, [](const Watching& watch) { return watch.as_uid.has_value(); });
}

Error Conversation::not_for_others() const {
  return make_error(Error::NOT_PERMITTED, "as_uid",
                    fmt::format("{} from {} may not ask for other users; control.writers of the "
                                "configuration names the users who may",
                                caller_.name, caller_.from));
}

bool Conversation::may_handle() const {
  return !ended_ && pending_.size() < limits_.requests_in_flight &&
         unsent_ + output_.size() <= limits_.answers_before_pause;
}

bool Conversation::wants_input() const {
  return may_handle();
}

bool Conversation::handle(TimePoint now) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < limits_.frames_in_a_turn && bytes < limits_.bytes_in_a_turn; ++i) {
    if (!may_handle()) return false;
    const auto frame = reader_.next();
    if (!frame) {
      break_off(to_string(frame.error()));
      return false;
    }
    const auto& whole = *frame;
    if (!whole) return false;
    bytes += whole->size();
    handle_frame(*whole, now);
  }
  return may_handle() && reader_.ready();
}

void Conversation::handle_frame(std::span<const std::byte> frame, TimePoint now) {
  request_ = &memory_.begin();
  if (!decode(frame, *request_)) {
    break_off("a frame that is not a message");
  } else if (to_coordinator_ && handle_answer()) {
    // Nothing is asked.
  } else if (!greeted_ && !request_->has_hello()) {
    end(request_->id(), make_error(Error::INVALID, "", "the first message has to be Hello"));
  } else if (request_->has_hello()) {
    handle_hello();
  } else {
    handle_request(now);
  }
  // A peer that may send none must not make the port keep memory.
  const bool keeps = request_->has_cycle() && caller_.rights == Rights::change;
  request_ = nullptr;
  memory_.end(keeps ? MessageMemory::kUsual : 0);
}

void Conversation::greet_coordinator() {
  to_coordinator_ = true;
  Envelope hello;
  hello.set_id(1);
  *hello.mutable_hello() = host_.owner().hello();
  hello.mutable_hello()->set_version(versions_.newest);
  hello.mutable_hello()->set_least(versions_.least);
  (void)append_frame(hello, kMostAnswer, output_);
}

bool Conversation::handle_answer() {
  if (request_->has_error()) {
    const Error& error = request_->error();
    const std::string place = error.place().empty() ? "" : error.place() + ": ";
    refusal_ = fmt::format("it refuses this stage: {}{}", place, error.text());
    instead_.assign(error.addresses().begin(), error.addresses().end());
    ended_ = true;
    watches_.clear();
    return true;
  }
  if (greeted_) return request_->answer();
  if (request_->has_hello()) {
    take_greeting();
  } else {
    part("is not a coordinator: it sent no Hello", Error::INVALID,
         "the answer to Hello has to be Hello");
  }
  return true;
}

void Conversation::take_greeting() {
  coordinator_ = request_->hello();
  const Versions theirs = versions_of(coordinator_);
  if (!common_version(versions_, theirs)) {
    ++counters_.versions;
    const std::string text = no_common_version(versions_, theirs);
    return part(text, Error::UNSUPPORTED, text);
  }
  if (coordinator_.role() != Hello::COORDINATOR) {
    return part(fmt::format("is not a coordinator: it calls itself \"{}\" ({})",
                            coordinator_.name(), coordinator_.program()),
                Error::INVALID, "this stage looks for a coordinator");
  }
  if (is_standby(coordinator_)) {
    // It waits for no reason.
    refusal_ = "is a standby, and does not lead";
    ended_ = true;
    return;
  }
  greeted_ = true;
  set_caller(std::move(caller_));
}

void Conversation::part(std::string refusal, Error::Code code, std::string text) {
  refusal_ = std::move(refusal);
  end(0, make_error(code, "", std::move(text)));
}

void Conversation::handle_hello() {
  const std::uint64_t id = request_->id();
  if (greeted_) {
    send_error(id, make_error(Error::INVALID, "", "Hello comes once"));
    return;
  }
  const Versions theirs = versions_of(request_->hello());
  if (!common_version(versions_, theirs)) {
    ++counters_.versions;
    end(id, make_error(Error::UNSUPPORTED, "version", no_common_version(versions_, theirs)));
    return;
  }
  greeted_ = true;
  set_caller(std::move(caller_));
  Envelope answer;
  *answer.mutable_hello() = host_.owner().hello();
  answer.mutable_hello()->set_version(versions_.newest);
  answer.mutable_hello()->set_least(versions_.least);
  send(answer, id);
}

void Conversation::handle_request(TimePoint now) {
  const std::uint64_t id = request_->id();
  if (request_->body_case() == Envelope::BODY_NOT_SET) {
    ++counters_.unknown;
    const auto field = unknown_body(*request_);
    const std::string what = field ? fmt::format("number {}", *field) : "without a body";
    send_error(id, make_error(Error::UNSUPPORTED, "",
                              fmt::format("this stage does not know the message ({})", what)));
    return;
  }
  // Answers, and what only a stage says, ask for nothing.
  if (find_request(*request_) == nullptr) {
    ++counters_.unknown;
    send_error(id, make_error(Error::UNSUPPORTED, "",
                              fmt::format("{} is not a request", body_name(*request_))));
    return;
  }
  std::optional<std::uint32_t> as_uid;
  if (request_->has_as_uid()) as_uid = request_->as_uid();
  const Caller caller = caller_of(as_uid);
  if (std::optional<Error> why = may_ask(*request_, caller)) {
    ++counters_.not_permitted;
    send_error(id, std::move(*why));
    return;
  }
  if (caller_.rights == Rights::own && !host_.admits_another(now)) {
    ++counters_.too_many;
    send_error(id, make_error(Error::UNAVAILABLE, "",
                              fmt::format("{} may ask {} things each second", caller_.name,
                                          limits_.requests_of_others_each_second)));
    return;
  }
  if (request_->has_cycle()) {
    handle_cycle();
  } else if (request_->has_watch()) {
    start_watch(now);
  } else {
    ++counters_.requests;
    ask(*request_, caller, id, 0);
  }
}

Caller Conversation::caller_of(const std::optional<std::uint32_t>& as_uid) const {
  if (!as_uid || caller_.rights != Rights::change) return caller_;
  return {.name = fmt::format("uid {} through {}", *as_uid, caller_.name),
          .from = caller_.from,
          .rights = Rights::own,
          .uid = *as_uid};
}

std::optional<Error> Conversation::may_ask(const Envelope& request, const Caller& caller) {
  const Rights needed = needed_right(request);
  std::optional<Error> why;
  if (request.has_as_uid() && caller_.rights != Rights::change) {
    why = not_for_others();
  } else if (caller.rights < needed) {
    why = refusal(caller, needed);
  }
  if (why && needed == Rights::change) {
    host_.record(request, caller, "refused: " + why->text(), true);
  }
  return why;
}

// The answer has no detour over another turn: flows and report go out in one write.
void Conversation::handle_cycle() {
  ++counters_.cycles;
  if (link_ == nullptr) {
    link_ = host_.owner().make_link(caller_);
    host_.record(*request_, caller_, "ok; the first of this connection", false);
  }
  cycle_answer_.flows.Clear();
  cycle_answer_.report.Clear();
  // A message that is not sent must not count as sent.
  if (request_->id() == 0) request_->mutable_cycle()->set_want_report(false);
  const Cycle& cycle = request_->cycle();
  host_.owner().cycle(cycle, *link_, cycle_answer_);
  if (request_->id() == 0) return;
  if (cycle_answer_.flows.flows_size() > 0) {
    flows_.mutable_flows()->Swap(&cycle_answer_.flows);
    if (!append_frame(flows_, kMostAnswer, output_)) {
      end(request_->id(), make_error(Error::INTERNAL, "", "too many flows for one message"));
      return;
    }
    flows_.mutable_flows()->Swap(&cycle_answer_.flows);
  }
  report_.mutable_report()->Swap(&cycle_answer_.report);
  report_.mutable_report()->set_sequence(cycle.sequence());
  report_.mutable_report()->set_term(cycle.term());
  send(report_, request_->id());
  report_.mutable_report()->Swap(&cycle_answer_.report);
}

void Conversation::start_watch(TimePoint now) {
  const std::uint64_t id = request_->id();
  if (id == 0) {
    send_error(id, make_error(Error::INVALID, "id", "a watch needs a number"));
    return;
  }
  if (watches_.size() >= limits_.watches) {
    send_error(id,
               make_error(Error::UNAVAILABLE, "",
                          fmt::format("this connection has {} watches already", watches_.size())));
    return;
  }
  ++counters_.requests;
  std::optional<std::uint32_t> as_uid;
  if (request_->has_as_uid()) as_uid = request_->as_uid();
  watches_.push_back({.number = ++last_watch_,
                      .id = id,
                      .rules = request_->watch().rules(),
                      .as_uid = as_uid,
                      .period = watch_period(request_->watch(), caller_.rights, limits_),
                      .due = now});
  run_watches(now);
}

void Conversation::run_watches(TimePoint now) {
  for (Watching& watch : watches_) {
    if (watch.due > now || watch.asked) continue;
    watch.due = std::max(watch.due + watch.period, now);
    // A peer that has not read the last one gets none for this period.
    if (!may_handle()) continue;
    watch.asked = true;
    Envelope request;
    request.mutable_stats()->set_rules(watch.rules);
    ask(std::move(request), caller_of(watch.as_uid), watch.id, watch.number);
  }
}

std::optional<TimePoint> Conversation::next_watch() const {
  std::optional<TimePoint> next;
  for (const Watching& watch : watches_) {
    if (!watch.asked && (!next || watch.due < *next)) next = watch.due;
  }
  return next;
}

void Conversation::ask(Envelope request, const Caller& caller, std::uint64_t id,
                       std::uint64_t watch) {
  const std::uint64_t ticket = ++last_ticket_;
  pending_.push_back({.ticket = ticket, .id = id, .watch = watch});
  host_.ask(ticket, std::move(request), caller);
}

void Conversation::answered(std::uint64_t ticket, Envelope answer) {
  const auto place = std::ranges::find(pending_, ticket, &Pending::ticket);
  if (place == pending_.end()) return;
  const Pending asked = *place;
  pending_.erase(place);
  if (asked.watch != 0) {
    const auto watch = std::ranges::find(watches_, asked.watch, &Watching::number);
    if (watch == watches_.end()) return;
    watch->asked = false;
    // An error ends it.
    if (answer.has_error()) watches_.erase(watch);
  }
  if (!ended_) send(answer, asked.id);
}

void Conversation::send(Envelope& answer, std::uint64_t id) {
  if (id == 0) return;
  too_slow_ = too_slow_ || unsent_ + output_.size() > limits_.answers;
  answer.set_id(id);
  answer.set_answer(true);
  if (append_frame(answer, kMostAnswer, output_)) return;
  send_error(id, make_error(Error::UNAVAILABLE, "",
                            fmt::format("the answer has more than {} MiB", kMostAnswer >> 20)));
}

void Conversation::send_error(std::uint64_t id, Error error) {
  Envelope answer;
  *answer.mutable_error() = std::move(error);
  send(answer, id);
}

void Conversation::end(std::uint64_t id, Error why) {
  if (std::exchange(ended_, true)) return;
  watches_.clear();
  // A refusal of the whole connection is told even where no number asks for it.
  Envelope answer;
  *answer.mutable_error() = std::move(why);
  answer.set_id(id);
  answer.set_answer(true);
  (void)append_frame(answer, kMostAnswer, output_);
}

void Conversation::break_off(std::string why) {
  ++counters_.broken;
  broken_ = std::move(why);
  end(0, make_error(Error::INVALID, "", fmt::format("not the control protocol: {}", broken_)));
}

}  // namespace vpfs::control
