"""What each kind of fault does to the site, and how it is undone."""

from __future__ import annotations

import functools
import heapq
import itertools
import signal
import time
from collections.abc import Callable

from lab.chaos.rules import Administrators
from lab.chaos.schedule import AGGREGATORS, DOWN, ETCD, MOUNT, UP, Fault
from lab.chaos.site import Site
from lab.harness import STOP_PATIENCE
from lab.network import CUT, LOSSY, REFUSED, SLOW, Network

SHORT = 2  # seconds that a certificate is valid
ENDING = 0.5  # seconds in which a program ends that could not write; no other fault hits it yet
MISTAKES = (
    lambda text: text[: len(text) // 2],
    lambda text: text.replace('"sfq"', '"sfk"'),
    lambda text: text.replace('"weight"', '"wieght"'),
    lambda text: text.replace("jobid=", "jobid"),
)
Step = Callable[[], None]


class Faults:
    """Begins faults, and carries out what follows of them when it is due."""

    def __init__(
        self, site: Site, network: Network, rules: Administrators, violated: Callable[[str], None]
    ) -> None:
        self._site, self._network, self._rules, self._violated = site, network, rules, violated
        self._due: list[tuple[float, int, Step]] = []
        self._order = itertools.count()
        self.begun: dict[str, int] = {}

    def later(self, at: float, step: Step) -> None:
        heapq.heappush(self._due, (at, next(self._order), step))

    def run_until(self, end: float) -> None:
        """Carries out what is due until then."""
        while (now := time.monotonic()) < end:
            if self._due and self._due[0][0] <= now:
                heapq.heappop(self._due)[2]()
            else:
                next_at = self._due[0][0] if self._due else end
                time.sleep(max(0.0, min(next_at, end) - now))

    def finish(self) -> float:
        """Ends all faults, each when it is due; returns the time of the last end."""
        while self._due:
            at, _, step = heapq.heappop(self._due)
            time.sleep(max(0.0, at - time.monotonic()))
            step()
        return time.monotonic()

    def begin(self, fault: Fault) -> None:
        self.begun[fault.kind] = self.begun.get(fault.kind, 0) + 1
        until = time.monotonic() + fault.until - fault.at
        hit = getattr(self, f"_{fault.kind.replace('-', '_')}")
        hit(fault, until)

    # --- Each kind ------------------------------------------------------------------------------

    def _kill(self, fault: Fault, until: float) -> None:
        for name in fault.targets:
            self._site.kill(name)
            self.later(until, functools.partial(self._start, name))

    _node = _nodes = _kill

    def _start(self, name: str) -> None:
        self._site.start(name)

    def _stop(self, fault: Fault, until: float) -> None:
        (name,) = fault.targets
        self._site.signal(name, signal.SIGSTOP)
        self.later(until, lambda: self._site.signal(name, signal.SIGCONT))

    _stop_node = _stop_stage = _stop

    def _reload_when_ready(self, name: str) -> None:
        if self._site.is_ready(name):
            self._site.signal(name, signal.SIGHUP)
        elif self._site.running[name].running():
            self.later(time.monotonic() + 0.1, lambda: self._reload_when_ready(name))

    def _restart(self, fault: Fault, until: float) -> None:
        (name,) = fault.targets
        self._end_and_start(name, until)

    def _end_and_start(self, name: str, start_at: float) -> None:
        self._site.may_be_down.add(name)
        was_ready = self._site.is_ready(name)
        self._site.signal(name, signal.SIGTERM)
        self._start_when_ended(name, start_at, time.monotonic() + STOP_PATIENCE, was_ready)

    def _start_when_ended(self, name: str, start_at: float, latest: float, was_ready: bool) -> None:
        program = self._site.running[name]

        def step() -> None:
            if self._site.running[name] is not program:  # another fault has replaced it
                return
            if not program.running():
                before_ready = -signal.SIGTERM if not was_ready else 0
                if program.exit_code() not in (0, before_ready):
                    self._violated(
                        f"{name} ended with {program.exit_code()} after SIGTERM: "
                        f"{program.last_lines(2)}"
                    )
                self._site.start(name)
            elif time.monotonic() > latest:
                self._violated(f"{name} did not end within {STOP_PATIENCE:.0f} s of SIGTERM")
                self._site.kill(name)
                self._site.start(name)
            else:
                self._start_when_ended(name, time.monotonic() + 0.05, latest, was_ready)

        self.later(start_at, step)

    def _packets(self, rule: str, fault: Fault, until: float) -> None:
        pair = fault.targets[0], fault.targets[1]
        self._network.begin(rule, pair)
        self.later(until, lambda: self._network.end(rule, pair))

    def _cut(self, fault: Fault, until: float) -> None:
        self._packets(CUT, fault, until)

    def _refuse(self, fault: Fault, until: float) -> None:
        self._packets(REFUSED, fault, until)

    def _loss(self, fault: Fault, until: float) -> None:
        self._packets(LOSSY, fault, until)

    def _slow(self, fault: Fault, until: float) -> None:
        self._packets(SLOW, fault, until)

    def _full(self, fault: Fault, until: float) -> None:
        (name,) = fault.targets
        program = self._site.running[name]
        self._site.fill(name)
        if name in ETCD:  # it ends when it cannot write
            self._site.may_be_down.add(name)

        def look() -> None:
            if self._site.running[name] is not program:  # another fault has replaced it
                return
            self._site.may_be_down.discard(name)
            if not program.running():
                self._site.start(name)

        self.later(until, lambda: self._site.make_room(name))
        self.later(until + ENDING, look)

    def _clock(self, fault: Fault, until: float) -> None:
        (name,) = fault.targets
        self._site.set_clock(name, (DOWN, UP)[fault.choice % 2])
        self.later(until, lambda: self._site.set_clock(name, 0))

    def _certificate(self, fault: Fault, until: float) -> None:
        """It expires, then the program has to show it; at the end it is renewed and read again."""
        (name,) = fault.targets
        self._site.shorten_certificate(name, SHORT)
        # A busy machine takes its time to make one.
        expired = time.monotonic() + SHORT + 0.5
        until = max(until, expired + 0.5)
        if name in AGGREGATORS:  # a coordinator reads certificates when it starts
            self._end_and_start(name, time.monotonic())
        else:
            self._reload_when_ready(name)

        def show() -> None:
            if name != MOUNT:
                self._site.kill(name)
                self._site.start(name)
                # One that refuses to start with an expired certificate says so, and ends.
                self._site.may_be_down.add(name)

        def renew() -> None:
            self._site.renew_certificate(name)
            if not self._site.running[name].running():
                self._site.start(name)
            elif name in AGGREGATORS:
                self._end_and_start(name, time.monotonic())
            else:
                self._site.may_be_down.discard(name)
                self._reload_when_ready(name)

        self.later(expired, show)
        self.later(until, renew)

    def _reload(self, fault: Fault, until: float) -> None:
        (name,) = fault.targets
        mistake = MISTAKES[fault.choice % len(MISTAKES)]
        before = self._site.replace_config(name, mistake)
        self._reload_when_ready(name)

        def step() -> None:
            self._site.replace_config(name, lambda _: before)
            self._reload_when_ready(name)

        self.later(until, step)

    def _rule(self, fault: Fault, _: float) -> None:
        self._rules.wish(fault.choice)
