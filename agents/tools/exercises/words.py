"""Convert text to search words: lower-cased Unicode words, and pairs of characters for Chinese.

Questions are sentences, so words of any sentence about training (帮我, 推荐, "good exercises for") are
dropped, and spellings of one thing become one (push-ups and push up, 臥推 and 卧推). Texts and queries
go through the same function, so both have the same words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

LONGEST_QUERY: Final = 2_000
SPLIT: Final = "三分化"
SPLIT_WORD: Final = "分化"

_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")
_SIMPLIFIED = str.maketrans(
    "臥體訓練動鈴槓啞彎舉劃側飛鳥懸腳頸屬時間個幾樣麼請給幫薦雙單繩軸墊機壺擺蕩農戰箱減腦頭後發圓馬貓",
    "卧体训练动铃杠哑弯举划侧飞鸟悬脚颈属时间个几样么请给帮荐双单绳轴垫机壶摆荡农战箱减脑头后发圆马猫",
)
_COMPOUNDS = re.compile(
    r"\b(push|pull|chin|sit|step|warm|press|get)[\s-]+(ups?)\b|\b(cool)[\s-]+(downs?)\b"
    r"|\b(pull|push)[\s-]+(downs?)\b|\b(dead)[\s-]+(lifts?)\b|\b(dumb|bar|kettle)[\s-]+(bells?)\b"
    r"|\b(upper|lower|full|total|whole)[\s-]+(body|back)\b|\b(body)[\s-]+(weight)\b|\b(six)[\s-]+(packs?)\b"
)
_CHINESE_FILLER = re.compile(
    "帮我|给我|教我|告诉我|请问|我想要|我想|我要|想要|我是|推荐|介绍|安排|制定|设计|来一份|来一个|来点|一份|一套|一组|一个|一些|一下"
    "|几个|几种|哪些|哪个|哪种|什么样|为什么|什么|怎么样|怎么|怎样|如何|可不可以|能不能|可以|有没有|应该|适合|比较|最好的|最好|最有效"
    "|有效的|正确|标准|动作|训练|锻炼|健身|运动|计划|方案|方法|今天|明天|每天|每周|一周|一天|周[一二三四五六日末]|星期[一二三四五六日天]"
    "|礼拜[一二三四五六日天]|次数|[的了吗呢吧啊呀请帮我你您想做练用]"
)
_ENGLISH_FILLER: Final = frozenset(
    " ".join(
        (
            "a an the i me my we you your it its is are am be do does did doing can could should",
            "would will shall want need like please help give show tell recommend suggest suggestion",
            "make create build list find search design what whats which who how when where why many",
            "much for of to in on at with without and or but from by as that this these those some",
            "any all no not there if so just about into using use have has had get got im id ive best",
            "good great better top effective efficient proper properly correct correctly right form",
            "exercise workout work out routine training train plan program programme session day week",
            "weekly daily month today tomorrow monday tuesday wednesday thursday friday saturday",
            "sunday fitness gym movement move muscle set rep grow bigger stronger strong strengthen",
            "equipment weights only target",
        )
    ).split()
)
_IRREGULAR: Final = {
    "calves": "calf",
    "flyes": "fly",
    "flys": "fly",
    "flye": "fly",
    "stretching": "stretch",
}
_SPELLINGS: Final = tuple(
    (re.compile(pattern, re.VERBOSE), replacement)
    for pattern, replacement in (
        (
            r"""(?<!\d)\d{1,3}\W{0,3}(days?|times?|sets?|reps?|weeks?|minutes?|mins?|exercises?|moves?)\b
            |(?<!\d)\d{1,3}\W?(天|次|组|个|周|分钟)""",
            " ",
        ),
        (r"腰(疼|痛|酸|不好|不舒服|伤|突|椎|肌劳损)|\b(lower)?back\W+pain\b", " 护腰 下背 "),
        (r"膝盖?(疼|痛|酸|不好|不舒服|伤|有伤|受伤)|\b(bad|sore|weak)\W+knees?\b", " 膝盖友好 "),
        (
            r"""[二两三四五]分化|推拉腿|推、拉、腿|\bppl\b|\bpush\W+pull\b(\W+(and\W+)?legs?\b)?
            |\bsplit\b(?!\W+(squat|jerk|lunge|jump|stance))""",
            f" {SPLIT} ",
        ),
        (
            r"""(没有|没|无|不用|不需要|不靠)(任何)?(健身)?(器械|器材|设备|工具)|\bequipment\W+free\b
            |\b(no|without|zero)\W+(any\W+)?(equipment|gear|weights|machines?|gym)\b""",
            " 自重 bodyweight ",
        ),
        (
            r"""(肩膀?|肩颈|颈椎?|脖子)(疼|痛|酸|不舒服|僵硬?)
            |\b(neck|shoulders?)(\W+and\W+(neck|shoulders?))?\W+pain\b""",
            " 肩 体态 ",
        ),
        (r"\blow\W+impact\b|低冲击", " 膝盖友好 "),
        (r"\b(single|one)\W+leg(ged)?\b", " 单腿 "),
        (r"\bupper\W+chest\b|上胸部?", " 上胸 "),
        (r"\bpush\W+days?\b", " 推日 "),
        (r"\bpull\W+days?\b", " 拉日 "),
        (r"\blegs?\W+days?\b|练腿日", " 腿日 腿 "),
        (r"\bbench(press(es)?)\b", "bench press"),
        (r"\bknee\W+friendly\b", " 膝盖友好 "),
        (r"\bhotel(\W+room)?\b|酒店|宿舍|出差", " 自重 bodyweight "),
    )
)
_PLAN = re.compile(
    r"(训练|健身|锻炼|运动)\W*(计划|方案)|\b(workout|training|fitness|gym)\W+(plan|program|routine)"
)
_WEEKDAY = re.compile(
    r"(?:周|星期|礼拜)[一二三四五六日天]|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
)


class Query(Struct, frozen=True):
    """The search words of a question; `wants_split` is whether it is about several training days."""

    words: tuple[str, ...]
    wants_split: bool


def words(text: str) -> tuple[str, ...]:
    """Return the distinct search words of a text, in order of appearance."""
    return tuple(dict.fromkeys(_each_word(_plain(text))))


def read_query(query: str) -> Query:
    """Return the search words of a question; a question for just a plan is one for a split."""
    plain = _plain(query[:LONGEST_QUERY])[:LONGEST_QUERY]
    days = len(_WEEKDAY.findall(plain))
    wants_plan = bool(_PLAN.search(plain))
    for spelling, replacement in _SPELLINGS:
        plain = spelling.sub(replacement, plain)
    found = tuple(dict.fromkeys(_each_word(plain)))
    if not found and wants_plan:
        found = words(SPLIT)
    return Query(words=found, wants_split=SPLIT_WORD in found or days > 1)


def is_chinese_pair(word: str) -> bool:
    """Return whether a search word is two Chinese characters."""
    return len(word) == 2 and bool(_IS_CJK.match(word))


def _plain(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).lower().translate(_SIMPLIFIED)
    return _COMPOUNDS.sub(lambda match: "".join(part for part in match.groups() if part), plain)


def _each_word(plain: str) -> Iterator[str]:
    for run in _WORD.findall(_CHINESE_FILLER.sub(" ", plain)):
        if _IS_CJK.match(run):
            yield from _pairs(run)
        elif (stem := _stem(run)) not in _ENGLISH_FILLER and run not in _ENGLISH_FILLER:
            yield stem


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for start in range(len(run) - 1):
        yield run[start : start + 2]


def _stem(word: str) -> str:
    """Return the approximate singular: presses → press, lunges → lunge, flies → fly."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
