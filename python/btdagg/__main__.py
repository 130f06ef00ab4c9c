"""`python -m btdagg` is the command `btdagg`."""

from btdagg.cli import main

if __name__ == "__main__":
    main()
