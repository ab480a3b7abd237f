"""Run every benchmark: `make bench`. Figures hold within one run; docs/performance.md keeps a set."""

import counting
import decision
import start

for module in (start, decision, counting):
    module.main()
