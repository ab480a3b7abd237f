"""What llmshed costs beside other proxies: `python bench/dataplane/run.py`, or `--quick` for a first figure.

The whole run takes a quarter of an hour, on two cores and otherwise quiet; it needs cc, nginx and PyPI. `--write` keeps
its figures in `bench/data/dataplane.csv` and its table in docs/performance.md.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file, it would not find its own package
    from dataplane.main import main

    main(sys.argv[1:])
