#include "fuse/posix/handover/saved_requests.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>
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
  fields("is_direct", request.is_direct);
  fields("syncs", request.syncs);
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

void SavedData::clear() {
  file_ = net::Descriptor();
  size_ = 0;
  ++number_;
}

// A page in front of the data has no memory; it is where a Buffer has the head of a message.
Result<void> SavedData::add(IoRequest& request) {
  if (!request.data || request.saved_in == number_) return {};
  if (!file_) file_ = net::Descriptor(::memfd_create("vpfs-held-writes", MFD_CLOEXEC));
  if (!file_) return problem("memory for held writes");
  const std::span<const std::byte> kept = request.data->data();
  std::span<const std::byte> bytes =
      kept.first(std::min<std::uint64_t>(request.asked.count, kept.size()));
  const std::uint64_t end = size_ + Buffer::kPage + Buffer::whole_pages(bytes.size());
  if (::ftruncate(file_.get(), static_cast<off_t>(end)) != 0) {
    return problem("memory for held writes");
  }
  for (std::uint64_t at = size_ + Buffer::kPage; !bytes.empty();) {
    const ssize_t put = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return problem("memory for held writes");
    at += static_cast<std::uint64_t>(put);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  request.saved_in = number_;
  request.saved_at = std::exchange(size_, end);
  return {};
}

std::unique_ptr<Buffer> SavedData::buffer(std::uint64_t at, std::uint64_t size) const {
  struct stat file = {};
  if (size > kLargestIo || at % Buffer::kPage != 0 || ::fstat(file_.get(), &file) != 0) {
    return nullptr;
  }
  const auto there = static_cast<std::uint64_t>(file.st_size);
  if (at > there || there - at < Buffer::kPage + Buffer::whole_pages(size)) return nullptr;
  return std::make_unique<Buffer>(file_.get(), at, size);
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
  VPFS_TRY(data.add(request));
  to.set("data", request.saved_at);
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
    request->data = source.data.buffer(*at, request->asked.count);
    if (!request->data) return fail("the data of a held write are missing");
  }
  if (!is_whole(*request)) return fail("a held request is not whole");
  return request;
}

}  // namespace vpfs::fuse
