#include "control/handover/giver.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system_clock.h"
#include "base/units.h"
#include "base/version.h"
#include "control/handover/channel.h"
#include "net/manager/manager_socket.h"
#include "net/unix_socket.h"

namespace vpfs::control {
namespace {

constexpr Duration kAnswer = std::chrono::seconds(1);
constexpr int kLookMilliseconds = 1;
constexpr Duration kBetweenChanges = std::chrono::milliseconds(20);

TimePoint now() {
  return SystemClock().now();
}

SavedState text_state(std::string_view text) {
  SavedState state;
  state.set("text", std::string(text));
  return state;
}

// Only root and the user of this process may take over.
Result<int> check_peer(int socket) {
  const Result<net::PeerCredentials> peer = net::peer_credentials(socket);
  VPFS_TRY(peer);
  if (peer->uid == 0 || peer->uid == ::geteuid()) return peer->pid;
  return fail(
      fmt::format("uid {} may not take over: only root and uid {} may", peer->uid, ::geteuid()));
}

class Giver {
 public:
  Giver(GivingProgram& program, net::Descriptor socket, const HandoverTimes& times)
      : program_(program), channel_(std::move(socket)), times_(times) {}

  Result<HandedOver> up_to_go() {
    const Result<int> pid = check_peer(channel_.native_handle());
    if (!pid) {
      (void)channel_.send(HandoverKind::refused, text_state(pid.error().message), kAnswer);
      return std::unexpected(pid.error());
    }
    done_.pid = *pid;
    process_ = net::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
    VPFS_TRY(greet());
    const Belongings belongings = program_.offer();
    const std::vector<PackedParcel> early = program_.early();
    Result<void> handed = send(belongings, early.size());
    if (handed) handed = send(early, times_.ready);
    if (handed) handed = await(HandoverKind::ready, times_.ready, "to be ready");
    if (handed) handed = give_frozen();
    if (!handed) {
      program_.withdraw();
      return std::unexpected(tell(handed.error()));
    }
    return done_;
  }

  // Sends what comes to a boundary later, until nothing is left.
  void send_the_rest() {
    const TimePoint end = program_.may_close_parts() ? now() + times_.drain : kNever;
    while (program_.left() > 0 && now() < end) {
      bool arrive = true;
      for (PackedParcel& each : program_.wait_for_more(kBetweenChanges)) {
        arrive = arrive &&
                 channel_.send(HandoverKind::parcel, each.state, each.descriptors, times_.taken)
                     .has_value();
        if (each.sent) each.sent(arrive);
      }
      if (!arrive || !send_changes()) return keep_the_rest(end);
    }
    if (!send_changes()) return keep_the_rest(end);
    const std::size_t left = program_.left();
    if (left > 0) {
      spdlog::warn("restart.drain: {} {} came to no boundary within {}: they are closed", left,
                   program_.kind_of_parts(), vpfs::to_string(times_.drain));
    }
    (void)channel_.send(HandoverKind::end, {}, kAnswer);
  }

 private:
  Result<void> greet() {
    Result<HandoverMessage> hello = channel_.receive(times_.hello);
    VPFS_TRY(hello);
    const std::uint64_t least = hello->state.number("least");
    const std::uint64_t most = hello->state.number("most");
    const bool fits =
        hello->kind == HandoverKind::hello && least <= kHandoverVersion && kHandoverVersion <= most;
    if (fits) return {};
    const std::string text =
        fmt::format("the program hands over by version {}, and {} by versions {} to {}",
                    kHandoverVersion, hello->state.text("program"), least, most);
    (void)channel_.send(HandoverKind::refused, text_state(text), kAnswer);
    return fail(text);
  }

  Result<void> send(const Belongings& belongings, std::size_t early) {
    if (belongings.descriptors.size() > HandoverChannel::kMostDescriptors) {
      return fail("too many listeners and locks for one message");
    }
    SavedState state = belongings.state;
    SavedState::Values& names = state.add_list("descriptors");
    std::vector<int> descriptors;
    for (const auto& [name, descriptor] : belongings.descriptors) {
      names.emplace_back().set("name", name);
      descriptors.push_back(descriptor);
    }
    state.set("version", kHandoverVersion);
    state.set("patience", static_cast<std::uint64_t>(times_.patience.count()));
    state.set("program", std::string(version()));
    state.set("early", std::uint64_t{early});
    return channel_.send(HandoverKind::belongings, state, descriptors, times_.hello);
  }

  Result<void> send(const std::vector<PackedParcel>& parcels, Duration patience) {
    for (const PackedParcel& each : parcels) {
      VPFS_TRY(channel_.send(HandoverKind::parcel, each.state, each.descriptors, patience));
    }
    return {};
  }

  Result<void> await(HandoverKind kind, Duration patience, std::string_view what) {
    const Result<HandoverMessage> message = channel_.receive(patience);
    if (!message) {
      return fail(fmt::format("waited for the new program {}: {}", what, message.error().message),
                  message.error().code);
    }
    if (message->kind != kind) return fail("the new program broke the protocol of hand-overs");
    if (std::string why = program_.why_not(); !why.empty()) return fail(std::move(why));
    return {};
  }

  Result<void> give_frozen() {
    const TimePoint begin = now();
    program_.freeze();
    while (program_.outstanding() > 0 && now() - begin < times_.patience) {
      (void)::poll(nullptr, 0, kLookMilliseconds);
    }
    Result<void> given = give_packed(begin + times_.patience + times_.taken);
    if (!given) {
      program_.thaw();
      return given;
    }
    done_.paused = now() - begin;
    // The new process may be slow to say it, and this one may end at once.
    net::tell_main_process(done_.pid);
    program_.leave(done_);
    return {};
  }

  // Nothing is dispatched meanwhile, so one deadline holds for all of it.
  Result<void> give_packed(TimePoint end) {
    const auto left = [end] { return std::max(end - now(), Duration::zero()); };
    Result<std::vector<PackedParcel>> packed = program_.pack();
    VPFS_TRY(packed);
    for (PackedParcel& each : *packed) {
      VPFS_TRY(channel_.send(HandoverKind::parcel, each.state, each.descriptors, left()));
      each.state = SavedState();  // held requests may be much
    }
    Result<SavedState> state = program_.state(end);
    VPFS_TRY(state);
    state->set("connections", std::uint64_t{packed->size()});
    VPFS_TRY(channel_.send(HandoverKind::state, *state, left()));
    VPFS_TRY(await(HandoverKind::taken, left(), "to take everything on"));
    done_.parcels = packed->size();
    return channel_.send(HandoverKind::go, {}, kAnswer);
  }

  // The new program is told why, if it is there. It may have said something itself before it ended.
  vpfs::Error tell(vpfs::Error why) {
    if (why.code && channel_.is_readable(Duration::zero())) {
      const Result<HandoverMessage> said = channel_.receive(kAnswer);
      if (!said && !said.error().code) why.message = said.error().message;
    }
    (void)channel_.send(HandoverKind::failed, text_state(why.message), kAnswer);
    return why;
  }

  bool send_changes() {
    // The other side says nothing, so what can be read is its end.
    if (channel_.is_readable(Duration::zero())) return false;
    std::optional<SavedState> changes = program_.changes();
    return !changes || channel_.send(HandoverKind::load, *changes, times_.taken).has_value();
  }

  // Nothing can be sent any more, half a message least of all. What has stayed ends its messages
  // here as long as the other process runs: a start after it needs the locks, which both have.
  void keep_the_rest(TimePoint end) {
    channel_.close();
    if (runs()) {
      spdlog::error(
          "the program that took over does not take the rest; {} {} that had stayed are closed "
          "when "
          "they come to a boundary",
          program_.left(), program_.kind_of_parts());
    }
    while (runs() && program_.left() > 0 && now() < end) {
      for (PackedParcel& each : program_.wait_for_more(kBetweenChanges)) {
        if (each.sent) each.sent(false);
      }
    }
    if (runs()) return;
    spdlog::error("the program that took over is gone; {} {} that had stayed are closed",
                  program_.left(), program_.kind_of_parts());
  }

  [[nodiscard]] bool runs() const {
    pollfd entry = {.fd = process_.get(), .events = POLLIN, .revents = 0};
    return process_ && ::poll(&entry, 1, 0) == 0;
  }

  GivingProgram& program_;
  HandoverChannel channel_;
  const HandoverTimes times_;
  HandedOver done_;
  net::Descriptor process_;  // which takes over; readable when it has ended
};

}  // namespace

Result<HandedOver> hand_over(GivingProgram& program, net::Descriptor socket,
                             const HandoverTimes& times) {
  Giver giver(program, std::move(socket), times);
  Result<HandedOver> done = giver.up_to_go();
  if (done) giver.send_the_rest();
  return done;
}

}  // namespace vpfs::control
