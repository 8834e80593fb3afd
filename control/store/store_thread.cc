#include "control/store/store_thread.h"

#include "base/signal_block.h"

namespace vpfs::control {

StoreThread::StoreThread(std::unique_ptr<SiteStore> store)
    : store_(std::move(store)), traits_(store_->traits()) {
  const SignalBlock no_signals;
  thread_ = std::thread([this] { run(); });
}

StoreThread::~StoreThread() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  more_.notify_one();
  store_->cancel();
  thread_.join();
}

void StoreThread::post(std::move_only_function<void(SiteStore&)> call) {
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  more_.notify_one();
}

void StoreThread::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    more_.wait(lock, [this] { return is_ending_ || !calls_.empty(); });
    if (is_ending_) return;
    auto call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call(*store_);
  }
}

StoreCaller::StoreCaller(StoreThread& store, Post post)
    : store_(store), link_(std::make_shared<CallerLink>()) {
  link_->post = std::move(post);
}

void StoreCaller::end() {
  link_->is_open = false;
  const std::lock_guard lock(link_->mutex);
  link_->post = nullptr;
}

void StoreCaller::CallerLink::deliver(std::function<void()> what) {
  const std::lock_guard lock(mutex);
  if (post) post(std::move(what));
}

}  // namespace vpfs::control
