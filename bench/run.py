"""Run every benchmark: `make bench`. Figures hold within one run; docs/performance.md keeps a set."""

import counting
import decision
import goodput
import keys
import start

if __name__ == "__main__":  # goodput's processes may import this file again
    for module in (start, keys, decision, counting, goodput):
        module.main()
