"""From an admitted ticket to the end of the answer: the upstream client and the relay of its bytes."""
