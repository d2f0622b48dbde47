"""What a message claims was done: sentences in, claims out. Wording only; evidence is matched elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from otelmon.checks.lib.claims_language import Form, Language, language_of
from otelmon.checks.lib.values import EMAIL, fold, runs

MAX_MESSAGE = 24_000  # characters of a message that are read
MAX_SENTENCE = 600
MAX_CLAIMS = 40  # of one message

# "vom 2. April" is one sentence.
_BREAK = re.compile(
    r"(?:(?<=[!?…])|(?<=\D\.)|(?<=\d\.)(?!\s+(?:januar|februar|marz|april|mai|juni|juli|august|(?:sept|okto|novem|dezem)(?:em)?ber)\b))"
    r"\s+(?=\S)|\n+|;\s+"
)
_MARKUP = re.compile(
    r"[*`>|~]+|(?<!\w)[_#]+(?!\w)|(?<!\w)_+|_+(?!\w)|^\s*(?:[-•–—+]|\d{1,2}[.)])\s+|[^\w\s.,:;!?'\"’“”()@/%$€£#&+\-<>=]"
)
_BULLET = re.compile(r"^\s*(?:[-•*+–—]|\d{1,2}[.)])\s+")
_QUOTED = re.compile(r"[\"“](?:[^\"“”\s]+\s+){3,40}[^\"“”\s]+[\"”]")
_ASIDE = re.compile(r"\([^()]{1,60}\)")
_FILE = re.compile(r"(?<![\w@/.])(?:[\w\-]+/)*[\w\-]+\.(?=[a-z0-9]*[a-z])[a-z0-9]{1,5}(?![\w/])")
_ID = re.compile(r"(?<!\w)#?(?=[\w\-]*\d)[a-z0-9]+(?:[-_][a-z0-9]+)*(?!\w)")
_CLAUSE = re.compile(r"[,:;()]|\s[-–—]\s|\b(?:but|however|pero|aber)\b")
_AND = re.compile(r"\b(?:and|und|y)\b")
_SAYING = (
    "message",
    "content",
    "text",
    "answer",
    "response",
    "reply",
    "output",
    "mensaje",
    "respuesta",
    "nachricht",
    "antwort",
)
_WEB = frozenset(("com", "org", "net", "io", "gov", "edu", "example", "dev"))


class Claim(msgspec.Struct, frozen=True):
    """A statement that something was done.

    `verb` as written (folded), `classes` of verbs it may be of ("generic" for processed, done);
    `form`: "strong" (has been, I have), "state" (is), "past" (was), "bare" (no auxiliary);
    `active` when the speaker names himself as the one who did it; `nouns` around the verb, the
    nearest last; `ids` and `emails` named in its clause, `files` in its sentence; `denies` for "nothing was changed";
    `reported` when it tells what a record says; `parts` of a list, "and one checked bag"; `addressed` when it speaks of what is the
    listener's ("your order").
    """

    sentence: str
    verb: str
    classes: frozenset[str]
    form: Form
    active: bool = False
    nouns: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()
    denies: bool = False
    reported: bool = False
    addressed: bool = False


class Reading(msgspec.Struct, frozen=True):
    """What a message says: its claims, whether it asks for approval of a draft, and admits trouble."""

    claims: tuple[Claim, ...]
    asks_approval: bool
    honest: bool
    reads: str = ""


@lru_cache(maxsize=512)
def read_message(text: str) -> Reading:
    """The claims of a message, in order; remembered for messages seen lately."""
    text = spoken(text[:MAX_MESSAGE])
    tongue = language_of(text)
    folded = fold(text).replace("’", "'")
    claims: list[Claim] = []
    for raw, sentence in sentences(folded, tongue):
        if len(claims) >= MAX_CLAIMS:
            break
        claims.extend(_claims_of(raw, sentence, tongue))
    reading = tongue.patterns["reading"].search(folded)
    return Reading(
        tuple(claims[:MAX_CLAIMS]),
        bool(tongue.patterns["approval"].search(folded)),
        bool(tongue.patterns["honest"].search(folded)),
        _around(folded, reading.start()) if reading else "",
    )


def spoken(text: str) -> str:
    """What a message says: the strings of `{"message": "..."}` where a model answers in JSON, else the text."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    said = [value for key, value in data.items() if key in _SAYING and isinstance(value, str)]
    return "\n".join(said) or text


def _around(text: str, start: int) -> str:
    return " ".join(text[start : start + 160].split())


def sentences(folded: str, tongue: Language) -> Iterator[tuple[str, str]]:
    """(as written, without markup) of each sentence; lists under a conditional line are left out."""
    conditional = False
    for line in folded.split("\n"):
        bullet = bool(_BULLET.match(line))
        if conditional and bullet:
            continue
        if line.strip() and not bullet:
            conditional = False
        for raw in _BREAK.split(line):
            plain = _ASIDE.sub(" ", _QUOTED.sub(" ", raw[:MAX_SENTENCE]))
            sentence = " ".join(_MARKUP.sub(" ", plain).split())
            if sentence:
                yield raw.strip()[:MAX_SENTENCE], sentence
        if line.rstrip(" *_").endswith(":"):
            conditional = bool(tongue.patterns["conditional_header"].search(line))


def _claims_of(raw: str, sentence: str, tongue: Language) -> Iterator[Claim]:
    if tongue.patterns["question"].search(sentence):
        return
    denial = _denial(sentence, tongue)
    if denial:
        yield denial
    taken: list[tuple[int, int]] = []
    for form, patterns in tongue.forms.items():
        for pattern in patterns:
            for match in pattern.finditer(sentence):
                if _overlaps(match.span("verb"), taken) or not _holds(sentence, match, form, tongue):
                    continue
                taken.append(match.span("verb"))
                if match.group("verb") in tongue.composing and not _files(sentence):
                    continue
                first = _claim(raw, sentence, match.start(), match.span("verb"), form, tongue, taken)
                yield first
                yield from _chain(raw, sentence, match.end("verb"), first, taken, tongue)
    placed = tongue.placed.search(sentence)
    if placed and _clear(sentence, placed.start(), tongue):
        yield _placed(raw, sentence, placed, tongue)


def _overlaps(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    return any(start < span[1] and span[0] < end for start, end in taken)


def _clause_before(sentence: str, position: int) -> str:
    """The clause to the left of a position."""
    left = sentence[:position]
    cut = [match.end() for match in _CLAUSE.finditer(left)]
    return left[cut[-1] :] if cut else left


def _clear(sentence: str, start: int, tongue: Language) -> bool:
    """Nothing to the left makes it a condition, a plan, a denial or somebody else's deed."""
    clause = tongue.patterns["announced"].sub(" ", _clause_before(sentence, start))
    return not (
        tongue.patterns["modal"].search(sentence[:start])
        or tongue.patterns["conditional"].search(clause)
        or tongue.patterns["denial"].search(clause)
    )


def _holds(sentence: str, match: re.Match[str], form: Form, tongue: Language) -> bool:
    start = match.start()
    if not _clear(sentence, start, tongue):
        return False
    inside = sentence[start : match.start("verb")]
    if match.group("verb") in tongue.passive_only and _is_active(inside):
        return False
    if tongue.patterns["denial"].search(inside):
        return False
    if form == "bare":
        around = inside + " " + _CLAUSE.split(sentence[match.end("verb") :], maxsplit=1)[0]
        return not (tongue.patterns["conditional"].search(sentence) or tongue.auxiliary & set(runs(around)))
    return not (form == "strong" and tongue.patterns["others"].search(_clause_before(sentence, start).rstrip() + " "))


def _claim(
    raw: str,
    sentence: str,
    start: int,
    verb: tuple[int, int],
    form: Form,
    tongue: Language,
    taken: Sequence[tuple[int, int]],
    active: bool | None = None,
) -> Claim:
    word = sentence[verb[0] : verb[1]]
    before = _clause_before(sentence, start)
    since = max((end for _, end in taken if end <= start), default=0)
    after = _CLAUSE.split(sentence[verb[1] :], maxsplit=1)[0]
    object_part = _AND.split(after, maxsplit=1)[0]
    spoken = form == "strong" and start < verb[0] and _is_active(sentence[start : verb[0]])
    mine = spoken if active is None else active
    clause = f"{before}{sentence[start : verb[1]]}{after}"
    nouns_text = (
        object_part[:80] if mine or start == verb[0] else before[-(start - since) :] + sentence[start : verb[0]]
    )
    classes = tongue.classes_of.get(word, frozenset())
    if "create" in classes and tongue.patterns["money"].search(nouns_text):
        classes = frozenset(("refund", "pay"))  # "the refund was added to your balance"
    return Claim(
        sentence=raw,
        verb=word,
        classes=classes,
        form=form,
        active=mine,
        nouns=_nouns(nouns_text, tongue),
        ids=tuple(_ID.findall(clause))[:12],
        emails=tuple(EMAIL.findall(clause))[:6],
        files=_files(sentence),
        parts=_parts(after, tongue),
        reported=bool(tongue.patterns["reported"].search(before) or tongue.patterns["source"].search(sentence)),
        addressed=bool(tongue.patterns["addressed"].search(sentence)),
    )


def _is_active(words: str) -> bool:
    return bool(re.match(r"(?:i|we|it|he|hemos|ich|wir|habe|haben)\b", words.strip()))


def _chain(
    raw: str, sentence: str, end: int, first: Claim, taken: list[tuple[int, int]], tongue: Language
) -> Iterator[Claim]:
    """Verbs that go on with the form before them: "created it and pushed the file"."""
    for match in tongue.chained.finditer(sentence, end):
        span = match.span("verb")
        if not _overlaps(span, taken) and _clear(sentence, match.start(), tongue):
            taken.append(span)
            yield _claim(raw, sentence, match.start(), span, first.form, tongue, taken, active=first.active)


def _placed(raw: str, sentence: str, match: re.Match[str], tongue: Language) -> Claim:
    nouns = _nouns(sentence[: match.start()] + " " + match.group().rsplit(" ", 1)[-1], tongue)
    classes = frozenset((tongue.placed_class,))
    return Claim(raw, match.group(), classes, "state", nouns=nouns, files=_files(sentence))


def _denial(sentence: str, tongue: Language) -> Claim | None:
    """ "No data was changed", "nothing was published": a denial of any effect, without limits."""
    match = tongue.patterns["denied_anything"].search(sentence)
    if match is None or tongue.patterns["denial_limits"].search(sentence):
        return None
    said = _CLAUSE.split(sentence[match.end() :], maxsplit=1)[0]
    if tongue.patterns["prepositions"].search(said) and not tongue.patterns["everything"].search(said):
        return None  # "no changes were made to the other booking" denies a part only
    rest = runs(said)
    window = rest[:3] + runs(match.group())
    for word in window:
        classes = tongue.classes_of.get(word) or tongue.bases.get(word)
        if tongue.patterns["denial_verbs"].fullmatch(word):
            return Claim(sentence, word, frozenset(("any",)), "past", denies=True)
        if classes and "generic" not in classes:
            return Claim(sentence, word, classes, "past", denies=True)
    return None


def _nouns(text: str, tongue: Language) -> tuple[str, ...]:
    """The words of a noun phrase that carry meaning, up to its first preposition."""
    text = tongue.patterns["prepositions"].split(text.strip(), maxsplit=1)[0]
    words = [word for word in runs(text) if word not in tongue.stop and len(word) > 2 and not word.isdigit()]
    words = [word for word in words if word not in tongue.auxiliary and not word.endswith(("ly", "mente"))]
    return tuple(words[-8:])


_PART = re.compile(
    r"\b(?:with|include|including|and|plus|mit|und|inklusive|con|y|incluyendo)\s+"
    r"(?:a|an|one|two|three|four|\d{1,2}|extra|additional|ein|eine|zwei|un|una|dos)\s+((?:\w+\s*){1,3})"
)


def _parts(after: str, tongue: Language) -> tuple[tuple[str, ...], ...]:
    """The further things a claim lists: "with the new flights and one checked bag"."""
    return tuple(_nouns(match.group(1), tongue) for match in _PART.finditer(after[:200]))


def _files(sentence: str) -> tuple[str, ...]:
    clean = EMAIL.sub(" ", sentence)
    return tuple(name for name in _FILE.findall(clean) if name.rsplit(".", 1)[-1] not in _WEB)[:12]
