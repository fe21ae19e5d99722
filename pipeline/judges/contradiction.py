"""Whether a reply says beside its verdict, in keys that decide nothing, the opposite of it: flagged, for one rule decides (reliability R125)."""

import re
from typing import Final

from pipeline.model.result import Outcome

_ALSO: Final = re.compile(r'"(?:pass|passed)"\s*:\s*(true|false)', re.IGNORECASE)


def contradicts(raw: str, outcome: Outcome) -> bool:
    """Whether a raw reply that came to a decided outcome also says ``pass`` or ``passed`` and means the other one."""
    said = {match[1].lower() == "true" for match in _ALSO.finditer(raw)}
    return outcome.decided and bool(said) and said != {outcome is Outcome.PASS}
