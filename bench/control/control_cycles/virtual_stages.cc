#include "bench/control/control_cycles/virtual_stages.h"

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace vpfs::bench {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} << 10U;
constexpr std::size_t kSignals = ~std::size_t{0};
constexpr int kRedial = 5;  // milliseconds

std::unique_ptr<control::FrameReader> make_reader() {
  return std::make_unique<control::FrameReader>(control::kMostAnswer);
}

// Tells apart allocations that differ in a cap.
std::uint64_t digest(const control::Allocation& allocation) {
  std::uint64_t sum = allocation.bytes_per_second();
  sum = sum * 1'000'003 + allocation.operations_per_second();
  sum = sum * 1'000'003 + allocation.metadata_operations_per_second();
  return sum * 1'000'003 + allocation.elsewhere_total();
}

}  // namespace

VirtualStages::VirtualStages(const StagesPlan& plan, const TlsClient* tls, const Clock& clock,
                             const net::Descriptor& signals)
    : plan_(plan),
      tls_(tls),
      clock_(clock),
      messages_(static_cast<std::uint64_t>(clock.now().time_since_epoch().count())),
      stages_(plan.stages),
      reader_(make_reader()) {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    stages_[i].flow.stage = static_cast<std::uint32_t>(plan.first_index + i);
    stages_[i].flow.job = static_cast<std::uint32_t>((plan.first_index + i) / plan.per_job);
  }
  poll_.watch(signals, kSignals);
}

void VirtualStages::serve_until_signal() {
  for (bool signalled = false; !signalled;) {
    dial_some();
    dial_again();
    // All of them: nothing is named twice.
    for (const epoll_event& event : away_.empty() ? poll_.wait() : poll_.wait_for(kRedial)) {
      if (event.data.u64 == kSignals) {
        signalled = true;
      } else {
        serve(stages_[event.data.u64], (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0);
      }
    }
  }
}

void VirtualStages::dial_some() {
  if (dialled_ == 0) began_at_ = clock_.now();
  while (dialled_ < stages_.size() && dialled_ - greeted_ < plan_.connect_parallel) {
    Stage& stage = stages_[dialled_];
    const std::size_t part = dialled_ * plan_.addresses.size() / stages_.size();
    stage.address = plan_.roams ? dialled_ % plan_.addresses.size() : part;
    stage.link = StageLink(connect_to(plan_.addresses[stage.address]), tls_);
    poll_.watch(stage.link.socket(), dialled_++);
    secure(stage);
  }
}

void VirtualStages::dial_again() {
  for (const std::size_t number : std::exchange(away_, {})) {
    Stage& stage = stages_[number];
    try {
      stage.link = StageLink(connect_to(plan_.addresses[stage.address]), tls_);
    } catch (const std::system_error&) {
      stage.address = (stage.address + 1) % plan_.addresses.size();
      away_.push_back(number);
      continue;
    }
    poll_.watch(stage.link.socket(), number);
    secure(stage);
  }
}

void VirtualStages::send_away(Stage& stage, const control::Error& error) {
  stage.address = (stage.address + 1) % plan_.addresses.size();
  for (const std::string& each : error.addresses()) {
    const auto named = control::parse_port_address(each);
    if (!named) continue;
    const auto place = std::ranges::find(plan_.addresses, *named);
    if (place == plan_.addresses.end()) continue;
    stage.address = static_cast<std::size_t>(place - plan_.addresses.begin());
    return;
  }
}

void VirtualStages::note_term(Stage& stage, std::uint64_t term) {
  if (term == stage.term) return;
  stage.term = term;
  if (term > latest_term_) {
    latest_term_ = term;
    with_latest_term_ = 0;
  }
  if (term != latest_term_) return;
  if (++with_latest_term_ == stages_.size() && led_ != nullptr) led_(*this);
}

void VirtualStages::secure(Stage& stage) {
  if (!stage.link.shake_hands()) return;
  stage.secured = true;
  messages_.add_hello(stage.flow, out_);
  counts_.others_sent.add(out_.size());
  send(stage);
}

void VirtualStages::serve(Stage& stage, bool has_hung_up) {
  if (!stage.link.socket()) return;
  if (!stage.secured) secure(stage);
  while (stage.secured && read_some(stage, has_hung_up)) continue;
}

bool VirtualStages::read_some(Stage& stage, bool has_hung_up) {
  std::unique_ptr<control::FrameReader>& reader = stage.reader ? stage.reader : reader_;
  const std::span<std::byte> room = reader->room();
  const std::optional<std::size_t> size = stage.link.receive(room);
  if (!size) {
    end(stage);
    return false;
  }
  if (*size == 0) return false;
  reader->received(*size);
  for (;;) {
    const auto frame = reader->next();
    if (!frame) throw std::runtime_error("the coordinator has lost its framing");
    if (!*frame) break;
    handle(stage, **frame);
  }
  if (stage.reader == nullptr && reader_->buffered() > 0) {
    stage.reader = std::exchange(reader_, make_reader());
  } else if (stage.reader != nullptr && stage.reader->buffered() == 0) {
    stage.reader.reset();
  }
  // Less than was asked for is all that there was, unless the end came with it. TLS has records of
  // its own.
  return *size == room.size() || has_hung_up || stage.link.is_tls();
}

void VirtualStages::handle(Stage& stage, std::span<const std::byte> frame) {
  control::Envelope& request = memory_.begin();
  if (!control::decode(frame, request)) throw std::runtime_error("a frame that is not a message");
  const std::size_t size = frame.size() + control::kLengthSize;
  if (request.has_cycle()) {
    answer_cycle(stage, request, size);
  } else {
    counts_.others_received.add(size);
    if (request.has_hello()) {
      greet(stage);
    } else if (request.has_error() && plan_.roams) {
      send_away(stage, request.error());
    } else if (request.has_error()) {
      throw std::runtime_error(fmt::format("the coordinator refuses stage {}: {}", stage.flow.stage,
                                           request.error().text()));
    } else if (request.id() != 0 && !request.answer()) {
      if (request.has_site()) {
        StageMessages::add_ack(request.id(), out_);
      } else {
        StageMessages::add_refusal(request.id(), out_);
        ++counts_.refused;
      }
      counts_.others_sent.add(out_.size());
    }
  }
  memory_.end(kMostKept);
  if (!out_.empty()) send(stage);
}

void VirtualStages::greet(Stage& stage) {
  if (std::exchange(stage.greeted, true)) throw std::runtime_error("a second Hello");
  if (++greeted_ == stages_.size() && !admitted_) admitted_ = clock_.now() - began_at_;
}

void VirtualStages::answer_cycle(Stage& stage, const control::Envelope& request, std::size_t size) {
  const control::Cycle& cycle = request.cycle();
  const bool asks_only = cycle.allocations_size() == 0 && !cycle.complete();
  (asks_only ? counts_.asks : counts_.enforces).add(size);
  for (const control::Allocation& each : cycle.allocations()) {
    ++counts_.allocations;
    if (std::exchange(stage.caps, digest(each)) == stage.caps) ++counts_.repeated;
  }
  if (request.id() == 0) return;
  note_term(stage, cycle.term());
  const bool is_first = stage.flow.reports == 0;
  if (cycle.want_report() && !stage.flow.announced) {
    StageMessages::add_flows(stage.flow, out_);
    stage.flow.announced = true;
    counts_.others_sent.add(out_.size());
  }
  const std::size_t before = out_.size();
  messages_.add_report(request.id(), cycle, stage.flow, out_);
  (cycle.want_report() ? counts_.reports : counts_.acks).add(out_.size() - before);
  if (is_first && stage.flow.reports > 0) ++cycled_;
  if (is_first && cycled_ == stages_.size() && ready_ != nullptr)
    std::exchange(ready_, nullptr)(*this);
}

void VirtualStages::end(Stage& stage) {
  if (!stage.greeted && !plan_.roams) {
    throw std::runtime_error("the coordinator has closed a connection");
  }
  stage.link.close();
  ++closed_;
  if (!plan_.roams) return;
  greeted_ -= std::exchange(stage.greeted, false) ? 1 : 0;
  stage.secured = false;
  stage.flow.announced = false;
  stage.reader.reset();
  away_.push_back(static_cast<std::size_t>(&stage - stages_.data()));
}

void VirtualStages::send(Stage& stage) {
  stage.link.send(out_);
  out_.clear();
}

}  // namespace vpfs::bench
