#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/clock.h"
#include "bench/control/control_cycles/sockets.h"
#include "control/wire/port_address.h"

// What a control cycle costs at least with one thread on each side: messages of the same sizes in
// the same directions over the same sockets, and nothing else. No message is looked at.
namespace vpfs::bench {

// A message to each stage, which each answers.
struct RoundTrip {
  std::size_t request = 0;  // bytes
  std::size_t answer = 0;
};

// The stages. They dial; then they answer, the round trips in turn, until a connection ends.
void play_stages(const control::PortAddress& address, std::size_t stages,
                 const std::vector<RoundTrip>& cycle);

// The coordinator's side.
//
// It sends to so many stages (`burst`), then takes the answers that have arrived meanwhile, so that
// less falls out of the processor's caches than when all is sent before.
class FloorServer {
 public:
  // Waits until all stages have dialled.
  FloorServer(const net::Descriptor& listener, std::size_t stages, std::vector<RoundTrip> cycle,
              std::size_t burst);

  // Returns when all stages have answered all.
  void run_cycle();

 private:
  struct AwaitedStage {
    net::Descriptor socket;
    std::size_t missing = 0;  // bytes of the answer
  };

  void run_round_trip(const RoundTrip& sizes);
  void take_answers(std::span<const epoll_event> events);

  const std::vector<RoundTrip> cycle_;
  const std::size_t burst_;
  std::vector<AwaitedStage> links_;
  std::size_t missing_answers_ = 0;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  Poll poll_;
};

}  // namespace vpfs::bench
