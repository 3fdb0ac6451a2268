"""What a team can set about its models, the diagnosis of their gaps included."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from monitor.settings.diagnosis import DiagnosisSettings
from monitor.settings.models import ModelSettings


class DiagnosedModels(ModelSettings):
    """How the models are judged by the log of samples, and their gaps explained; see docs/models.md."""

    scorer: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] | None = Field(
        None,
        description="module:function, the model's own scoring: it gets a pandas frame of the features and "
        "gives one number a row. With it the diagnosis rescores; without it, it learns the scores' shape",
    )
    diagnosis: DiagnosisSettings = DiagnosisSettings()
