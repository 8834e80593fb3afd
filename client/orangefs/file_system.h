#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/orangefs/caller_session.h"
#include "client/orangefs/file.h"
#include "client/orangefs/stat.h"
#include "net/async.h"
#include "protocols/orangefs/basic_types.h"

namespace vpfs::client {

// What set_attributes() changes: the fields that are set.
struct AttributeChanges {
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint32_t> permissions;
  std::optional<std::uint64_t> atime;
  std::optional<std::uint64_t> mtime;
  // The server's present time instead. A caller with the right to write the object may ask for it.
  bool atime_now = false;
  bool mtime_now = false;
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

// Where a listing goes on: one of the directory's dirdata objects, and the server's token in it.
struct DirectoryCursor {
  std::size_t place = 0;
  std::uint64_t token = 0x7ffffffe;  // the start (docs/wire-orangefs.md section 2)
  bool operator==(const DirectoryCursor&) const = default;
};

// A part of a listing; it may be empty before the end.
struct DirectoryPage {
  std::vector<DirectoryEntry> entries;
  DirectoryCursor next;
  bool end = false;
};

// What remove() may remove. Otherwise it fails as rmdir() (ENOTDIR) or unlink() (EISDIR).
enum class Removal { any, directory, not_directory };
// What rename() does with an object that has the new name already; `keep` fails with EEXIST.
enum class Renaming { replace, keep };

// Where a file had its last name, and which caller removed it. Servers destroy an object with the
// rights that its remover has in that directory.
struct LastName {
  orangefs::Handle directory = 0;
  Caches::AttributesPtr attributes;  // of the directory, with a capability; shared with the cache
  CallerPtr remover;
};

// Asked when a file has lost its last name. True: it is still open, so it stays until
// FileSystem::destroy().
using Keep = std::function<bool(orangefs::Handle, LastName)>;

// Told once, when the removal is complete as far as any client can see.
using Gone = std::function<void()>;

enum class SetMode : std::int32_t { any = 0, create = 1, replace = 2 };  // of extended attributes

// The name space of an OrangeFS-protocol file system, embedded or real, as one caller sees it.
//
// A cheap, copyable view: copies share a session, which closes with the last of them and of their
// open files. A view must outlive its operations.
//
// Objects are named by their handles; lookup() and resolve() find them. Without caches every
// operation sees what the servers have (caches.h says what it sees with them). The code of an error
// is an errno value; errno_of() gives it. Operations cannot be cancelled; each ends by the servers'
// time-outs and retries. Belongs to the strand of its executor.
class FileSystem {
 public:
  // The caller is that of `options`.
  [[nodiscard]] static net::Task<Result<std::unique_ptr<FileSystem>>> mount(MountAddress address,
                                                                            SessionOptions options,
                                                                            const Clock& clock);
  FileSystem(std::shared_ptr<Session> session, CallerPtr caller)
      : session_(std::move(session), std::move(caller)) {}

  // The same file system for another caller, whose credential and job all its requests show.
  [[nodiscard]] FileSystem as(CallerPtr caller) const {
    return {session_.shared_session(), std::move(caller)};
  }

  [[nodiscard]] const MountConfig& config() const { return session_.config(); }
  [[nodiscard]] Session& session() const { return session_.session(); }
  [[nodiscard]] const std::shared_ptr<Session>& shared_session() const {
    return session_.shared_session();
  }
  [[nodiscard]] const CallerPtr& caller() const { return session_.caller(); }
  [[nodiscard]] orangefs::Handle root() const { return config().root; }
  // Closes the session, for all views; see Session for operations that are still running.
  void close() { session().close(); }

  [[nodiscard]] net::Task<Result<orangefs::Handle>> lookup(orangefs::Handle directory,
                                                           std::string name);
  // Walks from the root and follows no symbolic links.
  [[nodiscard]] net::Task<Result<orangefs::Handle>> resolve(std::string path);
  [[nodiscard]] net::Task<Result<Stat>> stat(orangefs::Handle handle);
  // What the caches know of a directory, as stat() would say; nothing: too little.
  [[nodiscard]] std::optional<Caches::KnownDirectory> known_directory(
      orangefs::Handle handle) const;
  // lookup() and stat(). An object that is gone when it is described, or that a cache remembers, is
  // looked up again: whoever replaces what a name leads to does not take the name away.
  [[nodiscard]] net::Task<Result<Stat>> stat_name(orangefs::Handle directory, std::string name);
  // Without the size, perhaps from the caches.
  [[nodiscard]] net::Task<Result<Stat>> owner_and_mode(orangefs::Handle handle);
  // stat() for all of them at once, with few requests; the results are in the same order.
  [[nodiscard]] net::Task<std::vector<Result<Stat>>> stat_all(
      std::vector<orangefs::Handle> handles);
  [[nodiscard]] net::Task<Result<std::unique_ptr<File>>> open(
      orangefs::Handle handle, std::optional<orangefs::Capability> right = std::nullopt);
  // The servers of a file's datafiles, as indices in config().servers, in the order of its strips.
  [[nodiscard]] net::Task<Result<std::vector<std::size_t>>> servers_of(orangefs::Handle file);

  // New objects belong to the caller. In a directory with the set-group-id bit they have the
  // directory's group, and new directories the bit as well.
  //
  // `datafiles` 0: the number that the file system is configured for. With `servers` (indices in
  // config().servers) the file has one datafile on each of them, in their order.
  [[nodiscard]] net::Task<Result<orangefs::Handle>> create(orangefs::Handle directory,
                                                           std::string name,
                                                           std::uint32_t permissions,
                                                           std::uint32_t datafiles = 0,
                                                           std::vector<std::size_t> servers = {});
  // Opens it while its name is entered, so that it takes no longer than create(). An error of the
  // opening leaves the file.
  [[nodiscard]] net::Task<Result<std::unique_ptr<File>>> create_and_open(
      orangefs::Handle directory, std::string name, std::uint32_t permissions,
      std::uint32_t datafiles = 0, std::vector<std::size_t> servers = {});
  [[nodiscard]] net::Task<Result<orangefs::Handle>> mkdir(orangefs::Handle directory,
                                                          std::string name,
                                                          std::uint32_t permissions);
  [[nodiscard]] net::Task<Result<orangefs::Handle>> symlink(orangefs::Handle directory,
                                                            std::string name, std::string target);
  [[nodiscard]] net::Task<Result<std::string>> readlink(orangefs::Handle link);
  // Removes a file, an empty directory or a symbolic link. Calls `gone`, if given, when the object
  // is gone for all clients; the removal of its datafiles then goes on.
  [[nodiscard]] net::Task<Result<void>> remove(orangefs::Handle directory, std::string name,
                                               Removal what = Removal::any, Keep keep = {},
                                               Gone gone = {});
  // EINVAL if a directory would become an entry of itself. The caller prevents deeper loops.
  [[nodiscard]] net::Task<Result<void>> rename(orangefs::Handle old_parent, std::string name,
                                               orangefs::Handle new_parent, std::string new_name,
                                               Renaming how = Renaming::replace, Keep keep = {});
  // Destroys a file that has no name any more, in the name of the caller that removed it; the
  // view's caller does not matter. A file that is gone already is not an error.
  [[nodiscard]] net::Task<Result<void>> destroy(orangefs::Handle file, LastName last);
  // All entries, in no order.
  [[nodiscard]] net::Task<Result<std::vector<DirectoryEntry>>> readdir(orangefs::Handle directory);
  // The next entries, at most 512.
  [[nodiscard]] net::Task<Result<DirectoryPage>> read_directory(orangefs::Handle directory,
                                                                DirectoryCursor from = {});

  [[nodiscard]] net::Task<Result<void>> set_attributes(orangefs::Handle handle,
                                                       AttributeChanges changes);
  // Sets the time at which a file was written, which servers leave to the client, unless another
  // client has written it since. A time after `latest` is not that of a write.
  [[nodiscard]] net::Task<Result<void>> set_time_of_write(orangefs::Handle file,
                                                          std::uint64_t written_at,
                                                          std::uint64_t latest);
  [[nodiscard]] net::Task<Result<void>> truncate(orangefs::Handle file, std::uint64_t size);
  [[nodiscard]] net::Task<Result<void>> flush(orangefs::Handle file);
  [[nodiscard]] net::Task<Result<FileSystemStatus>> statfs();

  [[nodiscard]] net::Task<Result<std::string>> get_extended(orangefs::Handle handle,
                                                            std::string key);
  // E2BIG if the value is larger than get_extended() can read.
  [[nodiscard]] net::Task<Result<void>> set_extended(orangefs::Handle handle, std::string key,
                                                     std::string value,
                                                     SetMode mode = SetMode::any);
  [[nodiscard]] net::Task<Result<void>> remove_extended(orangefs::Handle handle, std::string key);
  // E2BIG if there are more than a process can be told.
  [[nodiscard]] net::Task<Result<std::vector<std::string>>> list_extended(orangefs::Handle handle);

 private:
  // A directory as its attributes describe it. Those from the cache may be stale: requests go
  // through ask_in().
  struct Directory {
    orangefs::Handle handle = 0;
    Caches::AttributesPtr attributes;  // shared with the cache
    bool cached = false;
  };
  // A file that has no name yet.
  struct NewFile {
    Directory parent;
    orangefs::Handle handle = 0;
    std::vector<orangefs::Handle> datafiles;
  };
  // A request that a directory's capability permits, and where its layout says that it goes.
  struct Question {
    Result<std::size_t> server;
    orangefs::RequestBody body;
    bool by_layout = false;  // the server, or the object on it, comes from the layout
  };
  using MakeQuestion = std::function<Question(const orangefs::Attributes& directory)>;
  // What an operation does with attributes that have a capability.
  using UseAttributes = std::function<net::Task<Result<void>>(const Caches::AttributesPtr&)>;

  [[nodiscard]] net::Task<Result<Directory>> directory(orangefs::Handle handle);
  // Past the cache.
  [[nodiscard]] net::Task<Result<Directory>> fresh_directory(orangefs::Handle handle);
  // Sends a request about the directory. If that is refused and the attributes were cached, sends
  // it once more with fresh ones, which `parent` then has.
  [[nodiscard]] net::Task<Result<orangefs::Response>> ask_in(Directory& parent,
                                                             const MakeQuestion& make,
                                                             bool* repeated = nullptr);
  // Likewise for an object's own attributes.
  [[nodiscard]] net::Task<Result<void>> with_attributes(orangefs::Handle handle,
                                                        const UseAttributes& use);
  [[nodiscard]] orangefs::SetattrRequest request_of(orangefs::Handle handle,
                                                    const AttributeChanges& changes) const;
  // Sends a request about the object with the capability in its attributes. `repeated` becomes true
  // if it was sent again, since its answer was lost.
  [[nodiscard]] net::Task<Result<void>> send(orangefs::Handle handle, Caches::AttributesPtr held,
                                             orangefs::RequestBody body, bool* repeated = nullptr);
  // A directory changed when one of its dirdata objects did, so these get the time as well.
  [[nodiscard]] net::Task<Result<void>> set_times_of_parts(Caches::AttributesPtr held,
                                                           orangefs::SetattrRequest body);
  // lookup() past the cache.
  [[nodiscard]] net::Task<Result<orangefs::Handle>> find(Directory& parent, std::string name);
  [[nodiscard]] net::Task<Result<DirectoryPage>> page_of(Directory& directory,
                                                         DirectoryCursor from);
  [[nodiscard]] LastName last_name(const Directory& directory) const {
    return {.directory = directory.handle, .attributes = directory.attributes, .remover = caller()};
  }
  // Asks for its own attributes and for those of its parts at once. `held`: from the caches, which
  // get the answer.
  [[nodiscard]] net::Task<Result<Stat>> stat_directory(orangefs::Handle handle,
                                                       Caches::AttributesPtr held);
  // The entries of a directory that one of its dirdata objects holds.
  [[nodiscard]] net::Task<Result<std::vector<DirectoryEntry>>> entries_at(Directory& directory,
                                                                          std::size_t place);
  // ENOTEMPTY if it has an entry. The server decides where the caller may not read it.
  [[nodiscard]] net::Task<Result<void>> check_empty(orangefs::Handle directory);

  [[nodiscard]] orangefs::Attributes new_object(const Directory& parent, orangefs::ObjectType type,
                                                std::uint32_t permissions,
                                                std::uint32_t mask) const;
  [[nodiscard]] net::Task<Result<NewFile>> new_file(orangefs::Handle directory,
                                                    std::uint32_t permissions,
                                                    std::uint32_t datafiles,
                                                    std::vector<std::size_t> servers);
  // A retry may find the entry that its first attempt made; that is success.
  [[nodiscard]] net::Task<Result<void>> enter(Directory& parent, std::string name,
                                              orangefs::Handle handle);
  // Returns the handle that the name had; empty when a retry found the name gone.
  [[nodiscard]] net::Task<Result<std::optional<orangefs::Handle>>> leave(Directory& parent,
                                                                         std::string name);
  // Gives a name to another object; returns the handle that it had.
  [[nodiscard]] net::Task<Result<orangefs::Handle>> redirect(Directory& parent, std::string name,
                                                             orangefs::Handle handle);
  // Enters a new object, or destroys it.
  [[nodiscard]] net::Task<Result<orangefs::Handle>> enter_new(
      Directory& parent, std::string name, orangefs::Handle handle,
      std::vector<orangefs::Handle> datafiles);
  [[nodiscard]] net::Task<Result<void>> move(Directory& source, std::string name, Directory& target,
                                             std::string new_name, orangefs::Handle moved);
  // Lets rename() replace an object: neither is a directory, or both are and the server destroys
  // the old one, which it refuses if that has entries. So a directory with entries keeps its name,
  // even if the caller may not read it, or another client has just made an entry.
  [[nodiscard]] net::Task<Result<void>> make_replaceable(Directory& source, Directory& target,
                                                         orangefs::Handle replaced,
                                                         const orangefs::Attributes& old_object,
                                                         orangefs::Handle moved);
  // EACCES if its server would not let the caller change its entries.
  [[nodiscard]] net::Task<Result<void>> check_changeable(Directory& directory);
  // Gives the name back to what it led to before, or takes it away if that is destroyed.
  [[nodiscard]] net::Task<> undo_redirect(Directory& target, std::string new_name,
                                          orangefs::Handle before, bool destroyed);
  [[nodiscard]] net::Task<Result<void>> replace(Directory& source, std::string name,
                                                Directory& target, std::string new_name,
                                                orangefs::Handle moved, orangefs::Handle replaced,
                                                const Keep& keep);
  // Attributes of what the name leads to, as far as the caches know, if it may be removed so
  // without a look at it: a file or a symbolic link. Null otherwise.
  [[nodiscard]] Caches::AttributesPtr removable(orangefs::Handle directory, const std::string& name,
                                                Removal what, orangefs::Handle& object) const;
  // Removes objects that have lost their name. A missing object is not an error.
  [[nodiscard]] net::Task<Result<void>> destroy_all(Directory& parent, orangefs::Handle handle,
                                                    orangefs::Attributes attributes,
                                                    Gone gone = {});
  [[nodiscard]] net::Task<Result<void>> destroy(Directory& parent, orangefs::Handle handle,
                                                std::vector<orangefs::Handle> datafiles,
                                                Gone gone = {});
  [[nodiscard]] net::Task<Result<void>> destroy_object(Directory& parent, orangefs::Handle handle);

  CallerSession session_;
};

}  // namespace vpfs::client
