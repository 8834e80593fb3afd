#include "sim/proxies/server/proxied_server.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vpfs::sim {

ProxiedServer::ProxiedServer(Engine& engine, const stage::Config& config, Settings settings,
                             Callbacks callbacks)
    : engine_(engine),
      stage_(config, engine.now()),
      device_(settings.device),
      piece_(settings.piece),
      callbacks_(std::move(callbacks)) {}

void ProxiedServer::arrive(Request& request) {
  request.state = stage::Held::State::parked;
  request.arrival = engine_.now();
  stage_.arrive(request, engine_.now());
  pump();
}

bool ProxiedServer::allocate(const stage::Cycle& cycle,
                             std::span<const stage::Allocation> allocations) {
  const stage::CycleAnswer answer = stage_.allocate(cycle, allocations, engine_.now());
  pump();
  return answer.result == stage::CycleResult::applied;
}

void ProxiedServer::pump() {
  let_go_.clear();
  const TimePoint until = stage_.release(engine_.now(), let_go_);
  for (stage::Held* const each : let_go_) {
    VPFS_ASSERT(each->state == stage::Held::State::released);
    stage::Stage::took_over(*each);
    auto& request = static_cast<Request&>(*each);
    request.held = engine_.now() - request.arrival;
    request.left = request.size;
    serve_piece(request, true);
  }
  if (until == wake_at_) return;
  if (wake_at_ != kNever) (void)engine_.cancel(wake_);
  wake_at_ = until;
  if (until == kNever) return;
  wake_ = engine_.at(until, [this] {
    wake_at_ = kNever;
    pump();
  });
}

void ProxiedServer::serve_piece(Request& request, bool is_first) {
  const Bytes piece = std::min(request.left, piece_);
  request.left -= piece;
  engine_.at(device_.finish(engine_.now(), piece, is_first), [this, &request] {
    if (request.left.count > 0) return serve_piece(request, false);
    finish(request);
  });
}

void ProxiedServer::finish(Request& request) {
  stage_.end(request, {.moved = request.size}, engine_.now());
  callbacks_.done(request);
  pump();
}

}  // namespace vpfs::sim
