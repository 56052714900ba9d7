"""A program without an event loop, for tests: what it does is named by its first argument, its store by the second."""

import asyncio
import gc
import os
import sys
import threading

import rota

app = rota.Rota(sys.argv[2], name="program")
calls = rota.Blocking(app)


@app.task(name="note")
def note(text: str) -> str:
    return text


def in_a_child() -> None:
    """Fork as servers do: the child works, then ends as any program does, and the parent waits for that."""
    child = os.fork()
    if child == 0:
        calls.enqueue(note.call("child"))
        loops = [each.name for each in threading.enumerate()].count("rota-blocking")
        sys.stdout.write(f"{loops} ")
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0


def enqueue_and_end() -> None:
    calls.enqueue(note.call("parent"))


def call_and_forget() -> None:
    for _ in range(2):
        rota.Blocking(app).enqueue(note.call("forgotten"))
    gc.collect()
    loops = [each.name for each in threading.enumerate()].count("rota-blocking")
    sys.stdout.write(f"{loops} ")


def fork_before_the_first_call() -> None:
    in_a_child()
    calls.enqueue(note.call("parent"))


def fork_after_the_first_call() -> None:
    calls.enqueue(note.call("parent"))
    in_a_child()
    calls.enqueue(note.call("parent"))


def fork_while_another_thread_calls() -> None:
    """The lock may be held, and the call under way, in a thread that the child does not have."""
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            calls.close()
            calls.open()

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(8):
        in_a_child()
    ended.set()
    thread.join()


def fork_with_a_lock() -> None:
    """What the parent has taken is not the child's, and what the child takes is not the parent's."""
    free, taken = calls.lock("free"), calls.lock("taken")
    taken.acquire()
    child = os.fork()
    if child == 0:
        assert (taken.held, taken.fence, taken.acquire()) == (False, 0, False)
        with free:
            calls.enqueue(note.call("child"))
        sys.stdout.write(f"{free.fence} ")
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
    assert taken.held
    taken.extend()
    assert taken.release()
    calls.enqueue(note.call("parent"))


def fork_in_an_event_loop() -> None:
    """The app is open in the parent, and not by `Blocking`, so nobody closes it."""

    async def main() -> None:
        async with app:
            child = os.fork()
            if child == 0:
                try:
                    calls.enqueue(note.call("child"))
                    sys.stdout.write("stored")
                except rota.StoreUnavailable as error:
                    sys.stdout.write(str(error))
                sys.stdout.flush()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0  # noqa: ASYNC222 (there is nothing else to do)
            await app.enqueue(note.call("parent"))

    asyncio.run(main())


if __name__ == "__main__":
    globals()[sys.argv[1]]()
