#pragma once

#include <string_view>

namespace vpfs::test {

// Ends the message of an assertion that compares what the wall clock measured: a time, a rate or a
// share. What else runs on the machine may make it fail, so script/test tries a test once more,
// alone, if all its failures end like this. An assertion on data, errors or counts never does.
inline constexpr std::string_view kByClock = " (judged by the clock)";

}  // namespace vpfs::test
