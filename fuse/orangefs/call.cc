#include "fuse/orangefs/call.h"

#include <cerrno>
#include <utility>

namespace vpfs::fuse::pvfs {
namespace {

client::CallerPtr caller_of(fuse_req_t request, MountWorker& worker) {
  const fuse_ctx& context = *fuse_req_ctx(request);
  return worker.files().callers().of(context.uid, context.gid, context.pid);
}

}  // namespace

Call::Call(fuse_req_t request) : Call(request, caller_of(request, MountWorker::current())) {}

Call::Call(fuse_req_t request, client::CallerPtr caller)
    : worker_(&MountWorker::current()),
      request_(request),
      unique_(worker_->unique()),
      caller_(std::move(caller)),
      servers_(worker_->session().as(caller_)) {
  worker_->running().add(unique_, fuse_req_ctx(request)->pid);
}

Call::~Call() {
  if (request_ != nullptr) fail(EIO);
}

bool Call::begin_change(const std::shared_ptr<OpenObject>& file) {
  const bool awaited = worker_->running().begin_change(unique_, file);
  if (awaited) changed_ = file;
  return awaited;
}

fuse_req_t Call::take() {
  const bool awaited = worker_->running().remove(unique_);
  if (!awaited && changed_) {
    changed_->was_cut_unseen = true;
    --changed_->abandoned_changes;
  }
  changed_.reset();
  return std::exchange(request_, nullptr);
}

void Call::fail(int number) {
  fuse_reply_err(take(), number);
}

void Call::fail(const Error& error) {
  fail(client::errno_of(error));
}

void Call::fail_object(const Error& error) {
  const int number = client::errno_of(error);
  fail(number == ENOENT ? ESTALE : number);
}

}  // namespace vpfs::fuse::pvfs
