#include "test/support/process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vpfs::test {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

[[noreturn]] void fatal(const std::string& what) {
  throw std::runtime_error(what + ": " + std::generic_category().message(errno));
}

Deadline after(std::chrono::milliseconds patience) {
  return std::chrono::steady_clock::now() + patience;
}
bool passed(Deadline deadline) {
  return std::chrono::steady_clock::now() >= deadline;
}

std::string contents(int file) {
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t got = ::pread(file, part, sizeof part, static_cast<off_t>(text.size()));
    if (got <= 0) return text;
    text.append(part, static_cast<std::size_t>(got));
  }
}

bool has_line(const std::string& output, const std::string& text) {
  const std::size_t found = output.find(text);
  return found != std::string::npos && output.find('\n', found) != std::string::npos;
}

// Between fork and exec: only calls that are safe there.
[[noreturn]] void become(const std::vector<char*>& command, const std::vector<char*>& environment,
                         int output, int errors, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int input = ::open("/dev/null", O_RDONLY);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execvpe(command[0], command.data(), environment.data());
  ::dprintf(STDERR_FILENO, "cannot start %s: %s\n", command[0], ::strerrordesc_np(errno));
  ::_exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

std::chrono::duration<double> Process::Exit::cpu() const {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return std::chrono::duration<double>(seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

Process::Process(std::vector<std::string> command,
                 const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> settings = pointers(variables);
  output_ = ::memfd_create("stdout", MFD_CLOEXEC);
  errors_ = ::memfd_create("stderr", MFD_CLOEXEC);
  if (output_ < 0 || errors_ < 0) fatal("memfd_create");
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fatal("fork");
  if (pid_ == 0) become(arguments, settings, output_, errors_, parent);
}

Process::~Process() {
  close();
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      errors_(std::exchange(other.errors_, -1)),
      exit_(std::move(other.exit_)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  close();
  pid_ = std::exchange(other.pid_, -1);
  output_ = std::exchange(other.output_, -1);
  errors_ = std::exchange(other.errors_, -1);
  exit_ = std::move(other.exit_);
  return *this;
}

void Process::close() {
  if (pid_ > 0) kill();
  if (output_ >= 0) ::close(output_);
  if (errors_ >= 0) ::close(errors_);
  pid_ = output_ = errors_ = -1;
}

bool Process::running() {
  return !wait(0ms);
}
std::string Process::output() const {
  return contents(output_);
}
std::string Process::errors() const {
  return contents(errors_);
}

bool Process::wait_for_line(const std::string& text, std::chrono::milliseconds patience) {
  const Deadline deadline = after(patience);
  for (;;) {
    const bool ended = !running();
    if (has_line(output(), text) || has_line(errors(), text)) return true;
    if (ended || passed(deadline)) return false;
    std::this_thread::sleep_for(2ms);
  }
}

void Process::signal(int number) const {
  if (pid_ > 0 && !exit_) ::kill(pid_, number);
}

std::optional<Process::Exit> Process::wait(std::chrono::milliseconds patience) {
  const Deadline deadline = after(patience);
  while (!exit_) {
    int status = 0;
    rusage usage = {};
    const pid_t ended = ::wait4(pid_, &status, WNOHANG, &usage);
    if (ended < 0 && errno != EINTR) fatal("wait4");
    if (ended == pid_) {
      exit_ = Exit{.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                   .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                   .usage = usage};
    } else if (passed(deadline)) {
      return std::nullopt;
    } else {
      std::this_thread::sleep_for(2ms);
    }
  }
  return exit_;
}

Process::Exit Process::stop(std::chrono::milliseconds patience) {
  signal(SIGTERM);
  if (const std::optional<Exit> ended = wait(patience)) return *ended;
  return kill();
}

Process::Exit Process::kill() {
  signal(SIGKILL);
  const std::optional<Exit> ended = wait(60s);
  if (!ended) throw std::runtime_error("a killed process does not end");
  return *ended;
}

ReservedPort::ReservedPort() : ReservedPort(0) {}

ReservedPort::ReservedPort(std::uint16_t number) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) fatal("socket");
  const int on = 1;
  ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(number);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket_, generic, sizeof address) != 0) return;
  socklen_t size = sizeof address;
  if (::getsockname(socket_, generic, &size) == 0) number_ = ntohs(address.sin_port);
}

ReservedPort::~ReservedPort() {
  if (socket_ >= 0) ::close(socket_);
}

ReservedPort::ReservedPort(ReservedPort&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), number_(other.number_) {}

bool ReservedPort::answers() const {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(number());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int result = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::close(socket);
  return result == 0;
}

std::vector<ReservedPort> ReservedPort::in_a_row(std::size_t count) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::vector<ReservedPort> ports;
    ports.push_back(ReservedPort());
    while (ports.size() < count && ports.back().number() != 0 && ports.back().number() != 65535) {
      ports.push_back(ReservedPort(static_cast<std::uint16_t>(ports.back().number() + 1)));
    }
    if (ports.size() == count && ports.back().number() != 0) return ports;
  }
  throw std::runtime_error("no free ports in a row");
}

std::string ReservedPort::address() const {
  return "127.0.0.1:" + std::to_string(number_);
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "vpfs-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) fatal("mkdtemp " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::write(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = path_ / name;
  std::ofstream(file) << text;
  return file.string();
}

std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace vpfs::test
