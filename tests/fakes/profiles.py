"""Profiles for tests of what is made of them."""

from pathlib import Path

REVISION = "e985a63cdc139290c5f700ff1929f0b5942cced2"

BUDGET = """schema = "llmshed.profile/1"
name = "measured"
version = "7"
[budget]
gross_ceiling_tokens = 40_000
guard_band_ratio = 0.0
hard_cap_sequences = 64
basis = "declared"
"""

FINGERPRINT = f"""[fingerprint]
model_id = "llmshed/simulated"
model_revision = "{REVISION}"
engine = "tgi"
engine_version = "3.3.5"
dtype = "float16"
gpu = "NVIDIA L4"
"""

PROFILE = BUDGET + FINGERPRINT
"""40,000 tokens of safe budget, on a replica whose engine, model, weights and GPU are known."""

ASKED = {"model_sha": REVISION, "model_dtype": "torch.float16"}
"""What `/info` tells beside what the emulator does, on the replica of the profile."""


def written(place: Path, text: str = PROFILE) -> Path:
    """Return the file of a profile, written there."""
    file = place / "measured.toml"
    file.write_text(text)
    return file
