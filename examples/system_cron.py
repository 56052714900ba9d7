"""Nothing runs in between: system cron calls once a minute, and all that is due is done.

* * * * *  rota tick examples.system_cron:app
* * * * *  curl -fsS -X POST -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/api/scheduler/tick

The second line is for a server that has the tasks, and neither fires nor works by itself:

rota serve examples.system_cron:app --no-scheduler --no-worker
"""

import os

import rota

app = rota.Rota(os.environ.get("ROTA_STORE", "sqlite:///chores.db"), name="chores")


@app.schedule("tidy", rota.Every("1h", since="success"))
@app.task
def tidy() -> str:
    """Tidy up; never having run, it is due at once."""
    return "tidy"
