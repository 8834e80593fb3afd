#include "control/wire/owner.h"

#include <atomic>
#include <utility>

#include "control/wire/protocol.h"

namespace vpfs::control {

struct Answer::State {
  explicit State(std::function<void(Envelope)> to) : deliver(std::move(to)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (answered) return;
    Envelope answer;
    *answer.mutable_error() = make_error(Error::INTERNAL, "", "the request was not answered");
    deliver(std::move(answer));
  }

  std::function<void(Envelope)> deliver;
  std::atomic<bool> answered = false;
};

Answer::Answer(std::function<void(Envelope)> deliver)
    : state_(std::make_shared<State>(std::move(deliver))) {}

void Answer::operator()(Envelope answer) const {
  if (!state_->answered.exchange(true)) state_->deliver(std::move(answer));
}

void Answer::operator()(Error error) const {
  Envelope answer;
  *answer.mutable_error() = std::move(error);
  (*this)(std::move(answer));
}

void Answer::operator()(Ack ack) const {
  Envelope answer;
  *answer.mutable_ack() = std::move(ack);
  (*this)(std::move(answer));
}

}  // namespace vpfs::control
