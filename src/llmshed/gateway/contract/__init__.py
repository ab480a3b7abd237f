"""The HTTP contract: how refusals and answers are told in both dialects (docs/contract.md)."""
