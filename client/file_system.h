#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/file.h"
#include "client/session.h"
#include "net/async.h"
#include "protocols/pvfs2/basic_types.h"

namespace vpfs::client {

struct Stat {
  pvfs2::Handle handle = 0;
  pvfs2::ObjectType type = pvfs2::ObjectType::none;
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
  pvfs2::Handle handle = 0;
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

  [[nodiscard]] const FsConfig& config() const { return session_->config(); }
  [[nodiscard]] Session& session() { return *session_; }
  [[nodiscard]] pvfs2::Handle root() const { return config().root; }
  void close() { session_->close(); }

  [[nodiscard]] net::Task<Result<pvfs2::Handle>> lookup(pvfs2::Handle directory, std::string name);
  // From the root; symbolic links are not followed.
  [[nodiscard]] net::Task<Result<pvfs2::Handle>> resolve(std::string path);
  [[nodiscard]] net::Task<Result<Stat>> stat(pvfs2::Handle handle);
  [[nodiscard]] net::Task<Result<std::unique_ptr<File>>> open(pvfs2::Handle handle);

  // `datafiles` 0: as the file system is configured.
  [[nodiscard]] net::Task<Result<pvfs2::Handle>> create(pvfs2::Handle directory, std::string name,
                                                        std::uint32_t permissions,
                                                        std::uint32_t datafiles = 0);
  [[nodiscard]] net::Task<Result<pvfs2::Handle>> mkdir(pvfs2::Handle directory, std::string name,
                                                       std::uint32_t permissions);
  [[nodiscard]] net::Task<Result<pvfs2::Handle>> symlink(pvfs2::Handle directory, std::string name,
                                                         std::string target);
  [[nodiscard]] net::Task<Result<std::string>> readlink(pvfs2::Handle link);
  // A file, an empty directory or a symbolic link.
  [[nodiscard]] net::Task<Result<void>> remove(pvfs2::Handle directory, std::string name);
  // Replaces what has the new name already.
  [[nodiscard]] net::Task<Result<void>> rename(pvfs2::Handle directory, std::string name,
                                               pvfs2::Handle new_directory, std::string new_name);
  [[nodiscard]] net::Task<Result<std::vector<DirectoryEntry>>> readdir(pvfs2::Handle directory);

  [[nodiscard]] net::Task<Result<void>> set_attributes(pvfs2::Handle handle,
                                                       AttributeChanges changes);
  [[nodiscard]] net::Task<Result<void>> truncate(pvfs2::Handle file, std::uint64_t size);
  [[nodiscard]] net::Task<Result<void>> flush(pvfs2::Handle file);
  [[nodiscard]] net::Task<Result<FileSystemStatus>> statfs();

  [[nodiscard]] net::Task<Result<std::string>> get_extended(pvfs2::Handle handle, std::string key);
  [[nodiscard]] net::Task<Result<void>> set_extended(pvfs2::Handle handle, std::string key,
                                                     std::string value,
                                                     SetMode mode = SetMode::any);
  [[nodiscard]] net::Task<Result<void>> remove_extended(pvfs2::Handle handle, std::string key);
  [[nodiscard]] net::Task<Result<std::vector<std::string>>> list_extended(pvfs2::Handle handle);

 private:
  struct Directory {
    pvfs2::Handle handle = 0;
    pvfs2::Capability capability;
    pvfs2::DistributedDirectory layout;
  };

  [[nodiscard]] net::Task<Result<Directory>> directory(pvfs2::Handle handle);
  // The server with metadata whose turn it is to hold a new object.
  [[nodiscard]] std::size_t next_metadata_server();
  // A request to the server that holds `target`, about `object`.
  [[nodiscard]] net::Task<Result<pvfs2::Response>> ask(pvfs2::Handle target, pvfs2::Handle object,
                                                       pvfs2::Capability capability,
                                                       pvfs2::RequestBody body,
                                                       bool* repeated = nullptr);
  // A request that was repeated may find what its first copy did; that is success.
  [[nodiscard]] net::Task<Result<void>> enter(const Directory& parent, std::string name,
                                              pvfs2::Handle handle);
  // What the name led to; nothing when the name was gone after the request had been repeated.
  [[nodiscard]] net::Task<Result<std::optional<pvfs2::Handle>>> leave(const Directory& parent,
                                                                      std::string name);
  // After enter() of a new object has failed: destroys the object, unless a name may lead to it.
  [[nodiscard]] net::Task<> undo(const Directory& parent, const Error& failure,
                                 pvfs2::Handle handle, std::vector<pvfs2::Handle> datafiles);
  [[nodiscard]] net::Task<Result<void>> replace(const Directory& source, std::string name,
                                                const Directory& target, std::string new_name,
                                                pvfs2::Handle moved, pvfs2::Handle replaced);
  // Removes objects that no name leads to any more; one that is gone already is no error.
  [[nodiscard]] net::Task<Result<void>> destroy_all(const Directory& parent, pvfs2::Handle handle,
                                                    pvfs2::Attributes attributes);
  [[nodiscard]] net::Task<Result<void>> destroy(const Directory& parent, pvfs2::Handle handle,
                                                std::vector<pvfs2::Handle> datafiles);
  [[nodiscard]] net::Task<Result<void>> destroy_object(const Directory& parent,
                                                       pvfs2::Handle handle);

  std::unique_ptr<Session> session_;
  std::size_t turn_ = 0;
};

}  // namespace vpfs::client
