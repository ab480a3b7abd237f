"""A model of one vLLM replica in virtual time: its V1 scheduler, which admits what fits now and preempts later.

The problem: TGI holds KV for a whole answer before it starts, vLLM only for what is computed. So vLLM runs more
sequences at once, and under pressure takes KV from some of them and computes them anew. What that costs, and when it
feeds on itself, can only be seen with the rules themselves.

Symbols: B tokens a block; C(s) tokens of sequence s in the KV cache; K(s) = input + output tokens known of it, one
more than C(s) while it decodes.

    blocks(s)    = ceil((C(s) + tokens of the step) / B)           taken when a step begins, as the sequence grows
    usable       = floor(kv_tokens / B) - 1                        one block is the engine's own
    joins(s)     : ceil(K(s) / B) - found + idle + watermark <= free      found: blocks of its prefix in the cache,
                                                                          idle: those of them that nobody holds
    preempts     : while a running sequence lacks a block, the last that joined (fcfs) or the largest
                   (priority, arrival) gives back all of its blocks and waits in front with C = 0

The rules follow the published source of vLLM (v1/core/sched/scheduler.py, v1/core/kv_cache_manager.py,
v1/core/block_pool.py, v1/engine/async_llm.py), as of versions 0.24 to 0.33. Not modelled: scheduling one step ahead of
the results (a sequence that stops by itself is freed one step earlier here), speculation, KV connectors, hybrid
caches, adapters, several engines behind one server, `prefill_schedule_interval`.
"""
