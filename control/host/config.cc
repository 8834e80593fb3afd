#include "control/host/config.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/log/log_config.h"
#include "base/named_file.h"
#include "control/metrics/http_tls.h"

namespace vpfs::control {
namespace {

std::string reason() {
  return std::error_code(errno, std::system_category()).message();
}

bool may(const std::string& path, int mode) {
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

// The program writes FILE.new beside the file and renames it.
std::optional<std::string> status_file_problem(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    return fmt::format("'{}' is a directory, not a file", path);
  }
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, unknown)) {
    return fmt::format("the folder '{}' does not exist", folder);
  }
  if (!may(folder, W_OK | X_OK)) {
    return fmt::format("the folder '{}' is not writable: {}", folder, reason());
  }
  const std::string fresh = path + ".new";
  if (!may(fresh, W_OK) && errno != ENOENT) {
    return fmt::format("'{}' is not writable: {}", fresh, reason());
  }
  return std::nullopt;
}

}  // namespace

void read_process(ConfigReader& own, HostConfig& config, const ProgramName& name) {
  own.get("status_file", &config.status_file);
  own.get("status_interval", &config.status_interval, std::chrono::milliseconds(100),
          std::chrono::hours(24));
  read_log(own, name.program, config.log, config.log_level);
}

void read_control(ConfigReader& file, HostConfig& config, const HostConfig* running,
                  const ProgramName& name) {
  config.control = read_port_config(
      file,
      [&](ConfigReader& control) {
        stage::read_fallback(control, config);
        stage::read_longest_delay(control, config);
        read_http(control, config.http);
        control.get("journal", &config.journal);
        control.get("history", &config.history);
        control.get("ledger", &config.ledger);
        control.get("name", &config.name);
        if (running == nullptr || !control.flawless()) return;
        require_same(control, "journal", config.journal == running->journal, name);
        require_same(control, "history", config.history == running->history, name);
        require_same(control, "ledger", config.ledger == running->ledger, name);
        require_same(control, "http", config.http.address == running->http.address, name);
        require_same(control, "https", config.http.tls_address == running->http.tls_address, name);
        require_same(control, "http_virtual_pfs",
                     config.http.most_virtual_pfs == running->http.most_virtual_pfs, name);
      },
      MayDial::yes);
}

void require_same(ConfigReader& reader, std::string_view key, bool same, const ProgramName& name) {
  if (same) return;
  reader.report(key, fmt::format("cannot change while the {} runs: restart it", name.role));
}

void check_folders(const HostConfig& config, ConfigErrors& errors) {
  check_port_folders(config.control, "control", errors);
  for (const auto& [key, path] : {std::pair("control.journal", config.journal),
                                  {"control.history", config.history},
                                  {"control.ledger", config.ledger}}) {
    if (const auto problem = problem_of_place(path)) errors.add(key, *problem);
  }
}

Accounts accounts_of(const stage::Names& names) {
  return {.user = [&names](const std::string& name) { return names.user(name); },
          .group = [&names](const std::string& name) { return names.group(name); }};
}

void check_process(const HostConfig& config, ConfigErrors& errors, const ProgramName& name,
                   const stage::Names* names) {
  const Accounts accounts = names == nullptr ? Accounts() : accounts_of(*names);
  if (!config.status_file.empty()) {
    if (const auto problem = status_file_problem(config.status_file)) {
      errors.add(fmt::format("{}.status_file", name.role), *problem);
    }
  }
  check_log_here(config.log, errors, fmt::format("{}.log", name.role));
  check_port_config(config.control, errors, accounts);
  check_http_tls(config.http, config.control, errors, accounts);
}

}  // namespace vpfs::control
