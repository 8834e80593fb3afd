"""OrangeFS's own server, where VPFS_ORANGEFS_PREFIX has one."""

from __future__ import annotations

import pathlib
import subprocess

from lab.harness import Problem, Programs
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
	DataStorageSpace {data}
	MetadataStorageSpace {root}/meta
	LogFile {root}/log
</Defaults>
<Aliases>
	Alias s0 {addresses}
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
		Range s0 3-4611686018427387904
	</MetaHandleRanges>
	<DataHandleRanges>
		Range s0 4611686018427387905-9223372036854775806
	</DataHandleRanges>
	<StorageHints>
		TroveSyncMeta yes
		TroveSyncData no
		TroveMethod alt-aio
		DBMaxSize 268435456
	</StorageHints>
</FileSystem>
<ServerOptions>
	Server s0
	DataStorageSpace {data}
	MetadataStorageSpace {root}/meta
	LogFile {root}/log
</ServerOptions>
"""


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
    server = server_program()
    if server is None:
        raise Problem("there is no pvfs2-server (VPFS_ORANGEFS_PREFIX)")
    root, addresses = programs.work / "real", f"tcp://127.0.0.1:{port}"
    if proxy is not None:
        addresses += f",{ZONE}://127.0.0.1:{proxy}"
    data = data or root / "data"
    for part in (data, root / "meta"):
        part.mkdir(parents=True, exist_ok=True)
    config = programs.work / "orangefs.conf"
    config.write_text(CONFIG.format(root=root, data=data, addresses=addresses, name=NAME))
    made = subprocess.run(
        [server, "-f", str(config), "-a", "s0"],
        check=False,
        capture_output=True,
        text=True,
        timeout=FORMAT_PATIENCE,
    )
    if made.returncode != 0:
        raise Problem(f"pvfs2-server cannot make a file system:\n{made.stdout}{made.stderr}")
    running = programs.start("pvfs2-server", server, "-d", str(config), "-a", "s0")
    running.wait_for_port(port)
    return f"tcp://127.0.0.1:{port}/{NAME}"


def proxied_address(proxy: int) -> str:
    return f"{ZONE}://127.0.0.1:{proxy}/{NAME}"


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
