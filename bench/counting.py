"""What an exact count costs beside the tokenizer alone, and what the segment cache saves on a long conversation."""

from measure import cpu_microseconds, show
from tokenizers import Tokenizer

from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.files import TokenizerFiles
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.prompts import ChatPrompt

SENTENCE = "The queue grew faster than it drained, so the gateway refused the newest bulk jobs and told a wait. "


ALONE = "encode_batch_fast alone"
NO_CACHE = "exact count, no cache"
ONE_NEW_TURN = "exact count, cache, one new turn"


def conversation(turns: int, last: str, sentences: int = 24) -> ChatPrompt:
    """Return a conversation of that many earlier turns, all alike and each of some sentences, and one last question."""
    messages = [
        {"role": role, "content": f"{number}: {SENTENCE * sentences}"}
        for number in range(turns)
        for role in ("user", "assistant")
    ]
    return ChatPrompt([*messages, {"role": "user", "content": last}])


def figures(files: TokenizerFiles, sentences: int = 24) -> tuple[int, dict[str, float]]:
    """Return the tokens of a conversation of twenty turns, and the CPU microseconds of each way to count it."""
    plain = build_counter(files, "tgi")
    cached = build_counter(files, "tgi", cache_bytes=64 * 1024 * 1024)
    tokenizer = Tokenizer.from_str(files.tokenizer_json)
    long = conversation(20, "Why?", sentences)
    text = "\n".join(message["content"] for message in long.messages)
    numbers = iter(range(10**9))
    cached.count(long)
    return plain.count(long).tokens, cpu_microseconds(
        {
            ALONE: lambda: tokenizer.encode_batch_fast([text]),
            NO_CACHE: lambda: plain.count(long),
            ONE_NEW_TURN: lambda: cached.count(conversation(20, f"Why {next(numbers)}?", sentences)),
        },
        repeats=5,
    )


def main() -> None:
    """Print the figures."""
    tokens, microseconds = figures(embedded())
    show(f"counting a conversation of {tokens:,} tokens (CPU)", microseconds, ALONE)


if __name__ == "__main__":
    main()
