#include "protocols/orangefs/errors.h"

#include <array>
#include <cerrno>

#include <gtest/gtest.h>

namespace vpfs::orangefs {
namespace {

TEST(Errors, KnownCodesAreThoseOfTheProtocol) {
  EXPECT_EQ(status_from_errno(0), 0);
  EXPECT_EQ(status_from_errno(ENOENT), -1073741826);
  EXPECT_EQ(status_from_errno(EIO), -(1 << 30 | 4));
  EXPECT_EQ(status_from_errno(EAGAIN), -(1 << 30 | 7));
  EXPECT_EQ(status_from_errno(ETIMEDOUT), -(1 << 30 | 53));
  EXPECT_EQ(errno_from_status(-1073741862), EPROTO);  // what a server answers a bad version with
}

TEST(Errors, EveryErrnoOfTheProtocolComesBack) {
  for (const int error :
       {EPERM,      ENOENT,    EIO,          EAGAIN, ENOMEM,     EEXIST, ENOTDIR, EISDIR,
        EINVAL,     ENOSPC,    ENAMETOOLONG, ENOSYS, ENOTEMPTY,  ELOOP,  ENODATA, EPROTO,
        EOPNOTSUPP, ETIMEDOUT, ECONNREFUSED, EACCES, ECONNRESET, ERANGE}) {
    EXPECT_EQ(errno_from_status(status_from_errno(error)), error);
  }
}

TEST(Errors, ErrnoThatTheProtocolLacksBecomesAnInputOutputError) {
  EXPECT_EQ(status_from_errno(EDQUOT), status_from_errno(EIO));
}

TEST(Errors, ClassOfAnErrorDoesNotHideItsErrno) {
  const Status bmi_timeout = -(1 << 30 | 1 << 7 | 53);
  EXPECT_EQ(errno_from_status(bmi_timeout), ETIMEDOUT);
}

TEST(Errors, ANumberThatIsNotAnErrnoGivesNone) {
  for (const Status status :
       {0, 5, -5, -(1 << 30), -(1 << 30 | 1 << 29 | 1), -(1 << 30 | 100), INT32_MIN}) {
    EXPECT_EQ(errno_from_status(status), 0) << status;
  }
}

TEST(Errors, DescriptionsNameErrorAndNumber) {
  EXPECT_EQ(describe_status(-1073741826), "No such file or directory (-1073741826)");
  EXPECT_EQ(describe_status(0), "Success (0)");
  EXPECT_EQ(describe_status(-(1 << 30 | 1 << 29 | 1)), "Operation cancelled (-1610612737)");
  EXPECT_EQ(describe_status(17), "Unknown error (17)");
}

}  // namespace
}  // namespace vpfs::orangefs
