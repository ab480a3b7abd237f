"""Reviews by hand, for tests of how they are shown."""

from llmshed.review.figures import review_of

FOUND = review_of(
    {
        "known": {(): 100.0},
        "arrived": {("interactive",): 1_000.0},
        "refused": {("interactive", "queue_full"): 100.0},
        "served": {("interactive",): 900.0},
        "good": {("interactive",): 0.95},
        "oldest_wait": {("interactive", "<main>"): 75.0},
        "utilised": {("<main>",): 0.5},
        "idle": {("<main>",): 0.25},
        "ran": {("interactive", "<main>"): 1.0},
        "running_most": {("<main>",): 64.0},
        "input_mean": {("interactive",): 400.0},
        "asked_mean": {("interactive",): 100.0},
        "profiles": {("a@1",): 1.0},
    },
    {"ttft_p95": "no answer within 9 s"},
    3_000.0,
    15.0,
)
"""Fifty minutes, of half of which anything is known, and a pool whose name wants to be markup."""

NOTHING = review_of({}, {}, 3_000.0, 15.0)
