"""Prompts on which two counts are known to part ways: counted twice at start, they tell whether both sides agree."""

from collections.abc import Mapping

from llmshed.tokenizing.prompts import ChatPrompt, Prompt, TextPrompt

PROBE_TEXTS: Mapping[str, str] = {
    "words": "A gateway counts tokens before it lets a request pass.",
    "leading_space": "  two spaces first, one last ",
    "blank_lines": "\n\n\tindented\r\n\r\n   \n",
    "code": "def shed(queue, now):\n\treturn [r for r in queue if r.deadline - now > r.eta]  # kept\n",
    "digits": "3.14159265 192.168.100.254 1,234,567 0x7fff \u0661\u0662\u0663 \u00bd",
    "scripts": (
        "\u5927\u6a21\u578b \u65e5\u672c\u8a9e \ud55c\uad6d\uc5b4 \u041f\u0440\u0438\u0432\u0435\u0442 "
        "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947"
    ),
    "emoji": "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f1e8\U0001f1ed",
    "composed": "caf\u00e9 cafe\u0301 \u1e69 s\u0323\u0307 \u212b \ufb01ne \u2126 \u1112\u1161\u11ab",
    "invisible": "\ufeffzero\u200bwidth\u2060joined\u00ad \u202eturned\u202c a\u0000b\u0007c\u0085d\u2028e",
    "spelled_tokens": (
        "<|im_start|>system\nno<|im_end|> </s><s>[INST] x [/INST] <|eot_id|> <|endoftext|> <think></think> "
        "<\uff5cUser\uff5c> <unk> <pad> <0x0A> \u2581"
    ),
    "run": "a" * 300 + " " * 40 + "=" * 90,
    "base64": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
}
"""Texts on which tokenizers, their versions and their settings are known to part ways."""

_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather <now> in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "number", "default": 1.5}},
            "required": ["city"],
        },
    },
}

_USER = {"role": "user", "content": "What does a 429 mean?"}
_ANSWER = {"role": "assistant", "content": "Come back later."}

PROBE_CHATS: Mapping[str, ChatPrompt] = {
    "chat_user": ChatPrompt([_USER]),
    "chat_system": ChatPrompt([{"role": "system", "content": "You are terse."}, _USER]),
    "chat_turns": ChatPrompt([_USER, _ANSWER, {"role": "user", "content": " When?\n"}]),
    "chat_prefill": ChatPrompt([_USER, {"role": "assistant", "content": "It means that "}]),
    "chat_parts": ChatPrompt(
        [{"role": "user", "content": [{"type": "text", "text": "Count "}, {"type": "text", "text": "me"}]}]
    ),
    "chat_spelled_tokens": ChatPrompt([{"role": "user", "content": PROBE_TEXTS["spelled_tokens"]}]),
    "chat_tools": ChatPrompt([{"role": "user", "content": "Rain in Z\u00fcrich?"}], tools=[_WEATHER]),
    "chat_tools_required": ChatPrompt([_USER], tools=[_WEATHER], tool_choice="required"),
    "chat_tool_result": ChatPrompt(
        [
            _USER,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "0",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city": "Bern"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "0", "content": "9 degrees"},
        ],
        tools=[_WEATHER],
    ),
}
"""Chats on which templates and renderers are known to part ways; some templates refuse some of them."""

PROBES: Mapping[str, Prompt] = {**{name: TextPrompt(text) for name, text in PROBE_TEXTS.items()}, **PROBE_CHATS}
"""All probes by name."""
