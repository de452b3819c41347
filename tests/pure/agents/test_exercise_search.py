"""The exercise search: what a coach would expect, in Chinese and English, and its DTOs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models import official_id
from agents.tools.exercises.index import Exercise, Library, day_of, to_dto
from agents.tools.exercises.words import read_query, words
from tests.support.exercise_library import named, starter

# The sentence, and the exercise a coach would name first.
EXPECTED_FIRST = [
    ("卧推", "杠铃卧推"),
    ("臥推", "杠铃卧推"),
    ("bench press exercises", "杠铃卧推"),
    ("What are good bench press exercises for a beginner?", "杠铃卧推"),
    ("哑铃卧推怎么做", "哑铃卧推"),
    ("incline barbell bench press", "上斜杠铃卧推"),
    ("close-grip bench", "窄距卧推"),
    ("俯卧撑", "俯卧撑"),
    ("how many push ups should I do", "俯卧撑"),
    ("在家没有器械怎么练胸", "俯卧撑"),
    ("chest workout at home without equipment", "俯卧撑"),
    ("引体向上", "引体向上"),
    ("PULL-UPS", "引体向上"),
    ("chin-up", "反手引体向上"),
    ("练背", "引体向上"),
    ("推荐几个背部训练动作", "引体向上"),
    ("lat pull down", "高位下拉"),
    ("划船", "杠铃划船"),
    ("bent over rows", "杠铃划船"),
    ("硬拉", "硬拉"),
    ("How do I deadlift with proper form?", "硬拉"),
    ("RDL", "罗马尼亚硬拉"),
    ("深蹲", "杠铃深蹲"),
    ("我想学深蹲，请问动作要领是什么？", "杠铃深蹲"),
    ("squats", "杠铃深蹲"),
    ("推荐几个练腿的动作", "杠铃深蹲"),
    ("Bulgarian split squat", "保加利亚分腿蹲"),
    ("lunges", "弓步蹲"),
    ("小腿怎么练", "站姿提踵"),
    ("膝盖不好可以做什么腿部训练", "靠墙静蹲"),
    ("翘臀训练", "臀推"),
    ("glute bridge at home", "臀桥"),
    ("哑铃练肩", "哑铃推举"),
    ("如何练出宽肩膀", "哑铃侧平举"),
    ("lateral raises", "哑铃侧平举"),
    ("military press", "杠铃推举"),
    ("圆肩驼背怎么改善", "面拉"),
    ("二头弯举", "杠铃弯举"),
    ("hammer curls", "锤式弯举"),
    ("tricep exercises with cable", "绳索下压"),
    ("拜拜肉怎么减", "凳上臂屈伸"),
    ("怎么练腹肌？", "卷腹"),
    ("瘦肚子", "卷腹"),
    ("how to get a six pack", "卷腹"),
    ("平板支撑", "平板支撑"),
    ("planks", "平板支撑"),
    ("no equipment", "徒手深蹲"),
    ("全身燃脂 HIIT 波比跳", "波比跳"),
    ("kettlebell swings", "壶铃摆荡"),
    ("full body workout", "壶铃摆荡"),
    ("爆发力训练", "力量翻"),
    ("我想减肥，应该做什么运动？", "坡度快走"),
    ("跑步", "跑步机慢跑"),
    ("skipping rope", "跳绳"),
    ("rowing machine", "划船机"),
    ("stretching after leg day", "腘绳肌拉伸"),
    ("肩部热身", "弹力带绕肩"),
    ("hip mobility", "髋部旋转（90/90）"),
    ("foam roller", "泡沫轴放松"),
    ("腰疼适合做什么", "婴儿式"),
    ("帮我安排一个三分化训练，周一练胸", "杠铃卧推"),
]
ASKING_FOR_A_SPLIT = [
    "三分化训练",
    "三分化",
    "帮我安排一份五分化计划",
    "推拉腿怎么安排",
    "push pull legs",
    "PPL",
    "3 day split workout",
    "帮我制定一份训练计划",
    "weekly workout plan",
    "周一练胸，周三练背，周五练腿",
]
DTO_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        "id",
        "name",
        "description",
        "muscleGroup",
        "category",
        "equipment",
        "difficulty",
        "source",
        "isCustom",
        "isOfficial",
        "createdAt",
        "updatedAt",
    ],
    "properties": {
        "id": {"type": "string", "pattern": "^off_[0-9a-f]{8}$"},
        "name": {"type": "string", "minLength": 1},
        "description": {"type": "string"},
        "muscleGroup": {"type": "string", "pattern": "^[A-Z_]+$"},
        "category": {"type": "string", "pattern": "^[A-Z_]+$"},
        "equipment": {"type": "array", "items": {"type": "string", "pattern": "^[A-Z_]+$"}},
        "difficulty": {"enum": ["BEGINNER", "NOVICE", "INTERMEDIATE", "ADVANCED", "EXPERT"]},
        "source": {"const": "OFFICIAL"},
        "isCustom": {"const": False},
        "isOfficial": {"const": True},
        "createdAt": {"type": "integer"},
        "updatedAt": {"type": "integer"},
        "targetMuscles": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "secondaryMuscles": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "defaultSets": {"type": "integer", "minimum": 1},
        "defaultReps": {"type": "integer", "minimum": 1},
        "steps": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "tips": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "tags": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "media": {"type": "object", "minProperties": 1},
    },
}


def found(query: str, *library: Exercise, top_k: int = 10) -> list[str]:
    return [exercise.name for exercise in Library(library).search(query, top_k)]


# --- what a coach would expect ------------------------------------------------------------------


@pytest.mark.parametrize(("query", "expected"), EXPECTED_FIRST)
def test_a_question_finds_first_what_a_coach_would_name(query: str, expected: str) -> None:
    assert starter().search(query, 5)[0].name == expected


def test_bench_press_finds_bench_presses_before_anything_else() -> None:
    for query in ("卧推", "bench press exercises"):
        assert all("卧推" in exercise.name for exercise in starter().search(query, 5))


@pytest.mark.parametrize("query", ASKING_FOR_A_SPLIT)
def test_a_split_is_answered_with_every_training_day(query: str) -> None:
    results = starter().search(query, 3)
    assert {day_of(exercise) for exercise in results} == {"push", "pull", "legs"}


@pytest.mark.parametrize(
    "query", ["你好", "hello there", "今天天气怎么样", "帮我推荐一份", "", "？！", "   "]
)
def test_small_talk_finds_nothing(query: str) -> None:
    assert starter().search(query, 5) == ()


def test_no_equipment_finds_only_what_needs_none() -> None:
    for query in ("no equipment", "徒手训练", "没有器材能练什么", "bodyweight exercises"):
        assert all("NONE" in exercise.equipment for exercise in starter().search(query, 5))


def test_abdominal_questions_stay_with_the_core() -> None:
    for query in ("腹肌", "瘦肚子", "abs workout", "belly"):
        assert {exercise.muscle_group for exercise in starter().search(query, 10)} == {"CORE"}


# --- the ranking --------------------------------------------------------------------------------


def test_a_name_counts_ten_an_alias_or_muscle_six_a_description_three() -> None:
    in_name = named("z one plank")
    in_english_name = named("z two", name_en="Plank")
    in_alias = named("b", aliases=("planks",))
    in_tag = named("c", tags=("plank",))
    in_description = named("a", description="A plank.")
    in_two_weak_places = named("d", description="plank", aliases=("plank",))
    others = (in_description, in_alias, in_tag, in_two_weak_places, in_english_name, in_name)
    assert found("plank", *others) == ["z one plank", "z two", "d", "b", "c", "a"]
    assert found("chest", named("x", muscle_group="CHEST"), named("w", description="chest")) == [
        "x",
        "w",
    ]


def test_every_matching_word_counts_and_ties_go_by_name() -> None:
    both = named("m", description="alpha beta")
    one = (
        named("c", description="alpha"),
        named("a", description="beta"),
        named("b", description="beta"),
    )
    assert found("alpha beta", *one, both) == ["m", "a", "b", "c"]


def test_what_does_not_match_is_dropped() -> None:
    library = Library([named("alpha"), named("alpha two"), named("gamma")])
    assert [exercise.name for exercise in library.search("alpha", 1)] == ["alpha"]
    assert [exercise.name for exercise in library.search("alpha", 9)] == ["alpha", "alpha two"]


def test_a_target_muscle_of_another_group_is_worth_less_than_the_trained_one() -> None:
    press = named("a press", muscle_group="CHEST", target_muscles=("CHEST", "SHOULDERS"))
    raise_ = named("b raise", muscle_group="SHOULDERS")
    assert found("练肩", press, raise_) == ["b raise", "a press"]


def test_a_pair_nobody_wrote_falls_back_on_its_characters() -> None:
    assert found("胸背", named("a", muscle_group="BACK"), named("b", muscle_group="CHEST")) == ["a", "b"]


# --- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("杠铃卧推", ("杠铃", "铃卧", "卧推")),
        ("背", ("背",)),
        ("Bench  PRESSES, lunges; flies", ("bench", "press", "lunge", "fly")),
        ("push-ups pushups push up", ("pushup",)),
        ("Ｔ杠", ("t", "杠")),
        ("帮我推荐一份卧推训练", ("卧推",)),
        ("What are good exercises for the chest?", ("chest",)),
        ("a_b\x00c", ("b", "c")),
        ("引體向上", ("引体", "体向", "向上")),
    ],
)
def test_words_of_a_text(text: str, expected: tuple[str, ...]) -> None:
    assert words(text) == expected


@given(st.text())
def test_any_text_has_words_and_any_question_an_answer(text: str) -> None:
    found_words = words(text)
    assert len(set(found_words)) == len(found_words)
    assert all(word and word == word.lower() for word in read_query(text).words)
    assert len(starter().search(text, 10)) <= 10


_SENTENCES = st.lists(
    st.sampled_from(
        ["卧推", "练背", "三分化", "press", "腿", "no equipment", "哑铃", "周一", "周五", " "]
    )
).map("".join)


@given(query=_SENTENCES, top_k=st.integers(1, 10), seed=st.randoms(use_true_random=False))
def test_the_order_is_stable_and_top_k_is_respected(query: str, top_k: int, seed: Any) -> None:
    shuffled = list(starter().exercises)
    seed.shuffle(shuffled)
    results = starter().search(query, top_k)
    assert Library(shuffled).search(query, top_k) == results
    assert starter().search(query, 10)[:top_k] == results


def test_exercises_stand_in_order_of_name() -> None:
    assert all(first.name < second.name for first, second in pairwise(starter().exercises))


def test_an_endless_question_is_cut() -> None:
    assert starter().search("x " * 2_000 + "卧推", 5) == ()


# --- the wire -----------------------------------------------------------------------------------


def test_a_bare_exercise_has_the_required_keys_only() -> None:
    exercise = named("臀推", created_at=1_700_000_000_123, updated_at=1_700_000_000_456)
    assert to_dto(exercise) == {
        "id": official_id("臀推"),
        "name": "臀推",
        "description": "",
        "muscleGroup": "OTHER",
        "category": "OTHER",
        "equipment": [],
        "difficulty": "BEGINNER",
        "source": "OFFICIAL",
        "isCustom": False,
        "isOfficial": True,
        "createdAt": 1_700_000_000_123,
        "updatedAt": 1_700_000_000_456,
    }


def test_every_starter_exercise_is_a_valid_dto() -> None:
    validator = jsonschema.Draft202012Validator(DTO_SCHEMA)
    for exercise in starter().exercises:
        assert [*validator.iter_errors(to_dto(exercise))] == []


def test_a_description_speaks_both_languages() -> None:
    exercise = named("臀推", name_en="Hip Thrust", description="练臀。", description_en="For glutes.")
    assert to_dto(exercise)["description"] == "练臀。 Hip Thrust: For glutes."
