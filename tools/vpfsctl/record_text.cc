#include "tools/vpfsctl/record_text.h"

#include <fmt/format.h>

#include "control/words/past_words.h"
#include "control/words/table.h"

namespace vpfs::ctl {

using words::length_text;

std::string record_text(const control::RecordReply& reply) {
  if (reply.number() == 0) return "there is no recording\n";
  std::string text = fmt::format("recording {}, {} for {}: {} requests", reply.number(),
                                 reply.running() ? "running" : "ended",
                                 length_text(reply.length_us()), reply.written());
  if (reply.written() >= reply.capacity()) {
    text += fmt::format(", the latest {} are kept", reply.capacity());
  } else {
    text += fmt::format(", room for {}", reply.capacity());
  }
  if (reply.left_us() > 0) text += fmt::format("; ends in {}", length_text(reply.left_us()));
  return text + "\n";
}

}  // namespace vpfs::ctl
