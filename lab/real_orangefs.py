"""OrangeFS's own server, where VPFS_ORANGEFS_PREFIX has one."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import subprocess
from collections.abc import Sequence

from lab.harness import Problem, Program, Programs
from lab.mount import in_prefix

NAME = "orangefs"
ZONE = "tcp-px"  # of the addresses of proxies
PLACE = "/v"  # in the tables of mounts
FORMAT_PATIENCE = 60.0
CONFIG = """<Defaults>
	UnexpectedRequests 50
	EventLogging none
	LogStamp datetime
	BMIModules bmi_tcp
	FlowModules flowproto_multiqueue
	PerfUpdateInterval 10000000
	ServerJobBMITimeoutSecs 30
	ServerJobFlowTimeoutSecs 30
	ClientJobBMITimeoutSecs 30
	ClientJobFlowTimeoutSecs 30
	ClientRetryLimit 5
	ClientRetryDelayMilliSecs 1000
	PrecreateBatchSize 0,32,32,32,8,32,0
	PrecreateLowThreshold 0,8,8,8,4,8,0
	TCPBindSpecific yes
	DataStorageSpace {root}/data
	MetadataStorageSpace {root}/meta
	LogFile {root}/log
</Defaults>
<Aliases>
{aliases}
</Aliases>
<FileSystem>
	Name {name}
	ID 453119355
	RootHandle 1048576
	FileStuffing yes
	DistrDirServersInitial 1
	DistrDirServersMax 1
	DistrDirSplitSize 100
	<MetaHandleRanges>
{meta_ranges}
	</MetaHandleRanges>
	<DataHandleRanges>
{data_ranges}
	</DataHandleRanges>
	<StorageHints>
		TroveSyncMeta yes
		TroveSyncData no
		TroveMethod alt-aio
		DBMaxSize 268435456
	</StorageHints>
</FileSystem>
"""
SERVER_OPTIONS = """<ServerOptions>
	Server s{index}
	DataStorageSpace {data}
	MetadataStorageSpace {root}/meta
	LogFile {root}/log
</ServerOptions>
"""
META_HANDLES = (3, 1 << 62)  # the first one, and one after the last
DATA_HANDLES = ((1 << 62) + 1, (1 << 63) - 1)


@dataclasses.dataclass(frozen=True)
class Server:
    """One data and metadata server. Addresses are HOST:PORT."""

    address: str
    proxy: str | None = None  # where clients that mount proxied_address() find it
    data: pathlib.Path | None = None  # for the contents of files; default: in the programs' folder


def ranges(handles: tuple[int, int], count: int) -> list[str]:
    """The handles in equal parts, one for each server."""
    first, end = handles
    bounds = [first + (end - first) * index // count for index in range(count + 1)]
    return [f"{begin}-{after - 1}" for begin, after in itertools.pairwise(bounds)]


def config_text(root: pathlib.Path, servers: Sequence[Server]) -> str:
    """The configuration that all servers and, from them, all clients read."""

    def lines(word: str, values: Sequence[str]) -> str:
        return "\n".join(f"\t{word} s{index} {value}" for index, value in enumerate(values))

    addresses = [
        f"tcp://{each.address}" + (f",{ZONE}://{each.proxy}" if each.proxy else "")
        for each in servers
    ]
    text = CONFIG.format(
        root=root,
        name=NAME,
        aliases=lines("Alias", addresses),
        meta_ranges=lines("\tRange", ranges(META_HANDLES, len(servers))),
        data_ranges=lines("\tRange", ranges(DATA_HANDLES, len(servers))),
    )
    for index, each in enumerate(servers):
        data = each.data or root / f"s{index}/data"
        text += SERVER_OPTIONS.format(index=index, root=root / f"s{index}", data=data)
    return text


def server_program() -> str | None:
    return in_prefix("VPFS_ORANGEFS_PREFIX", "pvfs2-server")


def start(programs: Programs) -> str:
    """Starts one server with an empty file system in the programs' folder. Returns its address."""
    return start_at(programs, programs.reserve_port())


def start_at(
    programs: Programs, port: int, proxy: int | None = None, data: pathlib.Path | None = None
) -> str:
    """The same at a port.

    With `proxy`, the clients that mount proxied_address() use that port. `data` has the contents of
    files; by default it is in the programs' folder.
    """
    local = "127.0.0.1"
    server = Server(f"{local}:{port}", f"{local}:{proxy}" if proxy is not None else None, data)
    (running,) = start_servers(programs, [server])
    running.wait_for_port(port)
    return address_of(server)


def start_servers(
    programs: Programs, servers: Sequence[Server], within: Sequence[str] = ()
) -> list[Program]:
    """Makes a file system and starts its servers.

    `within` comes before their commands. They may need seconds before they listen.
    """
    program = server_program()
    if program is None:
        raise Problem("there is no pvfs2-server (VPFS_ORANGEFS_PREFIX)")
    root = programs.work / "real"
    config = programs.work / "orangefs.conf"
    for index, each in enumerate(servers):
        for part in (each.data or root / f"s{index}/data", root / f"s{index}/meta"):
            part.mkdir(parents=True, exist_ok=True)
    config.write_text(config_text(root, servers))
    for index in range(len(servers)):
        made = subprocess.run(
            [*within, program, "-f", str(config), "-a", f"s{index}"],
            check=False,
            capture_output=True,
            text=True,
            timeout=FORMAT_PATIENCE,
        )
        if made.returncode != 0:
            raise Problem(f"pvfs2-server cannot make a file system:\n{made.stdout}{made.stderr}")
    return [
        programs.start(
            f"pvfs2-server{index}", *within, program, "-d", str(config), "-a", f"s{index}"
        )
        for index in range(len(servers))
    ]


def address_of(server: Server) -> str:
    """What a client mounts that goes to the servers themselves."""
    return f"tcp://{server.address}/{NAME}"


def proxied_address(proxy: int | str) -> str:
    """What a client mounts that goes through proxies. `proxy`: a port here, or HOST:PORT."""
    where = proxy if isinstance(proxy, str) else f"127.0.0.1:{proxy}"
    return f"{ZONE}://{where}/{NAME}"


def tool(name: str) -> str | None:
    """A program of OrangeFS that uses its own client library."""
    return in_prefix("VPFS_ORANGEFS_PREFIX", name)


def mount_table(programs: Programs, address: str) -> str:
    """A file for PVFS2TAB_FILE that has the file system at PLACE."""
    table = programs.work / "pvfs2tab"
    table.write_text(f"{address} {PLACE} pvfs2 defaults,noauto 0 0\n")
    return str(table)


def pvfs2fuse(address: str, place: pathlib.Path) -> list[str] | None:
    """The command that mounts it with OrangeFS's own FUSE client."""
    program = in_prefix("VPFS_ORANGEFS_PREFIX", "pvfs2fuse")
    return [program, "-f", "-o", f"fs_spec={address}", str(place)] if program else None
