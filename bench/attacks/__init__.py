"""script/bench attacks."""
from bench.attacks.run import option_parser, run

__all__ = ["option_parser", "run"]
