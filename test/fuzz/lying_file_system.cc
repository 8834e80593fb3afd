#include "test/fuzz/lying_file_system.h"

#include <array>
#include <chrono>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "test/fuzz/require.h"

namespace vpfs::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kCapacity = std::uint64_t{64} << 20;
// After this silence connections are cut, and after some cuts it is a hang.
constexpr auto kSilence = 20ms;
constexpr int kMostCuts = 500;

std::chrono::milliseconds time_of_day() {
  return std::chrono::seconds(1'800'000'000);
}

// What the operations leave out of account: how they end.
net::Task<> use_file(client::File& file) {
  std::vector<std::byte> bytes(100'000, std::byte{7});
  (void)co_await file.write(10, bytes);
  (void)co_await file.size();
  (void)co_await file.flush();
  std::vector<std::byte> back(70'000);
  const std::span<std::byte> all(back);
  for (const std::size_t size : {std::size_t{100}, std::size_t{70'000}}) {
    const Result<std::uint64_t> got = co_await file.read(5, all.first(size));
    if (got) require(*got <= size, "more was read than asked for");
  }
  (void)co_await file.discard(0, 50'000);
  (void)co_await file.truncate(1000);
}

net::Task<> use_names(client::FileSystem& fs) {
  const orangefs::Handle root = fs.root();
  const auto directory = co_await fs.mkdir(root, "d", 0755);
  const orangefs::Handle parent = directory.value_or(root);
  const auto link = co_await fs.symlink(parent, "l", "target");
  if (link) (void)co_await fs.readlink(*link);
  for (int i = 0; i < 3; ++i) {
    std::string name = fmt::format("f{}", i);
    (void)co_await fs.create(parent, std::move(name), 0644);
  }
  const auto entries = co_await fs.readdir(parent);
  std::vector<orangefs::Handle> handles;
  if (entries) {
    for (const client::DirectoryEntry& each : *entries) handles.push_back(each.handle);
  }
  if (handles.size() > 100) handles.resize(100);
  (void)co_await fs.stat_all(handles);
  (void)co_await fs.stat_name(parent, "f1");
  (void)co_await fs.set_extended(parent, "user.a", "value");
  (void)co_await fs.get_extended(parent, "user.a");
  (void)co_await fs.list_extended(parent);
  (void)co_await fs.remove_extended(parent, "user.a");
  (void)co_await fs.rename(parent, "f0", root, "g");
  (void)co_await fs.rename(parent, "f1", parent, "f2");
  (void)co_await fs.remove(parent, "f2");
  (void)co_await fs.remove(root, "g");
  (void)co_await fs.remove(parent, "l");
  (void)co_await fs.remove(root, "d");
  (void)co_await fs.statfs();
}

}  // namespace

LyingFileSystem::LyingFileSystem(FuzzInput& lies, LyingRelay::Liar liar)
    : relay_(loop_, lies, liar) {
  auto listener = net::Listener::open(loop_, net::Endpoint(asio::ip::address_v4::loopback(), 0));
  require(listener.has_value(), "no listener");
  direct_ = listener->local_endpoint();
  relay_.serve(direct_);
  dataserver::ServerConfig config;
  config.id = 7;
  config.servers.push_back({.alias = "s0",
                            .addresses = {"tcp://" + net::to_string(relay_.endpoint()),
                                          "tcp-px://" + net::to_string(direct_)}});
  config.capacity = Bytes{kCapacity};
  auto server =
      dataserver::Server::open(loop_, config, 0, std::move(*listener), clock_, time_of_day);
  require(server.has_value(), "the server does not open");
  server_ = std::move(*server);
  server_->start();
}

LyingFileSystem::~LyingFileSystem() {
  server_->stop();
  relay_.stop();
  loop_.restart();
  while (loop_.poll() > 0) {
  }
}

void LyingFileSystem::run(net::Task<> task) {
  bool finished = false;
  asio::co_spawn(loop_, std::move(task), [&](const std::exception_ptr& problem) {
    require(problem == nullptr, "an operation throws");
    finished = true;
  });
  int cuts = 0;
  while (!finished) {
    loop_.restart();
    if (loop_.run_one_for(kSilence) > 0) continue;
    require(++cuts < kMostCuts, "an operation does not end");
    relay_.cut();
  }
}

net::Task<> LyingFileSystem::ask_directly(bool& good) {
  client::MountAddress address = {
      .scheme = "tcp-px", .host_port = net::to_string(direct_), .file_system = "vpfs"};
  auto mounted = co_await client::FileSystem::mount(address, {}, clock_);
  if (!mounted) co_return;
  const auto status = co_await (*mounted)->statfs();
  good = status.has_value();
  (*mounted)->close();
}

net::Task<> LyingFileSystem::use_through_relay() {
  client::MountAddress address = {
      .scheme = "tcp", .host_port = net::to_string(relay_.endpoint()), .file_system = "vpfs"};
  client::SessionOptions options;
  options.retry_limit = 1;
  options.retry_delay = 1ms;
  auto mounted = co_await client::FileSystem::mount(address, options, clock_);
  if (!mounted) co_return;
  client::FileSystem& fs = **mounted;
  co_await use_names(fs);
  auto file = co_await fs.create_and_open(fs.root(), "file", 0644);
  if (file) co_await use_file(**file);
  (void)co_await fs.remove(fs.root(), "file");
  file = std::unexpected(Error());
  fs.close();
}

void LyingFileSystem::use() {
  run(use_through_relay());
}

// Changed requests may have removed what there was, as their client may; but it is answered.
bool LyingFileSystem::serves_others() {
  bool good = false;
  run(ask_directly(good));
  return good;
}

}  // namespace vpfs::test
