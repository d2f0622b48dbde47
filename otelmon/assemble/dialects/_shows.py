"""What an instrumentation can show of a run, and the setting that would make it show more."""

from __future__ import annotations

from typing import Literal

import msgspec

Amount = Literal["yes", "setting", "partly", "no"]


class Shows(msgspec.Struct, frozen=True, kw_only=True):
    """What spans of a dialect carry: "yes" as it comes, "setting" when `setting` is on, "partly" see
    `note`, "no" never. `setting` is the exact setting of that instrumentation that turns missing
    content on; "" when it has none. `instrumentation` is what the dialect is called elsewhere."""

    instrumentation: str
    arguments: Amount = "yes"
    results: Amount = "yes"
    definitions: Amount = "yes"
    user_text: Amount = "yes"
    final_message: Amount = "yes"
    conversation: Amount = "yes"
    errors: Amount = "yes"
    timeouts: Amount = "yes"
    setting: str = ""
    note: str = ""
