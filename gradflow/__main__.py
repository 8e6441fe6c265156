"""The command `gradflow`, also `python -m gradflow`."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command line and return its exit code (see `gradflow.cli.exits`)."""
    os.environ["MPLBACKEND"] = "agg"  # figures go to files, whatever a notebook was told
    try:
        from gradflow.cli.exits import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:  # so early that nothing of ours was there to catch it
        return 130


if __name__ == "__main__":
    sys.exit(main())
