"""Prompts, routing and settings: what staff write reaches the next run, and nothing else changes it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import Any, TypeVar
from uuid import UUID, uuid4

import jsonschema_rs
import pytest
from cryptography.fernet import Fernet
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from config import sql
from config.auth.bearer import create_api_token
from config.cache import CachedValue
from config.database import run_sync
from config.errors import InvalidRequest
from prompts import app_settings, seeds
from prompts.addresses import http_address
from prompts.endpoints import routing
from prompts.models import (
    AppSetting,
    Endpoint,
    ModelMapping,
    Prompt,
    PromptKind,
    PromptVersion,
    ProviderDialect,
    Secret,
)
from prompts.wordings import active, staff_actions
from tests.support.log_lines import lines_about
from tests.support.paths import SCHEMAS

pytestmark = pytest.mark.once

T = TypeVar("T")
ITEM = jsonschema_rs.Draft202012Validator(
    json.loads((SCHEMAS / "llm_models_item.schema.json").read_text())
)
KEY = "sk-proj-abcdefghijklmnop-0123"
NOBODY = UUID(int=0)
RUNS_USE = (PromptKind.AGENT_SYSTEM, PromptKind.AGENT_TOOLS)


@contextmanager
def undone() -> Iterator[None]:
    """A transaction that leaves nothing behind, for what reaches beyond the test's own rows."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def active_kept() -> Iterator[None]:
    """The prompts that runs use, put back afterwards."""
    before = list(
        Prompt.objects.filter(is_active=True, kind__in=RUNS_USE).select_related("active_version")
    )
    yield
    Prompt.objects.filter(kind__in=RUNS_USE).update(is_active=False)
    for prompt in before:
        assert prompt.active_version is not None
        staff_actions.activate_version(prompt.active_version, by=None)


def make_prompt(kind: PromptKind = PromptKind.SYSTEM) -> Prompt:
    return Prompt.objects.create(name=uuid4().hex, kind=kind)


def publish(prompt: Prompt, content: str, **more: Any) -> PromptVersion:
    return staff_actions.save_version(prompt, content, author=None, **more)


def make_user(**fields: Any) -> Any:
    return get_user_model().objects.create_user(username=uuid4().hex, **fields)


def make_endpoint(*, key: str = KEY, **fields: Any) -> Endpoint:
    facts = {"name": uuid4().hex, "provider": "acme", "base_url": "https://api.example.com/v1"}
    endpoint = Endpoint.objects.create(**facts | fields)
    if key:
        staff_actions.rotate_secret(endpoint, key)
    return endpoint


def make_mapping(*endpoints: Endpoint, is_active: bool = True) -> ModelMapping:
    mapping = ModelMapping.objects.create(key=f"m{uuid4().hex[:12]}", is_active=is_active)
    for position, endpoint in enumerate(endpoints, 1):
        mapping.candidates.create(endpoint=endpoint, model=f"model-{position}", position=position)
    return mapping


def race(work: Callable[[int], T], *, threads: int = 20) -> list[T]:
    """Call `work` in many threads at the same moment."""
    start = Barrier(threads)

    def one(number: int) -> T:
        start.wait(10)
        try:
            return work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, range(threads)))


# --- versions -----------------------------------------------------------------------------------


def test_publishing_numbers_versions_and_says_who_and_why() -> None:
    prompt, author = make_prompt(), make_user()
    first = staff_actions.save_version(prompt, "One.", author=author, note="Start.")
    second = publish(prompt, "Two.", tools_json=[{"name": "search"}])
    assert (first.number, first.content, first.note, first.author) == (1, "One.", "Start.", author)
    assert (second.number, second.tools_json, second.author) == (2, [{"name": "search"}], None)


def test_publishing_what_the_newest_says_returns_the_newest() -> None:
    prompt = make_prompt()
    publish(prompt, "One.")
    newest = publish(prompt, "Two.")
    assert publish(prompt, "Two.", note="Again.") == newest
    assert publish(prompt, "One.").number == 3
    assert publish(prompt, "One.", tools_json={}).number == 4


@pytest.mark.parametrize(
    ("content", "more"),
    [
        ("nul \x00", {}),
        ("half a pair \ud800", {}),
        ("x" * 200_001, {}),
        ("fine", {"note": "n" * 501}),
        ("fine", {"note": "\x00"}),
        ("fine", {"tools_json": {"nul": "\x00"}}),
        ("fine", {"tools_json": [float("nan")]}),
        ("fine", {"tools_json": ["x" * 200_001]}),
    ],
)
def test_what_cannot_be_stored_is_refused_and_publishes_nothing(
    content: str, more: dict[str, Any]
) -> None:
    prompt = make_prompt()
    with pytest.raises(InvalidRequest):
        publish(prompt, content, **more)
    assert not prompt.versions.exists()


def test_text_that_only_looks_like_nul_is_stored() -> None:
    prompt = make_prompt()
    assert publish(prompt, "write \\u0000", tools_json={"help": "\\u0000"}).tools_json == {
        "help": "\\u0000"
    }
    assert publish(prompt, "字" * 200_000).number == 2


def test_racing_publishers_leave_numbers_without_gap_or_double() -> None:
    prompt = make_prompt()
    made = race(lambda number: publish(prompt, f"Wording {number}.").number)
    assert sorted(made) == list(range(1, 21))
    assert sorted(prompt.versions.values_list("number", flat=True)) == list(range(1, 21))


def test_racing_publishers_of_one_wording_make_one_version() -> None:
    prompt = make_prompt()
    assert set(race(lambda _: publish(prompt, "The same.").number)) == {1}
    assert prompt.versions.count() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"content": "x"},
        {"number": 99},
        {"note": "x"},
        {"tools_json": []},
        {"created_at": "2001-01-01T00:00Z"},
    ],
)
def test_the_database_refuses_to_change_a_version(change: dict[str, Any]) -> None:
    version = publish(make_prompt(), "One.")
    with (
        pytest.raises(IntegrityError, match=r"version 1 of prompt \d+ never changes"),
        transaction.atomic(),
    ):
        PromptVersion.objects.filter(pk=version.pk).update(**change)
    version.refresh_from_db()
    assert (version.number, version.content, version.note) == (1, "One.", "")


def test_the_database_refuses_to_move_a_version_or_to_change_its_author() -> None:
    version = staff_actions.save_version(make_prompt(), "One.", author=make_user())
    for change in ({"prompt": make_prompt()}, {"author": make_user()}):
        with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
            PromptVersion.objects.filter(pk=version.pk).update(**change)


def test_a_version_outlives_its_author() -> None:
    author = make_user()
    version = staff_actions.save_version(make_prompt(), "One.", author=author)
    author.delete()
    version.refresh_from_db()
    assert (version.author, version.content) == (None, "One.")


# --- activation ---------------------------------------------------------------------------------


def test_activating_takes_the_place_of_the_other_prompt_of_that_kind() -> None:
    first, second = make_prompt(), make_prompt()
    staff_actions.activate_version(publish(first, "One."), by=None)
    newest = publish(second, "Two.")
    assert staff_actions.activate_version(newest, by=make_user()).active_version == newest
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.is_active, second.is_active) == (False, True)


def test_an_older_version_can_be_activated_again_and_a_prompt_taken_out_of_use() -> None:
    prompt = make_prompt()
    old = publish(prompt, "One.")
    staff_actions.activate_version(publish(prompt, "Two."), by=None)
    staff_actions.activate_version(old, by=None)
    prompt.refresh_from_db()
    assert (prompt.is_active, prompt.active_version) == (True, old)
    staff_actions.deactivate(prompt, by=None)
    assert not Prompt.objects.get(pk=prompt.pk).is_active


def test_racing_activations_leave_exactly_one_active() -> None:
    versions = [publish(make_prompt(), f"Wording {number}.") for number in range(20)]
    race(lambda number: staff_actions.activate_version(versions[number], by=None))
    active_now = Prompt.objects.get(kind=PromptKind.SYSTEM, is_active=True)
    assert active_now.active_version in versions


def test_activations_that_race_with_new_prompts_leave_exactly_one_active() -> None:
    def make_and_activate(number: int) -> None:
        with transaction.atomic():
            staff_actions.activate_version(publish(make_prompt(), f"Wording {number}."), by=None)

    race(make_and_activate)
    assert Prompt.objects.filter(kind=PromptKind.SYSTEM, is_active=True).count() == 1


def test_actions_are_logged_by_name_without_the_wording() -> None:
    prompt, user = make_prompt(), make_user()
    with lines_about("prompt") as lines:
        version = staff_actions.save_version(prompt, "A secret recipe.", author=user)
        staff_actions.activate_version(version, by=user)
        staff_actions.deactivate(prompt, by=user)
    assert [(line["event"], line["prompt"], line["by"]) for line in lines] == [
        (event, prompt.name, user.username)
        for event in ("prompt version saved", "prompt version activated", "prompt deactivated")
    ]
    assert "recipe" not in str(lines)


# --- what a run reads ---------------------------------------------------------------------------


def test_a_run_gets_the_active_system_and_tools_prompts_in_that_order(active_kept: None) -> None:
    tools, system = make_prompt(PromptKind.AGENT_TOOLS), make_prompt(PromptKind.AGENT_SYSTEM)
    tools_version, system_version = publish(tools, "Use tools."), publish(system, "Be kind.")
    for version in (tools_version, system_version):
        staff_actions.activate_version(version, by=None)
    found = run_sync(active.get_active_prompts())
    assert found.system == "Be kind.\n\nUse tools." == active.read_system_message()
    assert found.as_json() == [
        {
            "kind": prompt.kind,
            "prompt_id": prompt.pk,
            "name": prompt.name,
            "version_id": version.pk,
            "number": 1,
        }
        for prompt, version in ((system, system_version), (tools, tools_version))
    ]
    json.dumps(found.as_json())


def test_empty_and_inactive_prompts_add_nothing(active_kept: None) -> None:
    system, tools = make_prompt(PromptKind.AGENT_SYSTEM), make_prompt(PromptKind.AGENT_TOOLS)
    staff_actions.activate_version(publish(system, " \n"), by=None)
    staff_actions.activate_version(publish(tools, "Use tools."), by=None)
    assert run_sync(active.get_active_prompts()).system == "Use tools."
    staff_actions.deactivate(tools, by=None)
    found = run_sync(active.get_active_prompts())
    assert (found.system, len(found.versions)) == ("", 1)


def test_an_activation_takes_effect_at_once_in_its_process(active_kept: None) -> None:
    prompt = make_prompt(PromptKind.AGENT_SYSTEM)
    versions = [publish(prompt, "One."), publish(prompt, "Two.")]

    async def read_around_activations() -> list[str]:
        found = []
        for version in versions:
            await asyncio.to_thread(activate, version)
            found.append((await active.get_active_prompts()).system.partition("\n")[0])
        return found

    def activate(version: PromptVersion) -> None:
        staff_actions.activate_version(version, by=None)
        connection.close()

    assert run_sync(read_around_activations()) == ["One.", "Two."]


def test_a_remembered_value_is_read_once_shared_and_read_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("config.cache.monotonic", lambda: now[0])
    reads = []

    async def read() -> int:
        reads.append(1)
        await asyncio.sleep(0)
        return len(reads)

    async def story() -> list[int]:
        value = CachedValue(read, seconds=0.5)
        found = list(await asyncio.gather(*(value.get() for _ in range(50))))
        now[0] += 0.49
        found.append(await value.get())
        now[0] += 0.02
        found.append(await value.get())
        value.clear()
        return [*found, await value.get()]

    assert asyncio.run(story()) == [1] * 51 + [2, 3]


def test_what_is_in_use_is_read_ahead_and_what_is_not_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, reads = [1000.0], 0
    monkeypatch.setattr("config.cache.monotonic", lambda: now[0])

    async def read() -> int:
        nonlocal reads
        reads += 1
        return reads

    async def ask() -> None:
        value = CachedValue(read, seconds=0.5)
        await value.read_ahead()
        assert reads == 0, "nobody has asked for it yet"
        assert await value.get() == 1
        await value.read_ahead()
        assert reads == 1, "it is fresh"
        now[0] += 0.4
        await value.read_ahead()
        assert reads == 2
        now[0] += 0.4
        assert await value.get() == 2, "nobody had to wait"
        now[0] += 61
        await value.read_ahead()
        assert reads == 2, "nobody has asked for a minute"

    asyncio.run(ask())


def test_a_loop_reads_ahead_only_what_it_asked_for_itself() -> None:
    reads = []

    async def read() -> None:
        reads.append(asyncio.get_running_loop())

    async def ask(value: CachedValue[None]) -> asyncio.AbstractEventLoop:
        await value.get()
        return asyncio.get_running_loop()

    value = CachedValue(read, seconds=0)
    asked = asyncio.run(ask(value))
    asyncio.run(value.read_ahead())
    assert reads == [asked]


def test_who_asks_after_a_change_does_not_get_what_was_read_before_it() -> None:
    stored, reading, go_on = ["old"], asyncio.Event(), asyncio.Event()

    async def read() -> str:
        found = stored[0]
        reading.set()
        await go_on.wait()
        return found

    async def story() -> list[str]:
        value = CachedValue(read, seconds=60)
        early = asyncio.create_task(value.get())
        await reading.wait()
        stored[0] = "new"
        value.clear()
        late = asyncio.create_task(value.get())
        await asyncio.sleep(0)
        go_on.set()
        return [await early, await late, await value.get()]

    assert asyncio.run(story()) == ["old", "new", "new"]


def test_a_failed_read_is_not_remembered() -> None:
    reads = []

    async def read() -> int:
        reads.append(1)
        if len(reads) == 1:
            raise OSError("down")
        return 7

    async def story() -> int:
        value = CachedValue(read, seconds=60)
        with pytest.raises(OSError, match="down"):
            await value.get()
        return await value.get()

    assert asyncio.run(story()) == 7


# --- routing ------------------------------------------------------------------------------------


async def checked(model: str) -> str:
    """The name that `check_model` gives to an account without a tier."""
    return (await routing.check_model(model, user_id=NOBODY)).name


def refusal(model: str) -> tuple[str, int]:
    """The code and status with which both doors refuse a model."""
    seen = set()
    for door in (routing.route, checked):
        with pytest.raises(InvalidRequest) as error:
            run_sync(door(model))
        seen.add((error.value.error_code, error.value.status))
    assert len(seen) == 1
    return seen.pop()


def default_model() -> str:
    routing.clear_cache()
    app_settings.clear_cache()
    return run_sync(routing.get_default_model())


@contextmanager
def only_these_models() -> Iterator[None]:
    """Until the end only the demo and what is made meanwhile can be asked for."""
    before = list(ModelMapping.objects.values_list("pk", "is_active"))
    ModelMapping.objects.exclude(key="demo").update(is_active=False)
    try:
        yield
    finally:
        ModelMapping.objects.exclude(pk__in=[pk for pk, _ in before]).delete()
        active = [pk for pk, is_active in before if is_active]
        ModelMapping.objects.filter(pk__in=active).update(is_active=True)
        routing.clear_cache()


def test_a_model_is_routed_by_either_form_of_its_name_to_its_candidates_in_order() -> None:
    first = make_endpoint(provider="xai")
    second = make_endpoint(dialect=ProviderDialect.ANTHROPIC, key="sk-ant-0123456789")
    mapping = make_mapping(first, second)
    mapping.candidates.filter(position=2).update(position=0, temperature=0.25, max_tokens=900)
    routing.clear_cache()  # an update sends no signal
    route = run_sync(routing.route(mapping.key))
    assert route == run_sync(routing.route(f" {mapping.name} "))
    assert route == routing.ModelRoute(
        name=mapping.name,
        key=mapping.key,
        candidates=(
            routing.Candidate(
                endpoint_id=second.pk,
                provider="acme",
                dialect="anthropic.messages",
                base_url="https://api.example.com/v1",
                model="model-2",
                key="sk-ant-0123456789",
                temperature=0.25,
                max_tokens=900,
            ),
            routing.Candidate(
                endpoint_id=first.pk,
                provider="xai",
                dialect="openai.chat_completions",
                base_url="https://api.example.com/v1",
                model="model-1",
                key=KEY,
                temperature=None,
                max_tokens=None,
            ),
        ),
    )
    assert run_sync(checked(mapping.key)) == mapping.name
    assert KEY not in repr(route)


def test_the_offline_demo_needs_no_key() -> None:
    demo = make_endpoint(key="", dialect=ProviderDialect.DEMO, base_url="")
    route = run_sync(routing.route(make_mapping(demo).name))
    assert [(candidate.dialect, candidate.key) for candidate in route.candidates] == [("demo", "")]


def test_a_model_that_another_process_has_just_seen_is_routed() -> None:
    """A worker may claim a run within the half second for which it knows the models before."""

    made, name = make_mapping(make_endpoint()), f"m{uuid4().hex[:12]}"

    async def play() -> routing.ModelRoute:
        with pytest.raises(routing.ModelNotAllowed):
            await routing.route(name)
        rename = "UPDATE prompts_modelmapping SET key = %s WHERE id = %s"  # elsewhere: no signal is sent
        assert await sql.change(rename, (name, made.pk)) == 1
        return await routing.route(name)

    assert run_sync(play()).key == name


def test_a_local_server_that_asks_for_no_key_needs_none() -> None:
    local = make_endpoint(key="", needs_key=False, base_url="http://127.0.0.1:11434/v1")
    guarded = make_endpoint(needs_key=False)
    mapping = make_mapping(local, guarded)
    assert [candidate.key for candidate in run_sync(routing.route(mapping.name)).candidates] == ["", KEY]


def test_a_mapping_says_what_its_model_can_do() -> None:
    plain, seeing = make_mapping(make_endpoint()), make_mapping(make_endpoint())
    ModelMapping.objects.filter(pk=seeing.pk).update(supports_vision=True, supports_tools=False)
    routing.clear_cache()
    routes = [run_sync(routing.route(mapping.name)) for mapping in (plain, seeing)]
    assert [(route.supports_vision, route.supports_tools) for route in routes] == [
        (False, True),
        (True, False),
    ]
    listed = {item["name"]: item["capabilities"] for item in routing.list_models(NOBODY)}
    assert listed[seeing.name] == {
        "supports_tools": False,
        "supports_vision": True,
        "max_output_tokens": None,
    }
    assert not run_sync(routing.route("demo")).supports_tools  # its runner calls tools by itself
    assert listed["global:demo"]["supports_tools"]


def test_runs_that_name_no_model_get_the_first_that_is_real_and_for_everybody(
    settings_kept: None,
) -> None:
    with only_these_models():
        assert default_model() == "global:demo"
        for key, tier in (("zzz", ""), ("bbb", "pro"), ("mmm", "")):
            mapping = make_mapping(make_endpoint())
            ModelMapping.objects.filter(pk=mapping.pk).update(key=key, required_tier=tier)
        assert default_model() == "global:mmm"
        ModelMapping.objects.exclude(key="bbb").update(is_active=False)
        assert default_model() == "global:bbb"
        ModelMapping.objects.update(is_active=False)
        with pytest.raises(InvalidRequest) as error:
            default_model()
    assert error.value.error_code == "model_not_allowed"


def test_the_default_model_that_staff_chose_is_never_replaced_by_another(settings_kept: None) -> None:
    chosen = make_mapping(make_endpoint())
    app_settings.change("default_model", chosen.key, by=None)
    assert default_model() == chosen.name
    chosen.is_active = False
    chosen.save()
    with pytest.raises(InvalidRequest) as error:
        default_model()
    assert error.value.error_code == "model_not_allowed"


@pytest.mark.parametrize("model", ["", "  "])
def test_a_model_is_required(model: str) -> None:
    assert refusal(model) == ("model_required", 422)


@pytest.mark.parametrize(
    "model", ["nobody", "global:", "user:demo", "global:global:demo", "nul\x00", "x" * 9999]
)
def test_an_unknown_model_is_refused(model: str) -> None:
    assert refusal(model) == ("model_not_allowed", 422)


def test_a_refusal_says_where_the_names_are() -> None:
    with pytest.raises(InvalidRequest, match="GET /api/v1/llm/models"):
        run_sync(routing.route("nobody"))


def test_runs_and_the_list_of_models_agree_on_what_is_routable() -> None:
    unroutable = [
        make_mapping(make_endpoint(), is_active=False),
        make_mapping(),
        make_mapping(make_endpoint(is_active=False)),
        make_mapping(make_endpoint(key="")),
        make_mapping(make_endpoint(key="", dialect=ProviderDialect.DEMO, base_url="", is_active=False)),
    ]
    routable = [
        make_mapping(make_endpoint()),
        make_mapping(make_endpoint(key=""), make_endpoint(is_active=False), make_endpoint()),
        make_mapping(make_endpoint(key="", dialect=ProviderDialect.DEMO, base_url="")),
    ]
    listed = {item["name"]: item["candidates_count"] for item in routing.list_models(NOBODY)}
    for mapping in unroutable:
        assert refusal(mapping.name) == ("model_not_allowed", 422)
        assert mapping.name not in listed
    for mapping in routable:
        assert run_sync(checked(mapping.name)) == mapping.name
        assert len(run_sync(routing.route(mapping.name)).candidates) == listed[mapping.name] == 1


def test_a_candidate_whose_key_cannot_be_opened_is_skipped_and_logged() -> None:
    broken, sound = make_endpoint(), make_endpoint()
    assert broken.secret is not None
    lost = Fernet(Fernet.generate_key()).encrypt(b"lost").decode()
    Secret.objects.filter(pk=broken.secret.pk).update(sealed=lost)
    both, alone = make_mapping(broken, sound), make_mapping(broken)
    with lines_about("candidate") as lines:
        route = run_sync(routing.route(both.name))
        with pytest.raises(InvalidRequest) as error:
            run_sync(routing.route(alone.name))
    staff_actions.delete_endpoint(broken, by=None)
    assert [candidate.endpoint_id for candidate in route.candidates] == [sound.pk]
    assert error.value.error_code == "model_not_allowed"
    assert [(line["event"], line["log_level"]) for line in lines] == [("candidate skipped", "error")] * 2
    assert "SEALING_KEYS" in lines[0]["reason"]


def test_listing_models_costs_the_same_however_many_there_are() -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            found = routing.list_models(NOBODY)
        for item in found:
            ITEM.validate(item)
        return len(captured)

    make_mapping(make_endpoint())
    before = queries()
    for _ in range(5):
        make_mapping(make_endpoint(), make_endpoint())
    assert queries() == before == 3


@pytest.mark.parametrize(
    "address",
    ["https://api.x.ai/v1", "http://127.0.0.1:8080", "http://ollama:11434/v1", "http://[::1]:80/v1"],
)
def test_an_endpoint_may_have_any_plain_http_address(address: str) -> None:
    assert http_address(address) is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(
    "address",
    [
        "ftp://example.com",
        "example.com/v1",
        "https://",
        "https://user:hunter22@example.com",
        "https://user@example.com",
        "https://example.com:port",
        "https://example.com/?key=hunter22",
        "https://example.com/#x",
        "https://exa mple.com",
        "https://example.com\n.evil.com",
        "javascript:alert(1)",
        "https://[::1",
    ],
)
def test_any_other_address_is_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(ValidationError) as error:
        http_address(address)
    assert "hunter22" not in str(error.value)


# --- GET /api/v1/llm/models ---------------------------------------------------------------------


def get_models(user: Any, query: str = "", scopes: tuple[str, ...] = ("read", "run")) -> Any:
    _, token = create_api_token(user, "test", scopes=scopes)
    return Client(headers={"Authorization": f"Bearer {token}"}).get(f"/api/v1/llm/models{query}")


@pytest.mark.parametrize("query", ["", "?view=mapped"])
def test_any_caller_reads_the_models_and_each_fits_the_schema(query: str) -> None:
    mapping = make_mapping(make_endpoint(), make_endpoint())
    body = get_models(make_user(is_guest=True), query).json()
    assert (body["code"], body["msg"], body["total"]) == (200, "success", len(body["data"]))
    for item in body["data"]:
        ITEM.validate(item)
    item = next(item for item in body["data"] if item["name"] == mapping.name)
    assert (item["label"], item["scope_type"], item["scope_key"]) == (mapping.key, "global", mapping.key)
    assert (item["candidates_count"], item["required_tier"]) == (2, None)


def test_without_a_token_nobody_reads_the_models() -> None:
    response = Client().get("/api/v1/llm/models")
    assert (response.status_code, response.json()["code"]) == (401, "token_missing")


def test_an_unknown_view_is_refused() -> None:
    response = get_models(make_user(), "?view=secret")
    assert (response.status_code, response.json()["code"]) == (422, "view_unknown")


def test_staff_see_the_endpoints_with_masked_keys() -> None:
    endpoint = make_endpoint()
    response = get_models(
        make_user(is_staff=True, is_superuser=True), "?view=endpoints", scopes=("read", "admin")
    )
    item = next(item for item in response.json()["data"] if item["endpoint_id"] == endpoint.pk)
    assert (item["name"], item["key_masked"], item["is_active"]) == (endpoint.name, "sk-p***0123", True)
    assert KEY not in response.content.decode()


@pytest.mark.parametrize(
    ("fields", "scopes", "code"),
    [
        ({}, ("read", "admin"), "llm_admin_required"),
        ({"is_staff": True}, ("read", "run"), "llm_admin_required"),
        ({"is_guest": True}, ("read", "admin"), "ANONYMOUS_ACCESS_DENIED"),
    ],
)
def test_others_do_not_see_the_endpoints(
    fields: dict[str, Any], scopes: tuple[str, ...], code: str
) -> None:
    response = get_models(make_user(**fields), "?view=endpoints", scopes=scopes)
    assert (response.status_code, response.json()["code"]) == (403, code)


# --- settings -----------------------------------------------------------------------------------


@pytest.fixture
def settings_kept() -> Iterator[None]:
    """The stored settings, put back afterwards."""
    before = list(AppSetting.objects.all())
    AppSetting.objects.all().delete()
    app_settings.clear_cache()
    yield
    AppSetting.objects.all().delete()
    AppSetting.objects.bulk_create(before)
    app_settings.clear_cache()


def test_a_setting_has_its_default_until_it_is_changed(settings_kept: None) -> None:
    assert app_settings.get_all() == {
        "default_model": "",
        "default_result_mode": "raw_passthrough",
        "history_summary": False,
        "prompt_mode": "server",
        "show_tool_visible": False,
        "structured_output": "fail",
        "prompt_label": "",
        "web_search_enabled": False,
        "web_search_provider": "exa",
    }
    user = make_user()
    app_settings.change("default_result_mode", "auto", by=user)
    assert app_settings.get("default_result_mode") == "auto"
    assert run_sync(app_settings.aget("default_result_mode")) == "auto"
    assert AppSetting.objects.get().updated_by == user


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("nonsense", True, "setting_unknown"),
        ("default_result_mode", "loud", "setting_invalid"),
        ("default_result_mode", True, "setting_invalid"),
        ("web_search_enabled", "true", "setting_invalid"),
        ("web_search_enabled", 1, "setting_invalid"),
        ("default_model", "global:nobody", "setting_invalid"),
        ("default_model", "line\nbreak", "setting_invalid"),
        ("default_model", "x" * 201, "setting_invalid"),
        ("default_model", True, "setting_invalid"),
        ("default_model", None, "setting_invalid"),
    ],
)
def test_a_setting_refuses_another_type_or_name(
    settings_kept: None, name: str, value: Any, code: str
) -> None:
    with pytest.raises(InvalidRequest) as error:
        app_settings.change(name, value, by=None)
    assert error.value.error_code == code
    assert not AppSetting.objects.exists()


def test_a_stored_value_that_is_no_longer_accepted_reads_as_the_default(settings_kept: None) -> None:
    AppSetting.objects.create(key="default_result_mode", value={"old": "shape"})
    assert app_settings.get("default_result_mode") == "raw_passthrough"
    assert run_sync(app_settings.aget("default_result_mode")) == "raw_passthrough"


# --- seeds --------------------------------------------------------------------------------------


def empty() -> None:
    """An installation that has nothing of this room (inside `undone`)."""
    ModelMapping.objects.all().delete()
    Endpoint.objects.all().delete()
    Prompt.objects.update(is_active=False, active_version=None)
    Prompt.objects.all().delete()


def test_an_empty_installation_is_seeded_once_and_can_run_the_demo() -> None:
    with undone():
        empty()
        created, again = seeds.seed(), seeds.seed()
        assert [item["name"] for item in routing.list_models(NOBODY)] == ["global:demo"]
        message = active.read_system_message()
        kinds = list(
            Prompt.objects.filter(is_active=True).order_by("kind").values_list("kind", flat=True)
        )
    assert created == (
        "prompt agent_system",
        "prompt agent_tools",
        "endpoint Offline demo",
        "model global:demo",
    )
    assert again == ()
    assert kinds == ["agent_system", "agent_tools"]
    assert message.startswith("You are")
    assert "\n\n# Tools" in message


def test_seeding_leaves_what_staff_did() -> None:
    with undone():
        empty()
        mine = make_prompt(PromptKind.AGENT_SYSTEM)
        make_mapping(make_endpoint())
        assert seeds.seed() == ("prompt agent_tools",)
        mine.refresh_from_db()
        assert (mine.is_active, Endpoint.objects.count(), ModelMapping.objects.count()) == (False, 1, 1)


def test_processes_that_start_together_seed_once() -> None:
    assert set(race(lambda _: seeds.seed(), threads=8)) == {()}
