#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/result.h"
#include "client/orangefs/file_system.h"
#include "fuse/layout/layout.h"
#include "fuse/orangefs/job_servers.h"
#include "net/async.h"

namespace vpfs::fuse::pvfs {

// The extended attribute that shows and sets a layout.
inline constexpr std::string_view kLayoutName = "user.vpfs.layout";

// Says where the data of new files go: as their directory has it, or else as the mount does.
// Thread-safe.
class Placement {
 public:
  // The data servers of `config`. A directory's layout is believed for `believed`; the clock
  // outlives the placement. The error names a server that the layout wants and `config` does
  // not have.
  [[nodiscard]] static Result<void> check(const Layout& layout, const client::MountConfig& config);
  Placement(Layout layout, const client::MountConfig& config, Duration believed,
            const Clock& clock);

  // The servers for a file that `process` makes, as indices in config.servers; empty: the file
  // system chooses.
  [[nodiscard]] net::Task<std::vector<std::size_t>> servers_for(client::FileSystem& servers,
                                                                orangefs::Handle directory,
                                                                pid_t process);
  // The directory's own layout.
  [[nodiscard]] net::Task<std::optional<Layout>> layout_of(client::FileSystem& servers,
                                                           orangefs::Handle directory);
  // The directory has got another layout, or none.
  void forget(orangefs::Handle directory);

  // An error if the text is not a layout for these servers.
  [[nodiscard]] Result<void> check(std::string_view text) const;
  // The servers of a file, as a layout: "list:s0:s2".
  [[nodiscard]] std::string text_of(const std::vector<std::size_t>& servers) const;
  [[nodiscard]] const Layout& layout() const { return layout_; }

 private:
  struct Known {
    std::optional<Layout> layout;
    TimePoint until;
  };

  // With the lock.
  void remember(orangefs::Handle directory, const std::optional<Layout>& layout, TimePoint until);

  const Layout layout_;
  const LayoutServers servers_;       // with data
  std::vector<std::size_t> indices_;  // theirs in config.servers
  std::vector<std::string> aliases_;  // of all
  const std::string node_;
  const Duration believed_;
  const Clock& clock_;
  JobServers job_servers_;
  std::mutex mutex_;
  std::unordered_map<orangefs::Handle, Known> known_;
  std::size_t known_bytes_ = 0;  // of their layouts' names
};

}  // namespace vpfs::fuse::pvfs
