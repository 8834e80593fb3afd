#include "test/support/client_checks.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/latch.h"
#include "test/support/run_task.h"

namespace vpfs::test {
namespace {

using client::FileSystem;
using orangefs::Handle;
using Memory = std::vector<std::byte>;

constexpr std::uint32_t kMode = 0644;

Memory noise(std::mt19937_64& random, std::size_t size) {
  Memory bytes(size);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

template <typename T>
std::string problem_of(const Result<T>& result) {
  return result ? "" : result.error().message;
}

// A new directory for one check, removed with its files at the end.
class Scratch {
 public:
  Scratch(asio::io_context& loop, FileSystem& file_system, std::string name)
      : loop_(loop), file_system_(file_system), name_(std::move(name)) {
    const auto made = run_task(loop_, file_system_.mkdir(file_system_.root(), name_, 0755));
    EXPECT_TRUE(made) << problem_of(made);
    handle_ = made.value_or(0);
  }
  ~Scratch() {
    const auto entries = run_task(loop_, file_system_.readdir(handle_));
    EXPECT_TRUE(entries) << problem_of(entries);
    if (!entries) return;
    for (const auto& entry : *entries) {
      EXPECT_TRUE(run_task(loop_, file_system_.remove(handle_, entry.name))) << entry.name;
    }
    const auto removed = run_task(loop_, file_system_.remove(file_system_.root(), name_));
    EXPECT_TRUE(removed) << problem_of(removed);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] Handle handle() const { return handle_; }
  std::unique_ptr<client::File> file(const std::string& name, std::uint32_t datafiles = 0) {
    const auto made = run_task(loop_, file_system_.create(handle_, name, kMode, datafiles));
    EXPECT_TRUE(made) << problem_of(made);
    if (!made) return nullptr;
    auto opened = run_task(loop_, file_system_.open(*made));
    EXPECT_TRUE(opened) << problem_of(opened);
    return opened ? std::move(*opened) : nullptr;
  }

 private:
  asio::io_context& loop_;
  FileSystem& file_system_;
  std::string name_;
  Handle handle_ = 0;
};

template <typename T>
int errno_of(const Result<T>& result) {
  return result ? 0 : result.error().code.value();
}

std::set<std::string> names_in(asio::io_context& loop, FileSystem& file_system, Handle handle) {
  std::set<std::string> names;
  const auto entries = run_task(loop, file_system.readdir(handle));
  EXPECT_TRUE(entries) << problem_of(entries);
  if (!entries) return names;
  for (const auto& entry : *entries) EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
  return names;
}

}  // namespace

void check_names(asio::io_context& loop, FileSystem& fs) {
  Scratch scratch(loop, fs, "check_names");
  const Handle top = scratch.handle();
  const auto file = run_task(loop, fs.create(top, "file", kMode));
  ASSERT_TRUE(file) << problem_of(file);
  EXPECT_EQ(errno_of(run_task(loop, fs.create(top, "file", kMode))), EEXIST);
  EXPECT_EQ(errno_of(run_task(loop, fs.mkdir(top, "file", 0755))), EEXIST);
  EXPECT_EQ(run_task(loop, fs.lookup(top, "file")).value_or(0), *file);
  EXPECT_EQ(errno_of(run_task(loop, fs.lookup(top, "nothing"))), ENOENT);
  EXPECT_EQ(errno_of(run_task(loop, fs.lookup(*file, "below"))), ENOTDIR);

  const auto directory = run_task(loop, fs.mkdir(top, "directory", 0750));
  ASSERT_TRUE(directory) << problem_of(directory);
  ASSERT_TRUE(run_task(loop, fs.create(*directory, "inner", kMode)));
  EXPECT_EQ(errno_of(run_task(loop, fs.remove(top, "directory"))), ENOTEMPTY);
  EXPECT_EQ(run_task(loop, fs.resolve("/check_names/directory")).value_or(0), *directory);
  EXPECT_TRUE(run_task(loop, fs.resolve("check_names/directory/inner")));
  EXPECT_EQ(names_in(loop, fs, top), (std::set<std::string>{"directory", "file"}));

  const auto link = run_task(loop, fs.symlink(top, "link", "file"));
  ASSERT_TRUE(link) << problem_of(link);
  EXPECT_EQ(run_task(loop, fs.readlink(*link)).value_or(""), "file");
  EXPECT_EQ(errno_of(run_task(loop, fs.readlink(*file))), EINVAL);
  EXPECT_EQ(run_task(loop, fs.stat(*link))->type, orangefs::ObjectType::symlink);

  EXPECT_TRUE(run_task(loop, fs.rename(top, "file", *directory, "moved")));
  EXPECT_EQ(errno_of(run_task(loop, fs.lookup(top, "file"))), ENOENT);
  EXPECT_EQ(run_task(loop, fs.lookup(*directory, "moved")).value_or(0), *file);
  EXPECT_TRUE(run_task(loop, fs.rename(*directory, "moved", *directory, "inner")));
  EXPECT_EQ(run_task(loop, fs.lookup(*directory, "inner")).value_or(0), *file);
  EXPECT_EQ(names_in(loop, fs, *directory), std::set<std::string>{"inner"});
  EXPECT_EQ(errno_of(run_task(loop, fs.rename(top, "no", top, "yes"))), ENOENT);

  EXPECT_TRUE(run_task(loop, fs.remove(*directory, "inner")));
  EXPECT_TRUE(run_task(loop, fs.remove(top, "directory")));
  EXPECT_TRUE(run_task(loop, fs.remove(top, "link")));
  EXPECT_EQ(errno_of(run_task(loop, fs.remove(top, "link"))), ENOENT);
  EXPECT_EQ(errno_of(run_task(loop, fs.stat(*file))), ENOENT);
}

void check_attributes(asio::io_context& loop, FileSystem& fs) {
  Scratch scratch(loop, fs, "check_attributes");
  const auto file = run_task(loop, fs.create(scratch.handle(), "file", 0640));
  ASSERT_TRUE(file);
  auto stat = run_task(loop, fs.stat(*file));
  ASSERT_TRUE(stat) << problem_of(stat);
  EXPECT_EQ(stat->type, orangefs::ObjectType::metafile);
  EXPECT_EQ(stat->permissions, 0640U);
  EXPECT_EQ(stat->size, 0U);
  client::AttributeChanges changes;
  changes.permissions = 0600;
  changes.uid = 1234;
  changes.mtime = 1'000'000'000;
  changes.atime = 1'100'000'000;
  const auto changed = run_task(loop, fs.set_attributes(*file, changes));
  ASSERT_TRUE(changed) << problem_of(changed);
  stat = run_task(loop, fs.stat(*file));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->permissions, 0600U);
  EXPECT_EQ(stat->uid, 1234U);
  EXPECT_EQ(stat->mtime, 1'000'000'000U);
  EXPECT_EQ(stat->atime, 1'100'000'000U);
  EXPECT_EQ(run_task(loop, fs.stat(scratch.handle()))->type, orangefs::ObjectType::directory);
  const auto status = run_task(loop, fs.statfs());
  ASSERT_TRUE(status) << problem_of(status);
  EXPECT_GT(status->bytes_total, 0U);
  EXPECT_LE(status->bytes_available, status->bytes_total);
}

void check_extended_attributes(asio::io_context& loop, FileSystem& fs) {
  Scratch scratch(loop, fs, "check_extended");
  const auto file = run_task(loop, fs.create(scratch.handle(), "file", kMode));
  ASSERT_TRUE(file);
  const auto set = run_task(loop, fs.set_extended(*file, "user.colour", "blue"));
  ASSERT_TRUE(set) << problem_of(set);
  EXPECT_TRUE(run_task(loop, fs.set_extended(*file, "user.shape", std::string("a\0b", 3))));
  EXPECT_EQ(run_task(loop, fs.get_extended(*file, "user.colour")).value_or(""), "blue");
  EXPECT_EQ(run_task(loop, fs.get_extended(*file, "user.shape")).value_or(""),
            std::string("a\0b", 3));
  const auto listed = run_task(loop, fs.list_extended(*file));
  ASSERT_TRUE(listed) << problem_of(listed);
  const std::set<std::string> keys(listed->begin(), listed->end());
  EXPECT_TRUE(keys.contains("user.colour"));
  EXPECT_TRUE(keys.contains("user.shape"));
  EXPECT_TRUE(run_task(loop, fs.remove_extended(*file, "user.colour")));
  EXPECT_FALSE(run_task(loop, fs.get_extended(*file, "user.colour")));
}

void check_long_directory(asio::io_context& loop, FileSystem& fs) {
  Scratch scratch(loop, fs, "check_long");
  std::set<std::string> expected;
  for (int i = 0; i < 150; ++i) {
    const std::string name = fmt::format("entry-{:03}", i);
    const auto made = run_task(loop, fs.create(scratch.handle(), name, kMode, 1));
    ASSERT_TRUE(made) << problem_of(made);
    expected.insert(name);
  }
  EXPECT_EQ(names_in(loop, fs, scratch.handle()), expected);
}

void check_data(asio::io_context& loop, FileSystem& fs, std::uint64_t seed) {
  Scratch scratch(loop, fs, fmt::format("check_data_{}", seed));
  std::mt19937_64 random(seed);
  auto file = scratch.file("file");
  ASSERT_TRUE(file);
  Memory copy;
  constexpr std::size_t kSizes[] = {1, 100, 4096, 6768, 6769, 16344, 16345, 65536, 70000, 900000};
  for (int round = 0; round < 60; ++round) {
    const std::size_t size = kSizes[random() % std::size(kSizes)];
    const std::size_t offset = random() % (copy.size() + 70000);
    if (random() % 2 == 0) {
      const Memory data = noise(random, size);
      const auto written = run_task(loop, file->write(offset, std::span<const std::byte>(data)));
      ASSERT_TRUE(written) << problem_of(written);
      if (copy.size() < offset + size) copy.resize(offset + size);
      std::copy(data.begin(), data.end(), copy.begin() + static_cast<std::ptrdiff_t>(offset));
    } else {
      Memory data(size, std::byte{0xaa});
      const auto got = run_task(loop, file->read(offset, data));
      ASSERT_TRUE(got) << problem_of(got);
      const std::size_t there = offset >= copy.size() ? 0 : std::min(size, copy.size() - offset);
      ASSERT_EQ(*got, there) << "at " << offset << " of " << copy.size() << ", size " << size;
      ASSERT_TRUE(
          std::equal(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(there),
                     copy.begin() + static_cast<std::ptrdiff_t>(std::min(offset, copy.size()))))
          << "at " << offset << ", size " << size;
      EXPECT_EQ(run_task(loop, file->discard(offset, size)).value_or(~0U), there);
    }
  }
  EXPECT_EQ(run_task(loop, file->size()).value_or(0), copy.size());
  EXPECT_EQ(run_task(loop, fs.stat(file->handle()))->size, copy.size());
  EXPECT_TRUE(run_task(loop, file->flush()));
  // A second open() of the file has no cached state, and sees the same.
  auto other = run_task(loop, fs.open(file->handle()));
  ASSERT_TRUE(other);
  Memory all(copy.size());
  EXPECT_EQ(run_task(loop, (*other)->read(0, all)).value_or(0), copy.size());
  EXPECT_TRUE(all == copy);
}

void check_holes_and_truncation(asio::io_context& loop, FileSystem& fs) {
  Scratch scratch(loop, fs, "check_holes");
  auto file = scratch.file("file");
  ASSERT_TRUE(file);
  std::mt19937_64 random(3);
  const Memory data = noise(random, 1000);
  const std::uint64_t far = 5 * 65536 + 500;
  ASSERT_TRUE(run_task(loop, file->write(far, std::span<const std::byte>(data))));
  EXPECT_EQ(run_task(loop, file->size()).value_or(0), far + 1000);
  Memory all(far + 5000, std::byte{0xaa});
  ASSERT_EQ(run_task(loop, file->read(0, all)).value_or(0), far + 1000);
  EXPECT_TRUE(std::all_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(far),
                          [](std::byte each) { return each == std::byte{0}; }));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), all.begin() + static_cast<std::ptrdiff_t>(far)));

  ASSERT_TRUE(run_task(loop, file->truncate(70000)));
  EXPECT_EQ(run_task(loop, file->size()).value_or(0), 70000U);
  EXPECT_EQ(run_task(loop, file->read(0, all)).value_or(0), 70000U);
  ASSERT_TRUE(run_task(loop, fs.truncate(file->handle(), 200000)));
  EXPECT_EQ(run_task(loop, fs.stat(file->handle()))->size, 200000U);
  EXPECT_EQ(run_task(loop, file->read(199000, all)).value_or(0), 1000U);
  EXPECT_EQ(run_task(loop, file->read(200000, all)).value_or(1), 0U);
}

void check_concurrent_io(asio::io_context& loop, FileSystem& fs) {
  Scratch scratch(loop, fs, "check_concurrent");
  auto file = scratch.file("file");
  ASSERT_TRUE(file);
  constexpr std::size_t kParts = 24;
  constexpr std::size_t kPart = 150000;
  std::mt19937_64 random(4);
  const Memory data = noise(random, kParts * kPart);
  const int descriptor = ::memfd_create("data", MFD_CLOEXEC);
  ASSERT_EQ(::write(descriptor, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  Memory back(data.size());
  for (const bool writing : {true, false}) {
    net::Latch latch(loop.get_executor());
    for (std::size_t i = 0; i < kParts; ++i) {
      latch.expect();
      const std::uint64_t offset = i * kPart;
      const auto done = [&latch](const std::exception_ptr&, const auto& result) {
        EXPECT_TRUE(result) << problem_of(result);
        latch.done();
      };
      if (!writing) {
        const std::span<std::byte> into = std::span(back).subspan(offset, kPart);
        asio::co_spawn(loop, file->read(offset, into), done);
      } else if (i % 2 == 0) {
        const auto from = std::span<const std::byte>(data).subspan(offset, kPart);
        asio::co_spawn(loop, file->write(offset, from), done);
      } else {
        const net::OutputQueue::FilePart from{
            .descriptor = descriptor, .offset = static_cast<std::int64_t>(offset), .size = kPart};
        asio::co_spawn(loop, file->write(offset, from), done);
      }
    }
    run_task(loop, latch.wait());
  }
  ::close(descriptor);
  EXPECT_TRUE(back == data);
}

}  // namespace vpfs::test
