#include "fuse/posix/handover/saved_requests.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace vpfs::fuse {
namespace {

// The numbers of a request, for both directions.
template <typename Archive>
void archive(Archive& fields, IoRequest& request) {
  fields("unique", request.unique);
  fields("inode", request.inode);
  fields("process", request.process);
  fields("uid", request.uid);
  fields("gid", request.gid);
  fields("charged", request.charged);
  fields("is_scheduled", request.is_scheduled);
  fields("is_counted", request.is_counted);
  fields("caller_uid", request.caller.uid);
  fields("caller_gid", request.caller.gid);
  fields("caller_job", request.caller.jobid);
  fields("offset", request.offset);
  fields("kept", request.kept);
  fields("is_of_cache", request.is_of_cache);
  fields("appends", request.appends);
  fields("passes_cache", request.passes_cache);
  fields("moved", request.moved);
  fields("kind", request.kind);
  fields("asked", request.asked);
  fields("arrival", request.arrival);
  fields("held_until", request.held_until);
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::unexpected<Error> problem(std::string_view what) {
  const std::error_code error(errno, std::system_category());
  return fail(std::string(what) + ": " + error.message(), error);
}

bool is_whole(const IoRequest& request) {
  if (request.kind > IoKind::metadata) return false;
  if (!request.message.empty()) return request.message.size() >= sizeof(fuse_in_header);
  if (request.file == nullptr || request.asked.count > kLargestIo) return false;
  return request.kind == IoKind::read ||
         (request.kind == IoKind::write && (request.data != nullptr || request.pipe));
}

}  // namespace

Result<std::uint64_t> SavedData::add(std::span<const std::byte> bytes) {
  if (!file_) file_ = net::Descriptor(::memfd_create("vpfs-held-writes", MFD_CLOEXEC));
  if (!file_) return problem("memory for held writes");
  const std::uint64_t begin = size_;
  while (!bytes.empty()) {
    const ssize_t put =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return problem("memory for held writes");
    size_ += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return begin;
}

bool SavedData::read(std::uint64_t at, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(file_.get(), into.data(), into.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

Result<void> save_request(IoRequest& request, std::size_t channel, SavedData& data,
                          std::vector<int>& pipes, SavedState& to) {
  StateWriter out(to);
  archive(out, request);
  to.set("channel", std::uint64_t{channel});
  if (request.file) to.set("file", request.file->number);
  if (!request.message.empty()) to.set("message", text_of(request.message));
  if (request.pipe) {
    to.set("pipe", std::uint64_t{pipes.size()});
    pipes.push_back(request.pipe.get());
  }
  if (!request.data) return {};
  const std::span<const std::byte> kept = request.data->data();
  const Result<std::uint64_t> at =
      data.add(kept.first(std::min<std::uint64_t>(request.asked.count, kept.size())));
  VPFS_TRY(at);
  to.set("data", *at);
  return {};
}

Result<std::unique_ptr<IoRequest>> restore_request(const SavedState& from,
                                                   const RequestSource& source) {
  auto request = std::make_unique<IoRequest>();
  StateReader in(from);
  archive(in, *request);
  request->size = request->asked;
  const std::uint64_t channel = from.number("channel");
  if (channel >= source.channels.size()) return fail("a held request has no channel");
  request->channel = source.channels[channel].get();
  if (const std::uint64_t file = from.number("file"); file != 0) {
    request->file = source.files.find(file);
    if (request->file == nullptr) return fail("a held request is of no open file");
  }
  const auto message = std::as_bytes(std::span(from.text("message")));
  request->message.assign(message.begin(), message.end());
  if (const auto* const pipe = from.find<std::uint64_t>("pipe")) {
    if (*pipe >= source.pipes.size()) return fail("the data of a held write are missing");
    request->pipe = MessagePipe(std::move(source.pipes[*pipe]));
  }
  if (const auto* const at = from.find<std::uint64_t>("data")) {
    request->data = std::make_unique<Buffer>();
    const std::span<std::byte> into = request->data->data();
    if (!source.data.read(*at,
                          into.first(std::min<std::uint64_t>(request->asked.count, into.size())))) {
      return fail("the data of a held write are missing");
    }
  }
  if (!is_whole(*request)) return fail("a held request is not whole");
  return request;
}

}  // namespace vpfs::fuse
