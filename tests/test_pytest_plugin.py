"""The fixtures as a project has them that installed Rota and pytest, and wrote no line about either."""

import pytest

CONFTEST = """
import pytest, rota

made = []

@pytest.fixture
def rota_app():
    app = rota.Rota("sqlite:///the-real-one.db", name="news")

    @app.schedule("hourly", rota.Cron("0 * * * *"))
    @app.task(name="refresh")
    async def refresh(feed_id: int = 1) -> None: ...

    made.append(app)
    return app
"""
SETTINGS = """
[pytest]
asyncio_mode = {mode}
asyncio_default_fixture_loop_scope = function
addopts = --strict-markers
filterwarnings = error
"""


@pytest.fixture(params=["strict", "auto"])
def project(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with an app, in each mode of pytest-asyncio."""
    pytester.makeconftest(CONFTEST)
    pytester.makeini(SETTINGS.format(mode=request.param))
    return pytester


def run(project: pytest.Pytester, code: str, *options: str) -> pytest.RunResult:
    project.makepyfile(f"import asyncio, pytest, rota, rota.testing\n{code}")
    return project.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short", *options)


def said(result: pytest.RunResult) -> str:
    return result.stdout.str()


def test_a_test_has_the_time_of_its_app_and_touches_no_store_of_its_own(project: pytest.Pytester) -> None:
    found = run(
        project,
        """
@pytest.mark.asyncio
@pytest.mark.rota(start="2027-01-01T00:30Z", seed=7, durations={"refresh": "5m"})
async def test_an_hour_fires_once(rota_app, rota_time):
    assert (await rota_time.advance("1h")).succeeded == 1
    run = await rota.testing.assert_enqueued(rota_app, "refresh", count=1, schedule="hourly", feed_id=1)
    assert run.finished_at.isoformat() == "2027-01-01T01:05:00+00:00"

@pytest.mark.asyncio
@pytest.mark.rota("2027-01-01T00:30Z")
async def test_the_start_needs_no_name(rota_time):
    assert rota_time.now.isoformat() == "2027-01-01T00:30:00+00:00"
""",
    )
    found.assert_outcomes(passed=2)
    assert not (project.path / "the-real-one.db").exists()


def test_each_test_has_an_app_and_a_time_of_its_own(project: pytest.Pytester) -> None:
    found = run(
        project,
        """
import conftest

@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.asyncio
@pytest.mark.rota(start="2027-01-01T00:30Z")
async def test_nothing_is_left(rota_app, rota_time, turn):
    await rota.testing.refute_enqueued(rota_app)
    assert rota_time.now.isoformat() == "2027-01-01T00:30:00+00:00"
    await rota_time.advance("1d")
    assert conftest.made[-1] is rota_app and len(conftest.made) == turn
""",
        "--import-mode=prepend",
    )
    found.assert_outcomes(passed=2)


def test_the_mark_nearest_to_the_test_counts(project: pytest.Pytester) -> None:
    found = run(
        project,
        """
pytestmark = pytest.mark.rota(start="2027-01-01T00:00Z")

@pytest.mark.asyncio
async def test_far(rota_time):
    assert rota_time.now.year == 2027

@pytest.mark.asyncio
@pytest.mark.rota(start="2028-01-01T00:00Z")
async def test_near(rota_time):
    assert rota_time.now.year == 2028
""",
    )
    found.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("mark", "problem"),
    [
        ('begin="2027-01-01T00:00Z"', "begin is not allowed; use start, seed, store, durations, slots"),
        ('"2027-01-01T00:00Z", 7', "7 is not allowed; use start, seed, store, durations, slots"),
        ('"2027-01-01T00:00Z", start="2027-01-01T00:00Z"', "start, said twice, is not allowed"),
        ('start="tomorrow"', "start: 'tomorrow'"),
    ],
)
def test_a_mark_that_says_nothing_known_is_an_error_of_that_test(
    pytester: pytest.Pytester, mark: str, problem: str
) -> None:
    pytester.makeini(SETTINGS.format(mode="auto"))
    found = run(pytester, f"@pytest.mark.rota({mark})\nasync def test_wrong(rota_time): ...")
    found.assert_outcomes(errors=1)
    assert problem in said(found)


def test_an_app_that_nobody_named_is_an_empty_one(pytester: pytest.Pytester) -> None:
    pytester.makeini(SETTINGS.format(mode="auto"))
    found = run(
        pytester,
        """
async def test_empty(rota_app, rota_time):
    @rota_app.task(name="add")
    def add(a: int, b: int) -> int:
        return a + b

    made = await add.enqueue(1, 2)
    assert (await rota_time.drain()).succeeded == 1
    assert (await rota_app.runs.get(made.id)).result == '3'
""",
    )
    found.assert_outcomes(passed=1)


WITHOUT = """
def test_by_hand(rota_travel):
    async def go():
        async with rota_travel(start="2027-01-01T00:30Z") as time:
            return await time.advance("3h")
    assert asyncio.run(go()).fired == 3

def test_time(rota_time): ...
"""


def test_without_pytest_asyncio_one_travels_by_hand_and_is_told_so(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    found = run(pytester, WITHOUT, "-p", "no:asyncio", "-W", "error")
    found.assert_outcomes(passed=1, errors=1)
    assert "the fixture rota_time needs pytest-asyncio; without it use rota_travel" in said(found)


def test_where_pytest_asyncio_is_not_installed_it_is_the_same(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(bare="import sys\nsys.modules['pytest_asyncio'] = None")  # its import raises
    plugins = [word for name in ("bare", "rota.pytest_plugin") for word in ("-p", name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        patch.setenv("PYTHONPATH", str(pytester.path))
        found = run(pytester, WITHOUT, *plugins)
    found.assert_outcomes(passed=1, errors=1)
    assert "needs pytest-asyncio" in said(found)


def test_a_failed_assertion_says_what_is_there_and_shows_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makeini(SETTINGS.format(mode="auto"))
    pytester.makeconftest(CONFTEST)
    found = run(
        pytester,
        """
async def test_wrong(rota_app, rota_time):
    await rota_app.tasks.get("refresh").enqueue(7)
    await rota.testing.assert_enqueued(rota_app, "refresh", feed_id=8, state="ready")
""",
    )
    found.assert_outcomes(failed=1)
    shown = said(found)
    assert "expected a run of refresh with state='ready', feed_id=8, found 0; the newest runs of refresh:" in shown
    assert 'run 1: refresh {"feed_id":7} in default, ready' in shown
    assert "rota/testing.py" not in shown
