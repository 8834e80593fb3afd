#include "proxy/client_turns.h"

#include <algorithm>
#include <utility>

namespace vpfs::proxy {

bool ClientTurns::take(const Ticket& ticket, TimePoint now, Duration client_stall) {
  expire(now, client_stall);
  if (current_ == ticket) return true;
  const bool is_first = waiting_.empty() || ticket <= *waiting_.begin();
  if (current_ || now < pauses_until_ || !is_first) {
    waiting_.insert(ticket);
    return false;
  }
  waiting_.erase(ticket);
  current_ = ticket;
  begun_ = now;
  return true;
}

void ClientTurns::expire(TimePoint now, Duration client_stall) {
  if (current_ && now - begun_ >= client_stall) end_turn(now, client_stall);
}

void ClientTurns::end(const Ticket& ticket, TimePoint now, Duration client_stall) {
  if (current_ == ticket) end_turn(now, client_stall);
}

void ClientTurns::end_turn(TimePoint now, Duration client_stall) {
  current_.reset();
  pauses_until_ = now + std::min(std::exchange(owed_, Duration::zero()), client_stall);
}

}  // namespace vpfs::proxy
