"""What matplotlib's settings are while a figure is drawn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

INK, PALE = "#333333", "#d9d9d9"
STYLE: dict[str, object] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "figure.titlesize": 12,
    "figure.titleweight": "bold",
    "figure.constrained_layout.h_pad": 0.06,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": PALE,
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "hatch.linewidth": 0.6,
    # Equal figures are equal files: no random identifiers, no fonts of the viewer.
    "svg.hashsalt": "vpfs",
    "svg.fonttype": "path",
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Ignores the user's own configuration of matplotlib."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield
