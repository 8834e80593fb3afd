#include "control/handover/taker.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/result.h"
#include "base/signal_block.h"
#include "base/version.h"
#include "net/unix_socket.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAnswered = 5s;
// The process before goes on meanwhile, and a mount first copies what it knows.
constexpr Duration kOffered = 30s;
// What the other process takes beside restart.patience.
constexpr Duration kMore = 10s;
// How long it may take to say `go`, which is all that it does then.
constexpr Duration kGo = 5s;
constexpr Duration kBetweenReads = 200ms;

// The kernel tells which user made the socket. Another user's process would hand over what it
// likes.
Result<void> check_peer(const HandoverChannel& channel, const std::string& socket) {
  const Result<net::PeerCredentials> peer = net::peer_credentials(channel.native_handle());
  VPFS_TRY(peer);
  if (peer->uid == ::geteuid()) return {};
  return fail(
      fmt::format("{}: uid {} listens there, and this process has uid {}: start it as that "
                  "user",
                  socket, peer->uid, ::geteuid()));
}

}  // namespace

Result<Predecessor> Predecessor::meet(const std::string& socket) {
  Result<HandoverChannel> channel = HandoverChannel::dial(socket);
  VPFS_TRY(channel);
  VPFS_TRY(check_peer(*channel, socket));
  Predecessor made(std::move(*channel));
  SavedState hello;
  hello.set("least", kHandoverVersion);
  hello.set("most", kHandoverVersion);
  hello.set("program", std::string(version()));
  VPFS_TRY(made.channel_.send(HandoverKind::hello, hello, kAnswered));
  Result<HandoverMessage> offer = made.channel_.receive(kOffered);
  VPFS_TRY(offer);
  const SavedState::Values& names = offer->state.list("descriptors");
  if (offer->kind != HandoverKind::belongings || names.size() != offer->descriptors.size()) {
    return fail("the running program broke the protocol of hand-overs");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    made.inherited_.add(std::string(names[i].text("name")), std::move(offer->descriptors[i]));
  }
  made.offered_ = std::move(offer->state);
  return made;
}

void Predecessor::tell_failure(const std::string& why) {
  SavedState state;
  state.set("text", why);
  (void)channel_.send(HandoverKind::failed, state, kAnswered);
}

Result<void> Predecessor::receive_early(const std::function<Result<void>(Parcel parcel)>& take) {
  for (std::uint64_t left = offered_.number("early"); left > 0; --left) {
    Result<HandoverMessage> message = channel_.receive(kAnswered);
    VPFS_TRY(message);
    if (message->kind != HandoverKind::parcel) {
      return fail("the running program broke the protocol of hand-overs");
    }
    VPFS_TRY(
        take({.state = std::move(message->state), .descriptors = std::move(message->descriptors)}));
  }
  return {};
}

Result<void> Predecessor::tell_ready() {
  return channel_.send(HandoverKind::ready, {}, kAnswered);
}

Result<Predecessor::Everything> Predecessor::receive() {
  const auto waits = Duration(static_cast<std::int64_t>(offered_.number("patience")));
  const Duration patience = std::clamp<Duration>(waits, 0s, 1h) + kMore;
  Everything all;
  for (;;) {
    Result<HandoverMessage> message = channel_.receive(patience);
    VPFS_TRY(message);
    if (message->kind == HandoverKind::state) {
      if (message->state.number("connections") != all.parcels.size()) {
        return fail("parts are missing");
      }
      all.state = std::move(message->state);
      return all;
    }
    if (message->kind != HandoverKind::parcel) {
      return fail("the running program broke the protocol of hand-overs");
    }
    all.parcels.push_back(
        {.state = std::move(message->state), .descriptors = std::move(message->descriptors)});
  }
}

// Exactly one of the two is in charge: a `go` that comes after refuse_more() fails over there.
Result<void> Predecessor::tell_taken() {
  VPFS_TRY(channel_.send(HandoverKind::taken, {}, kAnswered));
  if (!channel_.is_readable(kGo)) channel_.refuse_more();
  const Result<HandoverMessage> go = channel_.receive(kAnswered);
  VPFS_TRY(go);
  if (go->kind != HandoverKind::go) return fail("the running program said something else than go");
  return {};
}

void Predecessor::stop() {
  rest_.request_stop();
  if (rest_.joinable()) rest_.join();
}

void Predecessor::receive_the_rest(Later later) {
  inherited_.clear();  // what this configuration has no use for
  const SignalBlock blocked;
  rest_ = std::jthread([this, later = std::move(later)](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!channel_.is_readable(kBetweenReads)) continue;
      Result<HandoverMessage> message = channel_.receive_some(kAnswered);
      if (!message) {
        // The other side would go on sending, and those connections would hang.
        spdlog::warn("the process before hands over no more: {}", message.error().message);
        channel_.close();
        return later.end(false);
      }
      if (message->kind == HandoverKind::end) return later.end(true);
      if (message->kind == HandoverKind::load) later.changes(message->state);
      if (message->kind != HandoverKind::parcel) continue;
      if (message->lacks_descriptors) {
        spdlog::error("a part of the process before is lost: this one may have no more open files");
        continue;
      }
      later.parcel(
          {.state = std::move(message->state), .descriptors = std::move(message->descriptors)});
    }
  });
}

}  // namespace vpfs::control
