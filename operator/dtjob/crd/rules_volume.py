"""Rules about the volume of the checkpoints: one source, and one that can be written to."""

from __future__ import annotations

from dtjob.api.volume_sources import MAY_BE_READ_ONLY, READ_ONLY_SOURCES, VOLUME_SOURCES
from dtjob.crd.rule import Reason, Rule, Value


def _read_only(source: str) -> Rule:
    return Rule(
        "spec.checkpoint.volume",
        f"!has(self.{source})",
        lambda volume: source not in volume,
        f"a volume from {source} is read-only in a pod, and checkpoints are written: use a persistentVolumeClaim, such "
        "as {persistentVolumeClaim: {claimName: digits}}",
        source,
        Reason.FORBIDDEN,
        for_new=True,
    )


def _flagged_read_only(source: str) -> Rule:
    def holds(settings: Value) -> bool:
        return settings.get("readOnly") is not True

    return Rule(
        f"spec.checkpoint.volume.{source}",
        "!has(self.readOnly) || !self.readOnly",
        holds,
        "this volume is read-only, and checkpoints are written to it: remove readOnly",
        "readOnly",
        Reason.FORBIDDEN,
        for_new=True,
    )


VOLUME_RULES = (
    Rule(
        "spec.checkpoint.volume",
        f"[{', '.join(f'has(self.{source})' for source in VOLUME_SOURCES)}].filter(x, x).size() == 1",
        lambda volume: sum(source in volume for source in VOLUME_SOURCES) == 1,
        "a volume is exactly one volume source, such as {persistentVolumeClaim: {claimName: digits}}",
    ),
    Rule(
        "spec.checkpoint.volume",
        "!has(self.name)",
        lambda volume: "name" not in volume,
        "the volume's name belongs to dtjob: remove it, and keep the volume source alone",
        "name",
        Reason.FORBIDDEN,
    ),
    *(_read_only(source) for source in READ_ONLY_SOURCES),
    *(_flagged_read_only(source) for source in MAY_BE_READ_ONLY),
)
