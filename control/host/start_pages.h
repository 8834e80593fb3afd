#pragma once

namespace vpfs::control {

// Unmaps the pages of code and constants of this program and its libraries. Those that it goes on
// using come back one by one, from the page cache. Most were only needed by its start, which reads
// a configuration and makes objects of libraries, and would stay resident until the host is short
// of memory. Does nothing under a debugger, whose breakpoints are in these pages.
void unmap_start_pages();

}  // namespace vpfs::control
