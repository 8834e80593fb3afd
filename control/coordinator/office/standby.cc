#include "control/coordinator/office/standby.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/joined.h"
#include "base/json_text.h"
#include "base/result.h"
#include "base/system_clock.h"
#include "base/version.h"
#include "control/coordinator/config/certificates.h"
#include "control/coordinator/office/signals.h"
#include "control/members/view.h"
#include "control/metrics/families.h"
#include "control/metrics/http_source.h"
#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;
using control::Answer;
using control::Caller;
using control::Envelope;
using control::Leadership;
using control::make_error;
using control::SiteStore;
using Why = control::SiteStore::Why;

constexpr Duration kLook = 1s;            // from one look at the store to the next
constexpr Duration kWaitForChange = 30s;  // of the store's watch
constexpr Duration kClaimAgain = 500ms;   // when the store has not told the outcome
constexpr Duration kAfterDamage = 30s;  // before an office whose records cannot be read is claimed

control::Hello make_hello(const Config& config, std::uint64_t incarnation) {
  control::Hello hello;
  hello.set_role(control::Hello::COORDINATOR);
  hello.set_name(config.name);
  hello.set_incarnation(incarnation);
  hello.add_capabilities(std::string(control::kStandby));
  hello.set_program("vpfs-coordinator " + std::string(version()));
  return hello;
}

control::StoreCaller::Post post_to(asio::io_context& context) {
  return [&context](std::function<void()> what) { asio::post(context, std::move(what)); };
}

}  // namespace

Standby::Standby(const Parts& parts)
    : clock_(parts.clock),
      config_(parts.config),
      own_(parts.own),
      least_term_(parts.least_term),
      follow_(parts.follow),
      own_part_(parts.own_part),
      started_(wall_clock_now()),
      certificate_end_(first_certificate_end(config_)),
      hello_(make_hello(config_, own_.incarnation)),
      signals_(context_, parts.signals),
      heartbeat_(context_, control::turns_of(parts.own_part)),
      look_timer_(context_),
      store_(parts.store, post_to(context_)),
      watch_(parts.watch, post_to(context_)),
      candidacy_(parts.store.traits()) {}

Result<std::unique_ptr<Standby>> Standby::open(const Parts& parts) {
  std::unique_ptr<Standby> standby(new Standby(parts));
  // Its own control port has the certificate and the authority of the others' ports.
  const control::PortConfig& port = standby->config_.control;
  net::TlsFiles files = {.certificate = port.certificate, .key = port.key, .ca = port.ca};
  if (files.certificate.empty()) files = standby->config_.dialling;
  std::shared_ptr<net::TlsContext> tls;
  if (!files.certificate.empty()) {
    auto loaded = net::TlsContext::load(files, net::TlsSide::client);
    if (!loaded) return fail("control.certificate: " + loaded.error().message);
    tls = std::move(*loaded);
  }
  standby->leader_ = std::make_unique<LeaderWatch>(
      standby->context_, std::move(tls), [&standby = *standby](std::uint64_t term, bool is_gone) {
        spdlog::debug("the leader of term {} {}", term, is_gone ? "is gone" : "answers");
        if (!is_gone) return standby.candidacy_.found_alive(term);
        standby.candidacy_.found_gone(term, standby.clock_.now());
        standby.look();
      });
  VPFS_TRY(standby->open_ports());
  return standby;
}

Standby::~Standby() {
  if (leader_ != nullptr) leader_->stop();
  if (port_ != nullptr) port_->stop();
  http_.close();
  store_.end();
  watch_.end();
}

Result<void> Standby::open_ports() {
  control::HttpSource source;
  source.not_ready = [] { return std::string(); };
  source.metrics = [this](std::function<void(control::HttpSource::MakeText)> give) {
    asio::post(context_, [this, give = std::move(give)] {
      auto text = [text = metrics()] { return text; };
      if (own_part_ != nullptr) return own_part_->give_metrics(std::move(text), give);
      give(std::move(text));
    });
  };
  source.ask = control::ask_of(*this);
  source.is_site = true;
  auto http = control::HttpPorts::open(config_.http, config_.control, source,
                                       std::string(version()), clock_);
  VPFS_TRY(http);
  http_ = std::move(*http);
  if (!config_.control.enabled()) return {};
  auto port = control::Port::open(config_.control, *this, clock_);
  VPFS_TRY(port);
  port_ = std::move(*port);
  return {};
}

std::optional<Elected> Standby::run() {
  signals_.start([this](int signal) { take_signal(signal); });
  if (port_ != nullptr) port_->start();
  look();
  wait_for_change();
  heartbeat_.start();
  context_.run();
  leader_->stop();
  if (port_ != nullptr) port_->stop();
  http_.close();
  return std::move(elected_);
}

void Standby::take_signal(int signal) {
  if (goes_on_after(signal)) {
    if (signal == SIGUSR2 && port_ != nullptr) port_->reopen_audit();
    return;
  }
  spdlog::info("{}: ending", signal == SIGTERM ? "SIGTERM" : "SIGINT");
  heartbeat_.ending();
  context_.stop();
}

void Standby::look() {
  if (is_claiming_ || std::exchange(is_looking_, true)) return;
  const TimePoint asked = clock_.now();
  store_.ask([](SiteStore& store) { return store.look(); },
             [this, asked](SiteStore::Outcome<SiteStore::Seen> seen) {
               is_looking_ = false;
               if (seen) {
                 if (!std::exchange(trouble_, "").empty()) spdlog::info("store: it answers again");
                 candidacy_.saw(std::move(*seen), asked, clock_.now());
                 note_leader();
               } else {
                 note_trouble(seen.error());
               }
               consider();
               if (!is_claiming_) look_later();
             });
}

void Standby::look_later() {
  look_timer_.expires_after(std::min<Duration>(kLook, store_.traits().lease / 4));
  look_timer_.async_wait([this](std::error_code error) {
    if (!error) look();
  });
}

void Standby::wait_for_change() {
  watch_.ask(
      [](SiteStore& store) {
        store.wait(kWaitForChange);
        return true;
      },
      [this](bool /*has_waited*/) {
        look();
        wait_for_change();
      });
}

void Standby::consider() {
  const TimePoint now = clock_.now();
  if (is_claiming_ || !candidacy_.claims(now)) return;
  if (claims_from_ && now < *claims_from_) return;
  is_claiming_ = true;
  own_.term = first_term();
  // Those after this one have to wait for caps of those before it, too.
  if (const auto& before = candidacy_.seen()->leader) {
    own_.lease = std::max(own_.lease, before->lease);
    own_.transit = std::max(own_.transit, before->transit);
  }
  claim(*candidacy_.seen());
}

std::uint64_t Standby::first_term() const {
  const std::uint64_t least = std::max(candidacy_.seen()->least_term, least_term_);
  const auto& before = candidacy_.seen()->leader;
  const bool has_epochs = config_.members || (before && !before->members.empty());
  return has_epochs ? members::term_of_members(least) : least;
}

void Standby::claim(SiteStore::Seen seen) {
  store_.ask(
      [seen, own = own_, &clock = clock_](SiteStore& store) -> SiteStore::Outcome<Claimed> {
        if (const auto claimed = store.claim(seen, own); !claimed) {
          return std::unexpected(claimed.error());
        }
        auto loaded = store.load();
        if (!loaded) return std::unexpected(loaded.error());
        // That may have taken a while.
        const TimePoint confirmed = clock.now();
        if (const auto outcome = store.confirm(); !outcome) {
          return std::unexpected(outcome.error());
        }
        return Claimed{.records = std::move(*loaded), .confirmed = confirmed};
      },
      [this, seen](SiteStore::Outcome<Claimed> outcome) { claimed(seen, std::move(outcome)); });
}

void Standby::claimed(const SiteStore::Seen& seen, SiteStore::Outcome<Claimed> outcome) {
  const TimePoint now = clock_.now();
  if (outcome) {
    const bool is_gone =
        candidacy_.leader_is_gone() && seen.leader && !seen.leader->addresses.empty();
    elected_.emplace(Elected{.own = own_,
                             .tenure = election::Tenure(store_.traits().lease, outcome->confirmed),
                             .clear_from = candidacy_.clear_from(seen, now),
                             .records = std::move(outcome->records),
                             .gone_member = is_gone ? seen.leader->addresses.front() : ""});
    return context_.stop();
  }
  if (outcome.error().why == Why::unreachable) {
    // It may have been carried out. The same again is carried out once.
    note_trouble(outcome.error());
    look_timer_.expires_after(kClaimAgain);
    return look_timer_.async_wait([this, seen](std::error_code error) {
      if (!error) claim(seen);
    });
  }
  is_claiming_ = false;
  if (outcome.error().why == Why::lost) {
    candidacy_.lost(now);
  } else {
    note_trouble(outcome.error());
    claims_from_ = now + kAfterDamage;
  }
  look();
}

void Standby::note_leader() {
  const Leadership* const leader = candidacy_.leader();
  leader_->watch(leader);
  if (follow_ != nullptr) follow_(leader);
  const std::uint64_t term = leader == nullptr ? 0 : leader->term;
  if (std::exchange(has_told_, true) && term == told_term_) return;
  told_term_ = term;
  spdlog::info("{}", who_leads());
  if (config_.members && leader != nullptr && leader->members.empty()) {
    spdlog::warn(
        "members: the one that leads has no such key in its configuration, so this one "
        "serves no stages");
  }
}

void Standby::note_trouble(const SiteStore::Failure& failure) {
  if (follow_ != nullptr) follow_(nullptr);
  if (std::exchange(trouble_, failure.text) == failure.text) return;
  spdlog::error("store: {}; it is asked again", failure.text);
}

std::string Standby::who_leads() const {
  const Leadership* const leader = candidacy_.leader();
  if (leader == nullptr) return "this coordinator is a standby: at present none leads";
  const std::string where =
      leader->addresses.empty() ? "another one" : joined(leader->addresses, " or ");
  return fmt::format("this coordinator is a standby: {} leads, with term {}", where, leader->term);
}

void Standby::ask(Envelope request, const Caller& /*caller*/, Answer answer) {
  asio::post(context_, [this, request = std::move(request), answer = std::move(answer)] {
    this->answer(request, answer);
  });
}

void Standby::answer(const Envelope& request, const Answer& answer) const {
  if (!request.has_status()) {
    return answer(make_error(control::Error::UNAVAILABLE, "leader", who_leads()));
  }
  if (own_part_ != nullptr) return own_part_->answer_status(status(), answer);
  Envelope reply;
  reply.mutable_status_reply()->set_json(status());
  answer(std::move(reply));
}

std::unique_ptr<control::Link> Standby::make_link(const Caller& /*caller*/) {
  return std::make_unique<control::Link>();
}

void Standby::cycle(const control::Cycle& /*cycle*/, control::Link& /*link*/,
                    control::CycleAnswer& answer) {
  answer.report.set_applied(false);
  *answer.report.mutable_refused() =
      make_error(control::Error::UNSUPPORTED, "", "this port is for administrators");
}

std::string Standby::status() const {
  using nlohmann::ordered_json;
  ordered_json status;
  status["pid"] = ::getpid();
  status["name"] = config_.name;
  status["program"] = hello_.program();
  status["started_at"] = started_.time_since_epoch().count();
  status["policy"] = config_.policy;
  status["standby"] = true;
  ordered_json leader;
  if (const Leadership* const leads = candidacy_.leader()) {
    leader["term"] = leads->term;
    leader["addresses"] = leads->addresses;
  }
  status["leader"] = std::move(leader);
  status["store"] = {{"problem", trouble_}};
  if (certificate_end_) status["certificate_ends_at"] = seconds_since_epoch(*certificate_end_);
  return json_text(status, 2) + "\n";
}

std::string Standby::metrics() const {
  control::Families families;
  families.gauge("vpfs_coordinator_info", "1; the labels tell what runs here.");
  families.set(
      {{"name", config_.name}, {"policy", config_.policy}, {"version", std::string(version())}}, 1);
  families.gauge("vpfs_coordinator_leads", "1 if this coordinator leads, 0 if it is a standby.");
  families.set({}, 0);
  families.gauge("vpfs_coordinator_store_works", "Whether the store of rules and jobs answers.");
  families.set({}, trouble_.empty() ? 1 : 0);
  control::add_certificate_end(families, certificate_end_);
  return families.text();
}

}  // namespace vpfs::coordinator
