"""What an exact count costs beside the tokenizer alone, and what the segment cache saves on a long conversation."""

from measure import cpu_microseconds, show
from tokenizers import Tokenizer

from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.prompts import ChatPrompt

SENTENCE = "The queue grew faster than it drained, so the gateway refused the newest bulk jobs and told a wait. "


def conversation(turns: int, last: str) -> ChatPrompt:
    """Return a conversation of that many earlier turns, all alike, and one last question."""
    messages = [
        {"role": role, "content": f"{number}: {SENTENCE * 24}"}
        for number in range(turns)
        for role in ("user", "assistant")
    ]
    return ChatPrompt([*messages, {"role": "user", "content": last}])


def main() -> None:
    """Print the figures."""
    files = embedded()
    plain = build_counter(files, "tgi")
    cached = build_counter(files, "tgi", cache_bytes=64 * 1024 * 1024)
    tokenizer = Tokenizer.from_str(files.tokenizer_json)
    long = conversation(20, "Why?")
    text = "\n".join(message["content"] for message in long.messages)
    numbers = iter(range(10**9))
    cached.count(long)
    figures = cpu_microseconds(
        {
            "encode_batch_fast alone": lambda: tokenizer.encode_batch_fast([text]),
            "exact count, no cache": lambda: plain.count(long),
            "exact count, cache, one new turn": lambda: cached.count(conversation(20, f"Why {next(numbers)}?")),
        },
        repeats=5,
    )
    show(f"counting a conversation of {plain.count(long).tokens:,} tokens (CPU)", figures, "encode_batch_fast alone")


if __name__ == "__main__":
    main()
