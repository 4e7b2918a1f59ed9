"""`airpass explore`: the page in the browser."""

import click

from airpass.cli.root import Debug, cli, is_quiet
from airpass.core.errors import InvalidInput


@cli.command()
@click.argument("path", required=False, metavar="[SCENARIO.toml|DESIGN.json|RUN|LINK]")
@click.option("--port", type=int, default=0, help="Port on this machine.  [default: any that is free]")
@click.option("--no-browser", is_flag=True, help="Only print the address of the page.")
def explore(path: str | None, port: int, no_browser: bool) -> None:
    """Open a page in the browser in which the receiver can be changed by hand.

    Opens a scenario (TOML), a design or a book (JSON), the folder of train, sweep or reproduce, or a
    link that the page has made; without an argument the paper's set-up. The page is served to
    this machine only, until Ctrl-C.
    """
    import asyncio

    if not 0 <= port <= 65535:
        raise InvalidInput(f"port = {port}: must be between 0 and 65535")
    try:
        from airpass.explore.server import Server
    except ModuleNotFoundError as error:
        if error.name != "tornado":
            raise
        raise InvalidInput(
            "explore needs the package tornado: install the extra, pip install 'airpass[explore]'"
        ) from None
    from airpass.explore.opened import open_path

    server = Server(open_path(path), port, Debug.wanted)

    def ready() -> None:
        click.echo(server.url)
        if not no_browser:
            import webbrowser

            webbrowser.open(server.url)
            if not is_quiet():
                click.echo("airpass: Ctrl-C ends the explorer", err=True)

    asyncio.run(server.run(ready))
