"""The style of all plots, which matplotlib draws as SVG and PNG.

A figure is a Sheet: a title, one legend, panels, and below them the settings of the run. Colours
are those of Okabe and Ito, which colour-blind people can tell apart. Markers and hatches differ
too, for print without colours. Dashed lines show what is wanted, never what was measured.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import math
import pathlib
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lab.plot_style import INK, style
from lab.points import Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 8.5  # inches; a README shows this width without scaling
LEFT, LEGEND_WIDTH = 0.01, 0.97  # of the figure's width
CAPTION_COLUMNS = 150
PNG_DPI = 160
MARKED_POINTS = 12  # per line; more would hide the line
LABELLED_BARS = 12
CATEGORIES_COLUMNS = 96  # characters of all names below the panels of a row
DASHES = (0, (5, 2.5))
WANTED = "wanted"  # within a figure, marks what was not measured
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<"]
HATCHES = ["", "////", "....", "xxxx", "\\\\\\\\", "||||", "++++", "----"]
POLICIES = ["fifo", "sfq", "tbf", "edf", "adaptbf"]  # they look the same in every figure


@dataclasses.dataclass(frozen=True)
class Look:
    colour: str
    marker: str
    hatch: str


def look(index: int) -> Look:
    """The look with this number.

    The ninth has the colour of the first, but another marker and hatch.
    """
    other = (index + index // len(COLOURS)) % len(COLOURS)
    return Look(COLOURS[index % len(COLOURS)], MARKERS[other], HATCHES[other])


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Each policy has a fixed look. Other names get looks in turn."""
    order = POLICIES if set(names) & set(POLICIES) else []
    order = [*order, *(name for name in names if name not in order)]
    return {name: look(order.index(name)) for name in names}


def caption(settings: Mapping[str, object], *facts: str) -> str:
    """The settings that a reader of a figure needs. The machine comes last."""
    quick = ["a quick run, not for the record"] if settings.get("quick") else []
    machine = (
        f"{settings['processors']} processors ({settings['processor']}), Linux {settings['kernel']}"
    )
    return "; ".join([*quick, *facts, machine]) + "."


class Sheet:
    """A figure under construction. Use it only within style()."""

    def __init__(
        self,
        title: str,
        settings: str,
        rows: int = 1,
        columns: int = 1,
        heights: Sequence[float] = (2.6,),
        share_x: bool = False,
        share_y: bool = False,
    ) -> None:
        """All panels share the x axis. The panels of a row share the y axis."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        heights = [height for height, _ in zip(itertools.cycle(heights), range(rows))]
        lines = textwrap.wrap(settings, CAPTION_COLUMNS)
        self.figure = Figure(
            figsize=(WIDTH, sum(heights) + 0.9 + 0.13 * len(lines)), layout="constrained"
        )
        self._canvas = FigureCanvasAgg(self.figure)
        self.figure.suptitle(title, x=LEFT, ha="left")
        self.figure.supxlabel("\n".join(lines), x=LEFT, ha="left", fontsize=7.5, color="#555555")
        grid = self.figure.add_gridspec(rows + 1, columns, height_ratios=[0.01, *heights])
        self._legend = self.figure.add_subplot(grid[0, :])
        self._legend.axis("off")
        self.panels: list[Axes] = []
        for row, column in itertools.product(range(rows), range(columns)):
            first = self.panels[0] if share_x and self.panels else None
            leftmost = self.panels[row * columns] if share_y and column > 0 else None
            self.panels.append(
                self.figure.add_subplot(grid[row + 1, column], sharex=first, sharey=leftmost)
            )
            if share_x and row + 1 < rows:
                self.panels[-1].tick_params(labelbottom=False)
            if share_y and column > 0:
                self.panels[-1].tick_params(labelleft=False)

    def finish(self) -> Figure:
        """Puts the legend of all panels below the title, in as few lines as possible."""
        from matplotlib.offsetbox import AnchoredOffsetbox, DrawingArea
        from matplotlib.transforms import blended_transform_factory

        place = blended_transform_factory(self.figure.transFigure, self._legend.transAxes)
        handles: dict[str, object] = {}
        for panel in self.panels:
            for handle, name in zip(*panel.get_legend_handles_labels()):
                handles.setdefault(name, handle)
        # Wanted values follow measured ones.
        handles = dict(
            sorted(handles.items(), key=lambda item: getattr(item[1], "get_gid", str)() == WANTED)
        )
        for columns in range(len(handles), 0, -1):
            legend = self._legend.legend(
                handles.values(),
                handles.keys(),
                loc="lower left",
                bbox_to_anchor=(LEFT, 0),
                bbox_transform=place,
                borderaxespad=0,
                borderpad=0,
                ncol=columns,
                columnspacing=1.6,
                handlelength=2.4,
            )
            extent = legend.get_window_extent(self._canvas.get_renderer())
            if extent.width <= LEGEND_WIDTH * self.figure.bbox.width:
                # The layout keeps room for its height, but not for its width beside the panels.
                legend.set_in_layout(False)
                height = DrawingArea(1, extent.height * 72 / self.figure.dpi)
                room = AnchoredOffsetbox(
                    "lower left", child=height, pad=0, borderpad=0, frameon=False
                )
                room.set_clip_on(False)
                self._legend.add_artist(room)
                break
        return self.figure


def label(panel: Axes, x: str = "", y: str = "", title: str = "") -> None:
    """Labels the axes. Units are in parentheses."""
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.set_title(title, loc="left")


def lines(
    panel: Axes,
    series: Mapping[str, Points],
    look_of: Mapping[str, Look] | None = None,
    joined: bool = True,
) -> None:
    look_of = look_of or looks(list(series))
    for index, (name, points) in enumerate(series.items()):
        if not points:
            continue
        own = look_of[name]
        xs, ys = zip(*points)
        # Staggers markers, so that lines that coincide both show theirs.
        every = max(1, len(points) // MARKED_POINTS)
        panel.plot(
            xs,
            ys,
            color=own.colour,
            marker=own.marker,
            label=name,
            linestyle="-" if joined else "none",
            markevery=(index * every // len(series), every),
            markeredgecolor="white",
            markeredgewidth=0.6,
            markersize=5.5 if joined else 6.5,
            zorder=2 if joined else 3,
        )


def bars(
    panel: Axes,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    look_of: Mapping[str, Look] | None = None,
) -> None:
    """One bar per series in each group. If there are few bars, their values are above them."""
    from matplotlib.patheffects import withStroke

    look_of = look_of or looks(list(series))
    width = 0.82 / max(1, len(series))
    labelled = len(groups) * len(series) <= LABELLED_BARS
    for index, (name, values) in enumerate(series.items()):
        own = look_of[name]
        places = [group + (index - (len(series) - 1) / 2) * width for group in range(len(groups))]
        drawn = [
            (x, value)
            for x, value in zip(places, values)
            if value is not None and math.isfinite(value)
        ]
        if not drawn:
            continue
        found = panel.bar(
            *zip(*drawn),
            width=0.92 * width,
            color=own.colour,
            hatch=own.hatch,
            edgecolor="white",
            linewidth=0.5,
            label=name,
        )
        if labelled:
            panel.bar_label(
                found,
                [short(value) for _, value in drawn],
                padding=2,
                fontsize=7.5,
                zorder=4,
                path_effects=[withStroke(linewidth=2.5, foreground="white")],
            )
    if labelled:
        panel.margins(y=0.14)
    categories(panel, groups)


def stacked(
    panel: Axes,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    look_of: Mapping[str, Look] | None = None,
) -> None:
    """One bar per group, of a part for each series, the first at the bottom."""
    look_of = look_of or looks(list(series))
    below = [0.0] * len(groups)
    for name, values in series.items():
        own = look_of[name]
        parts = [value or 0.0 for value in values]
        panel.bar(
            range(len(groups)),
            parts,
            bottom=below,
            width=0.7,
            color=own.colour,
            hatch=own.hatch,
            edgecolor="white",
            linewidth=0.5,
            label=name,
        )
        below = [height + part for height, part in zip(below, parts)]
    categories(panel, groups)


def short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"


def categories(panel: Axes, names: Sequence[str]) -> None:
    room = max(8, CATEGORIES_COLUMNS // (panel.get_gridspec().ncols * max(1, len(names))))
    panel.set_xticks(range(len(names)), [textwrap.fill(name, room) for name in names])
    panel.tick_params(axis="x", length=0)
    panel.set_xlim(-0.6, max(1, len(names)) - 0.4)


def dots(panel: Axes, names: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> None:
    """A horizontal row for each name, the first at the top."""
    for index, (name, values) in enumerate(series.items()):
        own = look(index)
        known = [(value, place) for place, value in enumerate(values) if value is not None]
        if not known:
            continue
        panel.plot(
            *zip(*known),
            color=own.colour,
            marker=own.marker,
            linestyle="none",
            label=name,
            markersize=6.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            zorder=3,
        )
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(max(1, len(names)) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0)


def spread(panel: Axes, points: Points, ends: Points, own: Look) -> None:
    """The spread of the runs behind each point. `ends` are the smallest and the largest value."""
    for (x, _), (least, most) in zip(points, ends):
        panel.plot(
            [x, x],
            [least, most],
            color=own.colour,
            linewidth=1.2,
            solid_capstyle="butt",
            zorder=1.8,
        )


def target(
    panel: Axes,
    value: float,
    name: str = "",
    span: tuple[float, float] | None = None,
    colour: str = "#000000",
    text: str = "",
) -> None:
    """A dashed line across the panel or over `span`, with `text` to the right of the panel."""
    dashed = {"linestyle": DASHES, "linewidth": 1.4, "zorder": 2.5, "label": name, "gid": WANTED}
    if span:
        panel.hlines(value, *span, colors=colour, **dashed)
    else:
        panel.axhline(value, color=colour, **dashed)
    if text:
        panel.annotate(
            text,
            (1, value),
            (4, 0),
            xycoords=panel.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=8,
            annotation_clip=False,
        )


def limit(panel: Axes, value: float, name: str) -> None:
    """A dashed vertical line through the panel."""
    panel.axvline(
        value, color="#000000", linestyle=DASHES, linewidth=1.4, zorder=2.5, label=name, gid=WANTED
    )


def explain_targets(panel: Axes, name: str) -> None:
    """One legend entry for dashed lines of several colours."""
    panel.plot([], [], color=INK, linestyle=DASHES, linewidth=1.4, label=name, gid=WANTED)


def band(
    panel: Axes, lowest: float, highest: float, name: str, span: tuple[float, float] | None = None
) -> None:
    """Marks the allowed range of values, over the whole panel or over a range of x."""
    green = {
        "color": "#009E73",
        "alpha": 0.15,
        "linewidth": 0,
        "label": name,
        "zorder": 0.5,
        "gid": WANTED,
    }
    if span:
        panel.fill_between(span, lowest, highest, **green)
    else:
        panel.axhspan(lowest, highest, **green)


def phases(panel: Axes, parts: Sequence[tuple[float, float, str]]) -> None:
    """Phases of time, with headings above the panel and lines between them."""
    for begin, end, title in parts:
        if begin > parts[0][0]:
            panel.axvline(begin, color="#999999", linewidth=1, zorder=0.6)
        panel.annotate(
            title,
            ((begin + end) / 2, 1),
            (0, 4),
            xycoords=panel.get_xaxis_transform(),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8.5,
            annotation_clip=False,
        )
    panel.set_xlim(parts[0][0], parts[-1][1])


def plain(value: float, _: int = 0) -> str:
    """1000.0 -> "1,000"."""
    return f"{value:,.12g}"


def logarithmic(panel: Axes, axis: str) -> None:
    """Labels the ticks of an axis ("x" or "y") with plain numbers.

    Its limits must be set already.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    getattr(panel, f"set_{axis}scale")("log")
    lowest, highest = getattr(panel, f"get_{axis}lim")()
    of = getattr(panel, f"{axis}axis")
    of.set_major_locator(LogLocator(subs=(1, 2, 5) if highest / lowest < 200 else (1,)))
    of.set_minor_locator(NullLocator())
    of.set_major_formatter(FuncFormatter(plain))


def doubling(panel: Axes, measured: Sequence[float]) -> None:
    """A logarithmic x axis with ticks at the measured values."""
    from matplotlib.ticker import NullLocator

    panel.set_xscale("log", base=2)
    panel.set_xticks(sorted(set(measured)), [plain(value) for value in sorted(set(measured))])
    panel.xaxis.set_minor_locator(NullLocator())


def from_zero(panels: Sequence[Axes]) -> None:
    """Call this after drawing: a shared axis must have room for every panel."""
    for panel in panels:
        panel.set_ylim(bottom=0)


def available() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


class Notice:
    """Prints once that there are no plots."""

    said = False

    @classmethod
    def give(cls) -> None:
        if not cls.said:
            print(
                "plots are left out: this Python has no matplotlib (python3-matplotlib, "
                "script/bootstrap installs it)",
                file=sys.stderr,
            )
        cls.said = True


def save(file: pathlib.Path, make: Callable[[], Figure]) -> list[pathlib.Path]:
    """Draws the figure of `make` into FILE.svg and FILE.png.

    Without matplotlib, prints a note once instead.
    """
    if not available():
        Notice.give()
        return []
    file.parent.mkdir(parents=True, exist_ok=True)
    written = [file.parent / f"{file.name}.{kind}" for kind in ("svg", "png")]
    with style():
        figure = make()
        figure.savefig(written[0], metadata={"Date": None})
        figure.savefig(written[1], dpi=PNG_DPI, metadata={"Software": None})
    return written
