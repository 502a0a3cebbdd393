"""`python -m catchment` is the command `catchment`."""

from catchment.cli import main

if __name__ == "__main__":
    main()
