"""Writes a tiny Llama of random weights in Hugging Face's form: `vllm_model.py FOLDER WIDTH LAYERS`.

It runs in the environment that holds vLLM; the tokenizer is trained as that of the model for llama.cpp is.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

HEAD_SIZE, MODEL_CONTEXT_TOKENS = 64, 8192


def make_model(folder: Path, width: int, layers: int) -> None:
    """Write tokenizer, configuration and weights; the width is a whole multiple of `HEAD_SIZE`."""
    numpy, safetensors = importlib.import_module("numpy"), importlib.import_module("safetensors.numpy")
    vocabulary_size = len(importlib.import_module("llama_run").make_tokenizer(folder)["vocab"])
    random = numpy.random.default_rng(7)

    def weights(*shape: int) -> Any:
        return (random.standard_normal(shape) * 0.05).astype(numpy.float32)

    ones = numpy.ones(width, numpy.float32)
    tensors = {"model.embed_tokens.weight": weights(vocabulary_size, width), "model.norm.weight": ones.copy()}
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{prefix}{name}.weight"] = ones.copy()
        for letter in "qkvo":
            tensors[f"{prefix}self_attn.{letter}_proj.weight"] = weights(width, width)
        for name, shape in (("gate", (3 * width, width)), ("up", (3 * width, width)), ("down", (width, 3 * width))):
            tensors[f"{prefix}mlp.{name}_proj.weight"] = weights(*shape)
    safetensors.save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    heads = width // HEAD_SIZE
    told = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": 3 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": HEAD_SIZE,
        "max_position_embeddings": MODEL_CONTEXT_TOKENS,
        "vocab_size": vocabulary_size,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(told))


if __name__ == "__main__":
    make_model(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
