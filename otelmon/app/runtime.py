"""The monitor in one process: bus, stages, doors and pages, started and stopped in the right order."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from otelmon.app.laws import load_laws
from otelmon.app.worker import Stage, Worker
from otelmon.assemble.stage import AssembleStage
from otelmon.bus import open_bus
from otelmon.bus.protocol import Bus, Outgoing
from otelmon.detect.ledger_stage import LedgerStage
from otelmon.detect.stage import DetectStage
from otelmon.receive.receiver import Packed, Receiver
from otelmon.store.database import Database
from otelmon.vocabulary.config import Config
from otelmon.vocabulary.messages import RECORDS, SPANS, Account, encode

log = logging.getLogger("otelmon")
STAGES = ("receive", "assemble", "detect", "store")
