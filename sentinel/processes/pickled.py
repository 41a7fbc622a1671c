"""Data out of a pickle without unpickling it, which would run whatever the file asks for.

A pickle is a program for a small machine. Of its instructions only those are known here that data need: None,
booleans, numbers, text, tuples, lists and dictionaries. One that names a class or calls something is refused.
"""

from pickletools import genops
from typing import Any

_VALUE_OPCODES = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_ARGUMENT_OPCODES = frozenset(
    (
        *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
        *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    )
)
_MAX_INSTRUCTIONS = 1_000_000  # some seconds; a full flight recorder takes a third of them
_TUPLE_OPCODES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}  # numbers of items
_EMPTY_OPCODES = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict}


def data_of(pickled: bytes) -> Any:
    """Return the data of a pickle. Raises ValueError if it holds anything else, is cut or very long."""
    machine = _PickleMachine()
    try:
        for count, (instruction, argument, _) in enumerate(genops(pickled)):
            if count >= _MAX_INSTRUCTIONS:
                raise ValueError("too long")
            machine.run(instruction.name, argument)
        return machine.stack.pop()
    except (IndexError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError("not a pickle") from error


class _PickleMachine:
    """What was built so far: values on a stack, where groups of them begin, and a memo by number."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self, name: str, argument: Any) -> None:
        """Run an instruction. Raises ValueError for one that data do not need."""
        if name in ("PROTO", "FRAME", "STOP"):
            return
        if name == "MARK":
            self._marks.append(len(self.stack))
        elif name in ("BINPUT", "LONG_BINPUT"):
            self._memo[argument] = self.stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = self.stack[-1]
        elif name in ("APPEND", "APPENDS"):
            list.extend(*self._container_and_values(1 if name == "APPEND" else None))
        elif name in ("SETITEM", "SETITEMS"):
            _set_items(*self._container_and_values(2 if name == "SETITEM" else None))
        else:
            self.stack.append(self._value(name, argument))

    def _value(self, name: str, argument: Any) -> Any:
        if name in ("BINGET", "LONG_BINGET"):
            return self._memo[argument]
        if name in _ARGUMENT_OPCODES:
            return argument
        if name in _VALUE_OPCODES:
            return _VALUE_OPCODES[name]
        if name in _EMPTY_OPCODES:
            return _EMPTY_OPCODES[name]()
        if name == "TUPLE" or name in _TUPLE_OPCODES:
            return tuple(self._pop(_TUPLE_OPCODES.get(name)))
        raise ValueError(f"not data: {name}")

    def _container_and_values(self, count: int | None) -> tuple[Any, list[Any]]:
        """Pop values, and return the container below them as well, which stays on the stack."""
        values = self._pop(count)
        return self.stack[-1], values

    def _pop(self, count: int | None) -> list[Any]:
        """Pop the last values, so many or all since the last mark."""
        start = self._marks.pop() if count is None else len(self.stack) - count
        if start < 0:
            raise ValueError("not a pickle")
        values = self.stack[start:]
        del self.stack[start:]
        return values


def _set_items(into: dict[Any, Any], values: list[Any]) -> None:
    if not all(isinstance(key, str | int) for key in values[::2]):  # a deep tuple would overflow the stack
        raise ValueError("not data: a key that is no text")
    dict.update(into, zip(values[::2], values[1::2], strict=True))
