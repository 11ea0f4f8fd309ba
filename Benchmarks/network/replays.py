"""Makes the decisions of the publishers again, from the logs of their inputs: they must be the recorded ones."""

import json
import subprocess

OPTION = "--adapt-log"


def are_recorded(settings):
    """Whether publishers write such logs for us: earlier programs cannot, and the user may want one of his own."""
    words = [settings.client, "connect", "--help"]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return OPTION in said and OPTION not in settings.connect_options


def options(folder, flow):
    """The options by which the publisher of a flow writes its log."""
    return [OPTION, folder / f"adapt-{flow}.log"]


def figures(client, folder):
    """How many decisions were made again, and how many of them were others."""
    decisions = differences = 0
    for log in sorted(folder.glob("adapt-*.log")):
        words = [client, "adapt", "replay", log, "--differences", "--json"]
        replay = subprocess.run(words, capture_output=True, text=True, check=False)
        events = [json.loads(line) for line in replay.stdout.splitlines()]
        summary = next((event for event in events if event["event"] == "summary"), None)
        if summary is None:
            raise RuntimeError(f"{log.name} cannot be replayed: {replay.stdout[-500:]}{replay.stderr[-500:]}")
        decisions += summary["decisions"]
        differences += summary["differences"]
    if differences:
        raise RuntimeError(f"{differences} of {decisions} decisions are others when the log is replayed")
    return {"replayedDecisions": decisions} if decisions else {}
