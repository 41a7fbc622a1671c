"""Words for metrics in other languages, as scripts print them, in English."""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from sentinel.common.lazy_pattern import lazy_pattern

_WITHOUT_SPACES: Mapping[str, str] = {
    **dict.fromkeys(("损失", "損失", "손실"), "loss"),
    **dict.fromkeys(("准确率", "準確率", "正确率", "正解率", "정확도"), "accuracy"),
    **dict.fromkeys(("奖励", "獎勵", "報酬", "보상"), "reward"),
    **dict.fromkeys(("回报", "回報"), "return"),
    **dict.fromkeys(("训练", "訓練", "学習", "학습", "훈련"), "train"),
    **dict.fromkeys(("验证", "驗證", "検証", "검증"), "val"),
    **dict.fromkeys(("测试", "測試", "テスト", "테스트"), "test"),
    **dict.fromkeys(("平均", "평균"), "mean"),
    **dict.fromkeys(("最佳", "最高", "最好", "최고"), "best"),
    **dict.fromkeys(("累计", "累積", "누적"), "cumulative"),
    **dict.fromkeys(("学习率", "學習率", "学習率", "학습률"), "learning rate"),
    **dict.fromkeys(("集", "セット", "当前", "目前", "當前", "现在", "值"), " "),
    **dict.fromkeys(("回合", "エピソード", "에피소드"), "episode"),
    **dict.fromkeys(("价值", "價值"), "value"),
    **dict.fromkeys(("长度", "長度"), "length"),
    **dict.fromkeys(("回复", "回答", "响应", "回應"), "response"),
    **dict.fromkeys(("困惑度", "パープレキシティ"), "perplexity"),
    **dict.fromkeys(("轮次", "輪次"), "epoch"),
    **dict.fromkeys(("步数", "步骤", "步數", "步驟"), "step"),
    "策略": "policy",
    "散度": "divergence",
    "熵": "entropy",
    "生成": "gen",
    "梯度": "grad",
    "范数": "norm",
    "召回率": "recall",
    "精确率": "precision",
    "再現率": "recall",
    "成功率": "success rate",
    "得分": "score",
    "误差": "error",
}
"""Words of languages that write none apart, longer ones before those that they hold."""

_APART: Mapping[str, str] = {
    **dict.fromkeys(("perdida", "perda", "perte", "perdita", "verlust", "потеря", "потери"), "loss"),
    **dict.fromkeys(("exactitud", "acuracia", "exactitude", "accuratezza", "genauigkeit"), "accuracy"),
    **dict.fromkeys(("точность", "dokladnosc", "dogruluk"), "accuracy"),
    **dict.fromkeys(("recompensa", "recompense", "ricompensa", "belohnung", "награда"), "reward"),
    **dict.fromkeys(("entrenamiento", "treino", "treinamento", "entrainement", "addestramento"), "train"),
    **dict.fromkeys(("validacion", "validacao", "validazione", "validierung", "валидация"), "val"),
    **dict.fromkeys(("prueba", "teste"), "test"),
    **dict.fromkeys(("promedio", "moyenne", "durchschnittliche"), "mean"),
    **dict.fromkeys(("episodio", "episod"), "episode"),
    **dict.fromkeys(("totale", "totala"), "total"),
    **dict.fromkeys(("mejor", "melhor", "meilleure", "beste"), "best"),
    **dict.fromkeys(("acumulada", "cumulee"), "cumulative"),
}
"""Words without accents of languages that write each apart."""

_WORD = lazy_pattern(
    "|".join(
        [*sorted(_WITHOUT_SPACES, key=len, reverse=True), rf"(?<![^\W_])(?:{'|'.join(_APART)})s?(?![^\W_])"]
    ),
    re.IGNORECASE,
)


_BETWEEN = lazy_pattern(r"(?<![^\W_])(?:de|del|du|da|do|des|la|el|le|media|medio)(?![^\W_])", re.IGNORECASE)
"""What stands between such words."""


_HUMP = lazy_pattern("(?<=[a-z])(?=[A-Z])")


@lru_cache(maxsize=1 << 14)
def in_english(tag: str) -> str:
    """Return a tag with the words for metrics that other languages have in English."""
    plain = _HUMP.sub(" ", tag if tag.isascii() else _without_accents(tag))
    return _BETWEEN.sub(" ", _WORD.sub(_english, plain)) if _WORD.search(plain) else tag


def _english(word: re.Match[str]) -> str:
    text = word[0].lower()
    english = _WITHOUT_SPACES.get(text) or _APART.get(text) or _APART.get(text.removesuffix("s"), text)
    return f" {english} " if text in _WITHOUT_SPACES else english


def _without_accents(text: str) -> str:
    """Return a text whose Latin letters bear no accents."""
    return "".join(
        plain[0] if len(plain := unicodedata.normalize("NFD", letter)) > 1 and plain[0].isascii() else letter
        for letter in unicodedata.normalize("NFC", text)
    )
