"""What is fair over several servers: the theory that `script/bench total` compares with.

Every server has a capacity of 1. The service of an application is what it gets on all of its
servers together.

- A striped application touches all its servers with each I/O. It has one rate, the same on all of
  them.
- Any other application has requests for each of its servers all the time, and each server serves it
  at a rate of its own.

The feasible optimum is weighted max-min fair: no application's service could be larger without
making smaller that of one which has less for its weight. If a head waits for a bounded time only,
every application gets at least one request in that time on each server, or what its weight gives it
there if that is less. This floor is part of what is feasible.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction

from lab.total.linear import AtMost, Terms, at_least, maximum

Services = Mapping[str, Fraction]  # by application, in servers


@dataclasses.dataclass(frozen=True)
class User:
    """An application with requests waiting all the time."""

    name: str
    servers: tuple[int, ...]
    striped: bool
    weight: int = 1

    def variable(self, server: int) -> str:
        """Its rate on a server, for which the floor is taken off."""
        return self.name if self.striped else f"{self.name}@{server}"


@dataclasses.dataclass(frozen=True)
class Region:
    """What all applications together may get."""

    users: Sequence[User]
    floors: Mapping[tuple[str, int], Fraction]  # by application and server

    @property
    def servers(self) -> list[int]:
        return sorted({server for user in self.users for server in user.servers})

    def floor(self, user: User, server: int) -> Fraction:
        return self.floors.get((user.name, server), Fraction(0))

    def capacities(self) -> list[AtMost]:
        found = []
        for server in self.servers:
            there = [user for user in self.users if server in user.servers]
            found.append(
                AtMost(
                    {user.variable(server): 1 for user in there},
                    1 - sum((self.floor(user, server) for user in there), Fraction(0)),
                )
            )
        return found

    def service(self, user: User) -> tuple[Terms, Fraction]:
        """The service of an application beyond its floors, as terms, and those floors."""
        floors = sum((self.floor(user, server) for server in user.servers), Fraction(0))
        if user.striped:
            return {user.variable(user.servers[0]): len(user.servers)}, floors
        return {user.variable(server): 1 for server in user.servers}, floors


def share(users: Sequence[User], user: User, server: int) -> Fraction:
    """The part of a server that belongs to the user by weight."""
    return Fraction(user.weight, sum(other.weight for other in users if server in other.servers))


def feasible(users: Sequence[User], requests: Mapping[str, Fraction] | None = None) -> Services:
    """The feasible optimum.

    `requests` has, by application, the part of a server that one request in the longest wait is.

    All are raised by weight until some can have no more (progressive filling). Those keep what they
    have, and the others go on.
    """
    requests = requests or {}
    floors = {}
    for user in users:
        of_user = [
            min(requests.get(user.name, Fraction(0)), share(users, user, server))
            for server in user.servers
        ]
        # A striped application has the same rate everywhere.
        for server, floor in zip(user.servers, of_user):
            floors[user.name, server] = min(of_user) if user.striped else floor
    region = Region(users, floors)
    fixed: dict[str, Fraction] = {}
    while len(fixed) < len(users):
        level = maximum({"level": 1}, _constraints(region, fixed, None))
        for user in [user for user in users if user.name not in fixed]:
            terms, floors_of = region.service(user)
            if (
                maximum(terms, _constraints(region, fixed, level)) + floors_of
                <= user.weight * level
            ):
                fixed[user.name] = user.weight * level
    return {user.name: fixed[user.name] for user in users}


def _constraints(region: Region, fixed: Services, level: Fraction | None) -> list[AtMost]:
    """The constraints: capacities, what fixed applications keep, and a level for the others.

    Others get their weight times the level, which is the given one or a variable.
    """
    found = region.capacities()
    for user in region.users:
        terms, floors = region.service(user)
        if user.name in fixed:
            found.append(at_least(terms, fixed[user.name] - floors))
        elif level is None:
            found.append(at_least({**terms, "level": -user.weight}, -floors))
        else:
            found.append(at_least(terms, user.weight * level - floors))
    return found


def local(users: Sequence[User]) -> Services:
    """What the applications get when each server shares by weight for itself.

    A striped application is as slow as its slowest server, and leaves the rest of its shares to
    others.
    """
    flows = [((user.name, user.servers), user.weight) for user in users if user.striped]
    flows += [
        ((user.name, (server,)), user.weight)
        for user in users
        if not user.striped
        for server in user.servers
    ]
    rates: dict[tuple[str, tuple[int, ...]], Fraction] = {}
    servers = {server for user in users for server in user.servers}
    while len(rates) < len(flows):
        levels = {}
        for server in servers:
            waiting = sum(
                weight for flow, weight in flows if server in flow[1] and flow not in rates
            )
            used = sum((rate for flow, rate in rates.items() if server in flow[1]), Fraction(0))
            if waiting:
                levels[server] = (1 - used) / waiting
        level = min(levels.values())
        full = {server for server, of in levels.items() if of == level}
        for flow, weight in flows:
            if flow not in rates and full & set(flow[1]):
                rates[flow] = weight * level
    return {
        user.name: sum(
            (rate * len(flow[1]) for flow, rate in rates.items() if flow[0] == user.name),
            Fraction(0),
        )
        for user in users
    }
