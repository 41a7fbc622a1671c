"""The command `sentinel`, and `python -m sentinel`."""

import sys


def main() -> None:
    """Run the command. What the version is needs no import of all commands."""
    if sys.argv[1:] == ["--version"]:
        from importlib.metadata import version

        sys.stdout.write(f"sentinel {version('training-sentinel')}\n")
        return
    from sentinel.common.collection import QuickEnd, collect_seldom

    end = QuickEnd()
    collect_seldom()  # also while the commands are imported
    from sentinel.cli.app import main as run

    try:
        run()
    except SystemExit as exit_:
        if not isinstance(exit_.code, str):
            end.status = exit_.code or 0
        raise


if __name__ == "__main__":
    main()
