"""Random conversations for property tests: thinking, parallel calls, errors, blank texts, large and small results."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from subagents.claude.messages import AssistantTurn, Block, Pair, Signed, Text, ToolResult, ToolUse, UserTurn

PROSE = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60)


@dataclass(frozen=True)
class Step:
    """What one step says and gets, without ids: those follow from its place."""

    thinking: str | None
    redacted: bool
    text: str
    calls: tuple[tuple[str, str, int, bool, bool], ...]
    """(tool, argument, length of the result, is an error, is kept)"""
    notice: str


@st.composite
def steps(draw: st.DrawFn) -> Step:
    calls = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["read_file", "search_text", "note", "record_finding"]),
                PROSE,
                st.sampled_from([0, 3, 200, 1_500, 9_000]),
                st.booleans(),
                st.booleans(),
            ),
            max_size=4,
        )
    )
    return Step(
        thinking=draw(st.none() | PROSE),
        redacted=draw(st.booleans()),
        text=draw(PROSE),
        calls=tuple(calls),
        notice=draw(st.sampled_from(["", " ", "Go on."])),
    )


def assistant_of(number: int, step: Step) -> AssistantTurn:
    blocks: list[Block] = []
    if step.thinking is not None:
        blocks.append(Signed(raw={"type": "thinking", "thinking": step.thinking, "signature": f"sig{number}"}))
        if step.redacted:
            blocks.append(Signed(raw={"type": "redacted_thinking", "data": f"secret{number}"}))
    if step.text:
        blocks.append(Text(text=step.text))
    for index, (tool, argument, *_) in enumerate(step.calls):
        blocks.append(ToolUse(id=f"toolu_{number}_{index}", name=tool, input={"text": argument}))
    return AssistantTurn(blocks=tuple(blocks), stop_reason="tool_use" if step.calls else "end_turn")


def results_of(number: int, step: Step) -> tuple[ToolResult, ...]:
    results = []
    for index, (tool, argument, length, is_error, keep) in enumerate(step.calls):
        text = "".join(f"{i}: line of {tool}\n" for i in range(length // 10))[:length]
        results.append(
            ToolResult(
                tool_use_id=f"toolu_{number}_{index}",
                tool=tool,
                text=text,
                digest=f"{tool} gave {length} bytes" if not is_error else "",
                is_error=is_error,
                evidence=f"sha256:{number:064x}",
                keep=keep,
                log=f"{tool} {argument}",
            )
        )
    return tuple(results)


def pairs_of(sequence: list[Step]) -> tuple[Pair, ...]:
    return tuple(
        Pair(
            number=n,
            assistant=assistant_of(n, step),
            user=UserTurn(results=results_of(n, step), notices=(step.notice,), state=f"<state>{n}</state>"),
        )
        for n, step in enumerate(sequence)
    )
