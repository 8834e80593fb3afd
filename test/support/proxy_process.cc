#include "test/support/proxy_process.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/places.h"

namespace vpfs::test {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace

ProxyProcess::ProxyProcess(const ProxySettings& settings) : open_files_(settings.open_files) {
  status_file_ = settings.status_file.empty() ? (directory_.path() / "status.json").string()
                                              : settings.status_file;
  config_ = directory_.write("proxy.yaml", text_of(settings));
  start();
}

std::string ProxyProcess::text_of(const ProxySettings& settings) const {
  const std::string upstream = fmt::format("127.0.0.1:{}", settings.upstream);
  if (!settings.whole.empty()) {
    return fmt::format(fmt::runtime(settings.whole), fmt::arg("listen", port_.address()),
                       fmt::arg("upstream", upstream), fmt::arg("status_file", status_file_));
  }
  const auto further = [](const std::string& entries) {
    return entries.empty() ? "" : ", " + entries;
  };
  return fmt::format(
      "proxy: {{listen: '{}', upstream: '{}', protocol: {}, workers: {}, log_level: debug,\n"
      "        status_file: '{}', status_interval: 1 h{}}}\n"
      "limits: {{{}}}\n"
      "timeouts: {{{}}}\n"
      "scheduler: {{policy: {}, depth: {{requests: {}, bytes: {}}}{}}}\n"
      "virtual_pfs: {{{}}}\n"
      "rules: {}\n"
      "restart: {{socket: '{}'{}}}\n"
      "{}",
      port_.address(), upstream, settings.protocol, settings.workers, status_file_,
      further(settings.proxy), settings.limits, settings.timeouts, settings.policy, settings.depth,
      settings.depth_bytes, further(settings.scheduler), settings.virtual_pfs, settings.rules,
      restart_socket(), further(settings.restart),
      settings.control.empty() ? "" : fmt::format("control: {{{}}}\n", settings.control));
}

void ProxyProcess::reload(const ProxySettings& settings) {
  const std::uint64_t before = status()["reloads"]["tried"];
  (void)directory_.write("proxy.yaml", text_of(settings));
  // A reload writes the status by itself. Asked for another one, the proxy would write that later,
  // and the next status() would take it for its own.
  std::filesystem::remove(status_file_);
  process_->signal(SIGHUP);
  for (const auto deadline = Clock::now() + kPatience; Clock::now() < deadline;) {
    const std::string text = read_text(status_file_);
    if (!text.empty() && nlohmann::json::parse(text)["reloads"]["tried"] > before) return;
    std::this_thread::sleep_for(1ms);
  }
  throw std::runtime_error("the proxy does not reload: " + process_->errors());
}

ProxyProcess::~ProxyProcess() {
  if (killed_) return;
  const Process::Exit exit = process_->stop(30s);
  EXPECT_TRUE(exit.ok()) << "exit code " << exit.code << ", signal " << exit.signal;
  if (::testing::Test::HasFailure()) {
    ADD_FAILURE() << "log of the proxy:\n" << process_->output() << process_->errors();
  }
}

std::string ProxyProcess::write_config(const ProxySettings& settings,
                                       const std::string& name) const {
  return directory_.write(name, text_of(settings));
}

Process ProxyProcess::hand_over() {
  Process next({program("vpfs-proxy"), "--config", config_, "--take-over", restart_socket()});
  if (!next.wait_for_line("vpfs-proxy: ready at", 3 * kPatience)) {
    throw std::runtime_error("no process takes over: " + next.errors() + process_->errors());
  }
  Process old = std::move(*process_);
  *process_ = std::move(next);
  return old;
}

Process ProxyProcess::fail_to_hand_over(const std::string& config) {
  Process next({program("vpfs-proxy"), "--config", config, "--take-over", restart_socket()});
  if (!next.wait(3 * kPatience)) throw std::runtime_error("it has not failed: " + next.errors());
  return next;
}

void ProxyProcess::start() {
  std::vector<std::string> command = {program("vpfs-proxy"), "--config", config_};
  if (open_files_) {
    command = {
        "sh",       "-c",       fmt::format("ulimit -n {} && exec \"$0\" \"$@\"", *open_files_),
        command[0], command[1], command[2]};
  }
  std::filesystem::remove(status_file_);
  process_.emplace(command);
  killed_ = false;
  if (!process_->wait_for_line("vpfs-proxy: ready at", 3 * kPatience)) {
    throw std::runtime_error("the proxy does not start: " + process_->errors());
  }
  // It writes its first status soon, unless it cannot. Later, status() would take that for its own.
  for (const auto deadline = Clock::now() + kPatience / 10; Clock::now() < deadline;) {
    if (!read_text(status_file_).empty()) return;
    std::this_thread::sleep_for(1ms);
  }
}

void ProxyProcess::kill() {
  (void)process_->kill();
  killed_ = true;
}

nlohmann::json ProxyProcess::status() {
  std::filesystem::remove(status_file_);
  const auto deadline = Clock::now() + kPatience;
  // The request is repeated, since a proxy without descriptors could not write the status.
  // Intervals grow, since each request makes the proxy write a status that may be long.
  int ask_at = 0;
  for (int turn = 0; process_->running() && Clock::now() < deadline; ++turn) {
    if (turn == ask_at) {
      process_->signal(SIGUSR1);
      ask_at = std::max(100, 3 * ask_at);
    }
    const std::string text = read_text(status_file_);
    if (!text.empty()) return nlohmann::json::parse(text);
    std::this_thread::sleep_for(1ms);
  }
  throw std::runtime_error("the proxy writes no status: " + process_->errors());
}

bool ProxyProcess::wait_until(const Condition& condition) {
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    const nlohmann::json now = status();
    if (condition(now)) return true;
    if (Clock::now() > deadline) {
      ADD_FAILURE() << "last status: " << now.dump(1);
      return false;
    }
    std::this_thread::sleep_for(2ms);
  }
}

bool ProxyProcess::wait_until_idle() {
  return wait_until([](const nlohmann::json& now) {
    return now["queued"] == 0 && now["outstanding"] == 0 && now["counters"]["ios_alive"] == 0 &&
           now["connections"]["open"] == 0;
  });
}

bool ProxyProcess::wait_for_queued(std::size_t requests) {
  return wait_until([&](const nlohmann::json& now) { return now["queued"] == requests; });
}

bool ProxyProcess::wait_for_outstanding(std::size_t requests) {
  return wait_until([&](const nlohmann::json& now) { return now["outstanding"] == requests; });
}

std::size_t ProxyProcess::lines_with(const std::string& text) const {
  return count(process_->output() + process_->errors(), text);
}

std::size_t ProxyProcess::open_files() const {
  const auto directory = fmt::format("/proc/{}/fd", process_->pid());
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(directory)) ++files;
  return files;
}

std::size_t ProxyProcess::memory() const {
  std::ifstream file(fmt::format("/proc/{}/statm", process_->pid()));
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

std::size_t ProxyProcess::own_memory() const {
  std::ifstream file(fmt::format("/proc/{}/status", process_->pid()));
  std::string word;
  std::size_t kib = 0;
  while (file >> word && word != "RssAnon:") {
  }
  file >> kib;
  EXPECT_GT(kib, 0U) << "the kernel does not report RssAnon";
  return kib * 1024;
}

std::size_t fill_client_side(ProxyProcess& proxy, ProxiedLink& link, const Buffer& message) {
  constexpr std::size_t kChunk = 128 * 1024;
  const auto moved = [&] {
    return proxy.status()["counters"]["bytes_to_client"].get<std::size_t>();
  };
  const std::size_t before = moved();
  Buffer chunk;
  while (chunk.size() < kChunk) chunk.insert(chunk.end(), message.begin(), message.end());
  for (std::size_t sent = 0;;) {
    EXPECT_TRUE(link.server.send(chunk));
    sent += chunk.size();
    // The counters are brought up to date every 50 ms.
    const auto deadline = Clock::now() + 200ms;
    while (moved() < before + sent) {
      if (Clock::now() > deadline) return sent / message.size();
      std::this_thread::sleep_for(1ms);
    }
  }
}

bool start_write(ProxiedLink& link, orangefs::Tag tag, std::int64_t size) {
  if (!link.client.send(io_request(tag, {.type = orangefs::IoType::write, .size = size})))
    return false;
  return link.server.receive() && link.server.send(io_response(tag, 0)) && link.client.receive();
}

ProxiedLink open_link(const ProxyProcess& proxy, FakeDataServer& server,
                      int client_receive_buffer) {
  ProxiedLink link;
  link.client = proxy.connect(client_receive_buffer);
  link.server = server.accept();
  return link;
}

}  // namespace vpfs::test
