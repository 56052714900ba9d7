"""What is public is listed, and what is listed is there."""

import importlib
from types import ModuleType

import pytest

PUBLIC_MODULES = ("rota", "rota.http", "rota.notify", "rota.testing", "rota.times")


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_the_list_of_public_names_is_exact(name: str) -> None:
    module = importlib.import_module(name)
    listed = set(module.__all__)
    assert {word for word in listed if not hasattr(module, word)} == set()
    bound = {word for word, value in vars(module).items() if not word.startswith("_") and is_its_own(value, module)}
    assert bound == {word for word in listed if not word.startswith("_") and not is_module(getattr(module, word))}


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_the_list_of_public_names_is_sorted(name: str) -> None:
    names = list(importlib.import_module(name).__all__)
    assert names == sorted(set(names), key=in_ruffs_order)


def is_its_own(value: object, module: ModuleType) -> bool:
    """Tell whether a name is the module's: a package's is all that it binds, a file's what it defines itself."""
    if hasattr(module, "__path__"):
        return not is_module(value)
    return getattr(value, "__module__", None) == module.__name__


def is_module(value: object) -> bool:
    return isinstance(value, ModuleType)


def in_ruffs_order(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then the rest (RUF022)."""
    return not name.isupper(), not name[0].isupper(), name
