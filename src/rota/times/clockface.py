"""Times of day as three masks: hours × minutes × seconds."""

from collections.abc import Iterable


def mask_of(values: Iterable[int]) -> int:
    """Return the bitmap of small numbers."""
    found = 0
    for value in values:
        found |= 1 << value
    return found


def lowest(mask: int) -> int:
    """Return the lowest bit of a mask that is not empty."""
    return (mask & -mask).bit_length() - 1


class Clockface:
    """The times of day whose hour, minute and second are each one of a few."""

    __slots__ = ("_bits", "_hours", "_minutes", "_seconds", "first", "last")

    def __init__(self, hours: int, minutes: int, seconds: int) -> None:
        self._hours, self._minutes, self._seconds = hours, minutes, seconds
        self.first = (lowest(hours) * 60 + lowest(minutes)) * 60 + lowest(seconds)
        self.last = ((hours.bit_length() - 1) * 60 + minutes.bit_length() - 1) * 60 + seconds.bit_length() - 1
        self._bits = 0

    def next(self, time: int) -> int | None:
        """Return the first time that is not before this one."""
        minute, second = divmod(time, 60)
        hour, minute = divmod(minute, 60)
        if self._hours >> hour & 1:
            if self._minutes >> minute & 1 and (later := self._seconds >> second):
                return time + lowest(later)
            if later := self._minutes >> minute + 1:
                return (hour * 60 + minute + 1 + lowest(later)) * 60 + lowest(self._seconds)
        if later := self._hours >> hour + 1:
            return (hour + 1 + lowest(later)) * 3600 + self.first % 3600
        return None

    def previous(self, time: int) -> int | None:
        """Return the last time that is not after this one."""
        minute, second = divmod(time, 60)
        hour, minute = divmod(minute, 60)
        if self._hours >> hour & 1:
            if self._minutes >> minute & 1 and (earlier := self._seconds & (2 << second) - 1):
                return time - second + earlier.bit_length() - 1
            if earlier := self._minutes & (1 << minute) - 1:
                return (hour * 60 + earlier.bit_length() - 1) * 60 + self._seconds.bit_length() - 1
        if earlier := self._hours & (1 << hour) - 1:
            return (earlier.bit_length() - 1) * 3600 + self.last % 3600
        return None

    def below(self, time: int) -> int:
        """Count the times before this one."""
        minute, second = divmod(time, 60)
        hour, minute = divmod(minute, 60)
        seconds, minutes = self._seconds.bit_count(), self._minutes.bit_count()
        found = (self._hours & (1 << hour) - 1).bit_count() * minutes * seconds
        if self._hours >> hour & 1:
            found += (self._minutes & (1 << minute) - 1).bit_count() * seconds
            if self._minutes >> minute & 1:
                found += (self._seconds & (1 << second) - 1).bit_count()
        return found

    def bits(self) -> int:
        """Return the times as a bitmap of a day's seconds."""
        if not self._bits:
            hour = sum(self._seconds << 60 * minute for minute in range(60) if self._minutes >> minute & 1)
            self._bits = sum(hour << 3600 * h for h in range(24) if self._hours >> h & 1)
        return self._bits
