"""Numbers of options. One that makes no sense is refused where it is given."""

from __future__ import annotations

import argparse
import math


def number(text: str) -> float:
    """Neither infinite nor "nan", which compare and add up to nothing."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}': expected a number")
    return value


def above_zero(text: str) -> float:
    if (value := number(text)) <= 0:
        raise argparse.ArgumentTypeError(f"'{text}': expected a number above 0")
    return value


def not_negative(text: str) -> float:
    if (value := number(text)) < 0:
        raise argparse.ArgumentTypeError(f"'{text}': expected 0 or more")
    return value


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}': expected a whole number") from None


def one_or_more(text: str) -> int:
    if (value := whole(text)) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': expected a whole number from 1 on")
    return value


def zero_or_more(text: str) -> int:
    if (value := whole(text)) < 0:
        raise argparse.ArgumentTypeError(f"'{text}': expected a whole number from 0 on")
    return value
