#include "test/support/control/fake_owner.h"

#include <utility>

namespace vpfs::test {

using namespace control;

namespace {

Envelope usual_answer(const Envelope& request, const Caller& caller) {
  Envelope answer;
  if (request.has_stats()) {
    answer.mutable_stats_reply()->set_name("fake");
    answer.mutable_stats_reply()->set_upstream(caller.name);
    answer.mutable_stats_reply()->set_partial(caller.rights == Rights::own);
  } else {
    answer.mutable_ack()->set_text("done");
  }
  return answer;
}

}  // namespace

class FakeOwner::CountedLink final : public Link {
 public:
  explicit CountedLink(FakeOwner& owner) : owner_(owner) {
    const std::lock_guard lock(owner_.mutex_);
    ++owner_.links_;
  }
  ~CountedLink() override {
    const std::lock_guard lock(owner_.mutex_);
    --owner_.links_;
  }

 private:
  FakeOwner& owner_;
};

void FakeOwner::hold() {
  const std::lock_guard lock(mutex_);
  holding_ = true;
}

void FakeOwner::release() {
  std::vector<Held> held;
  {
    const std::lock_guard lock(mutex_);
    holding_ = false;
    held.swap(held_);
  }
  for (Held& each : held) each.to(std::move(each.answer));
}

std::vector<FakeOwner::Asked> FakeOwner::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

std::size_t FakeOwner::cycles() const {
  const std::lock_guard lock(mutex_);
  return cycles_;
}

std::size_t FakeOwner::links() const {
  const std::lock_guard lock(mutex_);
  return links_;
}

Hello FakeOwner::hello() const {
  Hello hello;
  hello.set_role(role_);
  hello.set_name("fake");
  hello.set_program("fake 1");
  if (is_standby_) hello.add_capabilities("standby");
  return hello;
}

void FakeOwner::ask(Envelope request, const Caller& caller, Answer answer) {
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back({request, caller});
    if (holding_) {
      held_.push_back({usual_answer(request, caller), std::move(answer)});
      return;
    }
  }
  if (ask_) {
    ask_(std::move(request), caller, std::move(answer));
  } else {
    answer(usual_answer(request, caller));
  }
}

std::unique_ptr<Link> FakeOwner::make_link(const Caller& /*caller*/) {
  return std::make_unique<CountedLink>(*this);
}

void FakeOwner::cycle(const Cycle& cycle, Link& /*link*/, CycleAnswer& answer) {
  {
    const std::lock_guard lock(mutex_);
    ++cycles_;
  }
  answer.report.set_applied(true);
  if (cycle_) cycle_(cycle, answer);
}

}  // namespace vpfs::test
