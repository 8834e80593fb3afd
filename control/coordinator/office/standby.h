#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "control/coordinator/config/config.h"
#include "control/coordinator/office/elected.h"
#include "control/coordinator/office/leader_watch.h"
#include "control/election/candidacy.h"
#include "control/metrics/http_ports.h"
#include "control/metrics/own_part.h"
#include "control/store/store_thread.h"
#include "control/wire/owner.h"
#include "control/wire/port.h"
#include "net/manager/heartbeat.h"
#include "net/signal_queue.h"

namespace vpfs::coordinator {

// A coordinator that does not lead. It looks at the store and watches the leader, and takes the
// office when it can. Stages cannot reach it. Administrators are told which one leads. One thread;
// the ports have threads of their own and post what they are asked.
class Standby final : private control::Owner {
 public:
  struct Parts {
    const Clock& clock;
    const Config& config;
    control::StoreThread& store;
    control::StoreThread& watch;      // the same store again: it waits for changes
    const net::SignalQueue& signals;  // SIGTERM, SIGINT, SIGUSR2
    control::Leadership own;          // without a term
    std::uint64_t least_term = 0;
    // Told of each leader that is seen, and with null that none is known; null: it is not asked
    // for.
    std::function<void(const control::Leadership*)> follow = {};
    control::OwnPart* own_part = nullptr;  // as SiteAdministration::Parts has it
  };

  // All parts outlive it. The ports are open. The error names the key of the configuration.
  [[nodiscard]] static Result<std::unique_ptr<Standby>> open(const Parts& parts);
  ~Standby() override;

  // Serves until it is elected; nothing: until SIGTERM or SIGINT.
  [[nodiscard]] std::optional<Elected> run();
  // This process has led until now.
  void has_lost() { candidacy_.lost(clock_.now()); }

 private:
  explicit Standby(const Parts& parts);
  [[nodiscard]] Result<void> open_ports();
  void take_signal(int signal);

  void look();
  void look_later();
  void wait_for_change();
  void consider();
  [[nodiscard]] std::uint64_t first_term() const;
  void claim(control::SiteStore::Seen seen);
  struct Claimed {
    control::StateStore::Loaded records;
    TimePoint confirmed;  // when the last confirmation began
  };
  void claimed(const control::SiteStore::Seen& seen, control::SiteStore::Outcome<Claimed> outcome);
  // Tells of another leader, or of none.
  void note_leader();
  void note_trouble(const control::SiteStore::Failure& failure);

  // control::Owner, on the threads of the ports.
  [[nodiscard]] control::Hello hello() const override { return hello_; }
  void ask(control::Envelope request, const control::Caller& caller,
           control::Answer answer) override;
  [[nodiscard]] std::unique_ptr<control::Link> make_link(const control::Caller& caller) override;
  void cycle(const control::Cycle& cycle, control::Link& link,
             control::CycleAnswer& answer) override;

  void answer(const control::Envelope& request, const control::Answer& answer) const;
  [[nodiscard]] std::string who_leads() const;
  [[nodiscard]] std::string status() const;
  [[nodiscard]] std::string metrics() const;

  const Clock& clock_;
  const Config& config_;
  control::Leadership own_;
  const std::uint64_t least_term_;
  const std::function<void(const control::Leadership*)> follow_;
  control::OwnPart* const own_part_;
  const WallTime started_;
  const std::optional<WallTime> certificate_end_;  // of those in use: files may be newer
  const control::Hello hello_;
  asio::io_context context_{1};
  net::SignalReader signals_;
  net::Heartbeat heartbeat_;
  asio::steady_timer look_timer_;
  control::StoreCaller store_;
  control::StoreCaller watch_;
  election::Candidacy candidacy_;
  std::unique_ptr<LeaderWatch> leader_;
  std::uint64_t told_term_ = 0;  // the leader that the log has; 0: none
  bool has_told_ = false;
  std::string trouble_;  // what the store did not do; "": it works
  bool is_looking_ = false;
  bool is_claiming_ = false;
  std::optional<TimePoint> claims_from_;  // it claims nothing before
  std::optional<Elected> elected_;
  std::unique_ptr<control::Port> port_;
  control::HttpPorts http_;
};

}  // namespace vpfs::coordinator
