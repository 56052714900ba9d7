"""What a limit is, which limits govern a run, and whether there is room under them. Pure."""

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta

from rota.errors import Invalid
from rota.times.choices import whole_number
from rota.times.durations import duration
from rota.times.moments import micros
from rota.times.policies import Length

MOST_AT_ONCE = 1_000_000
MOST_KEYS = 5
_KEY = re.compile(r"""[!-~]{1,200}""")
_UNSAFE = frozenset('*"\\')
_ALLOWED = 'use 1 to 200 ASCII characters without spaces, * " and \\, such as host:example.org'


@dataclass(frozen=True, init=False)
class Limit:
    """How many runs of a key may be under way in workers at once, and how long a pause there is between them.

    Under a pattern such as `host:*` each key of the group has this limit for itself; `keys_at_once` caps how many
    different keys of the group are busy at once.
    """

    at_once: int | None
    gap: timedelta
    keys_at_once: int | None

    def __init__(self, at_once: int | None = None, *, gap: Length = 0, keys_at_once: int | None = None) -> None:
        length = duration(gap, "gap")
        if at_once is None and length:
            raise Invalid("gap", gap, "say also how many: Limit(at_once=1, gap=…)", "goes with at_once")
        if at_once is None and keys_at_once is None:
            raise Invalid("limit", None, "say at_once=…, keys_at_once=… or both", "limits nothing")
        for name, value in (("at_once", at_once), ("keys_at_once", keys_at_once)):
            if value is not None:
                whole_number(name, value, 1, MOST_AT_ONCE, Invalid)
        vars(self).update(at_once=at_once, gap=timedelta(microseconds=length), keys_at_once=keys_at_once)


def key(value: object) -> str:
    """Return this key of a limit, or refuse it."""
    if not isinstance(value, str) or not _KEY.fullmatch(value) or _UNSAFE & set(value):
        raise Invalid("limit key", value, _ALLOWED)
    return value


def keys(values: Iterable[str]) -> tuple[str, ...]:
    """Return these keys in order, each once, or refuse them."""
    if values == ():
        return ()
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise Invalid("limits", values, f"use a list: [{values!r}]", "is not a list")
    found = tuple(sorted({key(each) for each in values}))
    if len(found) > MOST_KEYS:
        raise Invalid("limits", list(found), f"use up to {MOST_KEYS}", "are too many")
    return found


def pattern(value: object, limit: Limit) -> str:
    """Return what a limit is put under: a key, or a group such as `host:*`."""
    if isinstance(value, str) and value.endswith(":*"):
        if ":" in value[:-2]:
            allowed = "a group is what stands before the first colon of its keys: use host:*"
            raise Invalid("limit key", value, allowed, "is no group")
        return f"{key(value[:-2])}:*"
    if limit.keys_at_once is not None:
        raise Invalid("limit key", value, "put it under a group, such as host:*", "has no keys to count")
    return key(value)


def group(key: str) -> str | None:
    """Return the group of a key: that of `host:example.org` is `host:*`."""
    head, colon, _ = key.partition(":")
    return f"{head}:*" if colon else None


class LimitSet:
    """All limits of a store."""

    def __init__(self, found: Mapping[str, Limit]) -> None:
        self._found = found

    def of(self, key: str) -> Limit | None:
        """Return the limit of a key: its own, or else its group's."""
        return self._found.get(key) or self._found.get(group(key) or "")

    def cap(self, group: str | None) -> int | None:
        """Return how many keys of a group may be busy at once; None if any number."""
        found = self._found.get(group or "")
        return None if found is None else found.keys_at_once

    @property
    def groups(self) -> list[str]:
        """The groups with a cap on busy keys."""
        return sorted(name for name, limit in self._found.items() if limit.keys_at_once is not None)

    def at_once(self, key: str) -> int | None:
        """Return how many of a key may be under way at once; None if any number."""
        limit = self.of(key)
        return None if limit is None else limit.at_once

    def gap(self, key: str) -> int:
        """Return the pause after the end of one of a key, in microseconds."""
        limit = self.of(key)
        return 0 if limit is None else micros(limit.gap)

    def governing(self, task: str, queue: str, named: Iterable[str]) -> tuple[str, ...]:
        """Return the keys of a run that are limited: those it names, its task's and its queue's."""
        found = {f"task:{task}", f"queue:{queue}", *named}
        return tuple(sorted(each for each in found if self.of(each) is not None))


@dataclass(slots=True)
class Use:
    """How much of a key is in use."""

    busy: int
    resting: bool
    """Whether one has ended and the pause after it is not over."""
    wanted: bool
    """Whether a task waits for it from within: it goes before runs that have not begun."""


@dataclass(slots=True)
class Room:
    """How much room there is under the limits, while one admission is decided."""

    limits: LimitSet
    uses: dict[str, Use] = field(default_factory=dict)
    busy_keys: dict[str, set[str]] = field(default_factory=dict)
    """The busy keys of each group that has a cap."""

    def open_groups(self, own: AbstractSet[str]) -> list[str]:
        """Return the groups of which more keys may become busy, for those at least who own these already."""
        return [name for name, busy in self.busy_keys.items() if len(busy - own) < (self.limits.cap(name) or 0)]

    def blocker(self, keys: Iterable[str], own: AbstractSet[str] = frozenset()) -> str | None:
        """Return the key or group that keeps a run of these keys waiting; None if there is room.

        What it owns already is not asked for again. A run of more keys of a group than may be busy at once is let in
        when no other key is busy: it would wait for ever otherwise.
        """
        wanted = [each for each in keys if each not in own]
        for each in wanted:
            use, most = self.uses[each], self.limits.at_once(each)
            if use.resting or use.wanted or (most is not None and use.busy >= most):
                return each
        for name in sorted({group(each) or "" for each in wanted}):
            cap, busy = self.limits.cap(name), self.busy_keys.get(name, set())
            new = {each for each in wanted if group(each) == name} - busy
            if cap is not None and new and busy - own and len(busy | new) > cap:
                return name
        return None

    def most(self, keys: Iterable[str]) -> int | None:
        """Return how many more runs of these keys there is room for at most; None if any number."""
        rooms = [most - self.uses[each].busy for each in keys if (most := self.limits.at_once(each)) is not None]
        return max(0, min(rooms)) if rooms else None

    def take(self, keys: Iterable[str]) -> None:
        """Count a run of these keys in."""
        for each in keys:
            self.uses[each].busy += 1
            name = group(each)
            if name in self.busy_keys:
                self.busy_keys[name].add(each)
