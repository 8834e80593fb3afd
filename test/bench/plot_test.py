"""Every figure of the benchmarks, drawn from small samples: nothing overlaps, leaves the figure or lacks its unit."""
from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import pathlib
import re
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "script")]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

SKIPPED = 77
if importlib.util.find_spec("matplotlib") is None:
    print("no matplotlib here: script/bootstrap installs it")
    sys.exit(SKIPPED)

from matplotlib.artist import Artist  # noqa: E402
from matplotlib.axis import Axis  # noqa: E402
from matplotlib.collections import LineCollection  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.text import Text  # noqa: E402
from matplotlib.transforms import Bbox  # noqa: E402

from acts import figure as demo_figure  # noqa: E402
from acts import mounted  # noqa: E402
from acts import two_applications  # noqa: E402
from bench.mounts import fio, fuse, fuse_loads, fuse_orangefs, ior  # noqa: E402
from bench.schedulers import adaptbf_experiments, adaptbf_figures, adaptbf_overhead, edf, node  # noqa: E402
from bench.data_path import overhead, overhead_figures, policies  # noqa: E402
from lab import plot  # noqa: E402
from bench.schedulers import priority, schedulers, sharing  # noqa: E402
from bench.data_path import relay, stage  # noqa: E402
from acts import whole_site  # noqa: E402
from bench.attacks.run import ATTACKS  # noqa: E402
from bench.attacks.run import figure as attacks_figure  # noqa: E402
from lab.file_systems import DIRECT  # noqa: E402
from acts.live_rules import Measured  # noqa: E402
from lab.plot_style import style  # noqa: E402
from lab.points import bins, tail  # noqa: E402
from lab.report import size_name  # noqa: E402

SETTINGS = {"processors": 2, "processor": "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", "kernel": "6.1.0-18-amd64", "quick": True}
CAPTION = plot.caption(SETTINGS, "one server of 200 MiB/s, depth 8 requests and 2112 KiB", "policy fifo inside a class",
                       "medians of 5 x 4 s, after 1 s of warm-up")
TOUCH = 1.0  # pixels by which boxes of letters may meet


def wave(index: int, low: float = 1.0, high: float = 2.0) -> float:
    """Sample numbers that differ."""
    return low + (high - low) * ((index * 37) % 101) / 100


def adaptbf_ends(experiment: adaptbf_experiments.Experiment, scale: float) -> dict[str, float]:
    """The jobs end one after the other."""
    length = experiment.expected(scale, "none")
    return {job: length * (2 + place) / 5 for place, job in enumerate(reversed(experiment.jobs))}


def adaptbf_phases(experiment: adaptbf_experiments.Experiment) -> list[adaptbf_experiments.Phase]:
    return experiment.phases(4, adaptbf_ends(experiment, 4))


def adaptbf_series(experiment: adaptbf_experiments.Experiment, scale: float) -> dict[str, adaptbf_experiments.Series]:
    bins = [(index + 1) * 0.25 for index in range(int(max(adaptbf_ends(experiment, scale).values()) / 0.25))]
    return {job: [(t, wave(place + index, 20, 50)) for index, t in enumerate(bins)]
            for place, job in enumerate(experiment.jobs)}


def demo() -> Figure:
    def result(rates: dict[str, float]) -> dict:
        return {"total_mib_per_s": sum(rates.values()), "applications": [
            {"name": name, "timeline": [{"t": t + 1.0, "mib_per_s": rate + wave(t, 0, 9)} for t in range(10)]}
            for name, rate in rates.items()]}

    steps = two_applications.steps(4)
    measured = [Measured(step, index * 4, (index + 1) * 4, {"simulation": 300.0 - 60 * index, "analysis": 100.0 + 60 * index})
                for index, step in enumerate(steps)]
    parts = [whole_site.Part(title, begin, begin + 4, {"a": 40.0 + begin, "b": 80.0 - begin}, wanted)
             for title, begin, wanted in (("each server alone", 0, 0.5), ("with a coordinator", 4, 1.0), ("it was killed", 8, 0.5))]
    return demo_figure.figure({DIRECT: result({"simulation": 80, "analysis": 320}),
                            "px": result({"simulation": 267, "analysis": 133})}, 10,
                           result({"simulation": 200, "analysis": 200}), measured,
                           whole_site.Act(parts, result({"a": 40, "b": 80})),
                           mounted.Act({"4711": 75, "4712": 25},
                                       {job: [(t + 0.5, rate + wave(t, 0, 5)) for t in range(5)]
                                        for job, rate in (("4711", 75), ("4712", 25))}))


def overhead_rows() -> list[dict[str, object]]:
    rows = []
    cases = itertools.product(overhead.OPS, overhead.SIZES, overhead.LOADS, overhead.PATHS)
    for index, (op, size, load, path) in enumerate(cases):
        rows.append(overhead.Case(op, size, *load).fields() | {
            "path": path, "mib_per_s": wave(index, 400, 900), "ops_per_s": wave(index, 400, 900),
            "p50_us": wave(index, 20, 9e3), "p99_us": wave(index, 90, 3e5),
            "cpu_s_per_gib": None if path == DIRECT else wave(index, 0.3, 15)})
    return rows


def memory_figure() -> Figure:
    return overhead_figures.memory_figure([{"size": size, "connections": count, "rss_mib": mib} for size, count, mib in (
        ("64 KiB", 64, 7.1), ("1 MiB", 64, 7.9), ("64 KiB", 1000, 33.2), ("1 MiB", 1000, 61.0))], CAPTION)


def sharing_figure() -> Figure:
    cases = sharing.all_cases(sharing.SERVERS, sharing.SIZES, list(sharing.READ_PERCENT), sharing.WEIGHTS)
    return sharing.figure([case.fields() | {"achieved": case.weight * wave(index, 0.985, 1.01),
                                            "total_vs_fifo": wave(index, 0.97, 1.02)} for index, case in enumerate(cases)],
                          CAPTION)


def edf_figure() -> Figure:
    seen = {policy: [{edf.HISTOGRAM: [[start * 1.2 ** step, 40.0 - step] for step in range(30)]}]
            for policy, start in (("edf", 300.0), ("fifo", 90000.0), ("sfq", 2000.0))}
    rows = [{"policy": policy, "read_mib_per_s": 0.78, "flood_mib_per_s": 190.0, "total_mib_per_s": 190.8} for policy in seen]
    return edf.figure(seen, rows, CAPTION)


def priority_figure() -> Figure:
    return priority.figure([{"reads": load, "classes": mode} | {field: wave(index + place, 5, 190)
                                                                for place, field in enumerate(priority.NUMBERS)}
                            for index, (load, mode) in enumerate(itertools.product(priority.LOADS, priority.MODES))], CAPTION)


def policies_figure() -> Figure:
    rows = []
    for index, (case, policy) in enumerate(itertools.product(policies.CASES, policies.POLICIES)):
        seen = {"fifo": [{"ops_per_s": 1.0, "cpu_s_per_gib": 1.0, "mib_per_s": 1.0, "p50_us": 1.0, "p99_us": 1.0}] * 3}
        seen |= {policy: [{field: wave(index + turn, 0.95, 1.05) for field in policies.NUMBERS} for turn in range(3)]}
        rows += [row for row in policies.rows_of(case, seen) if row["policy"] == policy]
    return policies.figure(rows, CAPTION)


def relay_figure() -> Figure:
    return relay.figure([{"op": op, "size": size_name(size), "outstanding": 16, "connections": 8, "variant": variant,
                          "of_direct": wave(index, 0.2, 0.95), "cpu_s_per_gib": None if variant == "direct" else wave(index)}
                         for index, (op, size, variant) in enumerate(itertools.product(["read", "write"], relay.SIZES,
                                                                                       relay.VARIANTS))], (16, 8), CAPTION)


def schedulers_figure() -> Figure:
    names = ["adaptbf", "edf", "fifo", "sfq", "sfq+limits", "tbf", "priority_queue"]
    rows = [{"policy": name, "flows": flows, "ns_per_request": wave(index, 20, 700)}
            for index, (name, flows) in enumerate(itertools.product(names, [1, 10, 1000, 100000]))]
    return schedulers.figure(rows, rows, CAPTION)


STAGE = ([{"case": "classify", "rules": rules, "attribute": f"attribute_{index}", "ns_p50": wave(index, 20, 900)}
          for index, rules in itertools.product(range(19), [10, 100, 1000])]
         + [{"case": "copy", "virtual_pfs": count, "ns_p50": count * 30.0, "ns_p99": count * 200.0, "lock_us_max": count / 100}
            for count in (100, 1000, 10000)])
STATUS = [{"proxy": name, "p50_us": 119.0, "p99_us": 1245.0} for name in (stage.NONE, stage.FEW, stage.ALL)]


def node_figure() -> Figure:
    return node.figure([case._asdict() | {"quick_ops_per_s": wave(index, 500, 900), "quick_p99_ms": wave(index, 1, 6)}
                        for index, case in enumerate(node.cases(node.SLOW[1:], node.CONNECTIONS))], CAPTION)


def attacks() -> Figure:
    return attacks_figure([{"attack": attack.name, "protocol": attack.protocol, "entitled_mib_per_s": 100.0,
                            "victim_before_mib_per_s": 100.0, "victim_mean_mib_per_s": wave(index, 80, 200),
                            "victim_min_1s_mib_per_s": wave(index, 20, 80)} for index, attack in enumerate(ATTACKS)], CAPTION)


def fuse_figure(backend: str) -> Figure:
    paths, loads = {fuse.POSIX: (list(fuse.PATHS), fuse.DATA), fuse_orangefs.REAL: ([fuse_orangefs.OWN, fuse_orangefs.RIVAL],
                                                                                  fuse.DATA)}.get(
        backend, ([fuse_orangefs.OWN, fuse_orangefs.LOAD], fuse.QUICK_OF_ORANGEFS))
    named = [(name, 0, 1) for name in fuse_loads.NAMES]
    return fuse.figure([{"backend": backend, "op": op, "size": size_name(size) if size else "-", "jobs": jobs, "path": path,
                         "ops_per_s": wave(index, 90, 110)}
                        for index, ((op, size, jobs), path) in enumerate(itertools.product([*loads, *named], paths))
                        if size or path != fuse_orangefs.LOAD], backend, CAPTION)


def shares(**fields: object) -> list[dict[str, object]]:
    """Rows of two applications, by both policies."""
    return [fields | {"policy": policy, "weight": weight, "share": share if weight == 3 else 1 - share}
            for policy, share in (("fifo", 0.5), ("sfq", 0.75)) for weight in (3, 1)]


def fio_figure(processes: list[int]) -> Figure:
    cases = fio.cases(False, 1.0, processes, [1, 2], [])
    return fio.figure([row for case in cases for row in shares(profile=case.profile.name, mounts=case.mounts,
                                                               processes=case.processes)], CAPTION)


def ior_figure() -> Figure:
    return ior.figure([row for test, op in itertools.product(("easy", "hard"), ("write", "read"))
                       for row in shares(test=test, op=op)], CAPTION)


def adaptbf_run(name: str, records: bool) -> Callable[[], Figure]:
    experiment = adaptbf_experiments.EXPERIMENTS[name]
    rates = adaptbf_series(experiment, 4)
    return lambda: adaptbf_figures.run_figure(f"{adaptbf_figures.sentence(experiment.title)} (adaptbf-strict)", CAPTION,
                                              experiment, adaptbf_phases(experiment), rates, rates if records else {job: [] for job in rates})


def adaptbf_controls(name: str) -> Callable[[], Figure]:
    experiment = adaptbf_experiments.EXPERIMENTS[name]
    rates = adaptbf_series(experiment, 4)
    both = adaptbf_phases(experiment), rates
    return lambda: adaptbf_figures.controls_figure(
        experiment, CAPTION, dict.fromkeys(adaptbf_experiments.CONTROLS, both), adaptbf_experiments.CONTROLS)


def adaptbf_gain(name: str) -> Callable[[], Figure]:
    experiment = adaptbf_experiments.EXPERIMENTS[name]

    def facts(of: int) -> dict[str, float]:
        found = {"seconds": 30.0 + of, "total_mib_per_s": wave(of, 80, 199)}
        for index, each in enumerate(experiment.applications):
            numbers = (" mib_per_s", 5, 120), (" p99_ms", 20, 900), (" seconds", 9, 90)
            found |= {f"{each.name}{field}": wave(7 * of + index, low, high) for field, low, high in numbers}
        return found

    return lambda: adaptbf_figures.gain_figure(
        experiment, CAPTION, {control: facts(of) for of, control in enumerate(adaptbf_experiments.CONTROLS)})


def adaptbf_overhead_figure() -> Figure:
    return adaptbf_figures.overhead_figure(CAPTION, [
        {"jobs": jobs, "us_per_job": wave(index), "allocator_us_per_job": wave(index) / 2,
         "ms_per_period": wave(index) * jobs / 1000, "longest_call_us": min(wave(index) * jobs, 300)}
        for index, jobs in enumerate(adaptbf_overhead.JOBS)])


def adaptbf_sweep() -> Figure:
    fields = ["total_mib_per_s", "virtual_mib_per_s"]
    fields += [f"{job}{rest}" for job in adaptbf_experiments.LENDERS for rest in (" mib_per_s_after", "-bursts p99_ms")]
    return adaptbf_figures.sweep_figure(CAPTION, {(control, period): {field: wave(index, 20, 199) for field in fields}
                                                  for control in adaptbf_experiments.SWEPT
                                                  for index, period in enumerate(adaptbf_experiments.PERIODS)})


FIGURES: dict[str, Callable[[], Figure]] = {
    "demo": demo,
    "overhead, throughput": lambda: overhead_figures.throughput_figure(overhead_rows(), CAPTION),
    "overhead, processor": lambda: overhead_figures.cpu_figure(overhead_rows(), CAPTION),
    "overhead, processor against the rival": lambda: overhead_figures.cpu_ratio_figure(overhead_rows(), CAPTION),
    "overhead, latency": lambda: overhead_figures.latency_figure(overhead_rows(), CAPTION),
    "overhead, memory": memory_figure,
    "sharing": sharing_figure, "edf": edf_figure, "priority": priority_figure, "policies": policies_figure,
    "relay": relay_figure, "schedulers": schedulers_figure, "node": node_figure, "attacks": attacks,
    "stage, rules": lambda: stage.rules_figure(STAGE, CAPTION),
    "stage, status": lambda: stage.status_figure(STAGE, STATUS, CAPTION),
    "fuse, a directory": lambda: fuse_figure(fuse.POSIX),
    "fuse, an OrangeFS": lambda: fuse_figure(fuse_orangefs.LIMITED),
    "fuse, a real OrangeFS": lambda: fuse_figure(fuse_orangefs.REAL),
    "fio": lambda: fio_figure(fio.PROCESSES), "fio, quick": lambda: fio_figure(fio.QUICK_PROCESSES), "ior": ior_figure,
    "adaptbf, periods": adaptbf_sweep,
    **{f"adaptbf {name}": adaptbf_run(name, records=True) for name in adaptbf_experiments.EXPERIMENTS},
    "adaptbf b without records": adaptbf_run("b", records=False),
    "adaptbf a by control": adaptbf_controls("a"),
    **{f"adaptbf {name}, gain or loss": adaptbf_gain(name) for name in adaptbf_experiments.EXPERIMENTS},
    "adaptbf, overhead": adaptbf_overhead_figure,
}
# Where what is wanted is a line or a band that a reader must find.
WITH_TARGETS = [name for name in FIGURES if name not in ("overhead, processor", "overhead, latency", "priority", "adaptbf, overhead")]


def panels(figure: Figure) -> list:
    return [axes for axes in figure.axes if axes.axison]


def axis_pairs(figure: Figure) -> Iterator[Axis]:
    for panel in panels(figure):
        yield from (panel.xaxis, panel.yaxis)


def texts_of(figure: Figure) -> Iterator[tuple[str, Bbox]]:
    """Every text that is drawn, and where; of tick labels only those of ticks within their panel."""
    renderer = figure.canvas.get_renderer()
    hidden = set()
    for axis in axis_pairs(figure):
        lowest, highest = sorted(axis.get_view_interval())
        slack = (highest - lowest) * 1e-6
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not lowest - slack <= tick.get_loc() <= highest + slack:
                hidden |= {tick.label1, tick.label2}
    for axes in figure.axes:
        if not axes.axison:
            hidden |= {label for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()}
    for text in figure.findobj(Text):
        if text not in hidden and text.get_visible() and text.get_text().strip():
            yield text.get_text(), text.get_window_extent(renderer)


def has_names(axis: Axis) -> bool:
    """Whether its ticks are categories, not numbers."""
    return any(re.search("[A-Za-z]", label.get_text()) for label in axis.get_ticklabels())


def heights(artist: Artist) -> list[float]:
    """The heights of a dashed line, in the data's numbers; an upright one has none."""
    if isinstance(artist, LineCollection):
        return [y for segment in artist.get_segments() for _, y in segment]
    if isinstance(artist, Line2D) and len(set(artist.get_ydata())) == 1:
        return list(artist.get_ydata())
    return []


def overlap(one: Bbox, other: Bbox) -> bool:
    return (min(one.x1, other.x1) - max(one.x0, other.x0) > TOUCH) and (min(one.y1, other.y1) - max(one.y0, other.y0) > TOUCH)


class FigureTest(unittest.TestCase):
    """Each check is made of every figure."""

    figures: dict[str, Figure]
    texts: dict[Figure, list[tuple[str, Bbox]]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.figures = {}
        cls.enterClassContext(style())
        for name, make in FIGURES.items():
            cls.figures[name] = make()
            cls.figures[name].draw_without_rendering()
        cls.texts = {figure: list(texts_of(figure)) for figure in cls.figures.values()}

    def each(self, check: Callable[[Figure], None], names: list[str] | None = None) -> None:
        for name in names or self.figures:
            with self.subTest(name):
                check(self.figures[name])

    def test_no_text_leaves_its_figure(self) -> None:
        def check(figure: Figure) -> None:
            for text, box in self.texts[figure]:
                inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.width and box.y1 <= figure.bbox.height
                self.assertTrue(inside, f"{text!r} at {box} of {figure.bbox.width} x {figure.bbox.height}")

        self.each(check)

    def test_no_two_texts_overlap(self) -> None:
        def check(figure: Figure) -> None:
            for (text, box), (other, other_box) in itertools.combinations(self.texts[figure], 2):
                self.assertFalse(overlap(box, other_box), f"{text!r} and {other!r}")

        self.each(check)

    def test_the_legend_is_beside_all_panels_and_has_every_series(self) -> None:
        def check(figure: Figure) -> None:
            (legend,) = [axes.get_legend() for axes in figure.axes if axes.get_legend()]
            extent = legend.get_window_extent(figure.canvas.get_renderer())
            names = {text.get_text() for text in legend.get_texts()}
            for panel in panels(figure):
                self.assertFalse(overlap(extent, panel.bbox))
                self.assertLessEqual(set(panel.get_legend_handles_labels()[1]), names)

        self.each(check)

    def test_axes_of_numbers_have_units(self) -> None:
        def check(figure: Figure) -> None:
            of_numbers = [axis for axis in axis_pairs(figure) if axis.get_label().get_text() and not has_names(axis)]
            self.assertGreater(len(of_numbers), 0)
            for axis in of_numbers:
                self.assertRegex(axis.get_label().get_text(), r"\(.+\)$")

        self.each(check)

    def test_each_row_of_panels_says_what_its_heights_are_and_each_column_its_widths(self) -> None:
        def check(figure: Figure) -> None:
            for panel in panels(figure):
                place = panel.get_subplotspec()
                if place.is_first_col():
                    self.assertTrue(panel.get_ylabel() or has_names(panel.yaxis))
                if place.is_last_row():
                    self.assertTrue(panel.get_xlabel() or has_names(panel.xaxis))

        self.each(check)

    def test_nothing_measured_is_cut_off(self) -> None:
        def check(figure: Figure) -> None:
            for panel in panels(figure):
                (left, right), (bottom, top) = sorted(panel.get_xlim()), sorted(panel.get_ylim())
                for line in panel.get_lines():
                    if line.get_gid() != plot.WANTED and line.get_transform() == panel.transData:
                        for x, y in line.get_xydata():
                            self.assertTrue(left <= x <= right and bottom <= y <= top, f"{x}, {y} of {line.get_label()}")
                for bar in itertools.chain(*panel.containers):
                    self.assertTrue(bottom <= bar.get_height() <= top)

        self.each(check)

    def test_what_is_wanted_is_dashed_within_its_panel_and_explained(self) -> None:
        def check(figure: Figure) -> None:
            explained = set()
            for panel in panels(figure):
                found = [artist for artist in [*panel.get_lines(), *panel.collections] if artist.get_gid() == plot.WANTED]
                explained |= {artist.get_label() for artist in found if not artist.get_label().startswith("_")}
                for artist in found:
                    if isinstance(artist, LineCollection):
                        self.assertIsNotNone(artist.get_linestyle()[0][1])
                    elif isinstance(artist, Line2D):
                        self.assertTrue(artist.is_dashed())
                drawn = [y for artist in found for y in heights(artist)]
                self.assertTrue(all(min(panel.get_ylim()) <= y <= max(panel.get_ylim()) for y in drawn), drawn)
            self.assertTrue(explained - {""})

        self.each(check, WITH_TARGETS)

    def test_each_figure_has_a_title_and_the_settings_and_the_width_of_a_readme(self) -> None:
        def check(figure: Figure) -> None:
            texts = [text for text, _ in self.texts[figure]]
            self.assertTrue(any("processors (" in text for text in texts))
            self.assertTrue(figure._suptitle.get_text())
            self.assertEqual(figure.get_size_inches()[0], plot.WIDTH)

        self.each(check)


class DemoTest(unittest.TestCase):
    def test_each_name_of_its_legend_has_a_colour_of_its_own_and_the_mount_is_there(self) -> None:
        with style():
            drawn = demo()
        colours = {line.get_label(): line.get_color() for panel in panels(drawn) for line in panel.get_lines()
                   if line.get_gid() != plot.WANTED and not line.get_label().startswith("_")}
        self.assertEqual(set(colours), {"simulation", "analysis", "narrow", "wide", "job 4711", "job 4712"})
        self.assertEqual(len(set(colours.values())), len(colours))


class StyleTest(unittest.TestCase):
    def test_looks_differ_in_colour_marker_and_hatch(self) -> None:
        for field in ("colour", "marker", "hatch"):
            seen = [getattr(plot.look(index), field) for index in range(8)]
            self.assertEqual(len(set(seen)), 8, field)
        self.assertEqual(len({plot.look(index) for index in range(16)}), 16)

    def test_a_policy_looks_the_same_whoever_is_beside_it(self) -> None:
        self.assertEqual(plot.looks(["edf", "fifo"])["edf"], plot.looks(["sfq", "tbf", "edf", "other"])["edf"])
        self.assertEqual(plot.looks(["job2", "job1"])["job2"], plot.look(0))

    def test_a_mean_over_a_bin_is_drawn_in_its_middle(self) -> None:
        self.assertEqual(bins([(1.0, 5.0), (2.0, 6.0), (2.5, 7.0)]), [(0.5, 5.0), (1.5, 6.0), (2.25, 7.0)])

    def test_a_tail_starts_with_all_requests_and_ends_at_the_longest(self) -> None:
        self.assertEqual(tail([[20.0, 9], [10.0, 90], [50.0, 1]]), [(10.0, 100.0), (10.0, 10.0), (20.0, 1.0), (50.0, 1.0)])
        self.assertEqual(tail([]), [])

    def test_a_caption_ends_with_the_machine_and_owns_up_to_a_quick_run(self) -> None:
        self.assertTrue(CAPTION.startswith("a quick run, not for the record; "))
        self.assertTrue(CAPTION.endswith("2.50GHz), Linux 6.1.0-18-amd64."))
        self.assertNotIn("quick", plot.caption(SETTINGS | {"quick": False}, "10 s"))


class NothingTest(unittest.TestCase):
    def test_a_panel_without_groups_or_series_or_values_is_empty(self) -> None:
        none: dict[str, list[float | None]] = {}
        with style():
            for groups, series in (([], none), (["a"], none), ([], {"x": []}), (["a"], {"x": [None]})):
                sheet = plot.Sheet("Nothing", CAPTION, rows=4)
                bars, stacked, dots, lines = sheet.panels
                plot.bars(bars, groups, series)
                plot.stacked(stacked, groups, series)
                plot.dots(dots, groups, series)
                plot.lines(lines, dict.fromkeys(series, []))
                sheet.finish().draw_without_rendering()


class SaveTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_the_same_data_make_the_same_files(self) -> None:
        first = [file.read_bytes() for file in plot.save(self.folder / "one" / "p", priority_figure)]
        self.assertEqual([file.read_bytes() for file in plot.save(self.folder / "two" / "p", priority_figure)], first)
        self.assertEqual([first[0][:5], first[1][:4]], [b"<?xml", b"\x89PNG"])

    def test_a_style_of_the_user_changes_nothing(self) -> None:
        import matplotlib

        plain = plot.save(self.folder / "plain", priority_figure)[0].read_bytes()
        with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
            self.assertEqual(plot.save(self.folder / "styled", priority_figure)[0].read_bytes(), plain)

    def test_without_matplotlib_one_note_says_that_plots_are_left_out(self) -> None:
        errors = io.StringIO()
        with mock.patch.object(importlib.util, "find_spec", return_value=None), contextlib.redirect_stderr(errors):
            self.assertEqual(plot.save(self.folder / "a", self.fail) + plot.save(self.folder / "b", self.fail), [])
        self.assertEqual(len(errors.getvalue().splitlines()), 1)
        self.assertIn("python3-matplotlib", errors.getvalue())
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
