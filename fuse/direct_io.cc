#include "fuse/direct_io.h"

namespace vpfs::fuse {
namespace {

thread_local bool wanted_here = false;

}  // namespace

ParallelWrites::ParallelWrites(bool wanted) {
  wanted_here = wanted;
}

ParallelWrites::~ParallelWrites() {
  wanted_here = false;
}

bool ParallelWrites::are_wanted() {
  return wanted_here;
}

}  // namespace vpfs::fuse
