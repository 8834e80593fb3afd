#include "control/wire/port.h"

#include <future>
#include <utility>

#include <asio/post.hpp>
#include <pthread.h>

#include "base/result.h"
#include "base/signal_block.h"
#include "control/wire/port_state.h"

namespace vpfs::control {

Port::Port(PortConfig config, Accounts accounts, std::unique_ptr<PortState> state)
    : config_(std::move(config)),
      accounts_(std::move(accounts)),
      state_(std::move(state)),
      tcp_endpoint_(state_->tcp_endpoint()) {}

Port::~Port() {
  stop();
}

Result<std::unique_ptr<Port>> Port::open(const PortConfig& config, Owner& owner, const Clock& clock,
                                         Options options) {
  auto settings = PortState::load(config, options.accounts);
  VPFS_TRY(settings);
  const SignalBlock blocked;
  auto state = std::make_unique<PortState>(owner, clock, options.limits, options.versions);
  VPFS_TRY(state->open(config, std::move(*settings), options.inherited));
  return std::unique_ptr<Port>(new Port(config, std::move(options.accounts), std::move(state)));
}

void Port::start() {
  const SignalBlock blocked;
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "vpfs-control");
    state_->run();
  });
}

void Port::stop() {
  if (std::exchange(stopped_, true)) return;
  if (!thread_.joinable()) {
    state_->stop();
    return;
  }
  if (!left_) asio::post(state_->context(), [this] { state_->stop(); });
  thread_.join();
}

void Port::leave() {
  if (stopped_ || std::exchange(left_, true)) return;
  if (!thread_.joinable()) return state_->leave();
  std::promise<void> done;
  asio::post(state_->context(), [this, &done] {
    state_->leave();
    done.set_value();
  });
  done.get_future().wait();
}

std::vector<std::pair<std::string, int>> Port::descriptors() const {
  return state_->descriptors();
}

Result<void> Port::reload(const PortConfig& config) {
  if (auto may = may_become(config_, config); !may) return may;
  auto settings = PortState::load(config, accounts_);
  VPFS_TRY(settings);
  if (auto opened = state_->audit().open(config.audit); !opened) return opened;
  config_ = config;
  asio::post(state_->context(),
             [this, fresh = std::move(*settings)]() mutable { state_->apply(std::move(fresh)); });
  return {};
}

void Port::reopen_audit() {
  state_->audit().reopen();
}

const PortCounters& Port::counters() const {
  return state_->counters();
}

std::optional<DialledCoordinator> Port::coordinator() const {
  return state_->coordinator();
}

const Audit& Port::audit() const {
  return state_->audit();
}

}  // namespace vpfs::control
