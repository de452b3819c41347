"""Exercise files into the library: three formats, all of a file or nothing, twice is once."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from agents.models import Exercise, official_id
from agents.tools.exercises.file_items import BadExercises, read_media
from agents.tools.exercises.import_files import read_items
from agents.tools.exercises.seed import STARTER_FILE, seed_exercises, starter_items
from agents.tools.exercises.store import ImportResult, import_items
from tests.support.exercise_library import DATA

pytestmark = pytest.mark.once

GYMBRO = DATA / "gymbro-seed" / "exercise_official_seed.json"
FREE = DATA / "free-exercise-db" / "exercises.json"
needs_gymbro = pytest.mark.skipif(not GYMBRO.exists(), reason="the GymBro seed is not here")
needs_free = pytest.mark.skipif(not FREE.exists(), reason="free-exercise-db is not here")

ONE: dict[str, Any] = {
    "name": "悬吊划圈",
    "muscleGroup": "CORE",
    "category": "CORE",
    "equipment": ["TRX"],
    "aliases": ["suspended circle"],
    "tags": ["核心"],
}
FREE_ONE: dict[str, Any] = {
    "id": "Test_Sled",
    "name": "Test Sled Drag",
    "force": "pull",
    "level": "expert",
    "mechanic": "compound",
    "equipment": "e-z curl bar",
    "primaryMuscles": ["lats", "glutes"],
    "secondaryMuscles": ["middle back", "neck"],
    "instructions": ["Pull, then rest.", "Again."],
    "category": "strength",
    "images": ["Test Sled/0.jpg", "Test Sled/1.jpg"],
}


@pytest.fixture
def empty_library(db: None) -> None:
    """No exercises, until the test is over."""
    Exercise.objects.all().delete()


def starter(*items: dict[str, Any]) -> bytes:
    return json.dumps({"format": "parley.exercises", "version": 1, "exercises": items}).encode()


def seed(*items: dict[str, Any]) -> bytes:
    return json.dumps({"entity": "EXERCISE", "schemaVersion": "1.0.0", "payload": items}).encode()


def run(path: Path) -> str:
    out = StringIO()
    call_command("import_exercises", str(path), stdout=out)
    return out.getvalue()


@needs_gymbro
@pytest.mark.usefixtures("empty_library")
def test_the_gymbro_seed_loads_with_its_own_ids_and_twice_is_once() -> None:
    assert run(GYMBRO).endswith("60 created, 0 updated, 0 unchanged.\n")
    theirs = {item["id"]: item for item in json.loads(GYMBRO.read_text())["payload"]}
    rows = Exercise.objects.in_bulk()
    assert rows.keys() == theirs.keys()
    for row in rows.values():
        item = theirs[row.id]
        assert [row.name, row.description, row.steps] == [
            item["name"],
            item["description"],
            item["steps"],
        ]
        assert [row.muscle_group, row.equipment] == [item["muscleGroup"], item["equipment"]]
    written = {row.id: row.updated_at for row in rows.values()}
    assert run(GYMBRO).endswith("0 created, 0 updated, 60 unchanged.\n")
    assert dict(Exercise.objects.values_list("id", "updated_at")) == written


@needs_free
@pytest.mark.usefixtures("empty_library")
def test_free_exercise_db_loads_with_progress_and_twice_is_once() -> None:
    said = run(FREE).splitlines()
    assert said[:2] == ["exercises.json: 873 exercises.", "  200 written …"]
    assert said[-2:] == ["  873 written …", "873 created, 0 updated, 0 unchanged."]
    assert Exercise.objects.count() == 873
    assert run(FREE).endswith("0 created, 0 updated, 873 unchanged.\n")


@needs_gymbro
@needs_free
@pytest.mark.usefixtures("empty_library")
def test_the_three_libraries_live_together() -> None:
    seed_exercises()
    run(FREE)
    assert run(GYMBRO).endswith("32 created, 28 updated, 0 unchanged.\n")
    bench = Exercise.objects.get(name="杠铃卧推")
    assert "bench press" in bench.aliases, "what the file does not say stays"


@pytest.mark.usefixtures("empty_library")
def test_the_starter_set_loads_once_and_never_over_what_staff_wrote() -> None:
    assert seed_exercises() == len(starter_items()) >= 72
    Exercise.objects.exclude(name="硬拉").delete()
    Exercise.objects.filter(name="硬拉").update(description="我们的说明")
    assert seed_exercises() == 0
    assert list(Exercise.objects.values_list("name", "description")) == [("硬拉", "我们的说明")]


@pytest.mark.usefixtures("empty_library")
def test_the_starter_file_can_be_imported_over_itself() -> None:
    seed_exercises()
    count = len(starter_items())
    assert run(STARTER_FILE).endswith(f"0 created, 0 updated, {count} unchanged.\n")


def test_every_starter_exercise_is_complete() -> None:
    for item in starter_items():
        fields = item.fields
        assert item.id == official_id(item.name)
        assert fields["name_en"]
        assert len(fields["aliases"]) >= 2
        assert fields["target_muscles"]
        assert len(fields["steps"]) == 3
        assert len(fields["tips"]) == 2
        assert fields["tags"]
        shown = f"{fields['description']} {fields['name_en']}: {fields['description_en']}"
        assert len(shown) <= 140, f"{item.name}: a run would cut its description"


def test_the_starter_set_covers_every_part_of_a_programme() -> None:
    groups = {item.fields["muscle_group"] for item in starter_items()}
    categories = {item.fields["category"] for item in starter_items()}
    assert groups == {
        "CHEST",
        "BACK",
        "LEGS",
        "GLUTES",
        "SHOULDERS",
        "ARMS",
        "CORE",
        "FULL_BODY",
        "CARDIO",
    }
    assert categories >= {"UPPER_BODY", "LOWER_BODY", "CORE", "FULL_BODY", "CARDIO", "FLEXIBILITY"}


def test_a_free_exercise_is_read_in_our_words() -> None:
    (item,) = read_items(json.dumps([FREE_ONE]).encode())
    pictures = "https://raw.githubusercontent.com/yuhonas/free-exercise-db/main/exercises/Test%20Sled/"
    assert item.id == official_id("Test Sled Drag")
    assert item.fields == {
        "description": "Expert strength exercise for the lats and glutes (e-z curl bar).",
        "muscle_group": "BACK",
        "category": "UPPER_BODY",
        "equipment": ["BARBELL"],
        "difficulty": "EXPERT",
        "target_muscles": ["BACK", "GLUTES"],
        "secondary_muscles": ["BACK", "OTHER"],
        "steps": ["Pull, then rest.", "Again."],
        "tags": ["strength", "compound"],
        "media": {
            "thumbnailUrl": pictures + "0.jpg",
            "imageUrls": [pictures + "0.jpg", pictures + "1.jpg"],
        },
    }


def test_both_library_formats_give_the_same_items() -> None:
    assert read_items(starter(ONE)) == read_items(seed(ONE))
    assert read_items(b"\xef\xbb\xbf" + seed(ONE)) == read_items(seed(ONE))


def test_null_is_as_good_as_absent() -> None:
    assert read_items(seed(ONE | {"difficulty": None, "media": None})) == read_items(seed(ONE))


@pytest.mark.django_db
def test_an_import_updates_the_exercise_of_that_name_and_keeps_what_it_does_not_mention() -> None:
    import_items(read_items(starter(ONE)))
    changed = {key: value for key, value in ONE.items() if key not in {"aliases", "tags"}}
    changed |= {"category": "FULL_BODY"}
    assert import_items(read_items(seed(changed))) == ImportResult(created=0, updated=1, unchanged=0)
    row = Exercise.objects.get(name=ONE["name"])
    assert [row.category, row.aliases, row.tags] == ["FULL_BODY", ["suspended circle"], ["核心"]]


@pytest.mark.django_db
def test_an_item_with_a_known_id_renames_its_exercise() -> None:
    import_items(read_items(starter(ONE)))
    renamed = ONE | {"id": official_id(ONE["name"]), "name": "悬吊画圈"}
    assert import_items(read_items(seed(renamed))) == ImportResult(created=0, updated=1, unchanged=0)
    assert Exercise.objects.get(pk=renamed["id"]).name == "悬吊画圈"


@pytest.mark.django_db
def test_an_exercise_renamed_in_admin_keeps_its_id_when_its_old_name_returns() -> None:
    import_items(read_items(starter(ONE)))
    row = Exercise.objects.get(name=ONE["name"])
    row.name = "悬吊画圈"
    row.save()
    again = Exercise(name=ONE["name"], muscle_group="CORE", category="CORE")
    again.save()
    assert again.id == official_id(ONE["name"], digits=32)
    assert import_items(read_items(starter(ONE))) == ImportResult(created=0, updated=1, unchanged=0)
    assert Exercise.objects.get(pk=row.id).name == "悬吊画圈"


@pytest.mark.django_db
def test_a_file_may_hold_the_old_and_the_new_name_of_a_renamed_exercise() -> None:
    import_items(read_items(starter(ONE)))
    Exercise.objects.filter(name=ONE["name"]).update(name="悬吊画圈")
    both = read_items(starter(ONE | {"name": "悬吊画圈"}, ONE))
    assert import_items(both) == ImportResult(created=1, updated=0, unchanged=1)
    assert Exercise.objects.get(pk=official_id(ONE["name"])).name == "悬吊画圈"


BAD_FILES = [
    (b"", "This is not JSON"),
    (b"{", "This is not JSON"),
    (b"\xff\xfe{}", "This is not JSON"),
    (b"[" * 100_000, "This is not JSON"),
    (b'"text"', "Not a known format"),
    (b"{}", "Not a known format"),
    (b'{"entity": "EXERCISE", "payload": {}}', "Not a known format"),
    (b"[]", "The file holds no exercises"),
    (seed(), "The file holds no exercises"),
    (b"[1]", "Item 1: Expected `object`, got `int`"),
    (seed(ONE, {"name": "x"}), "Item 2 ('x'): Object missing required field `muscleGroup`"),
    (seed(ONE | {"name": 5}), "Item 1: name: Expected `str`, got `int`"),
    (seed(ONE | {"name": " "}), "Item 1 (' '): name: "),
    (seed(ONE | {"name": "n" * 201}), "name: Expected `str` of length <= 200"),
    (seed(ONE | {"equipment": ["ROPE"]}), "('悬吊划圈'): equipment[0]: Invalid enum value 'ROPE'"),
    (seed(ONE | {"equipment": "TRX"}), "equipment: Expected `array`, got `str`"),
    (seed(ONE | {"category": "ARMS"}), "category: Invalid enum value 'ARMS'"),
    (seed(ONE | {"defaultSets": 11}), "defaultSets: Expected `int` <= 10"),
    (seed(ONE | {"defaultReps": "12"}), "defaultReps: Expected `int | null`, got `str`"),
    (seed(ONE | {"id": "../x"}), "id: Expected `str` matching regex"),
    (seed(ONE | {"media": {"thumbnailUrl": "javascript:x"}}), "media.thumbnailUrl: Expected `str`"),
    (seed(ONE | {"media": {"score": 1e300}}), "media: Object "),
    (seed(ONE | {"description": "a\x00b"}), "description: contains the NUL character"),
    (seed(ONE | {"steps": ["fine", "a\x00"]}), "steps: contains the NUL character"),
    (seed(ONE, ONE), "Items 1 and 2 have the same id"),
    (seed(ONE, ONE | {"id": "off_abc"}), "Items 1 and 2 have the same name '悬吊划圈'"),
    (json.dumps([FREE_ONE | {"level": "godlike"}]).encode(), "level: Invalid enum value 'godlike'"),
    (json.dumps([FREE_ONE | {"equipment": "sofa"}]).encode(), "equipment: 'sofa' is not known"),
    (
        json.dumps([FREE_ONE | {"primaryMuscles": ["ear"]}]).encode(),
        "primaryMuscles: 'ear' is not known",
    ),
    (json.dumps([FREE_ONE | {"name": "\ud800"}]).encode(), "This is not JSON"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("content", "complaint"), BAD_FILES)
def test_a_bad_file_is_refused_in_words_and_changes_nothing(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    before = list(Exercise.objects.values_list("id", "updated_at"))
    with pytest.raises(CommandError) as refusal:
        run(path)
    assert str(refusal.value).startswith("bad.json: ")
    assert complaint in str(refusal.value)
    assert str(refusal.value).endswith("Nothing was imported.")
    assert list(Exercise.objects.values_list("id", "updated_at")) == before


@pytest.mark.parametrize("path", ["/nowhere/at/all.json", "/", "a\x00b"])
def test_a_file_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_exercises", path)


@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from([*ONE, "payload", "entity"]), inner)
        ),
    ).map(lambda value: json.dumps({"entity": "EXERCISE", "payload": [value]}).encode())
)
def test_any_file_is_read_or_refused(content: bytes) -> None:
    try:
        items = read_items(content)
    except BadExercises as refusal:
        complaint = str(refusal)
    else:
        complaint = ""
    assert complaint or items


def test_media_written_by_staff_is_checked() -> None:
    good = {"thumbnailUrl": "https://example.org/a.jpg", "imageUrls": ["http://example.org/b.jpg"]}
    assert read_media(good) == good
    assert read_media({}) == {}
    for bad in ([1], {"thumbnailUrl": "file:///etc"}, good | {"other": 1}, good | {"version": "\x00"}):
        with pytest.raises(BadExercises):
            read_media(bad)
