#include "fuse/orangefs/mount_worker.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include <asio/post.hpp>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/check.h"
#include "base/result.h"
#include "fuse/message.h"
#include "fuse/orangefs/io.h"
#include "net/start_thread.h"

namespace vpfs::fuse::pvfs {
namespace {

// Messages that are taken before the loop looks at its sockets.
constexpr int kMessagesAtOnce = 16;
constexpr std::size_t kMostSpare = 64;  // buffers of 1 MiB
// How late a signal is seen that comes behind one that was not obeyed.
constexpr Duration kReminder = std::chrono::milliseconds(100);

// How long servers may take to do what the kernel has an answer to.
constexpr Duration kForDuties = std::chrono::seconds(2);
// How long operations may take to see that their connections are closed.
constexpr Duration kForLastCalls = std::chrono::seconds(5);
// How long a worker runs at a time where one thread runs all.
constexpr Duration kTurn = std::chrono::milliseconds(5);

// For how long a worker's load is measured.
constexpr Duration kWindow = std::chrono::milliseconds(20);
// Per cent of a processor: above this a worker wants help; below this on the average of all others
// it is not needed.
constexpr int kBusy = 70;
constexpr int kIdle = 50;

thread_local MountWorker* current_worker = nullptr;

// That the calling thread has used.
Duration processor_time() {
  rusage used = {};
  (void)::getrusage(RUSAGE_THREAD, &used);
  return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

net::Task<> connect_into(const client::MountAddress& address, const client::SessionOptions& options,
                         const Clock& clock, Result<std::unique_ptr<client::FileSystem>>& into) {
  client::MountAddress own_address = address;
  client::SessionOptions own_options = options;
  into = co_await client::FileSystem::mount(std::move(own_address), std::move(own_options), clock);
}

}  // namespace

MountWorker& MountWorker::current() {
  VPFS_ASSERT(current_worker != nullptr);
  return *current_worker;
}

bool MountWorker::has_turned() {
  if (!has_turned_.exchange(false)) return false;
  asio::post(context_, [this] { has_turned_ = true; });
  return true;
}

MountWorker::~MountWorker() {
  VPFS_ASSERT(!thread_.joinable());
}

Result<void> MountWorker::connect(const client::MountAddress& address,
                                  const client::SessionOptions& options, const Clock& clock) {
  Result<std::unique_ptr<client::FileSystem>> session = fail("the session was not opened");
  std::exception_ptr problem;
  asio::co_spawn(context_, connect_into(address, options, clock, session),
                 [&](const std::exception_ptr& thrown) {
                   problem = thrown;
                   context_.stop();
                 });
  context_.run();
  context_.restart();
  if (problem) std::rethrow_exception(problem);
  VPFS_TRY(session);
  session_ = std::move(*session);
  clock_ = &clock;
  return {};
}

void MountWorker::prepare(OrangefsFileSystem& files, HeldIo& held, std::unique_ptr<Channel> channel,
                          Interrupts interrupts, const Peers& peers, std::function<void()> ended) {
  files_ = &files;
  held_ = &held;
  channel_ = std::move(channel);
  interrupts_ = interrupts;
  peers_ = &peers;
  tell_ended_ = std::move(ended);
}

Result<void> MountWorker::start() {
  Result<std::thread> thread = net::start_thread([this] { run(); });
  VPFS_TRY(thread);
  thread_ = std::move(*thread);
  return {};
}

void MountWorker::end_thread() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  asio::post(context_, [this] { context_.stop(); });
  thread_.join();
  context_.restart();
}

template <typename Left>
std::size_t MountWorker::finish(const Peers& workers, Duration patience, Left left) {
  const auto all_left = [&] {
    std::size_t sum = 0;
    for (const std::unique_ptr<MountWorker>& worker : workers) sum += left(*worker);
    return sum;
  };
  const Clock& clock = *workers.front()->clock_;
  const TimePoint deadline = clock.now() + patience;
  while (all_left() > 0 && clock.now() < deadline) {
    for (const std::unique_ptr<MountWorker>& worker : workers) {
      current_worker = worker.get();
      worker->context_.restart();
      worker->context_.run_for(kTurn);
    }
  }
  current_worker = nullptr;
  return all_left();
}

void MountWorker::stop(const Peers& workers) {
  const bool running = std::ranges::any_of(workers, [](const std::unique_ptr<MountWorker>& worker) {
    return worker->thread_.joinable();
  });
  if (!running) return;
  for (const std::unique_ptr<MountWorker>& worker : workers) worker->end_thread();
  (void)finish(workers, kForDuties, [](const MountWorker& worker) { return worker.duties_; });
  // Operations hold what goes with the workers, so each comes to its end.
  for (const std::unique_ptr<MountWorker>& worker : workers) worker->session_->close();
  const auto operations = [](const MountWorker& worker) { return worker.operations(); };
  // Tens of thousands take their time on a busy machine: as long as some end, it goes on.
  std::size_t left = finish(workers, kForLastCalls, operations);
  for (std::size_t before = SIZE_MAX; left > 0 && left < before;) {
    before = std::exchange(left, finish(workers, kForLastCalls, operations));
  }
  if (left == 0) return;
  spdlog::error("{} operations do not end", left);
  spdlog::shutdown();
  std::_Exit(1);
}

void MountWorker::run() {
  current_worker = this;
  const auto work = asio::make_work_guard(context_);
  if (index_ == 0) {
    listens_ = true;
    begin_to_listen();
  }
  if (!busy_poll_.is_on()) (void)context_.run();
  while (!context_.stopped()) {
    if (context_.poll() > 0) continue;
    const Duration longest = busy_poll_.next(clock_->now());
    if (longest == Duration::zero() || !poll(longest)) (void)context_.run_one();
  }
  stop_listening();
}

bool MountWorker::poll(Duration longest) {
  // What handlers use is work. Other threads may have the processor between two looks.
  Duration counted = processor_time();
  return busy_poll_.poll(longest, *clock_, [&] {
    const Duration used = processor_time();
    window_polled_ += used - std::exchange(counted, used);
    return context_.poll() > 0;
  });
}

void MountWorker::begin_to_listen() {
  if (stopping_) return;
  window_begin_ = clock_->now();
  window_used_ = processor_time();
  window_polled_ = {};
  // Known to the event loop, the descriptor wakes this thread with each message.
  readable_.emplace(context_, channel_->descriptor());
  wait_for_message();
}

void MountWorker::stop_listening() {
  if (!readable_) return;
  (void)readable_->release();  // the channel closes its descriptor itself
  readable_.reset();
}

void MountWorker::wait_for_message() {
  readable_->async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    if (!error) receive();
  });
}

void MountWorker::receive() {
  for (int i = 0; i < kMessagesAtOnce; ++i) {
    if (!buffer_) buffer_ = take_buffer();
    const auto message = channel_->receive(*buffer_);
    if (!message && message.error() == Channel::Nothing::any_more) {
      if (!stopping_) tell_ended_();
      return;
    }
    if (!message) {
      if (goes_on_listening()) wait_for_message();
      return;
    }
    ++begun_;
    handle(*message);
    ++done_;
  }
  asio::post(context_, [this] { receive(); });
}

void MountWorker::call_for_help() {
  for (const std::unique_ptr<MountWorker>& worker : *peers_) {
    if (worker->listens_.exchange(true)) continue;
    asio::post(worker->context_, [peer = worker.get()] { peer->begin_to_listen(); });
    return;
  }
}

bool MountWorker::goes_on_listening() {
  const TimePoint now = clock_->now();
  const Duration time = now - window_begin_;
  if (time < kWindow) return true;
  const Duration used = processor_time();
  load_ = static_cast<int>(100 * (used - window_used_ - window_polled_) / time);
  window_begin_ = now;
  window_used_ = used;
  window_polled_ = {};
  if (load_ >= kBusy) call_for_help();
  if (is_needed()) return true;
  stop_listening();
  listens_ = false;
  return false;
}

bool MountWorker::is_needed() {
  if (index_ == 0) return true;  // it always listens
  // If the first worker is busy with one message all the time, another must take the next.
  const MountWorker& first = *peers_->front();
  const std::uint64_t done = first.done_;
  const bool is_stuck = std::exchange(seen_done_, done) == done && first.begun_ > done;
  if (is_stuck) return true;
  int load = 0;
  int others = -1;
  for (const std::unique_ptr<MountWorker>& worker : *peers_) {
    if (!worker->listens_) continue;
    load += worker->load_;
    ++others;
  }
  return load > kIdle * others;
}

void MountWorker::handle(std::span<std::byte> message) {
  fuse_in_header head;
  std::memcpy(&head, message.data(), sizeof head);
  switch (head.opcode) {
    case FUSE_READ:
      return begin_read(head, message);
    case FUSE_WRITE:
      return begin_write(head, message);
    case FUSE_INTERRUPT:
      return interrupt(body_of<fuse_interrupt_in>(message).unique, head.unique);
    default:
      unique_ = head.unique;
      channel_->process(message);
  }
}

void MountWorker::begin_read(const fuse_in_header& head, std::span<const std::byte> message) {
  // What the kernel reads ahead it reads again when a process wants it.
  HeldPart part(*held_, head.uid, true);
  if (!part) return channel_->fail(head.unique, ENOBUFS);
  const auto body = body_of<fuse_read_in>(message);
  IoMessage read_message{.unique = head.unique,
                         .file = OpenFiles::at(body.fh).shared_from_this(),
                         .offset = body.offset,
                         .size = std::min<std::size_t>(body.size, kLargestIo),
                         .held = std::move(part)};
  running_.add(head.unique, static_cast<pid_t>(head.pid));
  spawn(read(*this, std::move(read_message)));
}

void MountWorker::begin_write(const fuse_in_header& head, std::span<const std::byte> message) {
  const auto body = body_of<fuse_write_in>(message);
  OpenFilePtr file = OpenFiles::at(body.fh).shared_from_this();
  // Writes of cached pages name no user, and the kernel would drop the pages if one failed.
  const bool is_of_cache = (body.write_flags & FUSE_WRITE_CACHE) != 0;
  HeldPart part(*held_, is_of_cache ? file->caller->uid : head.uid, !is_of_cache);
  if (!part) return channel_->fail(head.unique, ENOBUFS);
  std::size_t size = std::min<std::size_t>(body.size, message.size() - kWriteHead);
  std::unique_ptr<Buffer> data;
  // A write through the page cache must not be short.
  const bool may_be_short = !is_of_cache && (body.flags & O_DIRECT) != 0;
  if (const std::size_t kept = may_be_short ? part.part_of(size) : size; kept < size) {
    data = std::make_unique<Buffer>(kept);
    std::ranges::copy(buffer_->data().first(kept), data->data().begin());
    size = kept;
  } else {
    data = std::move(buffer_);
  }
  part.keep(size);
  IoMessage write_message{.unique = head.unique,
                          .file = std::move(file),
                          .offset = body.offset,
                          .size = size,
                          .clears_id_bits = (body.write_flags & FUSE_WRITE_KILL_SUIDGID) != 0,
                          .appends = !is_of_cache && (body.flags & O_APPEND) != 0,
                          // The kernel asks for the rest.
                          .syncs = may_be_short && (body.flags & O_DSYNC) != 0,
                          .held = std::move(part)};
  running_.add(head.unique, static_cast<pid_t>(head.pid));
  spawn(write(*this, std::move(write_message), std::move(data)));
}

void MountWorker::spawn(net::Task<> operation) {
  ++operations_;
  asio::co_spawn(context_, std::move(operation), [this](const std::exception_ptr& problem) {
    --operations_;
    if (!problem) return;
    try {
      std::rethrow_exception(problem);
    } catch (const std::exception& error) {
      spdlog::error("an operation ended early: {}", error.what());
    }
  });
}

// If many requests wait at once, each gets no more address space than it needs. If few wait, each
// gets a buffer that the next one can use, whatever its size.
std::unique_ptr<Buffer> MountWorker::take_buffer(std::size_t size) {
  if (spare_.empty()) {
    return std::make_unique<Buffer>(operations_ < kMostSpare ? kLargestIo : size);
  }
  std::unique_ptr<Buffer> buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

void MountWorker::give_back(std::unique_ptr<Buffer> buffer) {
  const bool is_full = buffer->data().size() == kLargestIo;
  if (is_full && spare_.size() < kMostSpare) spare_.push_back(std::move(buffer));
}

// Any worker may hear of a signal, but only the channel that gave the request can answer it.
void MountWorker::interrupt(std::uint64_t request, std::uint64_t message) {
  for (const std::unique_ptr<MountWorker>& worker : *peers_) {
    const std::optional<pid_t> process = worker->running_.process_of(request);
    if (!process) continue;
    if (obeys(interrupts_, *process)) {
      if (worker->running_.abandon(request)) worker->channel_->fail(request, EINTR);
    } else {
      worker->ask_to_tell_again(message);
    }
    return;
  }
  // Its worker has not come to it yet, or it has an answer.
  for (const std::unique_ptr<MountWorker>& worker : *peers_) worker->ask_to_tell_again(message);
}

void MountWorker::ask_to_tell_again(std::uint64_t message) {
  asio::post(context_, [this, message] {
    const auto timer = std::make_shared<asio::steady_timer>(context_, kReminder);
    timer->async_wait([this, message, timer](std::error_code error) {
      if (!error) channel_->fail(message, EAGAIN);
    });
  });
}

}  // namespace vpfs::fuse::pvfs
