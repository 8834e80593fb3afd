#include "client/orangefs/file.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "client/orangefs/object.h"
#include "client/orangefs/strip_walk.h"
#include "protocols/orangefs/errors.h"

namespace vpfs::client {
namespace {

// The largest part of one datafile that goes by SMALL_IO (docs/wire-orangefs.md section 5).
constexpr std::uint64_t kSmallWrite = 6768;
constexpr std::uint64_t kSmallRead = 16344;
constexpr std::uint64_t kLargestOffset = std::uint64_t{1} << 62;

constexpr std::uint64_t small_limit(orangefs::IoType type) {
  return type == orangefs::IoType::read ? kSmallRead : kSmallWrite;
}

template <typename Body>
Body io_body(const orangefs::Attributes& attributes, orangefs::FsId fs_id, orangefs::IoType type) {
  Body body;
  body.fs_id = fs_id;
  body.io_type = type;
  body.server_ct = static_cast<std::uint32_t>(attributes.datafiles.size());
  body.distribution = attributes.distribution;
  body.file_request = orangefs::FileRequest::contiguous_bytes();
  return body;
}

}  // namespace

const RequestTemplate& File::Layout::request(orangefs::IoType type, bool small) const {
  if (type == orangefs::IoType::read) return small ? small_read : read;
  return small ? small_write : write;
}

// One read or write under way. Each attempt has a part for every target that is not done yet.
struct File::Progress {
  // A part ended before its range did.
  struct Short {
    std::size_t target = 0;
    std::uint64_t moved = 0;
  };

  void start(std::shared_ptr<const Layout> current);
  [[nodiscard]] IoPart::Plan plan(const Target& target) const;
  // Over the pieces of the range that a short part did not bring.
  [[nodiscard]] StripWalk walk_behind(const Short& part) const;
  // Zeros for what short parts did not bring before `end` of the range.
  void fill_gaps(std::uint64_t end) const;

  Transfer wanted;
  std::uint64_t flow_buffer_size = 0;
  Duration patience = {};

  std::shared_ptr<const Layout> layout = {};
  bool small = true;
  std::vector<std::size_t> todo = {};
  std::vector<Short> shorts = {};
  std::uint64_t moved = 0;

  std::vector<std::shared_ptr<ServerConnection>> connections = {};  // of this attempt, as in `todo`
  std::deque<IoPart> parts = {};                                    // likewise
  std::error_code failure = {};                                     // of the transport
  std::size_t failed_server = 0;                                    // where that was
  orangefs::Status status = 0;
};

StripWalk File::Progress::walk_behind(const Short& part) const {
  StripWalk walk(layout->strip_size, layout->targets[part.target].placement,
                 static_cast<std::int64_t>(wanted.offset), wanted.size);
  for (std::uint64_t done = 0; done < part.moved;) {
    const std::optional<StripWalk::Piece> piece = walk.next(part.moved - done);
    VPFS_ASSERT(piece.has_value());
    done += piece->size;
  }
  return walk;
}

void File::Progress::fill_gaps(std::uint64_t end) const {
  for (const Short& part : shorts) {
    StripWalk walk = walk_behind(part);
    while (const std::optional<StripWalk::Piece> gap = walk.next(wanted.size)) {
      if (gap->position >= end) break;
      const std::uint64_t size = std::min(gap->size, end - gap->position);
      const auto memory = wanted.bytes.into.subspan(static_cast<std::size_t>(gap->position),
                                                    static_cast<std::size_t>(size));
      std::ranges::fill(memory, std::byte{0});
    }
  }
}

IoPart::Plan File::Progress::plan(const Target& target) const {
  return {.type = wanted.type,
          .small = small,
          .offset = static_cast<std::int64_t>(wanted.offset),
          .size = wanted.size,
          .strip_size = layout->strip_size,
          .datafile = target.datafile,
          .placement = target.placement,
          .flow_buffer_size = flow_buffer_size,
          .patience = patience};
}

void File::Progress::start(std::shared_ptr<const Layout> current) {
  layout = std::move(current);
  small = true;
  todo.clear();
  shorts.clear();
  moved = 0;
  for (std::size_t i = 0; i < layout->targets.size(); ++i) {
    const std::uint64_t size = IoPart::bytes_on_datafile(plan(layout->targets[i]));
    if (size == 0) continue;
    todo.push_back(i);
    const std::uint64_t carried = wanted.type == orangefs::IoType::write ? size : 0;
    small = small && size <= small_limit(wanted.type) &&
            layout->request(wanted.type, true).fits(carried);
  }
}

net::Task<Result<std::unique_ptr<File>>> File::open(std::shared_ptr<Session> session,
                                                    CallerPtr caller, orangefs::Handle handle,
                                                    std::optional<orangefs::Capability> right) {
  CallerSession opener(std::move(session), std::move(caller));
  std::unique_ptr<File> file(new File(std::move(opener), handle));
  file->right_ = std::move(right);
  Result<void> good = co_await file->refresh();
  VPFS_CO_TRY(good);
  co_return file;
}

Result<void> File::use(orangefs::Attributes attributes) {
  if (attributes.type != orangefs::ObjectType::metafile) {
    const bool directory = attributes.type == orangefs::ObjectType::directory;
    return fail("not a file", std::make_error_code(directory ? std::errc::is_a_directory
                                                             : std::errc::invalid_argument));
  }
  if (attributes.datafiles.empty()) {
    return fail("the file has no datafiles", std::make_error_code(std::errc::io_error));
  }
  const Result<std::int64_t> strip_size = strip_size_of(attributes);
  VPFS_TRY(strip_size);
  VPFS_TRY(check_extent(attributes));
  if (right_) attributes.capability = *right_;
  Layout layout{.attributes = std::move(attributes), .strip_size = *strip_size};
  layout.stuffed = is_stuffed(layout.attributes);
  make_requests(layout);
  if (!layout.write.fits(0)) {
    return fail("the file's capability is too long for a request",
                std::make_error_code(std::errc::message_size));
  }
  const std::vector<orangefs::Handle>& datafiles = layout.attributes.datafiles;
  for (std::size_t i = 0; i < datafiles.size(); ++i) {
    const Result<std::size_t> server = session_.session().server_of(datafiles[i]);
    VPFS_TRY(server);
    const auto count = static_cast<std::uint32_t>(datafiles.size());
    layout.targets.push_back(
        {.server = *server,
         .datafile = datafiles[i],
         .placement = {.server_nr = static_cast<std::uint32_t>(i), .server_ct = count}});
  }
  layout_ = std::make_shared<const Layout>(std::move(layout));
  return {};
}

void File::make_requests(Layout& layout) const {
  const auto request = [&](auto body) {
    return RequestTemplate({.capability = layout.attributes.capability,
                            .hints = session_.hints(handle_),
                            .body = std::move(body)});
  };
  const auto io = [&](orangefs::IoType type) {
    return request(
        io_body<orangefs::IoRequestBody>(layout.attributes, session_.config().fs_id, type));
  };
  const auto small_io = [&](orangefs::IoType type) {
    return request(
        io_body<orangefs::SmallIoRequest>(layout.attributes, session_.config().fs_id, type));
  };
  layout.read = io(orangefs::IoType::read);
  layout.write = io(orangefs::IoType::write);
  layout.small_read = small_io(orangefs::IoType::read);
  layout.small_write = small_io(orangefs::IoType::write);
}

net::Task<Result<void>> File::refresh() {
  Result<orangefs::Attributes> attributes = co_await get_attributes(session_, handle_);
  VPFS_CO_TRY(attributes);
  status_ = stat_from(handle_, *attributes);
  co_return use(std::move(*attributes));
}

net::Task<Result<void>> File::reach(orangefs::IoType type, std::uint64_t end) {
  if (!layout_->stuffed || end <= static_cast<std::uint64_t>(layout_->strip_size)) {
    co_return Result<void>();
  }
  // Another client may have unstuffed the file, so a read must look at all datafiles.
  if (type == orangefs::IoType::read) co_return co_await refresh();
  Result<orangefs::Attributes> attributes =
      co_await unstuff(session_, handle_, layout_->attributes.capability);
  if (!attributes && errno_of(attributes.error()) == EAGAIN) {  // the capability has expired
    Result<void> good = co_await refresh();
    if (!good || !layout_->stuffed) co_return good;
    attributes = co_await unstuff(session_, handle_, layout_->attributes.capability);
  }
  VPFS_CO_TRY(attributes);
  co_return use(std::move(*attributes));
}

net::Task<Result<std::uint64_t>> File::transfer(Transfer wanted) {
  if (wanted.size == 0) co_return 0;
  if (wanted.offset > kLargestOffset || wanted.size > kLargestOffset) {
    co_return fail("the offset is past what a file can hold",
                   std::make_error_code(std::errc::file_too_large));
  }
  if (layout_->stuffed) {
    Result<void> good = co_await reach(wanted.type, wanted.offset + wanted.size);
    if (!good) co_return std::unexpected(std::move(good.error()));
  }
  Progress progress{.wanted = wanted,
                    .flow_buffer_size = session_.config().flow_buffer_size,
                    .patience = session_.config().job_timeout};
  progress.start(layout_);
  const Result<void> done = co_await complete(progress);
  VPFS_CO_TRY(done);
  if (progress.shorts.empty()) co_return wanted.size;
  if (wanted.type == orangefs::IoType::write) {
    co_return fail("write: the server wrote only part of the data",
                   std::make_error_code(std::errc::io_error));
  }
  co_return co_await end_of_short_read(progress);
}

net::Task<Result<void>> File::complete(Progress& progress) {
  const char* const what = progress.wanted.type == orangefs::IoType::read ? "read" : "write";
  bool renewed = false;
  Retry retry = session_.session().new_retry();
  for (;;) {
    if (progress.todo.empty()) {
      co_return fail(fmt::format("{}: no datafile has the range", what),
                     std::make_error_code(std::errc::io_error));
    }
    co_await attempt(progress);
    Verdict verdict = judge(progress);
    if (verdict == Verdict::done) co_return Result<void>();
    if (verdict == Verdict::renew && !renewed) {
      renewed = true;
      Result<void> good = co_await refresh();
      if (!good) co_return good;
      progress.start(layout_);
      continue;
    }
    if (verdict == Verdict::again &&
        co_await session_.session().pause_before_retry(retry, progress.failure)) {
      continue;
    }
    if (progress.failure) {
      const std::string& server = session_.config().servers[progress.failed_server].host_port;
      co_return transport_error(fmt::format("{} at {}", what, server), progress.failure);
    }
    co_return status_error(what, progress.status);
  }
}

// Serves every target in `todo` at once.
net::Task<> File::attempt(Progress& progress) {
  progress.parts.clear();
  progress.connections.clear();
  progress.failure = co_await connect(progress);
  if (progress.failure) co_return;
  net::Latch latch(session_.session().executor());
  for (std::size_t i = 0; i < progress.todo.size(); ++i) {
    const Target& target = progress.layout->targets[progress.todo[i]];
    progress.parts.emplace_back(progress.plan(target), progress.wanted.bytes, latch);
    progress.parts.back().begin(std::move(progress.connections[i]),
                                progress.layout->request(progress.wanted.type, progress.small));
  }
  co_await latch.wait();
}

net::Task<std::error_code> File::connect(Progress& progress) {
  bool waited = false;
  for (const std::size_t index : progress.todo) {
    const std::size_t server = progress.layout->targets[index].server;
    std::shared_ptr<ServerConnection> connection = session_.session().pool().ready(server);
    if (!connection) {
      waited = true;
      Result<std::shared_ptr<ServerConnection>> made =
          co_await session_.session().pool().connect(server);
      if (!made) {
        progress.failed_server = server;
        co_return made.error().code;
      }
      connection = std::move(*made);
    }
    progress.connections.push_back(std::move(connection));
  }
  if (!waited) co_return std::error_code();
  for (std::size_t i = 0; i < progress.todo.size(); ++i) {
    if (progress.connections[i]->usable()) continue;
    progress.failed_server = progress.layout->targets[progress.todo[i]].server;
    co_return std::make_error_code(std::errc::connection_reset);
  }
  co_return std::error_code();
}

// Records what the attempt has done; the rest stays in `todo`.
File::Verdict File::judge(Progress& progress) {
  if (progress.failure) return Verdict::again;
  std::vector<std::size_t> rest;
  Verdict verdict = Verdict::done;
  for (std::size_t i = 0; i < progress.todo.size(); ++i) {
    const IoPart& part = progress.parts[i];
    if (part.good()) {
      progress.moved += part.moved();
      if (part.moved() < part.wanted()) {
        progress.shorts.push_back({.target = progress.todo[i], .moved = part.moved()});
      }
      continue;
    }
    rest.push_back(progress.todo[i]);
    const int number = orangefs::errno_from_status(part.status());
    Verdict here = Verdict::failed;
    if (part.failure()) {
      progress.failure = part.failure();
      progress.failed_server = progress.layout->targets[progress.todo[i]].server;
      here = Verdict::again;
    } else if (number == EAGAIN) {
      here = Verdict::renew;
    } else if (number == ETIMEDOUT) {
      here = Verdict::again;
    }
    progress.status = part.status();
    verdict = std::max(verdict, here);
  }
  progress.todo = std::move(rest);
  return verdict;
}

// A datafile ended inside the range: at the end of the file, or at a hole. Or it is gone, for which
// some servers say that it is empty. A file loses its metafile first, so that one tells. Where data
// came, attributes from the cache will do: a session that makes the file larger forgets them.
//
// If the file goes on behind the part, another client may have written there since its server
// answered. So that server is asked once more: what it does not have after the file had its size
// is a hole.
net::Task<Result<std::uint64_t>> File::end_of_short_read(Progress& progress) {
  const bool stuffed = progress.layout->stuffed;
  const bool alone = progress.layout->targets.size() == 1;
  if (alone && !stuffed && progress.moved > 0) co_return progress.moved;
  orangefs::Attributes attributes;
  if (progress.moved > 0) {
    const Result<HeldAttributes> held = co_await held_attributes(session_, handle_);
    VPFS_CO_TRY(held);
    attributes = *held->attributes;
  } else {
    Result<orangefs::Attributes> found = co_await get_attributes(session_, handle_);
    VPFS_CO_TRY(found);
    attributes = std::move(*found);
  }
  // A stuffed file ends in its only datafile, unless it has got more of them since it was opened.
  const bool grown = stuffed && !is_stuffed(attributes);
  if (alone && !grown) co_return progress.moved;
  if (grown) {
    VPFS_CO_TRY(use(attributes));
  }
  const Result<std::uint64_t> size = co_await file_size(session_, handle_, std::move(attributes));
  VPFS_CO_TRY(size);
  const Transfer& wanted = progress.wanted;
  if (*size <= wanted.offset) co_return 0;
  const std::uint64_t end = std::min(wanted.size, *size - wanted.offset);
  if (wanted.bytes.into.empty()) co_return end;
  Result<void> again;
  if (grown) {
    progress.start(layout_);
    again = co_await complete(progress);
  } else {
    again = co_await read_gaps_again(progress, end);
  }
  VPFS_CO_TRY(again);
  progress.fill_gaps(end);
  co_return end;
}

net::Task<Result<void>> File::read_gaps_again(Progress& progress, std::uint64_t end) {
  const std::shared_ptr<const Layout> layout = progress.layout;
  std::vector<std::uint64_t> had(layout->targets.size());
  for (const Progress::Short& part : std::exchange(progress.shorts, {})) {
    had[part.target] = part.moved;
    const std::optional<StripWalk::Piece> gap = progress.walk_behind(part).next(1);
    if (gap && gap->position < end) progress.todo.push_back(part.target);
  }
  if (progress.todo.empty()) co_return Result<void>();
  Result<void> done = co_await complete(progress);
  if (!done || progress.layout != layout) co_return done;
  // What the first answer brought is still there.
  for (Progress::Short& part : progress.shorts) {
    part.moved = std::max(part.moved, had[part.target]);
  }
  co_return done;
}

net::Task<Result<std::uint64_t>> File::read(std::uint64_t offset, std::span<std::byte> into) {
  const Transfer wanted{.type = orangefs::IoType::read,
                        .offset = offset,
                        .size = into.size(),
                        .bytes = {.into = into, .from = {}, .file = {}}};
  co_return co_await transfer(wanted);
}

net::Task<Result<std::uint64_t>> File::discard(std::uint64_t offset, std::uint64_t size) {
  const Transfer wanted{
      .type = orangefs::IoType::read, .offset = offset, .size = size, .bytes = {}};
  co_return co_await transfer(wanted);
}

net::Task<Result<void>> File::write(std::uint64_t offset, std::span<const std::byte> from) {
  const Transfer wanted{.type = orangefs::IoType::write,
                        .offset = offset,
                        .size = from.size(),
                        .bytes = {.into = {}, .from = from, .file = {}}};
  Result<std::uint64_t> written = co_await transfer(wanted);
  VPFS_CO_TRY(written);
  co_return Result<void>();
}

net::Task<Result<void>> File::write(std::uint64_t offset, net::OutputQueue::FilePart from) {
  const Transfer wanted{.type = orangefs::IoType::write,
                        .offset = offset,
                        .size = from.size,
                        .bytes = {.into = {}, .from = {}, .file = from}};
  Result<std::uint64_t> written = co_await transfer(wanted);
  VPFS_CO_TRY(written);
  co_return Result<void>();
}

net::Task<Result<std::uint64_t>> File::size() {
  Result<void> good = co_await refresh();
  VPFS_CO_TRY(good);
  Result<std::uint64_t> size = co_await file_size(session_, handle_, layout_->attributes);
  if (size) status_.size = *size;
  co_return size;
}

net::Task<Result<void>> File::truncate(std::uint64_t size) {
  Result<void> good = co_await refresh();
  if (!good) co_return good;
  good = co_await client::truncate(session_, handle_, layout_->attributes, size);
  if (!good) co_return good;
  co_return co_await refresh();
}

net::Task<Result<void>> File::flush() {
  co_return co_await client::flush(session_, handle_, layout_->attributes.datafiles);
}

}  // namespace vpfs::client
