"""The `airpass` command and its group; commands import what they need when they run."""

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="airpass", message="airpass %(version)s")
def cli() -> None:
    """Over-the-air federated learning with pinching-antenna receivers."""
