"""python -m otelmon"""

from otelmon.cli import main

main()
