"""From a model's shape, a GPU and its efficiency to the parameters of a simulated replica.

The problem: nobody can measure every model on every GPU, yet a simulated replica is worth no more than its step times.
They follow from public numbers: how many weights and KV bytes a step must read, how many operations it must do, and how
much of a GPU's bandwidth and arithmetic engines reach.

Symbols: N parameters, E = vocabulary x hidden the parameters of one embedding table, L layers, H attention heads,
G KV heads, h head size, w bytes of a weight, k bytes of a KV value; on each of T GPUs (tensor parallel): M bytes of
memory, B bytes a second, F operations a second, C bytes a second over the link. u_F and u_B are the shares of F and B
that are reached.

    body                = N - E x (1 if the output layer shares the input table, else 2)
    per prefill token   = 2 x body / (T F u_F)            the output layer runs for last tokens only
    per decoding seq.   = 2 x (body + E) / (T F u_F)
    weights             = (body + E) x w / (T B u_B)      the input table is looked up, not read
    per attention pair  = 4 x L x H x h / (T F u_F)       scores and weighted sum, 2 operations a multiplication
    KV bytes of a token = 2 x L x max(G / T, 1) x h x k   on each GPU; keys and values; heads are not cut
    per resident token  = KV bytes of a token / (B u_B)
    per linked token    = 2 L x 2 (T - 1) / T x hidden x 2 / C      fp16 activations, two ring all-reduces a layer
    fixed part          = step + 2 L x link latency (T > 1)
    KV tokens           = (M x share - N w / T - reserve) / KV bytes of a token

Sources: Pope et al., Efficiently Scaling Transformer Inference (arXiv 2211.05102), for operations and bytes of a pass;
Kwon et al., PagedAttention (arXiv 2309.06180), for the memory that is left for KV; Thakur et al., Optimization of
Collective Communication Operations in MPICH (2005), for the ring. N, L, H, G and h come from a model's `config.json`,
M, B, F and C from a data sheet, the shares from measurements that each replica file names.
"""
