"""`midstream functions`: the functions that queries call, those of installed packages with their documentation."""

from __future__ import annotations

from typing import Annotated

import typer

from midstream.cli.arguments import AsJson, CommandGroup, placed
from midstream.cli.exit_codes import WrongUse
from midstream.cli.output import print_json, print_table, say


@placed(CommandGroup.TOOLS, "midstream functions", "midstream functions --json")
def functions(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show the whole documentation of this function.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the functions that queries can call, with the documentation of functions from installed packages.

    The page docs/functions.md has an example of each built-in function.
    """
    from midstream.expr.functions import CATALOGUE, INTERNAL, brought_functions

    found, own = brought_functions(), sorted(CATALOGUE.keys() - INTERNAL)
    if name is not None and name.lower() not in found:
        if name.lower() in own:
            raise WrongUse(
                f"{name!r} is a built-in function without further documentation",
                place="NAME",
                remedy="read the example in docs/functions.md",
            )
        raise WrongUse(
            f"there is no function {name!r}", place="NAME", remedy="list all functions with: midstream functions"
        )
    listed = [
        {"name": one, "package": type(function).__module__, "documentation": function.documentation()}
        for one, function in found.items()
        if name is None or one == name.lower()
    ]
    if as_json:
        print_json({"functions": listed} if name is not None else {"own": own, "functions": listed})
    elif name is not None:
        say(listed[0]["documentation"])
    else:
        rows = [(one["name"], one["package"], one["documentation"].partition("\n")[0]) for one in listed]
        print_table("functions of packages", ("function", "module", "what it does"), rows)
        say(f"functions of midstream: {', '.join(own)}")
