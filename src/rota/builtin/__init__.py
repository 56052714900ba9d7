"""The tasks that every app has without a line of code."""

from rota.tasks import AsyncTask, Task, TaskOptions

__all__ = ["built_in"]


def built_in() -> list[Task[..., object]]:
    """Make the tasks, for one app."""
    from rota.builtin.command import run_command  # noqa: PLC0415 (most programs never need them)
    from rota.builtin.http import call_url  # noqa: PLC0415

    # A program may go on after its worker was killed: a second one beside it could do harm.
    once = TaskOptions(on_lost="fail")
    return [AsyncTask(call_url, name="rota.http"), AsyncTask(run_command, name="rota.command", options=once)]
