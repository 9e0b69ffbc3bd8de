"""The wire: one client of the SDK, made from typed configuration, used through four methods.

The SDK's own retries are off: a retry that only one subagent knows of would defeat the shared brake. The SDK is
imported here, when a client is made, because importing it takes a second or two.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

import orjson

from manifests.errors import UsageError
from subagents.claude.config import ClaudeSettings, ModelFacts, facts_from, newest_model
from subagents.claude.events import events_of
from subagents.claude.messages import Request
from subagents.claude.replies import StreamReader, read_stream
from subagents.claude.sdk import import_sdk
from subagents.claude.stops import Trouble, trouble_of

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


class Endpoint:
    """Whatever speaks the Messages API. Every failure leaves here as Trouble. `close` may be called twice."""

    def __init__(self, settings: ClaudeSettings, client: AsyncAnthropic) -> None:
        self._settings = settings
        self._client: Any = client
        self._counts = True
        self._facts: dict[str, ModelFacts] = {}

    @property
    def address(self) -> str:
        return str(self._client.base_url)

    async def facts(self, model: str) -> ModelFacts:
        """Window, output limit and capabilities. Asked once; a server without a models route is no error.

        Raises UsageError when nobody knows the window, Trouble when the endpoint refuses the key or cannot be reached.
        """
        if model not in self._facts:
            info = await self._model_info(model)
            self._facts[model] = facts_from(info, self._settings, model)
        return self._facts[model]

    async def _model_info(self, model: str) -> Mapping[str, object] | None:
        models = getattr(self._client, "models", None)  # the clouds' clients have none
        if models is None:
            return None
        try:
            info = await models.retrieve(model)
        except Exception as error:
            trouble = trouble_of(error)
            if trouble.kind in ("usage", "bad_request", "broken") or trouble.status in (404, 405, 501):
                if self._settings.window_tokens is None and trouble.status == 404:
                    if self._is_anthropic():
                        raise trouble from error
                    return await self._listed(models, model)
                return None
            raise trouble from error
        if not hasattr(info, "to_dict"):
            if self._settings.window_tokens is None and isinstance(info, str):
                raise Trouble(
                    "usage", f"{self.address} answers no JSON but {' '.join(info.split())[:60]!r}", status=200
                )
            return None
        body: Mapping[str, object] = info.to_dict(mode="json")
        return body

    async def _listed(self, models: Any, model: str) -> Mapping[str, object] | None:
        """What the list of models says of one that cannot be asked for by itself; None without such a list.

        Raises UsageError when there is a whole list, and the model is not on it.
        """
        try:
            page = await models.list(limit=1000)
        except Exception as error:
            trouble = trouble_of(error)
            if trouble.kind == "closed":
                raise trouble from error
            return None
        data = getattr(page, "data", None)
        listed = {str(one.id): one.to_dict(mode="json") for one in data or () if hasattr(one, "id")}
        if listed and model not in listed and not getattr(page, "has_more", False):
            near = get_close_matches(model, listed, n=12, cutoff=0.0)
            raise UsageError(
                f"the endpoint does not list a model {model!r}, so nobody knows how large its window is",
                hint=f"set claude.model or LEADLINE_MODEL to one it has: {', '.join(near)}; or, where it takes any "
                "name, claude.window_tokens (LEADLINE_WINDOW_TOKENS)",
            )
        return listed.get(model)

    def _is_anthropic(self) -> bool:
        return not self._settings.base_url

    async def send(
        self, request: Request, reader: StreamReader, on_event: Callable[[], None], on_begin: Callable[[], None]
    ) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Send one request and read its whole stream: the message, and the response's headers.

        `reader` belongs to the caller, who finds in it what a stream that broke had reported so far. `on_begin` is
        called when the reply has begun, which is when the prefix it wrote can be read from the cache.
        """
        try:
            response, events = await self._begin(request)
            try:
                content_type = response.headers.get("content-type", "")
                if "eventstream" not in content_type.replace("-", ""):  # Bedrock's is `vnd.amazon.eventstream`
                    raise Trouble(
                        "usage",
                        f"{self.address} answers {content_type or 'something untyped'!r}, not a stream of events",
                        status=response.status_code,
                    )
                on_begin()
                message = await read_stream(events, on_event, reader)
            finally:
                await response.aclose()
        except Trouble:
            raise
        except Exception as error:
            raise trouble_of(error) from error
        return message, response.headers

    async def _begin(self, request: Request) -> tuple[Any, AsyncIterator[Mapping[str, Any]]]:
        """The response, begun, and its events.

        The API's own address takes the bytes as they are: the SDK's typed method would copy every block of the history
        first, and build an object for each event, which costs several times what all else in a step does. Clouds have
        bodies and streams of their own, which the typed methods know.
        """
        if self._settings.provider != "anthropic":
            stream = await self._typed(request)
            return stream.response, _plain(stream)
        import httpx2
        from anthropic import AsyncStream

        response = await self._client.post(
            "/v1/messages",
            cast_to=httpx2.Response,
            content=orjson.dumps({**request.body, "stream": True}),
            options={"headers": {"anthropic-beta": ",".join(request.betas)}} if request.betas else {},
            stream=True,
            stream_cls=AsyncStream[Any],
        )
        return response, events_of(response.aiter_bytes())

    async def _typed(self, request: Request) -> Any:
        if request.betas:
            return await self._client.beta.messages.create(stream=True, betas=list(request.betas), **request.body)
        return await self._client.messages.create(stream=True, **request.body)

    async def count(self, request: Request) -> int | None:
        """Input tokens of a request by the endpoint's own count (after its context edits), or None if it cannot."""
        if not self._counts:
            return None
        wanted = (
            "model",
            "messages",
            "system",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
            "context_management",
        )
        body = {name: request.body[name] for name in wanted if name in request.body}
        try:
            if request.betas:
                counted = await self._client.beta.messages.count_tokens(betas=list(request.betas), **body)
            else:
                counted = await self._client.messages.count_tokens(**body)
        except Exception as error:
            trouble = trouble_of(error)
            if trouble.kind == "usage" or trouble.status in (404, 405, 501):
                self._counts = False
            if trouble.kind == "closed":
                raise trouble from error
            return None
        tokens = getattr(counted, "input_tokens", None)
        return tokens if isinstance(tokens, int) and tokens > 0 else None

    async def close(self) -> None:
        await self._client.close()


async def _plain(stream: AsyncIterator[Any]) -> AsyncIterator[Mapping[str, Any]]:
    """The SDK's typed events as JSON, only what was sent; what it could not type came as JSON."""
    async for event in stream:
        yield event if isinstance(event, Mapping) else event.to_dict(mode="json")


def make_endpoint(settings: ClaudeSettings) -> Endpoint:
    """A client for the configured provider. Raises UsageError for a provider whose extra is not installed."""
    import_sdk()
    import anthropic
    import httpx2

    common: dict[str, Any] = {
        "max_retries": 0,
        "timeout": httpx2.Timeout(settings.timeout_s, connect=min(10.0, settings.timeout_s)),
    }
    if settings.base_url:
        common["base_url"] = settings.base_url
    try:
        for package in _PACKAGES.get(settings.provider, ()):
            import_module(package)  # the SDK asks for it only when a request is built
        match settings.provider:
            case "anthropic":
                client: Any = _with_credentials(anthropic.AsyncAnthropic(**_credentials(settings), **common), settings)
            case "bedrock":
                client = anthropic.AsyncAnthropicBedrock(**_given(aws_region=settings.region), **common)
            case "vertex":
                client = anthropic.AsyncAnthropicVertex(
                    **_given(region=settings.region, project_id=settings.project), **common
                )
            case "foundry":
                client = anthropic.AsyncAnthropicFoundry(
                    **_given(resource=settings.resource, api_key=settings.api_key), **common
                )
    except ImportError as error:
        raise UsageError(
            f"provider {settings.provider!r} needs packages that are not installed: {error}",
            hint=f"pip install 'anthropic[{settings.provider}]'",
        ) from error
    except (ValueError, anthropic.AnthropicError) as error:
        raise UsageError(
            f"provider {settings.provider!r} cannot be used as configured: {error}",
            hint="see the [claude] table of the configuration: region, project, resource, base_url, credentials",
        ) from error
    return Endpoint(settings, client)


_PACKAGES: Mapping[str, tuple[str, ...]] = {"bedrock": ("boto3", "botocore"), "vertex": ("google.auth",)}
"""What the SDK's clients need beyond itself. Source: its extras of the same names."""

NO_KEY = "no-key-configured"
"""Sent to a server of one's own when no key is configured: most need none, and the others say so with a 401."""


def _with_credentials(client: Any, settings: ClaudeSettings) -> Any:
    """The client, if it has anything to authenticate with. Without, the SDK fails only when a request is built."""
    if client.api_key or client.auth_token or client.credentials:
        return client
    if settings.base_url:
        return client.with_options(api_key=NO_KEY)
    raise UsageError(
        "no credentials for the Anthropic API are configured",
        hint="set ANTHROPIC_API_KEY, or use --engine static, which needs none",
    )


def _credentials(settings: ClaudeSettings) -> dict[str, Any]:
    return _given(api_key=settings.api_key) or _given(auth_token=settings.auth_token)


def _given(**values: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def known_models() -> tuple[str, ...]:
    """The SDK's own list of model names."""
    from anthropic.types import Model

    return tuple(name for part in get_args(Model) for name in get_args(part))


def model_of(settings: ClaudeSettings, *, role: str = "investigate") -> str:
    """Model of a role (`investigate`, `coordinate`, `verify`): configured, or the newest of the line."""
    configured = {"coordinate": settings.coordinator_model, "verify": settings.verify_model}.get(role, "")
    return configured or settings.model or newest_model(known_models(), settings.model_line)
