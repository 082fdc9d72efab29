"""N processes of the app and HAProxy before them, on one machine without containers.

    python deploy/replicas.py --replicas 2 --port 8501

Where there is Docker, compose.yaml does the same; this needs neither it nor systemd nor an administrator.
Whoever dies is started again, and all end with this program. Each process has its share of the
cores. What they share lies on the disk (GPTVIZ_CACHE_DIR: classes, measured heads), or in GPTVIZ_DATABASE.
Needs `haproxy` (Debian: apt install haproxy). Lines of all of them go to the standard output, one an event.
"""

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEAST = 1.0  # seconds between two starts of the same process


class Kept:
    """A process that is started again when it ends."""

    def __init__(self, name: str, command: list[str], **environment: str):
        self.name = name
        self._command = command
        self._environment = os.environ | environment
        self._start()

    def _start(self) -> None:
        self._started = time.monotonic()
        self._process = subprocess.Popen(self._command, cwd=HERE.parent, env=self._environment)
        print(f"event=start what={self.name} pid={self._process.pid}", flush=True)

    def look(self) -> None:
        """Start it again if it has ended."""
        if self._process.poll() is not None and time.monotonic() - self._started > LEAST:
            print(f"event=ended what={self.name} status={self._process.returncode}", flush=True)
            self._start()

    def stop(self) -> None:
        self._process.terminate()

    def wait(self) -> None:
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def replica(number: int, of: int, port: int) -> Kept:
    threads = str(max(1, (os.cpu_count() or 1) // of))
    options = {"port": port, "address": "127.0.0.1", "headless": "true"}
    command = [sys.executable, "-m", "gptviz", "app"]
    command += [
        part for name, value in options.items() for part in (f"--server.{name}", str(value))
    ]
    return Kept(
        f"replica{number}",
        command,
        **{"OMP_NUM_THREADS": threads, "GPTVIZ_WORKERS": threads} | os.environ,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicas", type=int, default=max(1, (os.cpu_count() or 1)))
    parser.add_argument("--port", type=int, default=8501, help="where visitors come (%(default)s)")
    parser.add_argument(
        "--first", type=int, default=8601, help="the first replica's port (%(default)s)"
    )
    args = parser.parse_args()
    ports = range(args.first, args.first + args.replicas)
    if args.replicas < 1:
        parser.error(f"--replicas is {args.replicas}; it must be 1 or more")
    if args.port in ports or not 0 < min(args.port, *ports) <= max(args.port, *ports) < 2**16:
        parser.error(
            f"--port {args.port} and the replicas' {ports[0]} to {ports[-1]} must be of their own, "
            "from 1 to 65535"
        )
    haproxy = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if haproxy is None:
        sys.exit("there is no haproxy on this machine: apt install haproxy")
    # one for all of them
    os.environ.setdefault("STREAMLIT_SERVER_COOKIE_SECRET", secrets.token_hex())
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with tempfile.TemporaryDirectory() as folder:
        backend = Path(folder, "backend.cfg")
        servers = [
            f"    server replica{n} 127.0.0.1:{port} check\n" for n, port in enumerate(ports, 1)
        ]
        backend.write_text("".join(["backend replicas\n", *servers]))
        router = [haproxy, "-db", "-f", str(HERE / "haproxy.cfg"), "-f", str(backend)]
        all_: list[Kept] = []
        try:
            for number, port in enumerate(ports, 1):
                all_.append(replica(number, args.replicas, port))
            all_.append(Kept("router", router, GPTVIZ_PORT=str(args.port)))
            while not ended.wait(0.2):
                for one in all_:
                    one.look()
        finally:  # also where nobody reads these lines any more
            for one in all_:
                one.stop()
            for one in all_:
                one.wait()


if __name__ == "__main__":
    main()
