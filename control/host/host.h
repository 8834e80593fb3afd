#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "control/admin/host_names.h"
#include "control/admin/name_lookups.h"
#include "control/gate/stage_gate.h"
#include "control/host/administration.h"
#include "control/host/control_side.h"
#include "control/host/handed.h"
#include "control/host/live.h"
#include "control/host/program.h"
#include "control/host/status_file.h"
#include "net/manager/heartbeat.h"

namespace vpfs::control {

// What a program that is a stage has besides its I/O: the control port and the HTTP port, live
// rules and jobs, reloads of its configuration file, the status file, signals, and whatever is done
// from time to time. Belongs to the thread that calls run().
//
// A program makes its gate from the configuration in force (see Live), then the Host; it calls
// lock_status_file(), opens what clients reach it by, calls open() and then run().
class Host {
 public:
  struct Setup {
    ProgramName name;
    std::string file;  // the configuration file; reloads read it again
    HostNames& names;
    const Clock& clock;
    const Handed* handed = nullptr;  // by the process whose place this one takes; for the start
    // Listeners that are open already, if any, beside those; outlives the start.
    net::Inherited* inherited = nullptr;
  };

  // `program`, `gate`, and what `setup` refers to outlive it.
  Host(Program& program, StageGate& gate, Live live, const Setup& setup);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Keeps other programs off the status file. The error names the key, as that of open().
  [[nodiscard]] Result<void> lock_status_file();
  // Opens the ports, which serve from run() on. `address` names a stage that has no name. Ends what
  // was due before, unless it takes another process's place.
  [[nodiscard]] Result<void> open(const std::string& address);
  // Serves until stop(), then closes the ports. SIGTERM and SIGINT have the program drain, and end
  // it at once when it does already. SIGUSR1 writes the status file, SIGUSR2 opens the log file
  // and the audit log anew, SIGHUP reloads the configuration file.
  void run();
  void stop() { context_.stop(); }

  // A hand-over to another process. offer(): what that one needs; from then on nothing that it
  // tells changes, and administrators wait. withdraw() ends that. leave(): the other process has
  // taken over, and has the files and ports of this one. On the host's thread.
  struct Offer {
    SavedState state;
    std::vector<std::pair<std::string, int>> descriptors;
  };
  [[nodiscard]] Offer offer();
  // The listeners among those of an offer.
  [[nodiscard]] std::vector<std::pair<std::string, int>> listeners() const {
    return control_.descriptors();
  }
  void withdraw();
  void leave();
  // Where the stage is in a coordinator's cycles, for the other process; its take_on() is before
  // run(). From then on no cycle changes the stage, so it is saved after this.
  void save(SavedState& to);
  void take_on(const SavedState& from);

  // After run(), when the threads of the program have ended: writes the last status. A further
  // signal to end has no effect from then on.
  void finish();

  // Fills in what every program with a stage has: its name, its start, its coordinator.
  void describe(StatsReply& reply) const;
  // That of run(), for what belongs to the same thread.
  [[nodiscard]] asio::io_context& context() { return context_; }

 private:
  // What an administrator asks, of the program or of its stage.
  void ask(const Envelope& request, const Caller& caller, const Answer& answer);
  // Reads the file again, and takes it on if live rules fit it. Calls `then` with what changed.
  using Reloaded = std::function<void(Result<std::vector<std::string>> changed)>;
  void reload(Reloaded then);
  void upgrade(const Upgrade& request, const Caller& caller, const Answer& answer);
  [[nodiscard]] std::string status();
  [[nodiscard]] InForceReply in_force() const;

  // As administrators see it.
  [[nodiscard]] const std::string& shown_name() const {
    return config().name.empty() ? address_ : config().name;
  }
  [[nodiscard]] const HostConfig& config() const { return *live_.file; }
  // A configuration file as it was read.
  struct ReadFile {
    explicit ReadFile(const std::string& file) : errors(file) {}

    ConfigErrors errors;
    std::shared_ptr<const HostConfig> config;  // null: there are errors
    NotedNames::Answers names;                 // of the file, and of live rules beside it
    std::uint64_t number = 0;                  // of the reading
  };
  // Reads with the names that are kept, and looks none up.
  [[nodiscard]] std::shared_ptr<ReadFile> read_file();
  [[nodiscard]] Result<std::vector<std::string>> reload_now(ReadFile& read);
  // Reads the file again, and refuses it if it has a name whose meaning is not kept.
  [[nodiscard]] Result<std::vector<std::string>> reload_with_known_names();
  [[nodiscard]] Result<std::vector<std::string>> take_on(std::shared_ptr<const HostConfig> config);
  // Locks the status file of `config`. Returns nothing if that file is locked already.
  [[nodiscard]] Result<std::optional<StatusLock>> lock_status(const HostConfig& config) const;
  void await_signal();
  void begin_drain(std::string_view why);
  void write_status();
  void arm_status();
  void arm_retiring();
  void arm_ends();
  // Runs it now, or after a hand-over.
  void run_or_defer(std::function<void()> what);
  // Another process has taken over.
  static void refuse_late(const Answer& answer);

  Program& program_;
  StageGate& gate_;
  const Clock& clock_;
  const ProgramName name_;
  const std::string file_;
  HostNames& names_;
  Live live_;
  std::optional<Handed> handed_;         // until run()
  net::Inherited* inherited_ = nullptr;  // likewise
  WallTime started_;
  std::string address_;
  Reloads reloads_;
  std::uint64_t last_reading_ = 0;
  asio::io_context context_{1};
  NameLookups lookups_;
  asio::signal_set signals_;
  asio::steady_timer status_timer_;
  asio::steady_timer retire_timer_;
  asio::steady_timer ends_timer_;
  SnapshotReader snapshot_reader_;
  bool status_failed_ = false;
  StatusLock status_lock_;
  Administration administration_;
  ControlSide control_;
  net::Heartbeat heartbeat_;
  enum class Hand : std::uint8_t { none, offered, left };
  Hand hand_ = Hand::none;
  std::vector<std::function<void()>> deferred_;  // while it is offered
  struct Waiting {
    Envelope request;
    Caller caller;
    Answer answer;
  };
  std::vector<Waiting> waiting_;  // likewise
};

}  // namespace vpfs::control
