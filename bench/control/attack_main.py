#!/usr/bin/env python3
"""Attacks a control port; see attacks.py."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from bench.control.attack_processes import main

if __name__ == "__main__":
    sys.exit(main())
