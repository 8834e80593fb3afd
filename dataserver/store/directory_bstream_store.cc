#include "dataserver/store/directory_bstream_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/check.h"
#include "base/result.h"

namespace vpfs::dataserver {
namespace {

constexpr std::size_t kMostOpenFiles = 512;
constexpr std::size_t kMostSpareBuffers = 64;
constexpr std::size_t kMostFresh = 65536;
constexpr std::align_val_t kPageAlignment{4096};

// Errors about space become ENOSPC, all others EIO.
std::unexpected<std::errc> disk_error(int error) {
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return refuse(ENOSPC);
  if (error != EIO) {
    spdlog::warn("data files: {}", std::generic_category().message(error));
  }
  return refuse(EIO);
}

bool sync_directory(const std::string& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  const bool synced = ::fsync(directory) == 0;
  ::close(directory);
  return synced;
}

}  // namespace

// Page-aligned buffers of one size; a few are kept for the next user.
class DirectoryBstreamStore::BufferStock : public std::enable_shared_from_this<BufferStock> {
 public:
  explicit BufferStock(std::size_t size) : size_(size) {}
  ~BufferStock() {
    for (std::byte* buffer : spare_) ::operator delete(buffer, kPageAlignment);
  }
  BufferStock(const BufferStock&) = delete;
  BufferStock& operator=(const BufferStock&) = delete;

  [[nodiscard]] std::shared_ptr<std::byte> take() {
    std::byte* buffer = nullptr;
    if (spare_.empty()) {
      buffer = static_cast<std::byte*>(::operator new(size_, kPageAlignment));
    } else {
      buffer = spare_.back();
      spare_.pop_back();
    }
    return {buffer, [stock = shared_from_this()](std::byte* back) { stock->give_back(back); }};
  }

 private:
  void give_back(std::byte* buffer) {
    if (spare_.size() < kMostSpareBuffers) {
      spare_.push_back(buffer);
    } else {
      ::operator delete(buffer, kPageAlignment);
    }
  }

  std::size_t size_;
  std::vector<std::byte*> spare_;
};

DirectoryBstreamStore::File::~File() {
  ::close(descriptor);
}

Result<std::unique_ptr<DirectoryBstreamStore>> DirectoryBstreamStore::open(
    asio::io_context& context, const std::string& directory, Bytes capacity, Bytes buffer_size) {
  auto ring = IoRing::open(context);
  VPFS_TRY(ring);
  std::unique_ptr<DirectoryBstreamStore> store(
      new DirectoryBstreamStore(directory, capacity, buffer_size, std::move(*ring)));
  VPFS_TRY(store->take_stock());
  return store;
}

DirectoryBstreamStore::DirectoryBstreamStore(std::string directory, Bytes capacity,
                                             Bytes buffer_size, std::unique_ptr<IoRing> ring)
    : directory_(std::move(directory)),
      capacity_(capacity),
      buffer_size_(buffer_size.count),
      ring_(std::move(ring)),
      stock_(std::make_shared<BufferStock>(buffer_size_)) {}

DirectoryBstreamStore::~DirectoryBstreamStore() = default;

Result<void> DirectoryBstreamStore::take_stock() {
  std::error_code error;
  std::filesystem::recursive_directory_iterator entries(directory_, error);
  for (; !error && entries != std::filesystem::recursive_directory_iterator();
       entries.increment(error)) {
    if (entries->is_regular_file(error)) used_ += entries->file_size(error);
    // A killed process may have left files whose names are not durable.
    if (entries->is_directory(error) && !sync_directory(entries->path())) {
      return fail(fmt::format("cannot sync {}", entries->path().string()));
    }
  }
  if (error) return fail(fmt::format("cannot read {}: {}", directory_, error.message()), error);
  return {};
}

std::string DirectoryBstreamStore::directory_of(BstreamId id) const {
  return fmt::format("{}/{:02x}", directory_, id & 0xffU);
}
std::string DirectoryBstreamStore::path_of(BstreamId id) const {
  return fmt::format("{}/{:016x}", directory_of(id), id);
}

Outcome<DirectoryBstreamStore::FilePtr> DirectoryBstreamStore::file(BstreamId id, bool make) {
  if (const auto cached = files_.find(id); cached != files_.end()) {
    recent_.splice(recent_.begin(), recent_, cached->second.place);
    return cached->second.file;
  }
  const std::string path = path_of(id);
  int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const bool missing = descriptor < 0 && errno == ENOENT;
  if (missing && !make) return nullptr;
  if (missing) descriptor = create(id);
  if (descriptor < 0) return disk_error(errno);
  auto opened = std::make_shared<File>(descriptor, 0);
  struct stat about = {};
  if (::fstat(descriptor, &about) != 0) return disk_error(errno);
  opened->size = about.st_size;
  remember(id, opened);
  return opened;
}

int DirectoryBstreamStore::create(BstreamId id) {
  const std::string path = path_of(id);
  const auto open_new = [&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640); };
  int descriptor = open_new();
  if (descriptor < 0 && errno == ENOENT && ::mkdir(directory_of(id).c_str(), 0750) == 0) {
    descriptor = open_new();
  }
  if (fresh_.size() < kMostFresh) {
    fresh_.insert(id);
  } else {
    all_fresh_ = true;
  }
  return descriptor;
}

void DirectoryBstreamStore::remember(BstreamId id, const FilePtr& file) {
  recent_.push_front(id);
  files_[id] = {.file = file, .place = recent_.begin()};
  // Files in use stay: two File objects of one file would disagree on its length.
  auto oldest = recent_.end();
  while (files_.size() > kMostOpenFiles && oldest != recent_.begin()) {
    --oldest;
    const auto cached = files_.find(*oldest);
    if (cached->second.file.use_count() > 1 || *oldest == id) continue;
    oldest = recent_.erase(oldest);
    files_.erase(cached);
  }
}

void DirectoryBstreamStore::resized(File& file, std::int64_t size) {
  used_ += static_cast<std::uint64_t>(size - file.size);
  file.size = size;
}

Outcome<std::int64_t> DirectoryBstreamStore::size(BstreamId id) {
  const Outcome<FilePtr> found = file(id, false);
  VPFS_TRY(found);
  return *found ? (*found)->size : 0;
}

net::Task<Outcome<std::vector<BstreamStore::Part>>> DirectoryBstreamStore::read(BstreamId id,
                                                                                std::int64_t offset,
                                                                                std::size_t size) {
  VPFS_ASSERT(size <= buffer_size_);
  if (size == 0) co_return std::vector<Part>{};
  const Outcome<FilePtr> found = file(id, false);
  VPFS_CO_TRY(found);
  const FilePtr& opened = *found;
  const std::shared_ptr<std::byte> buffer = stock_->take();
  const std::span<std::byte> bytes(buffer.get(), size);
  std::size_t done = 0;
  while (opened && done < size) {
    const int count = co_await ring_->read(opened->descriptor, bytes.subspan(done),
                                           offset + static_cast<std::int64_t>(done));
    if (count == -EINTR || count == -EAGAIN) continue;
    if (count < 0) co_return disk_error(-count);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  std::ranges::fill(bytes.subspan(done), std::byte{0});
  std::vector<Part> parts;
  parts.push_back({.bytes = bytes, .owner = buffer});
  co_return parts;
}

net::Task<Outcome<BstreamStore::Window>> DirectoryBstreamStore::open_window(BstreamId id,
                                                                            std::int64_t offset,
                                                                            std::size_t size) {
  const Outcome<std::int64_t> end = checked_end(offset, static_cast<std::int64_t>(size));
  VPFS_CO_TRY(end);
  VPFS_ASSERT(size <= buffer_size_);
  const Outcome<FilePtr> opened = file(id, true);
  VPFS_CO_TRY(opened);
  const std::int64_t growth = std::max<std::int64_t>(*end - (*opened)->size, 0);
  if (used_ + static_cast<std::uint64_t>(growth) > capacity_.count) co_return refuse(ENOSPC);
  const std::shared_ptr<std::byte> buffer = stock_->take();
  Window window{.id = id, .offset = offset, .size = size, .parts = {}, .owners = {}};
  window.parts.emplace_back(buffer.get(), size);
  window.owners = {*opened, buffer};
  co_return window;
}

net::Task<Outcome<void>> DirectoryBstreamStore::commit(Window window) {
  const auto opened = std::static_pointer_cast<File>(window.owners.front());
  const std::span<const std::byte> bytes = window.parts.front();
  const std::uint64_t truncations = opened->truncations;
  std::size_t done = 0;
  Outcome<void> written;
  while (done < bytes.size() && written) {
    const int count = co_await ring_->write(opened->descriptor, bytes.subspan(done),
                                            window.offset + static_cast<std::int64_t>(done));
    if (count == -EINTR || count == -EAGAIN) continue;
    if (count <= 0) written = disk_error(count == 0 ? EIO : -count);
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  if (done == 0 || opened->removed) co_return written;
  const std::int64_t end = window.offset + static_cast<std::int64_t>(done);
  if (opened->truncations != truncations) {
    // Only the kernel knows which came first.
    struct stat about = {};
    if (::fstat(opened->descriptor, &about) != 0) co_return disk_error(errno);
    resized(*opened, about.st_size);
  } else if (end > opened->size) {
    resized(*opened, end);
  }
  co_return written;
}

void DirectoryBstreamStore::abandon(Window /*window*/) {}

Outcome<void> DirectoryBstreamStore::truncate(BstreamId id, std::int64_t size) {
  VPFS_TRY(checked_end(0, size));
  const Outcome<FilePtr> opened = file(id, size > 0);
  VPFS_TRY(opened);
  if (!*opened) return {};
  const std::int64_t growth = std::max<std::int64_t>(size - (*opened)->size, 0);
  if (used_ + static_cast<std::uint64_t>(growth) > capacity_.count) {
    return refuse(ENOSPC);
  }
  if (::ftruncate((*opened)->descriptor, size) != 0) return disk_error(errno);
  ++(*opened)->truncations;
  resized(**opened, size);
  return {};
}

Outcome<void> DirectoryBstreamStore::remove(BstreamId id) {
  const Outcome<FilePtr> found = file(id, false);
  VPFS_TRY(found);
  if (!*found) return {};
  if (::unlink(path_of(id).c_str()) != 0 && errno != ENOENT) return disk_error(errno);
  resized(**found, 0);
  (*found)->removed = true;
  fresh_.erase(id);
  const auto cached = files_.find(id);
  recent_.erase(cached->second.place);
  files_.erase(cached);
  return {};
}

net::Task<Outcome<void>> DirectoryBstreamStore::flush(BstreamId id) {
  const Outcome<FilePtr> found = file(id, false);
  VPFS_CO_TRY(found);
  const FilePtr& opened = *found;
  if (!opened) co_return Outcome<void>();
  if (const int code = co_await ring_->sync(opened->descriptor); code < 0) {
    co_return disk_error(-code);
  }
  if (!all_fresh_ && !fresh_.contains(id)) co_return Outcome<void>();
  if (!sync_directory(directory_of(id)) || !sync_directory(directory_)) {
    co_return disk_error(EIO);
  }
  fresh_.erase(id);
  co_return Outcome<void>();
}

BstreamStore::Space DirectoryBstreamStore::space() {
  const std::uint64_t left = capacity_.count - std::min(capacity_.count, used_);
  struct statvfs disk = {};
  std::uint64_t on_disk = left;
  if (::statvfs(directory_.c_str(), &disk) == 0) on_disk = disk.f_bavail * disk.f_frsize;
  return {.total = capacity_, .available = Bytes{std::min(left, on_disk)}};
}

}  // namespace vpfs::dataserver
