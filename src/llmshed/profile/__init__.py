"""What was measured, or declared, about one replica: the numbers that admission lends by, with what they hold for.

A profile is a TOML file with a name and a version. It says how many reserved tokens a replica carries (gross ceiling),
how much of that is never lent (guard band), how fast it processes prompts and produces tokens, which thresholds and
objectives it was made for, and on what it was measured (fingerprint). Whatever a profile leaves out has the default
that its field documents: an optional section that is absent means that nothing is known, never zero.
"""

from llmshed.profile.model import Profile
from llmshed.profile.parsing import parse_profile

__all__ = ["Profile", "parse_profile"]
