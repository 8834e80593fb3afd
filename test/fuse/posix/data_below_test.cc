#include "fuse/posix/data_below.h"

#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "test/support/process.h"

namespace vpfs::fuse {
namespace {

// No file grows beyond the size while it lives, as on a full disk.
class LargestFile {
 public:
  explicit LargestFile(rlim_t size) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit = {.rlim_cur = size, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~LargestFile() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    (void)std::signal(SIGXFSZ, handler_);
  }
  LargestFile(const LargestFile&) = delete;
  LargestFile& operator=(const LargestFile&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_ = {};
};

class DataBelow : public ::testing::Test {
 protected:
  DataBelow() {
    const std::string name = (directory_.path() / "file").string();
    request_.file = std::make_shared<OpenFile>();
    request_.file->descriptor =
        net::Descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  // Writes more than fits.
  int write() {
    std::vector<std::byte> data(std::size_t{1} << 20U);
    const LargestFile full(300'000);
    return write_below(request_, data);
  }

  const test::TemporaryDirectory directory_;
  IoRequest request_;
};

TEST_F(DataBelow, AProcessIsToldHowMuchOfItsWriteWasDone) {
  EXPECT_EQ(write(), 0);
  EXPECT_EQ(request_.moved, 300'000U);
  request_.offset = std::exchange(request_.moved, 0);
  EXPECT_EQ(write(), EFBIG);
}

// The kernel counts pages of its cache as written if there is no error, whatever the size.
TEST_F(DataBelow, PagesOfTheCacheThatAreWrittenInPartAreAnError) {
  request_.is_of_cache = true;
  EXPECT_EQ(write(), EFBIG);
}

}  // namespace
}  // namespace vpfs::fuse
