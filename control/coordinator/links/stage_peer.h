#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include <asio/steady_timer.hpp>

#include "control/coordinator/links/stage_links.h"

// The inside of StageLinks, for its own files.
namespace vpfs::coordinator {

struct StageLinks::Dialled {
  const DialledStage& config;
  const std::string key;  // by which it is served or not
  asio::steady_timer timer;
  Duration pause;
  Peer* peer = nullptr;  // null: not connected
  std::string problem;
  std::string last_name;  // that it had when it was connected
  bool is_served = true;
  bool is_dialling = false;  // it is being connected
};

struct StageLinks::Peer final : FrameLink::FrameHandler {
  enum class State : std::uint8_t { shaking_hands, greeting, joined, parting };

  Peer(std::unique_ptr<net::ReadyStream> stream, LinkRoom& room, StageLinks& links)
      : links(links), link(std::move(stream), room, *this, links.limits_.frame) {}

  void opened(FrameLink& /*link*/) override { links.opened(*this); }
  void received(FrameLink& /*link*/, std::span<const std::byte> frame) override {
    links.received(*this, frame);
  }
  void ended(FrameLink& /*link*/, const std::string& why) override { links.lost(*this, why); }

  // Members that each cycle needs come first, as in FrameLink.
  StageLinks& links;
  FrameLink link;
  State state = State::shaking_hands;
  allocation::StageId stage;
  std::uint64_t last_number = 0;
  std::uint64_t cycle = 0;      // the number of the last cycle
  std::uint64_t sequence = 0;   // of the last cycle
  std::uint64_t joined_as = 0;  // counted from zero
  std::size_t unasked = 0;      // messages since the last cycle
  std::vector<Asked> asked;
  Dialled* dialled = nullptr;        // null: it has dialled
  std::list<Peer*>::iterator place;  // in unjoined_, until it joins
  TimePoint since;                   // it is there
  std::string from;
  control::Identity identity;
  StageHello hello;
};

}  // namespace vpfs::coordinator
