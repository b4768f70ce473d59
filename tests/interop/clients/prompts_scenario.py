"""The prompts that every Python client requests from Dittybag; prints what it received as JSON.

The plan has `asked`, prompts that are requested by a client with a form for the user, each with the user's
answer, and `unasked`, prompts that are requested by a client without forms.
"""

from __future__ import annotations

from typing import Any

from interop_scenario import Json, to_json


class FormFiller:
    """The user's answers to forms, in the types of the SDK, and the forms that the user saw."""

    def __init__(self, types: Any) -> None:
        self._types = types
        self.answer: Json = {}
        self.forms: list[Json] = []

    async def fill_in(self, context: Any, params: Any) -> Any:
        self.forms.append(to_json(params))
        return self._types.ElicitResult(**self.answer)


async def request_prompts(client: Any, requests: list[Any], error: type[Exception], user: FormFiller) -> Json:
    """Request prompts; `client` is a connected client or session of the SDK."""
    outcomes = []
    for name, arguments, answer in requests:
        user.answer = answer
        try:
            result = to_json(await client.get_prompt(name, arguments))
            outcomes.append([[item["role"], item["content"]["text"]] for item in result["messages"]])
        except error as refused:
            details = refused.error  # type: ignore[attr-defined]
            outcomes.append([details.code, details.message])
    return {"outcomes": outcomes, "forms": user.forms}
