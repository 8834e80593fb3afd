#pragma once

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "test/fuse/mount_process.h"
#include "test/support/servers/embedded_servers.h"
#include "test/support/servers/orangefs_servers.h"

namespace vpfs::test {

enum class Servers { embedded, real };

// A test that mounts an OrangeFS: three embedded servers, or two real ones where they are
// installed. It is skipped where nothing can be mounted.
class OrangefsMountTest : public ::testing::TestWithParam<Servers> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    // A second zone, as where proxies are, which this mount does not use.
    const auto second_zone = [this] { return spare_ports_.emplace_back().number(); };
    if (GetParam() == Servers::embedded) {
      embedded_.emplace(3, "",
                        std::vector<std::uint16_t>{second_zone(), second_zone(), second_zone()});
      address_ = embedded_->address();
      return;
    }
    const std::optional<std::string> program = OrangefsServers::find();
    if (!program) GTEST_SKIP() << "there is no pvfs2-server (VPFS_ORANGEFS_PREFIX)";
    real_.emplace(*program, [&](std::uint16_t /*server*/) { return second_zone(); });
    ASSERT_TRUE(real_->wait_until_ready()) << real_->errors();
    address_ = real_->address();
  }

  [[nodiscard]] MountProcess::Settings settings(std::vector<std::string> options = {
                                                    "allow_other"}) const {
    MountProcess::Settings wanted;
    wanted.options = std::move(options);
    wanted.address = address_;
    return wanted;
  }

 private:
  std::vector<ReservedPort> spare_ports_;
  std::optional<EmbeddedServers> embedded_;
  std::optional<OrangefsServers> real_;
  std::string address_;
};

// The errno of a call that gives -1, or 0.
inline int problem_of(long result) {
  return result < 0 ? errno : 0;
}

inline struct stat status_of(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(problem_of(::lstat(path.c_str(), &status)), 0) << path;
  return status;
}

inline void make_file(const std::string& path, const std::string& text = "") {
  std::ofstream file(path);
  file << text;
  file.close();
  EXPECT_TRUE(file.good()) << path;
}

// A directory of its own: the root of a real file system has a "lost+found".
inline std::string new_directory(const MountProcess& mount) {
  const std::string path = mount.path() / "work";
  EXPECT_EQ(problem_of(::mkdir(path.c_str(), 0755)), 0);
  return path;
}

inline std::string name_of_servers(const ::testing::TestParamInfo<Servers>& info) {
  return info.param == Servers::embedded ? "Embedded" : "Real";
}

}  // namespace vpfs::test
