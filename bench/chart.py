"""A line chart of something over time as SVG, written by hand: no library draws it."""
from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 900, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 70, 55
COLOURS = ["#1f6fb4", "#d1661a", "#2c8a4b", "#8a4bb0", "#555555"]


@dataclasses.dataclass
class Phase:
    """A stretch of time with a heading; `targets` are drawn as dashed lines, one for each line."""

    title: str
    start: float
    end: float
    targets: Sequence[float] = ()


@dataclasses.dataclass
class Line:
    """`parts` are drawn apart: nothing joins the end of one with the start of the next."""

    name: str
    parts: list[list[tuple[float, float]]]


def tick_step(highest: float) -> float:
    """1, 2 or 5 times a power of ten, at most six steps to the top."""
    rough = max(highest, 1e-9) / 6
    power = 10 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)


def line_chart(title: str, unit: str, phases: Sequence[Phase], lines: Sequence[Line]) -> str:
    end = max(phase.end for phase in phases)
    values = [y for line in lines for part in line.parts for _, y in part] or [1.0]
    step = tick_step(max(max(values), -min(values)) or 1.0)
    top = step * math.ceil(max(values) / step + 0.2)
    bottom = step * min(0, math.floor(min(values) / step))
    entries = len(lines) + any(phase.targets for phase in phases)
    legend_step = min(200, (WIDTH - LEFT) / max(1, entries))
    plot_width, plot_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + x / end * plot_width, TOP + (top - y) / (top - bottom) * plot_height

    def text(x: float, y: float, content: str, attributes: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(content)}</text>'

    def stroke(x1: float, y1: float, x2: float, y2: float, attributes: str) -> str:
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {attributes}/>'

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="13" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(LEFT, 26, title, 'font-size="17" font-weight="bold"'),
    ]
    for index, phase in enumerate(phases):
        x, y = at(phase.start, top)
        width = at(phase.end, top)[0] - x
        out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{plot_height}" '
                   f'fill="{"#f4f4f4" if index % 2 == 0 else "#eaf3ea"}"/>')
        out.append(text(x + width / 2, y + 20, phase.title, 'text-anchor="middle" font-weight="bold" fill="#555"'))
    for index in range(round(bottom / step), round(top / step) + 1):
        x, y = at(0, index * step)
        out.append(stroke(x, y, WIDTH - RIGHT, y, 'stroke="#ccc" stroke-width="1"'))
        out.append(text(x - 8, y + 4, f"{index * step:g}", 'text-anchor="end"'))
    second = max(1, round(end / 20))
    for index in range(0, math.floor(end + 1e-6) + 1, second):
        x, y = at(index, bottom)
        out.append(stroke(x, y, x, y + 5, 'stroke="#222"'))
        out.append(text(x, y + 20, str(index), 'text-anchor="middle"'))
    out.append(stroke(*at(0, 0), *at(end, 0), 'stroke="#222"'))
    out.append(stroke(*at(0, bottom), *at(0, top), 'stroke="#222"'))
    out.append(text(LEFT + plot_width / 2, HEIGHT - 12, "seconds", 'text-anchor="middle"'))
    out.append(text(0, 0, unit, f'text-anchor="middle" transform="translate(18 {TOP + plot_height / 2:.0f}) rotate(-90)"'))

    for index, line in enumerate(lines):
        colour = COLOURS[index % len(COLOURS)]
        for phase in phases:
            if index < len(phase.targets):
                out.append(stroke(*at(phase.start, phase.targets[index]), *at(phase.end, phase.targets[index]),
                                  f'stroke="{colour}" stroke-width="1.5" stroke-dasharray="6 5"'))
        for part in line.parts:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in part))
            out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        x = LEFT + legend_step * index
        out.append(stroke(x, 46, x + 28, 46, f'stroke="{colour}" stroke-width="3"'))
        out.append(text(x + 36, 50, line.name))
    if any(phase.targets for phase in phases):
        x = LEFT + legend_step * len(lines)
        out.append(stroke(x, 46, x + 28, 46, 'stroke="#555" stroke-width="1.5" stroke-dasharray="6 5"'))
        out.append(text(x + 36, 50, "its share"))
    out.append("</svg>")
    return "\n".join(out) + "\n"
