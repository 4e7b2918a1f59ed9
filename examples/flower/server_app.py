"""The server: a designed receiver, and FedAvg with updates that come over the air."""

import torch
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from setting import DATA, DEVICES, SCENARIO, images, new_model

from airpass import design
from airpass.flower import OverTheAir, PartitionNodes

app = ServerApp()


def accuracy(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    """Accuracy of the global model on the test images."""
    model = new_model().eval()
    model.load_state_dict(arrays.to_torch_state_dict())
    with torch.no_grad():
        right = model(images(DATA.dataset.x_test)).argmax(1) == torch.from_numpy(DATA.dataset.y_test)
    return MetricRecord({"accuracy": right.float().mean().item()})


@app.main()
def main(grid: Grid, context: Context) -> None:
    """All rounds."""
    link = design(SCENARIO, "airpass-plus")
    inner = FedAvg(fraction_train=1.0, fraction_evaluate=0.0, min_available_nodes=DEVICES)
    strategy = OverTheAir(inner, link, PartitionNodes())
    result = strategy.start(
        grid,
        ArrayRecord(new_model().state_dict()),
        num_rounds=int(context.run_config.get("rounds", 20)),
        evaluate_fn=accuracy,
    )
    last = strategy.rounds[-1]
    reached = result.evaluate_metrics_serverapp[last.number]["accuracy"]
    print(f"{len(last.senders)} of {DEVICES} devices sent, SDR {last.measured_sdr_db:.1f} dB")
    print(f"accuracy {reached:.3f} after {last.number} rounds")
