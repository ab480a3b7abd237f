"""A TGI replica without a GPU: `llmshed.simulation` performed in real time behind TGI's own HTTP.

Routes, bodies, streams, headers, errors and metrics are those of text-generation-inference, field for field; tokens are
counted with the same tokenizer files that the gateway counts with; the text is made up, the same for the same prompt
and seed. Faults are switched on by `/_simulate/faults`, and `/_simulate/state` tells what the engine really holds.
"""

from llmshed.emulator.server import Emulator
from llmshed.emulator.settings import EmulatorSettings

__all__ = ["Emulator", "EmulatorSettings"]
