"""GET /v1/models: the catalogue, or the little that a compatible server tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from tests.fake_api.catalog import model_info
from tests.fake_api.errors import Refused, invalid

if TYPE_CHECKING:
    from tests.fake_api.service import Settings


def list_models(settings: Settings, query: str) -> dict[str, Any]:
    """A page of models, newest first."""
    asked = parse_qs(query)
    wanted = asked.get("lifecycle[]") or asked.get("lifecycle") or ["active", "deprecated"]
    limit = int(asked.get("limit", ["20"])[0])
    if not 1 <= limit <= 1000:
        raise invalid("limit: Input should be between 1 and 1000")
    specs = sorted(settings.specs.values(), key=lambda spec: spec.released, reverse=True)
    infos = [one_model(settings, spec.id) for spec in specs if spec.lifecycle in wanted]
    if "after_id" in asked:
        ids = [info["id"] for info in infos]
        after = asked["after_id"][0]
        if after not in ids:
            raise invalid(f"after_id: no such model: {after}")
        infos = infos[ids.index(after) + 1 :]
    page = infos[:limit]
    return {
        "data": page,
        "has_more": len(infos) > limit,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
    }


def one_model(settings: Settings, name: str) -> dict[str, Any]:
    """One model's details."""
    spec = settings.specs.get(name)
    persona = settings.persona
    if spec is None:
        raise Refused(404, f"model: {name}")
    if persona.model_details:
        return model_info(spec)
    info: dict[str, Any] = {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
    if persona.shows_n_ctx:
        info["meta"] = {"n_ctx": persona.n_ctx, "n_ctx_train": persona.n_ctx, "n_params": 268_098_176}
    return info
