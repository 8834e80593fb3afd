#include "tools/check_policy/child.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <utility>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vpfs::check_policy {
namespace {

// Precedes the text of work that has ended, so that a process that exits early is noticed.
constexpr char kEnded = 'e';
constexpr char kThrew = 't';

void write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(to, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) std::_Exit(1);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

[[noreturn]] void run(const std::function<std::string()>& work, int to,
                      std::chrono::seconds limit) {
  ::alarm(static_cast<unsigned>(limit.count()));
  std::string text;
  try {
    text = kEnded + work();
  } catch (const std::exception& error) {
    text = kThrew + std::string(error.what());
  } catch (...) {
    text = std::string(1, kThrew) + "something of an unknown type";
  }
  write_all(to, text);
  std::_Exit(0);
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t size = ::read(from, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(size));
  }
}

std::string how_it_ended(int status, std::chrono::seconds limit) {
  if (!WIFSIGNALED(status)) {
    return fmt::format("it ends the process (code {})", WEXITSTATUS(status));
  }
  const int signal = WTERMSIG(status);
  if (signal == SIGALRM) return fmt::format("it takes longer than {} s", limit.count());
  return fmt::format("it ends the process by signal {} ({})", signal, ::strsignal(signal));
}

}  // namespace

Result<std::string> in_child(const std::function<std::string()>& work, std::chrono::seconds limit) {
  std::array<int, 2> ends = {};
  if (::pipe(ends.data()) != 0) return fail("no pipe: " + std::string(std::strerror(errno)));
  std::cout << std::flush;
  const pid_t child = ::fork();
  if (child < 0) return fail("no process: " + std::string(std::strerror(errno)));
  if (child == 0) {
    ::close(ends[0]);
    run(work, ends[1], limit);
  }
  ::close(ends[1]);
  const std::string text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0 || text.empty()) return fail(how_it_ended(status, limit));
  if (text.front() == kThrew) return fail("it throws: " + text.substr(1));
  return text.substr(1);
}

}  // namespace vpfs::check_policy
