#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/orangefs/calls/mount_address.h"
#include "fuse/interrupt.h"
#include "fuse/layout/layout.h"
#include "fuse/mount_point.h"
#include "fuse/process_jobs.h"

namespace vpfs::fuse {

// What a mount is asked for: the source, the directory, and the options behind -o.
struct MountOptions {
  std::string source;  // the directory below; "" with an address
  // An OrangeFS instead of a directory.
  std::optional<client::MountAddress> address;
  std::vector<std::string> lists;  // as they were given, for a process that takes over
  MountPoint::Options point;       // directory, and what the kernel is told
  ProcessJobs::Options jobs;       // jobid=, job_variables=
  std::string config;              // config=FILE; "": equal shares for all jobs and users
  std::string control;             // control=unix:PATH, instead of that in the file; "": none
  std::string log;                 // log=; "": as the file says
  std::string log_level;           // log_level=; likewise
  Duration entry_timeout = std::chrono::seconds(1);
  Duration attribute_timeout = std::chrono::seconds(1);
  std::uint64_t threads = 256;                   // at most, that wait for the kernel
  bool acl = true;                               // noacl
  Interrupts interrupts = Interrupts::of_dying;  // intr
  // For an OrangeFS only.
  std::uint64_t workers = 2;      // threads, each with connections of its own
  std::uint64_t connections = 1;  // of each of them to each server
  // How long they poll before they sleep (net::BusyPoll); none: vpfs-mount decides, others do not.
  std::optional<Duration> busy_poll = {};
  Duration retry_for = std::chrono::seconds(60);
  bool local_locks = false;  // locks=local
  Layout layout = {};        // layout=, of new files
  std::string virtual_pfs;   // vpfs=NAME, which the mount asks the proxies for; "": none
};

// Reads "posix:DIRECTORY" or "tcp://HOST:PORT/NAME", and lists such as "allow_other,jobid=auto".
// Options of fstab that are for others (noauto, _netdev, x-...) are passed over. The error names
// the word.
[[nodiscard]] Result<MountOptions> parse_mount_options(std::string_view source,
                                                       std::string_view directory,
                                                       const std::vector<std::string>& lists);

}  // namespace vpfs::fuse
