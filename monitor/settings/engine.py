"""The settings of the engine that computes the windows."""

from __future__ import annotations

import os
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from monitor.core.settings import Settings
from monitor.core.text import NAME_LENGTH, quoted

_MEMORY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(MiB|GiB|MB|GB)")
_LEAST_MEMORY_MB, _MOST_MEMORY_MB = 64, 100_000_000


def _checked_memory(value: str) -> str:
    match = _MEMORY.fullmatch(value)
    if match is None:
        raise ValueError(
            f"{quoted(value, NAME_LENGTH)} is not an amount of memory; write it as 512MiB or 2GiB"
        )
    megabytes = float(match[1]) * (1000 if match[2].startswith("G") else 1)
    if not _LEAST_MEMORY_MB <= megabytes <= _MOST_MEMORY_MB:
        raise ValueError(f"{value!r} is out of range; the engine needs at least 64MiB")
    return value


_MASTER = re.compile(r"local(\[(\d{1,4}|\*)\])?|spark://[^\s,]+(,[^\s,]+)*|yarn|k8s://\S+")


class EngineSettings(Settings):
    """The engine that computes the windows. The index of files is always built by the embedded engine."""

    kind: Literal["duckdb", "spark"] = Field("duckdb", description="spark needs the extra `spark` and Java")
    threads: int | None = Field(
        None, ge=1, le=1024, description="threads of the embedded engine; default: one per core"
    )
    workers: int | None = Field(
        None,
        ge=1,
        le=256,
        description="processes that judge, if there are several recommenders or many windows; they share "
        "`memory`. Default: one per core. Spark always has one",
    )
    memory: Annotated[str, AfterValidator(_checked_memory)] = Field(
        "1GiB",
        description="such as 512MiB or 2GiB; beyond it the embedded engine writes to the state folder. "
        "Rules in SQL may use the same amount again",
    )
    url: str = Field(
        "local[*]", description="Spark's master: local[4], spark://host:7077, yarn, k8s://https://host:443"
    )
    spark_from: int = Field(
        1_000_000,
        ge=0,
        description="exposures of a window from which on Spark computes it; the embedded engine computes "
        "smaller ones, in a second or two. 0: Spark computes every window",
    )
    options: dict[str, str] = Field(
        default_factory=dict, description="Spark's own settings; every name begins with spark."
    )

    @property
    def processes(self) -> int:
        """How many processes judge at most.

        >>> EngineSettings(workers=4).processes, EngineSettings(kind="spark", workers=4).processes
        (4, 1)
        """
        if self.kind == "spark":
            return 1
        return self.workers or os.cpu_count() or 1

    @field_validator("url")
    @classmethod
    def _is_a_master(cls, value: str) -> str:
        if not _MASTER.fullmatch(value):
            raise ValueError(
                f"{quoted(value)} is not a Spark master; write local[4], spark://host:7077, yarn or k8s://..."
            )
        return value

    @field_validator("options")
    @classmethod
    def _are_options_of_spark(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not name.startswith("spark."):
                raise ValueError(f"{quoted(name)} is not a Spark setting; their names begin with spark.")
        return value

    def shared(self, processes: int) -> str:
        """The part of `memory` for each of so many processes, but at least what an engine needs.

        >>> EngineSettings(memory="1GiB").shared(2), EngineSettings(memory="100MB").shared(8)
        ('512MiB', '64MiB')
        """
        match = _MEMORY.fullmatch(self.memory)
        assert match is not None  # it was validated
        factor = {"MiB": 2**20, "GiB": 2**30, "MB": 10**6, "GB": 10**9}[match[2]]
        part = float(match[1]) * factor / processes / 2**20
        return f"{max(_LEAST_MEMORY_MB, int(part))}MiB"

    @model_validator(mode="after")
    def _settings_of_spark_need_spark(self) -> EngineSettings:
        given = [name for name in ("url", "options", "spark_from") if name in self.model_fields_set]
        if self.kind != "spark" and given:
            raise ValueError(f"{given[0]} is for Spark only; it needs kind: spark")
        return self
