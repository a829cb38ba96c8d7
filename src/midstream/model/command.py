"""Commands to a running job, as logs and manifests keep them; the kinds are in `step.commands`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from types import UnionType
from typing import Any, ClassVar, NamedTuple, Union, get_args, get_origin, get_type_hints

from midstream.model.codec import Tagged
from midstream.model.errors import QueryError

COMMANDS = "midstream.commands"
"""The group of entry points by which other packages declare commands, with the events that report them."""


@dataclass(frozen=True)
class Command(Tagged, tag="command", group=COMMANDS):
    """A request to a job, which takes it at the beginning of a step."""

    verb: ClassVar[str | None] = ""
    """The name on the command line: empty for that of the kind, None for a command without one and without a form."""

    option_of: ClassVar[tuple[str, str] | None] = None
    """A command of the command line, and the option by which that one means this kind: `drop NAME --stream`."""

    examples: ClassVar[tuple[str, ...]] = ()
    """Arguments that the help of the command shows after `midstream VERB`."""

    @property
    def chunks(self) -> tuple[str, ...]:
        """The names of the chunks that the command brings, which must stay in the store until it is taken."""
        return ()


class Part(NamedTuple):
    """A value of a field of named values that has an option of its own on the command line."""

    option: str
    name: str
    metavar: str
    help: str


@dataclass(frozen=True)
class Prompt:
    """Describe a field of a command to users, for the command line and forms: `Annotated[int, Prompt("...")]`.

    A field that is not annotated is asked for by its name.
    """

    help: str = ""
    metavar: str = ""
    argument: bool = False  # given by its position although it has a default
    least: int | None = None
    most: int | None = None
    choices: Callable[[], Iterable[str]] | None = None  # what there is, for a form; the command itself checks
    long: bool = False  # a text of several lines; the command line reads it from standard input where it is "-"
    parts: tuple[Part, ...] = ()
    shown: bool = True
    running: bool = False  # names a running query: a form has it from its page


QueryName = Prompt("The name of a running query.", "QUERY", running=True)
OperatorPath = Prompt("An operator of yours over the results; its module can be imported.", "MODULE:CLASS")
OperatorOptions = Prompt("An option of that operator; may be repeated.")


@dataclass(frozen=True)
class Input:
    """A field of a command as users give it.

    `kind` is `text`, `number`, `flag`, `named` (values by name), `list` (of texts), `value` (JSON, or else a text) or
    `other`.
    """

    name: str
    kind: str
    required: bool
    default: Any
    prompt: Prompt

    @property
    def is_argument(self) -> bool:
        """Whether the command line takes it by its position."""
        return self.prompt.argument or (self.required and self.kind in ("text", "value"))

    @property
    def option(self) -> str:
        """The name of its option: of one value where several may be given, `--no-...` of a flag that is set."""
        word = self.name.replace("_", "-")
        if self.kind in ("named", "list"):
            word = word.removesuffix("s")
        return f"--no-{word}" if self.default is True else f"--{word}"


def inputs_of(kind: type[Any]) -> tuple[Input, ...]:
    """List what users give for a command of this kind, by its fields; one that is neither text nor JSON is `other`.

    >>> from midstream.commands.rescale import Rescale
    >>> [(one.name, one.kind, one.option) for one in inputs_of(Rescale)]
    [('lanes', 'number', '--lanes')]
    """
    hints, found = get_type_hints(kind, include_extras=True), list[Input]()
    for one in fields(kind):
        hint, *notes = get_args(hints[one.name]) if hasattr(hints[one.name], "__metadata__") else (hints[one.name],)
        prompt = next((note for note in notes if isinstance(note, Prompt)), Prompt())
        if not prompt.shown:
            continue
        default = one.default if one.default_factory is MISSING else one.default_factory()
        found.append(
            Input(one.name, _form_of(hint), default is MISSING, None if default is MISSING else default, prompt)
        )
    return tuple(found)


def _form_of(hint: Any) -> str:
    several = set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}
    several -= {type(None)}
    if len(several) > 1 or several == {Any}:
        return "value" if several <= {int, float, str, bool, Any} else "other"
    (single,) = several
    origin = get_origin(single) or single
    if origin in (tuple, list):
        return "list"
    if origin is dict or origin is Mapping:
        return "named"
    return {str: "text", int: "number", bool: "flag", float: "value"}.get(origin, "other")


def operator_value(path: str | None, options: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Encode a user's operator as manifests have it.

    >>> operator_value("shop.operators:Median", {"every": 5})
    {'class': 'shop.operators:Median', 'options': {'every': 5}}
    """
    if path is None:
        if options:
            raise QueryError("options need an operator", place="operator_options", remedy="name the operator too")
        return None
    if not isinstance(path, str) or not path:
        remedy = "write the name as package.module:Class"
        raise QueryError(f"{path!r} is not the name of an operator", place="operator", remedy=remedy)
    return {"class": path, "options": named_options(options, "operator_options")}


def named_options(options: object, place: str) -> dict[str, Any]:
    """Copy options for a command; raises QueryError where the value at this `place` is not a mapping."""
    if options is not None and not isinstance(options, Mapping):
        remedy = 'write the options as {"name": value}'
        raise QueryError(f"options must be a mapping, not {type(options).__name__}", place=place, remedy=remedy)
    return dict(options or {})
