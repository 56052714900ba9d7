"""A broken habit fails the run, whatever the tests say."""

import os


def test_style_types_and_layers_hold() -> None:
    # scripts/test sets it for a whole run, after scripts/check has shown what is wrong
    assert os.environ.get("ROTA_TEST_HABITS") != "broken", "scripts/check says what is broken"
