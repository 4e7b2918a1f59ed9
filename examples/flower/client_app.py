"""A device: three steps of SGD on its own images in every round."""

import numpy as np
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from setting import DATA, images, new_model

from airpass.flower import answer_partition

app = ClientApp()
answer_partition(app)  # tells the server which device this is


@app.train()
def train(message: Message, context: Context) -> Message:
    """Local training."""
    torch.set_num_threads(1)
    device, server_round = context.node_config["partition-id"], message.content["config"]["server-round"]
    model = new_model()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    rng = np.random.default_rng((server_round, device))
    losses = []
    for _ in range(3):
        batch = rng.choice(DATA.samples[device], 32)
        labels = torch.from_numpy(DATA.dataset.y_train[batch]).long()
        loss = torch.nn.functional.cross_entropy(model(images(DATA.dataset.x_train[batch])), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    content = {
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"loss": float(np.mean(losses)), "num-examples": DATA.counts[device]}),
    }
    return Message(RecordDict(content), reply_to=message)
