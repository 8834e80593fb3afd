# Writes OUTPUT, the source of vpfs::version(), if the version has changed. Every build runs it with
# -DSOURCE=, -DOUTPUT= and -DVERSION=.
#
# The commit comes from git, or from commit.txt in a tarball that `git archive` made.
file(STRINGS ${SOURCE}/cmake/commit.txt commit LIMIT_COUNT 1)
if(commit MATCHES "^.Format")
  set(commit "")
  find_program(GIT git)
  if(GIT AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --exclude=* --abbrev=12
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(commit)
  set(VERSION "${VERSION} (${commit})")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#include "base/version.h"

namespace vpfs {

std::string_view version() {
  return "@VERSION@";
}

}  // namespace vpfs
]] @ONLY)
