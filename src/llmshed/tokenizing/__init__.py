"""How many tokens the engine will count for a prompt: the same template, the same tokenizer, the same special tokens.

Nothing here waits. `PromptCounter.count` is plain work of up to seconds for megabytes of text; `gateway.counting` keeps
it off the event loop.
"""
