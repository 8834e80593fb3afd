"""What the benchmarks of parts of the simulator have in common: rates that a program measures."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
from collections.abc import Callable, Mapping, Sequence

from lab import targets
from lab.harness import Problem, machine_settings, median
from lab.report import Json, Row, print_settings, table, write_json


@dataclasses.dataclass(frozen=True)
class Rates:
    name: str  # of vpfs-bench-NAME and of NAME.json
    columns: Sequence[str]
    rate: str  # the column of the rate, of which there are medians
    least: float  # of the rates that are judged
    target: Callable[[Row], str | None]  # the name of a row's target; None: it is not judged

    def measure(
        self, binaries: pathlib.Path, out: pathlib.Path, options: Mapping[str, object]
    ) -> list[Json]:
        """Runs the program once."""
        program = binaries / f"vpfs-bench-{self.name}"
        file = out / f"{self.name}-run.json"
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        done = subprocess.run(
            [str(program), *words, "--json", str(file)], check=False, stdout=subprocess.DEVNULL
        )
        if done.returncode != 0:
            raise Problem(f"{program.name} failed")
        rows = json.loads(file.read_text())["rows"]
        file.unlink()
        return rows

    def judged(self, rows: Sequence[Row]) -> list[Row]:
        named = [(self.target(row), row[self.rate]) for row in rows]
        return [targets.one_at_least(name, self.least, rate) for name, rate in named if name]

    def run(
        self,
        binaries: pathlib.Path,
        out: pathlib.Path,
        options: Mapping[str, object],
        settings: Mapping[str, object],
        runs: int,
    ) -> int:
        """Prints and writes the medians of several runs. The settings explain them."""
        all_settings = machine_settings() | {"runs": runs, **settings}
        print_settings(all_settings)
        out.mkdir(parents=True, exist_ok=True)
        parts = [self.measure(binaries, out, options) for _ in range(runs)]
        rows = [
            row | {self.rate: median([part[index][self.rate] for part in parts])}
            for index, row in enumerate(parts[0])
        ]
        print("\n" + table(rows, self.columns))
        judged = self.judged(rows)
        print("\n" + table(judged, targets.COLUMNS))
        write_json(
            out / f"{self.name}.json", {"settings": all_settings, "rows": rows, "targets": judged}
        )
        return 0
