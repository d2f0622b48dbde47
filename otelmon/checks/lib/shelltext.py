"""What a shell command line does: its programs, redirections and pipes; the strongest decides.

Conservative: a program that is not known makes the whole line unknown unless another part of it
is known to write.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache

from otelmon.checks.lib.sqltext import classify_sql
from otelmon.checks.lib.verbs import STRENGTH, UNKNOWN, VerbClass, words

_MAX_TEXT, _MAX_CACHED, _MAX_DEPTH, _MAX_INNER, _CLOUD_WORDS = 20_000, 2_000, 4, 50, 4
_READ = VerbClass("read", "absolute")
_ABSOLUTE = VerbClass("write", "absolute")
_ADDITIVE = VerbClass("write", "additive")
_SEND = VerbClass("external_send", "additive")
_DESTROY = VerbClass("destructive", "absolute")

_PROGRAMS: dict[str, VerbClass] = {
    **dict.fromkeys(
        words("""ls dir cat head tail less more grep egrep fgrep rg ag find fd wc sort uniq cut tr awk sed jq yq echo printf
        pwd whoami id date cal df du ps top free uptime uname hostname printenv which type whereis file stat tree
        diff cmp comm md5sum sha1sum sha256sum test [ true false cd pushd popd export set basename dirname realpath
        readlink seq sleep wait history man help ping dig nslookup host traceroute netstat ss lsof ip ifconfig curl
        wget http base64 xxd od strings column nl tac rev paste join expr bc get-content get-childitem
        select-string"""),
        _READ,
    ),
    **dict.fromkeys(
        words("""mv cp mkdir touch chmod chown chgrp ln tee rsync scp install tar unzip zip gzip gunzip patch apt apt-get
        yum dnf apk brew pip pip3 npm yarn pnpm cargo gem make cmake systemctl service crontab mount umount ssh-keygen
        useradd usermod passwd copy move ren new-item set-content copy-item move-item"""),
        _ABSOLUTE,
    ),
    **dict.fromkeys(("add-content", "split"), _ADDITIVE),
    **dict.fromkeys(("mail", "mailx", "sendmail", "mutt", "ntfy"), _SEND),
    **dict.fromkeys(
        words("""rm rmdir unlink shred dd mkfs fdisk parted wipefs kill pkill killall shutdown reboot halt poweroff del erase
        rd remove-item userdel dropdb truncate"""),
        _DESTROY,
    ),
}
# program -> (words of its first argument that only read, that destroy); any other word writes.
_SUBCOMMANDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    program: (words(reads), words(destroys))
    for program, reads, destroys in (
        (
            "git",
            "status log diff show blame rev-parse ls-files ls-tree ls-remote describe shortlog grep fetch",
            "clean",
        ),
        ("docker", "ps images logs inspect stats top version info port history search", "rm rmi prune kill"),
        ("kubectl", "get describe logs top explain version api-resources cluster-info diff", "delete drain"),
        ("terraform", "plan show validate fmt output version graph", "destroy apply"),
        ("helm", "list status get history search show template version", "uninstall delete"),
        ("aws", "", ""),
        ("pip", "list show freeze check", "uninstall"),
        ("npm", "ls list view outdated audit", "uninstall"),
        ("systemctl", "status list-units is-active is-enabled show cat", "kill"),
        ("apt", "list show search policy", "remove purge autoremove"),
        ("apt-get", "", "remove purge autoremove"),
        ("gh", "", ""),
    )
}
_CLOUDS = frozenset(
    ("gcloud", "az", "heroku", "flyctl", "fly", "doctl", "vercel", "wrangler", "glab", "oc", "vault", "stripe")
)
_DESTROYING = words("delete terminate rm remove rb destroy purge uninstall drop revoke cancel prune")
_SHOWING = words("describe list get ls view status head diff show read search logs version info")
_STARTING = words("create run send put publish comment cp mv sync add start")
_SSH_VALUES = frozenset(("-i", "-p", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-c", "-b", "-e", "-m"))
# Of PowerShell the verb says it.
_COMMANDLETS: dict[str, VerbClass] = {
    **dict.fromkeys(("get", "select", "measure", "compare", "where"), _READ),
    **dict.fromkeys(
        ("new", "set", "add", "copy", "move", "rename", "start", "restart", "enable", "install"), _ABSOLUTE
    ),
    **dict.fromkeys(("remove", "clear", "stop", "uninstall"), _DESTROY),
}
_WRAPPERS = frozenset(("sudo", "time", "nohup", "nice", "xargs", "exec", "command", "stdbuf", "setsid", "doas", "env"))
_SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "powershell", "pwsh", "cmd"))
_SQL_CLIENTS = frozenset(("psql", "mysql", "sqlite3", "duckdb", "mariadb", "clickhouse-client"))
_BREAKS = frozenset(("|", "||", "&", "&&", ";", ";;", "|&", "(", ")", "{", "}"))
_KEYWORDS = frozenset(("if", "then", "else", "elif", "fi", "do", "done", "while", "until", "!", "case", "esac"))
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_NOWHERE = ("/dev/null", "/dev/stdout", "/dev/stderr", "&1", "&2", "1", "2", "nul", "$null")


def classify_shell(line: str) -> VerbClass:
    """The strongest effect of a command line; UNKNOWN when a part of it can not be told."""
    return _cached(line) if len(line) <= _MAX_CACHED else _classify_line(line[:_MAX_TEXT], 0)


@lru_cache(maxsize=1024)
def _cached(line: str) -> VerbClass:
    return _classify_line(line, 0)


def classify_argv(argv: Sequence[str]) -> VerbClass:
    """The effect of one program with its arguments, as a list."""
    return _classify_command(list(argv), 0) if argv else UNKNOWN


def _classify_line(line: str, depth: int) -> VerbClass:
    if depth > _MAX_DEPTH:
        return UNKNOWN
    found = [_classify_line(a or b, depth + 1) for a, b in _SUBSTITUTION.findall(line)[:_MAX_INNER]]
    tokens = _tokens(_without_heredocs(line))
    if tokens is None:
        return UNKNOWN
    for command in _commands(tokens):
        argv, redirect = _redirections(command)
        if redirect:
            found.append(redirect)
        if argv:
            found.append(_classify_command(argv, depth))
    return _worst(found)


def _without_heredocs(line: str) -> str:
    """The line without the texts it feeds to its programs (`<<EOF ... EOF`)."""
    kept: list[str] = []
    until = ""
    for row in line.split("\n"):
        if until:
            until = "" if row.strip() == until else until
            continue
        opened = _HEREDOC.search(row)
        if opened:
            until = opened.group(2)
            row = row[: opened.start()] + row[opened.end() :]
        kept.append(row)
    return "\n".join(kept)


def _worst(found: Sequence[VerbClass]) -> VerbClass:
    return max(found, key=lambda m: (STRENGTH[m.effect], m.repeat == "additive"), default=UNKNOWN)


def _tokens(line: str) -> list[str] | None:
    lexer = shlex.shlex(line.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # an open quote
        return None


def _commands(tokens: Sequence[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for token in tokens:
        if token in _BREAKS:
            yield command
            command = []
        else:
            command.append(token)
    yield command


def _redirections(command: Sequence[str]) -> tuple[list[str], VerbClass | None]:
    """The argv of a command without its redirections, and what those write."""
    argv: list[str] = []
    found: VerbClass | None = None
    rest = iter(command)
    for token in rest:
        if not token or set(token) - set("<>&|"):
            argv.append(token)
            continue
        target = next(rest, "")
        if "<<<" in token:
            argv.append(target)  # the program reads it
        if argv and argv[-1] in ("1", "2"):
            argv.pop()
        if ">" in token and target.lower() not in _NOWHERE:
            found = _ADDITIVE if ">>" in token or found == _ADDITIVE else _ABSOLUTE
    return argv, found


def _classify_command(argv: list[str], depth: int) -> VerbClass:
    while argv and (argv[0] in _WRAPPERS | _KEYWORDS or _ASSIGNMENT.match(argv[0]) or argv[0].startswith("-")):
        argv = argv[1:]
    if not argv:
        return _READ
    program, arguments = argv[0].rsplit("/", 1)[-1].rsplit("\\", 1)[-1].lower(), argv[1:]
    program = program.removesuffix(".exe")
    if program in _SHELLS:
        return _inner_script(arguments, depth)
    if program in ("eval", "ssh"):
        return _classify_line(" ".join(arguments if program == "eval" else _remote(arguments)), depth + 1)
    if arguments and set(arguments) <= {"--version", "--help", "-V", "-h"}:
        return _READ
    if program in _SQL_CLIENTS:
        found = [m for m in map(classify_sql, arguments) if m]
        return _worst(found)
    if program in _SUBCOMMANDS:
        return _subcommand(program, arguments)
    if program in _CLOUDS:
        return _cloud([a for a in arguments if not a.startswith("-")])
    special = _SPECIAL.get(program)
    if special:
        return special(arguments)
    return (
        _PROGRAMS.get(program)
        or _PROGRAMS.get(program.split(".")[0])
        or _COMMANDLETS.get(program.split("-")[0], UNKNOWN)
    )


def _remote(arguments: Sequence[str]) -> list[str]:
    """The command that ssh runs on a host: what follows its options and the host."""
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in _SSH_VALUES else rest[1:]
    return rest[1:]


def _inner_script(arguments: Sequence[str], depth: int) -> VerbClass:
    for i, argument in enumerate(arguments[:-1]):
        if argument.lower() in ("-c", "-lc", "-command", "/c"):
            return _classify_line(arguments[i + 1], depth + 1)
    return UNKNOWN


def _subcommand(program: str, arguments: Sequence[str]) -> VerbClass:
    reads, destroys = _SUBCOMMANDS[program]
    plain = [a for a in arguments if not a.startswith("-")]
    if not plain:
        return _READ
    if program in ("aws", "gh"):
        return _cloud(plain)
    word = plain[0]
    if program == "git":
        return _git(word, arguments, reads)
    if set(plain[:2]) & destroys:
        return _DESTROY
    return _READ if word in reads else _ABSOLUTE


def _cloud(plain: Sequence[str]) -> VerbClass:
    """`ec2 terminate-instances`, `compute instances delete vm-1`: the first word that says something."""
    for word in plain[:_CLOUD_WORDS]:
        verb = word.split("-")[0].split(":")[-1]
        if verb in _DESTROYING:
            return _DESTROY
        if verb in _SHOWING:
            return _READ
        if verb in _STARTING:
            return _ADDITIVE
    return UNKNOWN


def _git(word: str, arguments: Sequence[str], reads: frozenset[str]) -> VerbClass:
    flags = set(arguments)
    forced = flags & {"--force", "-f", "--hard", "-D", "-d", "--delete", "--mirror"}
    if word == "clean" or (forced and word in ("push", "reset", "branch", "checkout", "tag")):
        return _DESTROY
    if word in reads or (word in ("branch", "remote", "tag", "stash", "config") and len(arguments) == 1):
        return _READ
    if word in ("remote", "stash", "config") and flags & {"-v", "show", "list", "--list", "--get", "get-url"}:
        return _READ
    return _ADDITIVE if word in ("commit", "stash", "revert", "cherry-pick", "am") else _ABSOLUTE


def _curl(arguments: Sequence[str]) -> VerbClass:
    method, sends = "", False
    for i, argument in enumerate(arguments):
        if argument in ("-X", "--request", "--method") and i + 1 < len(arguments):
            method = arguments[i + 1].upper()
        elif argument.startswith(("-X", "--request=", "--method=")) and len(argument) > 2:
            method = argument.split("=")[-1].removeprefix("-X").upper()
        elif argument.startswith(("-d", "--data", "-F", "--form", "--json", "--post", "-T", "--upload-file")):
            sends = True
    sends = sends and not {"-G", "--get"} & set(arguments)
    found = http_method(method or ("POST" if sends else "GET")) or UNKNOWN
    keeps = any(a in ("-o", "-O", "--output", "--remote-name") for a in arguments)
    return _ABSOLUTE if keeps and found == _READ else found


def _wget(arguments: Sequence[str]) -> VerbClass:
    """What it fetches it writes to a file, unless that is the standard output."""
    found = _curl([a for a in arguments if a not in ("-O", "-o")])
    shown = any(a in ("-O-", "-qO-", "--spider", "--output-document=-") for a in arguments) or "-" in arguments
    return found if shown or found != _READ else _ABSOLUTE


def _rsync(arguments: Sequence[str]) -> VerbClass:
    return _DESTROY if any(a.startswith("--delete") for a in arguments) else _ABSOLUTE


def _redis(arguments: Sequence[str]) -> VerbClass:
    word = next((a.lower() for a in arguments if a.isalpha() and len(a) > 1), "")
    if word in ("flushall", "flushdb", "del", "unlink", "shutdown", "hdel", "srem", "zrem", "expire"):
        return _DESTROY
    return (
        _READ
        if word in words("get mget keys scan hget hgetall lrange smembers zrange ttl exists type info ping dbsize")
        else _ABSOLUTE
    )


def http_method(method: str) -> VerbClass | None:
    """The effect of an HTTP method, or None for a word that is none."""
    return {
        "GET": _READ, "HEAD": _READ, "OPTIONS": _READ, "POST": _ADDITIVE, "PATCH": _ADDITIVE,
        "PUT": _ABSOLUTE, "DELETE": _DESTROY,
    }.get(method.strip().upper())  # fmt: skip


def _find(arguments: Sequence[str]) -> VerbClass:
    if "-delete" in arguments:
        return _DESTROY
    for flag in ("-exec", "-execdir", "-ok"):
        if flag in arguments:
            return _classify_command(list(arguments[arguments.index(flag) + 1 :]), _MAX_DEPTH)
    return _READ


def _sed(arguments: Sequence[str]) -> VerbClass:
    return _ABSOLUTE if any(a.startswith(("-i", "--in-place")) for a in arguments) else _READ


def _tee(arguments: Sequence[str]) -> VerbClass:
    return _ADDITIVE if {"-a", "--append"} & set(arguments) else _ABSOLUTE


def _tar(arguments: Sequence[str]) -> VerbClass:
    return _READ if arguments and "t" in arguments[0].lstrip("-") and "c" not in arguments[0] else _ABSOLUTE


_SPECIAL = {
    "rsync": _rsync,
    "redis-cli": _redis,
    "curl": _curl,
    "wget": _wget,
    "http": _curl,
    "find": _find,
    "sed": _sed,
    "tee": _tee,
    "tar": _tar,
}
