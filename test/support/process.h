#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

// Programs, free ports and scratch directories for integration tests. Each object cleans up at its
// end: programs are killed, ports freed, directories removed.
namespace vpfs::test {

using namespace std::chrono_literals;

// A program that runs beside the test. It is killed when the test program ends in any way.
class Process {
 public:
  struct Exit {
    int code = -1;   // exit code; -1 if a signal ended the program
    int signal = 0;  // the signal that ended it, or 0
    rusage usage = {};

    [[nodiscard]] bool ok() const { return code == 0; }
    [[nodiscard]] std::chrono::duration<double> cpu() const;
  };

  // Starts `command[0]` (found on PATH if it has no slash) with empty standard input. `environment`
  // is added to the test's own. A program that cannot be started exits with 127, and errors() says
  // why.
  explicit Process(std::vector<std::string> command,
                   const std::vector<std::pair<std::string, std::string>>& environment = {});
  // Kills the program if it still runs.
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running();

  // The program's standard output and standard error so far.
  [[nodiscard]] std::string output() const;
  [[nodiscard]] std::string errors() const;
  // Waits until output() or errors() has a complete line that contains `text`. False if the program
  // ends or time runs out before.
  [[nodiscard]] bool wait_for_line(const std::string& text,
                                   std::chrono::milliseconds patience = 10s);

  void signal(int number) const;
  // Waits for the end; nothing if the program still runs after `patience`.
  std::optional<Exit> wait(std::chrono::milliseconds patience = 30s);
  // Sends SIGTERM, and SIGKILL if the program does not end in time.
  Exit stop(std::chrono::milliseconds patience = 10s);
  // Sends SIGKILL.
  Exit kill();

 private:
  void close();

  pid_t pid_ = -1;
  int output_ = -1;  // anonymous files that the program writes to
  int errors_ = -1;
  std::optional<Exit> exit_;
};

// A TCP port of 127.0.0.1 that the kernel gives to no other process during the object's life. A
// server that sets SO_REUSEADDR (all of ours do) can listen on it meanwhile.
class ReservedPort {
 public:
  ReservedPort();
  ~ReservedPort();
  ReservedPort(ReservedPort&& other) noexcept;
  ReservedPort& operator=(ReservedPort&&) = delete;

  // Whether a process accepts connections there.
  [[nodiscard]] bool answers() const;

  // `count` ports with consecutive numbers.
  [[nodiscard]] static std::vector<ReservedPort> in_a_row(std::size_t count);

  [[nodiscard]] std::uint16_t number() const { return number_; }
  // "127.0.0.1:PORT".
  [[nodiscard]] std::string address() const;

 private:
  explicit ReservedPort(std::uint16_t number);

  int socket_ = -1;
  std::uint16_t number_ = 0;
};

// A new empty directory, removed with its contents.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Writes a file below it and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

[[nodiscard]] std::string read_text(const std::filesystem::path& file);

}  // namespace vpfs::test
