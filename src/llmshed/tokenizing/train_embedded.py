"""Trains the embedded tokenizer on the repository's own text: `python -m llmshed.tokenizing.train_embedded`.

Nothing is downloaded, and the same text gives the same file, so that what the package carries can be made again by
anyone. It is a byte-level BPE like those of current models, small enough to ship, and its ChatML template is the
plainest that has turns: real enough to count with, never meant for a real model.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

VOCABULARY = 4096
"""Size of the vocabulary, special tokens and the 256 bytes included."""

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' -}}"
    "{%- if message.content is string -%}{{- message.content -}}"
    "{%- else -%}{%- for part in message.content if part.type == 'text' -%}{{- part.text -}}{%- endfor -%}{%- endif -%}"
    "{{- '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)

_TEXTS = ("*.md", "docs/**/*.md", "src/**/*.py", "commands/*.py", "man/*.[1-8]", "profiles/**/*.toml", "tests/**/*.py")


def train(texts: Iterable[str], vocabulary: int = VOCABULARY) -> str:
    """Return tokenizer.json for a byte-level BPE trained on texts, the same for the same texts in the same order."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        show_progress=False,
        special_tokens=[AddedToken(token, normalized=False, special=True) for token in SPECIAL_TOKENS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer.to_str()


def config() -> dict[str, object]:
    """Return tokenizer_config.json."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 32768,
        "chat_template": CHAT_TEMPLATE,
    }


def own_texts(root: Path) -> Iterator[str]:
    """Yield the repository's own texts in the order of their names."""
    for path in sorted({path for pattern in _TEXTS for path in root.glob(pattern)}):
        yield path.read_text(encoding="utf-8")


def main() -> None:
    """Train on the repository that this file stands in, and write the files that the package carries."""
    here = Path(__file__).resolve().parent
    root = here.parents[2]
    if not (root / "pyproject.toml").is_file():
        sys.exit(f"{root} is not the repository: run this from a clone, not from an installed package")
    target = here / "embedded"
    target.mkdir(exist_ok=True)
    (target / "tokenizer.json").write_text(train(own_texts(root)) + "\n", encoding="utf-8")
    (target / "tokenizer_config.json").write_bytes(orjson.dumps(config(), option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
