"""What a program uses while it is flooded: memory, descriptors, threads, CPU time and lines of log."""

import os
import pathlib
import threading

INTERVAL_SECONDS = 0.2


class Vitals:
    """Watches a process from a thread of its own; `peak` holds the greatest values since `reset`."""

    def __init__(self, process):
        self.process, self.peak = process, {}
        self.lock = threading.Lock()
        self.is_stopped = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def now(self):
        """The values of this moment; `None` once the process has ended."""
        folder = pathlib.Path(f"/proc/{self.process.pid}")
        try:
            return {
                "megabytes": self.process.resident_megabytes(),
                "descriptors": len(os.listdir(folder / "fd")),
                "threads": len(os.listdir(folder / "task")),
            }
        except (OSError, IndexError):
            return None

    def watch(self):
        """Notes the greatest values until stopped."""
        while not self.is_stopped.wait(INTERVAL_SECONDS):
            values = self.now()
            with self.lock:
                for name, value in (values or {}).items():
                    self.peak[name] = max(value, self.peak.get(name, value))

    def reset(self):
        """Begins a new peak."""
        with self.lock:
            self.peak = self.now() or {}

    def spent(self):
        """What only grows: CPU seconds, and bytes of log."""
        return {"cpu_seconds": self.process.cpu_seconds(), "log_bytes": os.fstat(self.process.log.fileno()).st_size}

    def stop(self):
        """Ends the thread."""
        self.is_stopped.set()
        self.thread.join()
