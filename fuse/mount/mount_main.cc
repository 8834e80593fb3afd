#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/joined.h"
#include "base/log/log.h"
#include "base/signal_block.h"
#include "base/system_clock.h"
#include "control/admin/host_names.h"
#include "control/handover/taker.h"
#include "control/host/processors.h"
#include "control/plugins/plugin_files.h"
#include "fuse/mount_options.h"
#include "fuse/orangefs/orangefs_mount.h"
#include "fuse/posix/config.h"
#include "fuse/posix/directory_mount.h"
#include "fuse/posix/node_addresses.h"
#include "net/manager/manager_socket.h"
#include "net/polling/busy_poll.h"
#include "net/socket_options.h"

namespace {

using namespace vpfs;
using namespace vpfs::fuse;

constexpr int kManagerWaits = 50;

// The process whose place this one takes, if any, is told what is wrong. What is open here is that
// one's, so nothing may be removed or unmounted.
int give_up(control::Predecessor* predecessor, std::string_view message, int code = 1) {
  std::cerr << "vpfs-mount: " << message << std::endl;
  if (predecessor == nullptr) return code;
  predecessor->tell_failure(std::string(message));
  std::_Exit(code);
}

int complain(std::string_view message) {
  std::cerr << "vpfs-mount: " << message << std::endl;
  return 1;
}

// The directories must mean the same after the program has left its own.
std::string absolute(const std::string& path) {
  char* const whole = ::realpath(path.c_str(), nullptr);
  if (whole == nullptr) return path;
  std::string text = whole;
  std::free(whole);  // NOLINT: realpath() gives it
  return text;
}

// Goes into the background: the program that was started ends once the mount is there, with what
// the other one says through the pipe. Returns the pipe, in the one that goes on.
std::optional<int> go_to_background() {
  std::array<int, 2> pipe = {};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    ::close(pipe[0]);
    ::setsid();
    return pipe[1];
  }
  ::close(pipe[1]);
  char code = 1;
  while (::read(pipe[0], &code, 1) < 0 && errno == EINTR) {
  }
  std::_Exit(code);
}

// Standard streams lead to nowhere from now on, and the program that was started ends.
void leave_terminal(int pipe) {
  const char good = 0;
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
  if (nowhere > STDERR_FILENO) ::close(nowhere);
  (void)!::write(pipe, &good, 1);
  ::close(pipe);
}

// Goes to the background unless that is not wanted. False: it cannot.
bool leave_foreground(bool foreground, std::optional<int>& started) {
  if (foreground) return true;
  started = go_to_background();
  if (!started) (void)complain("cannot go to the background; -f stays here");
  return started.has_value();
}

// Runs the mount that `make` gives. `started`: the pipe to the program that was started. `lines`
// are logged once it serves, since the log may be on the mount.
template <typename Make>
int serve(const MountOptions& options, const Config& config, const std::vector<std::string>& lines,
          std::optional<int> started, control::Predecessor* predecessor, Make make) {
  const std::string& level = options.log_level.empty() ? config.log_level : options.log_level;
  const std::string& log = options.log.empty() ? config.log : options.log;
  if (const auto logging = set_up_logging("vpfs-mount", level, log); !logging) {
    return give_up(predecessor, logging.error().message);
  }
  (void)net::raise_open_file_limit();
  net::ignore_broken_pipes();
  const SystemClock clock;
  const auto mount = make(clock);
  if (!mount) return give_up(predecessor, mount.error().message);
  if (const auto serving = (*mount)->start(); !serving) {
    return give_up(predecessor, serving.error().message);
  }
  for (const std::string& line : lines) spdlog::info("{}", line);
  std::cout << "vpfs-mount: ready at " << options.point.directory << " for " << options.point.source
            << ", pid " << ::getpid() << std::endl;
  if (const auto manager = net::ManagerSocket::of_environment()) {
    int waits = kManagerWaits;
    (void)manager->tell(net::ready_words(), {}, waits, {});
  }
  if (started) leave_terminal(*started);
  (*mount)->run();
  return 0;
}

int serve_directory(const MountOptions& options, const Config& config, const ConfigErrors& errors,
                    control::HostNames& names, std::optional<int> started,
                    control::Predecessor* predecessor) {
  return serve(options, config, start_lines(config), started, predecessor, [&](const Clock& clock) {
    for (const std::string& warning : errors.warnings()) log_answer(spdlog::level::warn, warning);
    return DirectoryMount::make(options, config, names, clock, predecessor);
  });
}

int serve_orangefs(MountOptions options, bool foreground) {
  if (!options.busy_poll && !control::Processors::here().has_quota) {
    options.busy_poll = net::BusyPoll::kUsual;
  }
  std::optional<int> started;
  if (!leave_foreground(foreground, started)) return 1;
  return serve(options, Config(), {}, started, nullptr,
               [&](const Clock& clock) { return pvfs::OrangefsMount::make(options, clock); });
}

struct CommandLine {
  std::string source;
  std::string directory;
  std::vector<std::string> lists;
  bool foreground = false;
  bool only_check = false;
  std::string take_over;
  bool ignored_flags = false;
  std::vector<std::string> ignored;
};

void define(const Command& app, CommandLine& line) {
  app.add_option("SOURCE", line.source,
                 "posix:DIRECTORY, what is mounted already, or tcp://HOST:PORT/NAME")
      .required();
  app.add_option("DIRECTORY", line.directory, "where it appears").required();
  app.add_option("-o", line.lists, "options, with commas between them")
      .value_name("OPTIONS")
      .one_value_each_time()
      .may_be_empty();
}

void define_program(const Command& app, CommandLine& line) {
  define(app, line);
  app.add_flag("-f,--foreground", line.foreground, "stay in the foreground");
  app.add_option("--take-over", line.take_over,
                 "take over the mount of the program that has this socket (restart.socket)")
      .value_name("SOCKET");
  app.add_flag("--check-config", line.only_check, "say what the configuration will do, and exit");
}

// mount(8) calls its helper for a file system with letters of its own.
bool is_mount_helper(std::string_view program) {
  return program.substr(program.rfind('/') + 1) == "mount.vpfs";
}

void define_helper(const Command& app, CommandLine& line, bool& only_pretend) {
  define(app, line);
  app.add_flag("--check-config", line.only_check, "say what the configuration will do, and exit");
  app.add_flag("-f", only_pretend, "do everything but mount");
  app.add_flag("-s,-n,-v", line.ignored_flags, "for other file systems");
  app.add_option("-N,-t", line.ignored, "for other file systems");
}

int run(int argc, char** argv) {
  const OptionParser app(
      "Mounts an OrangeFS, or a directory so that its applications get shares of it.");
  CommandLine line;
  bool only_pretend = false;
  if (is_mount_helper(argv[0])) {
    define_helper(app, line, only_pretend);
  } else {
    define_program(app, line);
  }
  if (const auto code = app.parse("vpfs-mount", argc, argv)) return *code;
  auto options = parse_mount_options(line.source, absolute(line.directory), line.lists);
  if (!options) {
    complain(options.error().message);
    return kBadUsage;
  }
  if (options->address) {
    if (line.only_check || only_pretend) return 0;
    if (!line.take_over.empty()) {
      return complain("--take-over: it is for posix:DIRECTORY only; an OrangeFS is mounted anew");
    }
    return serve_orangefs(*options, line.foreground);
  }
  options->source = absolute(options->source);
  if (!options->config.empty()) options->config = absolute(options->config);
  control::HostNames names;
  Node node = this_node();
  names.set_own(std::move(node.names), std::move(node.addresses));
  ConfigErrors errors(options->config);
  control::PluginFiles plugins;
  const std::optional<Config> config =
      load_config_file(errors, options->control, nullptr, &names, &plugins);
  const bool serves = !line.only_check && !only_pretend;
  // The socket tells the other process which one has dialled, so the one that serves does.
  std::optional<int> started;
  if (config && serves && !leave_foreground(line.foreground, started)) return 1;
  std::optional<control::Predecessor> predecessor;
  if (serves && !line.take_over.empty()) {
    auto met = control::Predecessor::meet(line.take_over);
    if (!met) return complain(met.error().message);
    predecessor.emplace(std::move(*met));
  }
  if (!config) {
    std::cerr << errors.to_string();
    if (predecessor) predecessor->tell_failure(joined(errors.lines(), "; "));
    return kBadUsage;
  }
  if (line.only_check) {
    for (const std::string& warning : errors.warnings()) {
      std::cerr << "warning: " << warning << "\n";
    }
    std::cout << to_summary(*config);
    return 0;
  }
  if (only_pretend) return 0;
  return serve_directory(*options, *config, errors, names, started,
                         predecessor ? &*predecessor : nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  vpfs::hold_back_asking_signals();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vpfs-mount: %s\n", error.what());
    return 1;
  }
}
