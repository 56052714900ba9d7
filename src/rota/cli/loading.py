"""Finding what a command works on: an app in a module, or a store."""

import importlib
import sys

from rota.app import Rota
from rota.errors import Invalid

_ALLOWED = "use module:name, such as news.jobs:app"


def load_app(target: str) -> Rota:
    """Import the app that `module:name` names; the working directory is looked in first, as `python -m` does."""
    module, colon, name = target.partition(":")
    if not colon or not module or not name:
        raise Invalid("app", target, _ALLOWED, "does not name an app")
    sys.path.insert(0, "")
    try:
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise  # the module is there, and something that it imports is not
        raise Invalid("app", target, f"there is no module {error.name} here; {_ALLOWED}", "cannot be found") from None
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Rota):
        raise Invalid("app", target, f"{module} has no Rota of that name; {_ALLOWED}", "is no app")
    return found
