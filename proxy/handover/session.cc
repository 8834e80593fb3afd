// How a session goes from one process to another.

#include "proxy/session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace vpfs::proxy {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void save(SavedState& to, std::string_view name, const Pump& pump) {
  const Pump::Rest rest = pump.rest();
  SavedState& stream = to.add_list(name).emplace_back();
  if (!rest.unparsed.empty()) stream.set("unparsed", text_of(rest.unparsed));
  if (!rest.unsent.empty()) stream.set("unsent", text_of(rest.unsent));
}

Pump::Rest rest_of(const SavedState& stream) {
  return {.unparsed = bytes_of(stream.text("unparsed")), .unsent = bytes_of(stream.text("unsent"))};
}

}  // namespace

// Nothing of it is at the data server, and no message is half way. The dispatcher is frozen.
bool Session::at_boundary() {
  return !closing_ && outstanding_ == 0 && to_server_.at_boundary() && to_client_.at_boundary() &&
         conversation_->may_be_saved();
}

std::optional<SavedState> Session::pack() {
  if (packed_ || !at_boundary()) return std::nullopt;
  std::vector<PendingIo*> held;
  ios_.for_each([&](IoKey, PendingIo* io) { held.push_back(io); });
  std::ranges::sort(held, {}, &PendingIo::number);
  packed_ = true;
  for (PumpSocket* const socket : {&client_, &server_}) socket->unwatch();
  for (Pump* const pump : {&to_server_, &to_client_}) pump->leave_turns();
  update_byte_counters();

  SavedState state = saved();
  save(state, "to_server", to_server_);
  save(state, "to_client", to_client_);
  SavedState::Values requests;
  for (const PendingIo* io : held) {
    SavedState& each = requests.emplace_back();
    each.set("arrival", saved_state::number_of(io->arrival));
    each.set("message", text_of(io->message));
  }
  state.set("held", std::move(requests));
  return state;
}

// Without what the pumps have received, and what is held.
SavedState Session::saved() {
  SavedState state;
  state.set("protocol", worker_.settings().config.protocol);
  conversation_->save(state.add_list("conversation").emplace_back());
  state.set("has_joined", std::uint64_t{identity_.id() != stage::kNoClient});
  return state;
}

void Session::check_rest(TimePoint now) {
  const std::uint64_t moved = to_server_.output().bytes_sent() + to_client_.output().bytes_sent();
  if (closing_ || !rest_.is_due(moved, now)) return;
  const bool at_rest =
      ios_.size() == 0 && to_server_.at_rest() && to_client_.at_rest() && at_boundary();
  if (at_rest) rest_.record(descriptors(), saved(), now);
}

Result<void> Session::restore_kept(const SavedState& from) {
  Result<void> restored = restore(from);
  if (restored) rest_.record_kept(descriptors(), from, worker_.now());
  return restored;
}

void Session::unpack() {
  if (!std::exchange(packed_, false)) return;
  for (PumpSocket* const socket : {&client_, &server_}) {
    if (const Result<void> watched = socket->watch(); !watched) close(watched.error().message);
  }
  if (!std::exchange(flush_pending_, true)) worker_.flush_later(*this);
}

void Session::depart() {
  if (std::exchange(closing_, true)) return;
  packed_ = false;
  departed_ = true;
  rest_.forget(worker_.now());
  to_server_.stop();
  to_client_.stop();
  worker_.close_later(shared_from_this());
}

Result<void> Session::restore(const SavedState& from) {
  packed_ = true;
  const std::string& protocol = worker_.settings().config.protocol;
  if (from.text("protocol") != protocol) {
    return fail(fmt::format("proxy.protocol is {}, and was {}: connections speak that", protocol,
                            from.text("protocol")));
  }
  conversation_->set_peer(worker_.settings().peer_at(identity_.address()));
  take_on_settings();
  conversation_->restore(from.child("conversation"));
  if (from.number("has_joined") != 0) join_client();
  Pump::Rest to_server = rest_of(from.child("to_server"));
  Pump::Rest to_client = rest_of(from.child("to_client"));
  to_server_.begin_with(std::move(to_server));
  to_client_.begin_with(std::move(to_client));
  timeout_known_ = false;
  learn_client_timeout();
  return restore_held(from);
}

// The requests are shown to the conversation as they came.
Result<void> Session::restore_held(const SavedState& from) {
  std::vector<std::byte> wait;  // for answers, with new settings that do not hold so many
  for (const SavedState& each : from.list("held")) {
    const std::vector<std::byte> message = bytes_of(each.text("message"));
    if (!wait.empty()) {
      wait.insert(wait.end(), message.begin(), message.end());
      continue;
    }
    const Step step = conversation_->next(Sender::client, message);
    TimePoint arrival = {};
    saved_state::assign(arrival, each.number("arrival"));
    if (step.action == Step::Action::wait) {
      wait = message;
      continue;
    }
    if (step.size != message.size()) {
      return fail("a held request is not a whole message of the protocol");
    }
    if (step.action == Step::Action::hold) {
      hold(message, std::min(arrival, worker_.now()), true);
    } else if (step.action == Step::Action::forward) {
      to_server_.inject(message);  // the new settings do not hold it
    } else {
      return fail(fmt::format("a held request cannot be read: {}", conversation_->problem()));
    }
    if (closing_) return fail("a held request uses the tag of another one");
  }
  to_server_.put_back(wait);
  return {};
}

}  // namespace vpfs::proxy
