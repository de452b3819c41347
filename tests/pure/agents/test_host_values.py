"""Runner ids, selections, discovery, client parameters: what needs no run (H01–H03, H06, H08)."""

from __future__ import annotations

from typing import Any
from unittest import mock

import msgspec
import pytest

from agents.host import context_builder, grants, runner_catalogue
from agents.host.grants import Binding
from agents.host_protocol.manifest import FormItem, Permissions
from agents.host_protocol.runner_id import home_of, identity_of, plugin_runner_id
from agents.runners import registry
from tests.support.host.stage import Scripted, manifest, serving


def test_a_plugin_runners_id_has_three_parts() -> None:
    found = plugin_runner_id("plugin:acme/tools/default")
    assert (str(found), found.identity, found.runner) == (
        "plugin:acme/tools/default",
        "acme/tools",
        "default",
    )


@pytest.mark.parametrize(
    "given",
    ["", "plugin:", "plugin:a", "plugin:a/b", "plugin:a/b/", "plugin:/b/c", "plugin:a//c",
     "plugin:a/b/c/d",
     "other:a/b/c", "a/b/c", "plugin:a/../c", "plugin:a/b/c\n"],
)  # fmt: skip
def test_what_is_no_plugin_runners_id_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="plugin:author/name/runner"):
        plugin_runner_id(given)


def test_homes_and_identities() -> None:
    assert [home_of(one) for one in ("plugin:a/b/c", "python:x", "builtin:chat")] == [
        "plugin",
        "python",
        "builtin",
    ]
    assert [identity_of(one) for one in ("plugin:a/b/c", "python:x")] == ["a/b", "python:x"]
    with pytest.raises(ValueError, match="runner's id"):
        home_of("chat")


async def _nothing(context: Any, host: Any) -> Any:
    return
    yield


def test_a_runner_whose_manifest_is_wrong_is_left_out_and_spoils_no_other() -> None:
    good = Scripted(manifest("python:good"), _nothing)
    bare = mock.Mock(spec=["run"])
    entries = {"good": good, "bare": bare}
    odd = Scripted(manifest("plugin:only/two"), _nothing)
    with mock.patch.object(registry, "runners", return_value=entries), serving(odd):
        known = runner_catalogue.find_hosted()
    assert ("python:good" in known, "plugin:only/two" in known) == (True, False)


@pytest.mark.parametrize("name", ["", "n" * 129])
def test_a_config_item_without_a_usable_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 128 characters"):
        FormItem("secret", name)
    with pytest.raises(msgspec.ValidationError, match="1 to 128 characters"):
        msgspec.convert({"type": "secret", "name": name}, FormItem)


def test_a_source_that_breaks_takes_no_other_down() -> None:
    def broken() -> Any:
        raise OSError

    good = Scripted(manifest("plugin:a/b/c"), _nothing)
    with mock.patch.object(runner_catalogue, "_sources", [broken, lambda: [good]]):
        assert "plugin:a/b/c" in runner_catalogue.find_hosted()
        assert {"builtin:chat", "builtin:demo"} <= {one.id for one in runner_catalogue.list_manifests()}


def test_a_runner_whose_home_is_python_is_known_by_its_id_only_once() -> None:
    twins = [Scripted(manifest("plugin:a/b/c"), _nothing) for _ in range(2)]
    with serving(*twins):
        assert runner_catalogue.find("plugin:a/b/c") is twins[0]
        assert runner_catalogue.find("plugin:a/b/unknown") is None


def test_what_a_config_selects_is_found_once_and_never_beyond_the_manifest() -> None:
    form = (
        FormItem("llm-model-selector", "main"),
        FormItem("rerank-model-selector", "ranker", default="global:r"),
        FormItem("knowledge-base-multi-selector", "bases"),
        FormItem("string", "plain"),
    )
    declared = manifest(config_schema=form)
    binding = Binding(
        config={"main": "m", "bases": ["handbook", "__none__", "handbook"], "plain": "not-a-model"},
        further_models=("global:m", "x"),
    )
    assert grants.model_names(declared, binding, "global:own") == [
        "global:own",
        "global:m",
        "global:x",
        "global:r",
    ]
    none = manifest(permissions=Permissions(models=(), knowledge_bases=()), config_schema=form)
    granted = grants.resources(none, binding, models=[("global:m", "p")], tools=(), bases=())
    assert (granted.models, granted.knowledge_bases) == ((), ())
    ranker = manifest(permissions=Permissions(models=("rerank",)), config_schema=form)
    granted = grants.resources(ranker, binding, models=[("global:r", "p")], tools=(), bases=())
    assert [one.operations for one in granted.models] == [("rerank",)]


def test_client_parameters_without_private_secret_and_odd_ones() -> None:
    given = {
        "city": "Rome",
        "_private": 1,
        "api_key": "sk-1",
        "AccessToken": "t",
        "password": "p",
        "odd": {1, 2},
        "nan": float("nan"),
        "nested": {"deep": [1], "client_secret": "x"},
    }
    assert context_builder.public_params(given) == {"city": "Rome", "nested": {"deep": [1]}}
    assert context_builder.public_params("no object") == {}
