"""What a tool's name says of its effect. The words are data: checks/data/verbs.toml."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import lru_cache
from importlib.resources import files

import msgspec

from otelmon.vocabulary.catalogue import Effect, Repeat

_JOINERS = frozenset(("and", "or", "y", "o", "und", "oder", "et", "ou", "e", "then"))
_OR = frozenset(("or", "o", "oder", "ou"))
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SENTENCE_END = re.compile(r"[.!?;:\n](?:\s|$)")
_SEPARATOR = re.compile(r"[\W_]+")
_PREFIX_WORDS, _SHORTEST_WORD, _NEAR = 2, 2, 3
_DESCRIBED = 200  # characters of a description that are read
STRENGTH: dict[Effect, int] = {"read": 0, "unknown": 1, "write": 2, "external_send": 3, "destructive": 4}


class VerbClass(msgspec.Struct, frozen=True):
    """The effect a word stands for, and whether doing it twice is two effects."""

    effect: Effect
    repeat: Repeat


_READ = VerbClass("read", "absolute")
_WRITE = VerbClass("write", "additive")
_ABSOLUTE = VerbClass("write", "absolute")
_PAY = VerbClass("destructive", "additive")
UNKNOWN = VerbClass("unknown", "additive")


class _Lexicon(msgspec.Struct, frozen=True):
    verbs: dict[str, VerbClass]
    generic: frozenset[str]
    nouns_too: frozenset[str]
    read_nouns: frozenset[str]
    heads: frozenset[str]
    after_heads: frozenset[str]
    objects: dict[str, VerbClass]
    handoff_verbs: frozenset[str]
    handoff_targets: frozenset[str]
    value_verbs: frozenset[str]
    values: frozenset[str]
    pairs: frozenset[str]
    acting_on: dict[tuple[str, str], VerbClass]
    first_nouns: frozenset[str]
    endings: tuple[str, ...]
    described_reads: frozenset[str]
    intro: frozenset[str]


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


def _with_umlauts(text: str) -> frozenset[str]:
    """German words as they are written without umlauts and as they are folded: loeschen, loschen."""
    folded = text.replace("ae", "a").replace("oe", "o").replace("ue", "u")
    return words(text) | words(folded)


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    data = tomllib.loads((files("otelmon.checks") / "data" / "verbs.toml").read_text("utf-8"))
    sections: tuple[tuple[VerbClass, dict[str, str]], ...] = (
        (_READ, data["read"]),
        (_WRITE, data["write"]["additive"]),
        (_ABSOLUTE, data["write"]["absolute"]),
        (VerbClass("external_send", "additive"), data["external_send"]),
        (_PAY, data["destructive"]["additive"]),
        (VerbClass("destructive", "absolute"), data["destructive"]["absolute"]),
    )
    verbs: dict[str, VerbClass] = {}
    for meaning, languages in sections:
        for language, text in languages.items():
            for word in words(text) if language != "de" else _with_umlauts(text):
                # One word of two languages: the stronger meaning, so no write is taken for a read.
                if word not in verbs or STRENGTH[verbs[word].effect] < STRENGTH[meaning.effect]:
                    verbs[word] = meaning
    objects = {word: _READ for word in words(data["objects"]["read"])}
    objects |= {word: _WRITE for word in words(data["objects"]["write"])}
    objects |= {word: _PAY for word in words(data["objects"]["money"])}
    return _Lexicon(
        verbs,
        words(data["generic"]["words"]),
        words(data["nouns_too"]["words"]),
        words(data["read_nouns"]["words"]),
        words(data["read_nouns"]["heads"]),
        words(data["read_nouns"]["after_heads"]),
        objects,
        words(data["handoff"]["verbs"]),
        words(data["handoff"]["targets"]),
        words(data["on_values"]["verbs"]),
        words(data["on_values"]["values"]),
        words(data["pairs"]["words"]),
        {
            (verb, thing): VerbClass(each["effect"], each["repeat"])
            for each in data["acting_on"]
            for verb in words(each["verbs"])
            for thing in words(each["things"])
        },
        words(data["read_nouns"]["first"]),
        tuple(data["read_nouns"]["endings"].split()),
        words(data["descriptions"]["reads"]),
        words(data["descriptions"]["intro"]),
    )


@lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[str, ...]:
    """The words of a name: camelCase, snake_case and kebab-case split, lower case, accents folded."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return tuple(w.lower() for w in _SEPARATOR.split(_CAMEL.sub("_", plain)) if w)


@lru_cache(maxsize=4096)
def classify_name(name: str) -> VerbClass:
    """The effect a tool's name stands for; UNKNOWN when no word of it says anything."""
    parts, lexicon = name_words(name), _lexicon()
    if not parts:
        return UNKNOWN
    if parts[0] in lexicon.handoff_verbs and lexicon.handoff_targets & set(parts[1:]):
        return _ABSOLUTE
    meanings = [_classify_part(_joined_pairs(part, lexicon), lexicon) for part in _split_joined(parts, lexicon)]
    strongest = max(meanings, key=lambda c: STRENGTH[c.effect])
    if len(meanings) > 1 and _OR & set(parts) and any(m.repeat == "absolute" for m in meanings):
        return VerbClass(strongest.effect, "absolute")  # get_or_create, create_or_update
    return strongest


@lru_cache(maxsize=4096)
def classify_description(text: str) -> VerbClass:
    """The effect that the first verb of a tool's description stands for (`Returns ...`, `Creates ...`); UNKNOWN
    when it does not begin with one."""
    lexicon = _lexicon()
    sentence = _SENTENCE_END.split(text[:_DESCRIBED].strip(), maxsplit=1)[0]
    said = name_words(sentence)
    start = next((place for place, word in enumerate(said) if word not in lexicon.intro), len(said))
    if start >= len(said) - 1:
        return UNKNOWN
    verb, thing = said[start], said[start + 1 :]
    if verb in lexicon.described_reads:
        return _READ
    word = _base_form(verb, lexicon)
    if word in lexicon.generic and any(lexicon.objects.get(near) == _PAY for near in thing[:_NEAR]):
        return _PAY
    found = lexicon.verbs.get(word or "")
    if found is None:
        return UNKNOWN
    # `Reads and deletes a message`: two verbs.
    joined = _base_form(thing[1], lexicon) if thing[0] in _JOINERS and len(thing) > 1 else None
    return max((found, lexicon.verbs.get(joined or "", found)), key=lambda c: STRENGTH[c.effect])


def _base_form(word: str, lexicon: _Lexicon) -> str | None:
    """A verb of the lexicon as descriptions conjugate it: creates, crea, erstellt."""
    stem = word.removesuffix("t")
    for form in (
        word,
        word.removesuffix("s"),
        word.removesuffix("es"),
        f"{word.removesuffix('ies')}y",
        f"{word}r",
        f"{stem}en",
        stem,
    ):
        if form in lexicon.verbs or form in lexicon.generic:
            return form
    return None


def _split_joined(name: tuple[str, ...], lexicon: _Lexicon) -> list[tuple[str, ...]]:
    """`find_and_delete` has two verbs, `terms_and_conditions` none: split where a verb follows."""
    parts, start = [], 0
    for i in range(1, len(name) - 1):
        # What may be a noun is a verb right behind another one: `find_and_book_room`, not `by_name_or_type`.
        second = name[i + 1] in lexicon.verbs and (i == start + 1 or name[i + 1] not in lexicon.nouns_too)
        if name[i] in _JOINERS and second:
            parts.append(name[start:i])
            start = i + 1
    parts.append(name[start:])
    return parts


@lru_cache(maxsize=4096)
def begins_with_verb(text: str) -> bool:
    """Whether the first word is clearly a verb: `delete`, `get_status`; not `transfer`, `email`."""
    parts = name_words(text)
    return bool(parts) and _is_clear_verb(parts[0], _lexicon())


def _joined_pairs(name: tuple[str, ...], lexicon: _Lexicon) -> tuple[str, ...]:
    """`check_in_guest` as checkin, guest."""
    for i in range(len(name) - 1):
        if f"{name[i]}_{name[i + 1]}" in lexicon.pairs:
            return (*name[:i], name[i] + name[i + 1], *name[i + 2 :])
    return name


def _classify_part(name: tuple[str, ...], lexicon: _Lexicon) -> VerbClass:
    first, rest = name[0], name[1:]
    meaning = lexicon.verbs.get(first)
    if first in lexicon.value_verbs and rest and rest[-1] in lexicon.values:
        return _READ
    special = rest and (lexicon.acting_on.get((first, rest[-1])) or lexicon.acting_on.get((first, rest[0])))
    if special:
        return special
    last = _last_clear_verb(rest, lexicon)
    if meaning is None and first not in lexicon.generic and (behind := _behind_prefix(rest, lexicon)):
        return _classify_part(behind, lexicon)
    if last and (meaning is None or first in lexicon.nouns_too) and first not in lexicon.generic - lexicon.nouns_too:
        return _done_to(name[-2], last, name[-1], lexicon)
    if rest and _names_a_reading(first, rest, meaning, lexicon):
        return _READ
    if first in lexicon.generic and rest:
        return _by_object(rest, meaning, last, lexicon)
    return meaning or _by_nouns(name, lexicon)


def _behind_prefix(rest: tuple[str, ...], lexicon: _Lexicon) -> tuple[str, ...]:
    """What follows the name of a service (`mcp__github__list_issues`): from a verb on that has an object."""
    for start in range(min(_PREFIX_WORDS, len(rest) - 1)):
        if _begins(rest[start], lexicon):
            return rest[start:]
        if rest[start] in lexicon.verbs:
            break
    return ()


def _done_to(thing: str, verb: VerbClass, word: str, lexicon: _Lexicon) -> VerbClass:
    """`refunds.create` moves money as `create_refund` does; `issue_write` is a plain write."""
    moves_money = word in lexicon.generic and lexicon.objects.get(thing) == _PAY
    return _PAY if moves_money else verb


def _names_a_reading(first: str, rest: tuple[str, ...], meaning: VerbClass | None, lexicon: _Lexicon) -> bool:
    """`order_status`, `account_balance`. What may be a verb in the middle (`fitness_log_weight`) leaves only the
    words that nobody writes (`server_log_details`)."""
    last = rest[-1]
    if meaning is not None:
        return first in lexicon.heads and last in lexicon.after_heads
    if first in lexicon.generic or first in lexicon.value_verbs:
        return False
    if len(rest) > 1 and rest[0] in lexicon.verbs:
        return last in lexicon.after_heads
    return last in lexicon.read_nouns or first in lexicon.first_nouns


def _by_nouns(name: tuple[str, ...], lexicon: _Lexicon) -> VerbClass:
    """Without a verb a noun such as `refund` still names an effect, but never proves a mere read."""
    things = [lexicon.objects.get(w) or lexicon.verbs.get(w, UNKNOWN) for w in name]
    things = [t for t, w in zip(things, name, strict=True) if t.effect == "destructive" or _is_clear_verb(w, lexicon)]
    strong = [t for t in things if STRENGTH[t.effect] > STRENGTH["unknown"]]
    if strong:
        return max(strong, key=lambda c: STRENGTH[c.effect])
    compound = any(name[-1].endswith(end) and len(name[-1]) > len(end) + _SHORTEST_WORD for end in lexicon.endings)
    return _READ if compound else UNKNOWN


def _by_object(
    rest: tuple[str, ...], meaning: VerbClass | None, last: VerbClass | None, lexicon: _Lexicon
) -> VerbClass:
    """A verb such as `run` or `make`: what it acts on decides (`run_query`, `make_payment`)."""
    found = lexicon.objects.get(rest[-1])
    if found == _PAY:
        return found
    if meaning is None:
        return found or last or next((lexicon.objects[w] for w in rest if w in lexicon.objects), UNKNOWN)
    if last:
        return max(meaning, last, key=lambda c: STRENGTH[c.effect])
    return meaning


def _last_clear_verb(rest: tuple[str, ...], lexicon: _Lexicon) -> VerbClass | None:
    """The verb at the end of noun-first names: `issue_read`, `calendar_create`, `sub_issue_write`."""
    return lexicon.verbs[rest[-1]] if rest and _is_clear_verb(rest[-1], lexicon) else None


def _begins(word: str, lexicon: _Lexicon) -> bool:
    return _is_clear_verb(word, lexicon) or lexicon.verbs.get(word) == _READ


def _is_clear_verb(word: str, lexicon: _Lexicon) -> bool:
    return word in lexicon.verbs and word not in lexicon.nouns_too


def action_words(name: str) -> tuple[str, ...]:
    """The words of a tool's name that are clearly verbs; all its words when none is."""
    parts, lexicon = name_words(name), _lexicon()
    clear = tuple(w for w in parts if _is_clear_verb(w, lexicon))
    return clear or parts
