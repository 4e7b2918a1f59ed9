"""Federated averaging by Flower's simulation: ServerApp, ClientApp, Ray.

Configured for speed: one single-threaded actor per core, data and model cached in the actor, replies polled
every 5 ms instead of 100 ms, Ray's processes at normal priority, no dashboard, no telemetry. (Flower also
polls for new messages every 100 ms, which is not configurable.)
"""

import time

BEGAN = time.perf_counter()

import logging  # noqa: E402
import os  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Iterable  # noqa: E402
from typing import Any  # noqa: E402

FOLDER = tempfile.mkdtemp(prefix="peers")  # short path: Ray creates sockets there
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["FLWR_HOME"] = FOLDER
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - the name that Ray reads
os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"

import flwr  # noqa: E402
import torch  # noqa: E402
import workload  # noqa: E402
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict  # noqa: E402
from flwr.clientapp import ClientApp  # noqa: E402
from flwr.serverapp import Grid, ServerApp  # noqa: E402
from flwr.serverapp.strategy import FedAvg, Strategy  # noqa: E402
from flwr.simulation import run_simulation  # noqa: E402

client_app = ClientApp()
_kept: dict[str, Any] = {}  # per actor process


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Local training of one client in one round."""
    told = message.content["config"]
    if not _kept:
        torch.set_num_threads(1)
        _kept["model"] = workload.build(told["model"], told["seed"])
        _kept["shares"] = workload.load_shares(told["data"], told["clients"], told["seed"])
    model = _kept["model"]
    client = context.node_config["partition-id"]
    share = _kept["shares"][client]
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    drawn = workload.batches(
        share, told["seed"], told["server-round"] - 1, client, told["steps"], told["batch"]
    )
    workload.train(model, drawn, told["learning_rate"])
    content = {
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"num-examples": len(share[1])}),
    }
    return Message(content=RecordDict(content), reply_to=message)


def timed(strategy: Strategy, ends: list[float], clients: int) -> Strategy:
    """Record the end time of each round; raise an error if a client failed."""
    aggregate = strategy.aggregate_train

    def aggregate_train(server_round: int, replies: Iterable[Message]) -> Any:
        replies = list(replies)
        failed = [reply.error.reason for reply in replies if reply.has_error()]
        if failed or len(replies) != clients:
            raise RuntimeError(f"round {server_round}: {len(replies)} replies, {failed}")
        result = aggregate(server_round, replies)
        ends.append(time.perf_counter())
        return result

    strategy.aggregate_train = aggregate_train
    return strategy


def main(began: float) -> None:
    """Run the rounds."""
    parser = workload.arguments(__doc__)
    parser.add_argument("--air", action="store_true", help="updates over the air; needs airpass")
    told = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.WARNING)
    ends: list[float] = []
    final: dict[str, Any] = {}
    server_app = ServerApp()

    @server_app.main()
    def server(grid: Grid, context: Context) -> None:
        grid.pull_interval = 0.005
        inner: Strategy = FedAvg(
            fraction_train=1.0,
            fraction_evaluate=0.0,
            min_train_nodes=told.clients,
            min_available_nodes=told.clients,
        )
        if told.air:
            from airpass.flower import OverTheAir, SortedNodes

            inner = OverTheAir(inner, workload.air_link(told.clients), SortedNodes())
        strategy = timed(inner, ends, told.clients)
        names = ("data", "model", "clients", "seed", "steps", "batch", "learning_rate")
        result = strategy.start(
            grid=grid,
            num_rounds=told.rounds,
            initial_arrays=ArrayRecord(workload.build(told.model, told.seed).state_dict()),
            train_config=ConfigRecord({name: getattr(told, name) for name in names}),
        )
        final.update(result.arrays.to_torch_state_dict())

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    run_simulation(
        server_app=server_app,
        client_app=client_app,
        num_supernodes=told.clients,
        backend_name="ray",
        backend_config={
            "client_resources": {"num_cpus": 1.0, "num_gpus": 0.0},
            "init_args": {
                "num_cpus": cores,
                "num_gpus": 0,
                "include_dashboard": False,
                "log_to_driver": False,
                "logging_level": "WARNING",
                "_temp_dir": FOLDER,
            },
        },
    )
    if len(ends) != told.rounds:
        raise SystemExit(f"only {len(ends)} of {told.rounds} rounds finished")
    workload.report("flower", flwr.__version__, began, ends, final)


if __name__ == "__main__":
    # Run from an importable module, so that Ray pickles the client by reference and it keeps its data.
    import flower_loop

    flower_loop.main(BEGAN)
