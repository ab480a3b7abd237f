"""Makes a tiny model and serves it by llama.cpp's own server.

`llama_run.py FOLDER PORT SLOTS CONTEXT_TOKENS WIDTH LAYERS`: a wider model with more layers takes longer for a step.

It runs in an environment that holds llama.cpp (xllamacpp) and little else. The model is a Llama of random weights whose
tokenizer was trained on the texts of this repository, so nothing is downloaded; FOLDER gets it in llama.cpp's form and
the tokenizer in that of `tokenizers`. It serves until SIGTERM.
"""

import importlib
import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

VOCABULARY_SIZE, HEAD_SIZE, MODEL_CONTEXT_TOKENS = 2048, 64, 8192
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
TEXTS = Path(__file__).resolve().parents[2] / "docs"


def make_tokenizer(folder: Path) -> dict[str, Any]:
    """Train a byte-level BPE, write it, and return its model."""
    tokenizers = importlib.import_module("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=list(SPECIAL),
        show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train([str(text) for text in sorted(TEXTS.glob("*.md"))], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": SPECIAL[1], "eos_token": SPECIAL[2]}
    (folder / "tokenizer_config.json").write_text(json.dumps({**told, "chat_template": TEMPLATE}))
    model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    return model


def make_model(folder: Path, width: int, layers: int) -> Path:
    """Write the model file, with a tokenizer of its own; the width is a whole multiple of `HEAD_SIZE`."""
    numpy, gguf = importlib.import_module("numpy"), importlib.import_module("gguf")
    tokenizer = make_tokenizer(folder)
    words = sorted(tokenizer["vocab"], key=tokenizer["vocab"].get)
    random = numpy.random.default_rng(7)

    def weights(*shape: int) -> Any:
        return (random.standard_normal(shape) * 0.05).astype(numpy.float16)

    file = folder / "tiny.gguf"
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_context_length(MODEL_CONTEXT_TOKENS)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(3 * width)
    writer.add_head_count(width // HEAD_SIZE)
    writer.add_head_count_kv(width // HEAD_SIZE)
    writer.add_rope_dimension_count(HEAD_SIZE)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in SPECIAL else 1 for word in words])
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tokenizer["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(value=False)
    writer.add_chat_template(TEMPLATE)
    writer.add_tensor("token_embd.weight", weights(len(words), width))
    writer.add_tensor("output_norm.weight", numpy.ones(width, numpy.float32))
    square, wide = (width, width), (3 * width, width)
    shapes = {"attn_q": square, "attn_k": square, "attn_v": square, "attn_output": square, "ffn_gate": wide}
    shapes |= {"ffn_up": wide, "ffn_down": (width, 3 * width)}
    for layer in range(layers):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", numpy.ones(width, numpy.float32))
        for name, shape in shapes.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", weights(*shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def serve(model: Path, port: int, slots: int, context_tokens: int) -> Any:
    """Start the server; one thread, since several of them wait for each other by spinning."""
    llama = importlib.import_module("xllamacpp")
    parameters = llama.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {"tiny"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_parallel = slots
    parameters.n_ctx = slots * context_tokens
    parameters.cont_batching = True
    parameters.endpoint_metrics = True
    parameters.endpoint_props = True
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.n_threads_http = 40
    return llama.Server(parameters)


if __name__ == "__main__":
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    folder = Path(sys.argv[1])
    port, slots, context_tokens, width, layers = map(int, sys.argv[2:])
    server = serve(make_model(folder, width, layers), port, slots, context_tokens)
    stop.wait()
