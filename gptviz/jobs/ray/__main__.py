"""Train a watched run on a Ray cluster: `python -m gptviz.jobs.ray --work FOLDER --address auto`.

The server starts this for a training of the page, where GPTVIZ_RAY is set, and else
`python -m gptviz.training live`.
"""

import argparse
import os
import sys
from pathlib import Path

from gptviz.jobs.ray.cluster import join
from gptviz.parent_watch import end_with_the_server


def main() -> None:
    """Train; a refusal is one line on standard error, and exit status 1."""
    args = parser().parse_args()
    if args.leash:
        end_with_the_server(args.work)
    if args.nice and hasattr(os, "nice"):
        os.nice(args.nice)
    try:
        join(args.address)  # before Ray is imported: it reads its settings then
        from gptviz.jobs.ray.training import train_far

        train_far(args.address, args.work)
    except ValueError as error:
        sys.exit(str(error))


def parser() -> argparse.ArgumentParser:
    """The command line of the process."""
    made = argparse.ArgumentParser(prog="python -m gptviz.jobs.ray", description=__doc__)
    made.add_argument("--work", type=Path, required=True, help="the run's folder")
    made.add_argument("--address", required=True, help="of the cluster: auto, or its host:port")
    made.add_argument("--nice", type=int, help="how far to stand back for other programs, 0 to 19")
    made.add_argument(
        "--leash", action="store_true", help="end, and remove --work, with standard input"
    )
    return made


if __name__ == "__main__":
    main()
