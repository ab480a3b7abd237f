"""A replica that is met like any other and then answers generating requests as a test's script says."""

from typing import Any

from fakes.engine import Conversation, Script
from fakes.tgi import WordTgi


class TalkingTgi(WordTgi):
    """Describes itself and leaves every generating route to `talk`; what it counts is left unverified."""

    def __init__(self, talk: Script, **info: Any) -> None:
        super().__init__(**info)
        self.talk = talk
        self.counts = False

    async def _answer(self, conversation: Conversation) -> None:
        asked = conversation.asked
        if asked.method == "POST" and (asked.path == "/" or asked.path.startswith(("/generate", "/v1/"))):
            await self.talk(conversation)
        else:
            await super()._answer(conversation)
