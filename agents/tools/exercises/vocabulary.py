"""Common words for the library's enum values, in Chinese and English.

Each entry becomes search words of every exercise with the enum value, so that 练背 finds an exercise
that was imported in English. Add a colloquial word here; add a name of one exercise to its aliases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MUSCLES: Final[Mapping[str, str]] = {
    "CHEST": "胸 胸部 胸肌 胸大肌 chest pec pectoral",
    "BACK": "背 背部 背肌 背阔肌 后背 back lats lat",
    "SHOULDERS": "肩 肩部 肩膀 三角肌 shoulder delts deltoid",
    "ARMS": "臂 手臂 胳膊 麒麟臂 arm",
    "BICEPS": "二头 肱二头 二头肌 biceps arm 手臂",
    "TRICEPS": "三头 肱三头 三头肌 拜拜肉 蝴蝶袖 triceps arm 手臂",
    "FOREARMS": "前臂 小臂 握力 手腕 forearm grip wrist",
    "LEGS": "腿 腿部 大腿 下肢 leg thigh",
    "QUADRICEPS": "股四头 四头肌 大腿前侧 quads quadriceps",
    "HAMSTRINGS": "腘绳肌 股二头 大腿后侧 腿后侧 hamstrings",
    "GLUTES": "臀 臀部 臀大肌 屁股 翘臀 蜜桃臀 glutes butt booty bum",
    "CALVES": "小腿 小腿肌 腓肠肌 calf calves",
    "CORE": "核心 腹 腹部 腹肌 肚子 瘦肚子 小肚子 马甲线 腰腹 core abs ab abdominal belly stomach",
    "ABS": "腹 腹部 腹肌 肚子 六块腹肌 马甲线 abs ab abdominal belly six pack sixpack",
    "OBLIQUES": "侧腹 腹斜肌 腰 瘦腰 人鱼线 obliques waist love handles",
    "LOWER_BACK": "下背 下背部 腰 腰部 竖脊肌 lower back, lumbar",
    "TRAPEZIUS": "斜方肌 上背 traps trapezius, upper back",
    "FULL_BODY": "全身 全身性 full body, total body, whole body",
    "CARDIO": "有氧 心肺 减肥 减脂 燃脂 瘦身 减重 耐力 cardio aerobic conditioning endurance "
    "fat loss lose weight slim",
}
GROUP_OF: Final[Mapping[str, str]] = {
    **dict.fromkeys(("BICEPS", "TRICEPS", "FOREARMS"), "ARMS"),
    **dict.fromkeys(("QUADRICEPS", "HAMSTRINGS", "GLUTES", "CALVES"), "LEGS"),
    **dict.fromkeys(("ABS", "OBLIQUES"), "CORE"),
    **dict.fromkeys(("LOWER_BACK", "TRAPEZIUS"), "BACK"),
}
CATEGORIES: Final[Mapping[str, str]] = {
    "UPPER_BODY": "上肢 上半身 upper body",
    "LOWER_BODY": "下肢 下半身 lower body",
    "FLEXIBILITY": "拉伸 柔韧 灵活性 活动度 放松 热身 恢复 stretch stretching flexibility mobility "
    "warmup cooldown recovery",
    "STRENGTH": "力量 strength",
}
EQUIPMENT: Final[Mapping[str, str]] = {
    "NONE": "徒手 自重 居家 在家 家里 宿舍 酒店 bodyweight calisthenics home hotel",
    "BARBELL": "杠铃 barbell",
    "DUMBBELL": "哑铃 dumbbell",
    "KETTLEBELL": "壶铃 kettlebell",
    "CABLE": "绳索 龙门架 cable",
    "CABLES": "绳索 龙门架 cable",
    "MACHINE": "器械 固定器械 machine",
    "PULL_UP_BAR": "单杠 pullup bar",
    "PARALLEL_BARS": "双杠 parallel bars dip bars",
    "RESISTANCE_BAND": "弹力带 弹力绳 阻力带 resistance band",
    "MEDICINE_BALL": "药球 medicine ball",
    "STABILITY_BALL": "瑞士球 健身球 stability ball",
    "FOAM_ROLLER": "泡沫轴 foam roller",
    "BENCH": "健身凳 长凳 bench",
    "SQUAT_RACK": "蹲架 rack",
    "SMITH_MACHINE": "史密斯 史密斯机 smith machine",
    "LEG_PRESS": "腿举机 machine",
    "LAT_PULLDOWN": "高位下拉器 machine",
    "ROWING_MACHINE": "划船机 rower ergometer",
    "ROWER": "划船机 rower ergometer",
    "TREADMILL": "跑步机 treadmill",
    "STATIONARY_BIKE": "单车 动感单车 健身车 bike",
    "BIKE": "单车 自行车 bike",
    "ELLIPTICAL": "椭圆机 elliptical",
    "SUSPENSION_TRAINER": "悬挂带 suspension trx",
    "TRX": "悬挂带 suspension trx",
    "BATTLE_ROPES": "战绳 battle rope",
    "BATTLE_ROPE": "战绳 battle rope",
    "PLYO_BOX": "跳箱 box",
    "AGILITY_LADDER": "绳梯 敏捷梯 agility ladder",
    "BALANCE_BALL": "平衡球 balance ball",
}
DIFFICULTIES: Final[Mapping[str, str]] = {
    "BEGINNER": "新手 初学者 入门 零基础 小白 beginner novice newbie easy",
    "NOVICE": "新手 初学者 beginner novice",
    "INTERMEDIATE": "中级 进阶 intermediate",
    "ADVANCED": "高级 高阶 advanced",
    "EXPERT": "高级 专家 advanced expert",
}
DAYS: Final[Mapping[str, str]] = {
    "push": "推 推日 推类 push 分化",
    "pull": "拉 拉日 拉类 pull 分化",
    "legs": "腿日 分化",
}
