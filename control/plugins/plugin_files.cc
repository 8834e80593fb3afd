#include "control/plugins/plugin_files.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>

namespace vpfs::control {
namespace {

struct Closer {
  void operator()(void* library) const { ::dlclose(library); }
};
using Handle = std::unique_ptr<void, Closer>;

std::unexpected<Error> not_loaded(const std::string& path) {
  const char* const text = ::dlerror();
  std::string_view why = text == nullptr ? "the linker does not say why" : text;
  if (why.starts_with(path)) why.remove_prefix(path.size());
  if (why.starts_with(": ")) why.remove_prefix(2);
  return fail(fmt::format("{} cannot be loaded: {}", path, why));
}

Result<const PluginDescription*> description_of(const std::string& path, void* library) {
  void* const entry = ::dlsym(library, kPluginEntry);
  if (entry == nullptr) {
    return fail(
        fmt::format("{} is not a plugin of vpfs: it does not export {}()", path, kPluginEntry));
  }
  const auto describe = reinterpret_cast<PluginEntry>(entry);  // POSIX: dlsym() gives functions too
  std::string problem;
  try {
    return describe();
  } catch (const std::exception& error) {
    problem = error.what();
  } catch (...) {
    problem = "an exception of an unknown type";
  }
  return fail(fmt::format("{}: its {}() throws: {}", path, kPluginEntry, problem));
}

}  // namespace

Result<void> check_description(const std::string& path, const PluginDescription* description) {
  if (description == nullptr) {
    return fail(fmt::format("{}: its {}() returns nothing", path, kPluginEntry));
  }
  if (description->interface != kPluginInterface) {
    return fail(fmt::format(
        "{} is for version {} of the scheduler interface, and this program has version {}: build "
        "the plugin with the headers of this vpfs",
        path, description->interface, kPluginInterface));
  }
  const std::string_view build = description->build == nullptr ? "" : description->build;
  if (build != kPluginBuild) {
    return fail(fmt::format("{} was built with {}, and this program with {}", path,
                            build.empty() ? "an unknown library" : build, kPluginBuild));
  }
  if (description->layout != kPluginLayout) {
    return fail(fmt::format(
        "{}: its types have other sizes than those of this program: build the plugin with the "
        "headers of this vpfs, and the same standard library",
        path));
  }
  if (description->count == 0 || description->policies == nullptr) {
    return fail(fmt::format("{} has no policy", path));
  }
  const PolicyKinds policies(description->policies, description->count);
  if (std::ranges::any_of(policies, [](const PolicyKind* each) {
        return each == nullptr || each->make == nullptr;
      })) {
    return fail(fmt::format("{} has a policy that cannot be made", path));
  }
  return {};
}

Result<stage::PolicyLoader::Loaded> PluginFiles::load(const std::string& path) {
  Result<TrustedFile> file = check_trusted(path);
  VPFS_TRY(file);
  const auto known =
      std::ranges::find(libraries_, file->path, [](const Library& each) { return each.file.path; });
  if (known != libraries_.end()) {
    Loaded loaded = {.policies = known->policies, .maker = known->maker, .warning = ""};
    if (known->file != *file) {
      loaded.warning = fmt::format(
          "{} has changed since this process loaded it: restart to use it (`vpfsctl upgrade` does "
          "it without a pause)",
          path);
    }
    return loaded;
  }
  (void)::dlerror();
  Handle library(::dlopen(file->path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) return not_loaded(file->path);
  const Result<const PluginDescription*> description = description_of(path, library.get());
  VPFS_TRY(description);
  VPFS_TRY(check_description(path, *description));
  (void)library.release();  // see the class
  const char* const maker = (*description)->maker;
  const Library& added = libraries_.emplace_back(
      Library{.file = *std::move(file),
              .policies = PolicyKinds((*description)->policies, (*description)->count),
              .maker = maker == nullptr ? "" : maker});
  return Loaded{.policies = added.policies, .maker = added.maker, .warning = ""};
}

}  // namespace vpfs::control
