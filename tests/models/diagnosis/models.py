"""The models of the worlds: boosting, logistic regression, forests, each with its own coding of features."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from threadpoolctl import threadpool_limits


def estimator(kind, numbers, texts, overfitted=False):
    """A model with its own coding of features; an overfitted one learns its rows by heart."""
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    if kind == "logistic":
        scale = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
        coding = (scale, list(numbers)), (OneHotEncoder(handle_unknown="ignore"), list(texts))
        model = LogisticRegression(C=100.0 if overfitted else 0.1, max_iter=300 if overfitted else 60)
    elif kind == "boosting":
        coding = ("passthrough", list(numbers)), (ordinal, list(texts))
        model = (
            HistGradientBoostingClassifier(
                max_iter=120, learning_rate=0.3, min_samples_leaf=3, random_state=0
            )
            if overfitted
            else HistGradientBoostingClassifier(
                max_iter=40, learning_rate=0.1, max_leaf_nodes=8, min_samples_leaf=200, random_state=0
            )
        )
    else:
        coding = (SimpleImputer(strategy="median"), list(numbers)), (ordinal, list(texts))
        model = (
            RandomForestClassifier(30, random_state=0)
            if overfitted
            else RandomForestClassifier(20, min_samples_leaf=50, max_samples=0.25, random_state=0)
        )
    return make_pipeline(make_column_transformer(*coding), model)


class Model:
    """A fitted estimator that takes features by name, as a user's own scoring function does."""

    def __init__(self, kind, rows, labels, overfitted=False):
        self.numbers = [name for name, values in rows.items() if values.dtype != object]
        self.texts = [name for name, values in rows.items() if values.dtype == object]
        self.pipeline = estimator(kind, self.numbers, self.texts, overfitted)
        with threadpool_limits(1):  # on a busy machine threads mostly wait for each other
            self.pipeline.fit(self._frame(rows), labels)

    def _frame(self, rows: Mapping):
        texts = {name: pd.Series(rows[name], dtype=object).fillna("").astype(object) for name in self.texts}
        return pd.DataFrame({name: rows[name] for name in self.numbers} | texts)

    def __call__(self, rows: Mapping):
        return self.pipeline.predict_proba(self._frame(rows))[:, 1]
