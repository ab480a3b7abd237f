"""A model of one TGI replica in virtual time: permits, queue, KV blocks, prefill chunks, steps.

The problem: a gateway must be tested, and its policies compared, against an engine whose inner state is known exactly.
Everything here is a pure function of what went in and of `now`; nothing waits and nothing draws. A caller on a virtual
clock runs hours in seconds; `llmshed.emulator` performs the same scheduler in real time behind TGI's HTTP.

Symbols, for a step that works through P prompt tokens and D decoding sequences:

    seconds(step) = step_seconds + P x seconds_per_prefill_token + D x seconds_per_decoding_sequence
    blocks(entry) = ceil((input + min(output ceiling, 1024) - 1) / block)      held from its first step to its end
    sum of blocks(running) <= floor(kv_tokens / block) - 1                     block 0 is the engine's own

The rules follow the published source of text-generation-inference (router/src/validation.rs, router/src/infer/mod.rs,
backends/v3/src/queue.rs and backend.rs). Not modelled: the prefix cache, speculation, several shards, images.
"""
