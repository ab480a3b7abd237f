"""Whether the time of a look-up tells how near a key came: single look-ups, all kinds in turn."""

import hashlib
import time
from statistics import median

from llmshed.gateway.door.auth import KeyRing

ROUNDS = 10_000
KNOWN = "llmshed-0000-5dVh3mTq9sX1kYw7BzR2"
KINDS = {
    "a known key": KNOWN,
    "a wrong key, the last letter off": KNOWN[:-1] + "3",
    "a wrong key, the first letter off": "m" + KNOWN[1:],
    "an unknown key of the same length": "Zq" * (len(KNOWN) // 2) + "Z",
}


def main() -> None:
    """Print the median of each kind and how far each is from that of a known key."""
    others = [f"llmshed-{number:04}-5dVh3mTq9sX1kYw7BzR2" for number in range(1, 1_000)]
    ring = KeyRing({hashlib.sha256(key.encode()).digest(): "acme" for key in (KNOWN, *others)})
    samples: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS):
        for kind, key in KINDS.items():
            started = time.perf_counter_ns()
            ring.tenant(key)
            samples[kind].append(time.perf_counter_ns() - started)
    print(f"\nlook-up of a key among 1,000, {ROUNDS:,} times (wall)")
    known = median(samples["a known key"])
    for kind, values in samples.items():
        middle = median(values)
        print(f"  {kind:<44}{middle / 1e3:>12.2f} us{(middle - known) / 1e3:>+10.2f} us")


if __name__ == "__main__":
    main()
