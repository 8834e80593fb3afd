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
  // Closes; see Session about operations that still run.
  ~FileSystem();

  [[nodiscard]] const MountConfig& config() const { return session_->config(); }
  [[nodiscard]] Session& session() { return *session_; }
  [[nodiscard]] orangefs::Handle root() const { return config().root; }
  void close() { session_->close(); }

  [[nodiscard]] net::Task<Result<orangefs::Handle>> lookup(orangefs::Handle directory,
                                                           std::string name);
  // From the root; symbolic links are not followed.
  [[nodiscard]] net::Task<Result<orangefs::Handle>> resolve(std::string path);
  [[nodiscard]] net::Task<Result<Stat>> stat(orangefs::Handle handle);
  [[nodiscard]] net::Task<Result<std::unique_ptr<File>>> open(orangefs::Handle handle);

  // `datafiles` 0: as the file system is configured.
  [[nodiscard]] net::Task<Result<orangefs::Handle>> create(orangefs::Handle directory,
                                                           std::string name,
                                                           std::uint32_t permissions,
                                                           std::uint32_t datafiles = 0);
  [[nodiscard]] net::Task<Result<orangefs::Handle>> mkdir(orangefs::Handle directory,
                                                          std::string name,
                                                          std::uint32_t permissions);
  [[nodiscard]] net::Task<Result<orangefs::Handle>> symlink(orangefs::Handle directory,
                                                            std::string name, std::string target);
  [[nodiscard]] net::Task<Result<std::string>> readlink(orangefs::Handle link);
  // A file, an empty directory or a symbolic link.
  [[nodiscard]] net::Task<Result<void>> remove(orangefs::Handle directory, std::string name);
  // Replaces what has the new name already.
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
  // The server with metadata whose turn it is to hold a new object.
  [[nodiscard]] std::size_t next_metadata_server();
  // A request to the server that holds `target`, about `object`.
  [[nodiscard]] net::Task<Result<orangefs::Response>> ask(orangefs::Handle target,
                                                          orangefs::Handle object,
                                                          orangefs::Capability capability,
                                                          orangefs::RequestBody body,
                                                          bool* repeated = nullptr);
  // A request that was repeated may find what its first copy did; that is success.
  [[nodiscard]] net::Task<Result<void>> enter(const Directory& parent, std::string name,
                                              orangefs::Handle handle);
  // What the name led to; nothing when the name was gone after the request had been repeated.
  [[nodiscard]] net::Task<Result<std::optional<orangefs::Handle>>> leave(const Directory& parent,
                                                                         std::string name);
  // After enter() of a new object has failed: destroys the object, unless a name may lead to it.
  [[nodiscard]] net::Task<> undo(const Directory& parent, const Error& failure,
                                 orangefs::Handle handle, std::vector<orangefs::Handle> datafiles);
  [[nodiscard]] net::Task<Result<void>> replace(const Directory& source, std::string name,
                                                const Directory& target, std::string new_name,
                                                orangefs::Handle moved, orangefs::Handle replaced);
  // Removes objects that no name leads to any more; one that is gone already is no error.
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
