"""Texts as people and models write them, in Chinese and English, by a seeded generator.

Words follow Zipf's law: a few stand in most messages, most in very few, as a search will find them.
`RARE` words stand in about one message of a hundred thousand.
"""

from __future__ import annotations

from itertools import accumulate
from random import Random
from typing import Final


def _split(words: str) -> list[str]:
    return words.split()


_CHINESE: Final = _split("""
    的 我 是 您 在 了 一个 可以 请 会议 安排 日程 时间 今天 明天 下午 上午 帮我 需要
    已经 创建 提醒 地点 天气 北京 上海 训练 动作 胸部 练习 每周 三次 卧推 哑铃 建议 注意
    休息 饮食 蛋白质 计划 修改 取消 通知 参会 人员 报告 总结 季度 提交 草稿 文件 项目
    进度 客户 合同 预算 价格 方案 设计 开发 测试 上线 问题 解决 数据 分析 图表 系统 用户
    登录 密码 邮件 电话 地址 订单 付款 退款 物流 快递 机票 酒店 高铁 出发 到达 路线 地铁
    步行 大约 分钟 小时 左右 如果 因为 所以 但是 然后 首先 其次 最后 重要 简单 方便 详细
    具体 情况 学习 英语 单词 语法 考试 成绩 老师 学生 作业 课程 医生 医院 预约 检查 结果
    健康 睡眠 压力 运动 跑步 游泳
""")
_CHARACTERS: Final = (
    "天地人你他她们来去上下左右大小多少高低长短新旧好坏美丑真假东西南北春夏秋冬风雨雷电山水火土金木日月星云"
    "江河湖海花草树鸟鱼虫马牛羊鸡狗猫龙虎门窗桌椅床灯书笔纸墨琴棋诗画歌舞酒茶米面油盐糖醋车船飞机路桥楼房"
    "城乡村市店厂校园医药军警法律政经商工农学思想感情爱恨喜怒哀乐生死病老幼男女父母兄弟姐妹夫妻朋友同事邻居"
)
_ENGLISH: Final = _split("""
    the to and of a in is you for it that with on your can be this have are will at please
    meeting schedule time today tomorrow afternoon morning help need already created reminder
    place weather plan training exercise chest weekly bench press dumbbell suggest note rest
    diet protein change cancel notify people report summary quarter submit draft file project
    progress customer contract budget price design develop test release problem solve data
    analysis chart system user login password email phone address order payment refund
    shipping flight hotel train leave arrive route walk about minutes hours if because so but
    then first second finally important simple convenient detailed specific case learn
    language words grammar exam grade teacher student homework course doctor hospital
    appointment check result health sleep
""")
_SYLLABLES: Final = _split("""
    ba con de fi gra hel in jo ka lo men nor op pra qui res sta tor un vel wex yor zin
""")
RARE: Final = {"zh": "麒麟阁", "en": "xylophone"}
COMMON: Final = {"zh": "会议", "en": "the"}
_RARELY: Final = 1e-5


class Writer:
    """Writes messages; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        tail = Random(1)
        more = ["".join(tail.choices(_CHARACTERS, k=tail.choice((2, 2, 3)))) for _ in range(8_000)]
        self._chinese = _CHINESE + more
        more = ["".join(tail.choices(_SYLLABLES, k=tail.choice((2, 3, 4)))) for _ in range(8_000)]
        self._english = _ENGLISH + more
        self._weights = {
            "zh": list(accumulate(1 / rank for rank in range(1, len(self._chinese) + 1))),
            "en": list(accumulate(1 / rank for rank in range(1, len(self._english) + 1))),
        }

    def text(self, language: str, words: int) -> str:
        """About so many words, in sentences."""
        known = self._chinese if language == "zh" else self._english
        chosen = self._random.choices(
            known,
            cum_weights=self._weights[language],
            k=self._random.randint(words // 2, words * 3 // 2),
        )
        if self._random.random() < _RARELY:
            chosen.append(RARE[language])
        space, comma, stop = ("", "，", "。") if language == "zh" else (" ", ", ", ". ")
        pieces = [space.join(chosen[start : start + 7]) for start in range(0, len(chosen), 7)]
        return comma.join(pieces) + stop.rstrip()
