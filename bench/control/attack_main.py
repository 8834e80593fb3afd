#!/usr/bin/env python3
"""Starts one attack on a control port; see attacks.py."""
from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from bench.control.attacks import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
