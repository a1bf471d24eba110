"""The part of OpenAI's chat API that is understood here. Unknown fields are accepted and ignored, as its clients expect."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from api.schemas import INTEGRAL
from rag.types import Role

ANSWERS = "footnote"
CHAT = "footnote-chat"


class Lenient(BaseModel):
    """A body of OpenAI's: fields we do not know pass."""

    model_config = ConfigDict(extra="ignore", strict=True)


class TextPart(Lenient):
    """A part of a message's content; parts that are not text are left out."""

    type: str
    text: str | None = None


class ChatMessage(Lenient):
    """One message. Instructions (`system`, `developer`) and tool results are not used by the model that cites."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """The text of the content, its parts one a line."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content or [] if part.text)


class StreamOptions(Lenient):
    """`include_usage` asks for a last chunk with the tokens."""

    include_usage: bool | None = None


class ChatIn(Lenient):
    """A chat completion's request."""

    model: str = Field(description=f"`{ANSWERS}` answers from the papers with footnotes; `{CHAT}` is the LLM without retrieval.")
    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int | None, INTEGRAL, WithJsonSchema({"anyOf": [{"const": 1}, {"type": "null"}]})] = None
    max_tokens: Annotated[int, Field(ge=1), INTEGRAL] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1), INTEGRAL] | None = None


class UrlCitation(BaseModel):
    """Where a footnote stands in the message (code points, end exclusive) and what it stands for."""

    start_index: int
    end_index: int
    title: str
    url: str
    paper_id: str
    quote: str


class AnnotationOut(BaseModel):
    """OpenAI's form of a footnote, with our `paper_id` and `quote` added."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class ChatMessageOut(BaseModel):
    """The answer."""

    role: Role
    content: str
    refusal: None
    annotations: list[AnnotationOut]


class ChatChoice(BaseModel):
    """There is always one."""

    index: int
    message: ChatMessageOut
    finish_reason: Literal["stop", "length"]
    logprobs: None


class ChatUsage(BaseModel):
    """Tokens counted by the LLM's server; zero without one."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatOut(BaseModel):
    """A chat completion; `id` is `chatcmpl-` and the answer's id."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage


class ModelOut(BaseModel):
    """A model that can be asked."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsOut(BaseModel):
    """All of them."""

    object: Literal["list"]
    data: list[ModelOut]


class OpenAIErrorBody(BaseModel):
    """OpenAI's error."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIErrorOut(BaseModel):
    """OpenAI's error object."""

    error: OpenAIErrorBody
