#include <vpfs/schedulers/plugin.h>

#include "drr.h"

VPFS_SCHEDULER_PLUGIN("an example of vpfs, version 1", &example::Drr::kKind);
