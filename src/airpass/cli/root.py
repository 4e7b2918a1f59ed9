"""The `airpass` command and its group; commands import what they need when they run.

Every command has `--quiet` and `--debug`, checks the paths that it writes before it starts, and names its
flags in error messages.
"""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from airpass.cli.streams import JsonOutput, json_only
from airpass.core.errors import InvalidInput
from airpass.core.paths import Named, check_outputs
from airpass.core.text import one_line

QUIET = "airpass.quiet"  # key of the flag in the context
JSON = "airpass.json"  # key of standard output for JSON in the context
# What messages call the values of flags that are not named after their flag.
OTHER_NAMES = {
    "devices": "devices.count",
    "waveguides": "receiver.waveguides",
    "antennas": "receiver.antennas",
    "snr_db": "radio.snr_db",
    "seed": "devices.seed",
    "check_set": "set",
    "server_learning_rate": "server.learning_rate",
    "server_beta1": "server.beta1",
    "server_beta2": "server.beta2",
    "server_tau": "server.tau",
}


class Debug:
    """Whether `--debug` was given to the command that is running or has failed."""

    wanted = False


class OutputFile(click.Path):
    """A file that the command writes; "-" is standard output."""

    name = "path"

    def __init__(self, plain: bool = False) -> None:
        super().__init__(path_type=str if plain else Path)


class OutputFolder(click.Path):
    """A folder that the command writes to."""

    name = "path"

    def __init__(self) -> None:
        super().__init__(path_type=Path)


class Command(click.Command):
    """A command with `--quiet` and `--debug`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params.append(
            click.Option(
                ["--quiet"],
                is_flag=True,
                expose_value=False,
                callback=_keep_quiet,
                help="Print no progress and no tables. Errors and --json are still written.",
            )
        )
        self.params.append(
            click.Option(
                ["--debug"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_keep_debug,
                help="Show the traceback of an error.",
            )
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Error messages name flags instead of Python arguments."""
        try:
            files, folders, inputs = paths_of(ctx)
            check_outputs(files, folders, inputs)
            with json_only() if ctx.params.get("json_path") == "-" else nullcontext() as output:
                ctx.meta[JSON] = output
                return super().invoke(ctx)
        except InvalidInput as error:
            error.args = (one_line(with_flags(str(error), ctx)),)
            raise


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type


def _keep_quiet(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[QUIET] = value


def _keep_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    Debug.wanted = value


def paths_of(ctx: click.Context) -> tuple[list[Named], list[Named], list[Named]]:
    """Files and folders that a command writes, and files that it reads, each with its flag.

    Parameters
    ----------
    ctx
        Context of the command.

    Returns
    -------
    files, folders, inputs : list[Named]
        Any argument that names an existing file is an input, also as a part of a text such as
        `file.py:Name`, `name=file` or `a.json,b.json`.
    """
    files: list[Named] = []
    folders: list[Named] = []
    inputs: list[Named] = []
    for option in ctx.command.params:
        value = ctx.params.get(option.name or "")
        if value is None or value == "-":
            continue
        flag = max(option.opts, key=len) if isinstance(option, click.Option) else option.human_readable_name
        if isinstance(option.type, OutputFile):
            files.append((flag, value))
        elif isinstance(option.type, OutputFolder):
            folders.append((flag, value))
        else:
            inputs += [(flag, path) for path in _files_in(value)]
    return files, folders, inputs


def _files_in(value: Any) -> Iterator[str]:
    """The existing files that the value of an argument names."""
    if isinstance(value, tuple):
        for item in value:
            yield from _files_in(item)
    elif isinstance(value, str | Path):
        whole = str(value)
        parts = {whole, *re.split("[,=]", whole)}
        for part in parts | {part.rpartition(":")[0] for part in parts}:
            if is_file(part):
                yield part


def is_file(path: str) -> bool:
    """Whether a text is the path of a file."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # too long, or with a zero byte
        return False


def is_quiet() -> bool:
    """Whether the command that is running has `--quiet`."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(QUIET))


def json_output() -> JsonOutput | None:
    """Standard output of the command that is running, if it is for JSON alone."""
    ctx = click.get_current_context(silent=True)
    found = None if ctx is None else ctx.meta.get(JSON)
    return found if isinstance(found, JsonOutput) else None


def with_flags(message: str, ctx: click.Context) -> str:
    """A message with flags in place of arguments.

    The name at the start of a message becomes a flag if the flag was given, or if it is missing. Names in
    the rest become flags if they hold an underscore, so that they are no plain words.

    Parameters
    ----------
    message
        Message of an error, such as "tolerance_mm = -1: must be >= 0".
    ctx
        Context of the command.

    Returns
    -------
    str
        The message, such as "--tolerance-mm = -1: must be >= 0".
    """
    for option in ctx.command.params:
        if not isinstance(option, click.Option):
            continue
        flag = max(option.opts, key=len)
        name = flag.lstrip("-").replace("-", "_")
        given = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        field = OTHER_NAMES.get(name, name)
        if given and "." in field:  # a value of the scenario: keep its name, which may be in a file
            message = re.sub(rf"^{re.escape(field)}(?= = )", f"{flag} ({field})", message)
        for known in {name, field}:
            if given or message.startswith(f"{known} is missing"):
                message = re.sub(rf"^{re.escape(known)}(?![\w.])", flag, message)
        if "_" in name:
            message = re.sub(rf"(?<!^)(?<!option )(?<![\w.\-'\"/]){name}(?![\w.=\-'\"])", flag, message)
    return message


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="airpass", message="airpass %(version)s")
def cli() -> None:
    """Over-the-air federated learning with pinching-antenna receivers."""
