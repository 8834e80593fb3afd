#include "control/host/host.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/joined.h"
#include "base/log/log.h"
#include "base/result.h"
#include "base/signal_block.h"
#include "base/system_clock.h"
#include "control/host/start_pages.h"
#include "control/wire/protocol.h"

namespace vpfs::control {
namespace {
// How often idle virtual PFSes are retired.
constexpr Duration kLeastRetiring = std::chrono::milliseconds(100);
constexpr Duration kMostRetiring = std::chrono::minutes(1);
constexpr Duration kEndsInterval = std::chrono::seconds(1);

void acknowledge(const Answer& answer, std::string text) {
  Ack ack;
  ack.set_text(std::move(text));
  answer(std::move(ack));
}

}  // namespace

Host::Host(Program& program, StageGate& gate, Live live, const Setup& setup)
    : program_(program),
      gate_(gate),
      clock_(setup.clock),
      name_(setup.name),
      file_(setup.file),
      names_(setup.names),
      live_(std::move(live)),
      started_(wall_clock_now()),
      lookups_(context_, clock_, names_),
      signals_(context_, SIGTERM, SIGINT, SIGUSR1),
      status_timer_(context_),
      retire_timer_(context_),
      ends_timer_(context_),
      administration_(
          {.live = *live_.state,
           .gate = gate_,
           .program = program_,
           .names = names_,
           .look_up =
               [this](const WantedNames& names, NameLookups::For what, NameLookups::Done done) {
                 auto then = [this, done = std::move(done)](const std::optional<std::string>& why) {
                   run_or_defer([done, why] { done(why); });
                 };
                 lookups_.fetch(names, std::move(then), what);
               },
           .clock = clock_,
           .now = wall_clock_now,
           .history = std::move(live_.history),
           .term = [this] { return control_.term(); }}),
      control_([this](const Envelope& request, const Caller& caller,
                      const Answer& answer) { ask(request, caller, answer); },
               gate_,
               {.name = std::string(name_.program),
                .not_ready =
                    [this] {
                      return program_.draining() ? fmt::format("the {} is draining", name_.role)
                                                 : "";
                    },
                .accounts = accounts_of(names_)},
               context_, clock_),
      heartbeat_(
          context_, [this] { return program_.has_turned(); }, setup.handed != nullptr,
          program_.serves_by_itself() ? net::Heartbeat::Beats::without_it
                                      : net::Heartbeat::Beats::with_the_context) {
  signals_.add(SIGHUP);
  signals_.add(SIGUSR2);
  let_in_asking_signals();
  inherited_ = setup.handed == nullptr ? setup.inherited : &setup.handed->inherited;
  if (setup.handed == nullptr) return;
  handed_.emplace(*setup.handed);
  const SavedState& offered = handed_->offered;
  control_.take_the_place_of(offered.number("incarnation", control_.incarnation()));
  started_ = WallTime(std::chrono::seconds(
      offered.number("started_at", static_cast<std::uint64_t>(seconds_since_epoch(started_)))));
}

Host::~Host() = default;

Result<void> Host::lock_status_file() {
  Result<std::optional<StatusLock>> lock = lock_status(config());
  VPFS_TRY(lock);
  if (*lock) status_lock_ = std::move(**lock);
  return {};
}

Result<void> Host::open(const std::string& address) {
  address_ = address;
  set_log_name(shown_name());
  if (!handed_) administration_.tick();
  return control_.open(config(), address_, inherited_);
}

void Host::run() {
  if (handed_) {
    live_.state->catch_up();
    administration_.tick();
  }
  handed_.reset();
  inherited_ = nullptr;
  status_lock_.name_holder();
  if (const Result<void> started = control_.start(); !started) {
    spdlog::error("control port: {}", started.error().message);
  }
  await_signal();
  write_status();
  arm_status();
  arm_retiring();
  arm_ends();
  heartbeat_.start();
  unmap_start_pages();
  context_.run();
  heartbeat_.end_beats();
  control_.stop();
}

void Host::finish() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  if (hand_ == Hand::left) return;
  administration_.finish();
  write_status();
}

void Host::await_signal() {
  signals_.async_wait([this](std::error_code error, int signal) {
    if (error) return;
    if (signal == SIGUSR1) {
      write_status();
    } else if (signal == SIGUSR2) {
      reopen_log();
      control_.reopen_audit();
    } else if (signal == SIGHUP) {
      run_or_defer([this] { reload([](const auto&) {}); });  // it is in the log
    } else if (program_.draining()) {
      spdlog::warn("second signal: ending without waiting for outstanding requests");
      stop();
      return;
    } else {
      begin_drain(signal == SIGTERM ? "SIGTERM" : "SIGINT");
    }
    await_signal();
  });
}

void Host::begin_drain(std::string_view why) {
  if (program_.draining()) return;
  heartbeat_.ending();
  program_.drain(why);
}

void Host::ask(const Envelope& request, const Caller& caller, const Answer& answer) {
  if (hand_ == Hand::left) return refuse_late(answer);
  if (hand_ == Hand::offered) {
    waiting_.push_back({.request = request, .caller = caller, .answer = answer});
    return;
  }
  switch (request.body_case()) {
    case Envelope::kStatus: {
      Envelope reply;
      reply.mutable_status_reply()->set_json(status());
      return answer(std::move(reply));
    }
    case Envelope::kInForce: {
      Envelope reply;
      *reply.mutable_in_force_reply() = in_force();
      return answer(std::move(reply));
    }
    case Envelope::kReload:
      return reload([answer](const Result<std::vector<std::string>>& changed) {
        if (!changed) return answer(make_error(Error::INVALID, "", changed.error().message));
        acknowledge(answer, changed->empty() ? "nothing has changed" : joined(*changed, "\n"));
      });
    case Envelope::kDrain:
      begin_drain("an administrator asked for it");
      return acknowledge(answer,
                         "draining: outstanding requests may finish, then the program ends");
    case Envelope::kUpgrade:
      return upgrade(request.upgrade(), caller, answer);
    default:
      return administration_.ask(request, caller, answer);
  }
}

std::string Host::status() {
  return program_.status({.reloads = reloads_,
                          .snapshot = snapshot_reader_.read(gate_, clock_.now()),
                          .coordinator = control_.coordinator(),
                          .certificate_end = control_.certificate_end()});
}

InForceReply Host::in_force() const {
  InForceReply reply;
  reply.set_name(shown_name());
  reply.set_program(std::string(name_.program));
  reply.set_file_name(file_);
  reply.set_file(config().file_text);
  reply.set_book(live_.state->book().snapshot());
  for (const stage::Address& each : config().node_addresses) {
    reply.add_node_addresses(each.bytes().data(), each.bytes().size());
  }
  return reply;
}

void Host::describe(StatsReply& reply) const {
  reply.set_name(shown_name());
  reply.set_started_at(started_.time_since_epoch().count());
  reply.set_draining(program_.draining());
  const std::optional<DialledCoordinator> coordinator = control_.coordinator();
  if (coordinator) *reply.mutable_coordinator() = to_message(*coordinator);
  if (const auto end = control_.certificate_end()) {
    reply.set_certificate_ends_at(seconds_since_epoch(*end));
  }
}

void Host::write_status() {
  const std::string& path = config().status_file;
  // What is handed over is not changed, and the file may be on a mount that waits for its new
  // process.
  if (path.empty() || hand_ != Hand::none) return;
  const Result<void> written = write_status_file(path, status());
  // A full disk is logged once, and once more when it has room.
  if (!written && !status_failed_) spdlog::error("{}", written.error().message);
  if (written && status_failed_) spdlog::info("status file {} is written again", path);
  status_failed_ = !written;
}

void Host::arm_status() {
  if (config().status_file.empty()) return;
  status_timer_.expires_after(config().status_interval);
  status_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    write_status();
    arm_status();
  });
}

// Idle virtual PFSes are to go soon after their time.
void Host::arm_retiring() {
  const Duration often = std::clamp<Duration>(config().idle / 8, kLeastRetiring, kMostRetiring);
  retire_timer_.expires_after(often);
  retire_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    gate_.retire_idle(clock_.now());
    arm_retiring();
  });
}

// Live rules, jobs, confirmations and a bypass end by the time of day.
void Host::arm_ends() {
  ends_timer_.expires_after(kEndsInterval);
  ends_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    if (hand_ == Hand::none) administration_.tick();
    arm_ends();
  });
}

}  // namespace vpfs::control
