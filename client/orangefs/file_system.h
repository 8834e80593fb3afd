#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/orangefs/file.h"
#include "client/orangefs/session.h"
#include "net/async.h"
#include "protocols/orangefs/basic_types.h"

namespace vpfs::client {

struct Stat {
  orangefs::Handle handle = 0;
  orangefs::ObjectType type = orangefs::ObjectType::none;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t permissions = 0;
  std::uint64_t atime = 0;  // seconds since the epoch
  std::uint64_t mtime = 0;
  std::uint64_t ctime = 0;
  std::uint64_t size = 0;  // of a file, or of a symbolic link's target
  std::uint32_t datafiles = 0;
  std::int64_t strip_size = 0;
};

// What set_attributes() changes: the fields that are set.
struct AttributeChanges {
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint32_t> permissions;
  std::optional<std::uint64_t> atime;
  std::optional<std::uint64_t> mtime;
};

struct FileSystemStatus {
  std::uint64_t bytes_available = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t handles_available = 0;
  std::uint64_t handles_total = 0;
};

struct DirectoryEntry {
  std::string name;
  orangefs::Handle handle = 0;
};

enum class SetMode : std::int32_t { any = 0, create = 1, replace = 2 };  // of extended attributes

// The name space of an OrangeFS-protocol file system, embedded or real.
//
// Objects are named by their handles; lookup() and resolve() find them. Nothing is cached: every
// operation sees what the servers have. The code of an error is an errno value. Operations cannot
// be cancelled; each ends by the servers' time-outs and retries. Belongs to the strand of its
// executor, and must outlive its operations and open files.
class FileSystem {
 public:
  [[nodiscard]] static net::Task<Result<std::unique_ptr<FileSystem>>> mount(MountAddress address,
                                                                            SessionOptions options,
                                                                            const Clock& clock);
  explicit FileSystem(std::unique_ptr<Session> session);
  // Closes the session; see Session for operations that are still running.
  ~FileSystem();

  [[nodiscard]] const MountConfig& config() const { return session_->config(); }
  [[nodiscard]] Session& session() { return *session_; }
  [[nodiscard]] orangefs::Handle root() const { return config().root; }
  void close() { session_->close(); }

  [[nodiscard]] net::Task<Result<orangefs::Handle>> lookup(orangefs::Handle directory,
                                                           std::string name);
  // Walks from the root and follows no symbolic links.
  [[nodiscard]] net::Task<Result<orangefs::Handle>> resolve(std::string path);
  [[nodiscard]] net::Task<Result<Stat>> stat(orangefs::Handle handle);
  [[nodiscard]] net::Task<Result<std::unique_ptr<File>>> open(orangefs::Handle handle);

  // `datafiles` 0: the number that the file system is configured for. With `servers` (indices in
  // config().servers) the file has one datafile on each of them, in their order.
  [[nodiscard]] net::Task<Result<orangefs::Handle>> create(orangefs::Handle directory,
                                                           std::string name,
                                                           std::uint32_t permissions,
                                                           std::uint32_t datafiles = 0,
                                                           std::vector<std::size_t> servers = {});
  [[nodiscard]] net::Task<Result<orangefs::Handle>> mkdir(orangefs::Handle directory,
                                                          std::string name,
                                                          std::uint32_t permissions);
  [[nodiscard]] net::Task<Result<orangefs::Handle>> symlink(orangefs::Handle directory,
                                                            std::string name, std::string target);
  [[nodiscard]] net::Task<Result<std::string>> readlink(orangefs::Handle link);
  // Removes a file, an empty directory or a symbolic link.
  [[nodiscard]] net::Task<Result<void>> remove(orangefs::Handle directory, std::string name);
  // Replaces an object that already has the new name.
  [[nodiscard]] net::Task<Result<void>> rename(orangefs::Handle directory, std::string name,
                                               orangefs::Handle new_directory,
                                               std::string new_name);
  [[nodiscard]] net::Task<Result<std::vector<DirectoryEntry>>> readdir(orangefs::Handle directory);

  [[nodiscard]] net::Task<Result<void>> set_attributes(orangefs::Handle handle,
                                                       AttributeChanges changes);
  [[nodiscard]] net::Task<Result<void>> truncate(orangefs::Handle file, std::uint64_t size);
  [[nodiscard]] net::Task<Result<void>> flush(orangefs::Handle file);
  [[nodiscard]] net::Task<Result<FileSystemStatus>> statfs();

  [[nodiscard]] net::Task<Result<std::string>> get_extended(orangefs::Handle handle,
                                                            std::string key);
  [[nodiscard]] net::Task<Result<void>> set_extended(orangefs::Handle handle, std::string key,
                                                     std::string value,
                                                     SetMode mode = SetMode::any);
  [[nodiscard]] net::Task<Result<void>> remove_extended(orangefs::Handle handle, std::string key);
  [[nodiscard]] net::Task<Result<std::vector<std::string>>> list_extended(orangefs::Handle handle);

 private:
  struct Directory {
    orangefs::Handle handle = 0;
    orangefs::Capability capability;
    orangefs::DistributedDirectory layout;
  };

  [[nodiscard]] net::Task<Result<Directory>> directory(orangefs::Handle handle);
  // The entries of a directory that one of its dirdata objects holds.
  [[nodiscard]] net::Task<Result<std::vector<DirectoryEntry>>> entries_at(
      orangefs::Handle place, const Directory& directory);
  // Picks the metadata server for a new object, in turn.
  [[nodiscard]] std::size_t next_metadata_server();
  // Sends a request about `object` to the server that holds `target`.
  [[nodiscard]] net::Task<Result<orangefs::Response>> ask(orangefs::Handle target,
                                                          orangefs::Handle object,
                                                          orangefs::Capability capability,
                                                          orangefs::RequestBody body,
                                                          bool* repeated = nullptr);
  // A retry may find the entry that its first attempt made; that is success.
  [[nodiscard]] net::Task<Result<void>> enter(const Directory& parent, std::string name,
                                              orangefs::Handle handle);
  // Returns the handle that the name had; empty when a retry found the name gone.
  [[nodiscard]] net::Task<Result<std::optional<orangefs::Handle>>> leave(const Directory& parent,
                                                                         std::string name);
  // Call after enter() of a new object failed. Destroys the object unless a name may lead to it.
  [[nodiscard]] net::Task<> undo(const Directory& parent, const Error& failure,
                                 orangefs::Handle handle, std::vector<orangefs::Handle> datafiles);
  [[nodiscard]] net::Task<Result<void>> replace(const Directory& source, std::string name,
                                                const Directory& target, std::string new_name,
                                                orangefs::Handle moved, orangefs::Handle replaced);
  // Removes objects that have lost their name. A missing object is no error.
  [[nodiscard]] net::Task<Result<void>> destroy_all(const Directory& parent,
                                                    orangefs::Handle handle,
                                                    orangefs::Attributes attributes);
  [[nodiscard]] net::Task<Result<void>> destroy(const Directory& parent, orangefs::Handle handle,
                                                std::vector<orangefs::Handle> datafiles);
  [[nodiscard]] net::Task<Result<void>> destroy_object(const Directory& parent,
                                                       orangefs::Handle handle);

  std::unique_ptr<Session> session_;
  std::size_t turn_ = 0;
};

}  // namespace vpfs::client
