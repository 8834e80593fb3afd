#include "tools/load/beegfs_mount.h"

#include <type_traits>
#include <utility>
#include <vector>

#include <asio/this_coro.hpp>
#include <fmt/format.h>

#include "base/result.h"
#include "net/endpoint.h"
#include "tools/load/all_of.h"
#include "tools/load/chunks.h"
#include "tools/load/text_hash.h"

namespace vpfs::load {
namespace {

class BeegfsFile final : public RemoteFile {
 public:
  // One chunk file for each target, in the order of the chunks.
  BeegfsFile(client::StorageClient& client, std::vector<client::ChunkFile> chunk_files)
      : client_(client), chunk_files_(std::move(chunk_files)) {}

  net::Task<Result<std::uint64_t>> read(std::uint64_t offset, std::span<std::byte> into) override {
    const auto one = [this, into](const ChunkPart& part) {
      return client_.read(chunk_files_[part.target], part.offset, into.subspan(part.at, part.size));
    };
    return in_parts(offset, into.size(), one);
  }
  net::Task<Result<std::uint64_t>> discard(std::uint64_t offset, std::uint64_t size) override {
    const auto one = [this](const ChunkPart& part) {
      return client_.discard(chunk_files_[part.target], part.offset, part.size);
    };
    return in_parts(offset, size, one);
  }
  net::Task<Result<void>> write(std::uint64_t offset, std::span<const std::byte> from) override {
    const auto one = [this, from](const ChunkPart& part) {
      return client_.write(chunk_files_[part.target], part.offset,
                           from.subspan(part.at, part.size));
    };
    return in_parts(offset, from.size(), one);
  }
  net::Task<Result<void>> write(std::uint64_t offset, net::OutputQueue::FilePart from) override {
    const auto one = [this, from](const ChunkPart& part) {
      return client_.write(chunk_files_[part.target], part.offset,
                           {.descriptor = from.descriptor,
                            .offset = from.offset + static_cast<std::int64_t>(part.at),
                            .size = part.size});
    };
    return in_parts(offset, from.size, one);
  }
  net::Task<Result<void>> remove() override {
    for (const client::ChunkFile& each : chunk_files_) {
      Result<void> removed = co_await client_.remove(each);
      if (!removed) co_return removed;
    }
    co_return Result<void>();
  }

 private:
  template <typename Done>
  using Parts = std::vector<std::pair<ChunkPart, Done>>;

  // Does all parts of a request at once by `one(part)`, and puts the outcomes together.
  template <typename One, typename Done = typename std::invoke_result_t<One, ChunkPart>::value_type>
  net::Task<Done> in_parts(std::uint64_t offset, std::uint64_t size, One one) {
    Parts<Done> parts;
    for (const ChunkPart& each : chunk_parts(offset, size, chunk_files_.size())) {
      parts.emplace_back(each, Done());
    }
    if (parts.size() == 1) co_return co_await one(parts.front().first);
    const auto start = [&parts, &one](std::uint64_t i) { return keep(one, parts[i]); };
    co_await all_of(parts.size(), start);
    co_return together(parts);
  }
  template <typename One, typename Part>
  static net::Task<> keep(const One& one, Part& part) {
    part.second = co_await one(part.first);
  }
  static Result<void> together(const Parts<Result<void>>& parts) {
    for (const auto& [part, done] : parts) {
      if (!done) return done;
    }
    return {};
  }
  // The file ends where a part does before its range.
  static Result<std::uint64_t> together(const Parts<Result<std::uint64_t>>& parts) {
    std::uint64_t moved = 0;
    bool ended = false;
    for (const auto& [part, done] : parts) {
      if (!done) return done;
      if (!ended) moved += *done;
      ended = ended || *done < part.size;
    }
    return moved;
  }

  client::StorageClient& client_;
  std::vector<client::ChunkFile> chunk_files_;
};

}  // namespace

net::Task<Result<void>> BeegfsMount::connect() {
  if (!client_) {
    Result<net::Endpoint> server = net::resolve_endpoint(address_.host_port);
    VPFS_CO_TRY(server);
    client::StorageClientOptions options;
    options.server = *server;
    options.node = node_;
    options.connections = static_cast<std::size_t>(connections_);
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    client_ = std::make_unique<client::StorageClient>(executor, std::move(options), clock_);
  }
  for (const std::uint16_t target : address_.targets) {
    Result<void> there = co_await client_->probe(target);
    if (there) continue;
    co_return fail(fmt::format("cannot mount {}: {}", settings_.file_system, there.error().message),
                   there.error().code);
  }
  co_return Result<void>();
}

void BeegfsMount::close() {
  if (client_) client_->close();
}

net::Task<Result<std::unique_ptr<RemoteFile>>> BeegfsMount::make_file(
    std::string name, std::uint64_t number, const ApplicationSettings& application) {
  std::vector<client::ChunkFile> chunk_files;
  const std::string entry = fmt::format("{:X}-1", hash_of(settings_.directory + "/" + name));
  const std::uint64_t session = ++sessions_;
  for (std::size_t i = 0; i < address_.targets.size(); ++i) {
    client::ChunkFile& chunk_file = chunk_files.emplace_back();
    chunk_file.target = address_.targets[(number + i) % address_.targets.size()];
    chunk_file.entry = entry;
    chunk_file.session = session;
    chunk_file.user = application.uid;
    chunk_file.directory_owner = application.uid;
    chunk_file.directory = application.jobid;
  }
  auto file = std::make_unique<BeegfsFile>(*client_, std::move(chunk_files));
  Result<void> removed = co_await file->remove();
  VPFS_CO_TRY(removed);
  co_return file;
}

}  // namespace vpfs::load
