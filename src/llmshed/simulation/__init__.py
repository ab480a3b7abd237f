"""Models of one engine replica in virtual time: permits, queue, KV blocks, prefill chunks, steps.

The problem: a gateway must be tested, and its policies compared, against an engine whose inner state is known exactly.
Everything here is a pure function of what went in and of `now`; nothing waits and nothing draws. A caller on a virtual
clock runs hours in seconds; `llmshed.emulator` performs the same scheduler in real time behind TGI's HTTP.

`model.ReplicaModel` is what each engine's model offers; `scheduler.Scheduler` is TGI's, `vllm` follows vLLM. The time
of a step is in `cost`. For TGI, with prompts in blocks of the KV cache:

    blocks(entry) = ceil((input + min(output ceiling, 1024) + speculate - 1) / block)    from its first step to its end
    blocks in use, those of prefixes that are shared or kept counted once <= floor(kv_tokens / block) - 1

One block is the engine's own. A step works through the uncached part of prompts, at most max_batch_prefill_tokens less
one for each decoding sequence; a run of steps that only decode is one value (`stretch`), so that it costs the same
however long it is.

The rules follow the published source of text-generation-inference (router/src/validation.rs, router/src/infer/mod.rs,
backends/v3/src/queue.rs, backend.rs, block_allocator.rs and radix.rs). Not modelled: images; several shards are one
replica with the step times of all.
"""
