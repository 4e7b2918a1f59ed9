"""The `airpass` command and its group; commands import what they need when they run.

Every command has `--quiet`, and its error messages use the names of its flags.
"""

import re
from typing import Any

import click
from click.core import ParameterSource

from airpass.core.errors import InvalidInput

QUIET = "airpass.quiet"  # key of the flag in the context
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


class Command(click.Command):
    """A command with `--quiet`."""

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

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Error messages name flags instead of Python arguments."""
        try:
            return super().invoke(ctx)
        except InvalidInput as error:
            error.args = (with_flags(str(error), ctx),)
            raise


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type


def _keep_quiet(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta[QUIET] = value


def is_quiet() -> bool:
    """Whether the command that is running has `--quiet`."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(QUIET))


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
