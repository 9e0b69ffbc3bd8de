"""`python -m orchestrator` is the command `leadline`."""

from orchestrator.main import main

main()
