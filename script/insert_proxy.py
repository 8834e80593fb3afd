"""Puts vpfs-proxy in front of a data server of this host: nftables redirects its port.

The redirection works on a live system and fails open: removing the table restores the direct way at
once. The table applies to new connections. Existing ones stay as they are, unless --cut closes
them.
"""

from __future__ import annotations

import argparse
import dataclasses
import ipaddress
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    server: str
    redirect: str  # default
    # Whether connections of local programs, such as a metadata server, are redirected too.
    # Connections to the loopback address never are: the proxy uses it.
    local: bool


KINDS = {
    "beegfs": Kind("beegfs", "storage server", "8003:9003", local=True),
    "orangefs": Kind("orangefs", "server", "3334:4334", local=False),
}


@dataclasses.dataclass(frozen=True)
class Redirect:
    server: int
    proxy: int


class Problem(Exception):
    """An error for the administrator; the program exits with 1."""


def port(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if not 0 < number < 65536:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port number")
    return number


def redirect(text: str) -> Redirect:
    server, colon, proxy = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"'{text}' is not SERVER_PORT:PROXY_PORT")
    made = Redirect(port(server), port(proxy))
    if made.server == made.proxy:
        raise argparse.ArgumentTypeError(f"'{text}' redirects a port to itself")
    return made


def interface(text: str) -> str:
    if not re.fullmatch(r"[^\s/\"]{1,15}", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a name of an interface")
    return text


NEEDS_DESTROY = "(the kernel needs CONFIG_INET_DIAG_DESTROY)"


def table_name(kind: Kind) -> str:
    return f"vpfs_{kind.name}"


# Matches connections of local programs, except those to the loopback address.
AWAY = {"ipv4": "ip daddr != 127.0.0.0/8", "ipv6": "ip6 daddr != ::1"}
# Matches only the first packet. When the kernel begins to track connections, packets of existing
# ones look new to it.
BEGINNING = "tcp flags & (fin | syn | rst | ack) == syn"


def ruleset(
    kind: Kind,
    redirects: Sequence[Redirect],
    interface: str | None,
    families: Sequence[str] = ("ipv4",),
) -> str:
    """One transaction, which replaces a table of the same name."""
    table = table_name(kind)
    incoming = f'iifname "{interface}" ' if interface else ""
    lines = [
        f"table inet {table}",
        f"delete table inet {table}",
        f"table inet {table} {{",
        "  chain prerouting {",
        "    type nat hook prerouting priority dstnat; policy accept;",
    ]
    lines += [
        f"    {incoming}meta nfproto {family} fib daddr type local tcp dport {each.server} "
        f"{BEGINNING} redirect to :{each.proxy}"
        for each in redirects
        for family in families
    ]
    lines += ["  }"]
    if kind.local:
        lines += ["  chain output {", "    type nat hook output priority -100; policy accept;"]
        for each in redirects:
            for away in (AWAY[family] for family in families):
                lines.append(
                    f"    fib daddr type local {away} tcp dport {each.server} {BEGINNING} "
                    f"redirect to :{each.proxy}"
                )
        lines += ["  }"]
    return "\n".join([*lines, "}", ""])


def run(*command: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        package = {"nft": "nftables", "ss": "iproute2"}.get(command[0], command[0])
        raise Problem(f"{command[0]} is not installed (package {package})") from None


def nft(text: str) -> None:
    done = run("nft", "-f", "-", stdin=text)
    if done.returncode != 0:
        raise Problem(f"nft refused the rules:\n{done.stderr.strip()}")


def is_inserted(kind: Kind) -> bool:
    return run("nft", "list", "table", "inet", table_name(kind)).returncode == 0


def redirects_in(kind: Kind, pattern: str) -> list[Redirect]:
    listing = run("nft", "list", "table", "inet", table_name(kind)).stdout
    found = re.findall(pattern, listing)
    return list(dict.fromkeys(Redirect(int(server), int(proxy)) for server, proxy in found))


def redirects_in_force(kind: Kind) -> list[Redirect]:
    return redirects_in(kind, r"tcp dport (\d+) .*redirect to :(\d+)")


def release_rules(kind: Kind, redirects: Sequence[Redirect]) -> str:
    """Keeps the chains, and one rule per port that makes the kernel track connections.

    Without it, the kernel would stop translating connections through the proxy.
    """
    table = table_name(kind)
    return f"flush table inet {table}\n" + "".join(
        f"add rule inet {table} prerouting ct state established accept comment "
        f'"{each.server}:{each.proxy}"\n'
        for each in redirects
    )


def redirects_released(kind: Kind) -> list[Redirect]:
    return redirects_in(kind, r'ct state established accept comment "(\d+):(\d+)"')


def redirects_known(kind: Kind) -> list[Redirect]:
    """Those of the table, whose connections it translates."""
    return redirects_in_force(kind) or redirects_released(kind)


def listeners_at(number: int) -> list[str]:
    """The addresses at which programs listen with that port.

    The kernel is asked, since a test connection would look like a client's.
    """
    listing = run("ss", "-Htln", f"sport = :{number}").stdout
    return [
        line.split()[3].rpartition(":")[0]
        for line in listing.splitlines()
        if len(line.split()) >= 4
    ]


def listens(number: int, family: str = "ipv4") -> bool:
    """Whether a redirected client of that family would be accepted.

    A program must listen at an address other than loopback.
    """
    hosts = listeners_at(number)
    if "*" in hosts:
        return True
    own = [host for host in hosts if ("[" in host) == (family == "ipv6")]
    return any(not is_loopback(f"{host}:0") for host in own)


def families_of(redirects: Sequence[Redirect]) -> list[str]:
    """IPv6 clients are redirected only if every proxy accepts IPv6.

    Otherwise they go directly, as before.
    """
    return ["ipv4"] + (["ipv6"] if all(listens(each.proxy, "ipv6") for each in redirects) else [])


def connections_to(number: int) -> list[tuple[str, str]]:
    """The (local, remote) addresses of connections to a port, except those over loopback."""
    listing = run("ss", "-Htn", "state", "established", f"sport = :{number}").stdout
    pairs = [tuple(line.split()[-2:]) for line in listing.splitlines() if len(line.split()) >= 4]
    return [(here, there) for here, there in pairs if not is_loopback(there)]


def is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        parsed = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def cut(number: int) -> int:
    """Closes the connections to a port, and tells both ends.

    Returns how many could not be closed.
    """
    for _ in range(10):
        found = connections_to(number)
        if not found:
            return 0
        for here, there in found:
            run("ss", "-K", "src", here, "dst", there)
        time.sleep(0.02)
    return len(connections_to(number))


def require_root() -> None:
    if os.geteuid() != 0:
        raise Problem("only root may change packet filters")
    if shutil.which("nft") is None:
        raise Problem("nft is not installed (package nftables)")


def insert(kind: Kind, options: argparse.Namespace) -> None:
    families = families_of(options.redirects)
    rules = ruleset(kind, options.redirects, options.interface, families)
    if options.dry_run:
        print(f"# nft -f -\n{rules}", end="")
        return
    require_root()
    dropped = [each for each in redirects_known(kind) if each not in options.redirects]
    if dropped:
        pairs = ", ".join(f"{each.server}:{each.proxy}" for each in dropped)
        raise Problem(
            f"{pairs} would be dropped: name all pairs that are to be redirected, or --remove first"
        )
    interfaces = sorted(name for _, name in socket.if_nameindex())
    if options.interface and options.interface not in interfaces and not options.anyway:
        raise Problem(
            f"this host has no interface {options.interface}, only {', '.join(interfaces)}, so "
            "nothing would be redirected (--anyway inserts all the same)"
        )
    for each in options.redirects:
        if not listens(each.proxy) and not options.anyway:
            raise Problem(
                f"nothing listens at port {each.proxy}, so new connections would be refused: "
                "start vpfs-proxy first (--anyway inserts all the same)"
            )
    nft(rules)
    if "ipv6" not in families:
        print(
            "the proxy accepts no IPv6, so IPv6 connections go directly (to change this, let it "
            "listen at [::])"
        )
    for each in options.redirects:
        left = cut(each.server) if options.cut else 0
        if left:
            raise Problem(
                f"{left} connections to port {each.server} cannot be closed {NEEDS_DESTROY}"
            )
        report(kind, each)


def remove(kind: Kind, options: argparse.Namespace) -> None:
    require_root()
    if not is_inserted(kind):
        print("not inserted: nothing to remove")
        return
    redirects = redirects_known(kind)
    if options.dry_run:
        print(
            f"# nft -f -\n{release_rules(kind, redirects)}"
            + "".join(f"# ss -K state established sport = :{each.proxy}\n" for each in redirects)
            + f"# nft delete table inet {table_name(kind)}"
        )
        return
    # Without the table the kernel stops translating, and a waiting client would hear nothing more.
    # So connections through the proxy are closed first, while both ends still notice.
    nft(release_rules(kind, redirects))
    left = sum(cut(each.proxy) for each in redirects)
    nft(f"delete table inet {table_name(kind)}\n")
    print(
        "removed: all connections go directly to the server; clients of the proxy connect again "
        "and repeat what was under way"
    )
    if left:
        print(
            f"{left} connections through the proxy could not be closed {NEEDS_DESTROY}: their "
            "clients wait until their own time-out"
        )


def release(kind: Kind, options: argparse.Namespace) -> None:
    require_root()
    if not is_inserted(kind):
        print("not inserted: nothing to release")
        return
    rules = release_rules(kind, redirects_known(kind))
    if options.dry_run:
        print(f"# nft -f -\n{rules}", end="")
        return
    nft(rules)
    print(
        "released: new connections go directly to the server; those through the proxy stay until "
        "their clients close them or the proxy has drained (SIGTERM); then run --remove"
    )


def report(kind: Kind, each: Redirect) -> None:
    direct = len(connections_to(each.server))
    server = "" if listeners_at(each.server) else f"; nothing listens at {each.server} so far"
    proxy = "listening" if listens(each.proxy) else "NOT LISTENING: connections are refused"
    print(
        f"port {each.server} -> {each.proxy}: proxy {proxy}{server}; {direct} older connections go "
        f"directly to the {kind.server}"
        + ("" if direct == 0 else ", until they are closed (--cut closes them)")
    )


def status(kind: Kind, _options: argparse.Namespace) -> None:
    require_root()
    if not is_inserted(kind):
        print("not inserted")
        return
    redirects = redirects_in_force(kind)
    for each in redirects:
        report(kind, each)
    if not redirects:
        print("released: nothing is redirected any more")


ZONE = "tcp-px"


def zone_lines(file: pathlib.Path, redirects: Sequence[Redirect]) -> str:
    """The aliases of an fs.conf, with the proxies' addresses added as a zone.

    Other addresses stay; those of the zone are replaced.
    """
    try:
        text = file.read_text(errors="replace")
    except OSError as error:
        raise Problem(f"{file}: {error.strerror}") from None
    proxies = {each.server: each.proxy for each in redirects}
    lines, mounts = [], []
    for name, addresses in re.findall(r"^\s*Alias\s+(\S+)\s+(\S+)", text, re.MULTILINE):
        kept = [each for each in addresses.split(",") if not each.startswith(f"{ZONE}://")]
        first = kept[0] if kept else addresses
        match = re.fullmatch(r"tcp://([^:/]+|\[[^]]+\]):(\d+)", first)
        if not match:
            raise Problem(f"{file}: the address {first} of {name} is not tcp://HOST:PORT")
        host, number = match[1], int(match[2])
        if number not in proxies:
            raise Problem(f"{file}: {name} listens at port {number}: say {number}:PROXY_PORT")
        mounts.append(f"{ZONE}://{host}:{proxies[number]}")
        lines.append(f"    Alias {name} {','.join([*kept, mounts[-1]])}")
    if not lines:
        raise Problem(f"{file}: no line `Alias NAME tcp://HOST:PORT`")
    return (
        "<Aliases>\n" + "\n".join(lines) + "\n</Aliases>\n"
        f"# clients mount {mounts[0]}/FILE_SYSTEM to go through the proxies"
    )


def show_zones(_kind: Kind, options: argparse.Namespace) -> None:
    print(zone_lines(options.zones, options.redirects))


def command_name(kind: Kind) -> str:
    """In a clone, or as it is installed."""
    is_clone = pathlib.Path(__file__).resolve().parent.name == "script"
    return f"{'script/' if is_clone else 'vpfs-'}insert-{kind.name}"


def parser_for(kind: Kind) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=command_name(kind),
        description=f"Redirects the TCP port of this host's {kind.server} to vpfs-proxy with "
        "nftables, on a live system. Once removed, clients reach the server as before.",
        epilog="vpfs-proxy listens at PROXY_PORT on all addresses, with `upstream: "
        "127.0.0.1:SERVER_PORT`, or with `upstream: original` if one proxy serves several ports.",
    )
    parser.add_argument(
        "redirects",
        nargs="*",
        type=redirect,
        default=[],
        metavar="SERVER_PORT:PROXY_PORT",
        help=f"ports to redirect; several pairs are possible (default {kind.redirect})",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--remove",
        dest="act",
        action="store_const",
        const=remove,
        help="restore the direct way for all at once; connections through the proxy are closed",
    )
    what.add_argument(
        "--release",
        dest="act",
        action="store_const",
        const=release,
        help="restore the direct way for new connections; those through the proxy stay",
    )
    what.add_argument(
        "--status",
        dest="act",
        action="store_const",
        const=status,
        help="show what is redirected, and how many connections still go directly",
    )
    if kind.name == "orangefs":
        parser.add_argument(
            "--zones",
            type=pathlib.Path,
            metavar="FS_CONF",
            help="redirect nothing; print lines for fs.conf that give the proxies their own zone, "
            "so that only clients that mount this zone use them",
        )
    parser.add_argument("--dry-run", action="store_true", help="print the rules and change nothing")
    parser.add_argument(
        "--interface",
        type=interface,
        help="redirect only connections from this interface of the host",
    )
    parser.add_argument(
        "--cut",
        action="store_true",
        help="close existing connections to the server; clients connect again, through the proxy, "
        "and repeat what was under way",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="insert even if nothing listens at the proxy's port, or the interface is not there",
    )
    parser.set_defaults(act=insert, zones=None)
    return parser


def check_pairs(parser: argparse.ArgumentParser, redirects: Sequence[Redirect]) -> None:
    servers = [each.server for each in redirects]
    for number in servers:
        if servers.count(number) > 1:
            parser.error(
                f"port {number} is redirected twice: the second pair would count for nothing"
            )


def main(arguments: Sequence[str]) -> int:
    kind = KINDS[arguments[0]]
    parser = parser_for(kind)
    options = parser.parse_args(arguments[1:])
    act = show_zones if options.zones else options.act
    if act in (insert, show_zones):
        options.redirects = options.redirects or [redirect(kind.redirect)]
        check_pairs(parser, options.redirects)
    elif options.redirects:
        parser.error("--remove, --release and --status are for all ports: leave the pairs out")
    try:
        act(kind, options)
    except Problem as problem:
        print(f"insert-{kind.name}: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
