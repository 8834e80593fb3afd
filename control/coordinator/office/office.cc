#include "control/coordinator/office/office.h"

#include <algorithm>
#include <future>
#include <memory>
#include <utility>

#include <asio/post.hpp>
#include <spdlog/spdlog.h>

namespace vpfs::coordinator {

using control::SiteStore;

Office::Office(asio::io_context& context, const Clock& clock, control::StoreThread& store,
               const election::Tenure& tenure, std::function<void(const std::string& why)> over)
    : clock_(clock),
      thread_(store),
      store_(store,
             [&context](std::function<void()> what) { asio::post(context, std::move(what)); }),
      tenure_(tenure),
      over_(std::move(over)),
      may_be_lost_(store.traits().has_standbys),
      timer_(context) {}

void Office::start() {
  if (!may_be_lost_) return;
  confirm_at_once();
  if (!is_over_) wait();
}

void Office::confirm_at_once() {
  using Outcome = SiteStore::Outcome<void>;
  tenure_.asks(clock_.now());
  const auto answer = std::make_shared<std::promise<Outcome>>();
  thread_.post([answer](SiteStore& store) { answer->set_value(store.confirm()); });
  auto outcome = answer->get_future();
  if (outcome.wait_for(thread_.traits().lease) != std::future_status::ready) return;
  const Outcome confirmed = outcome.get();
  if (confirmed) return tenure_.is_confirmed();
  if (confirmed.error().why == SiteStore::Why::lost) lost();
}

void Office::stop() {
  is_over_ = true;
  timer_.cancel();
  store_.end();
}

bool Office::holds() {
  if (!may_be_lost_) return true;
  if (!is_over_ && clock_.now() >= tenure_.end()) {
    end("the store has not confirmed the office for a lease");
  }
  return !is_over_;
}

std::function<void(Office::Told)> Office::confirmation() {
  if (!may_be_lost_) return nullptr;
  return [this](Told told) { confirm_for(std::move(told)); };
}

void Office::confirm_for(Told told) {
  if (is_over_) return;
  next_.push_back(std::move(told));
  if (!is_asking_) confirm();
}

void Office::confirm() {
  if (std::exchange(is_asking_, true)) return wait();
  tenure_.asks(clock_.now());
  asked_ = std::exchange(next_, {});
  store_.ask([](SiteStore& store) { return store.confirm(); },
             [this](const SiteStore::Outcome<void>& outcome) { confirmed(outcome); });
  wait();
}

void Office::confirmed(const SiteStore::Outcome<void>& outcome) {
  is_asking_ = false;
  if (is_over_) return;
  if (outcome) {
    tenure_.is_confirmed();
    if (!std::exchange(trouble_, "").empty()) spdlog::info("store: it answers again");
  } else if (outcome.error().why == SiteStore::Why::lost) {
    lost();
  } else if (std::exchange(trouble_, outcome.error().text).empty()) {
    spdlog::error("store: {}; without it this coordinator leads until its lease ends", trouble_);
  }
  for (const Told& each : std::exchange(asked_, {})) each(outcome);
  if (is_over_ || is_asking_) return;
  if (!next_.empty()) return confirm();
  wait();
}

void Office::wait() {
  const TimePoint next = is_asking_ ? tenure_.end() : tenure_.next_confirmation();
  timer_.expires_at(std::min(std::max(next, clock_.now() + std::chrono::milliseconds(50)),
                             std::max(tenure_.end(), clock_.now())));
  timer_.async_wait([this](std::error_code error) {
    if (error || !holds()) return;
    if (clock_.now() >= tenure_.next_confirmation()) return confirm();
    wait();
  });
}

void Office::end(const std::string& why) {
  if (std::exchange(is_over_, true)) return;
  timer_.cancel();
  over_(why);
}

}  // namespace vpfs::coordinator
