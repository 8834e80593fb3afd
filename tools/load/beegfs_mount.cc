#include "tools/load/beegfs_mount.h"

#include <utility>

#include <asio/this_coro.hpp>
#include <fmt/format.h>

#include "net/endpoint.h"
#include "tools/load/text_hash.h"

namespace vpfs::load {
namespace {

class BeegfsFile final : public RemoteFile {
 public:
  BeegfsFile(client::StorageClient& client, client::ChunkFile file)
      : client_(client), file_(std::move(file)) {}

  net::Task<Result<std::uint64_t>> read(std::uint64_t offset, std::span<std::byte> into) override {
    return client_.read(file_, offset, into);
  }
  net::Task<Result<std::uint64_t>> discard(std::uint64_t offset, std::uint64_t size) override {
    return client_.discard(file_, offset, size);
  }
  net::Task<Result<void>> write(std::uint64_t offset, std::span<const std::byte> from) override {
    return client_.write(file_, offset, from);
  }
  net::Task<Result<void>> write(std::uint64_t offset, net::OutputQueue::FilePart from) override {
    return client_.write(file_, offset, from);
  }
  net::Task<Result<void>> remove() override { return client_.remove(file_); }

 private:
  client::StorageClient& client_;
  client::ChunkFile file_;
};

}  // namespace

net::Task<Result<void>> BeegfsMount::connect() {
  if (!client_) {
    Result<net::Endpoint> server = net::resolve_endpoint(address_.host_port);
    if (!server) co_return std::unexpected(std::move(server.error()));
    client::StorageClientOptions options;
    options.server = *server;
    options.node = node_;
    options.connections = static_cast<std::size_t>(connections_);
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    client_ = std::make_unique<client::StorageClient>(executor, std::move(options), clock_);
  }
  Result<void> there = co_await client_->probe(address_.target);
  if (there) co_return there;
  co_return fail(fmt::format("cannot mount {}: {}", settings_.file_system, there.error().message),
                 there.error().code);
}

void BeegfsMount::close() {
  if (client_) client_->close();
}

net::Task<Result<std::unique_ptr<RemoteFile>>> BeegfsMount::make_file(
    std::string name, std::uint64_t /*number*/, const ApplicationSettings& application) {
  client::ChunkFile chunk_file;
  chunk_file.target = address_.target;
  chunk_file.entry = fmt::format("{:X}-1", hash_of(settings_.directory + "/" + name));
  chunk_file.session = ++sessions_;
  chunk_file.user = application.uid;
  chunk_file.directory_owner = application.uid;
  chunk_file.directory = application.jobid;
  auto file = std::make_unique<BeegfsFile>(*client_, std::move(chunk_file));
  Result<void> removed = co_await file->remove();
  if (!removed) co_return std::unexpected(std::move(removed.error()));
  co_return file;
}

}  // namespace vpfs::load
