"""Compares measurements with targets: rows with a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from lab.harness import geometric_mean
from lab.report import Row

COLUMNS = ["target", "required", "measured", "verdict"]


def verdict(target: str, required: str, measured: str, reached: bool) -> Row:
    return {
        "target": target,
        "required": required,
        "measured": measured,
        "verdict": "reached" if reached else "missed",
    }


def not_measured(target: str, required: str) -> Row:
    """A target that this run did not measure."""
    return {"target": target, "required": required, "measured": "", "verdict": "not measured"}


def at_least(target: str, limit: float, ratios: Sequence[float], mean: bool = False) -> Row:
    """Every ratio is at or above the limit; with `mean`, their geometric mean is."""
    if not ratios:
        return not_measured(target, f">= {limit:.2f}")
    value = geometric_mean(ratios) if mean else min(ratios)
    missed = sum(not ratio >= limit for ratio in ratios)
    detail = f"{value:.2f}" if mean else f"worst {value:.2f}, {missed} of {len(ratios)} rows below"
    return verdict(target, f">= {limit:.2f}", detail, value >= limit)


def at_most(target: str, limit: float, values: Sequence[float]) -> Row:
    if not values:
        return not_measured(target, f"<= {limit:.2f}")
    missed = sum(not value <= limit for value in values)
    detail = f"worst {max(values):.2f}, {missed} of {len(values)} rows above"
    return verdict(target, f"<= {limit:.2f}", detail, missed == 0)


def one_at_least(target: str, limit: float, value: float, unit: str = "") -> Row:
    return verdict(target, f">= {limit:.3g}{unit}", f"{value:.3g}{unit}", value >= limit)


def one_at_most(target: str, limit: float, value: float, unit: str = "") -> Row:
    return verdict(target, f"<= {limit:.3g}{unit}", f"{value:.3g}{unit}", value <= limit)
