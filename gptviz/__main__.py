"""`python -m gptviz`: see `gptviz.cli`."""

from gptviz.cli import main

raise SystemExit(main())
