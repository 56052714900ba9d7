"""A plain script, without an event loop: it sees to a schedule, and hands work to whoever works the queue.

python -m examples.script one.example two.example
rota worker examples.script:app
"""

import sys

import rota

app = rota.Rota(name="script")  # ROTA_STORE, else sqlite:///rota.db


@app.task(timeout="30s", retry=rota.Retry(attempts=3))
def check(site: str) -> str:
    """Look at a site."""
    return f"{site} is well"


def main(sites: list[str]) -> None:
    """Check these sites now, and all of them every hour."""
    with rota.Blocking(app) as calls:  # opens the store, and closes it
        hourly = [rota.Schedule(f"check-{site}", check.call(site), rota.Every("1h")) for site in sites]
        counts = calls.schedules.put_many(hourly)
        ids = calls.enqueue_many(check.call(site) for site in sites)
    sys.stdout.write(f"{counts.made} new schedules, {len(ids)} runs\n")


if __name__ == "__main__":
    main(sys.argv[1:])
