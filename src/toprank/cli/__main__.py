"""Run the command line with `python -m toprank.cli`."""

from toprank.cli.application import main

if __name__ == "__main__":
    main()
