"""The command `sentinel`, and `python -m sentinel`."""

import sys


def main() -> None:
    """Run the command. What the version is needs no import of all commands."""
    if sys.argv[1:] == ["--version"]:
        from importlib.metadata import version

        sys.stdout.write(f"sentinel {version('training-sentinel')}\n")
        return
    from sentinel.common.collection import collect_seldom

    collect_seldom()  # also while the commands are imported
    from sentinel.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
