"""Sentences without blanks between words, made of word lists: the test has other combinations of the same words."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wgcn import TextModel, WGCNTextClassifier
from wgcn.base.errors import WGCNWarning

# Per language and topic: who does it, what is done to what. Subjects and endings are the same for all topics.
SUBJECTS = {
    "chinese": ["我", "他们", "老师", "我的朋友", "那个人", "大家", "妈妈", "两个学生"],
    "japanese": ["私は", "彼らは", "先生が", "友達も", "あの人は", "みんなで", "母が", "学生たちは"],
    "thai": ["ฉัน", "พวกเขา", "ครู", "เพื่อนของฉัน", "คนนั้น", "ทุกคน", "แม่", "นักเรียนสองคน"],
}
TIMES = {
    "chinese": ["今天", "昨天晚上", "常常", "星期天", "又", "明天"],
    "japanese": ["今日", "昨日の夜", "いつも", "日曜日に", "また", "明日"],
    "thai": ["วันนี้", "เมื่อคืนนี้", "บ่อยๆ", "วันอาทิตย์", "อีกครั้ง", "พรุ่งนี้"],
}
# The verb comes before the object, but after it in Japanese.
PHRASES = {
    "chinese": {
        "food": (["吃了", "买了", "做了", "想吃"], ["米饭", "面条", "苹果", "鸡肉", "蔬菜汤", "豆腐"]),
        "sport": (["踢了", "看了", "参加了", "练习"], ["足球", "篮球比赛", "游泳", "乒乓球", "跑步", "网球"]),
        "travel": (["坐了", "订了", "等", "错过了"], ["飞机", "火车", "去北京的机票", "公共汽车", "地铁", "酒店"]),
    },
    "japanese": {
        "food": (
            ["を食べた", "を買った", "を作る", "が好きだ"],
            ["ご飯", "うどん", "りんご", "鶏肉", "味噌汁", "豆腐"],
        ),
        "sport": (
            ["の試合を見た", "を練習する", "に参加した", "が得意だ"],
            ["サッカー", "野球", "水泳", "卓球", "マラソン", "テニス"],
        ),
        "travel": (
            ["に乗った", "を予約した", "を待つ", "に遅れた"],
            ["飛行機", "新幹線", "東京行きの便", "バス", "地下鉄", "ホテル"],
        ),
    },
    "thai": {
        "food": (["กิน", "ซื้อ", "ทำอาหาร", "ชอบ"], ["ข้าวผัด", "ก๋วยเตี๋ยว", "แอปเปิล", "ไก่ย่าง", "แกงผัก", "เต้าหู้"]),
        "sport": (["เล่น", "ดูการแข่งขัน", "เข้าร่วม", "ฝึก"], ["ฟุตบอล", "บาสเกตบอล", "ว่ายน้ำ", "ปิงปอง", "วิ่งมาราธอน", "เทนนิส"]),
        "travel": (["นั่ง", "จอง", "รอ", "พลาด"], ["เครื่องบิน", "รถไฟ", "ตั๋วไปเชียงใหม่", "รถเมล์", "รถไฟฟ้า", "โรงแรม"]),
    },
}  # fmt: skip


def sentences(language: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return texts and topics for training, and those of other combinations of the same words for the test."""
    rng, parts = np.random.default_rng(0), ([], [], [], [])  # type: ignore[var-annotated]
    for topic, (verbs, objects) in PHRASES[language].items():
        pairs = list(itertools.product(verbs, objects))
        rng.shuffle(pairs)
        for number, (verb, thing) in enumerate(pairs):
            texts, topics = parts[:2] if number < len(pairs) // 2 else parts[2:]
            phrase = thing + verb if language == "japanese" else verb + thing
            for _ in range(3):
                texts.append(str(rng.choice(SUBJECTS[language])) + str(rng.choice(TIMES[language])) + phrase + "。")
                topics.append(topic)
    return parts


@pytest.mark.parametrize("language", PHRASES)
def test_characters_classify_what_words_cannot(language: str, tmp_path: Path) -> None:
    train, topics, test, expected = sentences(language)
    with pytest.warns(WGCNWarning, match='tokenizer="characters"'):
        whole = WGCNTextClassifier(subwords=0, n_jobs=1).fit(train, topics)
    model = WGCNTextClassifier(tokenizer="characters", n_jobs=1).fit(train, topics)
    assert np.mean(whole.predict(test) == np.array(expected)) < 0.5  # a third is chance
    assert np.mean(model.predict(test) == np.array(expected)) > 0.95

    model.save(tmp_path / "model")
    loaded = TextModel.load(tmp_path / "model")
    assert loaded.tokenizer == "characters"
    assert np.array_equal(loaded.predict_proba(test), model.predict_proba(test))


def test_seeds_are_words_of_any_length() -> None:
    train, topics, _, _ = sentences("chinese")
    seeds = {"food": ["米饭", "豆腐"], "sport": ["足球", "篮球比赛"], "travel": ["火车", "公共汽车"]}
    model = WGCNTextClassifier(tokenizer="characters", n_jobs=1).fit(train, seeds=seeds)
    assert np.mean(model.predict(train) == np.array(topics)) > 0.8


def test_the_command_line_predicts_the_same_with_numpy_alone(tmp_path: Path) -> None:
    train, topics, test, _ = sentences("thai")
    rows = "".join(f"{text},{topic}\n" for text, topic in zip(train, topics, strict=True))
    (tmp_path / "train.csv").write_text("text,label\n" + rows, encoding="utf-8")
    (tmp_path / "new.txt").write_text("\n".join(test), encoding="utf-8")
    fit = ["fit", "train.csv", "--tokenizer", "characters", "--model", "model"]
    runs = [fit, ["predict", "model", "new.txt"]]
    done = [
        subprocess.run(
            [sys.executable, "-c", "import sys; from wgcn.cli import main; sys.exit(main())", *run],
            cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONUTF8": "1"},
        )
        for run in runs
    ]  # fmt: skip
    assert "blanks between words" not in done[0].stderr
    fitted = WGCNTextClassifier(tokenizer="characters").fit(train, topics)  # compiled code is in memory from here on
    assert done[1].stdout.splitlines()[-len(test) :] == fitted.predict(test).tolist()
