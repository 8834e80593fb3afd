#pragma once

#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "test/fuse/mount_process.h"
#include "test/support/embedded_servers.h"
#include "test/support/orangefs_servers.h"

namespace vpfs::test {

enum class Servers { embedded, real };

// A test that mounts an OrangeFS: three embedded servers, or two real ones where they are
// installed. It is skipped where nothing can be mounted.
class OrangefsMountTest : public ::testing::TestWithParam<Servers> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    if (GetParam() == Servers::embedded) {
      embedded_.emplace(3);
      address_ = embedded_->address();
      return;
    }
    const std::optional<std::string> program = OrangefsServers::find();
    if (!program) GTEST_SKIP() << "there is no pvfs2-server (VPFS_ORANGEFS_PREFIX)";
    real_.emplace(*program);
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
  std::optional<EmbeddedServers> embedded_;
  std::optional<OrangefsServers> real_;
  std::string address_;
};

inline std::string name_of_servers(const ::testing::TestParamInfo<Servers>& info) {
  return info.param == Servers::embedded ? "Embedded" : "Real";
}

}  // namespace vpfs::test
