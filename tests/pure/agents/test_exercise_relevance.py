"""Questions as clients write them, and what a coach would name first: one of several equally right.

Written before the search was tried on them; the sixty of `test_exercise_search.py`
were there first.
"""

from __future__ import annotations

import msgspec
import pytest

from agents.tools.exercises.import_files import read_items
from agents.tools.exercises.index import Exercise, Library, day_of
from agents.tools.exercises.seed import starter_items
from agents.tools.exercises.typing_errors import Spellings
from tests.support.exercise_library import starter
from tests.support.paths import shared

RIGHT_ANSWERS = [
    ("home glute exercises", "臀桥"),
    ("rotator cuff", "面拉 弹力带绕肩"),
    ("没有器械练腿", "徒手深蹲 靠墙静蹲 弓步蹲"),
    ("练胸有什么动作？", "杠铃卧推 俯卧撑 哑铃卧推"),
    ("练背", "引体向上"),
    ("练肩膀", "杠铃推举 哑铃推举 哑铃侧平举"),
    ("练手臂", "杠铃弯举 哑铃弯举 绳索下压"),
    ("上胸怎么练", "上斜杠铃卧推 上斜哑铃卧推"),
    ("upper chest", "上斜杠铃卧推 上斜哑铃卧推"),
    ("lower abs", "反向卷腹 仰卧举腿 悬垂举腿"),
    ("下腹", "反向卷腹 仰卧举腿 悬垂举腿"),
    ("后束", "俯身哑铃飞鸟"),
    ("rear delts", "俯身哑铃飞鸟 面拉"),
    ("benchpress", "杠铃卧推"),
    ("dumbell curl", "哑铃弯举"),
    ("dead lift form", "硬拉"),
    ("romanian deadlfit", "罗马尼亚硬拉"),
    ("squat without weights", "徒手深蹲"),
    ("leg day", "杠铃深蹲"),
    ("push day", "杠铃卧推 杠铃推举"),
    ("pull day exercises", "引体向上 杠铃划船"),
    ("back exercises with dumbbells", "单臂哑铃划船"),
    ("dumbbell shoulder workout", "哑铃推举 哑铃侧平举"),
    ("hamstring exercises", "罗马尼亚硬拉 腿弯举"),
    ("腘绳肌训练", "罗马尼亚硬拉 腿弯举"),
    ("大腿后侧怎么练", "罗马尼亚硬拉 腿弯举"),
    ("quads", "杠铃深蹲 腿屈伸 颈前深蹲 腿举"),
    ("calf raise", "站姿提踵"),
    ("小腿变粗怎么练", "站姿提踵"),
    ("triceps", "绳索下压"),
    ("三头肌怎么练", "绳索下压"),
    ("二头", "杠铃弯举 哑铃弯举"),
    ("biceps at home", "哑铃弯举"),
    ("forearm training", "腕弯举"),
    ("握力", "农夫行走 腕弯举"),
    ("core stability", "平板支撑 死虫式 鸟狗式"),
    ("核心力量", "平板支撑 卷腹"),
    ("侧腹", "侧平板支撑 俄罗斯转体 空中自行车"),
    ("obliques", "侧平板支撑 俄罗斯转体 空中自行车"),
    ("HIIT", "波比跳 壶铃摆荡 开合跳 高抬腿"),
    ("cardio at home", "开合跳 高抬腿 跳绳 波比跳"),
    ("有氧运动推荐", "坡度快走 跑步机慢跑 跳绳"),
    ("fat burning", "坡度快走 跳绳 波比跳 跑步机慢跑"),
    ("low impact cardio", "坡度快走 椭圆机 动感单车"),
    ("warm up before workout", "最伟大拉伸 弹力带绕肩"),
    ("训练前热身", "最伟大拉伸 弹力带绕肩"),
    ("stretch hamstrings", "腘绳肌拉伸"),
    ("hip flexor stretch", "髋屈肌拉伸"),
    ("lower back pain", "婴儿式 猫牛式 鸟狗式 死虫式 臀桥"),
    ("knee friendly leg exercise", "登阶 靠墙静蹲 臀桥"),
    ("beginner full body workout", "农夫行走 波比跳 壶铃摆荡"),
    ("新手怎么开始健身", "杠铃卧推 徒手深蹲 俯卧撑 哑铃卧推 坡度快走"),
    ("kettlebell exercises", "壶铃摆荡"),
    ("弹力带训练", "弹力带侧走 弹力带绕肩"),
    ("TRX row", "反向划船 杠铃划船"),
    ("hip thrust", "臀推"),
    ("glutes", "臀推 臀桥"),
    ("斜方肌", "哑铃耸肩"),
    ("traps", "哑铃耸肩"),
    ("chest dips", "双杠臂屈伸"),
    ("skull crushers", "仰卧臂屈伸"),
    ("pec fly machine", "蝴蝶机夹胸"),
    ("cable chest", "绳索夹胸"),
    ("夹胸", "绳索夹胸 蝴蝶机夹胸"),
    ("overhead press", "杠铃推举"),
    ("wide grip pull up", "引体向上"),
    ("teach me the turkish get up", "土耳其起立"),
    ("explosive power", "跳箱 力量翻 壶铃摆荡"),
    ("蹲", "杠铃深蹲 徒手深蹲 靠墙静蹲 颈前深蹲 高脚杯深蹲"),
    ("单腿训练", "保加利亚分腿蹲 弓步蹲"),
    ("single leg exercises", "保加利亚分腿蹲 登阶 弓步蹲"),
    ("hotel room workout", "徒手深蹲 俯卧撑 波比跳"),
    ("胸部和三头训练", "杠铃卧推 窄距卧推 双杠臂屈伸 俯卧撑 绳索下压"),
    ("马甲线", "卷腹 平板支撑"),
    ("驼背", "面拉 胸椎旋转"),
    ("office worker neck and shoulder pain", "面拉 弹力带绕肩 胸椎旋转"),
    ("久坐腰酸", "超人式 婴儿式 猫牛式 鸟狗式 死虫式 髋屈肌拉伸"),
    ("women glute workout", "臀推 臀桥"),
    ("pushups", "俯卧撑"),
    ("俯卧撑做不了怎么办", "跪姿俯卧撑 俯卧撑"),
    ("easier push up", "跪姿俯卧撑"),
    ("pull up alternative", "引体向上 高位下拉 反向划船"),
    ("标准深蹲", "杠铃深蹲"),
    ("哑铃", "单臂哑铃划船 哑铃卧推 哑铃弯举 哑铃飞鸟 哑铃推举 哑铃侧平举"),
    ("barbell exercises", "杠铃卧推 杠铃深蹲 硬拉 杠铃划船 杠铃推举 杠铃弯举"),
    ("我只有一副哑铃，怎么练背", "单臂哑铃划船"),
    ("spinning", "动感单车"),
    ("跑步机", "跑步机慢跑 坡度快走"),
    ("yoga", "婴儿式 猫牛式 鸽子式"),
    ("瑜伽", "婴儿式 猫牛式 鸽子式"),
    ("romanian dedlift", "罗马尼亚硬拉"),
    ("shouldr press", "哑铃推举 杠铃推举"),
    ("squatts", "杠铃深蹲"),
    ("pullups for beginers", "引体向上"),
    ("家里练腹肌", "卷腹"),
    ("home workout", "俯卧撑"),
    ("宿舍健身", "徒手深蹲"),
    ("女生练臀", "臀推"),
    ("增肌练胸", "杠铃卧推 哑铃卧推 俯卧撑"),
    ("推拉腿 推日", "杠铃卧推 杠铃推举 上斜杠铃卧推"),
    ("腿日", "杠铃深蹲"),
    ("neck pain", "面拉 弹力带绕肩"),
]
DATA = shared("data")
FILES = (
    DATA / "free-exercise-db" / "exercises.json",
    DATA / "gymbro-seed" / "exercise_official_seed.json",
)


@pytest.mark.parametrize(("query", "right"), RIGHT_ANSWERS)
def test_a_question_is_answered_first_with_what_a_coach_would_name(query: str, right: str) -> None:
    results = starter().search(query, 3)
    assert results
    assert results[0].name in right.split()


@pytest.mark.parametrize(
    "query",
    ["tell me a story", "write python code for me", "what is the capital of france", "今天股票怎么样"],
)
def test_what_is_no_question_of_training_is_not_taken_for_a_typing_error(query: str) -> None:
    assert starter().search(query, 5) == ()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("dumbell", ("dumbbell",)),  # a letter too few
        ("squatt", ("squat",)),  # too many
        ("deadlfit", ("deadlift",)),  # two swapped
        ("bendch", ("bench",)),
        ("squot", ("squat",)),  # a wrong one
        ("oquat", ()),  # nobody mistypes the first
        ("dxxdlift", ()),
        ("cod", ()),
        ("core1", ()),
    ],
)
def test_a_word_with_one_typing_error_is_known(typed: str, meant: tuple[str, ...]) -> None:
    known = Spellings(["dumbbell", "squat", "deadlift", "bench", "cord", "core", "卧推"])
    assert known.find_nearest(typed) == meant


@pytest.mark.skipif(not FILES[0].exists(), reason="the free libraries are not here")
def test_a_thousand_exercises_more_do_not_hide_what_a_coach_would_name() -> None:
    items = {item.name: item for item in (*starter_items(), *file_items())}
    rows = ({"id": item.id, "name": item.name} | item.fields for item in items.values())
    library = Library(msgspec.convert(row, Exercise) for row in rows)
    assert len(library.exercises) > 900
    for query, wanted in (
        ("卧推", "卧推"),
        ("bench press exercises", "Bench Press"),
        ("romanian deadlift", "Romanian Deadlift"),
        ("stretch hamstrings", "Hamstring"),
        ("face pulls", "Face Pull"),
        ("引体向上", "引体向上"),
    ):
        first = library.search(query, 1)[0]
        assert wanted in f"{first.name} {first.name_en}", query
    split = library.search("三分化训练", 3)
    assert {day_of(exercise) for exercise in split} == {"push", "pull", "legs"}


def file_items() -> list:
    return [item for path in FILES for item in read_items(path.read_bytes())]
