#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "control/wire/control.pb.h"
#include "control/wire/rights.h"

namespace vpfs::control {

// Where the answer to one request goes. A copyable handle that any thread may use.
//
// The first call counts. If all copies are gone without one, the caller gets INTERNAL. An answer
// whose connection or port is gone is dropped.
class Answer {
 public:
  // `deliver` is called once, on the thread that answers.
  explicit Answer(std::function<void(Envelope)> deliver);
  // Needs only the body; the rest of the Envelope is set here.
  void operator()(Envelope answer) const;
  void operator()(Error error) const;
  void operator()(Ack ack) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the copies share it
};

// What an owner keeps for each connection of a coordinator: which flows were announced, what was
// sent last.
class Link {
 public:
  Link() = default;
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
};

struct CycleAnswer {
  Flows flows;  // sent before the report if there are any
  Report report;
};

// The stage behind a port. The port calls it on the port's thread, and has checked the caller's
// rights.
class Owner {
 public:
  virtual ~Owner() = default;

  // What the stage says of itself; the port fills in the versions.
  [[nodiscard]] virtual Hello hello() const = 0;

  // A request of an administrator: Rule, Job, Stats, Why, Status, Reload, Drain, Bypass or Forward.
  // Must not block; answers at once or later, from any thread. The answer to a caller with
  // Rights::own must have its own jobs alone. A Watch comes as one Stats each period.
  virtual void ask(Envelope request, const Caller& caller, Answer answer) = 0;

  [[nodiscard]] virtual std::unique_ptr<Link> make_link(const Caller& caller) = 0;
  // Quick: microseconds, at most a millisecond. `answer` is empty; its memory is used again. The
  // port sets the report's sequence and term.
  virtual void cycle(const Cycle& cycle, Link& link, CycleAnswer& answer) = 0;
};

}  // namespace vpfs::control
