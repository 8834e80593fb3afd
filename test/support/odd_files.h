#pragma once

#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace vpfs::test {

// What may be found at a name instead of a regular file.
enum class OddFile { fifo, directory, socket, endless_device, full_device };

inline constexpr std::array<OddFile, 5> kOddFiles = {OddFile::fifo, OddFile::directory,
                                                     OddFile::socket, OddFile::endless_device,
                                                     OddFile::full_device};

// As errors of vpfs name it.
inline std::string_view name_of(OddFile kind) {
  switch (kind) {
    case OddFile::fifo:
      return "a FIFO";
    case OddFile::directory:
      return "a directory";
    case OddFile::socket:
      return "a socket";
    default:
      return "a device";
  }
}

// Puts one at `path`, where nothing is; devices as symbolic links. A socket's path has at most 107
// bytes.
inline void put_odd_file(OddFile kind, const std::string& path) {
  switch (kind) {
    case OddFile::fifo:
      ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0) << path;
      break;
    case OddFile::directory:
      std::filesystem::create_directory(path);
      break;
    case OddFile::socket: {
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      ASSERT_LT(path.size(), sizeof address.sun_path);
      std::memcpy(address.sun_path, path.data(), path.size());
      const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const auto* const name = reinterpret_cast<const sockaddr*>(&address);
      ASSERT_EQ(::bind(made, name, sizeof address), 0) << path;
      ::close(made);
      break;
    }
    case OddFile::endless_device:
      std::filesystem::create_symlink("/dev/zero", path);
      break;
    case OddFile::full_device:
      std::filesystem::create_symlink("/dev/full", path);
      break;
  }
}

// Runs as an unprivileged user during its life if the tests run as root.
class AsNobody {
 public:
  AsNobody() {
    if (::geteuid() == 0) changed_ = ::seteuid(65534) == 0;
  }
  ~AsNobody() {
    if (changed_) EXPECT_EQ(::seteuid(0), 0);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace vpfs::test
