#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/wire/client_session.h"
#include "control/wire/port_address.h"
#include "net/async.h"

namespace vpfs::control {

// The client's side of a connection to the one of several coordinators that leads. All are asked
// side by side which of them that is. A lost connection is made anew. Belongs to one strand; one
// coroutine at a time asks.
class LeaderSession {
 public:
  // With one address it has the time and the errors of a ClientSession.
  LeaderSession(std::vector<PortAddress> addresses, ClientOptions options);

  // What the leader said of itself; null while it is not connected.
  [[nodiscard]] const Hello* hello() const;

  // The first answer; an answer that is an Error is a Failure. If none leads, it is not `reached`,
  // and its text says what each of them said.
  //
  // One that is alone is asked for its Status also if it is a standby.
  //
  // If the leader does not lead any more, it is looked for again, once: it has done nothing. If its
  // connection is lost, that is so for requests that change nothing.
  [[nodiscard]] net::Task<Reply<Envelope>> ask(Envelope request, Duration patience);

 private:
  struct Search;
  // `takes_standby`: a standby will do.
  [[nodiscard]] net::Task<Reply<void>> connect(bool takes_standby);
  [[nodiscard]] static net::Task<> try_one(std::shared_ptr<Search> search, std::size_t which,
                                           PortAddress address, ClientOptions options);
  [[nodiscard]] bool may_ask_again(const Failure& failure, const Envelope& request) const;
  [[nodiscard]] Failure not_led(const Search& search) const;

  const std::vector<PortAddress> addresses_;
  ClientOptions options_;
  std::unique_ptr<ClientSession> session_;  // with the leader
};

}  // namespace vpfs::control
