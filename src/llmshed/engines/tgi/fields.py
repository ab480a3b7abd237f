"""The fields of Text Generation Inference's routes, and what becomes of each.

TGI itself ignores every field that it does not know, so a gateway that guessed would promise what nobody keeps. Dropped
is what cannot change the answer that TGI gives: bookkeeping of clients, hints, and parameters that its route has no use
for. Refused is what asks for another prompt, another length or another address. `docs/engines.md` repeats these tables.
"""

from typing import Final

from llmshed.engines.base import Route
from llmshed.engines.fields import FieldTable, Kind, counted, dropped, forwarded, refused

_OTHER_ADDRESS: Final = "replicas are chosen by the gateway's configuration"
_OTHER_TEMPLATE: Final = "the model's own chat template is used"
_OTHER_PROMPT: Final = "TGI has no such input"
_OTHER_TOKENS: Final = "TGI adds special tokens by itself"
_OTHER_LENGTH: Final = "TGI would ignore it, and the answer would be of another length"
_OTHER_SAMPLING: Final = "TGI's OpenAI routes would ignore it; /generate takes it in `parameters`"
_OTHER_ANSWER: Final = "TGI would ignore it"
_CUT: Final = "it cuts the prompt silently; send a shorter one"
_ADAPTER: Final = "adapters belong to the operator's pools; name a `model`"
_PRIORITY: Final = "the priority class comes from the key"
_BOOKKEEPING: Final = "bookkeeping of OpenAI's platform"

_NOBODY_TAKES: Final[FieldTable] = {
    "api_base": refused(_OTHER_ADDRESS),
    "api_key": refused("a key belongs in the Authorization header"),
    "base_url": refused(_OTHER_ADDRESS),
    "callback_url": refused(_OTHER_ADDRESS),
    "webhook": refused(_OTHER_ADDRESS),
    "prompt_embeds": refused(_OTHER_PROMPT),
    "truncate_prompt_tokens": refused(_CUT),
    "add_special_tokens": refused(_OTHER_TOKENS),
    "priority": refused(_PRIORITY),
    "adapter_id": refused(_ADAPTER),
    "lora_id": refused(_ADAPTER),
    "lora_path": refused(_ADAPTER),
    "lora_request": refused(_ADAPTER),
}
_OFFERED: Final[FieldTable] = {
    "llmshed": dropped("the gateway's own: says which parts may be left out when it degrades", Kind.OBJECT)
}
_OPENAI_EXTRAS: Final[FieldTable] = {
    **_OFFERED,
    "metadata": dropped("`metadata.llmshed_intent` declares the intent", Kind.OBJECT),
    "service_tier": dropped("`flex` declares bulk", Kind.TEXT),
    "prompt_cache_key": dropped("names the session, which keeps a conversation on its replica", Kind.HINT),
    "prompt_cache_options": dropped(_BOOKKEEPING),
    "prompt_cache_retention": dropped(_BOOKKEEPING),
    "safety_identifier": dropped(_BOOKKEEPING),
    "user": dropped(_BOOKKEEPING),
    "store": dropped("nothing is stored"),
    "logit_bias": dropped("TGI reads it and does not use it"),
    "max_new_tokens": refused("the output ceiling of this route is `max_tokens`"),
    "truncate": refused(_CUT),
    "min_tokens": refused(_OTHER_LENGTH),
    "ignore_eos": refused(_OTHER_LENGTH),
    "stop_token_ids": refused(_OTHER_LENGTH),
    "include_stop_str_in_output": refused(_OTHER_ANSWER),
    "skip_special_tokens": refused(_OTHER_ANSWER),
    "use_beam_search": refused(_OTHER_SAMPLING),
    "top_k": refused(_OTHER_SAMPLING),
    "min_p": refused(_OTHER_SAMPLING),
    "typical_p": refused(_OTHER_SAMPLING),
    "do_sample": refused(_OTHER_SAMPLING),
    "guided_json": refused("TGI takes `response_format`"),
    "guided_regex": refused("TGI takes `response_format`"),
    "guided_choice": refused("TGI takes `response_format`"),
    "guided_grammar": refused("TGI takes `response_format`"),
    **_NOBODY_TAKES,
}
_OPENAI_COMMON: Final[FieldTable] = {
    "model": counted(Kind.TEXT, "names the pool"),
    "max_tokens": counted(Kind.COUNT, "output ceiling; the one in force is written here"),
    "n": counted(Kind.COPIES, "sequences of each prompt, all reserved"),
    "stream": counted(Kind.BOOLEAN, "whether the answer is a stream"),
    "stop": forwarded(Kind.TEXTS, "a string is sent as a list of one"),
    "temperature": forwarded(Kind.NUMBER),
    "top_p": forwarded(Kind.NUMBER),
    "seed": forwarded(Kind.SEED),
    "frequency_penalty": forwarded(Kind.NUMBER),
}

STREAM_OPTIONS: Final[FieldTable] = {
    "include_usage": forwarded(Kind.BOOLEAN, "the usage chunk settles the reservation"),
    "include_obfuscation": dropped("TGI sends none"),
    "continuous_usage_stats": dropped("TGI sends none"),
}
CHAT_FIELDS: Final[FieldTable] = {
    "messages": counted(Kind.OBJECTS, "rendered by the model's chat template"),
    "tools": counted(Kind.OBJECTS, "part of the prompt"),
    "tool_choice": counted(Kind.CHOICE, "decides which tools are part of the prompt"),
    "tool_prompt": counted(Kind.TEXT, "part of the prompt"),
    **_OPENAI_COMMON,
    "max_completion_tokens": counted(Kind.COUNT, "output ceiling, as `max_tokens`, under which it is sent"),
    "stream_options": forwarded(Kind.OBJECT),
    "presence_penalty": forwarded(Kind.NUMBER),
    "logprobs": forwarded(Kind.BOOLEAN),
    "top_logprobs": forwarded(Kind.INTEGER),
    "response_format": forwarded(Kind.OBJECT, "adds no tokens to the prompt"),
    **_OPENAI_EXTRAS,
    "parallel_tool_calls": dropped("TGI decides by itself"),
    "repetition_penalty": dropped("text-generation sends it; this route of TGI does not use it"),
    "reasoning_effort": dropped(_OTHER_ANSWER),
    "verbosity": dropped(_OTHER_ANSWER),
    "modalities": dropped("the answer is text"),
    "moderation": dropped(_BOOKKEEPING),
    "prediction": dropped("a hint that TGI has no use for"),
    "audio": refused("TGI answers in text"),
    "web_search_options": refused("TGI searches nothing"),
    "functions": refused("TGI takes `tools`"),
    "function_call": refused("TGI takes `tool_choice`"),
    "chat_template": refused(_OTHER_TEMPLATE),
    "chat_template_kwargs": refused("TGI passes no arguments to the chat template"),
    "add_generation_prompt": refused("TGI always adds it"),
    "continue_final_message": refused("TGI continues a last message of the assistant by itself"),
    "documents": refused(_OTHER_PROMPT),
    "best_of": refused("this route takes `n`"),
    "echo": refused(_OTHER_ANSWER),
    "suffix": refused(_OTHER_PROMPT),
}
COMPLETION_FIELDS: Final[FieldTable] = {
    "prompt": counted(Kind.ANY, "a string or a list of strings, each a sequence of its own"),
    **_OPENAI_COMMON,
    "best_of": counted(Kind.COPIES, "sequences of each prompt, when it exceeds `n`"),
    "repetition_penalty": forwarded(Kind.NUMBER),
    **_OPENAI_EXTRAS,
    "stream_options": dropped("TGI always ends a stream of this route with the usage", Kind.OBJECT),
    "logprobs": dropped("this route of TGI does not use it"),
    "presence_penalty": dropped("this route of TGI does not use it"),
    "suffix": refused("TGI writes only after the prompt"),
    "echo": refused("this route of TGI does not repeat the prompt"),
    "max_completion_tokens": refused("the output ceiling of this route is `max_tokens`"),
    "response_format": refused("this route of TGI does not use it"),
}
PARAMETER_FIELDS: Final[FieldTable] = {
    "max_new_tokens": counted(Kind.COUNT, "output ceiling; the one in force is written here"),
    "best_of": counted(Kind.COPIES, "sequences of the prompt, all reserved; not with a stream"),
    "truncate": counted(Kind.COUNT, "refused unless the pool has `allow_truncate`: it cuts the prompt silently"),
    "do_sample": forwarded(Kind.BOOLEAN, "written as true when `parameters` is absent, which is what TGI then assumes"),
    "temperature": forwarded(Kind.NUMBER),
    "top_k": forwarded(Kind.INTEGER),
    "top_p": forwarded(Kind.NUMBER),
    "typical_p": forwarded(Kind.NUMBER),
    "repetition_penalty": forwarded(Kind.NUMBER),
    "frequency_penalty": forwarded(Kind.NUMBER),
    "seed": forwarded(Kind.SEED),
    "stop": forwarded(Kind.TEXTS, "a string is sent as a list of one"),
    "watermark": forwarded(Kind.BOOLEAN),
    "return_full_text": forwarded(Kind.BOOLEAN),
    "details": forwarded(Kind.BOOLEAN, "the details settle the reservation"),
    "decoder_input_details": forwarded(Kind.BOOLEAN),
    "top_n_tokens": forwarded(Kind.INTEGER),
    "grammar": forwarded(Kind.OBJECT, "adds no tokens to the prompt"),
    **_NOBODY_TAKES,
    "max_tokens": refused("the output ceiling of this route is `max_new_tokens`"),
    "stop_sequences": refused("TGI takes `stop`"),
    "num_return_sequences": refused("TGI takes `best_of`"),
}
GENERATE_FIELDS: Final[FieldTable] = {
    "inputs": counted(Kind.TEXT, "the prompt, counted with special tokens"),
    "parameters": counted(Kind.OBJECT, "the table below"),
    "model": dropped("names the pool; these routes of TGI have no such field", Kind.TEXT),
    "stream": dropped("must agree with the route, which says whether the answer is a stream", Kind.BOOLEAN),
    "options": dropped("settings of Hugging Face's hosted service"),
    **_OFFERED,
    **_NOBODY_TAKES,
}
ROOT_FIELDS: Final[FieldTable] = {
    **GENERATE_FIELDS,
    "stream": counted(Kind.BOOLEAN, "whether the answer is a stream"),
}
TOKENIZE_FIELDS: Final[FieldTable] = {
    **GENERATE_FIELDS,
    "parameters": dropped("they change no count", Kind.OBJECT),
}

MESSAGE_FIELDS: Final[FieldTable] = {
    "role": counted(Kind.TEXT, "part of the prompt"),
    "content": counted(Kind.ANY, "a string, or a list of parts"),
    "tool_calls": counted(Kind.OBJECTS, "part of the prompt when there is no content"),
    "name": forwarded(Kind.TEXT, "TGI leaves it out of the prompt"),
    "tool_call_id": dropped("TGI leaves it out of the prompt"),
    # What clients add to a message of the assistant and send back with it.
    "id": dropped(_BOOKKEEPING),
    "annotations": dropped(_BOOKKEEPING),
    "audio": dropped(_BOOKKEEPING),
    "cache_control": dropped("a hint of other services"),
    "function_call": dropped("TGI leaves it out of the prompt"),
    "provider_specific_fields": dropped("a client's own note"),
    "reasoning": dropped("TGI leaves it out of the prompt"),
    "reasoning_content": dropped("TGI leaves it out of the prompt"),
    "refusal": dropped("TGI leaves it out of the prompt"),
    "thinking_blocks": dropped("TGI leaves it out of the prompt"),
}
TEXT_PART_FIELDS: Final[FieldTable] = {
    "type": counted(Kind.TEXT, "`text`"),
    "text": counted(Kind.TEXT, "part of the prompt"),
    "annotations": dropped(_BOOKKEEPING),
    "cache_control": dropped("a hint of other services"),
}
IMAGE_PART_FIELDS: Final[FieldTable] = {
    "type": counted(Kind.TEXT, "`image_url`"),
    "image_url": counted(Kind.OBJECT, "one image; never counted as text"),
    "cache_control": dropped("a hint of other services"),
}
IMAGE_URL_FIELDS: Final[FieldTable] = {
    "url": counted(Kind.TEXT, "http://, https:// or data:; the gateway never fetches it"),
    "detail": dropped("TGI does not use it"),
}

ROUTE_FIELDS: Final[dict[Route, FieldTable]] = {
    Route.ROOT: ROOT_FIELDS,
    Route.GENERATE: GENERATE_FIELDS,
    Route.GENERATE_STREAM: GENERATE_FIELDS,
    Route.CHAT: CHAT_FIELDS,
    Route.COMPLETIONS: COMPLETION_FIELDS,
    Route.TOKENIZE: TOKENIZE_FIELDS,
    Route.CHAT_TOKENIZE: CHAT_FIELDS,
}
