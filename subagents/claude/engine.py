"""The `claude` engine: plans and answers, and one subagent for each task, all on one client, one brake and one warmed
prefix."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from manifests.errors import UsageError
from manifests.tasks import Task
from scratch.findings import Finding
from subagents.claude import answering, loop, planning, server_side
from subagents.claude.agent import Agent
from subagents.claude.assemble import FixedPart
from subagents.claude.brake import Brake, BrakePolicy
from subagents.claude.brief import repository_brief
from subagents.claude.budget import TaskLimits, check_fixed_part, input_budget
from subagents.claude.client import Endpoint, make_endpoint, model_of
from subagents.claude.config import ClaudeSettings, ModelFacts
from subagents.claude.context import ContextKeeper, ContextPolicy
from subagents.claude.contradictions import contradictions
from subagents.claude.history import Edits, History
from subagents.claude.ledger import Entry, EntryKind
from subagents.claude.planning import CheckTasks
from subagents.claude.report import setting_of
from subagents.claude.state_block import finding_line, key_first
from subagents.claude.stops import Trouble, as_error
from subagents.claude.store import EngineStore
from subagents.claude.structured import Asker, Reading
from subagents.claude.tokens import TokenMeter, raw_tokens, text_tokens
from subagents.claude.transcript import Transcript
from subagents.claude.warm import Warmth
from subagents.engine import Answer, Coverage, Outcome, PhaseSummary, Plan, TaskContext, Workspace
from subagents.prompts import as_data, render, template
from subagents.tools.desk import Desk
from subagents.tools.roles import tools_for
from subagents.tools.sources import change_log, text_search
from subagents.tools.toolbox import Toolbox

HINTS = 8
RECOVERED = 40
REASON_CHARS = 600
SUMMARY_CHARS = 24_000
LEAST_ANSWER_TOKENS = 6_000
ANSWER_TOKENS = 40_000
"""Of findings in the request for the answer; more would not be read with care."""


@dataclass(slots=True)
class ClaudeEngine:
    """Implements `Engine`. One for a session; `close` may be called twice.

    Nothing durable is kept here: transcripts, evidence and findings go through `store` and the recorder.
    """

    settings: ClaudeSettings
    store: EngineStore
    endpoint: Endpoint | None = None
    brake: Brake | None = None
    on_entry: Callable[[Entry], None] = lambda _: None
    session_limit: Callable[[], str] = lambda: ""
    answer_room: Callable[[], int | None] = lambda: None
    """Tokens that limits of the session leave for the answer; None without a limit."""
    check_tasks: CheckTasks = lambda _: ()
    agents_left: Callable[[], int] = lambda: planning.MOST_TASKS
    """How many more subagents the session allows."""
    meters: dict[str, TokenMeter] = field(default_factory=dict)
    warmth: Warmth = field(default_factory=Warmth)
    diagnosed: dict[str, list[str]] = field(default_factory=dict)
    """What was noticed about the cache, by task."""
    earlier: str = ""
    """Questions asked before in this session and how they were answered; empty for a first question."""
    _briefs: dict[str, str] = field(default_factory=dict)
    _declined: str = ""
    """Why the model planned nothing though nothing was known: a question of taste, say, that no code answers."""

    @property
    def name(self) -> str:
        return "claude"

    @property
    def metered(self) -> bool:
        return True

    async def close(self) -> None:
        if self.endpoint is not None:
            await self.endpoint.close()
            self.endpoint = None

    # --- the coordinator's requests ---

    async def plan(self, workspace: Workspace, phase: int, summaries: Sequence[PhaseSummary]) -> Plan | None:
        """The tasks of a phase, or None when enough is known. Nothing is asked when one subagent is all it takes."""
        known = any(s.findings for s in summaries)
        if phase > self.settings.max_phases or (phase > 1 and _brought_nothing(summaries)):
            return None
        hits = workspace.finder.find(workspace.question, limit=planning.HITS)
        wanted = self.settings.fan_out or planning.most_tasks(workspace, phase=phase, hits=hits)
        most = max(1, min(wanted, self.agents_left()))
        title = "explore" if phase == 1 else "deepen"
        if most == 1 and not known:
            return Plan(title=title, tasks=planning.plan_by_code(workspace, phase=phase, most=1, hits=hits))

        def read(body: Mapping[str, Any]) -> Reading[planning.Proposal]:
            return planning.read_plan(body, workspace, most=most, phase=phase, known=known, check=self.check_tasks)

        disagreeing = contradictions(answering.usable([f for s in summaries for f in s.findings]))
        seen = [[s.phase, [f.id for f in s.findings], list(s.open_questions)] for s in summaries]
        asker = await self._asker("plan", workspace, planning.PLAN_SCHEMA, key=[phase, most, seen])
        opening = planning.plan_opening(workspace, phase, summaries, most=most, hits=hits)
        reading = await asker.ask(self.store.redact(opening), read)
        if reading.value is not None and not reading.reasons and reading.value.tasks:
            return Plan(title=title, tasks=reading.value.tasks)
        if phase > 1:
            settling = planning.settling_task(workspace, disagreeing, phase=phase)
            return Plan(title="settle", tasks=(settling,)) if settling is not None else None
        if reading.value is not None and not reading.reasons:
            self._declined = " ".join(reading.value.reason.split())[:REASON_CHARS]
            return None
        return Plan(title=title, tasks=planning.plan_by_code(workspace, phase=phase, most=most, hits=hits))

    async def refute(self, workspace: Workspace, findings: Sequence[Finding], phase: int) -> Plan | None:
        """Tasks that try to refute these findings, several claims each, or None when there is nothing to refute."""
        tasks = planning.refutation_tasks(workspace, findings, phase=phase)
        return Plan(title="verify", tasks=tasks) if tasks else None

    def refuted(self, findings: Sequence[Finding]) -> Mapping[str, str]:
        """Ids of findings that these verdicts refute, and why. Only verdicts that cite checked lines count."""
        verdicts = [answering.verdict_of(f) for f in findings if f.status == "verified"]
        return {v.finding: v.reason for v in verdicts if v is not None and not v.upheld}

    def prefix_tokens(self, workspace: Workspace) -> int:
        """About how many tokens all subagents share: tools, role and brief."""
        tools = [tool.param(strict=True) for tool in tools_for("investigate", has_history=True)]
        return raw_tokens(tools) + raw_tokens([template("investigate"), self._brief(workspace)])

    async def answer(self, workspace: Workspace, findings: Sequence[Finding], coverage: Coverage) -> Answer:
        """From findings alone. With nothing found, or past a limit of the session, code writes it."""
        if not answering.usable(findings):
            draft = answering.Draft(found=False, statements=(), dropped=0)
            why = [f"Nothing was explored, for this reason: {self._declined}"] if self._declined else []
            return answering.rendered(draft, findings, coverage, remarks=why)
        left = self.answer_room()
        if left is not None and left < LEAST_ANSWER_TOKENS:
            draft = answering.draft_by_code(findings)
            remark = "A limit of the session leaves no room for an answer in words: these are the findings as recorded."
            return answering.rendered(draft, findings, coverage, remarks=[remark], link=workspace.link)

        def read(body: Mapping[str, Any]) -> Reading[answering.Draft]:
            return answering.read_answer(body, findings)

        asker = await self._asker(
            "answer", workspace, answering.ANSWER_SCHEMA, key=[f"{f.id} {f.status}" for f in findings]
        )
        facts = await self.facts(asker.fixed.model)
        room = min(input_budget(facts.window_tokens, facts.reply_tokens, 0, self.settings.margin) // 2, ANSWER_TOKENS)
        if left is not None:  # it may be returned once, and then both requests and replies have to fit
            room = min(room, left // 6)
            reply = max(left // 6, self.settings.thinking_budget_tokens + 1_000)
            asker.fixed = replace(asker.fixed, max_tokens=min(facts.reply_tokens, reply))
        opening = answering.answer_opening(workspace, findings, coverage, earlier=self.earlier, most_tokens=room)
        reading = await asker.ask(self.store.redact(opening), read)
        if reading.value is None or (reading.reasons and not reading.value.statements):
            remark = "The model's answer could not be used: these are the findings as they were recorded."
            return answering.rendered(
                answering.draft_by_code(findings), findings, coverage, remarks=[remark], link=workspace.link
            )
        return answering.rendered(reading.value, findings, coverage, link=workspace.link)

    async def _asker(self, kind: EntryKind, workspace: Workspace, schema: Mapping[str, Any], *, key: object) -> Asker:
        """A conversation of the coordinator, named by what it is about, so that it is found again after a crash."""
        model = model_of(self.settings, role="coordinate")
        facts = await self.facts(model)
        about = orjson.dumps([kind, workspace.snapshot.id.tree, workspace.question, self.earlier, key])
        name = f"{kind}-{hashlib.sha256(about).hexdigest()[:12]}"
        fixed = FixedPart(
            model=model,
            max_tokens=facts.reply_tokens,
            role_prompt=template(kind),
            brief=self.store.redact(self._brief(workspace)) if kind == "plan" else "",
            extra=request_extras(self.settings, facts),
            cache=False,
        )
        transcript = Transcript(
            log=self.store.log(name),
            evidence=self.store.evidence,
            history=History(opening="", binds=self.settings.binds_thinking is not False),
        ).load(self.store.records(name))
        return Asker(
            name=name,
            kind=kind,
            fixed=fixed,
            schema=schema,
            sender=self._endpoint(),
            brake=self._brake(),
            meter=self.meters.setdefault(model, TokenMeter()),
            transcript=transcript,
            on_entry=self.on_entry,
            mode="format" if facts.structured_outputs else "tool",
            window_tokens=facts.window_tokens,
        )

    # --- one task ---

    async def investigate(self, context: TaskContext) -> Outcome:
        """Carry out one task, from wherever its transcript stands. Findings are recorded on the way."""
        agent = await self.agent(context)
        try:
            if agent.transcript.ended == "finished":
                return agent.on_record("finished")
            return await loop.run(agent)
        finally:
            agent.abandon()
            if agent.diagnosed:
                self.diagnosed[context.task.id] = agent.diagnosed

    async def agent(self, context: TaskContext) -> Agent:
        """The parts of one subagent, its transcript loaded or begun.

        Raises UsageError for a window that is unknown or too small, EngineError when the endpoint refuses the key.
        """
        task = context.task
        model = str(task.settings.get("model") or model_of(self.settings, role=task.role))
        facts = await self.facts(model, context.heartbeat)
        fixed = self.fixed_part(context, facts)
        policy = self.policy(task, facts)
        meter = self.meters.setdefault(model, TokenMeter())
        transcript = Transcript(
            log=self.store.log(task.id),
            evidence=self.store.evidence,
            history=History(opening="", binds=self.settings.binds_thinking is not False),
        ).load(self.store.records(task.id))
        transcript.settle()
        toolbox = self._toolbox(context, policy.budget_tokens)
        agent = Agent(
            task=task,
            phase=context.phase,
            fixed=fixed,
            sender=self._endpoint(),
            brake=self._brake(),
            warmth=self.warmth,
            meter=meter,
            keeper=ContextKeeper(policy, keep_text=self._keep_text(context, toolbox.desk)),
            toolbox=toolbox,
            transcript=transcript,
            limits=limits_of(task, self.settings.limits),
            heartbeat=context.heartbeat,
            goal=self.store.redact(task.question),
            constraints=_constraints(task),
            on_entry=self.on_entry,
            session_limit=self.session_limit,
            server_edits=self._server_edits(facts, policy) if policy.server_side else None,
            ask_diagnostics=self.settings.diagnostics,
        )
        self._begin_or_resume(agent, context, facts.window_tokens)
        fixed_raw = raw_tokens(list(fixed.tools)) + raw_tokens([fixed.role_prompt, fixed.brief])
        check_fixed_part(meter.calibrated(fixed_raw + text_tokens(agent.history.opening)), policy.budget_tokens)
        return agent

    def _begin_or_resume(self, agent: Agent, context: TaskContext, window_tokens: int) -> None:
        transcript, fixed_hash = agent.transcript, hash_of(agent.fixed)
        if transcript.is_new or (transcript.ended not in ("", "finished") and not transcript.at_limit):
            opening = self.opening(agent, context)
            transcript.begin(
                opening,
                model=agent.fixed.model,
                fixed_hash=fixed_hash,
                edits=Edits(),
                setting=setting_of(agent.fixed, window_tokens=window_tokens, budget_tokens=agent.budget_tokens),
            )
            agent.restore_costs()
            return
        agent.restore()
        if transcript.fixed_hash != fixed_hash or transcript.model != agent.fixed.model:
            # signed thinking was made after another prefix or by another model, and may not come back after this one
            edits = transcript.history.edits.advanced(thinking=transcript.history.next_number)
            state = agent.keeper.opening_state(agent.state())
            transcript.edit(edits, state)

    def opening(self, agent: Agent, context: TaskContext) -> str:
        """Text of the first user turn. Repository text and other subagents' findings are framed as data."""
        task = context.task
        summary = context.summary.markdown[:SUMMARY_CHARS] if context.summary else ""
        recovered = [finding_line(f) for f in key_first(context.recorder.findings())][:RECOVERED]
        whole = context.workspace.question
        text = render(
            "task",
            question=" ".join(task.question.split()) if "\n" not in task.question else task.question,
            whole=f"It is part of this question: {whole}" if whole and whole != task.question else "",
            scope=f"Scope: {', '.join(task.scope)}" if task.scope else "",
            deliverable=f"Deliverable: {task.deliverable}" if task.deliverable else "",
            limits=f"You have {agent.limits.max_turns} turns.",
            hints=as_data("ranked_hits", self._hints(context)),
            summary=as_data("phase_summary", summary),
            recovered=as_data("recovered_findings", "\n".join(recovered)),
            state=agent.keeper.opening_state(agent.state()),
        )
        return self.store.redact(text)

    def _hints(self, context: TaskContext) -> str:
        lines = []
        for hit in context.workspace.finder.find(context.task.question, limit=HINTS):
            names = ", ".join(f"{s.symbol.qualified}:{s.symbol.start}" for s in hit.symbols[:3])
            lines.append(f"{hit.path}{f' ({names})' if names else ''}")
        return "\n".join(lines)

    # --- the fixed part ---

    def fixed_part(self, context: TaskContext, facts: ModelFacts) -> FixedPart:
        """Tools, role prompt, brief and settings: the same for all tasks of a role in one session."""
        settings = self.settings
        role = "verify" if context.task.role == "verify" else "investigate"
        strict = facts.structured_outputs if settings.strict_tools is None else settings.strict_tools
        tools = tools_for(role, has_history=change_log(context.workspace.snapshot) is not None)
        params = sorted((tool.param(strict=strict) for tool in tools), key=lambda param: str(param["name"]))
        return FixedPart(
            model=facts.model,
            max_tokens=facts.reply_tokens,
            tools=params,
            role_prompt=template(role),
            brief=self.store.redact(self._brief(context.workspace)),
            extra=request_extras(settings, facts),
            cache=settings.cache,
            ttl=settings.cache_ttl,
        )

    def _brief(self, workspace: Workspace) -> str:
        snapshot = workspace.snapshot.id
        if snapshot.tree not in self._briefs:
            name = f"{snapshot.commit or 'without a commit'}{' with changes' if snapshot.dirty else ''}"
            brief = as_data("repository_brief", repository_brief(workspace))
            self._briefs[snapshot.tree] = render("brief", snapshot=name, brief=brief)
        return self._briefs[snapshot.tree]

    def policy(self, task: Task, facts: ModelFacts) -> ContextPolicy:
        settings = self.settings
        thinking = settings.thinking_budget_tokens if settings.thinking == "enabled" else 0
        limits = limits_of(task, settings.limits)
        return ContextPolicy(
            prices=settings.prices_of(facts.model),
            budget_tokens=input_budget(facts.window_tokens, facts.reply_tokens, thinking, settings.margin),
            clearing=settings.clearing,
            server_side=server_side.wanted(settings, facts),
            steps_ahead=min(30.0, limits.max_turns / 2),
            max_steps=limits.max_turns,
        )

    def _server_edits(
        self, facts: ModelFacts, policy: ContextPolicy
    ) -> Callable[[int], tuple[dict[str, Any], tuple[str, ...]]]:
        def edits(keep_uses: int) -> tuple[dict[str, Any], tuple[str, ...]]:
            asked = server_side.edits_for(
                facts,
                budget_tokens=policy.budget_tokens,
                keep_uses=keep_uses,
                excluded_tools=("record_finding", "note"),
            )
            return {"context_management": asked.context_management}, asked.betas

        return edits

    def _toolbox(self, context: TaskContext, budget_tokens: int) -> Toolbox:
        workspace, task = context.workspace, context.task
        desk = Desk(
            workspace=workspace,
            recorder=context.recorder,
            scope=task.scope,
            search=text_search(workspace.snapshot),
            changes=change_log(workspace.snapshot),
            fetch_evidence=self.store.evidence,
            redact=self.store.redact,
            told=tuple(finding.id for finding in context.summary.findings) if context.summary else (),
        )
        role = "verify" if task.role == "verify" else "investigate"
        tools = tools_for(role, has_history=desk.changes is not None)
        return Toolbox(desk, tools, max_turn_chars=max(4_000, budget_tokens))

    def _keep_text(self, context: TaskContext, desk: Desk) -> Callable[[str], str]:
        def keep(text: str) -> str:
            data = self.store.redact(text).encode("utf-8", "surrogatepass")
            ref = context.recorder.evidence(data, tool="compaction", arguments={"task": context.task.id})
            desk.evidence_refs.append(ref)
            return ref

        return keep

    # --- shared ---

    async def facts(self, model: str, heartbeat: Callable[[], None] = lambda: None) -> ModelFacts:
        """What is known of a model. A brake that is closed holds this back too."""
        while True:
            try:
                async with self._brake().passing(heartbeat):
                    facts = await self._endpoint().facts(model)
                self._brake().succeeded()
                return facts
            except Trouble as trouble:
                if trouble.kind != "throttled":
                    raise as_error(trouble) from trouble
                self._brake().refused(trouble)

    def _endpoint(self) -> Endpoint:
        if self.endpoint is None:
            self.endpoint = make_endpoint(self.settings)
        return self.endpoint

    def _brake(self) -> Brake:
        if self.brake is None:
            self.brake = Brake(
                BrakePolicy(parallel=self.settings.parallel_requests, outage_limit_s=self.settings.outage_limit_s)
            )
        return self.brake


def request_extras(settings: ClaudeSettings, facts: ModelFacts) -> dict[str, Any]:
    """Thinking and effort, checked against what the model says it accepts. Raises UsageError."""
    extra: dict[str, Any] = {}
    if settings.thinking != "default":
        _check_accepted(facts, "thinking", settings.thinking, facts.thinking_types)
        extra["thinking"] = {"type": settings.thinking}
        if settings.thinking == "enabled":
            if settings.thinking_budget_tokens >= facts.reply_tokens:
                raise UsageError(
                    f"thinking_budget_tokens {settings.thinking_budget_tokens:,} is not below "
                    f"reply_tokens {facts.reply_tokens:,}",
                    hint="raise reply_tokens or lower the budget",
                )
            extra["thinking"]["budget_tokens"] = settings.thinking_budget_tokens
    if settings.effort:
        _check_accepted(facts, "effort", settings.effort, facts.effort_levels)
        extra["output_config"] = {"effort": settings.effort}
    return extra


def _check_accepted(facts: ModelFacts, name: str, value: str, accepted: frozenset[str] | None) -> None:
    if accepted is not None and value not in accepted:
        known = f"it accepts {', '.join(sorted(accepted))}" if accepted else f"it accepts none: leave claude.{name} out"
        raise UsageError(f"{facts.model!r} does not accept {name} = {value!r}", hint=known)


def limits_of(task: Task, limits: TaskLimits) -> TaskLimits:
    """A task's own limits, where its settings name them, over those of the configuration."""
    given: Mapping[str, object] = task.settings
    own = {
        name: value
        for name in ("max_turns", "max_minutes", "max_tokens", "max_cost")
        if isinstance(value := given.get(name), int | float) and not isinstance(value, bool) and value > 0
    }
    return replace(limits, **own)  # type: ignore[arg-type]


def _brought_nothing(summaries: Sequence[PhaseSummary]) -> bool:
    return not summaries or not (summaries[-1].findings or summaries[-1].open_questions)


def _constraints(task: Task) -> tuple[str, ...]:
    lines: Sequence[object] = ()
    given = task.settings.get("constraints")
    if isinstance(given, list | tuple):
        lines = given
    scope = (f"Stay inside {', '.join(task.scope)}",) if task.scope else ()
    return (*scope, *(str(line) for line in lines))


def hash_of(fixed: FixedPart) -> str:
    """Hash of everything that signed thinking is bound to before the first message."""
    data = orjson.dumps([fixed.model, list(fixed.tools), fixed.role_prompt, fixed.brief])
    return hashlib.sha256(data).hexdigest()[:16]
