"""The redactor that a configuration describes."""

from collections import defaultdict
from collections.abc import Iterable

from collectors.redaction.credentials import credentials
from collectors.redaction.finder import Finder, rule
from collectors.redaction.names import named
from collectors.redaction.personal import personal
from collectors.redaction.redactor import Redactor
from pipeline.config.redaction import Detector, RedactionSettings, RuleSettings


def redactor(settings: RedactionSettings) -> Redactor | None:
    """Return the redactor; None where redaction is switched off."""
    return None if settings.off else made_of(settings)


def made_of(settings: RedactionSettings) -> Redactor:
    """Return the redactor of all detectors and rules that are on."""
    by_name = settings.detectors.get(Detector.SECRET_NAME, True)
    everywhere = [one for one in (*credentials(), *personal(), *named()) if settings.detectors.get(Detector(one.name), True)]
    everywhere += _finders(one for one in settings.rules if not one.keys)
    there: defaultdict[str, list[RuleSettings]] = defaultdict(list)
    whole: dict[str, str] = {}
    for one in settings.rules:
        for key in one.keys:
            if one.pattern is None:
                whole[key] = one.name
            else:
                there[key].append(one)
    return Redactor(
        everywhere,
        by_name=by_name,
        whole=whole,
        under={
            key: Redactor([*everywhere, *_finders(rules)], by_name=by_name, whole=whole, rules=True)
            for key, rules in there.items()
        },
        rules=bool(settings.rules),
    )


def _finders(rules: Iterable[RuleSettings]) -> list[Finder]:
    return [rule(one.name, one.pattern) for one in rules if one.pattern is not None]
