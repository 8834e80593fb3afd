#include "fuse/posix/held_reads.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/check.h"

namespace vpfs::fuse {
namespace {

bool is_gone(pid_t thread) {
  return ::kill(thread, 0) != 0 && errno == ESRCH;
}

// Whether the request came before its file was closed, and is of no use any more. The thread that
// closes it waits for no read then. After that it may wait for one of a page that it has mapped.
bool is_ahead_of_close(const IoRequest& request) {
  const OpenFile& file = *request.file;
  const TimePoint closed_at = file.closed_at;
  if (request.passes_cache || request.arrival > closed_at + HeldReads::kOnItsWay) return false;
  if (request.asked.count > Buffer::kPage) return true;
  return request.process != 0 && request.process == file.closed_by && request.arrival <= closed_at;
}

}  // namespace

void HeldReads::add(IoRequest& request) {
  if (request.kind != IoKind::read) return;
  const OpenFile* const open = request.file.get();
  const auto [place, is_new] = places_.emplace(open, files_.size());
  if (is_new) files_.push_back({.open = open, .reads = {}});
  std::vector<IoRequest*>& reads = files_[place->second].reads;
  request.held_at_file = reads.size();
  reads.push_back(&request);
  Thread& thread = threads_[request.process];
  ++thread.reads;
  thread.last = std::max(thread.last, request.arrival);
}

void HeldReads::remove(IoRequest& request) {
  if (request.held_at_file == IoRequest::kNowhere) return;
  const auto place = places_.find(request.file.get());
  VPFS_ASSERT(place != places_.end());
  const std::size_t at = place->second;
  std::vector<IoRequest*>& reads = files_[at].reads;
  reads.back()->held_at_file = request.held_at_file;
  std::swap(reads[request.held_at_file], reads.back());
  reads.pop_back();
  request.held_at_file = IoRequest::kNowhere;
  const auto thread = threads_.find(request.process);
  if (--thread->second.reads == 0) threads_.erase(thread);
  if (!reads.empty()) return;
  places_.erase(place);
  if (at + 1 < files_.size()) {
    std::swap(files_[at], files_.back());
    places_[files_[at].open] = at;
  }
  files_.pop_back();
}

bool HeldReads::may_fail(const IoRequest& request) const {
  if (request.passes_cache) return false;
  if (request.asked.count > Buffer::kPage) return true;
  if (request.process == 0) return false;  // of another namespace: any thread
  const auto thread = threads_.find(request.process);
  return request.arrival + kLongestLock < thread->second.last;
}

void HeldReads::look(std::size_t files, TimePoint now, Round& round) {
  for (std::size_t i = std::min(files, files_.size()); i > 0; --i) {
    if (next_ >= files_.size()) next_ = 0;
    const File& file = files_[next_++];
    const bool is_shared = file.open->use.is_shared();
    for (IoRequest* const each : file.reads) {
      const Duration longest = each->passes_cache ? kLongestDirect : kLongestLock;
      const bool is_closed = is_ahead_of_close(*each);
      if ((!is_shared && !is_closed) || now - each->arrival < longest) continue;
      if (is_closed || may_fail(*each) || (!each->passes_cache && is_gone(each->process))) {
        round.ahead.push_back(each);
      } else if (std::size_t& of_user = round.waited_of[each->charged]; of_user < kMostAtOnce) {
        ++of_user;
        round.waited.push_back(each);
      }
    }
  }
}

}  // namespace vpfs::fuse
