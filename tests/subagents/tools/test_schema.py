"""Schemas come out of signatures; what they promise is what is accepted."""

from __future__ import annotations

from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.tools.desk import Desk
from subagents.tools.output import ToolError, ToolOutput
from subagents.tools.roles import EXPLORE
from subagents.tools.schema import Tool, tool

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("made", EXPLORE, ids=lambda t: t.name)
def test_each_schema_is_closed_described_and_without_limits_that_strict_schemas_lack(made: Tool) -> None:
    schema = made.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert all(p["description"] for p in schema["properties"].values())
    assert 40 < len(made.description) < 500
    assert made.param(strict=True)["strict"] is True


@pytest.mark.parametrize("made", EXPLORE, ids=lambda t: t.name)
@given(data=st.data())
def test_whatever_the_schema_accepts_is_accepted_and_nothing_raises_but_tool_errors(made: Tool, data: Any) -> None:
    given_: dict[str, Any] = data.draw(
        st.dictionaries(st.sampled_from([*(p.name for p in made.parameters), "other"]), VALUES, max_size=4)
    )
    valid = jsonschema.Draft202012Validator(made.schema()).is_valid(given_)
    try:
        made.arguments(given_)
    except ToolError as error:
        assert error.code == "invalid_argument"
        assert not valid
        assert made.name in error.way_out


def test_a_tool_must_describe_its_arguments() -> None:
    def undescribed(desk: Desk, path: str) -> ToolOutput:
        """Does something."""
        raise NotImplementedError

    with pytest.raises(TypeError, match="path"):
        tool(undescribed)


def test_optional_arguments_choices_and_lists() -> None:
    @tool
    def sample(
        desk: Desk, a: str, b: Literal["x", "y"] = "x", c: list[str] | None = None, d: int | None = None
    ) -> ToolOutput:
        """A sample.

        Args:
            a: First,
                on two lines.
            b: Second.
            c: Third.
            d: Fourth.
        """
        raise NotImplementedError

    assert sample.schema() == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "First, on two lines."},
            "b": {"type": "string", "enum": ["x", "y"], "description": "Second."},
            "c": {"type": "array", "items": {"type": "string"}, "description": "Third."},
            "d": {"type": "integer", "description": "Fourth."},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert sample.arguments({"a": "q", "c": "one", "d": "12", "b": None}) == {"a": "q", "c": ["one"], "d": 12}
    with pytest.raises(ToolError, match="'b'"):
        sample.arguments({"a": "q", "b": "z"})
    with pytest.raises(ToolError, match="longer"):
        sample.arguments({"a": "q" * 5_000})
