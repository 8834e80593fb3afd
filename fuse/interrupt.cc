#include "fuse/interrupt.h"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace vpfs::fuse {
namespace {

// The mask of signals behind `key` in a line of /proc/PID/status.
bool read_mask(std::string_view line, std::string_view key, std::uint64_t& mask) {
  if (!line.starts_with(key)) return false;
  const std::size_t begin = line.find_first_not_of(" \t", key.size());
  if (begin == std::string_view::npos) return false;
  return std::from_chars(line.data() + begin, line.data() + line.size(), mask, 16).ec ==
         std::errc();
}

// Signals that a process survives unless it handles them: CHLD, CONT, STOP and its kin, URG, WINCH.
constexpr std::uint64_t kHarmless = (1ULL << 16U) | (1ULL << 17U) | (1ULL << 18U) | (1ULL << 19U) |
                                    (1ULL << 20U) | (1ULL << 21U) | (1ULL << 22U) | (1ULL << 27U);

bool is_dying(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  // One that cannot be seen may be dying.
  if (!status) return true;
  std::uint64_t pending = 0;
  std::uint64_t shared = 0;
  std::uint64_t blocked = 0;
  std::uint64_t ignored = 0;
  std::uint64_t caught = 0;
  for (std::string line; std::getline(status, line);) {
    (void)(read_mask(line, "SigPnd:", pending) || read_mask(line, "ShdPnd:", shared) ||
           read_mask(line, "SigBlk:", blocked) || read_mask(line, "SigIgn:", ignored) ||
           read_mask(line, "SigCgt:", caught));
  }
  // The kernel turns a signal that ends a process into SIGKILL for each of its threads, which none
  // can block.
  return ((pending | shared) & ~blocked & ~ignored & ~caught & ~kHarmless) != 0;
}

}  // namespace

bool obeys(Interrupts which, pid_t process) {
  return which == Interrupts::all || process == 0 || is_dying(process);
}

}  // namespace vpfs::fuse
