#!/usr/bin/env python3
"""Runs the fuzz targets of test/fuzz with libFuzzer, AddressSanitizer and UBSan.

Each target goes on from its corpus in test/data/fuzz and from what earlier runs left in
build/fuzz-corpus, where new inputs stay. An input that ends a target is kept in
build/fuzz-artifacts. The exit code is 0 when no target found anything, 1 when one did or cannot
run, and 2 when the command line is wrong.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import gzip
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
SOURCES = ROOT / "test" / "fuzz"
ARCHIVES = ROOT / "test" / "data" / "fuzz"
CORPORA = ROOT / "build" / "fuzz-corpus"
ARTIFACTS = ROOT / "build" / "fuzz-artifacts"
LOGS = ROOT / "build" / "logs"

LONGEST_INPUT = 4096
LONGEST_COMMITTED_INPUT = 2048
LARGEST_ARCHIVE = 100 * 1024
# How long one input may take; sanitizers and a busy machine are slow.
INPUT_SECONDS = 20


class Problem(Exception):
    """What ends the script with one line."""


@dataclasses.dataclass
class Target:
    name: str
    seeds: list[pathlib.Path]
    dictionary: str

    @property
    def program(self) -> pathlib.Path:
        return BUILD / "bin" / self.name

    @property
    def archive(self) -> pathlib.Path:
        return ARCHIVES / f"{self.name}.tar.gz"

    @property
    def corpus(self) -> pathlib.Path:
        return CORPORA / self.name


def read_targets() -> dict[str, Target]:
    """What CMake knows of the targets."""
    targets = {}
    for line in (BUILD / "fuzz_targets.txt").read_text().splitlines():
        name, seeds, dictionary = line.split("\t")
        targets[name] = Target(
            name, [pathlib.Path(seed) for seed in seeds.split(":") if seed], dictionary
        )
    return targets


def run_logged(log: str, command: list[str]) -> None:
    LOGS.mkdir(parents=True, exist_ok=True)
    file = LOGS / f"{log}.log"
    with file.open("wb") as out:
        code = subprocess.run(
            command, check=False, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        ).returncode
    if code != 0:
        print("\n".join(file.read_text(errors="replace").splitlines()[-40:]))
        raise Problem(f"{command[0]} ended with {code}; all of it: {file.relative_to(ROOT)}")


def add_input(folder: pathlib.Path, content: bytes) -> None:
    (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)


def fill_corpus(target: Target) -> None:
    """Brings the committed corpus and the seeds to where libFuzzer works."""
    target.corpus.mkdir(parents=True, exist_ok=True)
    if target.archive.exists():
        with tarfile.open(target.archive) as archive:
            for member in archive.getmembers():
                if content := archive.extractfile(member):  # None: not a file
                    add_input(target.corpus, content.read())
    for seed in target.seeds:
        for file in sorted(seed.iterdir()) if seed.is_dir() else [seed]:
            if file.is_file():
                add_input(target.corpus, file.read_bytes())


def fuzz_command(target: Target, seconds: int, forks: int) -> list[str]:
    command = [
        str(target.program),
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST_INPUT}",
        f"-timeout={INPUT_SECONDS}",
        f"-artifact_prefix={ARTIFACTS}/{target.name}-",
        "-print_final_stats=1",
    ]
    if forks > 1:
        command.append(f"-fork={forks}")
    if target.dictionary:
        command.append(f"-dict={SOURCES / target.dictionary}")
    return [*command, str(target.corpus)]


def fuzz(target: Target, seconds: int, forks: int) -> bool:
    """Whether nothing was found."""
    fill_corpus(target)
    before = set(ARTIFACTS.glob(f"{target.name}-*"))
    log = LOGS / f"{target.name}.log"
    with log.open("wb") as out:
        code = subprocess.run(
            fuzz_command(target, seconds, forks),
            check=False,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        ).returncode
    runs = [
        line
        for line in log.read_text(errors="replace").splitlines()
        if "number_of_executed_units" in line
    ]
    count = runs[-1].split()[-1] if runs else "?"
    found = sorted(set(ARTIFACTS.glob(f"{target.name}-*")) - before)
    if code == 0 and not found:
        print(f"{target.name}: {count} inputs, nothing found", flush=True)
        return True
    print(f"{target.name}: ended with {code}; all of it: {log.relative_to(ROOT)}")
    for artifact in found:
        print(f"  again: {target.program.relative_to(ROOT)} {artifact.relative_to(ROOT)}")
    sys.stdout.flush()
    return False


def merge(target: Target) -> None:
    """Replaces the committed corpus by the smallest inputs that reach what all of them reach."""
    fill_corpus(target)
    with tempfile.TemporaryDirectory(dir=CORPORA) as folder:
        run_logged(
            f"{target.name}-merge",
            [
                str(target.program),
                "-merge=1",
                f"-max_len={LONGEST_COMMITTED_INPUT}",
                folder,
                str(target.corpus),
            ],
        )
        inputs = sorted(
            (file.read_bytes() for file in pathlib.Path(folder).iterdir()),
            key=lambda content: (len(content), content),
        )
    packed = pack(inputs)
    left_out = 0
    while len(packed) > LARGEST_ARCHIVE:
        keep = int(len(inputs) * LARGEST_ARCHIVE / len(packed))
        left_out += len(inputs) - keep
        inputs = inputs[:keep]
        packed = pack(inputs)
    ARCHIVES.mkdir(parents=True, exist_ok=True)
    target.archive.write_bytes(packed)
    note = f"; the {left_out} longest did not fit" if left_out else ""
    print(f"{target.archive.relative_to(ROOT)}: {len(inputs)} inputs, {len(packed)} bytes{note}")


def pack(inputs: list[bytes]) -> bytes:
    """A .tar.gz that is the same for the same inputs."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for content in inputs:
            member = tarfile.TarInfo(hashlib.sha1(content).hexdigest()[:12])
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(tar.getvalue(), 9, mtime=0)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return value


def parse_options() -> argparse.Namespace:
    description, _, epilog = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(prog="script/fuzz", description=description, epilog=epilog)
    parser.add_argument(
        "targets", metavar="TARGET", nargs="*", help="a target's name (default: all of them)"
    )
    parser.add_argument(
        "--seconds", type=positive, metavar="N", help="how long each target runs (default: 60)"
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="how many processes run at once (default: 1)",
    )
    parser.add_argument(
        "--merge",
        action="store_true",
        help="afterwards make the corpora in test/data/fuzz anew; without --seconds do only that",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the targets")
    return parser.parse_args()


def choose(names: list[str], targets: dict[str, Target]) -> list[Target]:
    unknown = [name for name in names if name not in targets]
    if unknown:
        raise Problem(f"no such target: {', '.join(unknown)}; there are: {', '.join(targets)}")
    return [targets[name] for name in names or targets]


def run(options: argparse.Namespace) -> int:
    if shutil.which("clang++-19") is None:
        raise Problem("clang++-19 is not there; script/bootstrap installs it")
    run_logged("fuzz-configure", ["cmake", "--preset", "fuzz"])
    targets = read_targets()
    if options.list:
        print("\n".join(targets))
        return 0
    chosen = choose(options.targets, targets)
    print(f"building {len(chosen)} targets", flush=True)
    run_logged(
        "fuzz-build",
        [
            "cmake",
            "--build",
            str(BUILD),
            "-j",
            str(os.cpu_count() or 2),
            "--target",
            *[target.name for target in chosen],
        ],
    )
    for folder in (ARTIFACTS, CORPORA):
        folder.mkdir(parents=True, exist_ok=True)
    good = True
    seconds = options.seconds or (0 if options.merge else 60)
    if seconds > 0:
        forks = max(1, options.jobs // len(chosen))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            good = all(list(pool.map(lambda target: fuzz(target, seconds, forks), chosen)))
    if options.merge and good:
        for target in chosen:
            merge(target)
    return 0 if good else 1


def main() -> int:
    options = parse_options()
    try:
        return run(options)
    except Problem as problem:
        print(f"script/fuzz: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
