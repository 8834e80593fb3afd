#include "fuse/posix/server_thread.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/result.h"
#include "fuse/credentials.h"
#include "fuse/posix/data_below.h"
#include "fuse/posix/files/call_again.h"
#include "fuse/posix/handover/known_changes.h"
#include "fuse/posix/low_priority.h"
#include "fuse/posix/opcodes.h"
#include "net/start_thread.h"

namespace vpfs::fuse {
namespace {

constexpr std::size_t kMostSpareMessages = 64;
// How long a call that could not begin waits, doubled each time.
constexpr Duration kFirstStep = std::chrono::milliseconds(1);
constexpr Duration kLongestStep = std::chrono::milliseconds(50);

// Interrupts a thread that waits for a message. Nothing else uses it.
int reading_signal() {
  return SIGRTMIN + 4;
}

fuse_in_header head_of(std::span<const std::byte> message) {
  fuse_in_header head;
  std::memcpy(&head, message.data(), sizeof head);
  return head;
}

}  // namespace

Server::ServerThread::ServerThread(Server& server, std::unique_ptr<Channel> channel)
    : server_(server), channel_(std::move(channel)) {}

void Server::ServerThread::prepare_signal() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};  // without SA_RESTART: the call is to end
  (void)::sigaction(reading_signal(), &action, nullptr);
}

void Server::ServerThread::interrupt_reading() {
  if (doing(turn_) == Doing::reading) {
    (void)::pthread_kill(thread_.native_handle(), reading_signal());
  }
}

// The signal must not come later, in a call of the file system below. It is sent with the lock, to
// a thread that reads. So once this thread has had the lock, none comes any more, and a call of the
// system takes those that are on their way.
template <typename Read>
auto Server::ServerThread::wait_for_message(Read read) -> decltype(read()) {
  const auto take_signals = [this] {
    { const std::lock_guard lock(server_.reading_mutex_); }
    (void)::sched_yield();
  };
  does(Doing::reading);
  if (server_.frozen_) {
    does(Doing::working);
    take_signals();
    return std::unexpected(Channel::Nothing::now);
  }
  auto got = read();
  does(Doing::working);
  if (server_.frozen_) take_signals();
  return got;
}

Result<void> Server::ServerThread::start() {
  Result<std::thread> thread = net::start_thread([this] {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, reading_signal());
    (void)::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    adopt_own_identity();
    run();
    does(Doing::nothing);
  });
  VPFS_TRY(thread);
  thread_ = std::move(*thread);
  return {};
}

void Server::ServerThread::rest() {
  if (buffer_) server_.memory_.give_back(std::move(buffer_));
  pipe_ = SplicePipe();
  inlet_.close();
  spare_.clear();
}

Buffer& Server::ServerThread::buffer() {
  if (!buffer_) buffer_ = server_.memory_.take_buffer();
  return *buffer_;
}

void Server::ServerThread::run() {
  for (;;) {
    does(Doing::nothing);
    const Role role = server_.next_role(*this);
    if (role.ends) return;
    if (role.request != nullptr) {
      go_.push_back(role.request);
      work();
      continue;
    }
    auto message = receive();
    while (!message && message.error() == Channel::Nothing::now && !server_.frozen_) {
      message = receive();
    }
    if (!message && message.error() == Channel::Nothing::now) {
      --server_.waiting_readers_;
      continue;
    }
    if (!message) break;
    if (!message->empty()) handle(*message);
  }
  if (!server_.told_end_.exchange(true)) server_.ended_();
}

std::expected<std::span<std::byte>, Channel::Nothing> Server::ServerThread::receive() {
  const bool splices = !server_.memory_.is_plentiful() && server_.options_.held_pipes > 0 &&
                       inlet_.open(server_.options_.largest_write);
  if (!splices) {
    const auto message = wait_for_message([this] { return channel_->receive(buffer()); });
    if (message) server_.reader_left();
    return message;
  }
  const auto size = wait_for_message([this] { return channel_->receive_into(inlet_.get()); });
  VPFS_TRY(size);
  server_.reader_left();
  return unpack(*size);
}

std::span<std::byte> Server::ServerThread::unpack(std::size_t size) {
  const std::span<std::byte> message = buffer().message().first(size);
  const auto take = [&](std::size_t begin, std::size_t end) {
    VPFS_ASSERT(inlet_.take(message.subspan(begin, end - begin)));
  };
  take(0, sizeof(fuse_in_header));
  const fuse_in_header head = head_of(message);
  if (head.opcode != FUSE_WRITE) {
    take(sizeof head, size);
    return message;
  }
  take(sizeof head, kWriteHead);
  const auto body = body_of<fuse_write_in>(message);
  const uid_t uid = (body.write_flags & FUSE_WRITE_CACHE) != 0
                        ? server_.files_.files().at(body.fh).opener.uid
                        : head.uid;
  if (server_.memory_.room_for(uid) < size - kWriteHead) {
    keep_elsewhere(head, body, size - kWriteHead);
    return {};
  }
  take(kWriteHead, size);
  return message;
}

void Server::ServerThread::keep_elsewhere(const fuse_in_header& head, const fuse_write_in& body,
                                          std::size_t size) {
  std::unique_ptr<IoRequest> request = new_write(head, body);
  if (!count(request)) return inlet_.close();
  const bool is_direct_write =
      request->is_direct || (!request->is_of_cache && is_direct(request->file->descriptor.get()));
  if (is_direct_write) {
    // The pipe has a copy of the process's pages. So only a part is kept, and the write will be a
    // short one.
    const std::uint64_t room = server_.memory_.room_for(request->charged) / Buffer::kPage;
    size = std::min<std::size_t>(size, std::max<std::uint64_t>(room, 1) * Buffer::kPage);
    request->data = std::make_unique<Buffer>(size);
    VPFS_ASSERT(inlet_.take(request->data->data()));
    inlet_.close();
    request->kept = size;
    server_.memory_.take(request->charged, size);
  } else if (server_.memory_.take_pipe(request->charged)) {
    request->pipe = std::exchange(inlet_, MessagePipe());
    request->pipe.fit(size);
  } else if (request->is_of_cache) {
    // No process would be told of an error, and the kernel would drop the pages.
    request->data = std::make_unique<Buffer>(size);
    VPFS_ASSERT(inlet_.take(request->data->data().first(size)));
    request->kept = size;
    server_.memory_.take(request->charged, size);
  } else {
    inlet_.close();
    channel_->fail(head.unique, ENOBUFS);
    return recycle(std::move(request));
  }
  pass(std::move(request), size);
}

// What the kernel reads ahead it reads again when a process wants it. It would drop the pages of a
// write that fails.
bool Server::ServerThread::count(std::unique_ptr<IoRequest>& request) {
  if (request->is_of_cache) {
    server_.requests_.take(request->charged, 1);
  } else if (!server_.requests_.take_one(request->charged)) {
    request->channel->fail(request->unique, ENOBUFS);
    recycle(std::move(request));
    return false;
  }
  request->is_counted = true;
  return true;
}

std::unique_ptr<IoRequest> Server::ServerThread::new_write(const fuse_in_header& head,
                                                           const fuse_write_in& body) {
  std::unique_ptr<IoRequest> request = new_request(head);
  request->kind = IoKind::write;
  request->file = server_.files_.files().at(body.fh).shared_from_this();
  request->offset = body.offset;
  request->is_of_cache = (body.write_flags & FUSE_WRITE_CACHE) != 0;
  // Writes of cached pages name no user.
  if (request->is_of_cache) request->charged = request->file->opener.uid;
  request->appends = !request->is_of_cache && (body.flags & O_APPEND) != 0;
  request->syncs = request->is_of_cache ? 0 : syncs_of(body.flags);
  request->is_direct = !request->is_of_cache && (body.flags & O_DIRECT) != 0;
  return request;
}

void Server::ServerThread::handle(std::span<std::byte> message) {
  const fuse_in_header head = head_of(message);
  if (head.opcode == FUSE_READ || head.opcode == FUSE_WRITE) return handle_data(head, message);
  if (head.opcode == FUSE_INTERRUPT) {
    const auto body = body_of<fuse_interrupt_in>(message);
    return server_.interrupted(body.unique);
  }
  const bool copies = head.opcode == FUSE_COPY_FILE_RANGE;
  if (copies || (server_.schedules_metadata_ && may_be_scheduled(head.opcode))) {
    auto request = new_request(head);
    request->kind = copies ? IoKind::write : IoKind::metadata;
    request->message.assign(message.begin(), message.end());
    std::uint64_t size = 0;
    if (copies) {
      const auto body = body_of<fuse_copy_file_range_in>(message);
      request->file = server_.files_.files().at(body.fh_out).shared_from_this();
      size = std::min(body.len, kLargestCopy);
      request->moved = size;
    } else {
      const bool is_directory = server_.files_.inode(head.nodeid).type == S_IFDIR;
      request->locks = KernelLocks::of(head, message, is_directory);
      request->caller = {.uid = head.uid, .gid = head.gid, .jobid = job_of(head)};
    }
    return pass(std::move(request), size);
  }
  call(head, message);
}

// To look at a process may wait for the process itself for a moment, so it is a call of its user
// like others. One that has its share of the threads goes without its job.
std::string Server::ServerThread::job_of(const fuse_in_header& head) {
  if (!server_.enter(head.uid)) return "";
  std::string job = server_.files_.jobs().job_of(static_cast<pid_t>(head.pid), head.uid, head.gid);
  server_.leave(head.uid, server_.calls_, go_);
  return job;
}

void Server::ServerThread::call(const fuse_in_header& head, std::span<std::byte> message) {
  if (never_waits(head.opcode)) return channel_->process(message);
  // The kernel names no user when it closes a file.
  const uid_t uid = head.opcode == FUSE_RELEASE
                        ? server_.files_.files().at(body_of<fuse_release_in>(message).fh).opener.uid
                        : head.uid;
  if (head.opcode == FUSE_FLUSH) {
    OpenFile& file = server_.files_.files().at(body_of<fuse_flush_in>(message).fh);
    file.closed_by = static_cast<pid_t>(head.pid);
    file.closed_at = server_.clock_.now();
  }
  if (!server_.enter(uid)) {
    auto request = new_call(head, uid, message);
    // Another call may have left meanwhile.
    if (!server_.enter_or_wait(*request)) {
      (void)request.release();
      return;
    }
    go_.push_back(request.release());
    return work();
  }
  answers_through_ = nullptr;
  through_ = channel_.get();
  process_ = static_cast<pid_t>(head.pid);
  uid_ = uid;
  unique_ = head.unique;
  if (!changes_what_is_known(head.opcode)) does(Doing::staying);
  bool is_done = false;
  {
    const LowPriority low(synchronizes(head.opcode) && server_.yields(uid));
    is_done = process(*channel_, message, true);
  }
  does(Doing::working);
  unique_ = 0;
  if (is_done) {
    server_.leave(uid, server_.calls_, go_);
  } else {
    put_off(new_call(head, uid, message));
  }
  work();
}

std::unique_ptr<IoRequest> Server::ServerThread::new_call(const fuse_in_header& head, uid_t charged,
                                                          std::span<const std::byte> message) {
  auto request = new_request(head);
  request->charged = charged;
  request->is_scheduled = false;
  request->message.assign(message.begin(), message.end());
  return request;
}

bool Server::ServerThread::process(Channel& channel, std::span<std::byte> message, bool may_wait) {
  for (Duration step = kFirstStep;; step = std::min(2 * step, kLongestStep)) {
    channel.process(message);
    if (!CallAgain::take()) return true;
    if (!may_wait) return false;
    waits_ = true;
    const bool goes_on = server_.wait_to_call_again(step);
    waits_ = false;
    if (!goes_on) return false;
    // No signal is told of any more when the mount is gone.
    if (to_end_ != unique_ && !server_.told_end_) continue;
    channel.fail(unique_, EINTR);
    return true;
  }
}

void Server::ServerThread::handle_data(const fuse_in_header& head, std::span<std::byte> message) {
  if (head.opcode == FUSE_READ) {
    const auto body = body_of<fuse_read_in>(message);
    auto request = new_request(head);
    request->kind = IoKind::read;
    request->file = server_.files_.files().at(body.fh).shared_from_this();
    request->offset = body.offset;
    request->is_direct = (body.flags & O_DIRECT) != 0;
    request->passes_cache = request->file->passes_cache || request->is_direct;
    if (!count(request)) return;
    return pass(std::move(request), std::min<std::uint64_t>(body.size, kLargestIo));
  }
  const auto body = body_of<fuse_write_in>(message);
  auto request = new_write(head, body);
  if (!count(request)) return;
  request->data = std::move(buffer_);
  const std::uint64_t size = std::min<std::uint64_t>(body.size, message.size() - kWriteHead);
  // Whole pages, and one for the head.
  request->kept = (size + 2 * Buffer::kPage - 1) / Buffer::kPage * Buffer::kPage;
  server_.memory_.take(request->charged, request->kept);
  pass(std::move(request), size);
}

std::unique_ptr<IoRequest> Server::ServerThread::new_request(const fuse_in_header& head) {
  std::unique_ptr<IoRequest> request;
  if (spare_.empty()) {
    request = std::make_unique<IoRequest>();
  } else {
    request = std::move(spare_.back());
    spare_.pop_back();
  }
  request->channel = channel_.get();
  request->unique = head.unique;
  request->inode = head.nodeid;
  request->process = static_cast<pid_t>(head.pid);
  request->uid = head.uid;
  request->gid = head.gid;
  request->charged = head.uid;
  return request;
}

void Server::ServerThread::recycle(std::unique_ptr<IoRequest> request) {
  server_.give_back_shares(*request);
  if (request->data && request->data->is_of_full_size()) {
    if (!buffer_) {
      buffer_ = std::move(request->data);
    } else {
      server_.memory_.give_back(std::move(request->data));
    }
  }
  if (spare_.size() >= kMostSpareMessages) return;
  *request = IoRequest();
  spare_.push_back(std::move(request));
}

void Server::ServerThread::pass(std::unique_ptr<IoRequest> request, std::uint64_t size) {
  // The gate has it until it is in let_go_, of this thread or another.
  const bool is_read = request->kind == IoKind::read;
  server_.gate_.arrive(*request.release(), size, server_.clock_.now(), let_go_);
  if (is_read && server_.gate_.files_with_held_reads() > 0) server_.rounds_.wake();
  server_.admit(let_go_, go_);
  work();
}

void Server::ServerThread::work() {
  while (!go_.empty()) {
    std::unique_ptr<IoRequest> request(go_.front());
    if (go_.size() > 1) server_.hand_over(std::span(go_).subspan(1));
    go_.clear();
    if (!perform(*request)) {
      put_off(std::move(request));
      continue;
    }
    server_.leave(request->charged, server_.door_of(*request), go_);
    if (request->is_scheduled) {
      server_.gate_.end(*request, server_.clock_.now(), let_go_);
      server_.admit(let_go_, go_);
    }
    recycle(std::move(request));
  }
}

void Server::ServerThread::note(const IoRequest& request) {
  process_ = request.process;
  uid_ = request.charged;
  answers_through_ = may_be_answered_early(request) ? request.channel : nullptr;
  through_ = request.channel;
  unique_ = request.unique;
}

bool Server::ServerThread::perform(IoRequest& request) {
  note(request);
  if (!changes_what_is_known(request)) does(Doing::staying);
  bool is_done = true;
  if (!request.message.empty()) {
    const LowPriority low(synchronizes(head_of(request.message).opcode) &&
                          server_.yields(request.charged));
    is_done = process(*request.channel, request.message, !request.is_scheduled);
  } else if (request.kind == IoKind::read) {
    read_data(request);
  } else {
    write_data(request);
  }
  does(Doing::working);
  unique_ = 0;
  return is_done;
}

void Server::ServerThread::read_data(IoRequest& request) {
  const std::span<std::byte> into = buffer().data().first(request.asked.count);
  const int descriptor = request.file->descriptor.get();
  const bool splices = into.size() >= SplicePipe::kLeast && !is_direct(descriptor);
  if (splices && pipe_.answer(*request.channel, request.unique, descriptor, request.offset, into,
                              request.moved)) {
    return;
  }
  if (const int problem = read_below(request, into); problem != 0) {
    request.failed = true;
    return request.channel->fail(request.unique, problem);
  }
  request.channel->answer(request.unique, into.first(request.moved));
}

void Server::ServerThread::write_data(IoRequest& request) {
  // Writes of cached pages name no user: they are the opener's.
  const Opener& opener = request.file->opener;
  const bool may =
      request.is_of_cache ? become(opener.uid, opener.gid) : become(request.uid, request.gid);
  if (!may) {
    request.failed = true;
    return request.channel->fail(request.unique, EACCES);
  }
  const std::span<std::byte> from =
      (request.pipe ? buffer() : *request.data).data().first(request.asked.count);
  if (request.pipe && !request.pipe.take(from)) {
    request.failed = true;
    return request.channel->fail(request.unique, EIO);
  }
  if (const int problem = write_below(request, from); problem != 0) {
    request.failed = true;
    return request.channel->fail(request.unique, problem);
  }
  if (request.file->has_id_bits) request.channel->attributes_changed(request.inode);
  request.channel->answer_write(request.unique, static_cast<std::uint32_t>(request.moved));
}

std::optional<Server::Finding> Server::ServerThread::look_at_interrupted(std::uint64_t unique) {
  if (unique_ != unique) return std::nullopt;
  Channel* const channel = answers_through_;
  const Holder holder = {.process = process_, .uid = uid_};
  const bool may_end = channel != nullptr || waits_;
  if (unique_ != unique) return std::nullopt;
  const Finding waits = {.state = Finding::State::waits, .uid = holder.uid};
  if (!may_end || !obeys(server_.options_.interrupts, holder.process)) return waits;
  if (channel == nullptr) {
    to_end_ = unique;
    return waits;
  }
  channel->fail(unique, EINTR);
  return Finding{.state = Finding::State::over};
}

}  // namespace vpfs::fuse
