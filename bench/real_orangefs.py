"""OrangeFS's own server, where VPFS_ORANGEFS_PREFIX has one."""
from __future__ import annotations

import pathlib
import subprocess

from bench.harness import Problem, Programs
from bench.mount import in_prefix

NAME = "orangefs"
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
	Alias s0 tcp://127.0.0.1:{port}
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
	DataStorageSpace {root}/data
	MetadataStorageSpace {root}/meta
	LogFile {root}/log
</ServerOptions>
"""


def server_program() -> str | None:
    return in_prefix("VPFS_ORANGEFS_PREFIX", "pvfs2-server")


def start(programs: Programs) -> str:
    """Starts one server with an empty file system in the programs' folder. Returns its address."""
    server = server_program()
    if server is None:
        raise Problem("there is no pvfs2-server (VPFS_ORANGEFS_PREFIX)")
    root, port = programs.work / "real", programs.reserve_port()
    for part in ("data", "meta"):
        (root / part).mkdir(parents=True)
    config = programs.work / "orangefs.conf"
    config.write_text(CONFIG.format(root=root, port=port, name=NAME))
    made = subprocess.run([server, "-f", str(config), "-a", "s0"], capture_output=True, text=True, timeout=FORMAT_PATIENCE)
    if made.returncode != 0:
        raise Problem(f"pvfs2-server cannot make a file system:\n{made.stdout}{made.stderr}")
    running = programs.start("pvfs2-server", server, "-d", str(config), "-a", "s0")
    running.wait_for_port(port)
    return f"tcp://127.0.0.1:{port}/{NAME}"


def pvfs2fuse(address: str, place: pathlib.Path) -> list[str] | None:
    """The command that mounts it with OrangeFS's own FUSE client."""
    program = in_prefix("VPFS_ORANGEFS_PREFIX", "pvfs2fuse")
    return [program, "-f", "-o", f"fs_spec={address}", str(place)] if program else None
